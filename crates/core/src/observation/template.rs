//! The projection of a template: what its native interpreter reads, or the interpreter of its kind.

use std::sync::Arc;

use serde_json::Value;

use super::{Template, interpreted, object_ref};
use crate::{
    interpreter::{self, Interpretation, question::InterpretError, template_meta},
    object::ResourceId,
};

/// Projects a template.
#[must_use]
pub fn template(interpretation: &Interpretation, id: &ResourceId, object: &Value) -> Template {
    let mut template = template_as_known(id, object);
    if !interpretation.version().is_empty() {
        interpreted::tell(interpretation, id, object, &mut template);
    }
    template
}

/// Projects a template by its native interpreter.
fn template_as_known(id: &ResourceId, object: &Value) -> Template {
    let meta = template_meta(&id.gvk, object);
    let Some(native) = interpreter::native(&id.gvk.group, &id.gvk.version, &id.gvk.kind) else {
        return Template {
            meta,
            ..Template::default()
        };
    };
    let interpreted = native.reports_status();
    let components = interpreter::requirements::components(native, object);
    let (components, failed) = match interpreter::requirements::check_components(&components) {
        Ok(()) => (Some(components).filter(|all| !all.is_empty()), None),
        Err(why) => (None, Some(InterpretError::of_components("shipped rules", why))),
    };
    Template {
        replicas: native
            .replicas(object)
            .and_then(|count| i32::try_from(count).ok()),
        completions: interpreter::native::completions(object).filter(|_| &*id.gvk.kind == "Job"),
        requirements: interpreter::requirements::requirements(native, &id.namespace, object).map(Arc::new),
        components: components.map(Arc::from),
        failed_operations: failed.into_iter().collect(),
        references: interpreter::references::references(native, &id.namespace, object),
        selections: interpreter::references::selections(native, &id.namespace, object),
        scales: object_ref::scale_target(native, id, object),
        status: interpreted
            .then(|| object["status"].clone())
            .filter(|status| !status.is_null()),
        shape: interpreter::aggregate_reads(native, object),
        meta,
        ..Template::default()
    }
}
