//! Servers that are restored from a backup: their versions are counted anew from there, and nobody starts us again.

use entourage_core::{
    object::Gvk,
    observation::{Server, Watch},
};
use serde_json::{Value, json};

use crate::{
    config_map, deployment,
    overrides::{of_config, override_policy, sets},
    policy_of,
    proof::orders,
    settled,
    world::World,
};

/// A user's object in all its parts.
fn change(world: &mut World, kind: &str, name: &str, change: impl FnOnce(&mut Value)) {
    let mut object = world.hub_object(kind, name).expect("object").clone();
    change(&mut object);
    world.replace(object);
}

/// Something of each kind, a backup, and much that happens after it.
fn disturbed() -> World {
    let mut world = settled();
    world.apply(of_config(override_policy(
        "o",
        &sets("member1", "/data/key", "before"),
    )));
    world.apply(config_map("red", "a"));
    world.apply(config_map("blue", "a"));
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member1"]));
    assert!(world.settle());
    let backup = world.backup();
    for n in 0..20 {
        world.apply(config_map("blue", &format!("b{n}")));
    }
    world.apply(of_config(override_policy(
        "o",
        &sets("member1", "/data/key", "after"),
    )));
    world.apply(policy_of("p", "v1", "ConfigMap", "red", &["member2"]));
    world.apply(policy_of("made", "v1", "ConfigMap", "blue", &["member2"]));
    change(&mut world, "Cluster", "member2", |cluster| {
        cluster["metadata"]["labels"] = json!({"zone": "b"});
    });
    world.apply(deployment("second", &["red"]));
    world.delete("ConfigMap", "my-config");
    assert!(world.settle_for(120_000));
    assert_eq!(world.holders("ConfigMap", "blue"), ["member2"]);
    assert_eq!(world.holders("ConfigMap", "red"), ["member2"]);
    world.restore(&backup);
    world
}

fn afterwards(world: &mut World) {
    assert!(world.settle_for(120_000));
    world.apply(of_config(override_policy(
        "o",
        &sets("member1", "/data/key", "later"),
    )));
    world.apply(config_map("red", "later"));
    assert!(world.settle_for(120_000));
}

#[test]
fn servers_that_are_restored_lead_to_the_same_end_as_a_restart() {
    let (mut world, mut restarted) = (disturbed(), disturbed());
    restarted.restart();
    for each in [&mut world, &mut restarted] {
        assert!(each.settle_for(120_000));
        assert_eq!(each.holders("ConfigMap", "red"), ["member1"]);
        assert!(each.holders("ConfigMap", "blue").is_empty());
        assert!(each.hub_object("PropagationPolicy", "made").is_none());
        let copy = each.on("member1", "ConfigMap", "my-config").expect("copy");
        assert_eq!(copy["data"]["key"], "before");
    }
    assert_eq!(world.outline(), restarted.outline());
    for each in [&mut world, &mut restarted] {
        afterwards(each);
        let copy = each.on("member1", "ConfigMap", "my-config").expect("copy");
        assert_eq!(copy["data"]["key"], "later");
        let copy = each.on("member1", "ConfigMap", "red").expect("copy");
        assert_eq!(copy["data"]["key"], "later");
    }
    assert_eq!(world.outline(), restarted.outline());
}

#[test]
fn a_generation_that_is_counted_twice_brings_both_contents_to_the_members() {
    let mut world = settled();
    let backup = world.backup();
    let scale = |world: &mut World, count: i64| {
        let name = crate::example()[0]["metadata"]["name"].clone();
        let name = name.as_str().expect("name").to_owned();
        change(world, "Deployment", &name, |each| {
            each["spec"]["replicas"] = json!(count)
        });
        name
    };
    scale(&mut world, 7);
    assert!(world.settle());
    // The members are as they are: only what the hub says goes back.
    let members: Vec<_> = world.members.keys().cloned().collect();
    let held: Vec<_> = members.iter().map(|each| world.members[each].clone()).collect();
    world.restore(&backup);
    for (name, objects) in members.iter().zip(held) {
        world.members.insert(name.clone(), objects);
    }
    let name = scale(&mut world, 5);
    assert!(world.settle_for(120_000));
    for member in ["member1", "member2"] {
        let copy = world.on(member, "Deployment", &name).expect("copy");
        assert_eq!(copy["spec"]["replicas"], 5, "{member}");
    }
}

#[test]
fn what_a_restored_hub_never_had_stays_on_members_in_whatever_order_its_lists_come() {
    let kind = Watch::Templates(Gvk::new("v1", "ConfigMap"));
    let all = orders(&[kind, Watch::Bindings, Watch::Policies, Watch::Clusters]);
    // Whether it was reported that the watches failed, or each of them is merely listed again in its own time.
    for (order, reported) in all.iter().flat_map(|order| [(order, true), (order, false)]) {
        let mut world = settled();
        let backup = world.backup();
        world.apply(config_map("blue", "a"));
        world.apply(policy_of("made", "v1", "ConfigMap", "blue", &["member2"]));
        assert!(world.settle());
        assert_eq!(world.holders("ConfigMap", "blue"), ["member2"]);
        // Enough for the restored hub not to have come as far before all watches have listed.
        for n in 0..100 {
            world.apply(config_map("other", &n.to_string()));
        }
        world.bookmark();
        for watch in world.process.engine.demand().clone() {
            if watch.server() != Server::Hub {
                continue;
            }
            if reported {
                world.lose(watch);
            } else {
                world.shut.insert(watch);
            }
        }
        world.restore_hub(&backup);
        if reported {
            world.shut.retain(|watch| order.contains(watch));
            assert!(world.settle());
        }
        for watch in order {
            world.shut.remove(watch);
            assert!(world.settle_for(120_000));
        }
        world.shut.clear();
        assert!(world.settle_for(120_000));
        let holders = world.holders("ConfigMap", "blue");
        assert_eq!(holders, ["member2"], "{order:?}, reported: {reported}");
        let holders = world.holders("ConfigMap", "my-config");
        assert_eq!(holders, ["member1", "member2"], "{order:?}, reported: {reported}");
    }
}
