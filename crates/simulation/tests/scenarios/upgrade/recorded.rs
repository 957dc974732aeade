//! Recorded states: everything on the hub and on its members, as a version left it, in `testdata/upgrade/VERSION`.
//!
//! A release records its own state. Those of commits before the first release were recorded by their own code, with `given.rs`
//! in its scenario tests; their `writes.txt` names the commit.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use entourage_core::object::Time;
use serde_json::{Value, json};

use crate::world::{World, id_of};

/// The versions whose state is recorded, the oldest first.
pub(crate) fn versions() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("testdata/upgrade");
    let names = entries.map(|each| each.expect("entry").file_name().into_string().expect("name"));
    let mut all: Vec<String> = names.collect();
    all.sort();
    all
}

/// The writes on the hub that an upgrade from a version makes, in the order of the alphabet. Each paragraph begins with the
/// reason of its writes.
pub(crate) fn declared(version: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(version).join("writes.txt")).expect("writes.txt");
    let mut all = Vec::new();
    for paragraph in text.split("\n\n") {
        assert!(paragraph.starts_with('#'), "{version}, no reason: {paragraph}");
        let writes = paragraph.lines().filter(|line| !line.starts_with('#'));
        all.extend(writes.map(str::to_owned));
    }
    all.sort();
    all
}

/// A world as a version left it, a minute later; a process of this version is about to start.
pub(crate) fn loaded(version: &str) -> World {
    let file = folder().join(version).join("state.json");
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    world_of(&serde_json::from_str(&text).expect("JSON"))
}

/// A world of a recorded state.
pub(crate) fn world_of(state: &Value) -> World {
    let mut world = World::distributing(&[]);
    world.now = Time(state["now"].as_i64().expect("now") + 60_000);
    for object in state["hub"].as_array().expect("objects of the hub") {
        world.versions.saw(object);
        world.servers.hub.insert(id_of(object), object.clone());
    }
    for (member, objects) in state["members"].as_object().expect("members") {
        let held = world.servers.members.entry(member.as_str().into()).or_default();
        for object in objects.as_array().expect("objects of a member") {
            world.servers.versions.saw(object);
            held.insert(id_of(object), object.clone());
        }
    }
    // Uids are counted: those of the state are used.
    let used = world.hub.len() + world.members.values().map(|each| each.len()).sum::<usize>();
    for at in 0..10 * used {
        let id =
            id_of(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{at}")}}));
        let now = world.now;
        drop(world.servers.versions.created(&id, Value::Null, now));
    }
    world.restart();
    world
}

/// The state of a world.
pub(crate) fn state_of(world: &World) -> Value {
    let members = world.members.iter();
    let members: BTreeMap<String, Vec<&Value>> = members
        .map(|(name, objects)| (name.to_string(), objects.values().collect()))
        .collect();
    json!({"now": world.now.0, "hub": world.hub.values().collect::<Vec<_>>(), "members": members})
}

/// Stores the state that this version leaves.
pub(crate) fn record(version: &str, state: &Value) {
    let folder = folder().join(version);
    fs::create_dir_all(&folder).expect("folder");
    let text = serde_json::to_string_pretty(state).expect("JSON");
    fs::write(folder.join("state.json"), text + "\n").expect("state.json");
    let declared = folder.join("writes.txt");
    if !declared.exists() {
        let text = "# What a later version writes on the hub when it starts on this state, with the reason of each.\n";
        fs::write(declared, text).expect("writes.txt");
    }
}

/// Cargo runs the tests of a package in its folder.
fn folder() -> PathBuf {
    Path::new("testdata").join("upgrade")
}
