//! Bad input gets a condition with observedGeneration and one event on the transition, which name object, cluster, cause
//! and remedy; it is retried with back-off; and no other object is affected.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use entourage_e2e::{
    faults::{FaultPlan, Outcome},
    harness::{Scene, condition, eventually, eventually_within, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    a_policy_that_matches_nothing_says_so,
    an_unparsable_selector_of_templates_is_named,
    an_unparsable_selector_of_clusters_is_named,
    an_unknown_cluster_is_named,
    an_object_that_a_quota_keeps_out_is_named_and_goes_when_it_can,
    an_object_that_a_member_finds_invalid_is_named,
    an_object_that_is_too_large_for_a_member_is_named,
    a_kind_that_nobody_serves_harms_nobody,
    a_new_cluster_with_wrong_credentials_is_named,
    a_cluster_whose_secret_lies_elsewhere_is_refused,
    a_member_that_answers_429_and_500_is_served_all_the_same,
    a_webhook_of_a_member_that_cannot_be_called_is_reported_in_the_members_words,
    a_policy_that_names_no_such_cluster_says_so_until_it_does,
];

/// The example in a namespace of its own is propagated as usual: bad input elsewhere does not affect it.
async fn others_are_served(scene: &mut Scene) -> Result<()> {
    let other = scene.another_space().await?;
    for object in manifests::example() {
        other.apply(object).await?;
    }
    other.until_settled(&["member1", "member2"]).await?;
    other.delete("Deployment", "myapp").await?;
    other.until_held("ConfigMap", "my-config", &[]).await?;
    other.until_gone("ResourceBinding", "myapp-deployment").await
}

/// One Warning about an object, not repeated.
async fn one_event(scene: &Scene, reason: &str, name: &str, says: &[&str]) -> Result<()> {
    eventually(&format!("one {reason} event about {name}"), async || {
        let events = scene.events(reason, name).await?;
        ensure!(events.len() == 1, "{} events: {events:?}", events.len());
        let event = &events[0];
        ensure!(event["type"] == "Warning" && event["count"] == 1, "{event}");
        let message = event["message"].as_str().unwrap_or_default();
        for part in says {
            ensure!(message.contains(part), "{part:?} is not in {message:?}");
        }
        Ok(())
    })
    .await
}

async fn until_matched(scene: &Scene, status: &str, says: &str) -> Result<Value> {
    eventually(&format!("Matched of the policy is {status}"), async || {
        let policy = scene.get("PropagationPolicy", "myapp-propagation").await?;
        let found = condition(&policy, "Matched");
        let message = found["message"].as_str().unwrap_or_default();
        ensure!(
            found["status"] == status && message.contains(says),
            "{}",
            policy["status"]
        );
        ensure!(
            found["observedGeneration"] == policy["metadata"]["generation"],
            "{found}"
        );
        Ok(found.clone())
    })
    .await
}

async fn a_policy_that_matches_nothing_says_so(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::policy(&["member1"])).await?;
    let ns = scene.ns.clone();
    until_matched(scene, "False", &ns).await?;
    scene.quiet().await?;
    one_event(
        scene,
        "ApplyPolicyFailed",
        "myapp-propagation",
        &[&ns, "resourceSelectors"],
    )
    .await?;
    others_are_served(scene).await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    until_matched(scene, "True", "").await?;
    Ok(())
}

async fn an_unparsable_selector_of_templates_is_named(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let mut policy = manifests::policy(&["member1"]);
    policy["spec"]["resourceSelectors"] = json!([
        {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchExpressions": [
            {"key": "app", "operator": "Resembles", "values": ["x"]},
        ]}},
    ]);
    scene.apply(policy).await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    until_matched(scene, "False", "Resembles").await?;
    scene.quiet().await?;
    one_event(
        scene,
        "ApplyPolicyFailed",
        "myapp-propagation",
        &["resourceSelectors", "Resembles"],
    )
    .await?;
    assert_eq!(scene.holders("Deployment", "myapp").await?, [""; 0]);
    others_are_served(scene).await
}

async fn an_unparsable_selector_of_clusters_is_named(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let mut policy = manifests::policy(&[]);
    policy["spec"]["placement"]["clusterAffinity"] = json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Resembles", "values": ["x"]}]}});
    scene.apply(policy).await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene
        .until_condition("myapp-deployment", "Scheduled", "False", "Resembles")
        .await?;
    scene.quiet().await?;
    one_event(
        scene,
        "ScheduleBindingFailed",
        "myapp",
        &["labelSelector", "Resembles"],
    )
    .await?;
    assert_eq!(scene.holders("Deployment", "myapp").await?, [""; 0]);
    others_are_served(scene).await
}

async fn an_unknown_cluster_is_named(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    scene.apply(manifests::policy(&["nowhere"])).await?;
    let reported = scene
        .until_condition("myapp-deployment", "Scheduled", "False", "nowhere")
        .await?;
    assert_eq!(reported["reason"], "NoClusterFit");
    scene.quiet().await?;
    one_event(scene, "ScheduleBindingFailed", "myapp", &["nowhere", "join"]).await?;
    // Among others it is still reported, and the others are used.
    scene.apply(manifests::policy(&["member1", "nowhere"])).await?;
    scene.until_held("Deployment", "myapp", &["member1"]).await?;
    scene
        .until_condition("myapp-deployment", "Scheduled", "True", "nowhere")
        .await?;
    // The affinity is a requirement: a cluster that it no longer selects is left, although no other fits.
    scene.apply(manifests::policy(&["nowhere"])).await?;
    scene
        .until_condition("myapp-deployment", "Scheduled", "False", "it leaves member1")
        .await?;
    scene.until_held("Deployment", "myapp", &[]).await?;
    others_are_served(scene).await
}

/// The number of requests to a member to create an object of a resource in the test's own namespace.
fn attempts(scene: &Scene, member: &str, resource: &str) -> usize {
    let writes = scene.faults.recorder().writes();
    let of_it = writes.iter().filter(|write| {
        let call = &write.call;
        call.scope == member
            && call.resource == resource
            && call.namespace.as_deref() == Some(scene.ns.as_str())
            && matches!(write.outcome, Outcome::Answered(code) if code >= 400)
    });
    of_it.count()
}

/// Waits until a member refused an object again and again, so that one event is no accident.
async fn until_tried_again(scene: &Scene, member: &str, resource: &str) -> Result<()> {
    eventually(&format!("{member} refused {resource} four times"), async || {
        let attempts = attempts(scene, member, resource);
        ensure!(attempts >= 4, "{attempts} attempts");
        Ok(())
    })
    .await
}

async fn an_object_that_a_quota_keeps_out_is_named_and_goes_when_it_can(scene: &mut Scene) -> Result<()> {
    scene.options.dependency_wait = Duration::from_secs(1);
    scene.forbid_on("member1", "ConfigMap").await?;
    scene.start().await?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    let reported = scene
        .until_condition("my-config-configmap", "FullyApplied", "False", "member1 refused")
        .await?;
    let message = reported["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("ConfigMap") && message.contains("my-config"),
        "{message}"
    );
    // The other member has all copies, and here the workload waits no longer than configured.
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    scene.until_held("ConfigMap", "my-config", &["member2"]).await?;
    let reported = scene
        .until_condition("myapp-deployment", "DependenciesReady", "False", "member1")
        .await?;
    assert_eq!(reported["reason"], "NotDelivered");
    until_tried_again(scene, "member1", "configmaps").await?;
    one_event(
        scene,
        "SyncFailed",
        "my-config-configmap",
        &["member1", "my-config"],
    )
    .await?;
    one_event(
        scene,
        "SyncScheduleResultToDependenciesFailed",
        "myapp",
        &["member1", "my-config"],
    )
    .await?;
    others_are_served(scene).await?;

    scene.delete_on("member1", "ResourceQuota", "none").await?;
    scene.until_settled(&["member1", "member2"]).await
}

async fn an_object_that_a_member_finds_invalid_is_named(scene: &mut Scene) -> Result<()> {
    // The selector of a Deployment cannot be changed: this one cannot become ours.
    let mut foreign = manifests::deployment("myapp", &[]);
    foreign["spec"]["selector"]["matchLabels"]["side"] = json!("theirs");
    foreign["spec"]["template"]["metadata"]["labels"]["side"] = json!("theirs");
    let before = scene.apply_on("member1", foreign).await?;
    scene.start().await?;
    scene.apply(manifests::deployment("myapp", &[])).await?;
    let mut policy = manifests::policy(&["member1", "member2"]);
    policy["spec"]["conflictResolution"] = json!("Overwrite");
    scene.apply(policy).await?;
    let reported = scene
        .until_condition("myapp-deployment", "FullyApplied", "False", "member1 refused")
        .await?;
    let message = reported["message"].as_str().unwrap_or_default();
    for part in ["Deployment", "myapp", "spec.selector", "immutable"] {
        ensure!(message.contains(part), "{part} is not in {message:?}");
    }
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    until_tried_again(scene, "member1", "deployments.apps").await?;
    one_event(
        scene,
        "SyncFailed",
        "myapp-deployment",
        &["member1", "spec.selector"],
    )
    .await?;
    let after = scene.copy("member1", "Deployment", "myapp").await?;
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    others_are_served(scene).await
}

/// The largest object that the hub accepts: with ownership metadata it is too large for a member.
async fn an_object_that_is_too_large_for_a_member_is_named(scene: &mut Scene) -> Result<()> {
    scene.options.dependency_wait = Duration::from_secs(1);
    scene.start().await?;
    let [deployment, policy, mut config] = manifests::example();
    config["metadata"]["annotations"] = json!({"big": "x".repeat((256 << 10) - 10)});
    for object in [deployment, policy, config] {
        scene.apply(object).await?;
    }
    scene
        .until_condition("my-config-configmap", "FullyApplied", "False", "member1 refused")
        .await?;
    let reported = scene
        .until_condition("my-config-configmap", "FullyApplied", "False", "member2 refused")
        .await?;
    let message = reported["message"].as_str().unwrap_or_default();
    ensure!(message.contains("metadata.annotations"), "{message}");
    until_tried_again(scene, "member1", "configmaps").await?;
    one_event(
        scene,
        "SyncFailed",
        "my-config-configmap",
        &["my-config", "metadata.annotations"],
    )
    .await?;
    scene
        .until_held("Deployment", "myapp", &["member1", "member2"])
        .await?;
    others_are_served(scene).await?;
    scene.delete("ConfigMap", "my-config").await?;
    scene.apply(manifests::config_map("my-config", "small")).await?;
    scene.until_settled(&["member1", "member2"]).await
}

async fn a_kind_that_nobody_serves_harms_nobody(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let mut policy = manifests::policy(&["member1"]);
    policy["spec"]["resourceSelectors"] =
        json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}]);
    scene.apply(policy).await?;
    until_matched(scene, "False", "Widget").await?;
    scene.quiet().await?;
    one_event(scene, "ApplyPolicyFailed", "myapp-propagation", &["Widget"]).await?;
    others_are_served(scene).await?;
    scene.restart().await?;
    others_are_served(scene).await
}

async fn a_new_cluster_with_wrong_credentials_is_named(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let endpoint = scene.bed.cluster("member3")?.endpoint();
    let ca = scene.bed.cluster("member3")?.ca_pem().to_owned();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "wrong", "namespace": "karmada-cluster"},
        "stringData": {"token": "canary-of-a-token-that-is-wrong", "caBundle": ca},
    });
    scene.hub.apply(&secret).await?;
    scene
        .hub
        .apply(&cluster("wrong", &endpoint, "karmada-cluster"))
        .await?;
    let reported = scene.until_cluster("wrong", "False", "token").await?;
    assert_eq!(reported["reason"], "CredentialsRefused");
    // Named like its Cluster, as with Karmada, the Secret is bound to the address of its first use.
    let secret = scene.hub.get("Secret", "karmada-cluster", "wrong").await?;
    let bound = &secret.context("applied")?["metadata"]["annotations"]["entourage.dev/api-endpoint"];
    assert_eq!(*bound, json!(endpoint.trim_end_matches('/')));
    eventually("one event about the Cluster", async || {
        let mut events = scene.hub.list("Event", "default", "").await?;
        events.retain(|event| {
            event["involvedObject"]["name"] == "wrong" && event["reason"] == "ClusterNotReady"
        });
        ensure!(events.len() == 1 && events[0]["count"] == 1, "{events:?}");
        let message = events[0]["message"].as_str().unwrap_or_default();
        ensure!(message.contains("Secret"), "{message}");
        Ok(())
    })
    .await?;
    ensure!(
        scene.bed.log.with("canary-of-a-token").is_empty(),
        "the token is in the log"
    );
    // A workload that also names it gets all its other dependencies.
    others_are_served(scene).await?;
    // Repaired, they are taken.
    let right = scene
        .hub
        .get("Secret", "karmada-cluster", "member3")
        .await?
        .context("joined")?["data"]
        .clone();
    scene
        .hub
        .edit("Secret", "karmada-cluster", "wrong", |live| {
            live["data"] = right.clone()
        })
        .await?;
    // It represents a member that is joined already, which only its credentials could show.
    let reported = scene.until_cluster("wrong", "False", "Cluster member3").await?;
    assert_eq!(reported["reason"], "ClusterIDConflict");
    scene.hub.delete("Secret", "karmada-cluster", "wrong").await
}

async fn a_cluster_whose_secret_lies_elsewhere_is_refused(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let endpoint = scene.bed.cluster("member3")?.endpoint();
    let mut secret = scene
        .hub
        .get("Secret", "karmada-cluster", "member3")
        .await?
        .context("joined")?;
    secret["metadata"] = json!({"name": "stray", "namespace": scene.ns});
    scene.hub.apply(&secret).await?;
    scene.hub.apply(&cluster("stray", &endpoint, &scene.ns)).await?;
    let reported = scene.until_cluster("stray", "False", "karmada-cluster").await?;
    assert_eq!(reported["reason"], "SecretNamespaceForbidden");
    others_are_served(scene).await
}

fn cluster(name: &str, endpoint: &str, secrets_in: &str) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {
            "syncMode": "Push", "apiEndpoint": endpoint, "secretRef": {"namespace": secrets_in, "name": name},
        },
    })
}

/// More than half of the calls to member2 fail; the others do not wait for it.
async fn a_member_that_answers_429_and_500_is_served_all_the_same(scene: &mut Scene) -> Result<()> {
    let plan: FaultPlan = "seed=7 error-before=60% status=429,500 only=member2".parse()?;
    scene.launch(plan)?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    scene
        .until_copy("member1", "Deployment", "myapp", |_| Ok(()))
        .await?;
    // Six calls of ten fail, those of lists, watches and probes too, and each 429 asks for a second of quiet.
    eventually_within(
        Duration::from_secs(120),
        "member2 is served in spite of its answers",
        async || scene.until_settled(&["member1", "member2"]).await,
    )
    .await?;
    let struck = scene.faults.recorder().faults();
    ensure!(
        struck.get("error-before").is_some_and(|count| *count > 3),
        "{struck:?}"
    );
    Ok(())
}

/// The words are those of the member's API server, and differ in nothing from try to try.
async fn a_webhook_of_a_member_that_cannot_be_called_is_reported_in_the_members_words(
    scene: &mut Scene,
) -> Result<()> {
    const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    scene.start().await?;
    let name = scene.own("guard");
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "guard.example.com", "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 2,
            "admissionReviewVersions": ["v1"], "objectSelector": {"matchLabels": {"guarded": "yes"}},
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}],
        }],
    });
    let member1 = scene.member("member1")?;
    member1.call("POST", HOOKS, Some(&hook)).await?;
    let mut workload = manifests::deployment("guarded", &[]);
    workload["metadata"]["labels"] = json!({"guarded": "yes"});
    scene.apply(workload).await?;
    let placed = manifests::policy_for("guarded", "Deployment", "guarded", &["member1", "member2"]);
    scene.apply(placed).await?;
    scene.until_held("Deployment", "guarded", &["member2"]).await?;
    let says = "failed calling webhook \"guard.example.com\"";
    // The first report may be from before the answer of member2.
    let reported = eventually("only member1 lacks it", async || {
        let reported = scene
            .until_condition("guarded-deployment", "FullyApplied", "False", says)
            .await?;
        ensure!(
            !reported["message"]
                .as_str()
                .unwrap_or_default()
                .contains("member2"),
            "{reported}"
        );
        Ok(reported)
    })
    .await?;
    let message = reported["message"].as_str().unwrap_or_default();
    ensure!(
        message.contains("apply of ") && message.contains(" on member1 failed: "),
        "{message}"
    );
    eventually("it is retried", async || {
        let writes = scene.writes();
        let tries = writes
            .iter()
            .filter(|each| each.starts_with("member1 create deployments"));
        ensure!(tries.count() >= 3, "{writes:?}");
        Ok(())
    })
    .await?;
    let again = scene
        .until_condition("guarded-deployment", "FullyApplied", "False", says)
        .await?;
    ensure!(again == reported, "{again}");
    scene
        .member("member1")?
        .call("DELETE", &format!("{HOOKS}/{name}"), None)
        .await?;
    scene
        .until_held("Deployment", "guarded", &["member1", "member2"])
        .await?;
    scene
        .until_condition("guarded-deployment", "FullyApplied", "True", "")
        .await?;
    Ok(())
}

async fn a_policy_that_names_no_such_cluster_says_so_until_it_does(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let [deployment, _, config] = manifests::example();
    scene.apply(deployment).await?;
    scene.apply(config).await?;
    scene.apply(manifests::policy(&["member1", "nope"])).await?;
    let reported = |says: &'static str| {
        let scene = &*scene;
        async move {
            eventually(&format!("Effective of the policy says {says:?}"), async || {
                let policy = scene.get("PropagationPolicy", "myapp-propagation").await?;
                let found = condition(&policy, "Effective");
                let message = found["message"].as_str().unwrap_or_default();
                ensure!(found.is_null() == says.is_empty(), "{found}");
                ensure!(message.contains(says), "{message}");
                Ok(())
            })
            .await
        }
    };
    reported("cluster \"nope\" not found").await?;
    one_event(
        scene,
        "PartsWithoutEffect",
        "myapp-propagation",
        &["cluster \"nope\" not found"],
    )
    .await?;
    scene.apply(manifests::policy(&["member1"])).await?;
    reported("").await
}
