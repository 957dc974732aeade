//! The protection of objects from deletion, whatever their kind.

use entourage_api::keys::{DELETION_PROTECTED_ALWAYS, label};
use entourage_model::problem::Problem;
use serde_json::Value;

/// An object with the protection label cannot be deleted. Only this label of the object is read or reported. Clients of Karmada
/// look for the words of the message.
pub(super) fn protected(old: &Value, problems: &mut Vec<Problem>) {
    if old["metadata"]["labels"][label::DELETION_PROTECTED] == DELETION_PROTECTED_ALWAYS {
        problems.push(Problem::new(
            format!("metadata.labels[{}]", label::DELETION_PROTECTED),
            format!(
                "This resource is protected, please make sure to remove the label: {}",
                label::DELETION_PROTECTED
            ),
            "then delete it",
        ));
    }
}
