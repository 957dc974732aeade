//! The life cycle of CRDs: names are accepted, the kind is served and established; when the CRD is
//! deleted its objects go first.
//!
//! One task per cluster, woken by the store. It starts from the stored objects, so CRDs from before its start are served too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak, atomic::AtomicU64},
};

use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::{
    apply::SERVER,
    controllers::{Context, Head},
    crd::{
        COLLECTION,
        names::{self, FINALIZER},
        resources,
    },
    delete::{self, DeleteOptions},
    object::{self, Object, field, finalizers, metadata_mut},
    registry,
    resource::{Resource, stored},
    schema::declared,
    store::{Entry, Happened, Revision},
};

/// Starts the task. It ends with the cluster.
pub(crate) fn start(cluster: &Arc<dyn Context>) {
    let mut crds = cluster.store().ticks_of(COLLECTION);
    let weak: Weak<dyn Context> = Arc::downgrade(cluster);
    let mut lifecycle = Lifecycle::default();
    // The kinds of stored CRDs are served before the first request.
    lifecycle.sync(&**cluster);
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    runtime.spawn(async move {
        loop {
            crds.mark_unchanged();
            for emptying in lifecycle.emptying() {
                emptying.ticks.mark_unchanged();
            }
            match weak.upgrade() {
                Some(cluster) => lifecycle.sync(&*cluster),
                None => return,
            }
            // Objects that hold up a deletion go with writes of their collection.
            let mut ticks: Vec<_> = lifecycle
                .emptying()
                .map(|emptying| Box::pin(emptying.ticks.changed()))
                .collect();
            ticks.push(Box::pin(crds.changed()));
            let (woken, ..) = futures::future::select_all(ticks).await;
            if woken.is_err() {
                return;
            }
        }
    });
}

/// The state of the task.
#[derive(Debug, Default)]
struct Lifecycle {
    /// Events up to here were seen.
    at: Option<Revision>,
    crds: BTreeMap<String, Known>,
    /// CRDs whose objects are not all gone.
    leaving: BTreeSet<String>,
}

/// The state of a CRD.
#[derive(Debug, Default)]
struct Known {
    group: String,
    collection: String,
    accepted: Map<String, Value>,
    /// The basis of the served resources: uid, generation, accepted names, and true if the CRD is being deleted.
    served: Option<(String, i64, Map<String, Value>, bool)>,
    resources: Vec<Arc<Resource>>,
    /// Shared by all definitions of the CRD that were ever served.
    late: Arc<AtomicU64>,
    /// Set when its objects are being deleted.
    emptying: Option<Emptying>,
}

/// The objects of a CRD that is deleted.
#[derive(Debug)]
struct Emptying {
    /// The version that they are stored in, served or not.
    resource: Arc<Resource>,
    /// Objects written up to this revision are being deleted; `None` before the first deletion.
    at: Option<Revision>,
    ticks: watch::Receiver<Revision>,
}

impl Lifecycle {
    fn emptying(&mut self) -> impl Iterator<Item = &mut Emptying> {
        self.crds.values_mut().filter_map(|known| known.emptying.as_mut())
    }

    /// Takes in what happened. O(events + CRDs of the groups they touch).
    fn sync(&mut self, cluster: &dyn Context) {
        let mut dirty: BTreeSet<String> = self.leaving.clone();
        let events = self.at.map(|at| cluster.store().events(COLLECTION, "", at, 0));
        if let Some(Ok((events, reached))) = events {
            self.at = Some(reached);
            dirty.extend(events.iter().map(|event| event.entry.key.clone()));
        } else {
            let page = cluster.store().list(COLLECTION, "", None, 0);
            self.at = Some(page.revision);
            dirty.extend(page.entries.iter().map(|entry| entry.key.clone()));
            dirty.extend(self.crds.keys().cloned());
        }
        while let Some(name) = dirty.pop_first() {
            let group = self.crds.get(&name).map(|known| known.group.clone());
            if self.one(cluster, &name)
                && let Some(group) = group
            {
                // Names became free: others of the group may have waited for them.
                let waiting = self.crds.iter().filter(|(other, known)| {
                    **other != name && known.group == group && known.served.is_none()
                });
                dirty.extend(waiting.map(|(other, _)| other.clone()));
            }
        }
    }

    /// Advances one CRD in its life cycle. Returns true if names became free.
    fn one(&mut self, cluster: &dyn Context, name: &str) -> bool {
        let Some(crd) = cluster.get(COLLECTION, name) else {
            self.leaving.remove(name);
            return match self.crds.remove(name) {
                Some(known) => {
                    retire(cluster, &known);
                    true
                }
                None => false,
            };
        };
        let crd = if field(&crd, "deletionTimestamp").is_empty() {
            self.accept(cluster, name, crd)
        } else {
            crd
        };
        let freed = self.serve(cluster, name, &crd);
        if field(&crd, "deletionTimestamp").is_empty() {
            return freed;
        }
        if self.empty(cluster, name, &crd) {
            self.leaving.remove(name);
            let known = self.crds.remove(name).unwrap_or_default();
            retire(cluster, &known);
            update(cluster, name, &mut |crd| {
                let rest: Vec<Value> = finalizers(crd)
                    .filter(|finalizer| *finalizer != FINALIZER)
                    .map(Value::from)
                    .collect();
                metadata_mut(crd).insert("finalizers".to_owned(), rest.into());
                true
            });
            return true;
        }
        self.leaving.insert(name.to_owned());
        freed
    }

    /// Writes what of the names is accepted, and then, when the kind is served, that it is established.
    fn accept(&mut self, cluster: &dyn Context, name: &str, mut crd: Object) -> Object {
        let group = group(&crd);
        let others: Vec<&Map<String, Value>> = self
            .crds
            .iter()
            .filter(|(other, known)| *other != name && known.group == group)
            .map(|(_, known)| &known.accepted)
            .collect();
        let now = cluster.now();
        let wanted = names::status(&crd, &others, &now);
        if crd.get("status") != Some(&wanted) {
            crd = update(cluster, name, &mut |crd| {
                crd.insert("status".to_owned(), names::status(crd, &others, &now));
                true
            })
            .unwrap_or(crd);
        }
        if names::is(&crd, "NamesAccepted") && !names::is(&crd, "Established") {
            // Served first: who sees the condition may use the kind.
            let mut established = crd.clone();
            names::establish(&mut established, &now);
            self.serve(cluster, name, &established);
            crd = update(cluster, name, &mut |crd| {
                names::establish(crd, &now);
                true
            })
            .unwrap_or(crd);
        }
        crd
    }

    /// Serves an established CRD as it is now. Returns true if accepted names changed.
    fn serve(&mut self, cluster: &dyn Context, name: &str, crd: &Object) -> bool {
        let known = self.crds.entry(name.to_owned()).or_default();
        known.group = group(crd);
        let accepted = crd
            .get("status")
            .and_then(|status| status.get("acceptedNames"))
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let freed = known.accepted != accepted && !known.accepted.is_empty();
        known.accepted.clone_from(&accepted);
        if !names::is(crd, "Established") {
            return freed;
        }
        let generation = object::metadata(crd).get("generation").and_then(Value::as_i64);
        let leaving = !field(crd, "deletionTimestamp").is_empty();
        let made_of = (
            field(crd, "uid").to_owned(),
            generation.unwrap_or(0),
            accepted,
            leaving,
        );
        if known.served.as_ref() == Some(&made_of) {
            return freed;
        }
        // A CRD that only began to leave is served as before, but for creates: its watches go on.
        let only_leaves = known
            .served
            .as_ref()
            .is_some_and(|served| (&served.0, served.1, &served.2) == (&made_of.0, made_of.1, &made_of.2));
        let before = std::mem::take(&mut known.resources);
        let mut made = resources(
            crd,
            only_leaves.then(|| before.first().cloned()).flatten().as_deref(),
            &known.late,
        );
        // Such names are taken, whatever the CRD declares.
        made.retain(|resource| !cluster.kinds().is_builtin(&resource.group, &resource.plural));
        known.collection = made.first().map(|one| one.collection.clone()).unwrap_or_default();
        let collection = before
            .first()
            .map_or_else(|| known.collection.clone(), |one| one.collection.clone());
        if !only_leaves {
            // Before the change that wakes the watches.
            end(&before);
        }
        cluster.change_kinds(&mut |kinds| {
            kinds.remove_custom(&collection);
            for resource in &made {
                kinds.add_custom(resource.clone());
            }
        });
        let next = cluster.store().revision() + 1;
        for resource in &made {
            if let Some(custom) = &resource.custom {
                custom.served_since(next);
            }
        }
        known.resources = made;
        known.served = Some(made_of);
        freed
    }

    /// Deletes the objects of a CRD, each once. Returns true if all are gone. O(objects) at first, then O(events).
    fn empty(&mut self, cluster: &dyn Context, name: &str, crd: &Object) -> bool {
        let Some(known) = self.crds.get_mut(name) else {
            return true;
        };
        if known.emptying.is_none() {
            let Some(resource) = stored(crd, known) else {
                return true;
            };
            if cluster.kinds().is_builtin(&resource.group, &resource.plural) {
                return true;
            }
            known.emptying = Some(Emptying {
                ticks: cluster.store().ticks_of(&resource.collection),
                resource,
                at: None,
            });
        }
        let Some(emptying) = &mut known.emptying else {
            return true;
        };
        let resource = emptying.resource.clone();
        let since = emptying
            .at
            .and_then(|at| cluster.store().events(&resource.collection, "", at, 0).ok());
        let entries: Vec<Arc<Entry>> = if let Some((events, reached)) = since {
            emptying.at = Some(reached);
            // A create that had begun before the deletion did.
            let added = events.iter().filter(|event| event.happened == Happened::Added);
            added.map(|event| event.entry.clone()).collect()
        } else {
            let page = cluster.store().list(&resource.collection, "", None, 0);
            emptying.at = Some(page.revision);
            page.entries
        };
        for entry in entries {
            if Head::of(&entry).is_leaving() {
                continue;
            }
            let (namespace, name) = entry.key.split_once('/').unwrap_or(("", &entry.key));
            // An object that is already deleted needs no more.
            let _ = delete::object(cluster, &resource, namespace, name, &DeleteOptions::default());
        }
        let left = !cluster
            .store()
            .list(&resource.collection, "", None, 1)
            .entries
            .is_empty();
        if left && !names::has_reason(crd, "Terminating", "InstanceDeletionInProgress") {
            let now = cluster.now();
            update(cluster, name, &mut |crd| {
                names::set(
                    crd,
                    "Terminating",
                    true,
                    "InstanceDeletionInProgress",
                    "CustomResource deletion is in progress",
                    &now,
                );
                true
            });
        }
        !left
    }
}

/// The resource of a CRD's stored version as if it were served; `None` when its names were never accepted.
fn stored(crd: &Object, known: &Known) -> Option<Arc<Resource>> {
    let mut crd = crd.clone();
    let versions = crd.get_mut("spec").and_then(|spec| spec.get_mut("versions"));
    for version in versions.and_then(Value::as_array_mut).into_iter().flatten() {
        version["served"] = version["storage"].clone();
    }
    let resource = resources(&crd, None, &known.late).into_iter().next()?;
    (!resource.plural.is_empty()).then_some(resource)
}

/// The kind is served no longer.
fn retire(cluster: &dyn Context, known: &Known) {
    if known.resources.is_empty() {
        return;
    }
    cluster.change_kinds(&mut |kinds| kinds.remove_custom(&known.collection));
    end(&known.resources);
}

fn end(resources: &[Arc<Resource>]) {
    for custom in resources.iter().filter_map(|resource| resource.custom.as_ref()) {
        custom.replaced.cancel();
    }
}

/// Changes the stored CRD through its status. Returns the new state, with apiVersion and kind; `None` when it is gone.
fn update(cluster: &dyn Context, name: &str, change: &mut dyn FnMut(&mut Object) -> bool) -> Option<Object> {
    let kinds = cluster.kinds();
    let resource = kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
    let entry = registry::rewrite_as(SERVER, cluster, resource, name, "status", change)?;
    Some(stored::shown(resource, &entry.object))
}

fn group(crd: &Object) -> String {
    declared::object(crd, "spec")
        .and_then(|spec| declared::text(spec, "group"))
        .unwrap_or_default()
        .to_owned()
}
