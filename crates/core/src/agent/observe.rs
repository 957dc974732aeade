//! Observations: what changes in the state of an agent, and the keys that are to be planned again.

use std::collections::BTreeSet;

use super::{
    Agent, BTreeMap, Copy, Key, ObjectRef, Observation, Observed, ResourceId, Str, Subject, Time, Watch,
    Work, WorkState, events, state::Removal,
};
use crate::object::Meta;

impl Agent {
    /// Takes in a fact. Cost: O(log n); that of a list O(what it reads + Works).
    #[must_use]
    pub fn observe(&mut self, seen: Observation, now: Time) -> Observed {
        let mut out = Observed::default();
        match seen {
            Observation::Seen(subject) => self.seen(subject, now, &mut out),
            Observation::Gone { which, uid, revision } => {
                self.gone(&which, uid.as_deref(), revision, &mut out)
            }
            Observation::Listing { watch, revision } => self.listing(&watch, revision),
            Observation::Reached { watch, revision } => {
                if let Some(held) = self.synced.get_mut(&watch) {
                    *held = revision.max(*held);
                }
            }
            Observation::Listed {
                watch,
                present,
                revision,
            } => self.listed(&watch, &present, revision, &mut out),
            Observation::Lost { watch, .. } | Observation::Unserved { watch, .. } => {
                self.lost(&watch);
                self.cluster.refused.remove(&watch);
            }
            Observation::Refused { watch, .. } => {
                self.lost(&watch);
                if matches!(watch, Watch::Nodes(_) | Watch::Pods(_)) {
                    self.cluster.refused.insert(watch);
                    out.dirty.insert(Key::Cluster);
                }
            }
            Observation::Probed(_, probe) => {
                self.cluster.probed(probe, now);
                out.dirty.insert(Key::Cluster);
            }
            Observation::Identified(_, id) if self.cluster.identity.as_ref() != Some(&id) => {
                self.cluster.identity = Some(id);
                self.all(&mut out);
            }
            _ => {}
        }
        out
    }

    fn all(&self, out: &mut Observed) {
        out.dirty.insert(Key::Cluster);
        out.dirty.extend(self.works.keys().cloned().map(Key::Work));
    }

    fn seen(&mut self, subject: Subject, now: Time, out: &mut Observed) {
        match subject {
            Subject::Work(name, work) if name.namespace == self.config.namespace => {
                self.work_seen(&name.name, *work, out);
            }
            Subject::Copy(_, id, copy) => self.copy_seen(id, copy, out),
            Subject::Cluster(cluster) => {
                let object = serde_json::to_value(&cluster.metadata).unwrap_or_default();
                let meta = Meta::of(&serde_json::json!({ "metadata": object }));
                if cluster.metadata.name.as_deref() != Some(&*self.config.cluster) {
                    return;
                }
                let held = self.cluster.object.as_ref().map(|(meta, _)| meta);
                if held.is_some_and(|held| held.uid == meta.uid && held.revision() > meta.revision()) {
                    return;
                }
                let before = self.objection();
                self.cluster.object = Some((meta, cluster));
                out.dirty.insert(Key::Cluster);
                if self.objection() != before {
                    self.all(out);
                }
            }
            Subject::Node(cluster, name, node) if cluster == self.config.cluster => {
                self.cluster.usage.node_seen(&cluster, &name, *node);
            }
            Subject::Pod(cluster, number, pod) if cluster == self.config.cluster => {
                self.cluster.usage.pod_seen(&cluster, number, pod, now);
            }
            _ => {}
        }
    }

    pub(super) fn work_seen(&mut self, name: &Str, work: Work, out: &mut Observed) {
        let held = self.works.get(name).map(|state| &state.work.meta);
        let is_same_object = held.is_some_and(|held| held.uid == work.meta.uid);
        if is_same_object && held.is_some_and(|held| held.revision() > work.meta.revision()) {
            return;
        }
        let mut state = WorkState::new(work);
        if let Some(before) = self.forget_work(name)
            && is_same_object
        {
            for (object, held) in state.objects.iter_mut().zip(&before.objects) {
                if object.id == held.id {
                    object.clone_from(held);
                }
            }
            let ids: BTreeSet<&ResourceId> = state.ids().collect();
            for id in before.ids().filter(|id| !ids.contains(id)) {
                out.notes.push(format!(
                    "{id} is no longer in Work {name}: it is kept on the cluster, because only the deletion of a Work removes \
                     its objects"
                ));
            }
            state.reported_at = before.reported_at;
            state.has_reported = before.has_reported;
            state.is_ended = before.is_ended;
            if state.work.meta.deleting.is_none() {
                for object in &mut state.objects {
                    object.removal = Removal::Pending;
                }
            }
        }
        for id in state.ids() {
            let names = self.carriers.entry(id.clone()).or_insert_with(|| {
                *self.kinds.entry(id.gvk.clone()).or_default() += 1;
                BTreeSet::new()
            });
            names.insert(name.clone());
        }
        self.works.insert(name.clone(), state);
        out.dirty.insert(Key::Work(name.clone()));
    }

    fn forget_work(&mut self, name: &Str) -> Option<WorkState> {
        let state = self.works.remove(name)?;
        for id in state.ids() {
            if let Some(names) = self.carriers.get_mut(id) {
                names.remove(name);
                if names.is_empty() {
                    self.carriers.remove(id);
                    if let Some(count) = self.kinds.get_mut(&id.gvk) {
                        *count -= 1;
                        if *count == 0 {
                            self.kinds.remove(&id.gvk);
                        }
                    }
                }
            }
        }
        Some(state)
    }

    pub(super) fn copy_seen(&mut self, id: ResourceId, copy: Copy, out: &mut Observed) {
        let held = self.copies.get(&id);
        if held
            .is_some_and(|held| held.meta.uid == copy.meta.uid && held.meta.revision() > copy.meta.revision())
        {
            return;
        }
        out.events.extend(events::uninterpreted(self, &id, &copy));
        self.carried(&id, out);
        if id.gvk.is_namespace() && held.is_none() {
            self.retry_within(&id.name.clone(), out);
        }
        self.copies.insert(id, copy);
    }

    /// The Works that carry an object are planned again.
    fn carried(&self, id: &ResourceId, out: &mut Observed) {
        let names = self.carriers.get(id).into_iter().flatten();
        out.dirty.extend(names.cloned().map(Key::Work));
    }

    /// A namespace exists now: what failed in it is retried at once. Cost: O(objects).
    fn retry_within(&mut self, namespace: &str, out: &mut Observed) {
        for (name, state) in &mut self.works {
            for object in &mut state.objects {
                let is_within = object.id.as_ref().is_some_and(|id| *id.namespace == *namespace);
                if is_within && let Some(failure) = &mut object.failure {
                    failure.retry_at = Time(i64::MIN);
                    out.dirty.insert(Key::Work(name.clone()));
                }
            }
        }
    }

    fn gone(&mut self, which: &ObjectRef, uid: Option<&str>, revision: Option<u64>, out: &mut Observed) {
        let is_end = |held: &Str, seen: u64| {
            uid.is_none_or(|uid| *uid == **held) && revision.is_none_or(|revision| revision >= seen)
        };
        match which {
            ObjectRef::Work(name) if name.namespace == self.config.namespace => {
                let held = self.works.get(&name.name).map(|state| &state.work.meta);
                if held.is_some_and(|held| is_end(&held.uid, held.revision())) {
                    self.work_gone(&name.name, out);
                }
            }
            ObjectRef::Copy(_, id) => {
                let held = self.copies.get(id).map(|copy| &copy.meta);
                if held.is_some_and(|held| is_end(&held.uid, held.revision())) {
                    self.copy_gone(id, out);
                }
            }
            ObjectRef::Cluster(name) if *name == self.config.cluster => {
                self.cluster.object = None;
                self.all(out);
            }
            ObjectRef::Node(cluster, name) => self.cluster.usage.node_gone(cluster, name),
            ObjectRef::Pod(cluster, number) => self.cluster.usage.pod_gone(cluster, *number),
            _ => {}
        }
    }

    fn work_gone(&mut self, name: &Str, out: &mut Observed) {
        let Some(state) = self.forget_work(name) else {
            return;
        };
        if state.is_ended || state.objects.iter().all(|each| each.record.is_none()) {
            return;
        }
        let ids: Vec<String> = state.ids().map(ToString::to_string).collect();
        out.notes.push(format!(
            "Work {name} vanished from the hub without being deleted through the agent's finalizer: {} kept on the cluster; \
             delete what is no longer needed there",
            ids.join(", ")
        ));
    }

    pub(super) fn copy_gone(&mut self, id: &ResourceId, out: &mut Observed) {
        self.copies.remove(id);
        self.carried(id, out);
        let names = self.carriers.get(id).into_iter().flatten();
        for name in names {
            let objects = self.works.get_mut(name).map(|state| &mut state.objects);
            let of_it = objects
                .into_iter()
                .flatten()
                .filter(|each| each.id.as_ref() == Some(id));
            for object in of_it {
                if let Removal::Later(..) = object.removal {
                    object.removal = Removal::Pending;
                }
            }
        }
    }

    /// A list begins. If the revisions of the server went back, nothing that was observed before counts.
    fn listing(&mut self, watch: &Watch, revision: u64) {
        let held = self.synced.get(watch).or(self.reached.get(watch));
        if held.is_none_or(|held| *held <= revision) {
            return;
        }
        match watch {
            Watch::Copies(_, gvk) => self.copies.retain(|id, _| id.gvk != *gvk),
            Watch::Nodes(cluster) | Watch::Pods(cluster) => self.cluster.usage.forget(cluster, watch),
            Watch::Clusters => self.cluster.object = None,
            Watch::Works => {
                for state in self.works.values_mut() {
                    state.restored();
                }
            }
            _ => {}
        }
    }

    fn listed(&mut self, watch: &Watch, present: &BTreeSet<ObjectRef>, at: u64, out: &mut Observed) {
        let was_synced = self.synced.insert(watch.clone(), at).is_some();
        self.reached.remove(watch);
        match watch {
            Watch::Works => {
                let gone = |name: &Str, state: &WorkState| {
                    let named = crate::object::NamespacedName::new(&self.config.namespace, name);
                    !present.contains(&ObjectRef::Work(named)) && state.work.meta.revision() <= at
                };
                let all = self.works.iter().filter(|(name, state)| gone(name, state));
                let all: Vec<Str> = all.map(|(name, _)| name.clone()).collect();
                for name in all {
                    self.work_gone(&name, out);
                }
                self.all(out);
            }
            Watch::Clusters => {
                if !present.contains(&ObjectRef::Cluster(self.config.cluster.clone())) {
                    self.cluster.object = None;
                }
                self.all(out);
            }
            Watch::Copies(cluster, gvk) => {
                let of_kind = self.copies.iter().filter(|(id, copy)| {
                    id.gvk == *gvk
                        && copy.meta.revision() <= at
                        && !present.contains(&ObjectRef::Copy(cluster.clone(), (*id).clone()))
                });
                let gone: Vec<ResourceId> = of_kind.map(|(id, _)| id.clone()).collect();
                for id in gone {
                    self.copy_gone(&id, out);
                }
                let named = self.carriers.iter().filter(|(id, _)| id.gvk == *gvk);
                let names: BTreeSet<&Str> = named.flat_map(|(_, names)| names).collect();
                out.dirty
                    .extend(names.iter().map(|name| Key::Work((*name).clone())));
                if !was_synced {
                    self.retry_kind(gvk);
                }
            }
            Watch::Nodes(cluster) | Watch::Pods(cluster) => {
                self.cluster.refused.remove(watch);
                let held = match watch {
                    Watch::Nodes(_) => self.cluster.usage.held_nodes(cluster),
                    _ => self.cluster.usage.held_pods(cluster),
                };
                for which in held.iter().filter(|which| !present.contains(which)) {
                    self.gone(which, None, None, out);
                }
                out.dirty.insert(Key::Cluster);
            }
            _ => {}
        }
    }

    /// The cluster serves a kind now. Cost: O(objects).
    fn retry_kind(&mut self, gvk: &crate::object::Gvk) {
        let all = self.works.values_mut().flat_map(|state| &mut state.objects);
        let of_kind = all.filter(|each| each.id.as_ref().is_some_and(|id| id.gvk == *gvk));
        for failure in of_kind.filter_map(|each| each.failure.as_mut()) {
            failure.retry_at = Time(i64::MIN);
        }
    }

    /// The objects that a watch delivered are kept, and prove nothing.
    fn lost(&mut self, watch: &Watch) {
        if let Some((watch, revision)) = self.synced.remove_entry(watch) {
            // The lists of the agent's own state are not lost while the hub does not respond: a plan made from them is still valid.
            if matches!(watch, Watch::Works | Watch::Clusters) {
                self.synced.insert(watch, revision);
            } else {
                self.reached.insert(watch, revision);
            }
        }
    }

    /// Ends what is known of kinds that no Work carries any more. Cost: O(copies).
    pub fn forget_unwatched(&mut self) {
        let demand = self.demand();
        let is_unwatched = |watch: &Watch| !demand.contains(watch);
        let gone: BTreeMap<Watch, u64> = self
            .synced
            .extract_if(.., |watch, _| is_unwatched(watch))
            .collect();
        self.reached.retain(|watch, _| demand.contains(watch));
        if !gone.is_empty() {
            let cluster = self.config.cluster.clone();
            self.copies
                .retain(|id, _| !gone.contains_key(&Watch::Copies(cluster.clone(), id.gvk.clone())));
        }
    }
}
