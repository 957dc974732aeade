//! Server-side apply of the objects.

use anyhow::{Context as _, Result};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    discovery::Scope,
};

use super::Manifest;
use crate::connect;

/// The field manager.
const MANAGER: &str = "entourage";

/// Applies one object server-side with force, taking over fields of other managers. Returns the result as a line.
///
/// # Errors
/// The server does not serve its kind or refuses it, with its file.
pub async fn apply(client: &Client, manifest: &Manifest) -> Result<String> {
    let applied = try_apply(client, manifest).await;
    applied.with_context(|| format!("cannot apply {manifest} of {}", manifest.origin))?;
    Ok(format!("{manifest} applied"))
}

async fn try_apply(client: &Client, manifest: &Manifest) -> Result<()> {
    let types = &manifest.types;
    let (group, version) = types
        .api_version
        .split_once('/')
        .unwrap_or(("", &types.api_version));
    let kind = kube::core::GroupVersionKind::gvk(group, version, &types.kind);
    let (resource, capabilities): (ApiResource, _) = kube::discovery::pinned_kind(client, &kind)
        .await
        .map_err(connect::explain)
        .with_context(|| format!("{} {} is not served", types.api_version, types.kind))?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = manifest.object.metadata.namespace.as_deref();
            Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), &resource)
        }
    };
    let params = PatchParams::apply(MANAGER).force();
    api.patch(&manifest.name, &params, &Patch::Apply(&manifest.object))
        .await
        .map_err(connect::explain)?;
    Ok(())
}
