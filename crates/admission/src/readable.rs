//! Objects that decisions use can be read as their kind.
//!
//! The CRDs refuse those that cannot; a hub may have CRDs of another origin, or of another release. Otherwise only a log would
//! report it: an unreadable object is skipped, and its earlier state remains in effect.

use entourage_core::observation::misread::{self, REMEDY};
use entourage_model::{object::Gvk, problem::Problem};
use serde_json::Value;

use crate::request::Request;

/// Names the invalid field. Cost: as [`misread::field`].
pub(super) fn check(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let gvk = Gvk::new(&format!("{}/v1alpha1", request.group), request.kind);
    if let Some(field) = misread::field(&gvk, object) {
        let cause = format!("it is not valid for a {}", request.kind);
        problems.push(Problem::new(field, cause, REMEDY));
    }
}
