//! Webhooks that answer wrongly, late, or with what they have no business with.

use anyhow::{Result, ensure};
use entourage_api::work::DependentObjectReference;
use entourage_e2e::{
    harness::{Fickle, Mood, Scene, eventually, manifests},
    servers::Certificate,
    tests,
};
use entourage_webhook::interpret::{Answered, Interpret, Refusal};
use serde_json::{Value, json};

use super::hooks::{until_held_again, until_observed};

tests![
    a_hook_that_answers_badly_is_named_with_the_reason_and_nothing_is_lost,
    a_hook_whose_serving_certificate_is_its_ca_bundle_is_asked,
    what_a_hook_finds_in_another_namespace_stays_until_that_lets_it_go,
    a_hook_that_cannot_tell_dependencies_holds_up_nothing_where_none_are_propagated,
];

const BOTH: [&str; 2] = ["member1", "member2"];

/// Finds what an annotation of the pods names: `KIND NAMESPACE NAME`.
struct Annotated;

impl Interpret for Annotated {
    fn dependencies(&self, template: &Value) -> Answered<Vec<DependentObjectReference>> {
        // Items of lists do not say it; many a hook cannot read an object that does not.
        if template["kind"] != "Deployment" || template["apiVersion"] != "apps/v1" {
            return Err(Refusal::bad("the object does not say what it is"));
        }
        let uses = &template["spec"]["template"]["metadata"]["annotations"]["example.com/uses"];
        let words: Vec<&str> = uses.as_str().unwrap_or_default().split(' ').collect();
        let [kind, namespace, name] = words[..] else {
            return Err(Refusal::bad("example.com/uses is not KIND NAMESPACE NAME"));
        };
        Ok(vec![DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            label_selector: None,
        }])
    }
}

fn configuration(scene: &Scene, client: &Value) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": scene.own("hooks")},
        "webhooks": [{
            "name": "deployments.example.com",
            "rules": [{
                "operations": ["InterpretDependency"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                "kinds": ["Deployment"],
            }],
            "clientConfig": client, "interpreterContextVersions": ["v1alpha1"], "timeoutSeconds": 1,
        }],
    })
}

fn uses(kind: &str, namespace: &str, name: &str) -> Value {
    let mut deployment = manifests::deployment("myapp", &[]);
    let annotations = json!({"example.com/uses": format!("{kind} {namespace} {name}")});
    deployment["spec"]["template"]["metadata"]["annotations"] = annotations;
    deployment
}

/// The Deployment needs something else while the hook does not respond well: who says why, and nothing is lost.
async fn says_why_and_loses_nothing(scene: &Scene, [has, wants]: [&str; 2], why: &str) -> Result<()> {
    scene.apply(uses("ConfigMap", &scene.ns, wants)).await?;
    let layer = format!(
        "ResourceInterpreterWebhookConfiguration \"{}/deployments.example.com\": ",
        scene.own("hooks")
    );
    let reported = scene
        .until_condition("myapp-deployment", "Interpreted", "False", why)
        .await?;
    let message = reported["message"].as_str().unwrap_or_default();
    ensure!(message.starts_with(&layer), "{message}");
    ensure!(reported["reason"] == "NoAnswer", "{reported}");
    scene.quiet().await?;
    for (kind, name) in [("Deployment", "myapp"), ("ConfigMap", has)] {
        let holders = scene.holders(kind, name).await?;
        ensure!(holders == BOTH, "{why}: {kind} {name}: {holders:?}");
    }
    let early = scene.holders("ConfigMap", wants).await?;
    ensure!(early.is_empty(), "{why}: {wants} is at {early:?}");
    Ok(())
}

async fn arrives(scene: &Scene, [has, wants]: [&str; 2]) -> Result<()> {
    until_held_again(scene, "ConfigMap", wants, &BOTH).await?;
    until_held_again(scene, "ConfigMap", has, &[]).await?;
    until_observed(scene, "myapp-deployment").await
}

async fn a_hook_that_answers_badly_is_named_with_the_reason_and_nothing_is_lost(
    scene: &mut Scene,
) -> Result<()> {
    let hook = Fickle::start(Annotated).await?;
    scene.apply(configuration(scene, &hook.client_config())).await?;
    scene.start().await?;
    for name in ["one", "two"] {
        scene.apply(manifests::config_map(name, "value")).await?;
    }
    scene.apply(uses("ConfigMap", &scene.ns, "one")).await?;
    scene.apply(manifests::policy(&BOTH)).await?;
    scene.until_held("ConfigMap", "one", &BOTH).await?;
    scene.until_held("Deployment", "myapp", &BOTH).await?;
    until_observed(scene, "myapp-deployment").await?;
    scene.restart().await?;
    scene.quiet().await?;
    until_observed(scene, "myapp-deployment").await?;
    let mut names = ["one", "two"];
    for (mood, why) in [
        (Mood::Lying, "the response's uid is not that of the request"),
        (Mood::Huge, "responds with more than"),
        (Mood::Mute, "does not respond within 1 s"),
    ] {
        hook.is(mood);
        says_why_and_loses_nothing(scene, names, why).await?;
        hook.is(Mood::Well);
        arrives(scene, names).await?;
        names.reverse();
    }
    let mut client = hook.client_config();
    client["caBundle"] = Certificate::of(&[])?.bundle();
    scene.apply(configuration(scene, &client)).await?;
    says_why_and_loses_nothing(scene, names, "no TLS with 127.0.0.1").await?;
    scene.apply(configuration(scene, &hook.client_config())).await?;
    arrives(scene, names).await
}

async fn a_hook_whose_serving_certificate_is_its_ca_bundle_is_asked(scene: &mut Scene) -> Result<()> {
    let hook = Fickle::start_with(Certificate::of_authority(&[])?, Annotated).await?;
    let mut client = hook.client_config();
    client["caBundle"] = Certificate::of_authority(&[])?.bundle();
    scene.apply(configuration(scene, &client)).await?;
    scene.start().await?;
    scene.apply(manifests::config_map("one", "value")).await?;
    scene.apply(uses("ConfigMap", &scene.ns, "one")).await?;
    scene.apply(manifests::policy(&BOTH)).await?;
    eventually("the refused certificate is reported", async || {
        let events = scene.events("InterpretationFailed", "myapp").await?;
        let reported = |event: &serde_json::Value| {
            let message = event["message"].as_str().unwrap_or_default();
            message.contains("no TLS with 127.0.0.1")
        };
        ensure!(events.iter().any(reported), "{events:?}");
        Ok(())
    })
    .await?;
    scene.apply(configuration(scene, &hook.client_config())).await?;
    scene.until_held("Deployment", "myapp", &BOTH).await?;
    until_held_again(scene, "ConfigMap", "one", &BOTH).await?;
    until_observed(scene, "myapp-deployment").await
}

async fn what_a_hook_finds_in_another_namespace_stays_until_that_lets_it_go(scene: &mut Scene) -> Result<()> {
    let hook = Fickle::start(Annotated).await?;
    scene.apply(configuration(scene, &hook.client_config())).await?;
    let vault = scene.another_space().await?;
    vault.apply(manifests::secret("key", "sesame")).await?;
    scene.start().await?;
    scene.apply(uses("Secret", &vault.ns, "key")).await?;
    scene.apply(manifests::policy(&BOTH)).await?;
    scene.until_held("Deployment", "myapp", &BOTH).await?;
    let why = format!("dependencies in namespace {} are not propagated", vault.ns);
    scene
        .until_condition("myapp-deployment", "Interpreted", "False", &why)
        .await?;
    scene.quiet().await?;
    vault.until_held("Secret", "key", &[]).await?;

    let lets = |says: &str| {
        let says = json!(says);
        move |live: &mut Value| {
            live["metadata"]["annotations"]["entourage.dev/references-from"] = says.clone()
        }
    };
    let other = lets("another-namespace");
    scene.hub.edit("Namespace", "", &vault.ns, other).await?;
    scene.quiet().await?;
    vault.until_held("Secret", "key", &[]).await?;
    let ours = lets(&scene.ns);
    scene.hub.edit("Namespace", "", &vault.ns, ours).await?;
    vault.until_held("Secret", "key", &BOTH).await?;
    until_observed(scene, "myapp-deployment").await?;
    let nobody = lets("");
    scene.hub.edit("Namespace", "", &vault.ns, nobody).await?;
    vault.until_held("Secret", "key", &[]).await?;
    scene.until_held("Deployment", "myapp", &BOTH).await
}

async fn a_hook_that_cannot_tell_dependencies_holds_up_nothing_where_none_are_propagated(
    scene: &mut Scene,
) -> Result<()> {
    let hook = Fickle::start(Annotated).await?;
    hook.is(Mood::Mute);
    scene.apply(configuration(scene, &hook.client_config())).await?;
    scene.start().await?;
    scene.apply(manifests::config_map("one", "value")).await?;
    scene.apply(uses("ConfigMap", &scene.ns, "one")).await?;
    let policy = |follows: bool| {
        let mut policy = manifests::policy(&BOTH);
        policy["spec"]["propagateDeps"] = json!(follows);
        policy
    };
    scene.apply(policy(false)).await?;
    scene.until_held("Deployment", "myapp", &BOTH).await?;
    until_observed(scene, "myapp-deployment").await?;
    // From now on the answer is used, and the Deployment is as it was.
    scene.apply(policy(true)).await?;
    let why = "InterpretDependency failed: ";
    scene
        .until_condition("myapp-deployment", "Interpreted", "False", why)
        .await?;
    let early = scene.holders("ConfigMap", "one").await?;
    ensure!(early.is_empty(), "{early:?}");
    hook.is(Mood::Well);
    until_held_again(scene, "ConfigMap", "one", &BOTH).await?;
    until_observed(scene, "myapp-deployment").await?;
    scene.apply(policy(false)).await?;
    scene.until_held("ConfigMap", "one", &[]).await?;
    let holders = scene.holders("Deployment", "myapp").await?;
    ensure!(holders == BOTH, "{holders:?}");
    Ok(())
}
