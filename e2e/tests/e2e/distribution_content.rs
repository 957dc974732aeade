//! The writes of ResourceDistributions: when their content changes, and when it only seems to.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{Scene, condition, included, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    labels_and_annotations_follow_and_those_of_others_stay,
    what_a_server_writes_in_another_way_is_no_difference,
    what_cannot_be_updated_is_made_again_unless_somebody_forbids_it,
    what_cannot_be_distributed_is_reported_and_holds_nobody_up,
    what_a_server_wrote_on_a_copied_manifest_does_not_travel,
];

async fn labels_and_annotations_follow_and_those_of_others_stay(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let resource = |labels: Value, annotations: Value| {
        let mut object = manifests::config_map("shared", "one");
        object["metadata"]["labels"] = labels;
        object["metadata"]["annotations"] = annotations;
        object
    };
    let first = resource(json!({"a": "1", "b": "1"}), json!({"x": "1", "y": "1"}));
    scene.distribute("rd", &first, &included(&[&ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let claim = "clusterpropagationpolicy.karmada.io/permanent-id";
    let by_others = |live: &mut Value| {
        live["metadata"]["labels"]["theirs"] = json!("1");
        live["metadata"]["labels"][claim] = json!("abc");
        live["metadata"]["annotations"]["note"] = json!("theirs");
        live["metadata"]["finalizers"] = json!(["e2e.entourage.dev/theirs"]);
    };
    scene.hub.edit("ConfigMap", &ns, "shared", by_others).await?;
    // Nothing but metadata changes.
    let second = resource(json!({"a": "2"}), json!({"x": "2"}));
    scene.distribute("rd", &second, &included(&[&ns])).await?;
    let copy = scene
        .until_there("ConfigMap", &ns, "shared", |copy| {
            let (labels, annotations) = (&copy["metadata"]["labels"], &copy["metadata"]["annotations"]);
            ensure!(
                *labels == json!({"a": "2", "theirs": "1", claim: "abc"}),
                "{labels}"
            );
            ensure!(
                annotations["x"] == "2" && annotations["y"].is_null(),
                "{annotations}"
            );
            ensure!(annotations["note"] == "theirs", "{annotations}");
            Ok(())
        })
        .await?;
    assert_eq!(
        copy["metadata"]["finalizers"],
        json!(["e2e.entourage.dev/theirs"])
    );
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "nothing of others is written again");
    let let_go = |live: &mut Value| live["metadata"]["finalizers"] = json!([]);
    scene.hub.edit("ConfigMap", &ns, "shared", let_go).await?;
    Ok(())
}

async fn what_a_server_writes_in_another_way_is_no_difference(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    // The form that kustomize writes: in lines; no type; a text as it is, and one in base64.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shared"},
        "data": {"wrapped": "aGVs\nbG8=\n", "hidden": "YQ=="}, "stringData": {"plain": "hello", "hidden": "b"},
    });
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"},
        "data": {"text": " with a blank\n", "markup": "<a & b>"}, "binaryData": {"bytes": "/wD/"}, "immutable": false,
    });
    scene.distribute("secret", &secret, &included(&[&ns])).await?;
    scene.distribute("config", &config, &included(&[&ns])).await?;
    scene.until_counts("secret", 1, 1, 0).await?;
    scene.until_counts("config", 1, 1, 0).await?;
    let copy = scene.get("Secret", "shared").await?;
    assert_eq!(copy["type"], "Opaque");
    assert_eq!(
        copy["data"],
        json!({"wrapped": "aGVsbG8=", "plain": "aGVsbG8=", "hidden": "Yg=="})
    );
    let copy = scene.get("ConfigMap", "shared").await?;
    assert_eq!(copy["data"], config["data"]);
    assert_eq!(copy["binaryData"], config["binaryData"]);
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a second look writes nothing");
    // Neither does one that something else gave rise to.
    for name in ["secret", "config"] {
        let note = |live: &mut Value| live["metadata"]["annotations"]["note"] = json!("x");
        scene.edit_distribution(name, note).await?;
    }
    let relabel = |live: &mut Value| live["metadata"]["labels"]["e2e"] = json!("x");
    scene.hub.edit("Namespace", "", &ns, relabel).await?;
    scene.quiet().await?;
    let to_hub = scene.writes().into_iter().find(|write| write.starts_with("hub"));
    assert_eq!(to_hub, None);
    Ok(())
}

async fn what_cannot_be_updated_is_made_again_unless_somebody_forbids_it(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let config = |value: &str| {
        let mut config = manifests::config_map("shared", value);
        config["immutable"] = json!(true);
        config
    };
    let secret = |type_: &str| {
        let mut secret = manifests::secret("shared", "one");
        secret["type"] = json!(type_);
        secret
    };
    let targets = included(&[&ns]);
    scene.distribute("config", &config("one"), &targets).await?;
    scene
        .distribute("secret", &secret("example.com/one"), &targets)
        .await?;
    scene.until_counts("config", 1, 1, 0).await?;
    scene.until_counts("secret", 1, 1, 0).await?;
    let (old_config, old_secret) = (
        scene.get("ConfigMap", "shared").await?,
        scene.get("Secret", "shared").await?,
    );
    scene.distribute("config", &config("two"), &targets).await?;
    scene
        .distribute("secret", &secret("example.com/two"), &targets)
        .await?;
    scene.until_counts("config", 1, 1, 0).await?;
    scene.until_counts("secret", 1, 1, 0).await?;
    let (new_config, new_secret) = (
        scene.get("ConfigMap", "shared").await?,
        scene.get("Secret", "shared").await?,
    );
    assert_eq!(new_config["data"]["key"], "two");
    assert_eq!(new_secret["type"], "example.com/two");
    ensure!(new_config["metadata"]["uid"] != old_config["metadata"]["uid"]);
    ensure!(new_secret["metadata"]["uid"] != old_secret["metadata"]["uid"]);

    let forbid = |live: &mut Value| {
        live["metadata"]["annotations"]["entourage.dev/allow-recreation"] = json!("false");
    };
    scene.edit_distribution("config", forbid).await?;
    scene.distribute("config", &config("three"), &targets).await?;
    scene
        .until_failure("config", "UpdateResourceFailed", "immutable", &[&ns])
        .await?;
    scene.until_counts("config", 1, 0, 1).await?;
    let kept = scene.get("ConfigMap", "shared").await?;
    assert_eq!(
        kept["metadata"]["resourceVersion"],
        new_config["metadata"]["resourceVersion"]
    );
    Ok(())
}

async fn what_cannot_be_distributed_is_reported_and_holds_nobody_up(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let mut hostile = vec![
        (
            "no-base64",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad"}, "data": {"key": "%%%"}}),
            "not base64",
        ),
        (
            "list",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, "items": [{}]}),
            "a list",
        ),
        (
            "token",
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
                "metadata": {"name": "bad", "annotations": {"kubernetes.io/service-account.name": "default"}},
            }),
            "token",
        ),
        (
            "generated",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "bad-"}}),
            "generateName",
        ),
        (
            "number",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, "data": {"key": 1}}),
            "is not a string",
        ),
    ];
    // Servers that check rules refuse it.
    if !scene.bed.has("cel")? {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}});
        hostile.push(("pod", pod, "Pod"));
    }
    for (name, resource, _) in &hostile {
        scene.distribute(name, resource, &included(&[&ns])).await?;
    }
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &included(&[&ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    for (name, _, says) in &hostile {
        let stored = scene
            .until_distribution(name, |stored| {
                let first = condition(stored, "GetResourceFailed");
                ensure!(first["status"] == "True", "{first}");
                let reason = first["reason"].as_str().unwrap_or_default();
                ensure!(reason.contains(says), "{reason} does not say {says}");
                Ok(())
            })
            .await?;
        let description = stored["status"]["description"].as_str().unwrap_or_default();
        ensure!(description.starts_with("Nothing is written"), "{description}");
        scene.until_reported(name, "DistributionInvalid").await?;
    }
    scene.quiet().await?;
    for kind in ["ConfigMap", "Secret"] {
        for object in scene.hub.list(kind, &ns, "").await? {
            let made = object["metadata"]["name"].as_str().unwrap_or_default();
            ensure!(!made.starts_with("bad"), "{kind} {made} was written");
        }
    }
    // After the correction it is distributed.
    let right =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad"}, "data": {"key": "YQ=="}});
    scene.distribute("no-base64", &right, &included(&[&ns])).await?;
    let stored = scene.until_counts("no-base64", 1, 1, 0).await?;
    assert_eq!(stored["status"]["conditions"][0]["status"], "False");
    Ok(())
}

async fn what_a_server_wrote_on_a_copied_manifest_does_not_travel(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let mut shared = manifests::config_map("shared", "one");
    shared["metadata"] = json!({
        "name": "shared", "namespace": "elsewhere", "uid": "0b6c3cf4-0000-4000-8000-000000000000",
        "resourceVersion": "7", "creationTimestamp": "2021-01-01T00:00:00Z", "generation": 3,
        "finalizers": ["e2e.entourage.dev/never"], "labels": {"a": "1"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "no-such-uid", "controller": true},
        ],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "x"},
    });
    scene.distribute("rd", &shared, &included(&[&ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let copy = scene.get("ConfigMap", "shared").await?;
    let meta = &copy["metadata"];
    ensure!(meta["uid"] != shared["metadata"]["uid"], "{meta}");
    ensure!(meta["finalizers"].is_null(), "{meta}");
    let owners = meta["ownerReferences"].as_array().map_or(0, Vec::len);
    assert_eq!(owners, 1);
    assert_eq!(meta["ownerReferences"][0]["kind"], "ResourceDistribution");
    assert_eq!(meta["labels"], json!({"a": "1"}));
    assert_eq!(meta["annotations"]["note"], "x");
    ensure!(
        !meta["annotations"].to_string().contains("last-applied"),
        "{meta}"
    );
    scene
        .distribute("rd", &manifests::config_map("shared", "two"), &included(&[&ns]))
        .await?;
    scene
        .until_there("ConfigMap", &ns, "shared", |copy| {
            ensure!(copy["data"]["key"] == "two", "{}", copy["data"]);
            Ok(())
        })
        .await?;
    Ok(())
}
