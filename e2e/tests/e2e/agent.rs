//! `entourage agent` against a hub whose Works are made by hand, as Karmada's makes them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_api::names;
use entourage_controllers::agent::Options;
use entourage_e2e::harness::{Agent, Canary, Scene, Server, Test, eventually, manifests, status_code};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// The tests of this module.
pub(crate) fn tests() -> Vec<Test> {
    macro_rules! all {
        ($($name:ident),* $(,)?) => {
            vec![$(Test::new(
                concat!(module_path!(), "::", stringify!($name)),
                |scene| Box::pin($name(scene)),
            )
            .plain()),*]
        };
    }
    all![
        a_work_is_applied_kept_and_removed,
        a_restart_writes_nothing,
        an_object_of_another_is_left_alone,
        a_suspended_work_waits_and_a_preserving_one_leaves_its_object,
        the_status_of_a_deployment_is_reported,
        the_cluster_is_ready_and_its_lease_is_renewed,
        an_outage_of_the_hub_is_survived,
        a_secret_is_seen_by_nobody_on_its_way,
        nothing_is_applied_in_push_mode_or_on_another_cluster,
    ]
}

pub(super) fn member(scene: &Scene) -> &Server {
    &scene.members[2]
}

/// The name of the cluster in Pull mode, and of the namespace of the objects: on the real lane servers are those of other tests, too.
/// Its API server is that of the third member.
pub(super) fn cluster(scene: &Scene) -> &str {
    &scene.ns
}

/// The namespace of its Works.
pub(super) fn works(scene: &Scene) -> String {
    names::execution_namespace(cluster(scene))
}

pub(super) fn lease(scene: &Scene) -> String {
    let all = "/apis/coordination.k8s.io/v1/namespaces/karmada-cluster/leases";
    format!("{all}/{}", cluster(scene))
}

fn options(scene: &Scene) -> Options {
    Options {
        lease_duration: Duration::from_secs(4),
        probe_interval: Duration::from_millis(500),
        ..Options::new(cluster(scene))
    }
}

fn start(scene: &Scene) -> Result<Agent> {
    start_as(scene, None)
}

/// Starts it as a user of the hub; `None` is admin.
pub(super) fn start_as(scene: &Scene, user: Option<&str>) -> Result<Agent> {
    let fleet = &scene.bed.fleet;
    let (mut hub, member) = (fleet.hub.config(), fleet.members[2].config());
    hub.auth_info.impersonate = user.map(str::to_owned);
    Agent::start(options(scene), hub, member, scene.bed.log.thread())
}

/// The objects of a hub with a registered cluster in Pull mode, and the Work of a namespace.
pub(super) async fn registered(scene: &mut Scene, mode: &str) -> Result<()> {
    // Deleted with the test.
    let works = scene.space_of(&works(scene)).ns;
    let object = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": cluster(scene)}, "spec": {"syncMode": mode}});
    scene.hub.create(&object).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": works}});
    scene.hub.create(&namespace).await?;
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.ns}});
    create(scene, "shop", shop).await
}

pub(super) async fn begin(scene: &mut Scene) -> Result<Agent> {
    registered(scene, "Pull").await?;
    let agent = start(scene)?;
    agent.ready().await?;
    applied(scene, "shop").await?;
    Ok(agent)
}

fn path(scene: &Scene, name: &str) -> String {
    let (works, slash) = (works(scene), if name.is_empty() { "" } else { "/" });
    format!("/apis/work.karmada.io/v1alpha1/namespaces/{works}/works{slash}{name}")
}

/// A Work as Karmada's hub makes it.
pub(super) async fn create(scene: &Scene, name: &str, mut manifest: Value) -> Result<()> {
    if manifest["kind"] != "Namespace" {
        manifest["metadata"]["namespace"] = json!(scene.ns);
    }
    let works = works(scene);
    manifest["metadata"]["labels"]["karmada.io/managed"] = json!("true");
    manifest["metadata"]["annotations"]["work.karmada.io/namespace"] = json!(works);
    manifest["metadata"]["annotations"]["work.karmada.io/name"] = json!(name);
    let work = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": name, "namespace": works, "finalizers": ["karmada.io/execution-controller"]},
        "spec": {"workload": {"manifests": [manifest]}}});
    scene.hub.call("POST", &path(scene, ""), Some(&work)).await?;
    Ok(())
}

async fn work(scene: &Scene, name: &str) -> Result<Value> {
    scene.hub.call("GET", &path(scene, name), None).await
}

/// The hub edits a Work, which may be written meanwhile.
pub(super) async fn edit(scene: &Scene, name: &str, change: impl Fn(&mut Value)) -> Result<()> {
    eventually("the Work is edited", async || {
        let mut held = work(scene, name).await?;
        change(&mut held);
        scene.hub.call("PUT", &path(scene, name), Some(&held)).await
    })
    .await?;
    Ok(())
}

pub(super) async fn delete(scene: &Scene, name: &str) -> Result<()> {
    scene.hub.call("DELETE", &path(scene, name), None).await?;
    eventually("the Work is gone", async || {
        let held = work(scene, name).await;
        ensure!(held.is_err(), "{}", held?["metadata"]);
        Ok(())
    })
    .await
}

fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|each| each["type"] == type_));
    found.unwrap_or(&Value::Null)
}

/// Waits until a condition of a Work has this status for its present generation.
pub(super) async fn until(scene: &Scene, name: &str, type_: &str, status: &str) -> Result<Value> {
    eventually(&format!("{type_} of Work {name} is {status}"), async || {
        let found = work(scene, name).await?;
        let condition = condition(&found, type_);
        let is_current = condition["observedGeneration"] == found["metadata"]["generation"];
        ensure!(condition["status"] == status && is_current, "{}", found["status"]);
        Ok(condition.clone())
    })
    .await
}

pub(super) async fn applied(scene: &Scene, name: &str) -> Result<()> {
    let condition = until(scene, name, "Applied", "True").await?;
    ensure!(condition["reason"] == "AppliedSuccessful", "{condition}");
    Ok(())
}

pub(super) fn config(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"k": value}})
}

/// Waits until the ConfigMap on the member has this value; `None`: until there is none.
pub(super) async fn has(scene: &Scene, value: Option<&str>) -> Result<()> {
    eventually("the object is as it should be", async || {
        let found = member(scene).get("ConfigMap", &scene.ns, "config").await?;
        let found = found
            .as_ref()
            .map(|found| found["data"]["k"].as_str().unwrap_or_default());
        ensure!(found == value, "{found:?}");
        Ok(())
    })
    .await
}

/// Waits until nothing was written for a while; returns the writes.
async fn quiet(agent: &Agent) -> Result<Vec<String>> {
    let mut before = agent.writes();
    loop {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let now = agent.writes();
        if now.len() == before.len() {
            return Ok(now);
        }
        before = now;
    }
}

/// The agent removes what is left, and stops; then its cluster leaves the hub.
pub(super) async fn end(scene: &Scene, agent: Agent) -> Result<()> {
    let left = scene.hub.call("GET", &path(scene, ""), None).await?;
    for work in left["items"].as_array().into_iter().flatten() {
        delete(scene, work["metadata"]["name"].as_str().unwrap_or_default()).await?;
    }
    agent.stop().await?;
    scene.hub.delete("Cluster", "", cluster(scene)).await?;
    // It may be gone with its owner.
    match scene.hub.call("DELETE", &lease(scene), None).await {
        Err(error) if status_code(&error) == 404 => {}
        result => drop(result?),
    }
    let panics = scene.bed.log.panics();
    ensure!(panics.is_empty(), "the agent panicked: {panics:#?}");
    Ok(())
}

async fn a_work_is_applied_kept_and_removed(scene: &mut Scene) -> Result<()> {
    // The ConfigMap's Work is there before that of its namespace.
    let agent = begin(scene).await?;
    create(scene, "config", config("1")).await?;
    applied(scene, "config").await?;
    has(scene, Some("1")).await?;
    let found = work(scene, "config").await?;
    ensure!(
        found["status"]["manifestStatuses"]
            == json!([{"identifier": {"ordinal": 0, "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                "namespace": &scene.ns, "name": "config"}, "health": "Healthy"}]),
        "{}",
        found["status"]
    );

    eventually("the Event is recorded", async || {
        let events = scene.hub.list("Event", &works(scene), "").await?;
        let mut of_it = events
            .iter()
            .filter(|event| event["involvedObject"]["uid"] == found["metadata"]["uid"]);
        ensure!(of_it.any(|event| event["reason"] == "SyncSucceed"), "{events:?}");
        Ok(())
    })
    .await?;

    // Drift is undone.
    let drift = |live: &mut Value| live["data"]["k"] = json!("drifted");
    member(scene)
        .edit("ConfigMap", &scene.ns, "config", drift)
        .await?;
    has(scene, Some("1")).await?;
    member(scene).delete("ConfigMap", &scene.ns, "config").await?;
    has(scene, Some("1")).await?;
    // What others set beside it stays.
    let label = |live: &mut Value| live["metadata"]["labels"]["others"] = json!("x");
    member(scene)
        .edit("ConfigMap", &scene.ns, "config", label)
        .await?;
    edit(scene, "config", |work| {
        work["spec"]["workload"]["manifests"][0]["data"]["k"] = json!("2")
    })
    .await?;
    has(scene, Some("2")).await?;
    applied(scene, "config").await?;
    let live = member(scene)
        .get("ConfigMap", &scene.ns, "config")
        .await?
        .context("it exists")?;
    ensure!(
        live["metadata"]["labels"]["others"] == "x",
        "{}",
        live["metadata"]
    );

    delete(scene, "config").await?;
    has(scene, None).await?;
    // A namespace is released: what others have in it stays.
    delete(scene, "shop").await?;
    let left = member(scene).get("Namespace", "", &scene.ns).await?;
    let left = left.context("the namespace stays")?;
    let labels = &left["metadata"]["labels"];
    ensure!(
        labels["karmada.io/managed"].is_null() && left["metadata"]["deletionTimestamp"].is_null(),
        "{left}"
    );
    end(scene, agent).await
}

async fn a_restart_writes_nothing(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    create(scene, "config", config("1")).await?;
    create(scene, "web", manifests::deployment("web", &["config"])).await?;
    applied(scene, "config").await?;
    applied(scene, "web").await?;
    quiet(&agent).await?;
    agent.stop().await?;
    let agent = start(scene)?;
    agent.ready().await?;
    let writes = quiet(&agent).await?;
    ensure!(writes.is_empty(), "{writes:#?}");
    // What is only awaited is no reason for a warning.
    for words in ["was not read yet", "are not listed on the hub yet"] {
        let warned = scene.bed.log.with(words);
        ensure!(warned.is_empty(), "{warned:#?}");
    }
    end(scene, agent).await
}

async fn an_object_of_another_is_left_alone(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    let mut theirs = config("theirs");
    theirs["metadata"]["namespace"] = json!(&scene.ns);
    member(scene).create(&theirs).await?;
    create(scene, "config", config("1")).await?;
    let condition = until(scene, "config", "Applied", "False").await?;
    let message = condition["message"].as_str().unwrap_or_default();
    ensure!(condition["reason"] == "AppliedFailed", "{condition}");
    for part in [
        "(0/1)",
        &*format!("already exists on {}", cluster(scene)),
        "delete it there",
        "conflictResolution Overwrite",
    ] {
        ensure!(message.contains(part), "{part}: {message}");
    }
    // A Work that is deleted does not delete it either.
    delete(scene, "config").await?;
    has(scene, Some("theirs")).await?;
    create(scene, "config", config("1")).await?;
    until(scene, "config", "Applied", "False").await?;
    let overwrite = "work.karmada.io/conflict-resolution";
    edit(scene, "config", |work| {
        work["spec"]["workload"]["manifests"][0]["metadata"]["annotations"][overwrite] = json!("overwrite");
    })
    .await?;
    applied(scene, "config").await?;
    has(scene, Some("1")).await?;
    end(scene, agent).await
}

async fn a_suspended_work_waits_and_a_preserving_one_leaves_its_object(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    create(scene, "config", config("1")).await?;
    applied(scene, "config").await?;
    edit(scene, "config", |work| {
        work["spec"]["suspendDispatching"] = json!(true);
        work["spec"]["workload"]["manifests"][0]["data"]["k"] = json!("2");
    })
    .await?;
    let condition = until(scene, "config", "Dispatching", "False").await?;
    ensure!(condition["reason"] == "SuspendDispatching", "{condition}");
    quiet(&agent).await?;
    has(scene, Some("1")).await?;
    edit(scene, "config", |work| {
        work["spec"]["suspendDispatching"] = json!(false);
        work["spec"]["preserveResourcesOnDeletion"] = json!(true);
    })
    .await?;
    applied(scene, "config").await?;
    has(scene, Some("2")).await?;

    delete(scene, "config").await?;
    has(scene, Some("2")).await?;
    let live = member(scene)
        .get("ConfigMap", &scene.ns, "config")
        .await?
        .context("it is kept")?;
    let meta = live["metadata"].to_string();
    ensure!(!meta.contains("karmada.io"), "{meta}");
    end(scene, agent).await
}

async fn the_status_of_a_deployment_is_reported(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    create(scene, "web", manifests::deployment("web", &[])).await?;
    applied(scene, "web").await?;
    let replicas = |live: &mut Value| {
        let generation = live["metadata"]["generation"].clone();
        live["status"] = json!({"observedGeneration": generation, "replicas": 2, "updatedReplicas": 2,
            "readyReplicas": 2, "availableReplicas": 2});
    };
    member(scene)
        .edit_status("Deployment", &scene.ns, "web", replicas)
        .await?;
    eventually("the status is reported", async || {
        let found = work(scene, "web").await?;
        let reported = &found["status"]["manifestStatuses"][0];
        ensure!(reported["identifier"]["resource"] == "deployments", "{reported}");
        ensure!(reported["status"]["readyReplicas"] == 2, "{reported}");
        ensure!(reported["health"].is_string(), "{reported}");
        Ok(())
    })
    .await?;
    end(scene, agent).await
}

async fn the_cluster_is_ready_and_its_lease_is_renewed(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    eventually("the Cluster is ready", async || {
        let cluster = scene
            .hub
            .get("Cluster", "", cluster(scene))
            .await?
            .context("it exists")?;
        ensure!(
            condition(&cluster, "Ready")["status"] == "True",
            "{}",
            cluster["status"]
        );
        ensure!(
            condition(&cluster, "CompleteAPIEnablements")["status"] == "True",
            "{}",
            cluster["status"]
        );
        let version = cluster["status"]["kubernetesVersion"]
            .as_str()
            .unwrap_or_default();
        ensure!(version.starts_with('v'), "{version}");
        let served = cluster["status"]["apiEnablements"].to_string();
        ensure!(served.contains("\"apps/v1\""), "{served}");
        ensure!(
            cluster["status"]["nodeSummary"].is_object(),
            "{}",
            cluster["status"]
        );
        ensure!(
            cluster["status"]["resourceSummary"].is_object(),
            "{}",
            cluster["status"]
        );
        Ok(())
    })
    .await?;
    let path = lease(scene);
    let renewed = async || -> Result<String> {
        let lease = scene.hub.call("GET", &path, None).await?;
        ensure!(lease["spec"]["holderIdentity"] == cluster(scene), "{lease}");
        ensure!(lease["spec"]["leaseDurationSeconds"] == 4, "{lease}");
        let owner = &lease["metadata"]["ownerReferences"][0];
        ensure!(
            owner["kind"] == "Cluster" && owner["name"] == cluster(scene),
            "{lease}"
        );
        Ok(lease["spec"]["renewTime"]
            .as_str()
            .context("renewTime")?
            .to_owned())
    };
    let first = eventually("there is a Lease", renewed).await?;
    eventually("it is renewed", async || {
        let now = renewed().await?;
        ensure!(now > first, "{now}");
        Ok(())
    })
    .await?;

    // A hub that gave the cluster up is reported that it is there.
    let gone = |live: &mut Value| {
        for each in live["status"]["conditions"].as_array_mut().into_iter().flatten() {
            if each["type"] == "Ready" {
                each["status"] = json!("Unknown");
            }
        }
    };
    scene.hub.edit_status("Cluster", "", cluster(scene), gone).await?;
    scene.until_cluster(cluster(scene), "True", "").await?;
    end(scene, agent).await
}

async fn an_outage_of_the_hub_is_survived(scene: &mut Scene) -> Result<()> {
    let agent = begin(scene).await?;
    create(scene, "config", config("1")).await?;
    applied(scene, "config").await?;
    let hub = &scene.bed.fleet.hub;
    hub.stop_apiserver();
    let drift = |live: &mut Value| live["data"]["k"] = json!("drifted");
    member(scene)
        .edit("ConfigMap", &scene.ns, "config", drift)
        .await?;
    hub.start_apiserver().await?;
    has(scene, Some("1")).await?;
    edit(scene, "config", |work| {
        work["spec"]["workload"]["manifests"][0]["data"]["k"] = json!("2")
    })
    .await?;
    has(scene, Some("2")).await?;
    applied(scene, "config").await?;
    end(scene, agent).await
}

async fn a_secret_is_seen_by_nobody_on_its_way(scene: &mut Scene) -> Result<()> {
    scene.bed.log.everything();
    let canary = Canary::new("agent");
    let agent = begin(scene).await?;
    // As Karmada's hub has read it.
    let data = json!({"key": ByteString(canary.value.as_bytes().to_vec())});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "type": "Opaque", "data": data});
    create(scene, "keys", secret).await?;
    applied(scene, "keys").await?;
    let live = member(scene)
        .get("Secret", &scene.ns, "keys")
        .await?
        .context("it exists")?;
    ensure!(live["data"] == data, "it is another");
    canary.assert_only_in_data(&live)?;
    // Drift, and a server that refuses the Secret and may quote it.
    let drift = |live: &mut Value| live["data"] = json!({});
    member(scene).edit("Secret", &scene.ns, "keys", drift).await?;
    eventually("it is put back", async || {
        let live = member(scene)
            .get("Secret", &scene.ns, "keys")
            .await?
            .context("it exists")?;
        ensure!(live["data"] == data, "it is not");
        Ok(())
    })
    .await?;
    edit(scene, "keys", |work| {
        work["spec"]["workload"]["manifests"][0]["type"] = json!("kubernetes.io/tls");
    })
    .await?;
    until(scene, "keys", "Applied", "False").await?;
    let mut found = work(scene, "keys").await?;
    found["spec"] = json!(null);
    ensure!(
        !canary.is_in(&found.to_string()),
        "the status of the Work holds the canary"
    );
    ensure!(
        !canary.is_in(&agent.metrics().await?),
        "the metrics hold the canary"
    );
    canary.assert_not_logged(&scene.bed.log)?;
    delete(scene, "keys").await?;
    canary.assert_not_logged(&scene.bed.log)?;
    end(scene, agent).await
}

async fn nothing_is_applied_in_push_mode_or_on_another_cluster(scene: &mut Scene) -> Result<()> {
    registered(scene, "Push").await?;
    let agent = start(scene)?;
    agent.ready().await?;
    eventually("it says so", async || {
        ensure!(
            !scene.bed.log.with("is in Push mode").is_empty(),
            "{}",
            scene.bed.log.tail(20)
        );
        Ok(())
    })
    .await?;
    let pull = |live: &mut Value| {
        live["spec"]["syncMode"] = json!("Pull");
        live["spec"]["id"] = json!("another");
    };
    scene.hub.edit("Cluster", "", cluster(scene), pull).await?;
    eventually("it says so", async || {
        ensure!(
            !scene.bed.log.with("runs against another cluster").is_empty(),
            "{}",
            scene.bed.log.tail(20)
        );
        Ok(())
    })
    .await?;
    let writes = quiet(&agent).await?;
    ensure!(writes.is_empty(), "{writes:#?}");
    scene
        .hub
        .edit("Cluster", "", cluster(scene), |live| {
            live["spec"].as_object_mut().map(|spec| spec.remove("id"));
        })
        .await?;
    applied(scene, "shop").await?;
    end(scene, agent).await
}
