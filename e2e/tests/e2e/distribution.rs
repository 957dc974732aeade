//! ResourceDistributions: copies arrive, stay in step and go, and the status says so.

use anyhow::{Result, ensure};
use entourage_e2e::{
    harness::{FAILURES, Scene, Space, included, kind, manifests},
    tests,
};
use serde_json::{Value, json};

tests![
    copies_are_where_the_targets_say_and_follow_them_and_the_status_tells,
    a_namespace_that_comes_or_is_relabelled_is_looked_at_again,
    a_copy_changed_or_deleted_by_hand_is_put_right,
    a_copy_that_loses_its_owner_is_somebody_elses,
    either_version_serves_what_the_other_took,
    namespaces_of_the_system_are_never_written,
];

/// SHA-256 of [`manifests::config_map`] `shared` with the value `one`, as compact JSON with sorted keys.
const HASH_OF_ONE: &str = "abf16339d217aab16fce4f2c6f5c8e1b92dbee41e9f071d76d8ce26f384db106";

/// A further namespace, with labels.
pub(crate) async fn labelled(scene: &mut Scene, labels: &Value) -> Result<String> {
    let ns = scene.another_space().await?.ns;
    relabel(scene, &ns, labels).await?;
    Ok(ns)
}

/// Gives a namespace these labels, and no others of a test.
pub(crate) async fn relabel(space: &Space, ns: &str, labels: &Value) -> Result<()> {
    let change = |live: &mut Value| {
        let mut labels = labels.clone();
        labels["kubernetes.io/metadata.name"] = json!(ns);
        live["metadata"]["labels"] = labels;
    };
    space.hub.edit("Namespace", "", ns, change).await.map(drop)
}

async fn copies_are_where_the_targets_say_and_follow_them_and_the_status_tells(
    scene: &mut Scene,
) -> Result<()> {
    let (one, two) = (json!({"group": scene.ns}), json!({"group": scene.own("two")}));
    let mut all = vec![labelled(scene, &one).await?];
    for labels in [json!({}), one.clone(), one.clone(), two.clone()] {
        all.push(labelled(scene, &labels).await?);
    }
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    let [a, b, c, d, e] = names[..] else {
        unreachable!()
    };
    scene.start().await?;
    let mut targets = included(&[a, b]);
    targets["namespaceLabelSelector"] = json!({"matchLabels": one});
    targets["excludedNamespaces"] = json!({"list": [{"name": d}]});
    let shared = manifests::config_map("shared", "one");
    let uid = scene.distribute("rd", &shared, &targets).await?["metadata"]["uid"].clone();
    scene
        .until_in("ConfigMap", "shared", &[a, b, c, d, e], &[a, b, c])
        .await?;
    let stored = scene.until_counts("rd", 3, 3, 0).await?;
    for (at, type_) in FAILURES.iter().enumerate() {
        let found = &stored["status"]["conditions"][at];
        ensure!(
            found["type"] == *type_ && found["status"] == "False" && found["reason"] == "Succeeded",
            "{found}"
        );
        ensure!(found["lastTransitionTime"].is_string(), "{found}");
        ensure!(found["failedNamespace"].is_null(), "{found}");
    }
    let reported = scene.until_reported("rd", "Distributed").await?;
    ensure!(reported.contains("3/3"), "{reported}");
    let copy = scene.until_there("ConfigMap", c, "shared", |_| Ok(())).await?;
    assert_eq!(copy["data"], shared["data"]);
    let annotations = &copy["metadata"]["annotations"];
    assert_eq!(
        annotations["kruise.io/resourcedistribution.resource.from"],
        json!(scene.own("rd"))
    );
    assert_eq!(
        annotations["kruise.io/resourcedistribution.resource.hashcode"],
        HASH_OF_ONE
    );
    assert_eq!(
        copy["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": scene.own("rd"),
            "uid": uid, "controller": true, "blockOwnerDeletion": true,
        }])
    );
    scene.quiet().await?;
    scene.restart().await?;
    assert_eq!(scene.quiet().await?, 0, "a restart writes nothing");

    let mut targets = included(&[b]);
    targets["namespaceLabelSelector"] = json!({"matchLabels": two});
    scene.distribute("rd", &shared, &targets).await?;
    scene
        .until_in("ConfigMap", "shared", &[a, b, c, d, e], &[b, e])
        .await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    Ok(())
}

async fn a_namespace_that_comes_or_is_relabelled_is_looked_at_again(scene: &mut Scene) -> Result<()> {
    let group = json!({"group": scene.ns});
    let a = labelled(scene, &json!({"group": "another"})).await?;
    scene.start().await?;
    // In the form of the first proposal: labels alone.
    let targets = json!({"namespaceLabelSelector": group});
    scene
        .distribute("rd", &manifests::secret("shared", "one"), &targets)
        .await?;
    let stored = scene.until_counts("rd", 0, 0, 0).await?;
    assert_eq!(stored["status"]["description"], "The targets select no namespace");
    let b = labelled(scene, &group).await?;
    scene.until_in("Secret", "shared", &[&a, &b], &[&b]).await?;
    relabel(scene, &a, &group).await?;
    scene.until_in("Secret", "shared", &[&a, &b], &[&a, &b]).await?;
    scene.until_counts("rd", 2, 2, 0).await?;
    relabel(scene, &b, &json!({})).await?;
    scene.until_in("Secret", "shared", &[&a, &b], &[&a]).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    // The owner of a namespace decides.
    let deny =
        |live: &mut Value| live["metadata"]["annotations"] = json!({"entourage.dev/distribution": "deny"});
    scene.hub.edit("Namespace", "", &a, deny).await?;
    scene.until_in("Secret", "shared", &[&a, &b], &[]).await?;
    scene.until_counts("rd", 0, 0, 0).await?;
    Ok(())
}

async fn a_copy_changed_or_deleted_by_hand_is_put_right(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let mut shared = manifests::config_map("shared", "one");
    shared["metadata"]["labels"] = json!({"ours": "1"});
    scene.distribute("rd", &shared, &included(&[&scene.ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let ns = scene.ns.clone();
    let as_wanted = |copy: &Value| {
        ensure!(copy["data"] == json!({"key": "one"}), "{}", copy["data"]);
        let meta = &copy["metadata"];
        ensure!(meta["labels"]["ours"] == "1", "{meta}");
        let hash = &meta["annotations"]["kruise.io/resourcedistribution.resource.hashcode"];
        ensure!(hash.as_str().is_some_and(|hash| hash.len() == 64), "{meta}");
        Ok(())
    };
    let edits: [fn(&mut Value); 4] = [
        |live| live["data"]["more"] = json!("x"),
        |live| live["data"] = Value::Null,
        |live| live["metadata"]["labels"] = json!({"ours": "2", "theirs": "x"}),
        |live| live["metadata"]["annotations"] = json!({"note": "theirs"}),
    ];
    for edit in edits {
        scene.hub.edit("ConfigMap", &ns, "shared", edit).await?;
        scene.until_there("ConfigMap", &ns, "shared", as_wanted).await?;
    }
    let copy = scene.until_there("ConfigMap", &ns, "shared", as_wanted).await?;
    assert_eq!(copy["metadata"]["labels"]["theirs"], "x");
    assert_eq!(copy["metadata"]["annotations"]["note"], "theirs");
    scene.hub.delete("ConfigMap", &ns, "shared").await?;
    scene
        .until_there("ConfigMap", &ns, "shared", |again| {
            ensure!(again["metadata"]["uid"] != copy["metadata"]["uid"], "the same");
            as_wanted(again)
        })
        .await?;
    scene.quiet().await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    Ok(())
}

async fn a_copy_that_loses_its_owner_is_somebody_elses(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let ns = scene.ns.clone();
    let shared = manifests::config_map("shared", "one");
    scene.distribute("rd", &shared, &included(&[&ns])).await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let disown = |live: &mut Value| live["metadata"]["ownerReferences"] = json!([]);
    let before = scene.hub.edit("ConfigMap", &ns, "shared", disown).await?;
    scene
        .until_failure("rd", "ConflictOccurred", "without a controller", &[&ns])
        .await?;
    scene.quiet().await?;
    let after = scene.get("ConfigMap", "shared").await?;
    assert_eq!(after["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    scene.delete("ConfigMap", "shared").await?;
    scene.until_counts("rd", 1, 1, 0).await?;
    let not_the_controller = |live: &mut Value| {
        live["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    };
    scene
        .hub
        .edit("ConfigMap", &ns, "shared", not_the_controller)
        .await?;
    scene.until_counts("rd", 1, 0, 1).await?;
    Ok(())
}

async fn either_version_serves_what_the_other_took(scene: &mut Scene) -> Result<()> {
    relabel(scene, &scene.ns.clone(), &json!({"group": scene.ns})).await?;
    scene.start().await?;
    let alpha = kind("ResourceDistribution").path("", None);
    let beta = alpha.replace("v1alpha1", "v1beta1");
    let mut targets = included(&["does-not-exist"]);
    targets["namespaceSelector"] = json!({"matchLabels": {"group": scene.ns}});
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution",
        "metadata": {"name": scene.own("rd")},
        "spec": {"resource": manifests::config_map("shared", "one"), "targets": targets},
    });
    scene.hub.call("POST", &beta, Some(&object)).await?;
    let stored = scene.until_counts("rd", 2, 1, 1).await?;
    assert_eq!(stored["apiVersion"], "apps.kruise.io/v1alpha1");
    assert_eq!(stored["spec"], object["spec"]);
    let read = scene
        .hub
        .call("GET", &format!("{beta}/{}", scene.own("rd")), None)
        .await?;
    assert_eq!(read["apiVersion"], "apps.kruise.io/v1beta1");
    assert_eq!(read["status"], stored["status"]);
    let missing = &read["status"]["conditions"][5];
    assert_eq!(missing["failedNamespaces"], json!(["does-not-exist"]));
    assert_eq!(missing["failedNamespace"], json!(["does-not-exist"]));
    let copy = scene.get("ConfigMap", "shared").await?;
    assert_eq!(
        copy["metadata"]["ownerReferences"][0]["apiVersion"],
        "apps.kruise.io/v1alpha1"
    );
    Ok(())
}

async fn namespaces_of_the_system_are_never_written(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    let hidden = ["kube-system", "kube-public", "karmada-system", "karmada-cluster"];
    let name = scene.own("everywhere");
    let mut targets = included(&hidden);
    targets["allNamespaces"] = json!(true);
    scene
        .distribute("rd", &manifests::config_map(&name, "one"), &targets)
        .await?;
    let ns = scene.ns.clone();
    scene
        .until_in("ConfigMap", &name, &["default", &ns], &["default", &ns])
        .await?;
    scene.quiet().await?;
    for server in std::iter::once(&scene.hub).chain(&scene.members) {
        for ns in hidden {
            ensure!(
                server.get("ConfigMap", ns, &name).await?.is_none(),
                "it is in {ns} of {}",
                server.name
            );
        }
    }
    let stored = scene.until_distribution("rd", |_| Ok(())).await?;
    for each in stored["status"]["conditions"].as_array().into_iter().flatten() {
        for ns in each["failedNamespace"].as_array().into_iter().flatten() {
            ensure!(!hidden.iter().any(|name| ns == name), "{each}");
        }
    }
    scene.end_distribution("rd", "Background").await?;
    // Includes the namespace that is not the test's.
    scene.until_in("ConfigMap", &name, &["default", &ns], &[]).await
}
