//! Endpoints and EndpointSlices of Services with a selector: the addresses of the pods that it selects. Sources: the endpoint and the
//! endpointslice controller of kube-controller-manager.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::{
    Context, Controller, Queue, Seen, create,
    objects::{change, remove},
    paced::Paced,
};
use crate::{
    kinds::core::pod::is_finished,
    object::{
        Object, field, holds, is_leaving, metadata, metadata_mut,
        tree::{below, flag, list, made, number, text},
    },
    store::Happened,
};

const SERVICES: &str = "services";
const PODS: &str = "pods";
const ENDPOINTS: &str = "endpoints";
const SLICES: &str = "discovery.k8s.io/endpointslices";

const OF_SERVICE: &str = "kubernetes.io/service-name";
const MANAGED: (&str, &str) = (
    "endpointslice.kubernetes.io/managed-by",
    "endpointslice-controller.k8s.io",
);
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The most endpoints of one slice.
const MOST: usize = 100;

#[derive(Default)]
pub(super) struct EndpointsOfServices {
    /// The namespaces whose endpoints may be outdated, as the key `namespace/`.
    outdated: Paced,
    /// Services that are gone and may have left Endpoints.
    gone: Queue<String>,
}

impl Controller for EndpointsOfServices {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        let namespace = seen.place.namespace();
        match (seen.place.collection.as_str(), seen.happened) {
            (SERVICES, Happened::Added | Happened::Modified) => self.outdated.add(&format!("{namespace}/")),
            // Its slices are its dependents.
            (SERVICES, Happened::Deleted) => {
                self.gone.insert(seen.place.key.clone());
            }
            (PODS, _) | (ENDPOINTS | SLICES, Happened::Deleted) => {
                self.outdated.after(&format!("{namespace}/"), Duration::ZERO);
            }
            _ => {}
        }
    }

    /// Cost: O(pods × Services of the namespace), a few times a second at most.
    fn work(&mut self, cluster: &dyn Context) -> bool {
        if !cluster.stand_ins().endpoints {
            self.reset();
            return false;
        }
        if let Some(key) = self.gone.pop_first() {
            if cluster.get(SERVICES, &key).is_none() {
                remove(cluster, ENDPOINTS, &key);
            }
            return true;
        }
        let Some(key) = self.outdated.pop() else {
            return false;
        };
        let services = cluster.list(SERVICES, &key);
        if services.is_empty() {
            self.outdated.remove(&key);
        }
        let selects = |service: &&Object| {
            let spec = below(service, "spec");
            !below(spec, "selector").is_empty() && text(spec, "type") != "ExternalName"
        };
        let mut selecting = services.iter().filter(selects).peekable();
        if selecting.peek().is_some() {
            let pods = cluster.list(PODS, &key);
            let slices = cluster.list(SLICES, &key);
            for service in selecting {
                let groups = groups(service, &pods);
                keep_endpoints(cluster, service, &groups);
                keep_slices(cluster, service, &groups, &slices);
            }
        }
        true
    }

    fn wakes(&self) -> Option<Instant> {
        self.outdated.wakes()
    }
}

/// Pods by the ports that they serve, written as JSON.
type Groups<'a> = BTreeMap<String, Vec<&'a Object>>;

/// The pods of a Service, by their ports.
fn groups<'a>(service: &Object, pods: &'a [Object]) -> Groups<'a> {
    let selector = below(below(service, "spec"), "selector");
    let mut groups = Groups::new();
    for pod in pods {
        let labels = below(metadata(pod), "labels");
        let selected = selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        if selected && !is_finished(pod) && !text(below(pod, "status"), "podIP").is_empty() {
            let ports = Value::from(ports(service, pod));
            groups.entry(ports.to_string()).or_default().push(pod);
        }
    }
    groups
}

/// The ports of a Service as a pod serves them.
fn ports(service: &Object, pod: &Object) -> Vec<Value> {
    let ports = list(below(service, "spec"), "ports").iter();
    ports
        .filter_map(|port| {
            let target = match &port["targetPort"] {
                Value::String(name) => named(pod, name, &port["protocol"])?,
                target => target
                    .as_i64()
                    .filter(|number| *number > 0)
                    .or_else(|| port["port"].as_i64())?,
            };
            let mut made = json!({"port": target, "protocol": port["protocol"]});
            for key in ["name", "appProtocol"] {
                if port[key].is_string() {
                    made[key] = port[key].clone();
                }
            }
            Some(made)
        })
        .collect()
}

fn named(pod: &Object, name: &str, protocol: &Value) -> Option<i64> {
    let containers = list(below(pod, "spec"), "containers").iter();
    let mut ports = containers.filter_map(|one| one["ports"].as_array()).flatten();
    let found = ports.find(|port| port["name"] == name && port["protocol"] == *protocol)?;
    found["containerPort"].as_i64()
}

/// True if clients are to know the pods of a Service before they are ready.
fn publishes(service: &Object) -> bool {
    flag(below(service, "spec"), "publishNotReadyAddresses")
}

/// The fields that name a pod in both kinds: its node, itself and its host name.
fn about(service: &Object, pod: &Object) -> Object {
    let spec = below(pod, "spec");
    let mut about = Object::new();
    about.insert("nodeName".to_owned(), json!(text(spec, "nodeName")));
    about.insert(
        "targetRef".to_owned(),
        json!({"kind": "Pod", "namespace": field(pod, "namespace"), "name": field(pod, "name"),
            "uid": field(pod, "uid")}),
    );
    if text(spec, "subdomain") == field(service, "name") && !text(spec, "hostname").is_empty() {
        about.insert("hostname".to_owned(), json!(text(spec, "hostname")));
    }
    about
}

fn is_headless(service: &Object) -> bool {
    text(below(service, "spec"), "clusterIP") == "None"
}

fn keep_endpoints(cluster: &dyn Context, service: &Object, groups: &Groups<'_>) {
    let (mut subsets, publishes) = (Vec::new(), publishes(service));
    for (ports, pods) in groups {
        let ports: Value = serde_json::from_str(ports).unwrap_or_default();
        if ports == json!([]) && !list(below(service, "spec"), "ports").is_empty() {
            continue;
        }
        let mut lists = [BTreeMap::new(), BTreeMap::new()];
        for pod in pods.iter().filter(|pod| publishes || !is_leaving(pod)) {
            let mut address = about(service, pod);
            let ip = text(below(pod, "status"), "podIP");
            address.insert("ip".to_owned(), json!(ip));
            lists[usize::from(!publishes && !holds(pod, "Ready"))].insert(ip, address);
        }
        let mut subset = Object::new();
        for (key, addresses) in ["addresses", "notReadyAddresses"].into_iter().zip(lists) {
            if !addresses.is_empty() {
                let addresses: Vec<Value> = addresses.into_values().map(Value::Object).collect();
                subset.insert(key.to_owned(), addresses.into());
            }
        }
        if !subset.is_empty() {
            if ports != json!([]) {
                subset.insert("ports".to_owned(), ports);
            }
            subsets.push(Value::Object(subset));
        }
    }
    let mut labels = below(metadata(service), "labels").clone();
    labels.insert(
        "endpoints.kubernetes.io/managed-by".to_owned(),
        json!("endpoint-controller"),
    );
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    let mut parts = Object::new();
    if !subsets.is_empty() {
        parts.insert("subsets".to_owned(), subsets.into());
    }
    let name = field(service, "name");
    keep(cluster, ENDPOINTS, service, name, &["subsets"], &labels, parts);
}

fn keep_slices(cluster: &dyn Context, service: &Object, groups: &Groups<'_>, slices: &[Object]) {
    let name = field(service, "name");
    let mut labels = below(metadata(service), "labels").clone();
    labels.insert(OF_SERVICE.to_owned(), json!(name));
    labels.insert(MANAGED.0.to_owned(), json!(MANAGED.1));
    if is_headless(service) {
        labels.insert(HEADLESS.to_owned(), json!(""));
    }
    let mut wanted = Vec::new();
    for (ports, pods) in groups {
        let mut ports: Value = serde_json::from_str(ports).unwrap_or_default();
        for port in ports.as_array_mut().into_iter().flatten() {
            if port["name"].is_null() {
                port["name"] = json!("");
            }
        }
        for (part, pods) in pods.chunks(MOST).enumerate() {
            let endpoints: Vec<Value> = pods.iter().map(|pod| endpoint(service, pod)).collect();
            wanted.push((format!("{ports}/{part}"), ports.clone(), endpoints));
        }
    }
    if wanted.is_empty() {
        wanted.push((String::new(), json!([]), Vec::new()));
    }
    let mut kept = Vec::new();
    for (seed, ports, endpoints) in wanted {
        let slice = format!("{name}-{}", suffix(&format!("{}/{seed}", field(service, "uid"))));
        let mut parts = Object::new();
        parts.insert("addressType".to_owned(), json!("IPv4"));
        parts.insert("endpoints".to_owned(), endpoints.into());
        parts.insert("ports".to_owned(), ports);
        keep(
            cluster,
            SLICES,
            service,
            &slice,
            &["endpoints", "ports"],
            &labels,
            parts,
        );
        kept.push(slice);
    }
    for slice in slices {
        let of = below(metadata(slice), "labels");
        let is_ours = text(of, OF_SERVICE) == name && text(of, MANAGED.0) == MANAGED.1;
        if is_ours && !kept.iter().any(|kept| kept == field(slice, "name")) {
            let key = format!("{}/{}", field(slice, "namespace"), field(slice, "name"));
            remove(cluster, SLICES, &key);
        }
    }
}

fn endpoint(service: &Object, pod: &Object) -> Value {
    let (serving, leaving) = (holds(pod, "Ready"), is_leaving(pod));
    let ready = publishes(service) || serving && !leaving;
    let mut endpoint = about(service, pod);
    endpoint.insert(
        "addresses".to_owned(),
        json!([text(below(pod, "status"), "podIP")]),
    );
    endpoint.insert(
        "conditions".to_owned(),
        json!({"ready": ready, "serving": serving, "terminating": leaving}),
    );
    Value::Object(endpoint)
}

/// Creates an object of a Service, or writes what of these fields and labels differs.
fn keep(
    cluster: &dyn Context,
    collection: &str,
    service: &Object,
    name: &str,
    fields: &[&str],
    labels: &Object,
    parts: Object,
) {
    let namespace = field(service, "namespace");
    let key = format!("{namespace}/{name}");
    if cluster.store().get(collection, &key).is_none() {
        let mut meta = json!({"labels": labels});
        if collection == SLICES {
            meta["generateName"] = json!(format!("{}-", field(service, "name")));
            meta["generation"] = json!(1);
            meta["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Service", "name": field(service, "name"),
                "uid": field(service, "uid"), "controller": true, "blockOwnerDeletion": true}]);
        }
        let mut made = Value::Object(parts);
        made["metadata"] = meta;
        return create(cluster.store(), &cluster.now(), collection, &key, made);
    }
    change(cluster, collection, &key, "", |stored| {
        let mut changed = false;
        for field in fields {
            let next = parts.get(*field);
            if !crate::object::tree::same(stored.get(*field), next) {
                match next {
                    Some(next) => stored.insert((*field).to_owned(), next.clone()),
                    None => stored.remove(*field),
                };
                changed = true;
            }
        }
        if changed && collection == SLICES {
            let generation = number(metadata(stored), "generation").unwrap_or(1);
            metadata_mut(stored).insert("generation".to_owned(), json!(generation + 1));
        }
        if *below(metadata(stored), "labels") != *labels {
            *made(metadata_mut(stored), "labels") = labels.clone();
            changed = true;
        }
        changed
    });
}

/// Five characters that stand for a slice.
fn suffix(seed: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(seed);
    let letters = digest
        .iter()
        .take(5)
        .map(|byte| LETTERS[usize::from(*byte) % LETTERS.len()]);
    letters.map(char::from).collect()
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

    fn put(server: &Server, collection: &str, name: &str, mut object: Value) {
        for (key, value) in [("namespace", "default"), ("name", name), ("uid", name)] {
            object["metadata"][key] = json!(value);
        }
        let Value::Object(object) = object else {
            panic!("an object")
        };
        let key = format!("default/{name}");
        let written = server.store.put(collection, &key, Expect::Absent, |revision| {
            stored::encode(object, revision)
        });
        written.expect("written");
    }

    fn pod(ip: &str, status: &str, phase: &str) -> Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": "n", "containers": [
            {"name": "a", "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]}]},
            "status": {"phase": phase, "podIP": ip, "conditions": [{"type": "Ready", "status": status}]}})
    }

    fn server(stand_ins: StandIns) -> Arc<Server> {
        let options = Options {
            stand_ins,
            ..Options::default()
        };
        let server = Server::new(options, Store::new());
        let ports = json!([{"port": 80, "targetPort": "http", "protocol": "TCP"}]);
        let spec = json!({"clusterIP": "10.96.0.9", "selector": {"app": "web"}, "ports": ports});
        put(&server, SERVICES, "web", json!({"spec": spec}));
        put(&server, PODS, "a", pod("198.18.0.1", "True", "Running"));
        put(&server, PODS, "b", pod("198.18.0.2", "False", "Running"));
        put(&server, PODS, "c", pod("198.18.0.3", "True", "Succeeded"));
        let mut state = Loop::new();
        while state.turn(&*server) {}
        server
    }

    #[test]
    fn a_service_has_the_addresses_of_its_pods() {
        let server = server(StandIns::ALL);
        let endpoints = server.get(ENDPOINTS, "default/web").expect("endpoints");
        let subset = &endpoints["subsets"][0];
        assert_eq!(subset["addresses"][0]["ip"], "198.18.0.1");
        assert_eq!(subset["notReadyAddresses"][0]["ip"], "198.18.0.2");
        assert_eq!(subset["ports"], json!([{"port": 8080, "protocol": "TCP"}]));
        let slices = server.list(SLICES, "default/web-");
        assert_eq!(slices.len(), 1);
        let ready: Vec<&Value> = list(&slices[0], "endpoints")
            .iter()
            .map(|one| &one["conditions"]["ready"])
            .collect();
        assert_eq!(ready, [true, false]);
        assert_eq!(slices[0]["metadata"]["ownerReferences"][0]["kind"], "Service");
    }

    #[test]
    fn the_endpoints_of_a_service_go_with_it() {
        let server = server(StandIns::ALL);
        let mut state = Loop::new();
        while state.turn(&*server) {}
        let entry = server.store.get(SERVICES, "default/web").expect("stored");
        let gone = server
            .store
            .delete(SERVICES, "default/web", entry.revision, |_| entry.object.clone());
        gone.expect("deleted");
        while state.turn(&*server) {}
        assert!(server.get(ENDPOINTS, "default/web").is_none());
    }

    #[test]
    fn pods_that_are_not_ready_are_published_on_request() {
        let service = |publish: bool| {
            let spec = json!({"publishNotReadyAddresses": publish});
            json!({"metadata": {"name": "web"}, "spec": spec})
                .as_object()
                .cloned()
                .expect("an object")
        };
        for (publish, status, leaving, wanted) in [
            (false, "True", false, (true, true)),
            (false, "True", true, (false, true)),
            (false, "False", false, (false, false)),
            (true, "False", false, (true, false)),
            (true, "True", true, (true, true)),
        ] {
            let mut pod = pod("198.18.0.1", status, "Running");
            if leaving {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            let pod = pod.as_object().expect("an object");
            let found = endpoint(&service(publish), pod)["conditions"].clone();
            assert_eq!(
                (&found["ready"], &found["serving"]),
                (&json!(wanted.0), &json!(wanted.1))
            );
            assert_eq!(found["terminating"], leaving);
        }
    }

    #[test]
    fn a_hub_keeps_none() {
        let server = server(StandIns::default());
        assert!(server.get(ENDPOINTS, "default/web").is_none());
    }
}
