//! Fields that API servers fill in: a copy that an embedded API server completed equals the object that was sent.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::{BTreeMap, BTreeSet};

use entourage_apiserver::{Cluster, Options};
use entourage_core::interpreter::{
    NATIVE, difference,
    equal::{DEFAULTS, Scope},
    native,
};
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
    core::GroupVersionKind,
    discovery::{self, pinned_kind},
};
use serde_json::Value;

/// The objects, and their file for whom a kind is missing.
const OBJECTS: &str = include_str!("../testdata/filled_in.yaml");
const FILE: &str = "crates/cli/testdata/filled_in.yaml";

/// Native kinds that the embedded API server does not serve, and the reason for which nothing is filled in that the table lacks.
const NOT_SERVED: &[(&str, &str)] = &[
    (
        "APIService.apiregistration.k8s.io",
        "an aggregator serves it, which the embedded API server lacks",
    ),
    (
        "ResourceDistribution.apps.kruise.io",
        "a custom resource: a server fills in what its CRD says",
    ),
    (
        "ServiceExport.multicluster.x-k8s.io",
        "a custom resource: a server fills in what its CRD says",
    ),
    (
        "ServiceImport.multicluster.x-k8s.io",
        "a custom resource: a server fills in what its CRD says",
    ),
];

/// A kind as the table names it.
fn scope(group: &str, kind: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{kind}.{group}"),
    }
}

/// The object as an API server serves it after its creation.
async fn served(client: &Client, object: &Value) -> Result<Value, kube::Error> {
    let sent: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    let types = sent.types.clone().unwrap_or_default();
    let gvk = GroupVersionKind::try_from(types).unwrap();
    let (resource, capabilities) = pinned_kind(client, &gvk).await?;
    let api: Api<DynamicObject> = match capabilities.scope {
        discovery::Scope::Cluster => Api::all_with(client.clone(), &resource),
        discovery::Scope::Namespaced => Api::default_namespaced_with(client.clone(), &resource),
    };
    let made = api.create(&PostParams::default(), &sent).await?;
    serde_json::to_value(made).map_err(kube::Error::SerdeError)
}

#[tokio::test]
async fn what_a_server_fills_in_is_in_the_table_of_defaults() {
    entourage::install_tls_provider();
    let client = Cluster::new(Options::default()).client();
    let objects: Vec<Value> = serde_saphyr::from_str(OBJECTS).unwrap();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for object in &objects {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion")
            .split_once('/')
            .unwrap_or(("", text("apiVersion")));
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let kind = scope(group, text("kind"));
        let live = match served(&client, object).await {
            Ok(live) => live,
            Err(error) => {
                wrong.push(format!("{kind} {name} in {FILE} is refused: {error}"));
                continue;
            }
        };
        let mut desired = object.clone();
        if let Some(native) = native(group, version, text("kind")) {
            native.retain(&mut desired, &live);
        }
        if let Some(path) = difference(&desired, &live) {
            wrong.push(format!(
                "{kind} {name}: an API server fills in {path}: add it to DEFAULTS in crates/interpreter/src/equal/defaults.rs, \
                 or derive it in derived.rs beside it; if it belongs to the member, retain it in the kind's file in \
                 crates/interpreter/src/native"
            ));
        }
        seen.insert(kind);
    }
    let not_served: BTreeMap<_, _> = NOT_SERVED.iter().copied().collect();
    let native = NATIVE.iter().map(|native| native.gvk());
    let tabled = DEFAULTS.iter().filter_map(|row| match row.scope {
        Scope::Kind(kind) => Some(kind.to_owned()),
        Scope::PodSpec => None,
    });
    let kinds: BTreeSet<String> = native
        .map(|gvk| scope(gvk.group, gvk.kind))
        .chain(tabled)
        .collect();
    for kind in &kinds {
        if seen.contains(kind) == not_served.contains_key(kind.as_str()) {
            wrong.push(format!(
                "{kind}: add a minimal object to {FILE}, or a row with the reason to NOT_SERVED, and not both"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
