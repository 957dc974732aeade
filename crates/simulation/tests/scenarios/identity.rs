//! The physical cluster of a Cluster: nothing is written to or removed from another one, or through two Clusters.

use serde_json::{Value, json};

use crate::{config_map, deployment, policy, policy_of, settled, world::World};

fn cluster(name: &str, id: &str) -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
        "spec": {"id": id, "syncMode": "Push", "apiEndpoint": "https://x"},
    })
}

fn ready<'a>(world: &'a World, name: &str) -> &'a Value {
    let cluster = world.hub_object("Cluster", name).expect("Cluster");
    let conditions = cluster["status"]["conditions"].as_array().expect("conditions");
    conditions
        .iter()
        .find(|each| each["type"] == "Ready")
        .expect("Ready")
}

fn writes_on(world: &World, member: &str, since: usize) -> Vec<String> {
    let of_it = |write: &&String| write.starts_with(&format!("{member} "));
    world.writes[since..].iter().filter(of_it).cloned().collect()
}

#[test]
fn a_cluster_without_an_id_gets_that_of_the_cluster_that_answers() {
    let mut world = World::new(&["member1"]);
    let mut empty = world.hub_object("Cluster", "member1").expect("Cluster").clone();
    empty["spec"]["id"] = json!("");
    world.replace(empty);
    assert!(world.settle());
    let stored = world.hub_object("Cluster", "member1").expect("Cluster");
    assert_eq!(stored["spec"]["id"], "id-member1");
    let wrote = world.writes.len();
    world.restart();
    assert!(world.settle());
    assert_eq!(world.writes.len(), wrote, "{:#?}", &world.writes[wrote..]);
}

#[test]
fn nothing_is_written_through_the_younger_of_two_clusters_until_the_older_one_is_gone() {
    for restart in [false, true] {
        let mut world = settled();
        world.now = world.now.plus(5_000);
        world.members.insert("twice".into(), Default::default());
        world.ids.insert("twice".into(), "id-member3".into());
        world.apply(cluster("twice", ""));
        world.restart();
        let from = world.writes.len();
        world.apply(policy(&["member1", "member3", "twice"]));
        assert!(world.settle());
        if restart {
            world.restart();
            assert!(world.settle());
        }
        let condition = ready(&world, "twice");
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["reason"], "ClusterIDConflict");
        assert!(
            condition["message"]
                .as_str()
                .is_some_and(|words| words.contains("member3"))
        );
        assert_eq!(ready(&world, "member3")["status"], "True");
        assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member3"]);
        assert_eq!(writes_on(&world, "twice", from), Vec::<String>::new());
        world.apply(policy(&["member1", "twice"]));
        assert!(world.settle());
        world.delete("Cluster", "member3");
        assert!(world.settle());
        assert!(world.hub_object("Cluster", "member3").is_none());
        assert_eq!(ready(&world, "twice")["status"], "True");
        assert_eq!(world.holders("Deployment", "myapp"), ["member1", "twice"]);
    }
}

#[test]
fn the_younger_of_two_clusters_can_be_deleted_although_it_had_copies() {
    let mut world = settled();
    let copies = world.members["member2"].clone();
    // It turns out only now: the older one could not be reached before.
    world.become_another("member1", "id-member2");
    let mut same = world.hub_object("Cluster", "member1").expect("Cluster").clone();
    same["spec"]["id"] = json!("id-member2");
    world.replace(same);
    assert!(world.settle());
    assert_eq!(ready(&world, "member2")["reason"], "ClusterIDConflict");
    let from = world.writes.len();
    world.delete("Cluster", "member2");
    assert!(world.settle());
    assert!(world.hub_object("Cluster", "member2").is_none());
    assert_eq!(*world.members["member2"], *copies);
    assert_eq!(writes_on(&world, "member2", from), Vec::<String>::new());
}

#[test]
fn nothing_is_written_to_another_cluster_behind_the_same_endpoint_until_that_is_meant() {
    for restart in [false, true] {
        let mut world = settled();
        world.set_down("member2", true);
        world.now = world.now.plus(1_000);
        let replaced = world.members.get_mut("member2").expect("member");
        let before = std::mem::take(replaced);
        world.become_another("member2", "id-new");
        let from = world.writes.len();
        world.apply(config_map("my-config", "two"));
        world.apply(deployment("myapp", &[]));
        if restart {
            world.restart();
        }
        assert!(world.settle());
        assert_eq!(ready(&world, "member2")["reason"], "ClusterIDChanged");
        assert_eq!(writes_on(&world, "member2", from), Vec::<String>::new());
        // The right one answers again.
        world
            .members
            .get_mut("member2")
            .expect("member")
            .clone_from(&before);
        world.become_another("member2", "");
        assert!(world.settle());
        assert_eq!(ready(&world, "member2")["status"], "True");
        assert!(!writes_on(&world, "member2", from).is_empty());
        // Another one, and it is meant.
        world.members.get_mut("member2").expect("member").clear();
        world.become_another("member2", "id-new");
        assert!(world.settle());
        assert_eq!(world.on("member2", "Deployment", "myapp"), None);
        let mut meant = world.hub_object("Cluster", "member2").expect("Cluster").clone();
        meant["spec"]["id"] = json!("id-new");
        world.replace(meant);
        world.set_down("member2", false);
        assert!(world.settle());
        assert_eq!(ready(&world, "member2")["status"], "True");
        assert_eq!(world.holders("Deployment", "myapp"), ["member1", "member2"]);
    }
}

#[test]
fn a_cluster_that_is_joined_again_manages_its_old_copies_again() {
    let mut world = settled();
    world.apply(config_map("alone", "one"));
    world.apply(policy_of(
        "alone",
        "v1",
        "ConfigMap",
        "alone",
        &["member1", "member2"],
    ));
    assert!(world.settle());
    let copies = world.members["member2"].clone();
    // As `unjoin --force`: the copies stay as they are.
    let mut forced = world.hub_object("Cluster", "member2").expect("Cluster").clone();
    world.set_down("member2", true);
    forced["metadata"]["finalizers"] = json!([]);
    world.replace(forced);
    world.delete("Cluster", "member2");
    assert!(world.settle());
    assert!(world.hub_object("Cluster", "member2").is_none());
    world.apply(cluster("member2", "id-member2"));
    world.set_down("member2", false);
    let from = world.writes.len();
    assert!(world.settle());
    assert_eq!(*world.members["member2"], *copies);
    assert_eq!(writes_on(&world, "member2", from), Vec::<String>::new());
    assert_eq!(world.process.engine.stats().copied, 0);
    world.apply(policy_of("alone", "v1", "ConfigMap", "alone", &["member1"]));
    assert!(world.settle());
    assert_eq!(world.holders("ConfigMap", "alone"), ["member1"]);
}
