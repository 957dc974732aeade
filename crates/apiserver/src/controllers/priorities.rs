//! The FlowSchemas and PriorityLevelConfigurations that every API server has, and which FlowSchemas name a level that is not there.
//! Nothing is queued by them. Source: the config controller of API priority and fairness in k8s.io/apiserver.

use serde_json::{Value, json};

use super::{Context, Controller, Place, Queue, Seen};
use crate::{
    object::{
        field,
        tree::{at, list, made, text},
    },
    random,
    registry::rewrite,
    resource::stored,
    store::{Expect, Happened},
};

const SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
const LEVELS: &str = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations";

/// The names of the objects of each kind that are always there.
const MANDATORY: [&str; 2] = ["catch-all", "exempt"];

/// The places of objects that may be missing or whose status may be outdated.
#[derive(Default)]
pub(super) struct Priorities {
    queue: Queue<Place>,
    /// True if levels came or went: every schema gets a look.
    levels: bool,
}

impl Controller for Priorities {
    fn reset(&mut self) {
        let mandatory = [LEVELS, SCHEMAS]
            .into_iter()
            .flat_map(|collection| MANDATORY.map(|name| (collection, name)));
        let place = |(collection, key): (&str, &str)| Place {
            collection: collection.to_owned(),
            key: key.to_owned(),
        };
        self.queue = mandatory.map(place).collect();
    }

    fn see(&mut self, seen: &Seen) {
        match seen.place.collection.as_str() {
            LEVELS | SCHEMAS => {
                self.queue.insert(seen.place.clone());
                self.levels |= seen.place.collection == LEVELS && seen.happened != Happened::Modified;
            }
            _ => {}
        }
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        if std::mem::take(&mut self.levels) {
            let keys = cluster.list(SCHEMAS, "");
            self.queue.extend(keys.iter().map(|schema| Place {
                collection: SCHEMAS.to_owned(),
                key: field(schema, "name").to_owned(),
            }));
        }
        let Some(place) = self.queue.pop_first() else {
            return false;
        };
        if MANDATORY.contains(&place.key.as_str()) {
            make(cluster, &place);
        }
        if place.collection == SCHEMAS {
            set_dangling(cluster, &place.key);
        }
        true
    }
}

fn make(cluster: &dyn Context, place: &Place) {
    let mut object = if place.collection == LEVELS {
        level(&place.key)
    } else {
        schema(&place.key)
    };
    object["metadata"] = json!({"name": place.key, "uid": random::new_uid(), "generation": 1,
        "creationTimestamp": cluster.now(), "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}});
    object["status"] = json!({});
    if let Value::Object(object) = object {
        // When it is there, all is well.
        let _ = cluster
            .store()
            .put(&place.collection, &place.key, Expect::Absent, |revision| {
                stored::encode(object, revision)
            });
    }
}

fn level(name: &str) -> Value {
    match name {
        "exempt" => json!({"spec": {"type": "Exempt",
            "exempt": {"lendablePercent": 0, "nominalConcurrencyShares": 0}}}),
        _ => json!({"spec": {"type": "Limited", "limited": {"lendablePercent": 0,
            "limitResponse": {"type": "Reject"}, "nominalConcurrencyShares": 5}}}),
    }
}

fn schema(name: &str) -> Value {
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let (precedence, subjects) = match name {
        "exempt" => (1, vec![group("system:masters")]),
        _ => (
            10_000,
            vec![group("system:unauthenticated"), group("system:authenticated")],
        ),
    };
    let mut spec = json!({"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": name},
        "rules": [{"subjects": subjects,
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true,
                "namespaces": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]});
    if name != "exempt" {
        spec["distinguisherMethod"] = json!({"type": "ByUser"});
    }
    json!({"spec": spec})
}

/// Writes whether the level that a schema names is there.
fn set_dangling(cluster: &dyn Context, name: &str) {
    let kinds = cluster.kinds();
    let Some(resource) = kinds.of_collection(SCHEMAS) else {
        return;
    };
    let now = cluster.now();
    rewrite(cluster, resource, name, "status", &mut |schema| {
        let level = text(at(schema, &["spec", "priorityLevelConfiguration"]), "name").to_owned();
        let there = cluster.store().get(LEVELS, &level).is_some();
        let [status, reason, end] = if there {
            ["False", "Found", "it exists"]
        } else {
            ["True", "NotFound", "there is no such object"]
        };
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level:?} and {end}"
        );
        let conditions = list(at(schema, &["status"]), "conditions");
        let known = conditions.iter().find(|one| one["type"] == "Dangling");
        if known.is_some_and(|one| one["status"] == status && one["message"] == message.as_str()) {
            return false;
        }
        let mut next: Vec<Value> = conditions
            .iter()
            .filter(|one| one["type"] != "Dangling")
            .cloned()
            .collect();
        next.push(
            json!({"type": "Dangling", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": now}),
        );
        made(schema, "status").insert("conditions".to_owned(), next.into());
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{controllers::Loop, resource::Surroundings as _, server::tests_support};

    #[test]
    fn what_is_mandatory_is_there_and_a_schema_without_its_level_says_so() {
        let server = tests_support::bare();
        let settle = || {
            let mut state = Loop::new();
            while state.turn(&*server) {}
        };
        settle();
        for name in MANDATORY {
            let schema = server.get(SCHEMAS, name).expect("a schema");
            assert_eq!(schema["status"]["conditions"][0]["status"], "False", "{name}");
            assert!(server.get(LEVELS, name).is_some(), "{name}");
        }
        let lost =
            json!({"metadata": {"name": "lost"}, "spec": {"priorityLevelConfiguration": {"name": "none"}}});
        let written = server.store.put(SCHEMAS, "lost", Expect::Absent, |revision| {
            stored::encode(lost.as_object().cloned().unwrap_or_default(), revision)
        });
        written.expect("written");
        settle();
        let lost = server.get(SCHEMAS, "lost").expect("a schema");
        assert_eq!(lost["status"]["conditions"][0]["reason"], "NotFound");
        let revision = server.store.revision();
        settle();
        assert_eq!(server.store.revision(), revision, "nothing is written twice");
    }
}
