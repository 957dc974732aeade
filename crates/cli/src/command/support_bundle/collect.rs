//! The content of a bundle from the hub: the objects of the control plane, checks, versions, metrics.

use anyhow::Result;
use entourage_api::crds::crds;
use kube::{
    Client,
    api::{ApiResource, ListParams},
};
use serde_json::{Value, json};

use super::{bundle::Bundle, redact::REDACTED};
use crate::{
    command::{
        preflight::{PreflightArgs, RightsOf, Role, report},
        version,
    },
    connect::{explain, is_not_found, within_late},
    kinds::Served,
    lists::{PAGE, api, list_metadata},
    raw,
};

/// Kinds of Kubernetes on the hub: API version, kind, plural, true if namespaced.
const OTHERS: &[(&str, &str, &str, bool)] = &[
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
    ),
    ("apiregistration.k8s.io/v1", "APIService", "apiservices", false),
    ("coordination.k8s.io/v1", "Lease", "leases", true),
];

/// Kinds of which only metadata is read: payloads stay on the hub.
const METADATA: &[(&str, &str, &str, bool)] = &[
    ("v1", "Namespace", "namespaces", false),
    ("v1", "Secret", "secrets", true),
    ("v1", "ConfigMap", "configmaps", true),
];

/// Reads a hub.
///
/// # Errors
/// It does not tell its version: nothing else would be read either.
pub async fn hub(bundle: &mut Bundle, hub: &Client) -> Result<()> {
    let checks = PreflightArgs {
        role: Role::Hub,
        cluster: crate::args::HubArgs::default(),
        rights_of: RightsOf::Admin,
        probe: false,
        store_quota: 2.0 * 1024.0 * 1024.0 * 1024.0,
        strict: false,
        output: None,
    };
    let report = report(&checks, hub).await?;
    bundle.json("preflight.json", &report);
    let mut versions = version::versions();
    match version::of_hub(hub).await {
        Ok(of_hub) => versions.hub = Some(of_hub),
        Err(error) => bundle.unread("versions", &format!("{error:#}")),
    }
    bundle.json("version.json", &versions);
    definitions(bundle, hub).await;
    one(bundle, hub, "hub/apis.json", "/apis").await;
    for crd in crds(None) {
        let stored = crd.spec.versions.iter().find(|version| version.storage);
        let version = stored.map(|version| version.name.clone()).unwrap_or_default();
        let api_version = format!("{}/{version}", crd.spec.group);
        let (kind, plural) = (&crd.spec.names.kind, &crd.spec.names.plural);
        let served = served(&api_version, kind, plural, crd.spec.scope == "Namespaced");
        all(bundle, hub, &served).await;
    }
    for (api_version, kind, plural, namespaced) in OTHERS {
        all(bundle, hub, &served(api_version, kind, plural, *namespaced)).await;
    }
    events(bundle, hub).await;
    for (api_version, kind, plural, namespaced) in METADATA {
        metadata(bundle, hub, &served(api_version, kind, plural, *namespaced)).await;
    }
    match raw::text(hub, "/metrics").await {
        Ok(text) => bundle.text("hub/metrics.txt", &text),
        Err(error) => bundle.unread("hub /metrics", &words(error)),
    }
    Ok(())
}

fn served(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Served {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Served {
        resource: ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        },
        namespaced,
    }
}

/// The message of a response that is not understood would quote it.
pub(super) fn words(error: kube::Error) -> String {
    match error {
        kube::Error::SerdeError(_) => "the response is not understood".to_owned(),
        error => format!("{:#}", explain(error)),
    }
}

/// `hub/<plural>.<group>.json`.
fn path(served: &Served) -> String {
    let ApiResource { group, plural, .. } = &served.resource;
    let dot = if group.is_empty() { "" } else { "." };
    format!("hub/{plural}{dot}{group}.json")
}

async fn one(bundle: &mut Bundle, client: &Client, file: &str, path: &str) {
    match raw::get(client, path).await {
        Ok(value) => bundle.json(file, &value),
        Err(error) => bundle.unread(path, &words(error)),
    }
}

/// All objects of a kind; a kind that is not served has none.
async fn all(bundle: &mut Bundle, client: &Client, served: &Served) {
    pages(bundle, client, served, |_| {}).await;
}

/// One file for each page of objects, as `shown` leaves them: all of them together may not fit into memory. They are wiped next, for
/// they may hold Secrets.
async fn pages(bundle: &mut Bundle, client: &Client, served: &Served, shown: impl Fn(&mut Vec<Value>)) {
    let api = api(client, served, "");
    let mut params = ListParams::default().limit(PAGE);
    let file = path(served);
    for number in 1_u64.. {
        let file = match number {
            1 => file.clone(),
            _ => file.replace(".json", &format!(".{number}.json")),
        };
        let page = match within_late(api.list(&params)).await {
            Ok(page) => page,
            Err(error) if number == 1 && is_not_found(&error) => return,
            Err(error) => return bundle.unread(&file, &words(error)),
        };
        let next = page.metadata.continue_.clone().filter(|next| !next.is_empty());
        let objects = page.items.into_iter().map(|object| {
            let mut whole = object.data;
            whole["apiVersion"] = json!(served.resource.api_version);
            whole["kind"] = json!(served.resource.kind);
            whole["metadata"] = json!(object.metadata);
            whole
        });
        let mut objects: Vec<Value> = objects.collect();
        shown(&mut objects);
        bundle.page(&file, &mut objects);
        match next {
            Some(next) => params.continue_token = Some(next),
            None => return,
        }
    }
}

async fn metadata(bundle: &mut Bundle, client: &Client, served: &Served) {
    match list_metadata(client, served, &ListParams::default().limit(PAGE)).await {
        Ok(objects) => bundle.json(&path(served), &objects),
        Err(error) => bundle.unread(&path(served), &words(error)),
    }
}

/// Name, versions and conditions of every definition: a schema is of no use to the reader.
async fn definitions(bundle: &mut Bundle, client: &Client) {
    let served = served(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
    );
    pages(bundle, client, &served, |all| {
        all.iter_mut().for_each(|each| *each = short(each))
    })
    .await;
}

fn short(definition: &Value) -> Value {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let versions: Vec<Value> = versions
        .map(|version| json!({"name": version["name"], "served": version["served"], "storage": version["storage"]}))
        .collect();
    json!({"name": definition["metadata"]["name"], "generation": definition["metadata"]["generation"],
        "versions": versions, "conditions": definition["status"]["conditions"],
        "storedVersions": definition["status"]["storedVersions"]})
}

/// Events of this control plane and of Karmada's: others may quote anything.
async fn events(bundle: &mut Bundle, client: &Client) {
    let served = served("v1", "Event", "events", true);
    pages(bundle, client, &served, |events| {
        events.retain(|event| is_of(event, "entourage") || is_of(event, "karmada"));
        for event in events {
            // Karmada quotes what a member says of an object.
            if event["involvedObject"]["kind"] == "Secret" && !is_of(event, "entourage") {
                event["message"] = json!(REDACTED);
            }
        }
    })
    .await;
}

fn is_of(event: &Value, component: &str) -> bool {
    [&event["source"]["component"], &event["reportingComponent"]]
        .iter()
        .filter_map(|name| name.as_str())
        .any(|name| name.starts_with(component))
}
