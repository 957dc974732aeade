//! Objects in files, and applying them as `kubectl apply --server-side` does.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    discovery::Scope,
};
use serde::Deserialize as _;
use serde_json::Value;

use crate::connect;

/// Who applies.
const MANAGER: &str = "entourage";

/// The objects of files and of directories' YAML and JSON files, in order of their names.
///
/// # Errors
/// Which file cannot be read or is no YAML.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries =
                std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
            let mut files = entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()?;
            files.retain(|file| {
                let extension = file.extension().and_then(|extension| extension.to_str());
                matches!(extension, Some("yaml" | "yml" | "json"))
            });
            files.sort();
            for file in files {
                read_file(&file, &mut objects)?;
            }
        } else {
            read_file(path, &mut objects)?;
        }
    }
    Ok(objects)
}

fn read_file(path: &Path, objects: &mut Vec<Value>) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    objects.extend(parse(&text).with_context(|| format!("{}", path.display()))?);
    Ok(())
}

/// The objects of a text with one or more YAML documents; the items of a List one by one.
///
/// # Errors
/// When it is no YAML, or a document is no object.
pub fn parse(text: &str) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in serde_saphyr::from_multiple::<Value>(text)? {
        match document {
            Value::Null => {}
            Value::Object(ref map) if map.get("kind").and_then(Value::as_str) == Some("List") => {
                objects.extend(document["items"].as_array().into_iter().flatten().cloned());
            }
            Value::Object(_) => objects.push(document),
            _ => bail!("a document is no object"),
        }
    }
    Ok(objects)
}

/// Applies one object; says what was done in kubectl's words.
///
/// # Errors
/// When the server does not know its kind or refuses it.
pub async fn apply(client: &Client, object: &Value) -> Result<String> {
    let object =
        DynamicObject::deserialize(object).context("an object needs apiVersion, kind and metadata")?;
    let types = object
        .types
        .clone()
        .context("an object needs apiVersion and kind")?;
    let (group, version) = types
        .api_version
        .split_once('/')
        .unwrap_or(("", &types.api_version));
    let kind = kube::core::GroupVersionKind::gvk(group, version, &types.kind);
    let (resource, capabilities): (ApiResource, _) = kube::discovery::pinned_kind(client, &kind)
        .await
        .map_err(connect::explain)
        .with_context(|| format!("{} {} is not served", types.api_version, types.kind))?;
    let name = object.metadata.name.clone().context("an object needs a name")?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    let params = PatchParams::apply(MANAGER).force();
    let shown = format!("{}/{name}", types.kind.to_lowercase());
    api.patch(&name, &params, &Patch::Apply(&object))
        .await
        .map_err(connect::explain)
        .with_context(|| format!("cannot apply {shown}"))?;
    Ok(format!("{shown} applied"))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let text =
            "apiVersion: v1\nkind: ConfigMap\n---\n---\nkind: List\nitems:\n- kind: Secret\n- kind: Pod\n";
        let kinds: Vec<_> = parse(text)
            .unwrap()
            .iter()
            .map(|object| object["kind"].clone())
            .collect();
        assert_eq!(kinds, ["ConfigMap", "Secret", "Pod"]);
        assert!(parse("- a\n").is_err());
        assert!(parse("a: [").is_err());
    }
}
