//! `entourage adopt --from-karmada`: the copies of a Karmada change hands, go back, and are this hub's for good.
//!
//! The API server of Karmada is that of member3, with objects as Karmada's controllers leave them, made by hand.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use entourage_api::{crds::crds, names};
use entourage_controllers::lease::Timing;
use entourage_e2e::{
    harness::{Scene, Server, manifests, status_code},
    tests,
};
use serde_json::{Value, json};

tests![a_karmada_is_taken_over_given_back_and_retired_without_a_restart_of_a_pod];

const HUB: &str = "entourage.dev/hub";

const RECORD: &str = "entourage.dev/adopted-from";

const WORK_ID: &str = "work.karmada.io/permanent-id";

const BINDING_ID: &str = "resourcebinding.karmada.io/permanent-id";

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases";

/// The server that is Karmada's.
const KARMADA: &str = "member3";

/// The copies that change hands.
const COPIES: [(&str, &str, &str); 4] = [
    ("member1", "Deployment", "myapp"),
    ("member1", "ConfigMap", "my-config"),
    ("member2", "Deployment", "myapp"),
    ("member2", "ConfigMap", "my-config"),
];

async fn a_karmada_is_taken_over_given_back_and_retired_without_a_restart_of_a_pod(
    scene: &mut Scene,
) -> Result<()> {
    scene.options.leader_election = true;
    scene.options.lease_timing = Timing {
        duration: Duration::from_secs(4),
        renew_deadline: Duration::from_millis(2_500),
        retry: Duration::from_millis(500),
    };
    let file = scene.bed.cluster(KARMADA)?.kubeconfig_path();
    let file = file.to_str().context("a path that is text")?.to_owned();
    let adopt = ["--from-karmada", file.as_str()];
    leave_to_karmada(scene).await?;
    let before = copies(scene).await?;

    // A hub with the same members and objects takes nothing over by itself.
    scene.start().await?;
    for object in manifests::example() {
        scene.apply(object).await?;
    }
    for binding in ["myapp-deployment", "my-config-configmap"] {
        scene
            .until_condition(binding, "FullyApplied", "False", "entourage adopt --from-karmada")
            .await?;
    }
    let printed = scene.bed.adopt(&adopt).await?;
    for (member, object, says) in [
        ("member1", "Deployment myapp", "adopt"),
        ("member1", "ConfigMap my-config", "adopt"),
        ("member2", "ConfigMap my-config", "adopt"),
        (
            "member1",
            "ConfigMap orphan",
            "left alone: Karmada has no Work of it",
        ),
        ("member1", "ConfigMap forged", "this Karmada's Work and binding"),
    ] {
        let line = line_of(&printed, &scene.ns, member, object);
        ensure!(line.ends_with(says), "{member} {object}:\n{printed}");
    }
    let line = line_of(&printed, &scene.ns, "member2", "Deployment myapp");
    ensure!(line.contains("Pods would restart"), "another image:\n{printed}");
    ensure!(
        printed.contains("nothing was written")
            && printed.contains("is held by karmada-controller-manager-1"),
        "{printed}"
    );
    assert_eq!(copies(scene).await?, before, "a dry run");
    scene
        .edit_on("member2", "Deployment", "myapp", |copy| {
            let container = &mut copy["spec"]["template"]["spec"]["containers"][0];
            container["image"] = json!("nginx");
            // That of the former image; the server fills in that of this one.
            container["imagePullPolicy"] = json!(null);
        })
        .await?;
    let before = copies(scene).await?;

    // While Karmada's controllers run nothing is written.
    let yes = [&adopt[..], &["--yes"]].concat();
    let refused = tokio::select! {
        result = scene.bed.adopt(&yes) => result,
        result = renew(scene.member(KARMADA)?) => bail!("renewing ended: {:?}", result.err()),
    };
    has_failed(
        refused,
        "it has just renewed the Lease karmada-system/karmada-controller-manager",
    )?;
    assert_eq!(copies(scene).await?, before, "Karmada runs");

    // What Karmada would delete at its start is named, until its Work preserves it.
    let undo = [&adopt[..], &["--undo"]].concat();
    let karmada = scene.member(KARMADA)?;
    karmada
        .delete("ResourceBinding", &scene.ns, "forged-configmap")
        .await?;
    has_failed(
        scene.bed.adopt(&undo).await,
        "Works that are not safe with a Karmada that is started: 1",
    )?;
    let forged = names::work_name(&scene.ns, "forged", "ConfigMap");
    let path = format!("{}/{forged}", works_of("member1"));
    let mut preserved = karmada.call("GET", &path, None).await?;
    preserved["spec"]["preserveResourcesOnDeletion"] = json!(true);
    karmada.call("PUT", &path, Some(&preserved)).await?;
    scene.bed.adopt(&undo).await?;

    let works = works(scene).await?;
    let printed = scene.bed.adopt(&yes).await?;
    ensure!(printed.contains("4 objects adopted"), "{printed}");
    scene.until_settled(&["member1", "member2"]).await?;
    are_the_same_objects(scene, &before, true).await?;
    let printed = scene.bed.adopt(&yes).await?;
    ensure!(
        printed.contains("0 objects adopted, 4 adopted before"),
        "{printed}"
    );

    // The way back, which needs this hub's controllers stopped.
    let undo_yes = [&undo[..], &["--yes"]].concat();
    let refused = scene.bed.adopt(&undo_yes).await;
    has_failed(
        refused,
        "it has just renewed the Lease karmada-system/entourage-controllers",
    )?;
    scene.stop().await?;
    let printed = scene.bed.adopt(&undo).await?;
    ensure!(
        printed.contains("4 objects to give back") && printed.contains("nothing was written"),
        "{printed}"
    );
    let printed = scene.bed.adopt(&undo_yes).await?;
    ensure!(
        printed.contains("4 objects given back") && printed.contains("may be started again"),
        "{printed}"
    );
    are_the_same_objects(scene, &before, false).await?;
    assert_eq!(
        self::works(scene).await?,
        works,
        "Karmada has its Works as they were"
    );

    // Once more, and for good.
    let printed = scene.bed.adopt(&yes).await?;
    ensure!(printed.contains("4 objects adopted"), "{printed}");
    scene.start().await?;
    scene.until_settled(&["member1", "member2"]).await?;
    let confirm = [&adopt[..], &["--confirm"]].concat();
    let printed = scene.bed.adopt(&confirm).await?;
    ensure!(
        printed.contains("9 to delete in Karmada, 3 stay; nothing was written"),
        "{printed}"
    );
    assert_eq!(self::works(scene).await?, works, "a dry run");
    let printed = scene.bed.adopt(&[&confirm[..], &["--yes"]].concat()).await?;
    ensure!(printed.contains("9 deleted, 3 left in Karmada"), "{printed}");
    let left: Vec<String> = self::works(scene).await?.iter().map(name_of).collect();
    assert_eq!(left, [names::work_name(&scene.ns, "forged", "ConfigMap")]);
    let karmada = scene.member(KARMADA)?;
    let bindings = karmada.list("ResourceBinding", &scene.ns, "").await?;
    assert_eq!(
        bindings.iter().map(name_of).collect::<Vec<_>>(),
        ["forged-configmap"]
    );
    let policies = karmada.list("PropagationPolicy", &scene.ns, "").await?;
    assert_eq!(policies.iter().map(name_of).collect::<Vec<_>>(), ["forged"]);
    are_the_same_objects(scene, &before, true).await?;
    let printed = scene.bed.adopt(&undo).await?;
    let line = line_of(&printed, &scene.ns, "member1", "Deployment myapp");
    ensure!(
        line.ends_with("left alone: Karmada has no Work of it"),
        "{printed}"
    );

    // They are this hub's like any other copy.
    scene.delete("Deployment", "myapp").await?;
    scene.until_held("Deployment", "myapp", &[]).await?;
    scene.until_held("ConfigMap", "my-config", &[]).await?;
    for name in ["orphan", "forged"] {
        scene.delete_on("member1", "ConfigMap", name).await?;
    }
    end(scene).await
}

/// The line of an object in a table.
fn line_of<'a>(printed: &'a str, ns: &str, member: &str, object: &str) -> &'a str {
    let is_it = |line: &&str| line.contains(member) && line.contains(ns) && line.contains(object);
    printed.lines().find(is_it).unwrap_or_default()
}

fn has_failed(result: Result<String>, says: &str) -> Result<()> {
    match result {
        Ok(printed) => bail!("it must fail:\n{printed}"),
        Err(error) => {
            let error = format!("{error:#}");
            ensure!(error.contains(says), "{error}");
            Ok(())
        }
    }
}

async fn copies(scene: &Scene) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (member, kind, name) in COPIES {
        all.push(scene.copy(member, kind, name).await?);
    }
    Ok(all)
}

/// Compares the copies with what they were: no uid changed, and no controller of a member has anything to roll out. The ids are this
/// hub's, or those of Karmada.
async fn are_the_same_objects(scene: &Scene, before: &[Value], adopted: bool) -> Result<()> {
    for (copy, before) in copies(scene).await?.iter().zip(before) {
        let (now, then) = (&copy["metadata"], &before["metadata"]);
        ensure!(now["uid"] == then["uid"], "{now} {then}");
        // Not the generation: a Deployment has a new one for its annotations.
        ensure!(copy["spec"] == before["spec"], "{copy} {before}");
        let record = now["annotations"][RECORD].as_str().unwrap_or_default();
        if adopted {
            let ids = [&then["labels"][WORK_ID], &then["labels"][BINDING_ID]];
            let ids = ids.map(|id| id.as_str().unwrap_or_default());
            ensure!(record.ends_with(&ids.join("/")), "{now}");
            ensure!(now["labels"][HUB].is_string(), "{now}");
        } else {
            ensure!(record.is_empty() && now["labels"][HUB].is_null(), "{now}");
            for label in [WORK_ID, BINDING_ID, "karmada.io/managed"] {
                ensure!(now["labels"][label] == then["labels"][label], "{label}: {now}");
            }
        }
    }
    Ok(())
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

// --- Karmada

/// Renews the Lease of Karmada's controllers until it is dropped.
async fn renew(karmada: &Server) -> Result<()> {
    let path = format!("{LEASE}/karmada-controller-manager");
    for count in 1.. {
        let mut lease = karmada.call("GET", &path, None).await?;
        lease["spec"]["renewTime"] = json!(format!("2026-11-26T00:00:{:02}.000000Z", count % 60));
        match karmada.call("PUT", &path, Some(&lease)).await {
            Err(error) if status_code(&error) == 409 => {}
            result => drop(result?),
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    Ok(())
}

/// The Works of this test, with their versions.
async fn works(scene: &Scene) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for member in ["member1", "member2"] {
        let list = scene
            .member(KARMADA)?
            .call("GET", &works_of(member), None)
            .await?;
        all.extend(list["items"].as_array().cloned().unwrap_or_default());
    }
    Ok(all)
}

fn works_of(member: &str) -> String {
    let namespace = names::execution_namespace(member);
    format!("/apis/work.karmada.io/v1alpha1/namespaces/{namespace}/works")
}

/// Members and Karmada as its controllers leave them: the example, the Work of a namespace, an orphaned object, and one whose binding
/// was made again.
async fn leave_to_karmada(scene: &Scene) -> Result<()> {
    scene.bed.define_on(KARMADA).await?;
    let karmada = scene.member(KARMADA)?;
    for name in [
        scene.ns.as_str(),
        "karmada-system",
        "karmada-es-member1",
        "karmada-es-member2",
    ] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        karmada.apply(&namespace).await?;
    }
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "karmada-controller-manager", "namespace": "karmada-system"},
        "spec": {"holderIdentity": "karmada-controller-manager-1", "leaseDurationSeconds": 2,
            "renewTime": "2026-11-26T00:00:00.000000Z", "leaseTransitions": 0}});
    karmada.call("POST", LEASE, Some(&lease)).await?;
    for member in ["member1", "member2"] {
        let ours = scene.hub.get("Cluster", "", member).await?.context("a Cluster")?;
        karmada
            .create(
                &json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
                "metadata": {"name": member}, "spec": {"id": ours["spec"]["id"], "syncMode": "Push"}}),
            )
            .await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scene.ns}});
        work(scene, member, &namespace, None).await?;
    }
    let [deployment, mut policy, config] = example()?;
    finalized(&mut policy, "propagation-policy-controller", scene);
    policy["metadata"]["labels"] = json!({"propagationpolicy.karmada.io/permanent-id": "p-myapp"});
    karmada.create(&policy).await?;
    let mut other = manifests::policy_for("forged", "ConfigMap", "forged", &["member1"]);
    finalized(&mut other, "propagation-policy-controller", scene);
    other["metadata"]["labels"] = json!({"propagationpolicy.karmada.io/permanent-id": "p-forged"});
    karmada.create(&other).await?;
    for (template, claimed) in [(&deployment, Some("p-myapp")), (&config, None)] {
        binding(scene, template, claimed, &["member1", "member2"]).await?;
        for member in ["member1", "member2"] {
            let mut copy = work(scene, member, template, Some(&binding_id(template))).await?;
            if (member, &copy["kind"]) == ("member2", &json!("Deployment")) {
                copy["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:former");
            }
            scene.apply_on(member, copy).await?;
        }
    }
    let forged = manifests::config_map("forged", "kept");
    binding(scene, &forged, Some("p-forged"), &["member1"]).await?;
    let mut copy = work(scene, "member1", &forged, Some(&binding_id(&forged))).await?;
    copy["metadata"]["labels"][BINDING_ID] = json!("b-former");
    scene.apply_on("member1", copy).await?;
    let orphan = manifests::config_map("orphan", "kept");
    let orphan = copied(scene, "member1", &orphan, Some("b-orphan"));
    scene.apply_on("member1", orphan).await?;
    Ok(())
}

/// The example in the order in which it is used here.
fn example() -> Result<[Value; 3]> {
    let find = |kind: &str| {
        let mut all = manifests::example().into_iter();
        let found = all.find(|object| object["kind"] == kind);
        found.with_context(|| format!("no {kind} in the example"))
    };
    Ok([
        find("Deployment")?,
        find("PropagationPolicy")?,
        find("ConfigMap")?,
    ])
}

fn finalized(object: &mut Value, finalizer: &str, scene: &Scene) {
    object["metadata"]["namespace"] = json!(scene.ns);
    object["metadata"]["finalizers"] = json!([format!("karmada.io/{finalizer}")]);
}

fn part<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// The permanent id of the binding of a template.
fn binding_id(template: &Value) -> String {
    format!("b-{}", part(&template["metadata"], "name"))
}

fn binding_name(template: &Value) -> String {
    names::binding_name(part(template, "kind"), part(&template["metadata"], "name"))
}

/// The binding of a template. Dependencies are not claimed.
async fn binding(scene: &Scene, template: &Value, policy: Option<&str>, clusters: &[&str]) -> Result<()> {
    let name = part(&template["metadata"], "name");
    let clusters: Vec<Value> = clusters.iter().map(|name| json!({"name": name})).collect();
    let mut object = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": binding_name(template), "labels": {BINDING_ID: binding_id(template)}},
        "spec": {"resource": {"apiVersion": template["apiVersion"], "kind": template["kind"],
            "namespace": scene.ns, "name": name}, "clusters": clusters}});
    if let Some(policy) = policy {
        object["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"] = json!(policy);
    }
    finalized(&mut object, "binding-controller", scene);
    scene.member(KARMADA)?.create(&object).await?;
    Ok(())
}

/// The Work of an object on a member. Returns the object as Karmada writes it there.
async fn work(scene: &Scene, member: &str, template: &Value, binding_id: Option<&str>) -> Result<Value> {
    let copy = copied(scene, member, template, binding_id);
    let (labels, annotations) = (&copy["metadata"]["labels"], &copy["metadata"]["annotations"]);
    let mut object = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
        "metadata": {"name": annotations["work.karmada.io/name"], "namespace": annotations["work.karmada.io/namespace"],
            "labels": {WORK_ID: labels[WORK_ID]}, "finalizers": ["karmada.io/execution-controller"]},
        "spec": {"workload": {"manifests": [copy]}}});
    if binding_id.is_some() {
        object["metadata"]["labels"][BINDING_ID] = labels[BINDING_ID].clone();
        for key in [
            "resourcebinding.karmada.io/namespace",
            "resourcebinding.karmada.io/name",
        ] {
            object["metadata"]["annotations"][key] = annotations[key].clone();
        }
    }
    let karmada = scene.member(KARMADA)?;
    karmada.call("POST", &works_of(member), Some(&object)).await?;
    Ok(copy)
}

/// An object with the metadata that Karmada gives it on a member.
fn copied(scene: &Scene, member: &str, template: &Value, binding_id: Option<&str>) -> Value {
    let (kind, name) = (part(template, "kind"), part(&template["metadata"], "name"));
    let namespace = if kind == "Namespace" {
        ""
    } else {
        scene.ns.as_str()
    };
    let mut copy = template.clone();
    let labels = &mut copy["metadata"]["labels"];
    labels["karmada.io/managed"] = json!("true");
    // Short whatever the names are: the value of a label.
    let number = names::fnv1a_32(format!("{kind}/{namespace}/{name}").as_bytes());
    labels[WORK_ID] = json!(format!("w-{member}-{number:x}"));
    let mut annotations = json!({
        "work.karmada.io/namespace": names::execution_namespace(member),
        "work.karmada.io/name": names::work_name(namespace, name, kind),
        "work.karmada.io/conflict-resolution": "abort",
        "resourcetemplate.karmada.io/uid": "5d7f1ae4-0000-4000-8000-000000000001",
    });
    if let Some(id) = binding_id {
        labels[BINDING_ID] = json!(id);
        annotations["resourcebinding.karmada.io/namespace"] = json!(scene.ns);
        annotations["resourcebinding.karmada.io/name"] = json!(binding_name(template));
    }
    annotations["resourcetemplate.karmada.io/managed-labels"] = json!(keys_of(labels));
    annotations["resourcetemplate.karmada.io/managed-annotations"] = json!("");
    let listed = keys_of(&annotations);
    annotations["resourcetemplate.karmada.io/managed-annotations"] = json!(listed);
    copy["metadata"]["annotations"] = annotations;
    if !namespace.is_empty() {
        copy["metadata"]["namespace"] = json!(namespace);
    }
    copy
}

/// The list of what is set, as Karmada keeps it.
fn keys_of(map: &Value) -> String {
    let keys = map.as_object().into_iter().flat_map(|map| map.keys());
    keys.cloned().collect::<Vec<_>>().join(",")
}

/// Takes Karmada off the member again: other tests use it, too.
async fn end(scene: &Scene) -> Result<()> {
    let karmada = scene.member(KARMADA)?;
    let forged = names::work_name(&scene.ns, "forged", "ConfigMap");
    let bare = |object: &mut Value| object["metadata"]["finalizers"] = json!([]);
    let path = format!("{}/{forged}", works_of("member1"));
    let mut object = karmada.call("GET", &path, None).await?;
    bare(&mut object);
    karmada.call("PUT", &path, Some(&object)).await?;
    for (kind, name) in [
        ("ResourceBinding", "forged-configmap"),
        ("PropagationPolicy", "forged"),
    ] {
        karmada.edit(kind, &scene.ns, name, bare).await?;
    }
    let lease = format!("{LEASE}/karmada-controller-manager");
    karmada.call("DELETE", &lease, None).await?;
    for definition in crds(None) {
        let name = definition.metadata.name.unwrap_or_default();
        karmada.delete("CustomResourceDefinition", "", &name).await?;
    }
    Ok(())
}
