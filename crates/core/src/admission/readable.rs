//! Objects that decisions go by can be read as what they say they are.
//!
//! The definitions refuse what cannot; a hub may have definitions of another origin, or of another release. Elsewhere only a
//! log would tell: what cannot be read is skipped, and what was read of it before goes on to count.

use serde_json::Value;

use super::{Problem, Request};
use crate::{
    object::Gvk,
    simulation::misread::{self, REMEDY},
};

/// Names the part at fault. Cost: as [`misread::field`].
pub(super) fn check(object: &Value, request: &Request<'_>, problems: &mut Vec<Problem>) {
    let gvk = Gvk::new(&format!("{}/v1alpha1", request.group), request.kind);
    if let Some(field) = misread::field(&gvk, object) {
        let cause = format!("it is not valid for a {}", request.kind);
        problems.push(Problem::new(field, cause, REMEDY));
    }
}
