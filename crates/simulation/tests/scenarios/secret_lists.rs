//! Allow-lists of Secrets: what they keep away, what is reported about it, and what an edit of them removes.

use std::collections::BTreeSet;

use entourage_api::work::NotAppliedReason;
use entourage_core::{
    inspection::{explanation::Presence, secrets::secrets},
    object::Meta,
    observation::{Observation, Subject, Watch},
    plan::Key,
};
use serde_json::{Value, json};

use crate::{
    binding, condition,
    customizations::quiet,
    deployment,
    distributions::status,
    given::policy_of,
    policy,
    world::{World, id},
};

const KEY: &str = "entourage.dev/secrets-to";

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"token": "Yg=="}})
}

/// The namespace of the objects, with this list; `None`: without.
fn namespace(list: Option<&str>) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    if let Some(list) = list {
        object["metadata"]["annotations"] = json!({ KEY: list });
    }
    object
}

/// A workload on two members that needs the Secret "login".
fn workload() -> Value {
    let mut object = deployment("myapp", &[]);
    let volumes = json!([{"name": "login", "secret": {"secretName": "login"}}]);
    object["spec"]["template"]["spec"]["volumes"] = volumes;
    object
}

/// Three members, the second of which is labelled, and the workload on two of them.
fn world(list: Option<&str>) -> World {
    let mut world = World::new(&["member1", "member2", "member3"]);
    label(&mut world, "member2", &json!({"env": "prod"}));
    world.apply(namespace(list));
    world.apply(secret("login"));
    world.apply(workload());
    world.apply(policy(&["member1", "member2"]));
    assert!(world.settle());
    world
}

fn label(world: &mut World, cluster: &str, labels: &Value) {
    let mut object = world.hub_object("Cluster", cluster).expect("cluster").clone();
    object["metadata"]["labels"] = labels.clone();
    world.replace(object);
}

fn list(world: &mut World, list: Option<&str>) {
    world.replace(namespace(list));
    assert!(world.settle_for(60_000));
}

fn holders(world: &World) -> Vec<&str> {
    world.holders("Secret", "login")
}

/// The reason and the message about a cluster in the status of the Secret's binding.
fn reported(world: &World, cluster: &str) -> (Value, String) {
    let all = binding(world, "login-secret")["status"]["aggregatedStatus"].clone();
    let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
    let item = all
        .find(|item| item["clusterName"] == cluster)
        .unwrap_or_default();
    let message = item["appliedMessage"].as_str().unwrap_or_default();
    (item["appliedReason"].clone(), message.to_owned())
}

fn events(world: &World) -> usize {
    let of_it = |each: &&String| each.contains("SecretNotAllowed");
    world.events.iter().filter(of_it).count()
}

#[test]
fn a_dependency_goes_only_to_the_clusters_that_its_namespace_lists() {
    let table: [(Option<&str>, &[&str]); 7] = [
        (None, &["member1", "member2"]),
        (Some(""), &[]),
        (Some("member1"), &["member1"]),
        (Some("env=prod"), &["member2"]),
        (Some("member3, env=prod&zone=a"), &[]),
        (Some("member1, env=prod"), &["member1", "member2"]),
        (Some("env in (prod)"), &[]),
    ];
    for (list, wanted) in table {
        let mut world = world(list);
        assert_eq!(holders(&world), wanted, "{list:?}");
        assert_eq!(
            world.holders("Deployment", "myapp"),
            ["member1", "member2"],
            "workloads do not wait for what never comes: {list:?}"
        );
        quiet(&mut world);
        assert_eq!(holders(&world), wanted, "{list:?}, restarted");
    }
}

#[test]
fn what_a_list_keeps_away_is_reported_once_with_the_annotation_and_the_remedy() {
    let mut world = world(Some("member1"));
    let (reason, message) = reported(&world, "member2");
    assert_eq!(reason, json!(NotAppliedReason::NotAllowed));
    for word in [
        "Secret default/login",
        "member2",
        KEY,
        "Namespace default",
        "add the cluster",
    ] {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert_eq!(
        condition(&world, "login-secret", "FullyApplied")["status"],
        "False"
    );
    let ready = condition(&world, "myapp-deployment", "DependenciesReady");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("NotDelivered"))
    );
    assert!(
        ready["message"]
            .as_str()
            .is_some_and(|message| message.contains(KEY)),
        "{ready}"
    );
    assert_eq!(events(&world), 1);
    quiet(&mut world);
    assert_eq!(events(&world), 1);
    list(&mut world, Some("member1,member2"));
    assert_eq!(
        condition(&world, "login-secret", "FullyApplied")["status"],
        "True"
    );
    assert_eq!(
        condition(&world, "myapp-deployment", "DependenciesReady")["status"],
        "True"
    );
    assert_eq!(events(&world), 1);
    list(&mut world, Some("member2"));
    assert_eq!(events(&world), 2);
}

#[test]
fn a_policy_of_its_own_does_not_take_a_secret_past_the_list() {
    let mut world = World::new(&["member1", "member2"]);
    world.apply(namespace(Some("member2")));
    world.apply(secret("login"));
    world.apply(policy_of(
        "login",
        "v1",
        "Secret",
        "login",
        &["member1", "member2"],
    ));
    assert!(world.settle());
    assert_eq!(holders(&world), ["member2"]);
    assert_eq!(reported(&world, "member1").0, json!(NotAppliedReason::NotAllowed));
    list(&mut world, None);
    assert_eq!(holders(&world), ["member1", "member2"]);
}

#[test]
fn a_shorter_list_removes_the_copies_that_it_leaves_out_and_a_longer_one_brings_them_back() {
    let mut world = world(None);
    for (text, wanted) in [
        (Some("member1"), &["member1"][..]),
        (Some("member1,env=prod"), &["member1", "member2"]),
        (Some(""), &[]),
        (None, &["member1", "member2"]),
    ] {
        list(&mut world, text);
        assert_eq!(holders(&world), wanted, "{text:?}");
        quiet(&mut world);
        assert_eq!(holders(&world), wanted, "{text:?}, restarted");
    }
}

#[test]
fn a_list_that_cannot_be_read_sends_nothing_and_removes_nothing() {
    let mut world = world(Some("member1"));
    list(&mut world, Some("member1,env==prod"));
    assert_eq!(holders(&world), ["member1"]);
    let (reason, message) = reported(&world, "member1");
    assert_eq!(reason, json!(NotAppliedReason::NotAllowed));
    assert!(
        message.contains("cannot be read") && message.contains("env==prod"),
        "{message}"
    );
    let mut other = secret("login");
    other["data"]["token"] = json!("Yw==");
    world.apply(other);
    assert!(world.settle_for(60_000));
    let value =
        |world: &World| world.on("member1", "Secret", "login").expect("copy")["data"]["token"].clone();
    assert_eq!(value(&world), "Yg==", "no other value is sent either");
    quiet(&mut world);
    list(&mut world, Some("member1"));
    assert_eq!(value(&world), "Yw==");
}

#[test]
fn a_secret_narrows_the_list_of_its_namespace_and_does_not_widen_it() {
    let mut world = world(None);
    for (of_namespace, own, wanted) in [
        (None, Some("member2"), &["member2"][..]),
        (Some("member1"), Some("member2"), &[]),
        (Some("member1"), Some("member1,member2"), &["member1"]),
        (Some("member1,member2"), Some(""), &[]),
        (Some("member2"), None, &["member2"]),
    ] {
        let mut object = world.hub_object("Secret", "login").expect("secret").clone();
        object["metadata"]["annotations"] = match own {
            Some(own) => json!({ KEY: own }),
            None => json!({}),
        };
        world.replace(object);
        list(&mut world, of_namespace);
        assert_eq!(holders(&world), wanted, "{of_namespace:?} {own:?}");
        quiet(&mut world);
    }
}

#[test]
fn labels_of_a_cluster_put_it_on_the_list_and_take_it_off() {
    let mut world = world(Some("env=prod"));
    assert_eq!(holders(&world), ["member2"]);
    label(&mut world, "member1", &json!({"env": "prod"}));
    assert!(world.settle_for(60_000));
    assert_eq!(holders(&world), ["member1", "member2"]);
    label(&mut world, "member2", &json!({"env": "dev"}));
    assert!(world.settle_for(60_000));
    assert_eq!(holders(&world), ["member1"]);
    assert_eq!(
        condition(&world, "myapp-deployment", "DependenciesReady")["status"],
        "False"
    );
    quiet(&mut world);
}

#[test]
fn an_edit_of_one_namespace_plans_the_secrets_of_that_namespace_alone() {
    let mut world = world(None);
    for (space, name) in [("default", "other"), ("vault", "login")] {
        let mut object = secret(name);
        object["metadata"]["namespace"] = json!(space);
        world.apply(object);
    }
    assert!(world.settle());
    let mut listed = world.hub[&id("Namespace", "", "default")].clone();
    listed["metadata"]["annotations"] = json!({ KEY: "member1" });
    listed["metadata"]["resourceVersion"] = json!("999999");
    let meta = Meta::of(&listed);
    let seen = Subject::Namespace("default".into(), meta);
    let now = world.now;
    let dirty = world.process.engine.observe(Observation::Seen(seen), now);
    let ids = dirty.iter().filter_map(|key| match key {
        Key::Copy(id, _) | Key::Binding(id) => Some(id),
        _ => None,
    });
    let secrets: BTreeSet<String> = ids.map(ToString::to_string).collect();
    let wanted = ["Secret default/login", "Secret default/other"];
    assert!(secrets.iter().all(|id| wanted.contains(&&**id)), "{secrets:?}");
    assert!(secrets.contains("Secret default/login"), "{secrets:?}");
}

#[test]
fn nothing_is_removed_because_of_a_list_while_namespaces_are_not_synced() {
    let mut world = world(None);
    world.lose(Watch::Namespaces);
    world.shut.insert(Watch::Namespaces);
    world.replace(namespace(Some("")));
    assert!(world.settle_for(60_000));
    assert_eq!(holders(&world), ["member1", "member2"], "it is not known yet");
    world.shut.clear();
    assert!(world.settle_for(60_000));
    assert_eq!(holders(&world), [] as [&str; 0]);
}

#[test]
fn many_secrets_that_one_edit_revokes_are_removed_at_once_and_those_of_a_list_pause() {
    let many = 60;
    let mut world = World::new(&["member1"]);
    world.apply(namespace(None));
    let mut all = policy_of("all", "v1", "Secret", "", &["member1"]);
    all["spec"]["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "Secret"}]);
    world.apply(all);
    for number in 0..many {
        world.apply(secret(&format!("key{number:02}")));
    }
    assert!(world.settle());
    let held = |world: &World| {
        let of_it = world.members["member1"].keys();
        of_it.filter(|id| &*id.gvk.kind == "Secret").count()
    };
    assert_eq!(held(&world), many);
    list(&mut world, Some(""));
    assert_eq!(held(&world), 0, "the owner's edit explains it");
    list(&mut world, None);
    assert_eq!(held(&world), many);
    // The edit is not observed: after a start the list shows it, and it may be a restore.
    let key = id("Namespace", "", "default");
    let mut object = world.hub[&key].clone();
    object["metadata"]["annotations"] = json!({ KEY: "" });
    world.hub.insert(key, object);
    world.restart();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), many - 20);
    world.release_removals();
    assert!(world.settle_for(600_000));
    assert_eq!(held(&world), 0);
}

/// A Secret that is distributed to the namespace "app" of two members.
fn distributed() -> World {
    let mut world = World::distributing(&["member1", "member2"]);
    world.apply(namespace(None));
    let app = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}});
    world.apply(app.clone());
    let mut source = secret("login");
    source["metadata"]["annotations"] = json!({"entourage.dev/distribution-allowed": "*"});
    world.apply(source);
    for member in ["member1", "member2"] {
        world.meddle_at(member, &id("Namespace", "", "app"), |_| Some(app.clone()));
    }
    world.apply(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": "d"},
        "spec": {
            "resourceFrom": {"kind": "Secret", "namespace": "default", "name": "login"},
            "targets": {"includedNamespaces": {"list": [{"name": "app"}]}, "clusters": {"clusterNames": ["member1", "member2"]}},
        },
    }));
    assert!(world.settle());
    assert_eq!(distributed_to(&world), ["member1", "member2"]);
    world
}

/// The members that have the distributed copy.
fn distributed_to(world: &World) -> Vec<String> {
    let has = |member: &&str| world.at(member, &id("Secret", "app", "login")).is_some();
    ["member1", "member2"]
        .iter()
        .filter(|member| has(member))
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_distribution_follows_the_list_of_its_source() {
    let mut world = distributed();
    for (text, wanted) in [
        (Some("member1"), &["member1"][..]),
        (Some("member1,*"), &["member1"]),
        (Some(""), &[]),
        (None, &["member1", "member2"]),
    ] {
        list(&mut world, text);
        assert_eq!(distributed_to(&world), wanted, "{text:?}");
        let reported = status(&world, "d").to_string();
        assert_eq!(reported.contains(KEY), text.is_some(), "{text:?}: {reported}");
        quiet(&mut world);
        assert_eq!(distributed_to(&world), wanted, "{text:?}, restarted");
    }
}

#[test]
fn a_distributed_copy_is_taken_back_whichever_watch_is_synced_last() {
    for last in [Watch::Bindings, Watch::ClusterBindings] {
        let mut world = distributed();
        let key = id("Namespace", "", "default");
        let mut object = world.hub[&key].clone();
        object["metadata"]["annotations"] = json!({ KEY: "" });
        world.hub.insert(key, object);
        world.shut.insert(last.clone());
        world.restart();
        assert!(world.settle_for(60_000));
        world.shut.clear();
        assert!(world.settle_for(60_000));
        assert_eq!(distributed_to(&world), [""; 0], "{last:?}");
    }
}

#[test]
fn an_audit_does_not_say_that_a_secret_is_away_before_it_is() {
    let mut world = world(None);
    let audit = |world: &World| -> Vec<(String, Presence, String)> {
        let all = secrets(&world.process.engine, "default", world.now);
        let all = all.into_iter().map(|each| {
            let because: Vec<String> = each
                .because
                .iter()
                .map(|cause| cause.object.to_string())
                .collect();
            (
                each.cluster
                    .map(|cluster| cluster.to_string())
                    .unwrap_or_default(),
                each.presence,
                because.join(", "),
            )
        });
        all.collect()
    };
    let on = |cluster: &str, presence| {
        (
            cluster.to_owned(),
            presence,
            "Deployment default/myapp".to_owned(),
        )
    };
    assert_eq!(
        audit(&world),
        [on("member1", Presence::Present), on("member2", Presence::Present)]
    );
    world.set_down("member2", true);
    world.replace(namespace(Some("member1")));
    assert!(world.settle_for(120_000));
    assert_eq!(holders(&world), ["member1", "member2"], "nobody can delete it");
    let (_, presence, _) = audit(&world).remove(1);
    assert!(
        !matches!(presence, Presence::KeptAway | Presence::Absent),
        "{presence:?}"
    );
    world.set_down("member2", false);
    assert!(world.settle_for(120_000));
    assert_eq!(holders(&world), ["member1"]);
    assert_eq!(
        audit(&world),
        [
            on("member1", Presence::Present),
            on("member2", Presence::KeptAway)
        ]
    );
}
