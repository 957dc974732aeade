//! Namespaces of the hub and of members.

use super::{Deletion, Dirty, Origin};
use crate::{
    index::{Index, is_old, routes::Changed},
    member_namespace::Seen,
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

impl Index {
    /// Cost: O(members).
    pub(super) fn hub_namespace_seen(&mut self, name: &Str, meta: Meta, now: Time, dirty: &mut Dirty) {
        let held = self.namespaces.hub.get(name).map(Meta::revision);
        let which = ObjectRef::Namespace(None, name.clone());
        if is_old(&meta.resource_version, self.revisions.of(&which, held)) {
            return;
        }
        self.revisions.seen(&which);
        let before = self.namespaces.hub.insert(name.clone(), meta);
        self.namespaces.endings.retain(|(_, each), _| each != name);
        self.consent_changed(name, before.as_ref(), now, dirty);
        let labels = before.map(|meta| meta.labels).unwrap_or_default();
        self.namespace_changed(&on_hub(name), &labels, now, dirty);
        self.route(Changed::HubNamespace(name), dirty);
    }

    /// Cost: O(1); that of a plan for one that was seen before.
    pub(super) fn member_namespace_seen(
        &mut self,
        cluster: &Str,
        name: &Str,
        seen: Seen,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let held = self.namespaces.on(cluster, name).map(|held| held.revision);
        let which = ObjectRef::Namespace(Some(cluster.clone()), name.clone());
        let min_resource_version = self.revisions.of(&which, held);
        if seen.revision < min_resource_version {
            return;
        }
        // What differs because the member was restored was not changed by anybody.
        if held.is_some() && min_resource_version > 0 {
            match self.is_namespace_as_wanted(name, cluster, &seen) {
                Some(true) => {
                    let known = self.namespaces.unrest.get_mut(&(cluster.clone(), name.clone()));
                    known.into_iter().for_each(|each| each.settled(now));
                }
                Some(false) => self.disturbed(cluster, name, now),
                None => {}
            }
        }
        self.revisions.seen(&which);
        let at = (cluster.clone(), name.clone());
        let ends = self.namespaces.endings.get(&at);
        if ends.is_some_and(|ending| ending.uid != seen.uid || !seen.is_of(&self.config.hub, cluster)) {
            self.namespaces.endings.remove(&at);
        }
        let of_it = self.namespaces.members.entry(cluster.clone()).or_default();
        let before = of_it.insert(name.clone(), seen);
        let labels = before.map(|seen| seen.labels).unwrap_or_default();
        self.namespace_changed(&on_member(cluster, name), &labels, now, dirty);
        self.route(Changed::Namespace(name, cluster), dirty);
    }

    /// Cost: O(1).
    pub(super) fn namespace_gone(
        &mut self,
        member: Option<&Str>,
        name: &Str,
        deletion: &Deletion,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let held = match member {
            None => self.namespaces.hub.get(name).map(Meta::revision),
            Some(cluster) => self.namespaces.on(cluster, name).map(|held| held.revision),
        };
        let Some(held) = held else { return };
        let which = ObjectRef::Namespace(member.cloned(), name.clone());
        let min_resource_version = self.revisions.of(&which, Some(held));
        if deletion
            .revision
            .is_some_and(|revision| revision < min_resource_version)
        {
            return;
        }
        self.revisions
            .gone(which, deletion.min_resource_version(min_resource_version), now);
        match member {
            None => {
                let before = self.namespaces.hub.remove(name);
                self.consent_changed(name, before.as_ref(), now, dirty);
                let labels = before.map(|meta| meta.labels).unwrap_or_default();
                self.namespace_changed(&on_hub(name), &labels, now, dirty);
                self.namespaces.unrest.retain(|(_, each), _| each != name);
                let having: Vec<Str> = self.namespaces.having(name).cloned().collect();
                for cluster in having.iter().filter(|_| self.origin == Origin::Edit) {
                    let seen = self.namespaces.on(cluster, name);
                    if seen.is_some_and(|seen| seen.is_of(&self.config.hub, cluster))
                        && let Some(ending) = self.namespaces.ending_mut(cluster, name)
                    {
                        ending.explained = true;
                    }
                }
                dirty.extend(
                    having
                        .into_iter()
                        .map(|cluster| Key::Namespace(name.clone(), cluster)),
                );
            }
            Some(cluster) => {
                let of_it = self.namespaces.members.get_mut(cluster);
                let before = of_it.and_then(|of_it| of_it.remove(name));
                let labels = before.map(|seen| seen.labels).unwrap_or_default();
                self.namespace_changed(&on_member(cluster, name), &labels, now, dirty);
                if min_resource_version > 0 && self.namespaces.hub.contains_key(name) {
                    self.disturbed(cluster, name, now);
                }
                self.namespaces.endings.remove(&(cluster.clone(), name.clone()));
                self.route(Changed::Namespace(name, cluster), dirty);
            }
        }
    }

    /// The hub's namespaces are known: members may have some that it deleted meanwhile. Cost: O(namespaces of members).
    pub(super) fn hub_namespaces_listed(&self, dirty: &mut Dirty) {
        for (cluster, of_it) in &self.namespaces.members {
            let ours = of_it
                .iter()
                .filter(|(name, seen)| seen.created_by.is_some() && !self.namespaces.hub.contains_key(*name));
            dirty.extend(ours.map(|(name, _)| Key::Namespace(name.clone(), cluster.clone())));
        }
    }

    /// A member's namespaces are known. Cost: O(namespaces of the hub and of the member).
    pub(super) fn namespaces_listed(&mut self, cluster: &Str, dirty: &mut Dirty) {
        self.namespaces.listed.insert(cluster.clone());
        let of_it = self.namespaces.members.get(cluster).into_iter().flatten();
        let created = of_it.filter(|(_, seen)| seen.created_by.is_some());
        dirty.extend(created.map(|(name, _)| Key::Namespace(name.clone(), cluster.clone())));
        for name in self.namespaces.hub.keys() {
            self.route(Changed::Namespace(name, cluster), dirty);
        }
    }

    fn disturbed(&mut self, cluster: &Str, name: &Str, now: Time) {
        let which = (cluster.clone(), name.clone());
        self.namespaces.unrest.entry(which).or_default().changed(now);
    }
}
