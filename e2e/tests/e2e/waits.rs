//! `kubectl wait` after an edit: it ends when a condition carries the generation of the edit.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, manifests},
    kubectl::Client,
    tests,
};
use serde_json::{Value, json};
use tokio::{process::Command, time::timeout};

tests![kubectl_wait_ends_after_an_edit_of_each_kind];

/// The deadline, longer than that of kubectl itself.
const LONGEST: Duration = Duration::from_secs(60);

/// An edit that changes no condition: only its observedGeneration must be reported.
async fn kubectl_wait_ends_after_an_edit_of_each_kind(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    let mut wide = manifests::policy_for(&scene.own("wide"), "ConfigMap", "", &["member1"]);
    wide["kind"] = json!("ClusterPropagationPolicy");
    wide["spec"]["resourceSelectors"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": scene.ns, "name": "other"}]);
    let wide = scene.apply(wide).await?;
    let wide = wide["metadata"]["name"].as_str().context("a name")?.to_owned();
    scene.apply(manifests::config_map("other", "one")).await?;
    let [policy, cluster_policy] = ["PropagationPolicy", "ClusterPropagationPolicy"];
    let ns = scene.ns.clone();
    let kinds = [
        (
            policy,
            &*ns,
            "myapp-propagation",
            "Matched",
            "/spec/priority",
            json!(3),
        ),
        (cluster_policy, "", &*wide, "Matched", "/spec/priority", json!(3)),
        ("Cluster", "", "member1", "Ready", "/spec/region", json!("north")),
        // Only the control plane edits bindings; this edit is its own.
        (
            "Deployment",
            &*ns,
            "myapp",
            "FullyApplied",
            "/spec/paused",
            json!(true),
        ),
    ];
    for (kind, namespace, name, type_, path, value) in kinds {
        reported(scene, kind, namespace, name, type_).await?;
        let before = scene.hub.get(kind, namespace, name).await?.context("it")?;
        let before = before.pointer(path).cloned().unwrap_or_default();
        let set = |value: &Value| {
            let (at, field) = path.rsplit_once('/').unwrap_or_default();
            let (at, field, value) = (at.to_owned(), field.to_owned(), value.clone());
            move |live: &mut Value| {
                let Some(spec) = live.pointer_mut(&at).and_then(Value::as_object_mut) else {
                    return;
                };
                match &value {
                    Value::Null => drop(spec.remove(&field)),
                    value => drop(spec.insert(field.clone(), value.clone())),
                }
            }
        };
        scene.hub.edit(kind, namespace, name, set(&value)).await?;
        reported(scene, kind, namespace, name, type_).await?;
        scene.hub.edit(kind, namespace, name, set(&before)).await?;
        reported(scene, kind, namespace, name, type_).await?;
    }
    Ok(())
}

/// Waits as kubectl does, and by kubectl itself where there is one.
async fn reported(scene: &Scene, kind: &str, namespace: &str, name: &str, type_: &str) -> Result<()> {
    let (kind, name) = match kind {
        "Deployment" => ("ResourceBinding", "myapp-deployment"),
        _ => (kind, name),
    };
    if kind == "ResourceBinding" {
        // Its generation is that of the edit once the edit was seen.
        eventually("the binding is of the template as it is", async || {
            let template = scene.get("Deployment", "myapp").await?;
            let binding = scene.binding(name).await?;
            let copies = binding["status"]["aggregatedStatus"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let wanted = format!(".g{}.", template["metadata"]["generation"]);
            let is_of_it = |copy: &Value| {
                copy["copy"]["source"]
                    .as_str()
                    .is_some_and(|it| it.contains(&wanted))
            };
            ensure!(!copies.is_empty() && copies.iter().all(is_of_it), "{copies:?}");
            Ok(())
        })
        .await?;
    }
    if let Ok(client) = Client::find()? {
        let mut command = Command::new(&client.path);
        command
            .arg("--kubeconfig")
            .arg(scene.bed.fleet.hub.kubeconfig_path());
        command.args(["wait", &format!("--for=condition={type_}"), "--timeout=30s"]);
        command.arg(format!("{}/{name}", kind.to_lowercase()));
        if !namespace.is_empty() {
            command.args(["-n", namespace]);
        }
        let run = timeout(LONGEST, command.kill_on_drop(true).output()).await??;
        let words = String::from_utf8_lossy(&run.stderr).into_owned();
        ensure!(
            run.status.success(),
            "kubectl wait for {type_} of {kind} {name}: {words}"
        );
    }
    let what = format!("{type_} of {kind} {name} is of the generation");
    eventually(&what, async || {
        let object = scene.hub.get(kind, namespace, name).await?.context("it")?;
        let reported = condition(&object, type_);
        ensure!(reported["status"] == "True", "{reported}");
        ensure!(
            reported["observedGeneration"] == object["metadata"]["generation"],
            "{reported}"
        );
        Ok(())
    })
    .await
}
