//! Objects that every whole cluster has, restored when somebody deletes or edits them: the ConfigMap `kube-root-ca.crt` in each
//! namespace, and what names the API server from within, which is the Service `kubernetes` with its Endpoints and its range.
//! Sources: the root CA publisher of kube-controller-manager; the controllers of kube-apiserver for the Service `kubernetes` and for
//! the default ServiceCIDR.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Context, Controller, Place, Queue, Seen, create, objects::change};
use crate::{
    object::{Object, metadata_mut, tree::made},
    store::Happened,
};

const NAMESPACES: &str = "namespaces";
const MAPS: &str = "configmaps";
const ROOT_CA: &str = "kube-root-ca.crt";
const ABOUT_ROOT_CA: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

const SERVICES: &str = "services";
const ENDPOINTS: &str = "endpoints";
const SLICES: &str = "discovery.k8s.io/endpointslices";
const RANGES: &str = "networking.k8s.io/servicecidrs";

/// The places of what names the API server.
const API: [(&str, &str); 4] = [
    (RANGES, "kubernetes"),
    (SERVICES, "default/kubernetes"),
    (ENDPOINTS, "default/kubernetes"),
    (SLICES, "default/kubernetes"),
];

/// The range of cluster IPs, and its first address, which is that of the API server.
const RANGE: &str = "10.96.0.0/16";
const CLUSTER_IP: &str = "10.96.0.1";

/// Places whose objects may be missing or differ.
#[derive(Default)]
pub(super) struct Standing {
    queue: Queue<Place>,
    /// The address that the objects were last made for.
    address: Option<SocketAddr>,
}

impl Controller for Standing {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        let Place { collection, key } = &seen.place;
        if collection == NAMESPACES && seen.happened != Happened::Deleted {
            self.queue.insert(Place {
                collection: MAPS.to_owned(),
                key: format!("{key}/{ROOT_CA}"),
            });
        }
        let is_api = API.contains(&(collection.as_str(), key.as_str()));
        if is_api || collection == MAPS && seen.place.name() == ROOT_CA {
            self.queue.insert(seen.place.clone());
        }
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        let address = Some(cluster.address());
        if self.address != address {
            self.address = address;
            self.queue.extend(API.map(|(collection, key)| Place {
                collection: collection.to_owned(),
                key: key.to_owned(),
            }));
        }
        let Some(place) = self.queue.pop_first() else {
            return false;
        };
        if let Some(Value::Object(wanted)) = wanted(cluster, &place) {
            keep(cluster, &place, &wanted);
        }
        true
    }
}

/// The object of a place as it should be; `None` when it is nobody's here.
fn wanted(cluster: &dyn Context, place: &Place) -> Option<Value> {
    let stand_ins = cluster.stand_ins();
    if place.collection == MAPS {
        return stand_ins
            .root_ca
            .then(|| root_ca(cluster, place.namespace()))
            .flatten();
    }
    stand_ins.api_service.then(|| api(cluster, &place.collection))
}

/// The ConfigMap with the authority, in a namespace that stays.
fn root_ca(cluster: &dyn Context, namespace: &str) -> Option<Value> {
    let authority = cluster.authority()?;
    let stays = cluster
        .get(NAMESPACES, namespace)
        .is_some_and(|object| crate::kinds::core::namespace::phase(&object) != "Terminating");
    stays.then(|| {
        json!({"metadata": {"annotations": {"kubernetes.io/description": ABOUT_ROOT_CA}},
            "data": {"ca.crt": authority.certificate}})
    })
}

/// An object that names the API server.
fn api(cluster: &dyn Context, collection: &str) -> Value {
    let (address, port) = (cluster.address().ip().to_string(), cluster.address().port());
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    match collection {
        SERVICES => json!({
            "metadata": {"labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"clusterIP": CLUSTER_IP, "clusterIPs": [CLUSTER_IP], "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
                "sessionAffinity": "None", "type": "ClusterIP"},
            "status": {"loadBalancer": {}},
        }),
        ENDPOINTS => json!({
            "metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
        }),
        SLICES => {
            let family = if cluster.address().is_ipv4() {
                "IPv4"
            } else {
                "IPv6"
            };
            json!({
                "metadata": {"labels": {"kubernetes.io/service-name": "kubernetes"}}, "addressType": family,
                "endpoints": [{"addresses": [address], "conditions": {"ready": true}}], "ports": ports,
            })
        }
        _ => json!({
            "spec": {"cidrs": [RANGE]},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "",
                "message": "Kubernetes Service CIDR is ready", "lastTransitionTime": cluster.now()}]},
        }),
    }
}

/// Creates the object, or writes back what of it differs.
fn keep(cluster: &dyn Context, place: &Place, wanted: &Object) {
    if cluster.get(&place.collection, &place.key).is_none() {
        let made = Value::Object(wanted.clone());
        return create(
            cluster.store(),
            &cluster.now(),
            &place.collection,
            &place.key,
            made,
        );
    }
    change(cluster, &place.collection, &place.key, "", |object| {
        restore(object, wanted)
    });
}

/// Writes back what differs. The status and what others added to the metadata stay.
fn restore(object: &mut Object, wanted: &Object) -> bool {
    let mut changed = false;
    for (field, value) in wanted {
        if !matches!(field.as_str(), "metadata" | "status") {
            changed |= set(object, field, value);
        }
    }
    for part in ["labels", "annotations"] {
        let entries = wanted
            .get("metadata")
            .and_then(|metadata| metadata.get(part))
            .and_then(Value::as_object);
        for (key, value) in entries.into_iter().flatten() {
            changed |= set(made(metadata_mut(object), part), key, value);
        }
    }
    changed
}

fn set(object: &mut Object, key: &str, value: &Value) -> bool {
    if object.get(key) == Some(value) {
        return false;
    }
    object.insert(key.to_owned(), value.clone());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        authority::Authority,
        controllers::{Loop, StandIns},
        resource::{Surroundings as _, stored},
        server::{Options, Server},
        store::{Expect, Store},
    };
    use std::{net::Ipv4Addr, sync::Arc};

    const CA: &str = "kube-system/kube-root-ca.crt";

    fn server(stand_ins: StandIns) -> Arc<Server> {
        let options = Options {
            authority: Some(Authority::new().expect("an authority")),
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

    fn edit(server: &Server, collection: &str, key: &str, change: impl FnOnce(&mut Object)) {
        let entry = server.store.get(collection, key).expect("stored");
        let mut object = stored::decode(&entry.object);
        change(&mut object);
        server
            .store
            .put(collection, key, Expect::At(entry.revision), |revision| {
                stored::encode(object, revision)
            })
            .expect("written");
    }

    #[test]
    fn each_namespace_has_the_authority_and_gets_it_back() {
        let server = server(StandIns::ALL);
        settle(&server);
        for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let map = server.get(MAPS, &format!("{namespace}/{ROOT_CA}"));
            let map = map.unwrap_or_else(|| panic!("none in {namespace}"));
            let text = map["data"]["ca.crt"].as_str().expect("a text");
            assert!(text.contains("BEGIN CERTIFICATE"));
        }
        let before = server.get(MAPS, CA);
        edit(&server, MAPS, CA, |map| {
            map.insert("data".to_owned(), json!({"ca.crt": "forged"}));
            metadata_mut(map).insert("labels".to_owned(), json!({"team": "a"}));
        });
        settle(&server);
        let after = server.get(MAPS, CA).expect("stored");
        assert_eq!(after.get("data"), before.as_ref().and_then(|map| map.get("data")));
        assert_eq!(after["metadata"]["labels"]["team"], "a");
        let entry = server.store.get(MAPS, CA).expect("stored");
        server
            .store
            .delete(MAPS, CA, entry.revision, |_| entry.object.clone())
            .expect("deleted");
        settle(&server);
        let again = server.get(MAPS, CA).expect("created again");
        assert_ne!(again["metadata"]["uid"], after["metadata"]["uid"]);
    }

    #[test]
    fn a_namespace_that_goes_gets_none() {
        let server = server(StandIns::ALL);
        edit(&server, NAMESPACES, "kube-public", |namespace| {
            namespace.insert("status".to_owned(), json!({"phase": "Terminating"}));
        });
        settle(&server);
        assert!(server.get(MAPS, "kube-public/kube-root-ca.crt").is_none());
    }

    #[test]
    fn the_api_server_is_named_by_its_address_and_named_again() {
        let server = server(StandIns::ALL);
        settle(&server);
        let port = |server: &Server| {
            let endpoints = server.get(ENDPOINTS, "default/kubernetes").expect("stored");
            endpoints["subsets"][0]["ports"][0]["port"].clone()
        };
        assert_eq!(port(&server), 443);
        server.advertise(SocketAddr::from((Ipv4Addr::LOCALHOST, 6443)));
        settle(&server);
        assert_eq!(port(&server), 6443);
        for (collection, key) in API {
            assert!(server.get(collection, key).is_some(), "{collection}");
        }
        let service = server.get(SERVICES, "default/kubernetes").expect("stored");
        assert_eq!(service["spec"]["clusterIP"], CLUSTER_IP);
        edit(&server, SERVICES, "default/kubernetes", |service| {
            service["spec"]["ports"] = json!([]);
        });
        settle(&server);
        let restored = server.get(SERVICES, "default/kubernetes").expect("stored");
        assert_eq!(restored["spec"], service["spec"]);
    }

    #[test]
    fn nothing_is_written_when_all_is_well() {
        let server = server(StandIns::ALL);
        settle(&server);
        let revision = server.store.revision();
        settle(&server);
        assert_eq!(server.store.revision(), revision);
    }

    #[test]
    fn a_hub_has_none_of_it() {
        let server = server(StandIns::default());
        settle(&server);
        assert!(server.get(MAPS, CA).is_none());
        for (collection, key) in API {
            assert!(server.get(collection, key).is_none(), "{collection}");
        }
    }
}
