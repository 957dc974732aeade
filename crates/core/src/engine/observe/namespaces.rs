//! Namespaces of the hub and of members.

use entourage_api::names;

use super::Dirty;
use crate::{
    cache::{Deletion, Held},
    engine::routes::Changed,
    fleet::Fleet,
    member_namespace::Seen,
    memory::Origin,
    object::{Meta, Str, Time},
    observation::ObjectRef,
    places::Place,
    plan::Key,
};

fn on_hub(name: &Str) -> Place {
    Place {
        cluster: None,
        namespace: name.clone(),
    }
}

fn on_member(cluster: &Str, name: &Str) -> Place {
    Place {
        cluster: Some(cluster.clone()),
        namespace: name.clone(),
    }
}

impl Fleet {
    /// A namespace of the hub was observed. Cost: O(members).
    pub(super) fn hub_namespace_seen(&mut self, name: &Str, meta: Meta, now: Time, dirty: &mut Dirty) {
        let held = self.cache.namespaces.hub.get(name);
        let held = held.map(|held| Held::of(held, &meta));
        let which = ObjectRef::Namespace(None, name.clone());
        if self.cache.revisions.see(&which, held, meta.revision()).is_none() {
            return;
        }
        let before = self.cache.namespaces.hub.insert(name.clone(), meta);
        self.cache.namespaces.endings.retain(|(_, each), _| each != name);
        self.consent_changed(name, before.as_ref(), now, dirty);
        self.secret_list_changed(name, before.as_ref(), now, dirty);
        let labels = before.map(|meta| meta.labels).unwrap_or_default();
        self.namespace_changed(&on_hub(name), &labels, now, dirty);
        self.route(Changed::HubNamespace(name), dirty);
        self.execution_namespace_changed(name, dirty);
    }

    /// A namespace of the hub was observed or deleted: if it is that of a Cluster, its planner and the Cluster may wait for that.
    /// Cost: O(log Clusters).
    fn execution_namespace_changed(&self, name: &str, dirty: &mut Dirty) {
        let cluster = names::cluster_of_execution_namespace(name);
        let held = cluster.and_then(|cluster| self.cache.members.get_key_value(cluster));
        if let Some((cluster, _)) = held {
            self.route(Changed::ExecutionNamespace(cluster), dirty);
            self.route(Changed::Cluster(cluster), dirty);
            // Works wait for it.
            if self.config.mirror_works {
                self.route(Changed::CopiesOf(cluster), dirty);
            }
        }
    }

    /// A namespace of a member was observed. Cost: O(1); that of a plan for one that was observed before.
    pub(super) fn member_namespace_seen(
        &mut self,
        cluster: &Str,
        name: &Str,
        seen: Seen,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let held = self.cache.namespaces.on(cluster, name).map(|held| Held {
            revision: held.revision,
            is_same: *held == seen,
        });
        let which = ObjectRef::Namespace(Some(cluster.clone()), name.clone());
        let Some(freshness) = self.cache.revisions.see(&which, held, seen.revision) else {
            return;
        };
        // A difference because the member was restored is no drift.
        if held.is_some() && !freshness.is_unknown() && self.is_namespace_changed(name, cluster, &seen) {
            self.cache.namespaces.note_drift(cluster, name, now);
        }
        let at = (cluster.clone(), name.clone());
        let ends = self.cache.namespaces.endings.get(&at);
        if ends.is_some_and(|ending| ending.uid != seen.uid || !seen.is_of(&self.config.hub, cluster)) {
            self.cache.namespaces.endings.remove(&at);
        }
        let of_it = self.cache.namespaces.members.entry(cluster.clone()).or_default();
        let before = of_it.insert(name.clone(), seen);
        let labels = before.map(|seen| seen.labels).unwrap_or_default();
        self.namespace_changed(&on_member(cluster, name), &labels, now, dirty);
        self.quotas_in(cluster, name, dirty);
        self.route(Changed::Namespace(name, cluster), dirty);
        self.left_behind_changed(cluster, dirty);
    }

    /// A namespace of a member changed: the execution namespace of one that leaves may wait for it. Cost: O(log Clusters).
    fn left_behind_changed(&self, cluster: &Str, dirty: &mut Dirty) {
        let member = self.cache.members.get(cluster);
        if member.is_some_and(|member| member.meta.deleting.is_some()) {
            self.route(Changed::ExecutionNamespace(cluster), dirty);
        }
    }

    /// A namespace was deleted. Cost: O(1).
    pub(super) fn namespace_gone(
        &mut self,
        member: Option<&Str>,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let held = match member {
            None => {
                let held = self.cache.namespaces.hub.get(name);
                held.map(|held| (held.uid.clone(), held.revision()))
            }
            Some(cluster) => {
                let held = self.cache.namespaces.on(cluster, name);
                held.map(|held| (held.uid.clone(), held.revision))
            }
        };
        let Some((uid, revision)) = held else { return };
        let which = ObjectRef::Namespace(member.cloned(), name.clone());
        let ended = self.cache.revisions.end(which, (&uid, revision), deletion, now);
        let Some(freshness) = ended else { return };
        match member {
            None => {
                let before = self.cache.namespaces.hub.remove(name);
                self.consent_changed(name, before.as_ref(), now, dirty);
                self.secret_list_changed(name, before.as_ref(), now, dirty);
                let labels = before.map(|meta| meta.labels).unwrap_or_default();
                self.namespace_changed(&on_hub(name), &labels, now, dirty);
                self.cache
                    .namespaces
                    .drift_backoffs
                    .retain(|(_, each), _| each != name);
                let having: Vec<Str> = self.cache.namespaces.having(name).cloned().collect();
                for cluster in having.iter().filter(|_| self.memory.origin == Origin::Edit) {
                    let seen = self.cache.namespaces.on(cluster, name);
                    if seen.is_some_and(|seen| seen.is_of(&self.config.hub, cluster))
                        && let Some(ending) = self.cache.namespaces.ending_mut(cluster, name)
                    {
                        ending.explained = true;
                    }
                }
                dirty.extend(
                    having
                        .into_iter()
                        .map(|cluster| Key::Namespace(name.clone(), cluster)),
                );
                self.execution_namespace_changed(name, dirty);
            }
            Some(cluster) => {
                let of_it = self.cache.namespaces.members.get_mut(cluster);
                let before = of_it.and_then(|of_it| of_it.remove(name));
                let labels = before.map(|seen| seen.labels).unwrap_or_default();
                self.namespace_changed(&on_member(cluster, name), &labels, now, dirty);
                if !freshness.is_unknown() && self.cache.namespaces.hub.contains_key(name) {
                    self.cache.namespaces.note_drift(cluster, name, now);
                }
                self.cache
                    .namespaces
                    .endings
                    .remove(&(cluster.clone(), name.clone()));
                self.route(Changed::Namespace(name, cluster), dirty);
                self.left_behind_changed(cluster, dirty);
            }
        }
    }

    /// The hub's namespaces are synced: members may have some that it deleted meanwhile, and Clusters may lack theirs. Cost:
    /// O(namespaces of members).
    pub(super) fn hub_namespaces_listed(&self, dirty: &mut Dirty) {
        for cluster in self.cache.members.keys() {
            self.route(Changed::ExecutionNamespace(cluster), dirty);
            self.route(Changed::Cluster(cluster), dirty);
        }
        for (cluster, of_it) in &self.cache.namespaces.members {
            let ours = of_it.iter().filter(|(name, seen)| {
                seen.created_by.is_some() && !self.cache.namespaces.hub.contains_key(*name)
            });
            dirty.extend(ours.map(|(name, _)| Key::Namespace(name.clone(), cluster.clone())));
        }
    }

    /// A member's namespaces are synced. Cost: O(namespaces of the hub and of the member).
    pub(super) fn namespaces_listed(&mut self, cluster: &Str, dirty: &mut Dirty) {
        self.cache.namespaces.listed.insert(cluster.clone());
        let of_it = self.cache.namespaces.members.get(cluster).into_iter().flatten();
        let created = of_it.filter(|(_, seen)| seen.created_by.is_some());
        dirty.extend(created.map(|(name, _)| Key::Namespace(name.clone(), cluster.clone())));
        for name in self.cache.namespaces.hub.keys() {
            self.route(Changed::Namespace(name, cluster), dirty);
        }
    }
}
