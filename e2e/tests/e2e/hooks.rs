//! Webhooks that say how objects are understood, as processes of their own: started, killed and started again.
//!
//! The hook is the example of the documentation, its kind and its manifests are those of `config/samples`.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, eventually_within, manifests, status_code},
    servers::Hook,
    tests,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::distribution_rights::{granted, roles, unlimit};

tests![
    a_hook_tells_all_there_is_to_know_of_a_kind,
    a_hook_that_is_killed_takes_nothing_away_and_holds_up_nobody_else,
    a_hook_that_may_be_ignored_leaves_a_known_kind_to_what_is_known_of_it,
    the_account_of_the_controllers_may_all_that_hooks_take,
];

/// The example `interpreter`.
const PROGRAM: &str = env!("CARGO_BIN_EXE_interpreter");

/// The longest time until a hook that is available again was asked about everything: after an outage of some seconds the
/// back-off is as long at most, and after any outage a little over half a minute.
pub(super) const HEARD: Duration = Duration::from_secs(60);

/// The longest time that a change of what no unresponsive hook is about may take to arrive.
const PROMPT: Duration = Duration::from_secs(10);

const DEFINITION: &str = "workloads.workload.example.io";

/// The manifests of the documentation.
const SAMPLES: [(&str, &str); 5] = [
    (
        "crd",
        include_str!("../../../config/samples/interpreter-webhook/crd.yaml"),
    ),
    (
        "interpreter",
        include_str!("../../../config/samples/interpreter-webhook/interpreter.yaml"),
    ),
    (
        "configmap",
        include_str!("../../../config/samples/interpreter-webhook/configmap.yaml"),
    ),
    (
        "workload",
        include_str!("../../../config/samples/interpreter-webhook/workload.yaml"),
    ),
    (
        "policy",
        include_str!("../../../config/samples/interpreter-webhook/policy.yaml"),
    ),
];

fn sample(name: &str) -> Result<Value> {
    let found = SAMPLES.iter().find(|(each, _)| *each == name);
    let (_, text) = found.with_context(|| format!("no sample {name}"))?;
    serde_saphyr::from_str(text).with_context(|| format!("config/samples/interpreter-webhook/{name}.yaml"))
}

/// The sample's configuration as this test's own, for a hook that is called like this.
fn configuration(scene: &Scene, client: Value) -> Result<Value> {
    let mut configuration = sample("interpreter")?;
    configuration["metadata"]["name"] = json!(scene.own("workloads"));
    configuration["webhooks"][0]["clientConfig"] = client;
    Ok(configuration)
}

/// The interpreter without a response, as conditions name it.
fn layer(scene: &Scene, contract: &str, webhook: &str) -> String {
    format!("{contract} \"{}/{webhook}\"", scene.own("workloads"))
}

fn hook(scene: &Scene, names: &[&str]) -> Result<Hook> {
    Hook::new(Path::new(PROGRAM), scene.bed.dir(), names)
}

/// The sample's Workload, which mounts this ConfigMap and a Secret.
fn workload(replicas: u32, mounts: &str) -> Result<Value> {
    let mut workload = sample("workload")?;
    workload["spec"]["replicas"] = json!(replicas);
    workload["spec"]["template"]["spec"]["volumes"] = json!([
        {"name": "settings", "configMap": {"name": mounts}},
        {"name": "key", "secret": {"secretName": "batch-key"}},
    ]);
    Ok(workload)
}

/// Makes the kind known to the hub and all members, and waits until it is.
async fn define(scene: &Scene) -> Result<()> {
    let definition = sample("crd")?;
    for server in std::iter::once(&scene.hub).chain(&scene.members) {
        server.apply(&definition).await?;
        eventually(&format!("{} serves Workloads", server.name), async || {
            server.list("Workload", &scene.ns, "").await
        })
        .await?;
    }
    Ok(())
}

/// Undoes [`define`], when no Workload is left.
async fn forget(scene: &Scene) -> Result<()> {
    scene.delete("Workload", "batch").await?;
    scene.until_gone("ResourceBinding", "batch-workload").await?;
    scene.until_held("Workload", "batch", &[]).await?;
    for server in std::iter::once(&scene.hub).chain(&scene.members) {
        server.delete("CustomResourceDefinition", "", DEFINITION).await?;
        eventually(&format!("{} forgets Workloads", server.name), async || {
            let left = server.get("CustomResourceDefinition", "", DEFINITION).await?;
            ensure!(
                left.is_none(),
                "there with {}",
                left.unwrap_or_default()["metadata"]
            );
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// The sample, placed on member1 and member2, with controllers that run.
async fn place(scene: &mut Scene) -> Result<()> {
    if scene.controllers().is_err() {
        scene.start().await?;
    }
    scene.apply(sample("configmap")?).await?;
    scene.apply(manifests::secret("batch-key", "sesame")).await?;
    scene.apply(workload(3, "batch-settings")?).await?;
    scene.apply(sample("policy")?).await?;
    for (kind, name) in [
        ("Workload", "batch"),
        ("ConfigMap", "batch-settings"),
        ("Secret", "batch-key"),
    ] {
        scene.until_held(kind, name, &["member1", "member2"]).await?;
    }
    scene
        .until_condition("batch-workload", "FullyApplied", "True", "")
        .await?;
    Ok(())
}

/// The replicas of the copies on member1 and member2.
async fn sizes(scene: &Scene) -> Result<[i64; 2]> {
    let mut sizes = [0; 2];
    for (size, member) in sizes.iter_mut().zip(["member1", "member2"]) {
        let copy = scene.copy(member, "Workload", "batch").await?;
        *size = copy["spec"]["replicas"].as_i64().context("a number")?;
    }
    Ok(sizes)
}

/// Waits until the template and the copies of a binding have no interpret error, for as long as hooks may take.
pub(super) async fn until_observed(scene: &Scene, binding: &str) -> Result<()> {
    eventually_within(HEARD, &format!("nothing of {binding} is unheard"), async || {
        let binding = scene.binding(binding).await?;
        let reported = condition(&binding, "Interpreted");
        ensure!(reported.is_null(), "{reported}");
        Ok(())
    })
    .await
}

/// Like `until_held`, with the time that hooks may take.
pub(super) async fn until_held_again(scene: &Scene, kind: &str, name: &str, members: &[&str]) -> Result<()> {
    eventually_within(
        HEARD,
        &format!("exactly {members:?} hold {kind} {name}"),
        async || {
            let holders = scene.holders(kind, name).await?;
            ensure!(holders == members, "held by {holders:?}");
            Ok(())
        },
    )
    .await
}

async fn a_hook_tells_all_there_is_to_know_of_a_kind(scene: &mut Scene) -> Result<()> {
    define(scene).await?;
    let mut hook = hook(scene, &[])?;
    hook.start().await?;
    let configuration = configuration(scene, hook.client_config())?;
    scene.apply(configuration).await?;
    place(scene).await?;

    // Replicas, and the requirements of one: returned by the hook, divided, and set by it.
    let spec = scene.binding("batch-workload").await?["spec"].clone();
    ensure!(spec["replicas"] == 3, "{spec:#}");
    let requests = &spec["replicaRequirements"]["resourceRequest"];
    ensure!(requests["cpu"] == "100m", "{spec:#}");
    let divided = sizes(scene).await?;
    ensure!(divided == [2, 1] || divided == [1, 2], "{divided:?}");

    // Status and health: of each copy, and of all.
    for (member, ready) in [("member1", divided[0]), ("member2", divided[1] - 1)] {
        let report = |live: &mut Value| live["status"]["readyReplicas"] = json!(ready);
        scene
            .member(member)?
            .edit_status("Workload", &scene.ns, "batch", report)
            .await?;
    }
    let bound = scene.until_binding("batch-workload", |binding| {
        let items = binding["status"]["aggregatedStatus"].as_array();
        let found: Vec<Value> = items
            .into_iter()
            .flatten()
            .map(|item| {
                json!([
                    item["clusterName"],
                    item["status"]["readyReplicas"],
                    item["health"]
                ])
            })
            .collect();
        let wanted = [
            json!(["member1", divided[0], "Healthy"]),
            json!(["member2", divided[1] - 1, "Unhealthy"]),
        ];
        ensure!(found == wanted, "{found:?}");
        Ok(())
    });
    bound.await?;
    eventually("the template's status is the sum", async || {
        let status = scene.get("Workload", "batch").await?["status"].clone();
        ensure!(status["readyReplicas"] == 2, "{status}");
        Ok(())
    })
    .await?;

    // Fields that a member owns stay the member's.
    let pause = |live: &mut Value| live["spec"]["paused"] = json!(true);
    scene.edit_on("member1", "Workload", "batch", pause).await?;
    scene.apply(manifests::config_map("more", "one")).await?;
    scene.apply(workload(5, "more")?).await?;
    scene
        .until_held("ConfigMap", "more", &["member1", "member2"])
        .await?;
    scene.until_held("ConfigMap", "batch-settings", &[]).await?;
    eventually("five replicas are divided, and one member pauses", async || {
        let sizes = sizes(scene).await?;
        ensure!(sizes.iter().sum::<i64>() == 5, "{sizes:?}");
        let mut paused = Vec::new();
        for member in ["member1", "member2"] {
            paused.push(scene.copy(member, "Workload", "batch").await?["spec"]["paused"].clone());
        }
        ensure!(paused == [true, false], "{paused:?}");
        Ok(())
    })
    .await?;

    scene.quiet().await?;
    scene.restart().await?;
    let wrote = scene.quiet().await?;
    ensure!(wrote == 0, "a restart writes: {:#?}", scene.writes());
    let metrics = scene.controllers()?.metrics().await?;
    let questions = metrics
        .lines()
        .filter(|line| line.starts_with("entourage_hook_questions_total"));
    ensure!(
        questions.clone().any(|line| line.contains("InterpretDependency")),
        "{:#?}",
        questions.collect::<Vec<_>>()
    );

    // Without the hook the kind has no interpretation: dependencies that only the hook found are removed, the objects
    // themselves stay.
    scene
        .delete("ResourceInterpreterWebhookConfiguration", &scene.own("workloads"))
        .await?;
    scene.until_held("ConfigMap", "more", &[]).await?;
    scene.until_held("Secret", "batch-key", &[]).await?;
    scene
        .until_held("Workload", "batch", &["member1", "member2"])
        .await?;
    forget(scene).await
}

/// Succeeds if the members keep all copies unchanged while the hook does not respond.
async fn nothing_is_lost(scene: &Scene, divided: [i64; 2]) -> Result<()> {
    for (kind, name) in [
        ("Workload", "batch"),
        ("ConfigMap", "batch-settings"),
        ("Secret", "batch-key"),
    ] {
        let holders = scene.holders(kind, name).await?;
        ensure!(holders == ["member1", "member2"], "{kind} {name}: {holders:?}");
    }
    let sizes = sizes(scene).await?;
    ensure!(sizes == divided, "{sizes:?}");
    let more = scene.holders("ConfigMap", "more").await?;
    ensure!(more.is_empty(), "nobody reported that it is needed: {more:?}");
    Ok(())
}

async fn a_hook_that_is_killed_takes_nothing_away_and_holds_up_nobody_else(scene: &mut Scene) -> Result<()> {
    define(scene).await?;
    let mut hook = hook(scene, &[])?;
    hook.start().await?;
    scene.apply(configuration(scene, hook.client_config())?).await?;
    place(scene).await?;
    let divided = sizes(scene).await?;
    scene.apply(manifests::config_map("more", "one")).await?;
    let layer = layer(
        scene,
        "ResourceInterpreterWebhookConfiguration",
        "workloads.example.com",
    );
    // The other operations depend on what members report meanwhile.
    let unresponsive = format!("failed: cannot connect to 127.0.0.1:{}", hook.port());

    hook.kill()?;
    scene.apply(workload(5, "more")?).await?;
    let reported = scene
        .until_condition("batch-workload", "Interpreted", "False", &unresponsive)
        .await?;
    ensure!(reported["reason"] == "NoAnswer", "{reported}");
    let message = reported["message"].as_str().unwrap_or_default();
    ensure!(
        message.starts_with(&layer) && message.contains("InterpretDependency"),
        "{message}"
    );
    nothing_is_lost(scene, divided).await?;

    // Objects without a hook are created, changed and deleted meanwhile.
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await?;
    let began = Instant::now();
    let mut object = manifests::config_map("my-config", "two");
    object["metadata"]["labels"] = json!({"round": "two"});
    scene.apply(object).await?;
    for member in ["member1", "member2"] {
        let is_new = |copy: &Value| {
            ensure!(
                copy["metadata"]["labels"]["round"] == "two",
                "{}",
                copy["metadata"]
            );
            Ok(())
        };
        scene.until_copy(member, "ConfigMap", "my-config", is_new).await?;
    }
    ensure!(
        began.elapsed() < PROMPT,
        "an unresponsive hook held up other kinds for {:?}",
        began.elapsed()
    );

    // Controllers that never called the hook have its last response.
    scene.restart().await?;
    scene
        .until_condition("batch-workload", "Interpreted", "False", &unresponsive)
        .await?;
    scene.quiet().await?;
    nothing_is_lost(scene, divided).await?;

    hook.start().await?;
    until_held_again(scene, "ConfigMap", "more", &["member1", "member2"]).await?;
    until_held_again(scene, "ConfigMap", "batch-settings", &[]).await?;
    until_observed(scene, "batch-workload").await?;
    eventually_within(HEARD, "five replicas are divided", async || {
        let sizes = sizes(scene).await?;
        ensure!(sizes.iter().sum::<i64>() == 5, "{sizes:?}");
        Ok(())
    })
    .await?;
    forget(scene).await
}

/// A Deployment that mounts my-config, and whose container reads these ConfigMaps: the hook knows of volumes only.
fn reads(names: &[&str]) -> Value {
    let mut deployment = manifests::deployment("myapp", &["my-config"]);
    let from = names.iter().map(|name| json!({"configMapRef": {"name": name}}));
    deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"] = from.collect();
    deployment
}

async fn a_hook_that_may_be_ignored_leaves_a_known_kind_to_what_is_known_of_it(
    scene: &mut Scene,
) -> Result<()> {
    let both = ["member1", "member2"];
    let mut hook = hook(scene, &[])?;
    scene
        .apply(json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceExploringWebhookConfiguration",
            "metadata": {"name": scene.own("workloads")},
            "webhooks": [{
                "name": "deployments.example.com",
                "rules": [{
                    "operations": ["ExploreDependencies"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                    "resources": ["deployments"],
                }],
                "clientConfig": hook.client_config(), "failurePolicy": "Ignore",
                "exploreReviewVersions": ["v1alpha1"], "timeoutSeconds": 1,
            }],
        }))
        .await?;
    let unresponsive = layer(
        scene,
        "ResourceExploringWebhookConfiguration",
        "deployments.example.com",
    );
    scene.start().await?;
    for name in ["my-config", "read", "more"] {
        scene.apply(manifests::config_map(name, "one")).await?;
    }
    scene.apply(reads(&["read"])).await?;
    scene.apply(manifests::policy(&both)).await?;
    // The hook does not run yet: what we know ourselves answers, from the first placement on.
    scene.until_held("Deployment", "myapp", &both).await?;
    scene.until_held("ConfigMap", "my-config", &both).await?;
    scene.until_held("ConfigMap", "read", &both).await?;
    scene
        .until_condition("myapp-deployment", "Interpreted", "False", &unresponsive)
        .await?;

    hook.start().await?;
    until_held_again(scene, "ConfigMap", "read", &[]).await?;
    until_observed(scene, "myapp-deployment").await?;
    scene.until_held("ConfigMap", "my-config", &both).await?;

    hook.kill()?;
    scene.apply(reads(&["read", "more"])).await?;
    for name in ["more", "read", "my-config"] {
        scene.until_held("ConfigMap", name, &both).await?;
    }
    scene
        .until_condition("myapp-deployment", "Interpreted", "False", &unresponsive)
        .await?;

    hook.start().await?;
    for name in ["more", "read"] {
        until_held_again(scene, "ConfigMap", name, &[]).await?;
    }
    until_observed(scene, "myapp-deployment").await?;
    scene.until_held("ConfigMap", "my-config", &both).await
}

/// The rights for a custom kind on the hub, in addition to those of `config/rbac`.
fn own_kind() -> [Value; 2] {
    [
        json!({
            "apiGroups": ["workload.example.io"], "resources": ["workloads"], "verbs": ["get", "list", "patch", "watch"],
        }),
        json!({
            "apiGroups": ["workload.example.io"], "resources": ["workloads/finalizers", "workloads/status"],
            "verbs": ["patch", "update"],
        }),
    ]
}

async fn the_account_of_the_controllers_may_all_that_hooks_take(scene: &mut Scene) -> Result<()> {
    // The rights for distributions are granted apart.
    scene.options.distribute = false;
    define(scene).await?;
    let host = format!("hook.{}.svc", scene.ns);
    let mut hook = hook(scene, &[&host])?;
    hook.start().await?;
    // A hook behind a Service takes the right to look that up.
    let service = format!("/api/v1/namespaces/{}/services", scene.ns);
    let object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    scene.hub.call("POST", &service, Some(&object)).await?;
    let client = json!({
        "service": {"namespace": scene.ns, "name": "hook", "port": hook.port(), "path": "/interpret"},
        "caBundle": hook.bundle(),
    });
    scene.apply(configuration(scene, client)?).await?;
    let (mut rules, namespaced) = roles(include_str!("../../../config/rbac/role.yaml"))?;
    rules.extend(roles(include_str!("../../../config/rbac-kinds/secrets/role.yaml"))?.0);
    rules.extend(own_kind());
    let made = granted(scene, &rules, namespaced).await?;
    let tested = async {
        place(scene).await?;
        let sizes = sizes(scene).await?;
        ensure!(sizes.iter().sum::<i64>() == 3, "{sizes:?}");
        for (member, ready) in [("member1", sizes[0]), ("member2", sizes[1])] {
            let report = |live: &mut Value| live["status"]["readyReplicas"] = json!(ready);
            scene
                .member(member)?
                .edit_status("Workload", &scene.ns, "batch", report)
                .await?;
        }
        eventually("the template's status is the sum", async || {
            let status = scene.get("Workload", "batch").await?["status"].clone();
            ensure!(status["readyReplicas"] == 3, "{status}");
            Ok(())
        })
        .await?;
        let refused = scene.bed.log.with("cannot list");
        ensure!(refused.is_empty(), "{refused:#?}");
        forget(scene).await
    };
    let tested = tested.await;
    unlimit(scene, &made).await?;
    if scene.controllers().is_ok() {
        scene.stop().await?;
    }
    match scene.hub.call("DELETE", &format!("{service}/hook"), None).await {
        Err(error) if status_code(&error) == 404 => {}
        result => drop(result?),
    }
    tested
}
