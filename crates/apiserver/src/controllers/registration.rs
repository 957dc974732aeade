//! APIServices: one for each group version that is served here, which is available; the others name a server that is not asked.
//! Sources: the autoregister and local available controllers of kube-aggregator.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Context, Controller, Queue, Seen, create,
    objects::{change, remove},
};
use crate::{
    discovery,
    object::{
        Object, metadata, metadata_mut,
        tree::{at, below, list, made, text},
    },
};

const SERVICES: &str = "apiregistration.k8s.io/apiservices";

/// The label of those that are made here.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The APIServices that may be missing or differ.
#[derive(Default)]
pub(super) struct Registration {
    /// True if other group versions may be served than before.
    all: bool,
    /// The group versions that are served here, by the name of the APIService.
    served: BTreeMap<String, Local>,
    queue: Queue<String>,
}

impl Controller for Registration {
    fn reset(&mut self) {
        *self = Self {
            all: true,
            ..Self::default()
        };
    }

    fn see(&mut self, seen: &Seen) {
        if seen.place.collection == SERVICES {
            self.queue.insert(seen.place.key.clone());
        }
    }

    fn kinds_changed(&mut self) {
        self.all = true;
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        if !cluster.stand_ins().api_services {
            self.queue.clear();
            return false;
        }
        if std::mem::take(&mut self.all) {
            let served = served(cluster);
            let is_new = |name: &&String| !self.served.contains_key(*name);
            self.queue.extend(served.keys().filter(is_new).cloned());
            let is_gone = |name: &&String| !served.contains_key(*name);
            self.queue.extend(self.served.keys().filter(is_gone).cloned());
            self.served = served;
        }
        let Some(name) = self.queue.pop_first() else {
            return false;
        };
        match self.served.get(&name) {
            Some(local) => keep(cluster, &name, local),
            None => other(cluster, &name),
        }
        true
    }
}

/// A group version that is served here, as its APIService.
struct Local {
    spec: Value,
    managed: &'static str,
}

/// All of them. The priorities keep the order of discovery.
fn served(cluster: &dyn Context) -> BTreeMap<String, Local> {
    let core = (String::new(), vec!["v1".to_owned()]);
    let groups = std::iter::once(core).chain(discovery::groups(&cluster.kinds()));
    let mut all = BTreeMap::new();
    for (rank, (group, versions)) in (0..).zip(groups) {
        let built_in = discovery::is_builtin(&group);
        let minimum = if built_in {
            (18_000 - 100 * rank).max(1100)
        } else {
            1000
        };
        for (older, version) in (0..).zip(&versions) {
            let local = Local {
                spec: json!({"group": group, "version": version, "groupPriorityMinimum": minimum,
                    "versionPriority": (100 - older).max(1)}),
                managed: if built_in { "onstart" } else { "true" },
            };
            all.insert(format!("{version}.{group}"), local);
        }
    }
    all
}

/// Creates the APIService of what is served here, or writes back what of it differs.
fn keep(cluster: &dyn Context, name: &str, local: &Local) {
    let now = cluster.now();
    let condition = condition("True", "Local", "Local APIServices are always available", &now);
    if cluster.get(SERVICES, name).is_none() {
        let made = json!({"metadata": {"labels": {MANAGED: local.managed}},
            "spec": without_empty(&local.spec), "status": {"conditions": [condition]}});
        return create(cluster.store(), &now, SERVICES, name, made);
    }
    let spec = without_empty(&local.spec);
    change(cluster, SERVICES, name, "", |service| {
        let labels = made(metadata_mut(service), "labels");
        let is_labelled = labels.get(MANAGED) == Some(&local.managed.into());
        if is_labelled && service.get("spec") == Some(&spec) {
            return false;
        }
        made(metadata_mut(service), "labels").insert(MANAGED.to_owned(), local.managed.into());
        service.insert("spec".to_owned(), spec.clone());
        true
    });
    change(cluster, SERVICES, name, "status", |service| {
        state(service, &condition)
    });
}

/// Deletes the APIService of what is no longer served here; says of another one that its server is not asked.
fn other(cluster: &dyn Context, name: &str) {
    let Some(service) = cluster.get(SERVICES, name) else {
        return;
    };
    if below(metadata(&service), "labels").contains_key(MANAGED) {
        return remove(cluster, SERVICES, name);
    }
    let message = "this API server passes no requests on to other ones";
    let condition = condition("False", "FailedDiscoveryCheck", message, &cluster.now());
    change(cluster, SERVICES, name, "status", |service| {
        state(service, &condition)
    });
}

/// Makes this the condition of the APIService, unless it says the same already.
fn state(service: &mut Object, condition: &Value) -> bool {
    let conditions = list(at(service, &["status"]), "conditions");
    let same = |one: &Value| {
        ["type", "status", "reason"]
            .iter()
            .all(|key| one.get(key) == condition.get(key))
    };
    if conditions.len() == 1 && conditions.iter().all(same) {
        return false;
    }
    made(service, "status").insert("conditions".to_owned(), json!([condition]));
    true
}

fn condition(status: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({"type": "Available", "status": status, "reason": reason, "message": message, "lastTransitionTime": now})
}

/// A spec as it is stored: the core group has no name.
fn without_empty(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Value::Object(fields) = &mut spec
        && text(fields, "group").is_empty()
    {
        fields.remove("group");
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        controllers::{Loop, StandIns},
        resource::{Surroundings as _, stored},
        server::{Options, Server},
        store::{Expect, Store},
    };
    use std::sync::Arc;

    fn server(stand_ins: StandIns) -> Arc<Server> {
        let options = Options {
            stand_ins,
            ..Options::default()
        };
        Server::new(options, Store::new())
    }

    /// Has the controllers do all that there is to do.
    fn settle(server: &Server) {
        let mut state = Loop::new();
        while state.turn(server) {}
    }

    fn write(server: &Server, name: &str, object: Value) {
        let Value::Object(object) = object else {
            panic!("an object")
        };
        if let Some(entry) = server.store.get(SERVICES, name) {
            let last = |_| entry.object.clone();
            server
                .store
                .delete(SERVICES, name, entry.revision, last)
                .expect("deleted");
        }
        server
            .store
            .put(SERVICES, name, Expect::Absent, |revision| {
                stored::encode(object, revision)
            })
            .expect("written");
    }

    #[test]
    fn each_group_version_that_is_served_has_one_that_is_available() {
        let server = server(StandIns::ALL);
        settle(&server);
        for name in ["v1.", "v1.apps", "v2.autoscaling", "v1.apiregistration.k8s.io"] {
            let service = server.get(SERVICES, name);
            let service = service.unwrap_or_else(|| panic!("no {name}"));
            let condition = &service["status"]["conditions"][0];
            assert_eq!(
                (&condition["type"], &condition["status"]),
                (&json!("Available"), &json!("True"))
            );
        }
        let revision = server.store.revision();
        settle(&server);
        assert_eq!(server.store.revision(), revision);
    }

    #[test]
    fn what_differs_is_written_back_and_what_is_not_served_goes() {
        let server = server(StandIns::ALL);
        settle(&server);
        let wanted = server.get(SERVICES, "v1.apps").expect("stored");
        write(
            &server,
            "v1.apps",
            json!({"metadata": {"name": "v1.apps", "uid": "1"}, "spec": {"group": "apps"}}),
        );
        let labels = json!({MANAGED: "true"});
        write(
            &server,
            "v1.gone.example.com",
            json!({"metadata": {"name": "v1.gone.example.com", "uid": "2", "labels": labels}}),
        );
        write(
            &server,
            "v1beta1.metrics.k8s.io",
            json!({"metadata": {"name": "v1beta1.metrics.k8s.io", "uid": "3"},
                "spec": {"service": {"namespace": "kube-system", "name": "metrics-server"}}}),
        );
        settle(&server);
        let restored = server.get(SERVICES, "v1.apps").expect("stored");
        assert_eq!(restored["spec"], wanted["spec"]);
        assert!(server.get(SERVICES, "v1.gone.example.com").is_none());
        let metrics = server.get(SERVICES, "v1beta1.metrics.k8s.io").expect("stored");
        assert_eq!(metrics["status"]["conditions"][0]["status"], "False");
    }

    #[test]
    fn a_hub_serves_no_such_kind() {
        let server = server(StandIns::default());
        settle(&server);
        assert!(server.entries(SERVICES).entries.is_empty());
        assert!(server.kinds().of_collection(SERVICES).is_none());
    }
}
