//! Member clusters and their probes.

use std::sync::Arc;

use entourage_api::cluster::Cluster;

use super::{Deletion, Dirty};
use crate::{
    index::{Index, Member, Trouble, is_old, meta_of},
    object::{Str, Time},
    observation::{Probe, Server, Watch, Which},
    plan::Key,
    scheduler,
};

impl Index {
    /// Cost: O(bindings with a placement) when something that scheduling looks at changed, else O(1).
    pub(super) fn cluster_seen(&mut self, cluster: Arc<Cluster>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&cluster.metadata);
        let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
        let before = self.members.get(&name);
        let which = Which::Cluster(name.clone());
        let floor = self.floors.of(&which, before.map(|held| held.meta.revision()));
        let is_echo = floor > 0 && before.is_some_and(|held| held.meta.is_same_version(&meta));
        if is_echo || is_old(&meta.resource_version, floor) {
            return;
        }
        let changed = before.is_none_or(|held| {
            scheduler::relevant_change(&held.object, &cluster)
                || held.meta.deleting.is_some() != meta.deleting.is_some()
        });
        let going = meta.deleting.is_some();
        let (probe, failing_since) = before
            .map(|held| (held.probe.clone(), held.failing_since))
            .unwrap_or_default();
        self.members.insert(
            name.clone(),
            Member {
                meta,
                object: cluster,
                probe,
                failing_since,
            },
        );
        self.floors.seen(&which);
        if let Some(member) = self.members.get(&name)
            && self.governor.told(member, &name, now)
        {
            self.wake_removals(&name, dirty);
        }
        self.use_member(&name);
        dirty.push(Key::Cluster(name.clone()));
        if changed {
            self.distributions_on(&name, now, dirty);
            self.dirty_scheduled(dirty);
            if going {
                self.dirty_copies_on(&name, dirty);
            } else if self.overriding.look_at_clusters() {
                self.reconsider_copies_on(&name, dirty);
            }
        }
    }

    /// Cost: O(entities): every place on the member ends.
    pub(super) fn cluster_gone(&mut self, name: &Str, deletion: &Deletion, now: Time, dirty: &mut Dirty) {
        let Some(held) = self.members.get(name) else {
            return;
        };
        let which = Which::Cluster(name.clone());
        let floor = self.floors.of(&which, Some(held.meta.revision()));
        if deletion.is_not_of(&held.meta.uid, floor) {
            return;
        }
        self.floors.gone(which, deletion.floor(floor), now);
        self.members.remove(name);
        self.forget_member(name);
        self.distributions_on(name, now, dirty);
        self.floors.forget_member(name);
        self.governor.forget_member(name);
        self.refused
            .retain(|watch, _| watch.server() != Server::Member(name.clone()));
        for (id, entity) in &mut self.entities {
            if entity.copies.remove(name).is_some() {
                dirty.push(Key::Binding(id.clone()));
                dirty.push(Key::BindingStatus(id.clone()));
            }
        }
        self.dirty_scheduled(dirty);
        dirty.push(Key::Cluster(name.clone()));
    }

    /// Cost: O(1); O(entities) when the member was first probed, or begins or ceases to answer.
    pub(super) fn probed(&mut self, cluster: &Str, probe: Probe, now: Time, dirty: &mut Dirty) {
        let Some(member) = self.members.get_mut(cluster) else {
            return;
        };
        let answered = member.probe.as_ref().map(|held| held.healthy);
        member.failing_since = if probe.healthy {
            None
        } else {
            member.failing_since.or(Some(now))
        };
        let answers = probe.healthy;
        member.probe = Some(probe);
        dirty.push(Key::Cluster(cluster.clone()));
        // The first probe counts whatever it found: statuses wait for it.
        if answered != Some(answers) {
            // What does not list on a member that does not answer is no news, and it is given time when it does.
            let of_it = |watch: &Watch| watch.server() == Server::Member(cluster.clone());
            for (_, (since, _)) in self.lost.iter_mut().filter(|(watch, _)| of_it(watch)) {
                *since = now;
            }
            self.distributions_answered(cluster, answers, now, dirty);
            for (id, entity) in &mut self.entities {
                let Some(state) = entity.copies.get_mut(cluster) else {
                    continue;
                };
                if let Some(problem) = state
                    .problem
                    .as_mut()
                    .filter(|held| held.trouble == Trouble::Unreachable)
                {
                    problem.retry_at = now;
                    dirty.push(Key::Copy(id.clone(), cluster.clone()));
                }
                dirty.push(Key::BindingStatus(id.clone()));
                dirty.push(Key::TemplateStatus(id.clone()));
            }
        }
    }
}
