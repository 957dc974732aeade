//! The objects of a server, page by page.

use anyhow::{Context as _, Result, bail};
use entourage_core::{object::Gvk, rendered::wipe};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, ObjectMeta},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    connect::{explain, within, within_late},
    kinds::{Kinds, Served},
    progress::Progress,
};

/// The number of objects in a page of a list.
pub const PAGE: u32 = 500;

/// The objects of a kind in a namespace; in all namespaces when it is empty.
#[must_use]
pub fn api(client: &Client, served: &Served, namespace: &str) -> Api<DynamicObject> {
    if served.namespaced && !namespace.is_empty() {
        Api::namespaced_with(client.clone(), namespace, &served.resource)
    } else {
        Api::all_with(client.clone(), &served.resource)
    }
}

/// All objects of an API, page by page, as the server has them.
///
/// # Errors
/// The server's.
pub async fn pages<K>(api: &Api<K>, params: &ListParams) -> kube::Result<Vec<K>>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut params = params.clone().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = within(api.list(&params)).await?;
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
        all.extend(page.items);
        match next {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(all),
        }
    }
}

/// All objects of a kind in a namespace, page by page; in all namespaces when it is empty.
///
/// # Errors
/// The server's.
pub async fn list(
    client: &Client,
    served: &Served,
    namespace: &str,
    params: &ListParams,
) -> kube::Result<Vec<Value>> {
    let api = api(client, served, namespace);
    let mut progress = Progress::new(format!("reading {}", served.resource.plural));
    let mut params = params.clone();
    let mut all = Vec::new();
    loop {
        let page = within(api.list(&params)).await?;
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
        progress.add(page.items.len(), page.metadata.remaining_item_count);
        for mut object in page.items {
            // The items of a list leave their kind out.
            object.types.get_or_insert_with(|| kube::api::TypeMeta {
                api_version: served.resource.api_version.clone(),
                kind: served.resource.kind.clone(),
            });
            object.metadata.managed_fields = None;
            all.extend(serde_json::to_value(object));
        }
        match next {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(all),
        }
    }
}

/// Shows each object of a kind in a namespace to `take`, page by page; in all namespaces when it is empty. Each is wiped next: it
/// may hold a Secret. A page may take long, for whole objects that contain others.
///
/// # Errors
/// The server's.
pub async fn each(
    client: &Client,
    served: &Served,
    namespace: &str,
    params: &ListParams,
    mut take: impl FnMut(&Value),
) -> kube::Result<()> {
    let api = api(client, served, namespace);
    let mut progress = Progress::new(format!("reading {}", served.resource.plural));
    let mut params = params.clone();
    loop {
        let page = within_late(api.list(&params)).await?;
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
        progress.add(page.items.len(), page.metadata.remaining_item_count);
        for object in page.items {
            let mut shown = object.data;
            shown["metadata"] = json!(object.metadata);
            take(&shown);
            wipe(&mut shown);
        }
        match next {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(()),
        }
    }
}

/// The metadata of all objects of a kind, page by page: no payload is transferred.
///
/// # Errors
/// The server's.
pub async fn list_metadata(
    client: &Client,
    served: &Served,
    params: &ListParams,
) -> kube::Result<Vec<ObjectMeta>> {
    let api = api(client, served, "");
    let mut progress = Progress::new(format!("reading {}", served.resource.plural));
    let mut params = params.clone();
    let mut all = Vec::new();
    loop {
        let page = within(api.list_metadata(&params)).await?;
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
        progress.add(page.items.len(), page.metadata.remaining_item_count);
        all.extend(page.items.into_iter().map(|mut item| {
            item.metadata.managed_fields = None;
            item.metadata
        }));
        match next {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(all),
        }
    }
}

/// All objects of a kind of the hub; none if the hub does not serve a kind that it need not.
///
/// # Errors
/// The hub cannot be read, or is no hub.
pub async fn every(hub: &Client, gvk: Gvk, required: bool) -> Result<Vec<Value>> {
    let mut served = Kinds::default();
    served
        .learn(hub, [gvk.clone()])
        .await
        .context("cannot ask the hub which kinds it serves")?;
    let Some(served) = served.get(&gvk) else {
        if required {
            bail!(
                "the hub does not serve the kind {}: is it a hub? `entourage crds --apply` installs the definitions",
                gvk.kind
            );
        }
        return Ok(Vec::new());
    };
    let all = list(hub, served, "", &ListParams::default().limit(PAGE)).await;
    all.map_err(explain)
        .with_context(|| format!("cannot list {} on the hub", served.resource.plural))
}
