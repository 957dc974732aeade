//! Namespaces of the hub and of members.

use std::collections::{BTreeMap, BTreeSet};

use super::{Deletion, Dirty, Origin};
use crate::{
    distribution::Place,
    index::{Index, is_old},
    namespaces::{self, Ending, Seen, Survey, Unrest, content::Contents},
    object::{Meta, Str, Time},
    observation::Which,
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

/// Namespaces as seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespaces {
    /// Those of the hub.
    pub(crate) hub: BTreeMap<Str, Meta>,
    /// Those of members.
    members: BTreeMap<Str, BTreeMap<Str, Seen>>,
    /// Members whose namespaces are listed, and the watch is healthy.
    listed: BTreeSet<Str>,
    /// (member, namespace) → how often others changed what we set.
    unrest: BTreeMap<(Str, Str), Unrest>,
    /// (member, namespace) → what is held of it while it ends: only of those that members have, with our record, and the hub
    /// has not.
    endings: BTreeMap<(Str, Str), Ending>,
}

impl Namespaces {
    /// A namespace of a member.
    pub(crate) fn on(&self, cluster: &str, name: &str) -> Option<&Seen> {
        self.members.get(cluster)?.get(name)
    }

    /// Until when a namespace of a member is left alone, because it is changed again and again. Cost: O(log those).
    pub(crate) fn restless_until(&self, cluster: &Str, name: &Str, now: Time) -> Option<Time> {
        self.unrest.get(&(cluster.clone(), name.clone()))?.until(now)
    }

    /// What is held of a namespace of a member that ends.
    pub(crate) fn ending(&self, cluster: &Str, name: &Str) -> Option<&Ending> {
        self.endings.get(&(cluster.clone(), name.clone()))
    }

    /// The same, to be changed; `None` where the member has none, or the hub has it. Cost: O(log namespaces).
    pub(super) fn ending_mut(&mut self, cluster: &Str, name: &Str) -> Option<&mut Ending> {
        if self.hub.contains_key(name) {
            return None;
        }
        let uid = self.on(cluster, name)?.uid.clone();
        let which = (cluster.clone(), name.clone());
        Some(self.endings.entry(which).or_insert_with(|| Ending {
            uid,
            ..Ending::default()
        }))
    }

    pub(super) fn looked_into(&mut self, cluster: &Str, name: &Str, contents: Contents, now: Time) {
        if let Some(ending) = self.ending_mut(cluster, name) {
            let looks = ending.survey.as_ref().map_or(0, |survey| survey.looks) + 1;
            let at = now;
            ending.survey = Some(Survey { contents, at, looks });
        }
    }

    pub(super) fn forget_survey(&mut self, cluster: &Str, name: &Str) {
        if let Some(ending) = self.endings.get_mut(&(cluster.clone(), name.clone())) {
            ending.survey = None;
        }
    }

    /// Members that have a namespace. Cost: O(members).
    fn having<'a>(&'a self, name: &'a Str) -> impl Iterator<Item = &'a Str> {
        let having = self
            .members
            .iter()
            .filter(move |(_, of_it)| of_it.contains_key(name));
        having.map(|(cluster, _)| cluster)
    }

    /// The names of a member's namespaces, in order.
    pub(crate) fn names_on(&self, cluster: &str) -> impl Iterator<Item = &Str> {
        self.members.get(cluster).into_iter().flat_map(BTreeMap::keys)
    }

    /// Whether what a member has is known.
    pub(crate) fn is_listed(&self, cluster: &str) -> bool {
        self.listed.contains(cluster)
    }

    /// What is known of one server's: the hub's, or a member's.
    pub(super) fn held(&self, member: Option<&Str>) -> Vec<Which> {
        let names: Vec<Str> = match member {
            None => self.hub.keys().cloned().collect(),
            Some(cluster) => self
                .members
                .get(cluster)
                .into_iter()
                .flat_map(BTreeMap::keys)
                .cloned()
                .collect(),
        };
        names
            .into_iter()
            .map(|name| Which::Namespace(member.cloned(), name))
            .collect()
    }

    pub(crate) fn forget_member(&mut self, cluster: &str) {
        self.members.remove(cluster);
        self.listed.remove(cluster);
        self.unrest.retain(|(member, _), _| **member != *cluster);
        self.endings.retain(|(member, _), _| **member != *cluster);
    }

    pub(super) fn lost(&mut self, cluster: &str) {
        self.listed.remove(cluster);
    }
}

impl Index {
    /// Cost: O(members).
    pub(super) fn hub_namespace_seen(&mut self, name: &Str, meta: Meta, now: Time, dirty: &mut Dirty) {
        let held = self.namespaces.hub.get(name).map(Meta::revision);
        let which = Which::Namespace(None, name.clone());
        if is_old(&meta.resource_version, self.floors.of(&which, held)) {
            return;
        }
        self.floors.seen(&which);
        let before = self.namespaces.hub.insert(name.clone(), meta);
        self.namespaces.endings.retain(|(_, each), _| each != name);
        self.consent_changed(name, before.as_ref(), now, dirty);
        let labels = before.map(|meta| meta.labels).unwrap_or_default();
        self.namespace_changed(&on_hub(name), &labels, now, dirty);
        for cluster in self.members.keys() {
            dirty.push(Key::Namespace(name.clone(), cluster.clone()));
        }
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
        let which = Which::Namespace(Some(cluster.clone()), name.clone());
        let floor = self.floors.of(&which, held);
        if seen.revision < floor {
            return;
        }
        // What differs because the member was restored was not changed by anybody.
        if held.is_some() && floor > 0 {
            match namespaces::is_as_wanted(self, name, cluster, &seen) {
                Some(true) => {
                    let known = self.namespaces.unrest.get_mut(&(cluster.clone(), name.clone()));
                    known.into_iter().for_each(|each| each.settled(now));
                }
                Some(false) => self.disturbed(cluster, name, now),
                None => {}
            }
        }
        self.floors.seen(&which);
        let at = (cluster.clone(), name.clone());
        let ends = self.namespaces.endings.get(&at);
        if ends.is_some_and(|ending| ending.uid != seen.uid || !seen.is_of(&self.config.hub, cluster)) {
            self.namespaces.endings.remove(&at);
        }
        let of_it = self.namespaces.members.entry(cluster.clone()).or_default();
        let before = of_it.insert(name.clone(), seen);
        let labels = before.map(|seen| seen.labels).unwrap_or_default();
        self.namespace_changed(&on_member(cluster, name), &labels, now, dirty);
        dirty.push(Key::Namespace(name.clone(), cluster.clone()));
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
        let which = Which::Namespace(member.cloned(), name.clone());
        let floor = self.floors.of(&which, Some(held));
        if deletion.revision.is_some_and(|revision| revision < floor) {
            return;
        }
        self.floors.gone(which, deletion.floor(floor), now);
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
                if floor > 0 && self.namespaces.hub.contains_key(name) {
                    self.disturbed(cluster, name, now);
                }
                self.namespaces.endings.remove(&(cluster.clone(), name.clone()));
                dirty.push(Key::Namespace(name.clone(), cluster.clone()));
            }
        }
    }

    /// Something in a namespace ended on a member: if the hub has the namespace no more, that may end, too. Cost: O(log).
    pub(super) fn may_end_namespace(&self, name: &Str, cluster: &Str, dirty: &mut Dirty) {
        if !name.is_empty() && !self.namespaces.hub.contains_key(name) {
            dirty.push(Key::Namespace(name.clone(), cluster.clone()));
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
            dirty.push(Key::Namespace(name.clone(), cluster.clone()));
        }
    }

    fn disturbed(&mut self, cluster: &Str, name: &Str, now: Time) {
        let which = (cluster.clone(), name.clone());
        self.namespaces.unrest.entry(which).or_default().changed(now);
    }
}
