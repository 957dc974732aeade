//! The definitions on an embedded hub: it takes them all, and refuses what the cases of their rules say.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use entourage::fleet::{Fleet, Place};
use entourage_controllers::Options;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Error,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};

/// Objects that the rules accept or refuse.
const CASES: &str = include_str!("../../api/testdata/rules.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_refuses_what_the_rules_refuse_and_nothing_else() {
    entourage::install_tls_provider();
    let mut fleet = Fleet::start(1, &Place::Nowhere, Options::default())
        .await
        .unwrap();
    // No other writer changes the sent fields.
    fleet.stop_controllers().await.unwrap();
    let client = fleet.hub.client();
    let crds = entourage_api::crds::crds(None);
    let cases: Vec<Value> = serde_saphyr::from_str(CASES).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let answer = play(&client, &crds, case).await;
        let expected = case["refused"].as_str();
        let as_expected = match (&answer, expected) {
            (Ok(()), None) => true,
            (Err(message), Some(refused)) => message.contains(refused),
            _ => false,
        };
        if !as_expected {
            wrong.push(format!("{}: expected {expected:?}, got {answer:?}", case["name"]));
        }
    }
    assert!(cases.len() > 50 && wrong.is_empty(), "{wrong:#?}");
    fleet.end().await.unwrap();
}

/// Sends the object of a case, without effect; after an update, the object is as it was. Returns the refusal.
async fn play(client: &Client, crds: &[CustomResourceDefinition], case: &Value) -> Result<(), String> {
    let crd = crds
        .iter()
        .find(|crd| crd.metadata.name.as_deref() == case["crd"].as_str())
        .unwrap();
    let version = crd.spec.versions.iter().find(|version| version.storage).unwrap();
    let resource = ApiResource {
        group: crd.spec.group.clone(),
        version: version.name.clone(),
        api_version: format!("{}/{}", crd.spec.group, version.name),
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
    };
    let api: Api<DynamicObject> = match crd.spec.scope.as_str() {
        "Cluster" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), "default", &resource),
    };
    let object = |spec: &Value| {
        let mut object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": case.get("metadata").cloned().unwrap_or(json!({ "name": "p" })),
        });
        for (field, value) in [("spec", spec), ("webhooks", &case["webhooks"])] {
            if !value.is_null() {
                object[field] = value.clone();
            }
        }
        serde_json::from_value::<DynamicObject>(object).unwrap()
    };
    let forever = PostParams::default();
    let dry = PostParams {
        dry_run: true,
        ..forever.clone()
    };
    let mut sent = object(&case["spec"]);
    let answer = match case.get("was") {
        None => api.create(&dry, &sent).await,
        Some(was) => {
            let stored = api.create(&forever, &object(was)).await.unwrap();
            sent.metadata = stored.metadata;
            let answer = api.replace("p", &dry, &sent).await;
            api.delete("p", &DeleteParams::default()).await.unwrap();
            answer
        }
    };
    match answer {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) => Err(status.message),
        Err(error) => Err(error.to_string()),
    }
}
