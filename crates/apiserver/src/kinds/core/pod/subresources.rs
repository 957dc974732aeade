//! Changes through `pods/ephemeralcontainers` and `pods/resize`.

use serde_json::Value;

use crate::{
    kinds::pod_spec,
    object::{
        Object, metadata,
        tree::{Errors, below, items, list, made, text},
    },
    status::FieldError,
};

/// Leaves of a change only what the subresource is for.
pub(super) fn narrow(subresource: &str, new: &mut Object, old: &Object) {
    let wanted = std::mem::replace(new, old.clone());
    if let Some(fields) = metadata(&wanted).get("managedFields") {
        crate::object::metadata_mut(new).insert("managedFields".to_owned(), fields.clone());
    }
    let (wanted, spec) = (below(&wanted, "spec"), made(new, "spec"));
    match subresource {
        "ephemeralcontainers" => match wanted.get("ephemeralContainers") {
            Some(containers) => {
                spec.insert("ephemeralContainers".to_owned(), containers.clone());
            }
            None => {
                spec.remove("ephemeralContainers");
            }
        },
        "resize" => {
            for key in ["containers", "initContainers"] {
                resize(spec, wanted, key);
            }
        }
        _ => {}
    }
}

fn resize(spec: &mut Object, wanted: &Object, key: &str) {
    let Some(Value::Array(containers)) = spec.get_mut(key) else {
        return;
    };
    for container in containers.iter_mut().filter_map(Value::as_object_mut) {
        let asked = list(wanted, key)
            .iter()
            .filter_map(Value::as_object)
            .find(|one| text(one, "name") == text(container, "name"));
        let Some(asked) = asked else { continue };
        for part in ["resources", "resizePolicy"] {
            match asked.get(part) {
                Some(value) => container.insert(part.to_owned(), value.clone()),
                None => container.remove(part),
            };
        }
    }
}

/// The errors in such a change.
pub(super) fn validate(subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Errors(super::update::whole(new));
    let (spec, before) = (below(new, "spec"), below(old, "spec"));
    match subresource {
        "ephemeralcontainers" => {
            const FIELD: &str = "spec.ephemeralContainers";
            let now = list(spec, "ephemeralContainers");
            for old in list(before, "ephemeralContainers") {
                let name = old.get("name").and_then(Value::as_str).unwrap_or_default();
                let same = now.iter().find(|one| one.get("name") == old.get("name"));
                match same {
                    None => errors.forbidden(
                        FIELD,
                        &format!("existing ephemeral containers {name:?} may not be removed\n"),
                    ),
                    Some(one) if one != old => errors.forbidden(
                        FIELD,
                        &format!("existing ephemeral containers {name:?} may not be changed\n"),
                    ),
                    Some(_) => {}
                }
            }
        }
        "resize" => {
            if pod_spec::quality(spec) != pod_spec::quality(before) {
                errors.invalid(
                    "spec",
                    text(below(new, "status"), "qosClass"),
                    "Pod QOS Class may not change as a result of resizing",
                );
            }
            for key in ["containers", "initContainers"] {
                kept_amounts(spec, before, key, &mut errors);
            }
        }
        _ => {}
    }
    errors.0
}

/// A resize changes amounts of cpu and memory, and takes none away.
fn kept_amounts(spec: &Object, before: &Object, key: &str, errors: &mut Errors) {
    for ((path, container), old) in items(spec, key, "spec").zip(list(before, key)) {
        let of = |container: &Object, kind: &str| below(below(container, "resources"), kind).clone();
        let old = old.as_object().cloned().unwrap_or_default();
        for kind in ["limits", "requests"] {
            let (is, was) = (of(container, kind), of(&old, kind));
            if was.keys().any(|name| !is.contains_key(name)) {
                let why = format!("resource {kind} cannot be removed");
                errors.forbidden(format!("{path}.resources.{kind}"), &why);
            }
            let fixed = |name: &&String| !matches!(name.as_str(), "cpu" | "memory");
            if is.keys().filter(fixed).any(|name| is.get(name) != was.get(name)) {
                errors.forbidden("spec", "only cpu and memory resources are mutable");
            }
        }
    }
}
