//! Lists and events of the servers, as processes observe them.

use std::collections::BTreeSet;

use entourage_core::{
    object::ResourceId,
    observation::{ObjectRef, Observation, Server, Subject, Watch, which},
};
use serde_json::Value;

use crate::{environment::Environment, process::Process, watches};

/// The process observes, and the environment learns which keys it queued.
pub fn observe(servers: &mut impl Environment, seen: Observation) {
    let now = servers.servers().now;
    let dirty = servers.process_mut().observe(seen, now);
    servers.dirtied(&dirty);
}

/// Opens a watch: the process observes its list. Cost: O(objects of the server).
pub fn open(servers: &mut impl Environment, watch: &Watch) {
    servers.process_mut().open.insert(watch.clone());
    let (objects, listed) = list(servers, servers.process(), watch);
    for seen in objects {
        observe(servers, seen);
    }
    observe(servers, listed.clone());
    servers.opened(watch, &listed);
}

/// The list of a watch, as this process observes it: its objects, and its end.
pub fn list(servers: &impl Environment, process: &Process, watch: &Watch) -> (Vec<Observation>, Observation) {
    let revision = servers.servers().versions.last();
    let mut present: BTreeSet<ObjectRef> = BTreeSet::new();
    let mut seen = vec![Observation::Listing {
        watch: watch.clone(),
        revision,
    }];
    let objects = servers.servers().objects(&watch.server());
    for (id, object) in objects.into_iter().flat_map(|all| all.iter()) {
        if servers.covers(watch, id, object)
            && let Some(which) = which(watch, object)
        {
            present.insert(which);
            seen.extend(project(servers, process, watch, object).map(Observation::Seen));
        }
    }
    let listed = Observation::Listed {
        watch: watch.clone(),
        present,
        revision,
    };
    (seen, listed)
}

/// The process observes a change of an object, if it has a watch open that covers it. Cost: O(open watches) on the hub, O(1) on
/// a member.
pub fn changed(servers: &mut impl Environment, server: &Server, id: &ResourceId, before: Option<&Value>) {
    for (watch, event) in events(servers, servers.process(), server, id, before) {
        // The last words of a watch that was ended are dropped.
        if servers.process().open.contains(&watch) {
            if servers.observes_now(&event) {
                observe(servers, event);
            }
            reached(servers, &watch);
        }
    }
    servers.changed(server, id, before);
}

/// A watch has sent everything up to now.
pub fn reached(servers: &mut impl Environment, watch: &Watch) {
    let (watch, revision) = (watch.clone(), servers.servers().versions.last());
    observe(servers, Observation::Reached { watch, revision });
}

/// The events of a change of an object, as this process observes them, by watch.
pub fn events(
    servers: &impl Environment,
    process: &Process,
    server: &Server,
    id: &ResourceId,
    before: Option<&Value>,
) -> Vec<(Watch, Observation)> {
    let after = servers.object(server, id);
    let event = |watch: &Watch| {
        let covered = |object: &&Value| servers.covers(watch, id, object);
        let event = match (after.filter(covered), before.filter(covered)) {
            (Some(object), _) => Observation::Seen(project(servers, process, watch, object)?),
            (None, Some(held)) => Observation::Gone {
                which: which(watch, held)?,
                uid: held["metadata"]["uid"].as_str().map(Into::into),
                revision: Some(servers.servers().versions.last()),
            },
            (None, None) => return None,
        };
        Some((watch.clone(), event))
    };
    match server {
        Server::Hub => {
            let of_hub = process.open.iter().filter(|watch| watch.server() == Server::Hub);
            of_hub.filter_map(event).collect()
        }
        Server::Member(cluster) => {
            let all = watches::of_member(cluster, id, after.into_iter().chain(before));
            let open = all.iter().filter(|watch| process.open.contains(*watch));
            open.filter_map(event).collect()
        }
    }
}

/// An object as a watch serves it to this process.
pub fn project(
    servers: &impl Environment,
    process: &Process,
    watch: &Watch,
    object: &Value,
) -> Option<Subject> {
    let observed = servers.observed(&process.engine.interpretation_of(watch), watch, object);
    let subject = watches::project(&process.engine, watch, &observed, object);
    if subject.is_none() {
        servers.undecodable(watch, object);
    }
    subject
}
