//! The objects of a server, page by page.

use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use serde_json::Value;

use crate::{connect::within, kinds::Served};

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
    let mut params = params.clone();
    let mut all = Vec::new();
    loop {
        let page = within(api.list(&params)).await?;
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
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
