//! The status of ResourceQuotas: what they limit, and what the objects of their namespace use of it. Admission refuses by it.
//! Source: the resource quota controller of kube-controller-manager.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::{Context, Controller, Seen, objects::change, paced::Paced};
use crate::{
    admission::quota,
    kinds::amounts::nano,
    object::{
        Object, field,
        tree::{below, made, same},
    },
    store::Happened,
};

const QUOTAS: &str = "resourcequotas";

/// The time after which a new object is counted: admission has charged it already.
const CHARGED: Duration = Duration::from_secs(1);

/// The time in which an object that was charged is stored, whatever happens. An amount gets lower only if nothing was charged for
/// so long: what is not stored yet is not counted.
const STORED: Duration = Duration::from_millis(250);

/// The quotas whose status may be outdated.
#[derive(Default)]
pub(super) struct Quotas {
    paced: Paced,
    /// The revisions of quotas of which less was counted than they say.
    lower: BTreeMap<String, String>,
}

impl Controller for Quotas {
    fn reset(&mut self) {
        *self = Self::default();
    }

    /// Cost: the quotas of the namespace.
    fn see(&mut self, seen: &Seen) {
        let key = &seen.place.key;
        if seen.place.collection == QUOTAS {
            match seen.happened {
                Happened::Added => self.paced.add(key),
                // A charge, or another limit.
                Happened::Modified => return self.paced.after(key, Duration::ZERO),
                Happened::Deleted => {
                    self.paced.remove(key);
                    self.lower.remove(key);
                }
            }
        }
        let after = if seen.happened == Happened::Added {
            CHARGED
        } else {
            Duration::ZERO
        };
        self.paced.all_of(seen.place.namespace(), after);
    }

    /// Cost: O(objects of the namespace of the kinds that the quota limits), a few times a second at most.
    fn work(&mut self, cluster: &dyn Context) -> bool {
        if !cluster.stand_ins().quotas {
            self.reset();
            return false;
        }
        let Some(key) = self.paced.pop() else {
            return false;
        };
        let lower = count(cluster, &key, self.lower.get(&key).map(String::as_str));
        match lower {
            Some(revision) => {
                self.paced.after(&key, STORED);
                self.lower.insert(key, revision);
            }
            None => {
                self.lower.remove(&key);
            }
        }
        true
    }

    fn wakes(&self) -> Option<Instant> {
        self.paced.wakes()
    }
}

/// Writes the status of a quota. Returns the revision of one of which less was counted than it says, and which is not the one where
/// that was `seen` before.
fn count(cluster: &dyn Context, key: &str, seen: Option<&str>) -> Option<String> {
    let mut lower = None;
    change(cluster, QUOTAS, key, "status", |quota| {
        let revision = field(quota, "resourceVersion").to_owned();
        let hard = Value::Object(below(below(quota, "spec"), "hard").clone());
        let mut used = quota::used(cluster, quota);
        let is_sure = seen == Some(&revision);
        let is_lower = !is_sure && keep_higher(&mut used, below(below(quota, "status"), "used"));
        lower = is_lower.then_some(revision);
        set(
            made(quota, "status"),
            [("hard", hard), ("used", Value::Object(used))],
        )
    });
    lower
}

/// Takes over the amounts that were higher before. True if there are any.
fn keep_higher(used: &mut Object, before: &Object) -> bool {
    let mut any = false;
    for (name, amount) in used.iter_mut() {
        if let Some(more) = before.get(name)
            && nano(more) > nano(amount)
        {
            *amount = more.clone();
            any = true;
        }
    }
    any
}

fn set(status: &mut Object, fields: [(&str, Value); 2]) -> bool {
    let mut changed = false;
    for (field, value) in fields {
        if !same(status.get(field), Some(&value)) {
            status.insert(field.to_owned(), value);
            changed = true;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        controllers::{Loop, StandIns},
        resource::{
            Surroundings as _,
            stored::{decode, encode},
        },
        server::{Options, Server},
        store::{Expect, Store},
    };
    use serde_json::json;
    use std::sync::Arc;

    fn server(stand_ins: StandIns) -> Arc<Server> {
        let options = Options {
            stand_ins,
            ..Options::default()
        };
        Server::new(options, Store::new())
    }

    fn put(server: &Server, collection: &str, name: &str, mut object: Value) {
        object["metadata"] = json!({"namespace": "default", "name": name, "uid": name});
        let Value::Object(object) = object else {
            panic!("an object")
        };
        let key = format!("default/{name}");
        server
            .store
            .put(collection, &key, Expect::Absent, |revision| {
                encode(object, revision)
            })
            .expect("written");
    }

    /// Has the controllers do all that there is to do; returns the status of the quota.
    fn status(server: &Server) -> Value {
        let mut state = Loop::new();
        while state.turn(server) {}
        let quota = server.get(QUOTAS, "default/q").expect("stored");
        quota.get("status").cloned().unwrap_or_default()
    }

    fn quota() -> Value {
        json!({"spec": {"hard": {"pods": "3", "requests.cpu": "2", "count/deployments.apps": "5", "count/pods": "9"}}})
    }

    #[test]
    fn what_is_used_is_counted() {
        let server = server(StandIns::ALL);
        put(&server, QUOTAS, "q", quota());
        let pod = |phase: &str| {
            json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "250m"}}}]},
                "status": {"phase": phase}})
        };
        put(&server, "pods", "a", pod("Running"));
        put(&server, "pods", "b", pod("Pending"));
        put(&server, "pods", "c", pod("Succeeded"));
        let status = status(&server);
        assert_eq!(status["hard"], quota()["spec"]["hard"]);
        assert_eq!(
            status["used"],
            json!({"pods": "2", "requests.cpu": "500m", "count/deployments.apps": "0", "count/pods": "3"})
        );
    }

    #[test]
    fn less_is_believed_when_nothing_was_charged_meanwhile() {
        let server = server(StandIns::ALL);
        let mut charged = quota();
        charged["status"] = json!({"hard": quota()["spec"]["hard"], "used": {"pods": "2"}});
        put(&server, QUOTAS, "q", charged);
        put(&server, "pods", "a", json!({"spec": {}}));
        let used = || {
            let quota = server.get(QUOTAS, "default/q").expect("stored");
            quota["status"]["used"]["pods"].clone()
        };
        // The second one is not stored yet.
        let first = count(&*server, "default/q", None).expect("less");
        assert_eq!(used(), "2");
        let entry = server.store.get(QUOTAS, "default/q").expect("stored");
        let mut quota = decode(&entry.object);
        quota["status"]["used"]["pods"] = "3".into();
        server
            .store
            .put(QUOTAS, "default/q", Expect::At(entry.revision), |revision| {
                encode(quota, revision)
            })
            .expect("written");
        let second = count(&*server, "default/q", Some(&first)).expect("less");
        assert_eq!(used(), "3");
        assert_eq!(count(&*server, "default/q", Some(&second)), None);
        assert_eq!(used(), "1");
    }

    #[test]
    fn a_hub_counts_nothing() {
        let server = server(StandIns::default());
        put(&server, QUOTAS, "q", quota());
        assert_eq!(status(&server), Value::Null);
    }
}
