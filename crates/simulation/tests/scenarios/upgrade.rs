//! Upgrades: a process of this version starts on the state that an earlier version left. Nothing is written on members, and on
//! the hub only what `testdata/upgrade/VERSION/writes.txt` declares.

mod given;
mod recorded;

use serde_json::{Value, json};

use crate::world::{World, setting};

/// Settles, and returns the writes of that: on members, and on the hub in the order of the alphabet.
fn writes(world: &mut World) -> (Vec<String>, Vec<String>) {
    let from = world.writes.len();
    assert!(world.settle_for(120_000));
    let (mut on_hub, on_members): (Vec<_>, Vec<_>) = world.writes[from..]
        .iter()
        .cloned()
        .partition(|each| each.starts_with("hub "));
    on_hub.sort();
    (on_members, on_hub)
}

/// A world of each recorded version after the upgrade.
fn upgraded() -> impl Iterator<Item = (String, World)> {
    recorded::versions().into_iter().map(|version| {
        let mut world = recorded::loaded(&version);
        assert!(world.settle_for(120_000), "{version}");
        (version, world)
    })
}

fn data<'a>(world: &'a World, member: &str, name: &str) -> &'a Value {
    let copy = world.on(member, "ConfigMap", name);
    &copy.unwrap_or_else(|| panic!("{name} on {member}"))["data"]["key"]
}

/// Writes the state that this version leaves for later ones: `ENTOURAGE_RECORD=0.2.0 cargo nextest run -p
/// entourage-simulation upgrade`, as part of a release.
#[test]
fn the_state_of_this_version_is_recorded_for_a_release_and_read_back_without_a_write() {
    let world = given::evicting();
    let state = recorded::state_of(&world);
    if let Some(version) = setting("ENTOURAGE_RECORD") {
        recorded::record(&version, &state);
    }
    let mut world = recorded::world_of(&state);
    assert_eq!(writes(&mut world), (vec![], vec![]));
}

#[test]
fn an_upgrade_writes_nothing_on_members_and_on_the_hub_only_what_is_declared() {
    let versions = recorded::versions();
    assert!(!versions.is_empty());
    for version in versions {
        let mut world = recorded::loaded(&version);
        let held: Vec<_> = world.members.values().cloned().collect();
        let (on_members, on_hub) = writes(&mut world);
        assert_eq!(on_members, Vec::<String>::new(), "on members, from {version}");
        assert_eq!(on_hub, recorded::declared(&version), "on the hub, from {version}");
        assert!(world.members.values().eq(&held), "members differ, from {version}");
    }
}

#[test]
fn a_restart_after_an_upgrade_writes_nothing() {
    for (version, mut world) in upgraded() {
        world.restart();
        assert_eq!(writes(&mut world), (vec![], vec![]), "from {version}");
    }
}

#[test]
fn a_crash_after_any_write_of_an_upgrade_leads_to_the_same_end() {
    for (version, calm) in upgraded() {
        for k in 1..=calm.writes.len() {
            let mut world = recorded::loaded(&version);
            world.crash_in = Some(k);
            if !world.settle_for(120_000) {
                world.restart();
                assert!(world.settle_for(120_000));
            }
            let on_members = world.writes.iter().filter(|each| !each.starts_with("hub "));
            assert_eq!(on_members.count(), 0, "from {version}, crash after {k}");
            assert_eq!(world.outline(), calm.outline(), "from {version}, crash after {k}");
        }
    }
}

#[test]
fn templates_that_an_earlier_version_propagated_are_updated_and_deleted_by_this_one() {
    for (version, mut world) in upgraded() {
        for (name, value) in [("my-config", "two"), ("of-orphaned", "two")] {
            let mut template = world.hub_object("ConfigMap", name).expect("template").clone();
            template["data"]["key"] = json!(value);
            world.replace(template);
        }
        assert!(world.settle_for(120_000));
        assert_eq!(data(&world, "member1", "my-config"), "of member1", "{version}");
        assert_eq!(data(&world, "member3", "my-config"), "two", "{version}");
        assert_eq!(data(&world, "member4", "of-orphaned"), "two", "{version}");

        for name in ["myapp", "divided", "orphaned", "kept"] {
            world.delete("Deployment", name);
        }
        world.delete("ConfigMap", "foreign");
        assert!(world.settle_for(120_000));
        for (kind, name) in [
            ("Deployment", "myapp"),
            ("Deployment", "divided"),
            ("Deployment", "orphaned"),
            ("ConfigMap", "my-config"),
            ("ConfigMap", "of-orphaned"),
            ("Secret", "registry"),
            ("ServiceAccount", "runner"),
        ] {
            let holders = world.holders(kind, name);
            assert!(holders.is_empty(), "{kind} {name} on {holders:?}, from {version}");
        }
        assert_eq!(
            world.holders("Deployment", "kept"),
            ["member3"],
            "it is preserved, from {version}"
        );
        assert_eq!(
            data(&world, "member2", "foreign"),
            "theirs",
            "it is not managed, from {version}"
        );
    }
}

#[test]
fn evictions_that_an_earlier_version_began_are_ended_by_this_one_when_the_replacement_is_healthy() {
    let moved = ("Deployment", "moved");
    let of_moved = ("ConfigMap", "of-moved");
    let began: Vec<_> = upgraded()
        .filter(|(_, world)| world.hub_object(moved.0, moved.1).is_some())
        .collect();
    assert!(!began.is_empty());
    for (version, mut world) in began {
        for (kind, name) in [moved, of_moved] {
            assert_eq!(
                world.holders(kind, name),
                ["member5", "member6"],
                "from {version}"
            );
        }
        given::report(&mut world, "member6", moved.1, 1);
        assert!(world.settle_for(120_000));
        for (kind, name) in [moved, of_moved] {
            assert_eq!(world.holders(kind, name), ["member6"], "from {version}");
        }
    }
}

#[test]
fn copies_that_an_earlier_version_distributed_are_updated_and_deleted_by_this_one() {
    let copies = |world: &World| -> Vec<Value> {
        let of_it = world.hub.iter().filter(|(id, _)| &*id.name == "settings");
        let of_it = of_it.filter(|(id, _)| &*id.gvk.kind == "ConfigMap");
        of_it.map(|(_, copy)| copy["data"]["key"].clone()).collect()
    };
    for (version, mut world) in upgraded() {
        let mut distribution = world
            .hub_object("ResourceDistribution", "settings")
            .expect("distribution")
            .clone();
        distribution["spec"]["resource"]["data"]["key"] = json!("two");
        world.replace(distribution);
        assert!(world.settle_for(120_000));
        assert_eq!(copies(&world), ["two", "two"], "from {version}");
        world.delete("ResourceDistribution", "settings");
        assert!(world.settle_for(120_000));
        assert_eq!(copies(&world), Vec::<Value>::new(), "from {version}");
    }
}
