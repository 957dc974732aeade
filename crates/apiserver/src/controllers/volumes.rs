//! Claims are bound to volumes: to one that is there and fits, or to one that is made for the claim, whatever provisioner its
//! class names. Sources: the persistentvolume and the expand controller of kube-controller-manager, and the external provisioner.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    Context, Controller, Place, Queue, Seen, create,
    objects::{change, remove},
};
use crate::{
    kinds::{amounts::nano, core::persistent_volume_claim::default_storage_class, workloads::selects},
    object::{
        Object, field, finalizers, is_leaving, metadata, metadata_mut,
        tree::{at, below, list, made, object, text},
    },
    store::Happened,
};

const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";
pub(super) const CLASSES: &str = "storage.k8s.io/storageclasses";

/// The provisioner of the default class.
pub(super) const PROVISIONER: &str = "stand-in.volumes/provisioner";

/// By this annotation of a claim its provisioner knows that a pod waits for it, and where.
pub(crate) const SELECTED: &str = "volume.kubernetes.io/selected-node";

/// A class with this provisioner has only the volumes that are there.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

const COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED: &str = "pv.kubernetes.io/provisioned-by";
const PROTECTED: &str = "kubernetes.io/pv-protection";

/// The claims and volumes whose state may be outdated.
#[derive(Default)]
pub(super) struct Volumes {
    queue: Queue<Place>,
    /// Claims that have no volume.
    waiting: BTreeSet<String>,
    /// Volumes that no claim has.
    free: BTreeSet<String>,
    /// The volumes that name a claim, and the claim that a volume names.
    by_claim: BTreeMap<String, BTreeSet<String>>,
    claims: BTreeMap<String, String>,
}

impl Controller for Volumes {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        match seen.place.collection.as_str() {
            CLAIMS | VOLUMES => {
                self.queue.insert(seen.place.clone());
            }
            CLASSES if seen.happened != Happened::Deleted => self.wake(),
            _ => {}
        }
    }

    /// Cost: O(volumes that no claim has) for a claim, O(1) for a volume.
    fn work(&mut self, cluster: &dyn Context) -> bool {
        if !cluster.stand_ins().volumes {
            self.reset();
            return false;
        }
        // Volumes first: a claim has the choice of all that are free.
        let Some(place) = self.queue.pop_last() else {
            return false;
        };
        if place.collection == CLAIMS {
            self.claim(cluster, &place.key);
        } else {
            self.volume(cluster, &place.key);
        }
        true
    }
}

impl Volumes {
    fn enqueue(&mut self, collection: &str, key: &str) {
        self.queue.insert(Place {
            collection: collection.to_owned(),
            key: key.to_owned(),
        });
    }

    /// Claims without a volume get another look.
    fn wake(&mut self) {
        for key in std::mem::take(&mut self.waiting) {
            self.enqueue(CLAIMS, &key);
        }
    }

    fn claim(&mut self, cluster: &dyn Context, key: &str) {
        self.waiting.remove(key);
        let Some(claim) = cluster.get(CLAIMS, key) else {
            for volume in self.by_claim.get(key).cloned().unwrap_or_default() {
                self.enqueue(VOLUMES, &volume);
            }
            return;
        };
        if is_leaving(&claim) {
            return;
        }
        let volume = text(below(&claim, "spec"), "volumeName");
        if !volume.is_empty() {
            return self.named(cluster, key, &claim, volume);
        }
        if give_class(cluster, key, &claim) {
            return;
        }
        let class = cluster.get(CLASSES, text(below(&claim, "spec"), "storageClassName"));
        let waits = class.as_ref().is_some_and(|class| {
            text(class, "volumeBindingMode") == "WaitForFirstConsumer"
                && !below(metadata(&claim), "annotations").contains_key(SELECTED)
        });
        let found = self.matching(cluster, key, &claim, waits);
        let provisioner = class.as_ref().map_or("", |class| text(class, "provisioner"));
        if let Some(volume) = found {
            self.bind(cluster, key, &claim, &volume);
        } else if let Some(class) = &class
            && !waits
            && provisioner != NO_PROVISIONER
        {
            let volume = provision(cluster, key, &claim, class);
            note_provisioner(cluster, key, provisioner);
            self.bind(cluster, key, &claim, &volume);
        } else {
            self.waiting.insert(key.to_owned());
        }
    }

    /// A claim that names its volume.
    fn named(&mut self, cluster: &dyn Context, key: &str, claim: &Object, name: &str) {
        let Some(volume) = cluster.get(VOLUMES, name) else {
            if text(below(claim, "status"), "phase") == "Bound" {
                set_status(cluster, CLAIMS, key, &[("phase", json!("Lost"))]);
            }
            self.waiting.insert(key.to_owned());
            return;
        };
        let reference = below(below(&volume, "spec"), "claimRef");
        let is_bound = below(metadata(claim), "annotations").contains_key(COMPLETED);
        let is_its = refers(reference, key) && is_of(reference, claim);
        if (is_bound || fits(&volume, claim)) && (reference.is_empty() || is_its) {
            self.bind(cluster, key, claim, name);
            grow(cluster, key, claim, &volume);
        } else {
            self.waiting.insert(key.to_owned());
        }
    }

    /// The smallest volume that fits a claim; one that names it comes first, and is the only one while it `waits` for a pod.
    fn matching(&self, cluster: &dyn Context, key: &str, claim: &Object, waits: bool) -> Option<String> {
        let wanted = below(claim, "spec");
        let volumes = self.free.iter().filter_map(|name| cluster.get(VOLUMES, name));
        let mut fitting: Vec<(bool, i128, String)> = Vec::new();
        for volume in volumes {
            let spec = below(&volume, "spec");
            let reference = below(spec, "claimRef");
            let is_meant = refers(reference, key) && is_of(reference, claim);
            if !is_meant && (waits || !reference.is_empty()) || is_leaving(&volume) {
                continue;
            }
            let selected = object(wanted, "selector")
                .is_none_or(|selector| selects(Some(selector), below(metadata(&volume), "labels")));
            if selected && fits(&volume, claim) {
                fitting.push((!is_meant, size_of(&volume), field(&volume, "name").to_owned()));
            }
        }
        fitting.into_iter().min().map(|(.., name)| name)
    }

    /// Binds a claim and a volume to each other.
    fn bind(&mut self, cluster: &dyn Context, key: &str, claim: &Object, name: &str) {
        let mut volume = Object::new();
        change(cluster, VOLUMES, name, "", |stored| {
            let reference = below(below(stored, "spec"), "claimRef");
            let is_complete = text(reference, "uid") == field(claim, "uid");
            if !is_complete {
                if reference.is_empty() {
                    made(metadata_mut(stored), "annotations").insert(BOUND.to_owned(), json!("yes"));
                }
                made(stored, "spec").insert("claimRef".to_owned(), reference_to(claim));
            }
            volume = stored.clone();
            !is_complete
        });
        if volume.is_empty() {
            return self.enqueue(CLAIMS, key);
        }
        change(cluster, CLAIMS, key, "", |stored| {
            let named = text(below(stored, "spec"), "volumeName") == name;
            let annotations = made(metadata_mut(stored), "annotations");
            let is_complete = annotations.contains_key(COMPLETED);
            if named && is_complete {
                return false;
            }
            annotations.insert(COMPLETED.to_owned(), json!("yes"));
            if !named {
                annotations.insert(BOUND.to_owned(), json!("yes"));
            }
            made(stored, "spec").insert("volumeName".to_owned(), json!(name));
            true
        });
        let spec = below(&volume, "spec");
        let of_spec = |key: &str| spec.get(key).cloned().unwrap_or_default();
        set_status(cluster, VOLUMES, name, &[("phase", json!("Bound"))]);
        let mut status = vec![("phase", json!("Bound")), ("accessModes", of_spec("accessModes"))];
        // An expansion sets it later.
        if below(below(claim, "status"), "capacity").is_empty() {
            status.push((
                "capacity",
                json!({"storage": at(spec, &["capacity"]).get("storage")}),
            ));
        }
        set_status(cluster, CLAIMS, key, &status);
    }

    fn volume(&mut self, cluster: &dyn Context, name: &str) {
        self.free.remove(name);
        let before = self.claims.remove(name);
        if let Some(key) = &before
            && let Some(names) = self.by_claim.get_mut(key)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_claim.remove(key);
            }
        }
        let Some(volume) = cluster.get(VOLUMES, name) else {
            if let Some(key) = before {
                self.enqueue(CLAIMS, &key);
            }
            return;
        };
        let reference = below(below(&volume, "spec"), "claimRef");
        if reference.is_empty() {
            return self.make_free(cluster, name);
        }
        let key = format!("{}/{}", text(reference, "namespace"), text(reference, "name"));
        self.by_claim
            .entry(key.clone())
            .or_default()
            .insert(name.to_owned());
        self.claims.insert(name.to_owned(), key.clone());
        let claim = cluster.get(CLAIMS, &key);
        match claim {
            _ if text(reference, "uid").is_empty() => {
                self.make_free(cluster, name);
                self.enqueue(CLAIMS, &key);
            }
            Some(claim) if is_of(reference, &claim) => {
                let named = text(below(&claim, "spec"), "volumeName");
                let is_bound = text(below(&volume, "status"), "phase") == "Bound";
                if !named.is_empty() && named != name {
                    release(cluster, name, &volume);
                } else if named.is_empty() || !is_bound {
                    self.bind(cluster, &key, &claim, name);
                }
            }
            _ => release(cluster, name, &volume),
        }
    }

    fn make_free(&mut self, cluster: &dyn Context, name: &str) {
        set_status(cluster, VOLUMES, name, &[("phase", json!("Available"))]);
        if self.free.insert(name.to_owned()) {
            self.wake();
        }
    }
}

/// True if a volume is what a claim asks for.
fn fits(volume: &Object, claim: &Object) -> bool {
    let (spec, wanted) = (below(volume, "spec"), below(claim, "spec"));
    let modes = list(spec, "accessModes");
    let same = |key: &str| text(spec, key) == text(wanted, key);
    list(wanted, "accessModes")
        .iter()
        .all(|mode| modes.contains(mode))
        && size_of(volume) >= requested(claim).and_then(nano).unwrap_or(0)
        && ["storageClassName", "volumeMode", "volumeAttributesClassName"]
            .into_iter()
            .all(same)
}

fn size_of(volume: &Object) -> i128 {
    let capacity = at(below(volume, "spec"), &["capacity"]);
    capacity.get("storage").and_then(nano).unwrap_or(0)
}

/// A claim that is older than the default class gets it; true if it did.
fn give_class(cluster: &dyn Context, key: &str, claim: &Object) -> bool {
    let names = |claim: &Object| below(claim, "spec").contains_key("storageClassName");
    let mut given = false;
    if !names(claim) {
        change(cluster, CLAIMS, key, "", |stored| {
            default_storage_class(stored, cluster);
            given = names(stored);
            given
        });
    }
    given
}

/// A volume whose claim is gone is deleted or stays, as it says.
fn release(cluster: &dyn Context, name: &str, volume: &Object) {
    match text(below(volume, "spec"), "persistentVolumeReclaimPolicy") {
        "Delete" if !is_leaving(volume) && finalizers(volume).all(|one| one == PROTECTED) => {
            remove(cluster, VOLUMES, name);
        }
        "Recycle" => {
            change(cluster, VOLUMES, name, "", |stored| {
                made(stored, "spec").remove("claimRef").is_some()
            });
        }
        _ => set_status(cluster, VOLUMES, name, &[("phase", json!("Released"))]),
    }
}

/// A volume that is made for a claim.
fn provision(cluster: &dyn Context, key: &str, claim: &Object, class: &Object) -> String {
    let spec = below(claim, "spec");
    let name = format!("pvc-{}", field(claim, "uid"));
    let policy = match text(class, "reclaimPolicy") {
        "" => "Delete",
        policy => policy,
    };
    let path = format!("/var/lib/stand-in/{name}_{}", key.replace('/', "_"));
    let mut volume = json!({
        "metadata": {"annotations": {PROVISIONED: text(class, "provisioner")}, "finalizers": [PROTECTED]},
        "spec": {"accessModes": spec.get("accessModes"), "capacity": {"storage": requested(claim)},
            "claimRef": reference_to(claim), "hostPath": {"path": path, "type": "DirectoryOrCreate"},
            "persistentVolumeReclaimPolicy": policy, "storageClassName": field(class, "name"),
            "volumeMode": spec.get("volumeMode")},
        "status": {"phase": "Pending"},
    });
    for (from, key) in [(class, "mountOptions"), (spec, "volumeAttributesClassName")] {
        if let Some(value) = from.get(key) {
            volume["spec"][key] = value.clone();
        }
    }
    // When it is there, it was made for this claim.
    create(cluster.store(), &cluster.now(), VOLUMES, &name, volume);
    name
}

fn note_provisioner(cluster: &dyn Context, key: &str, provisioner: &str) {
    change(cluster, CLAIMS, key, "", |claim| {
        let annotations = made(metadata_mut(claim), "annotations");
        for name in [
            "volume.beta.kubernetes.io/storage-provisioner",
            "volume.kubernetes.io/storage-provisioner",
        ] {
            annotations.insert(name.to_owned(), json!(provisioner));
        }
        true
    });
}

/// A bound claim that asks for more gets it, where its class allows that: admission has refused the others.
fn grow(cluster: &dyn Context, key: &str, claim: &Object, volume: &Object) {
    let Some(wanted) = requested(claim) else { return };
    let size = |value: Option<&Value>| value.and_then(nano).unwrap_or(0);
    let has = below(below(claim, "status"), "capacity").get("storage");
    if has.is_none() || size(Some(wanted)) <= size(has) {
        return;
    }
    change(cluster, VOLUMES, field(volume, "name"), "", |stored| {
        let capacity = made(made(stored, "spec"), "capacity");
        let is_small = size(capacity.get("storage")) < size(Some(wanted));
        if is_small {
            capacity.insert("storage".to_owned(), wanted.clone());
        }
        is_small
    });
    set_status(cluster, CLAIMS, key, &[("capacity", json!({"storage": wanted}))]);
}

/// Sets fields of a status, unless they are so.
fn set_status(cluster: &dyn Context, collection: &str, key: &str, fields: &[(&str, Value)]) {
    let now = cluster.now();
    change(cluster, collection, key, "status", |object| {
        let status = made(object, "status");
        let differs = |(name, value): &&(&str, Value)| status.get(*name) != Some(value);
        let changed: Vec<_> = fields.iter().filter(differs).collect();
        let is_changed = !changed.is_empty();
        for (name, value) in changed {
            if collection == VOLUMES && *name == "phase" {
                status.insert("lastPhaseTransitionTime".to_owned(), json!(now));
            }
            status.insert((*name).to_owned(), value.clone());
        }
        is_changed
    });
}

fn requested(claim: &Object) -> Option<&Value> {
    at(below(claim, "spec"), &["resources", "requests"]).get("storage")
}

fn reference_to(claim: &Object) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": field(claim, "namespace"),
        "name": field(claim, "name"), "uid": field(claim, "uid"),
        "resourceVersion": field(claim, "resourceVersion")})
}

/// True if a reference names the claim of a key.
fn refers(reference: &Object, key: &str) -> bool {
    key.split_once('/') == Some((text(reference, "namespace"), text(reference, "name")))
}

/// True if a reference means this claim, or any of its name.
fn is_of(reference: &Object, claim: &Object) -> bool {
    matches!(text(reference, "uid"), uid if uid.is_empty() || uid == field(claim, "uid"))
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

    const KEY: &str = "default/data";

    fn server() -> Arc<Server> {
        let options = Options {
            stand_ins: StandIns::ALL,
            storage_protection: true,
            ..Options::default()
        };
        Server::new(options, Store::new())
    }

    fn put(server: &Server, collection: &str, key: &str, mut object: Value) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(name);
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let Value::Object(object) = object else {
            panic!("an object")
        };
        let written = server.store.put(collection, key, Expect::Absent, |revision| {
            stored::encode(object, revision)
        });
        written.expect("written");
    }

    fn settle(server: &Server) {
        let mut state = Loop::new();
        while state.turn(server) {}
    }

    fn claim(class: &str) -> Value {
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Pending"}})
    }

    fn volume(size: &str, policy: &str) -> Value {
        json!({"spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "volumeMode": "Filesystem",
            "storageClassName": "", "capacity": {"storage": size}, "persistentVolumeReclaimPolicy": policy},
            "status": {"phase": "Pending"}})
    }

    fn phase(server: &Server, collection: &str, key: &str) -> String {
        let object = server.get(collection, key).unwrap_or_default();
        text(below(&object, "status"), "phase").to_owned()
    }

    fn delete(server: &Server, collection: &str, key: &str) {
        let entry = server.store.get(collection, key).expect("stored");
        let gone = server
            .store
            .delete(collection, key, entry.revision, |_| entry.object.clone());
        gone.expect("deleted");
    }

    #[test]
    fn a_claim_of_a_class_gets_a_volume_which_goes_with_it() {
        let server = server();
        put(&server, CLAIMS, KEY, claim("standard"));
        settle(&server);
        let bound = server.get(CLAIMS, KEY).expect("a claim");
        assert_eq!(bound["spec"]["volumeName"], "pvc-data");
        assert_eq!(bound["status"]["capacity"]["storage"], "1Gi");
        assert_eq!(bound["metadata"]["annotations"][COMPLETED], "yes");
        let volume = server.get(VOLUMES, "pvc-data").expect("a volume");
        assert_eq!(volume["spec"]["claimRef"]["uid"], "data");
        assert_eq!(
            [phase(&server, CLAIMS, KEY), phase(&server, VOLUMES, "pvc-data")],
            ["Bound", "Bound"]
        );
        let revision = server.store.revision();
        settle(&server);
        assert_eq!(server.store.revision(), revision, "nothing is written twice");
        delete(&server, CLAIMS, KEY);
        settle(&server);
        assert!(server.get(VOLUMES, "pvc-data").is_none());
    }

    #[test]
    fn a_claim_without_a_class_gets_the_smallest_volume_that_is_large_enough() {
        let server = server();
        for (name, size) in [("small", "500Mi"), ("large", "5Gi"), ("right", "2Gi")] {
            put(&server, VOLUMES, name, volume(size, "Retain"));
        }
        put(&server, CLAIMS, KEY, claim(""));
        settle(&server);
        let bound = server.get(CLAIMS, KEY).expect("a claim");
        assert_eq!(bound["spec"]["volumeName"], "right");
        assert_eq!(bound["status"]["capacity"]["storage"], "2Gi");
        assert_eq!(phase(&server, VOLUMES, "large"), "Available");
        delete(&server, CLAIMS, KEY);
        settle(&server);
        assert_eq!(phase(&server, VOLUMES, "right"), "Released");
    }

    #[test]
    fn a_claim_that_names_a_volume_gets_it_if_it_fits() {
        let server = server();
        for (name, size, phase_of_claim) in [("small", "500Mi", "Pending"), ("large", "5Gi", "Bound")] {
            put(&server, VOLUMES, name, volume(size, "Retain"));
            let mut claim = claim("");
            claim["spec"]["volumeName"] = json!(name);
            let key = format!("default/{name}");
            put(&server, CLAIMS, &key, claim);
            settle(&server);
            assert_eq!(phase(&server, CLAIMS, &key), phase_of_claim, "{name}");
        }
        assert_eq!(phase(&server, VOLUMES, "small"), "Available");
    }

    #[test]
    fn a_claim_of_a_class_that_waits_is_bound_when_a_pod_needs_it() {
        let server = server();
        let class = json!({"provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer"});
        put(&server, CLASSES, "late", class);
        put(&server, CLAIMS, KEY, claim("late"));
        put(&server, CLAIMS, "default/none", claim("unknown"));
        settle(&server);
        assert_eq!(phase(&server, CLAIMS, KEY), "Pending");
        delete(&server, CLAIMS, KEY);
        let mut wanted = claim("late");
        wanted["metadata"]["annotations"] = json!({SELECTED: "stand-in"});
        put(&server, CLAIMS, KEY, wanted);
        settle(&server);
        assert_eq!(phase(&server, CLAIMS, KEY), "Bound");
        assert_eq!(phase(&server, CLAIMS, "default/none"), "Pending");
    }

    #[test]
    fn a_claim_that_is_older_than_the_default_class_gets_it() {
        let server = server();
        let mut old = claim("");
        old["spec"]
            .as_object_mut()
            .expect("a spec")
            .remove("storageClassName");
        put(&server, CLAIMS, KEY, old);
        settle(&server);
        let bound = server.get(CLAIMS, KEY).expect("a claim");
        assert_eq!(bound["spec"]["storageClassName"], "standard");
        assert_eq!(phase(&server, CLAIMS, KEY), "Bound");
    }

    #[test]
    fn a_claim_whose_volume_is_gone_is_lost() {
        let server = server();
        put(&server, VOLUMES, "v", volume("1Gi", "Retain"));
        put(&server, CLAIMS, KEY, claim(""));
        settle(&server);
        delete(&server, VOLUMES, "v");
        settle(&server);
        assert_eq!(phase(&server, CLAIMS, KEY), "Lost");
    }
}
