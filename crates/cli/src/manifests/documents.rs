//! The YAML documents of a text, and the objects in them.

use anyhow::{Result, anyhow, bail};
use kube::api::DynamicObject;
use serde::Deserialize as _;
use serde_json::Value;

use super::Manifest;

/// The items of a List, or of a list of one kind such as ConfigMapList, whose items may omit their kind; `None` for an object,
/// which has a name.
pub(super) fn items(document: &Value) -> Option<Vec<Value>> {
    let kind = document["kind"].as_str()?.strip_suffix("List")?;
    let items = document["items"].as_array()?;
    if !document["metadata"]["name"].is_null() {
        return None;
    }
    let mut items = items.clone();
    for item in &mut items {
        if let Some(fields) = item.as_object_mut().filter(|_| !kind.is_empty()) {
            fields.entry("kind").or_insert_with(|| kind.into());
            fields
                .entry("apiVersion")
                .or_insert_with(|| document["apiVersion"].clone());
        }
    }
    Some(items)
}

/// The YAML documents of a text. `origin` names the text in errors, which never contain its content.
///
/// # Errors
/// It is invalid YAML.
pub fn documents(text: &str, origin: &str) -> Result<Vec<Value>> {
    // The text is already in memory: what it spells out is as long as it, and only what aliases repeat has a limit.
    let spelled_out = text.len().max(1_000_000);
    let budget = serde_saphyr::budget! {
        max_documents: spelled_out,
        max_nodes: spelled_out,
        max_events: spelled_out.saturating_mul(2),
    };
    // As kubectl reads it: `mode: 0644` is octal.
    let options = serde_saphyr::options! { budget: budget, legacy_octal_numbers: true, with_snippet: false };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let place = error.location().map_or_else(String::new, |place| {
            format!(", line {} column {}", place.line(), place.column())
        });
        anyhow!("{origin}{place}: invalid YAML")
    })
}

/// The lines, counted from 1, at which the documents of a text begin that contain more than comments.
pub(super) fn beginnings(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut begun = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("---") {
            let rest = rest.trim_start();
            begun = !rest.is_empty() && !rest.starts_with('#');
            if begun {
                lines.push(number + 1);
            }
        } else if !begun && !line.trim().is_empty() && !line.trim_start().starts_with('#') && line != "..." {
            begun = true;
            lines.push(number + 1);
        }
    }
    lines
}

pub(super) fn manifest(document: &Value, origin: String) -> Result<Manifest> {
    if !document.is_object() {
        bail!(
            "{origin}: not an object; an object has apiVersion, kind and metadata, and --- stands between two"
        );
    }
    let group = document["apiVersion"].as_str().unwrap_or_default();
    if group.starts_with("kustomize.config.k8s.io/") {
        bail!(
            "{origin}: this is for kustomize; give what it makes of it: -k DIR, or kustomize build DIR | entourage … -f -"
        );
    }
    for field in ["apiVersion", "kind"] {
        if document[field].as_str().is_none_or(str::is_empty) {
            bail!("{origin}: the object has no {field}; every object says its apiVersion and kind");
        }
    }
    // Serde's own error may quote a value.
    let object = DynamicObject::deserialize(document)
        .map_err(|_| anyhow!("{origin}: the object's metadata cannot be read; what YAML takes for a number or a truth value needs quotes"))?;
    let (Some(types), Some(name)) = (object.types.clone(), object.metadata.name.clone()) else {
        bail!("{origin}: the object has no metadata.name; give it one (generateName is not enough)");
    };
    Ok(Manifest {
        object,
        types,
        name,
        origin,
    })
}
