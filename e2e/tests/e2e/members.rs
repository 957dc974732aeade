//! Members that are away, hang or refuse us.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, eventually, eventually_within, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_cluster_gets_only_its_own_credentials,
    a_member_that_was_down_catches_up,
    a_workload_deleted_while_a_member_is_down_goes_when_it_is_back,
    members_in_trouble_are_reported_and_delay_nobody,
    what_a_dead_member_did_not_get_is_not_reported_as_applied,
];

/// The time by which a delivery to a healthy member may take longer while others are in trouble than before: shorter than the
/// deadline of whoever waits for those.
const PROMPT: Duration = Duration::from_secs(8);

/// The longest time until members are found ready again: a probe, and its deadline.
const BACK: Duration = Duration::from_secs(40);

async fn a_member_that_was_down_catches_up(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.bed.cluster("member1")?.stop_apiserver();
    scene.apply(manifests::config_map("my-config", "two")).await?;
    scene
        .until_copy("member2", "ConfigMap", "my-config", |copy| {
            ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
            Ok(())
        })
        .await?;
    scene.bed.cluster("member1")?.start_apiserver().await?;
    eventually_within(BACK, "member1 has the new data", async || {
        let copy = scene.copy("member1", "ConfigMap", "my-config").await?;
        ensure!(copy["data"] == json!({"key": "two"}), "{}", copy["data"]);
        Ok(())
    })
    .await?;
    scene.until_settled(&["member1", "member2"]).await
}

async fn a_workload_deleted_while_a_member_is_down_goes_when_it_is_back(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.bed.cluster("member1")?.stop_apiserver();
    scene.delete("Deployment", "myapp").await?;
    eventually("member2 holds nothing any more", async || {
        ensure!(
            scene.on("member2", "Deployment", "myapp").await?.is_none(),
            "the Deployment is there"
        );
        ensure!(
            scene.on("member2", "ConfigMap", "my-config").await?.is_none(),
            "the ConfigMap is there"
        );
        Ok(())
    })
    .await?;
    // The record of the place stays, also over a restart.
    scene.binding("myapp-deployment").await?;
    scene.restart().await?;
    scene.quiet().await?;
    scene.binding("myapp-deployment").await?;
    scene.bed.cluster("member1")?.start_apiserver().await?;
    eventually_within(BACK, "nothing is left", async || {
        ensure!(
            scene.on("member1", "Deployment", "myapp").await?.is_none(),
            "the Deployment is there"
        );
        ensure!(
            scene.on("member1", "ConfigMap", "my-config").await?.is_none(),
            "the ConfigMap is there"
        );
        Ok(())
    })
    .await?;
    scene.until_gone("ResourceBinding", "myapp-deployment").await?;
    scene.until_gone("ResourceBinding", "my-config-configmap").await
}

/// member2 hangs, member3 no longer takes our token. member1 is not affected, both are reported, and both are
/// served when they are back. One test for both: a member is given half a minute before it is called not ready.
async fn members_in_trouble_are_reported_and_delay_nobody(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    for member in ["member1", "member2", "member3"] {
        scene.until_cluster(member, "True", "").await?;
    }
    // The first opens watches. The second is what this machine takes, with all that it does besides.
    until_on_member1(scene, "first").await?;
    let usual = until_on_member1(scene, "second").await?;
    scene.bed.cluster("member2")?.pause()?;
    // The token ends: on the member it is the Secret that holds it which makes it valid.
    let member3 = scene.member("member3")?;
    for secret in member3.list("Secret", "karmada-cluster", "").await? {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        if name.starts_with("entourage") && secret["type"] == "kubernetes.io/service-account-token" {
            member3.delete("Secret", "karmada-cluster", name).await?;
        }
    }

    for round in 0..3 {
        prompt_on_member1(scene, &format!("app{round}"), usual).await?;
    }
    let hangs = scene
        .until_cluster("member2", "False", "does not respond")
        .await?;
    assert_eq!(hangs["reason"], "ClusterNotReachable");
    let refuses = scene.until_cluster("member3", "False", "token").await?;
    assert_eq!(refuses["reason"], "CredentialsRefused");
    for member in ["member2", "member3"] {
        eventually(&format!("one event about {member}"), async || {
            let mut events = scene.hub.list("Event", "default", "").await?;
            events.retain(|event| {
                event["involvedObject"]["name"] == member && event["reason"] == "ClusterNotReady"
            });
            let since = scene
                .hub
                .get("Namespace", "", &scene.ns)
                .await?
                .context("the namespace")?;
            let since = since["metadata"]["creationTimestamp"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            events.retain(|event| event["firstTimestamp"].as_str().unwrap_or_default() >= since.as_str());
            ensure!(events.len() == 1 && events[0]["count"] == 1, "{events:?}");
            Ok(())
        })
        .await?;
    }
    scene
        .until_condition("app0-deployment", "FullyApplied", "False", "member2")
        .await?;
    // New objects are not sent there, and the binding reports the reason.
    prompt_on_member1(scene, "app3", usual).await?;
    scene
        .until_condition(
            "app3-deployment",
            "Scheduled",
            "True",
            "cluster.karmada.io/not-ready",
        )
        .await?;

    scene.bed.cluster("member2")?.resume()?;
    // The remedy in the condition: a valid token, which joining again creates.
    scene.bed.join("member3", &[]).await?;
    scene.bed.remember().await?;
    for member in ["member2", "member3"] {
        scene.until_cluster(member, "True", "").await?;
    }
    for round in 0..4 {
        let name = format!("app{round}");
        eventually_within(BACK, &format!("{name} is everywhere"), async || {
            let holders = scene.holders("Deployment", &name).await?;
            ensure!(holders.len() == 3, "{holders:?}");
            Ok(())
        })
        .await?;
        scene
            .until_condition(&format!("{name}-deployment"), "FullyApplied", "True", "")
            .await?;
    }
    Ok(())
}

/// A user who may write Clusters but not read Secrets points a Cluster, or a new one, to an address of his own. Nothing is sent there.
async fn a_cluster_gets_only_its_own_credentials(scene: &mut Scene) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let elsewhere = format!("http://{}", listener.local_addr()?);
    scene.start().await?;
    scene.until_cluster("member3", "True", "").await?;
    let joined = scene.hub.get("Cluster", "", "member3").await?.context("joined")?;
    let mut spec = joined["spec"].clone();
    spec["apiEndpoint"] = json!(elsewhere);
    spec["insecureSkipTLSVerification"] = json!(true);
    specify(scene, &spec).await?;
    let reported = scene
        .until_cluster("member3", "False", "no token is sent")
        .await?;
    assert_eq!(reported["reason"], "CredentialsNotForAddress");
    let message = reported["message"].as_str().unwrap_or_default();
    for needed in [
        "spec.apiEndpoint",
        "karmada-cluster/member3",
        "entourage join member3",
    ] {
        ensure!(message.contains(needed), "{needed}: {message}");
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("id");
    }
    let thief = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "thief"}, "spec": spec,
    });
    scene.hub.apply(&thief).await?;
    let reported = scene
        .until_cluster("thief", "False", "credentials of Cluster member3")
        .await?;
    assert_eq!(reported["reason"], "CredentialsNotForCluster");
    // A proxy of his own is another way to the same token.
    let mut proxied = joined["spec"].clone();
    proxied["proxyURL"] = json!(elsewhere);
    specify(scene, &proxied).await?;
    scene
        .until_cluster("member3", "False", "spec.proxyURL of")
        .await?;
    scene.restart().await?;
    scene
        .until_cluster("member3", "False", "no token is sent")
        .await?;
    ensure!(
        listener.accept().is_err(),
        "somebody connected to an address that the Secret does not name"
    );

    // After the change is reverted, the member is used as before.
    specify(scene, &joined["spec"]).await?;
    scene.until_cluster("member3", "True", "").await?;
    Ok(())
}

/// Gives the Cluster member3 another spec.
async fn specify(scene: &Scene, spec: &Value) -> Result<()> {
    let change = |live: &mut Value| live["spec"] = spec.clone();
    scene.hub.edit("Cluster", "", "member3", change).await.map(drop)
}

/// A workload for all three members, which member1 has in moments.
async fn prompt_on_member1(scene: &Scene, name: &str, usual: Duration) -> Result<()> {
    let took = until_on_member1(scene, name).await?;
    ensure!(
        took < usual + PROMPT,
        "{name} took {took:?}, before it was {usual:?}"
    );
    Ok(())
}

/// Creates a workload with a dependency for all members. Returns how long it takes until member1 has it.
async fn until_on_member1(scene: &Scene, name: &str) -> Result<Duration> {
    scene.apply(manifests::config_map(name, "x")).await?;
    scene.apply(manifests::deployment(name, &[name])).await?;
    let mut policy = manifests::policy_for(name, "Deployment", name, &["member1", "member2", "member3"]);
    policy["spec"]["propagateDeps"] = json!(true);
    let begin = Instant::now();
    scene.apply(policy).await?;
    scene
        .until_copy("member1", "Deployment", name, |_| Ok(()))
        .await?;
    Ok(begin.elapsed())
}

/// `FullyApplied` is computed from what was recorded, also of a member that does not respond, by a process that never saw it
/// respond. So it is behind an endpoint where nothing is.
async fn what_a_dead_member_did_not_get_is_not_reported_as_applied(scene: &mut Scene) -> Result<()> {
    scene.example().await?;
    scene.bed.cluster("member2")?.stop_apiserver();
    scene.restart().await?;
    scale(scene, 2).await?;
    lacks_member2(scene).await?;
    scene.bed.cluster("member2")?.start_apiserver().await?;
    has_member2(scene).await?;
    let endpoint = |url: Value| {
        move |cluster: &mut Value| {
            cluster["spec"]["apiEndpoint"] = url.clone();
        }
    };
    let held = scene
        .hub
        .get("Cluster", "", "member2")
        .await?
        .context("member2")?;
    let edit = endpoint(json!("https://127.0.0.1:1"));
    scene.hub.edit("Cluster", "", "member2", edit).await?;
    scene.restart().await?;
    scale(scene, 3).await?;
    lacks_member2(scene).await?;
    let edit = endpoint(held["spec"]["apiEndpoint"].clone());
    scene.hub.edit("Cluster", "", "member2", edit).await?;
    has_member2(scene).await
}

async fn scale(scene: &Scene, replicas: i64) -> Result<()> {
    let scale = |live: &mut Value| live["spec"]["replicas"] = json!(replicas);
    scene.hub.edit("Deployment", &scene.ns, "myapp", scale).await?;
    Ok(())
}

async fn has_member2(scene: &Scene) -> Result<()> {
    eventually_within(BACK, "member2 has it, and FullyApplied says so", async || {
        let binding = scene.binding("myapp-deployment").await?;
        let reported = condition(&binding, "FullyApplied");
        ensure!(reported["status"] == "True", "{reported}");
        ensure!(
            reported["observedGeneration"] == binding["metadata"]["generation"],
            "{reported}"
        );
        Ok(())
    })
    .await
}

async fn lacks_member2(scene: &Scene) -> Result<()> {
    eventually("FullyApplied names member2, of this generation", async || {
        let binding = scene.binding("myapp-deployment").await?;
        let reported = condition(&binding, "FullyApplied");
        let message = reported["message"].as_str().unwrap_or_default();
        ensure!(
            reported["observedGeneration"] == binding["metadata"]["generation"],
            "{reported}"
        );
        ensure!(
            reported["status"] == "False" && message.contains("member2"),
            "{reported}"
        );
        ensure!(!message.contains("member1"), "{reported}");
        Ok(())
    })
    .await
}
