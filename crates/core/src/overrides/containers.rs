//! Changes of the containers of a workload: images, commands, arguments.

use entourage_api::policy::{CommandArgsOverrider, ImageOverrider, ListOperator};
use serde_json::{Value, json};

use super::{image, patch};
use crate::{
    interpreter::{self, NativeKind},
    object::Gvk,
};

/// The lists of containers in a pod spec.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Changes one field that holds an image, or, where none is named, the images of all containers and init containers.
/// An object of a kind that runs no pods has none; a container without an image keeps none.
///
/// # Errors
/// The field, and what is wrong there.
pub(super) fn revise_images(gvk: &Gvk, object: &mut Value, change: &ImageOverrider) -> Result<(), String> {
    if let Some(predicate) = &change.predicate {
        let Value::String(image) = patch::find(object, &predicate.path)? else {
            return Err(format!("{} holds no text", predicate.path));
        };
        *image = image::revise(image, change).map_err(|why| format!("{}: {why}", predicate.path))?;
        return Ok(());
    }
    for (name, container) in containers(gvk, object) {
        if let Some(Value::String(image)) = container.get_mut("image")
            && !image.is_empty()
        {
            *image = image::revise(image, change).map_err(|why| format!("container {name}: {why}"))?;
        }
    }
    Ok(())
}

/// Appends to, or removes from, the `field` (command or args) of the container of that name. Without such a container
/// nothing changes: a rule is often for many workloads.
///
/// # Errors
/// The field is there and no list.
pub(super) fn revise_words(
    gvk: &Gvk,
    object: &mut Value,
    field: &str,
    change: &CommandArgsOverrider,
) -> Result<(), String> {
    for (name, container) in containers(gvk, object) {
        if name != change.container_name {
            continue;
        }
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let mut words = match container.remove(field) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(words)) => words,
            Some(_) => return Err(format!("{field} of container {name} is no list")),
        };
        match change.operator {
            ListOperator::Add => words.extend(change.value.iter().map(|word| json!(word))),
            ListOperator::Remove => {
                words.retain(|word| !change.value.iter().any(|gone| word.as_str() == Some(gone)));
            }
        }
        // An empty list means the same as none.
        if !words.is_empty() {
            container.insert(field.into(), Value::Array(words));
        }
    }
    Ok(())
}

/// Every container of the object with its name.
fn containers<'a>(gvk: &Gvk, object: &'a mut Value) -> Vec<(String, &'a mut Value)> {
    let path = interpreter::native(&gvk.group, &gvk.version, &gvk.kind).and_then(NativeKind::pod_spec_path);
    let spec = path.and_then(|path| path.iter().try_fold(object, |value, key| value.get_mut(*key)));
    let Some(spec) = spec.and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    spec.iter_mut()
        .filter(|(list, _)| LISTS.contains(&list.as_str()))
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
        .map(|container| {
            (
                container["name"].as_str().unwrap_or_default().to_owned(),
                container,
            )
        })
        .collect()
}
