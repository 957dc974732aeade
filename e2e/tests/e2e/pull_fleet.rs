//! A fleet of 200 members, half of them in Pull mode: the time in which a workload and what it needs is on all of them. The tests play
//! the agents.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Lane, Scene, Server, Test, condition, eventually_within, manifests, status_code},
    servers::EmbeddedCluster,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::core::WatchEvent;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

/// The tests of this module. The servers end with it: nothing is cleaned up.
pub(crate) fn tests() -> Vec<Test> {
    let path = concat!(
        module_path!(),
        "::a_workload_with_its_dependencies_is_soon_on_two_hundred_members"
    );
    let test = Test::new(path, |scene| Box::pin(two_hundred_members(scene)));
    vec![test.only(&[Lane::Embedded]).plain()]
}

/// The number of members in Push mode; as many are in Pull mode.
const HALF: usize = 100;
/// Long on a machine that builds something else meanwhile. The time itself is printed.
const PATIENCE: Duration = Duration::from_secs(120);
const WORKS: &str = "/apis/work.karmada.io/v1alpha1/works";

fn pulled(number: usize) -> String {
    format!("pull{number}")
}

/// Starts and joins members in Push mode, beside those of the scene.
async fn join(scene: &Scene) -> Result<Vec<EmbeddedCluster>> {
    let first = scene.members.len() + 1;
    let dir = scene.bed.dir().to_owned();
    let starts = (first..=HALF).map(|number| {
        let (name, bed) = (format!("member{number}"), scene.bed.clone());
        let dir = dir.join(&name);
        async move {
            let cluster = EmbeddedCluster::start(&name, &dir).await?;
            bed.join_by(&name, &dir.join("kubeconfig"), &[]).await?;
            Ok(cluster)
        }
    });
    let starts: Vec<_> = starts.collect();
    stream::iter(starts).buffer_unordered(8).try_collect().await
}

/// A Cluster in Pull mode whose agent has reported.
async fn register(hub: &Server, name: &str) -> Result<()> {
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"syncMode": "Pull", "id": format!("id-{name}")}});
    hub.create(&cluster).await?;
    let core = json!([{"name": "configmaps", "kind": "ConfigMap"}, {"name": "namespaces", "kind": "Namespace"},
        {"name": "secrets", "kind": "Secret"}]);
    let apps = json!([{"name": "deployments", "kind": "Deployment"}]);
    let status = json!({
        "kubernetesVersion": "v1.33.0",
        "apiEnablements": [{"groupVersion": "v1", "resources": core}, {"groupVersion": "apps/v1", "resources": apps}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "it is",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    });
    let set = |live: &mut Value| live["status"] = status.clone();
    hub.edit_status("Cluster", "", name, set).await?;
    Ok(())
}

/// Plays all agents: reports each Work as applied as soon as it exists.
async fn play_agents(hub: Server) -> Result<()> {
    let request = http::Request::get(format!("{WORKS}?watch=true")).body(Vec::new())?;
    let events = hub.client.request_events::<Value>(request).await?;
    let hub = &hub;
    events
        .map(|event| event.map_err(anyhow::Error::from))
        .try_for_each_concurrent(16, |event| async move {
            let (WatchEvent::Added(work) | WatchEvent::Modified(work)) = event else {
                return Ok(());
            };
            match report(hub, work).await {
                // Changed or gone meanwhile: there is another event.
                Err(error) if matches!(status_code(&error), 404 | 409) => Ok(()),
                result => result,
            }
        })
        .await
}

async fn report(hub: &Server, mut work: Value) -> Result<()> {
    if condition(&work, "Applied")["status"] == "True" || work["metadata"]["deletionTimestamp"].is_string() {
        return Ok(());
    }
    let manifest = &work["spec"]["workload"]["manifests"][0];
    let identifier = json!({"ordinal": 0, "version": "v1", "kind": manifest["kind"], "resource": "any",
        "name": manifest["metadata"]["name"]});
    work["status"] = json!({
        "conditions": [{"type": "Applied", "status": "True", "reason": "AppliedSuccessful", "message": "it is",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "manifestStatuses": [{"identifier": identifier, "health": "Healthy"}],
    });
    let (namespace, name) = (&work["metadata"]["namespace"], &work["metadata"]["name"]);
    let (namespace, name) = (
        namespace.as_str().context("its namespace")?,
        name.as_str().context("its name")?,
    );
    let path = format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works/{name}/status");
    hub.call("PUT", &path, Some(&work)).await?;
    Ok(())
}

/// The number of Clusters that are ready.
async fn ready(hub: &Server) -> Result<usize> {
    let clusters = hub.list("Cluster", "", "").await?;
    let ready = clusters
        .iter()
        .filter(|each| condition(each, "Ready")["status"] == "True");
    Ok(ready.count())
}

async fn two_hundred_members(scene: &mut Scene) -> Result<()> {
    // The agents make no Leases.
    scene.options.cluster_startup_grace = Duration::from_secs(3_600);
    let joined = join(scene).await?;
    let names: Vec<String> = (1..=HALF).map(pulled).collect();
    let registered = names.iter().map(|name| register(&scene.hub, name));
    let registered: Vec<_> = registered.collect();
    stream::iter(registered)
        .buffer_unordered(8)
        .try_collect::<()>()
        .await?;
    let agents = AbortOnDropHandle::new(tokio::spawn(play_agents(scene.hub.clone())));
    scene.start().await?;
    eventually_within(PATIENCE, "all members are ready", async || {
        let ready = ready(&scene.hub).await?;
        ensure!(ready == 2 * HALF, "{ready} are");
        Ok(())
    })
    .await?;
    scene.quiet().await?;

    let push = (1..=HALF).map(|number| format!("member{number}"));
    let all: Vec<String> = push.chain(names).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut deployment = manifests::deployment("myapp", &["one", "two"]);
    deployment["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"secretRef": {"name": "login"}}]);
    for object in [
        manifests::config_map("one", "1"),
        manifests::config_map("two", "2"),
        manifests::secret("login", "canary"),
        deployment,
    ] {
        scene.apply(object).await?;
    }
    let began = Instant::now();
    scene.apply(manifests::policy(&all)).await?;
    eventually_within(PATIENCE, "it is applied on all members", async || {
        let binding = scene.binding("myapp-deployment").await?;
        for type_ in ["FullyApplied", "DependenciesReady"] {
            let reported = condition(&binding, type_);
            ensure!(reported["status"] == "True", "{type_}: {}", reported["message"]);
        }
        Ok(())
    })
    .await?;
    println!(
        "a Deployment, two ConfigMaps and a Secret are on {} members, half of them in Pull mode, after {:.2} s",
        2 * HALF,
        began.elapsed().as_secs_f32()
    );

    // What the conditions say is so.
    let works = scene.hub.call("GET", WORKS, None).await?;
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for work in works["items"].as_array().into_iter().flatten() {
        let manifest = &work["spec"]["workload"]["manifests"][0];
        let is_ours = manifest["metadata"]["namespace"] == scene.ns;
        if let Some(kind) = manifest["kind"].as_str().filter(|_| is_ours) {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    ensure!(
        kinds == BTreeMap::from([("ConfigMap", 2 * HALF), ("Deployment", HALF), ("Secret", HALF)]),
        "{kinds:?}"
    );
    for cluster in &joined {
        let server = Server {
            name: String::new(),
            client: kube::Client::try_from(cluster.config())?,
        };
        for (kind, name) in [
            ("Deployment", "myapp"),
            ("ConfigMap", "one"),
            ("ConfigMap", "two"),
            ("Secret", "login"),
        ] {
            ensure!(
                server.get(kind, &scene.ns, name).await?.is_some(),
                "{kind} {name}"
            );
        }
    }
    ensure!(!agents.is_finished(), "the agents ended");
    scene.kill();
    Ok(())
}
