//! Changes of the containers of a workload: images, commands, arguments.

use std::collections::BTreeSet;

use entourage_api::policy::{CommandArgsOverrider, ImageOverrider, ListOperator};
use serde_json::{Value, json};

use super::{image, patch};
use entourage_interpreter as interpreter;
use entourage_model::object::Gvk;

/// The lists of containers in a pod spec.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Changes one field that holds an image, or, without a predicate, the images of all containers and init containers. An object
/// of a kind that runs no pods, or that has no interpreter, has no containers; a container without an image is not changed.
///
/// # Errors
/// The field and the cause.
pub(super) fn revise_images(gvk: &Gvk, object: &mut Value, change: &ImageOverrider) -> Result<(), String> {
    if let Some(predicate) = &change.predicate {
        let Value::String(image) = patch::find(object, &predicate.path)? else {
            return Err(format!("{} is not a string", predicate.path));
        };
        *image = image::revise(image, change).map_err(|why| format!("{}: {why}", predicate.path))?;
        return Ok(());
    }
    each_container(gvk, object, |name, container| {
        if let Some(Value::String(image)) = container.get_mut("image")
            && !image.is_empty()
        {
            *image = image::revise(image, change).map_err(|why| format!("container {name}: {why}"))?;
        }
        Ok(())
    })
}

/// Appends to, or removes from, the `field` (command or args) of the container of that name. Without such a container nothing
/// changes: a rule often applies to many workloads.
///
/// # Errors
/// The field exists and is not a list.
/// The field is there and no list.
pub(super) fn revise_words(
    gvk: &Gvk,
    object: &mut Value,
    field: &str,
    change: &CommandArgsOverrider,
) -> Result<(), String> {
    each_container(gvk, object, |name, container| {
        if name != change.container_name {
            return Ok(());
        }
        let Some(container) = container.as_object_mut() else {
            return Ok(());
        };
        let mut words = match container.remove(field) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(words)) => words,
            Some(_) => return Err(format!("{field} of container {name} is not a list")),
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
        Ok(())
    })
}

/// Calls `change` with every container of the object and its name: those of the pod spec of a native kind, and those that
/// shipped rules define for a third-party kind.
fn each_container(
    gvk: &Gvk,
    object: &mut Value,
    mut change: impl FnMut(&str, &mut Value) -> Result<(), String>,
) -> Result<(), String> {
    for place in places(gvk, object) {
        let Some(container) = object.pointer_mut(&place) else {
            continue;
        };
        let name = container["name"].as_str().unwrap_or_default().to_owned();
        change(&name, container)?;
    }
    Ok(())
}

/// The JSON pointers of the containers, each once: a change that appends must be made only once.
fn places(gvk: &Gvk, object: &Value) -> BTreeSet<String> {
    let Some(native) = interpreter::native(&gvk.group, &gvk.version, &gvk.kind) else {
        return BTreeSet::new();
    };
    if let Some(declared) = native.declared() {
        return declared.containers(object, &LISTS);
    }
    let Some(path) = native.pod_spec_path() else {
        return BTreeSet::new();
    };
    let spec = format!("/{}", path.join("/"));
    let of_list = |list: &&str| {
        let list = format!("{spec}/{list}");
        let count = object
            .pointer(&list)
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        (0..count).map(move |number| format!("{list}/{number}"))
    };
    LISTS.iter().flat_map(of_list).collect()
}
