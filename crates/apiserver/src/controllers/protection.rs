//! Claims and volumes that are being deleted lose the finalizer that protects them as soon as nothing uses them: a claim is used
//! by a Pod that has not ended, a volume by the claim that it is bound to, a class of volume attributes by those who name it. Source: the controllers `pvc-protection` and
//! `pv-protection` of kube-controller-manager.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Context, Controller, Place, Queue, Seen, objects::change};
use crate::{
    object::{Object, metadata_mut, text},
    store::Happened,
};

const CLAIMS: (&str, &str) = ("persistentvolumeclaims", "kubernetes.io/pvc-protection");
const VOLUMES: (&str, &str) = ("persistentvolumes", "kubernetes.io/pv-protection");
const CLASSES: (&str, &str) = (
    "storage.k8s.io/volumeattributesclasses",
    "kubernetes.io/vac-protection",
);
const PODS: &str = "pods";

/// The claims and volumes that are being deleted and protected.
#[derive(Default)]
pub(super) struct Protection {
    queue: Queue<Place>,
    /// Claims that Pods still use, looked at again when a Pod of their namespace changes; volumes and classes that are used.
    used: BTreeSet<Place>,
}

impl Controller for Protection {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        let collection = seen.place.collection.as_str();
        if collection == PODS {
            let namespace = seen.place.namespace();
            let again = self
                .used
                .iter()
                .filter(|claim| claim.collection == CLAIMS.0 && claim.namespace() == namespace);
            self.queue.extend(again.cloned());
            return;
        }
        if [CLAIMS.0, VOLUMES.0].contains(&collection) {
            let again = self.used.iter().filter(|place| place.collection == CLASSES.0);
            self.queue.extend(again.cloned());
        }
        for (of_kind, finalizer) in [CLAIMS, VOLUMES, CLASSES] {
            if collection != of_kind {
                continue;
            }
            self.used.remove(&seen.place);
            if seen.happened != Happened::Deleted && seen.head.is_leaving() && seen.head.has(finalizer) {
                self.queue.insert(seen.place.clone());
            }
        }
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        let Some(place) = self.queue.pop_first() else {
            return false;
        };
        if cluster.storage_protection() {
            self.release(cluster, &place);
        }
        true
    }
}

impl Protection {
    /// Cost: O(Pods of the namespace).
    fn release(&mut self, cluster: &dyn Context, place: &Place) {
        let (is_used, finalizer) = if place.collection == CLAIMS.0 {
            let pods = cluster.list(PODS, &format!("{}/", place.namespace()));
            (pods.iter().any(|pod| uses(pod, place.name())), CLAIMS.1)
        } else if place.collection == CLASSES.0 {
            let named = |object: &Object| {
                let spec = object.get("spec").unwrap_or(&Value::Null);
                text(spec, "volumeAttributesClassName") == place.name()
            };
            let used = [CLAIMS.0, VOLUMES.0]
                .iter()
                .any(|all| cluster.list(all, "").iter().any(named));
            (used, CLASSES.1)
        } else {
            let volume = cluster.get(VOLUMES.0, &place.key).unwrap_or_default();
            (phase(&volume) == "Bound", VOLUMES.1)
        };
        if is_used {
            self.used.insert(place.clone());
            return;
        }
        self.used.remove(place);
        change(cluster, &place.collection, &place.key, "", |object| {
            let metadata = metadata_mut(object);
            let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") else {
                return false;
            };
            let before = finalizers.len();
            finalizers.retain(|each| each != finalizer);
            let after = finalizers.len();
            if after == 0 {
                metadata.remove("finalizers");
            }
            after != before
        });
    }
}

fn uses(pod: &Object, claim: &str) -> bool {
    let volumes = pod.get("spec").and_then(|spec| spec["volumes"].as_array());
    let names_it = |volume: &Value| text(&volume["persistentVolumeClaim"], "claimName") == claim;
    !["Succeeded", "Failed"].contains(&phase(pod)) && volumes.into_iter().flatten().any(names_it)
}

fn phase(object: &Object) -> &str {
    object.get("status").map_or("", |status| text(status, "phase"))
}
