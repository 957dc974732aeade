//! The one door: an observation changes the Index and answers with the keys to plan again.
//!
//! Old news is dropped by resourceVersion, per object; so stale, repeated and reordered events change nothing (I7).
//! Keys may be answered more than once and in vain: planning is cheap and a plan without a difference is empty.

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::{
    cluster::Cluster,
    keys::{annotation, label},
    policy::PropagationPolicy,
    work::{CopyRecord, ResourceBinding},
};

use super::{
    Binding, CopyState, Entity, Index, Member, Policy, Problem, Trouble, bound, is_old, meta_of, referred,
};
use crate::{
    object::{Gvk, Id, Meta, Named, Str, Time},
    observation::{Copy, Delivered, Observation, Probe, Removed, Subject, Template, Watch, Which},
    plan::Key,
    scheduler,
};

/// The longest pause between two attempts to deliver or remove a copy, in milliseconds.
const LONGEST_PAUSE: i64 = 60_000;
/// The longest pause for a member that does not answer: its probe tells sooner.
const LONGEST_PAUSE_UNREACHABLE: i64 = 5_000;

/// How many forgotten objects are remembered as gone, and for how long, in milliseconds: longer than any event is late.
const TOMBSTONES: usize = 20_000;
const TOMBSTONE_AGE: i64 = 600_000;

type Dirty = Vec<Key>;

impl Index {
    /// Takes in one fact. Cost: O(what it affects), named at each handler.
    pub fn observe(&mut self, seen: Observation, now: Time) -> Vec<Key> {
        let mut dirty = Dirty::new();
        match seen {
            Observation::Seen(subject) => self.seen(subject, now, &mut dirty),
            Observation::Gone { which, uid, revision } => self.gone(&which, uid.as_deref(), revision, now, &mut dirty),
            Observation::Listed { watch, present } => self.was_listed(watch, &present, now, &mut dirty),
            Observation::Lost { watch, why } => self.lost(watch, why),
            Observation::Absent(id) => self.absent(&id, now, &mut dirty),
            Observation::NeverTravels(id) => {
                self.entities.entry(id.clone()).or_default().never_travels = true;
                self.dirty_referrers(&id, &mut dirty);
            }
            Observation::Started(cluster, id) => self.copy_state(&id, &cluster).in_flight = true,
            Observation::Delivered(cluster, id, outcome) => self.delivered(&cluster, &id, outcome, now, &mut dirty),
            Observation::Removed(cluster, id, outcome) => self.removed(&cluster, &id, outcome, now, &mut dirty),
            Observation::Probed(cluster, probe) => self.probed(&cluster, probe, now, &mut dirty),
            Observation::Refused { key, message } => {
                if let Key::Binding(id) | Key::Template(id) | Key::BindingStatus(id) | Key::TemplateStatus(id) = key {
                    self.entities.entry(id).or_default().refused = Some(message);
                }
            }
            Observation::Tick => {}
        }
        dirty
    }

    fn seen(&mut self, subject: Subject, now: Time, dirty: &mut Dirty) {
        match subject {
            Subject::Policy(policy) => self.policy_seen(policy, now, dirty),
            Subject::Binding(binding) => self.binding_seen(binding, now, dirty),
            Subject::Cluster(cluster) => self.cluster_seen(cluster, dirty),
            Subject::Template(id, template) => self.template_seen(id, template, now, dirty),
            Subject::Copy(cluster, id, copy) => self.copy_seen(&cluster, &id, copy, now, dirty),
        }
    }

    fn gone(&mut self, which: &Which, uid: Option<&str>, revision: Option<u64>, now: Time, dirty: &mut Dirty) {
        match which {
            Which::Policy(name) => self.policy_gone(name, uid, dirty),
            Which::Binding(name) => self.binding_gone(name, uid, revision, now, dirty),
            Which::Cluster(name) => self.cluster_gone(name, uid, dirty),
            Which::Template(id) => self.template_gone(id, uid, revision, now, dirty),
            Which::Copy(cluster, id) => self.copy_gone(cluster, id, uid, revision, now, dirty),
        }
    }

    // --- policies

    /// Cost: O(templates of the selected kinds in the policy's namespace), when what it selects or says changed.
    fn policy_seen(&mut self, policy: Arc<PropagationPolicy>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&policy.metadata);
        let name = named(&policy.metadata);
        let before = self.policies.get(&name);
        if before.is_some_and(|held| is_old(&meta.resource_version, held.meta.revision())) {
            return;
        }
        let unchanged = before.is_some_and(|held| {
            held.meta.uid == meta.uid
                && held.meta.generation == meta.generation
                && held.meta.deleting.is_some() == meta.deleting.is_some()
                && held.meta.label(label::PROPAGATION_POLICY_ID) == meta.label(label::PROPAGATION_POLICY_ID)
        });
        let since = before.map_or(now, |held| held.since);
        let mut kinds = before.map(|held| selected_kinds(&held.object)).unwrap_or_default();
        for gvk in &kinds {
            if let Some(names) = self.selecting.get_mut(&(name.namespace.clone(), gvk.clone())) {
                names.remove(&name.name);
            }
        }
        for gvk in selected_kinds(&policy) {
            self.use_kind(&gvk);
            self.selecting.entry((name.namespace.clone(), gvk.clone())).or_default().insert(name.name.clone());
            kinds.insert(gvk);
        }
        self.policies.insert(name.clone(), Policy { meta, object: policy, since });
        dirty.push(Key::Policy(name.clone()));
        if !unchanged {
            for gvk in &kinds {
                self.dirty_templates(gvk, &name.namespace, dirty);
            }
            self.dirty_claimed(&name, dirty);
        }
    }

    fn policy_gone(&mut self, name: &Named, uid: Option<&str>, dirty: &mut Dirty) {
        let Some(held) = self.policies.get(name) else { return };
        if uid.is_some_and(|uid| *uid != *held.meta.uid) {
            return;
        }
        for gvk in selected_kinds(&held.object) {
            if let Some(names) = self.selecting.get_mut(&(name.namespace.clone(), gvk)) {
                names.remove(&name.name);
            }
        }
        self.policies.remove(name);
        self.dirty_claimed(name, dirty);
    }

    // --- templates

    /// Cost: O(references changed + copies + clusters wanted), plus O(referrers) when the template appears.
    fn template_seen(&mut self, id: Id, template: Template, now: Time, dirty: &mut Dirty) {
        self.use_kind(&id.gvk);
        let entity = self.unbury(&id);
        if is_old(&template.meta.resource_version, entity.floor) {
            return;
        }
        entity.floor = template.meta.revision();
        entity.absent = false;
        entity.never_travels = false;
        let references = template.references.clone();
        let claim = claim_of(&template.meta);
        let deleting = template.meta.deleting.is_some();
        let status = template.status.clone();
        let before = entity.template.replace(template);
        if before.as_ref().is_some_and(|held| held.status != status) {
            entity.template_status_written = Some(now);
        }
        let appeared =
            before.as_ref().is_none_or(|held| held.meta.deleting.is_some() != deleting);
        let claim_before = before.as_ref().and_then(|held| claim_of(&held.meta));
        if appeared {
            self.dirty_referrers(&id, dirty);
        }
        self.claim_changed(&id, claim_before, claim, dirty);
        self.refer(&id, references, dirty);
        dirty.push(Key::Template(id.clone()));
        self.dirty_entity(&id, dirty);
    }

    /// Cost: as [`Self::template_seen`].
    fn template_gone(&mut self, id: &Id, uid: Option<&str>, revision: Option<u64>, now: Time, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get_mut(id) else { return };
        let Some(held) = &entity.template else {
            entity.floor = entity.floor.max(revision.unwrap_or_default());
            return;
        };
        if uid.is_some_and(|uid| *uid != *held.meta.uid) || revision.is_some_and(|revision| revision < entity.floor) {
            return;
        }
        // Also without a revision, what was known of the object is old news now.
        entity.floor = (entity.floor + 1).max(revision.unwrap_or_default());
        let before = entity.template.take();
        let claim = before.and_then(|held| claim_of(&held.meta));
        self.claim_changed(id, claim, None, dirty);
        self.dirty_referrers(id, dirty);
        self.dirty_entity(id, dirty);
        self.forget_if_empty(id, now);
    }

    fn absent(&mut self, id: &Id, now: Time, dirty: &mut Dirty) {
        self.template_gone(id, None, None, now, dirty);
        let entity = self.entities.entry(id.clone()).or_default();
        entity.absent = true;
        self.dirty_referrers(id, dirty);
        self.dirty_entity(id, dirty);
    }

    /// Brings the reverse index in line with what a template refers to. Cost: O(references).
    fn refer(&mut self, id: &Id, references: Vec<crate::interpreter::references::DependencyReference>, dirty: &mut Dirty) {
        let entity = self.entities.entry(id.clone()).or_default();
        if entity.references == references {
            return;
        }
        let before: BTreeSet<Id> = entity.references.iter().map(referred).collect();
        let after: BTreeSet<Id> = references.iter().map(referred).collect();
        entity.references = references;
        entity.left_behind.extend(before.difference(&after).cloned());
        entity.left_behind.retain(|dependency| !after.contains(dependency));
        for dependency in before.difference(&after) {
            let entity = self.entities.entry(dependency.clone()).or_default();
            entity.referrers.remove(id);
            entity.former.insert(id.clone());
            self.dirty_entity(dependency, dirty);
        }
        for dependency in after.difference(&before) {
            self.use_kind(&dependency.gvk);
            let entity = self.entities.entry(dependency.clone()).or_default();
            entity.former.remove(id);
            entity.referrers.insert(id.clone());
            self.dirty_entity(dependency, dirty);
        }
    }

    // --- bindings

    /// Cost: O(its copies), plus O(references × clusters) when its placement or what it follows changed.
    fn binding_seen(&mut self, object: Arc<ResourceBinding>, now: Time, dirty: &mut Dirty) {
        let meta = meta_of(&object.metadata);
        let name = named(&object.metadata);
        let id = bound(&object);
        self.use_kind(&id.gvk);
        let entity = self.unbury(&id);
        let other_holds = entity.binding.as_ref().is_some_and(|held| held.name != name);
        if other_holds || is_old(&meta.resource_version, entity.binding_floor) {
            return;
        }
        entity.binding_floor = meta.revision();
        if let Some(permanent_id) = meta.label(label::RESOURCE_BINDING_ID) {
            entity.permanent_id = Some(permanent_id.into());
        }
        for item in object.status.iter().flat_map(|status| &status.aggregated_status) {
            entity
                .copies
                .entry(item.cluster_name.as_str().into())
                .or_insert_with(|| CopyState { record: item.copy.clone(), ..CopyState::default() });
        }
        let places = object.spec.clusters.iter().chain(object.spec.required_by.iter().flat_map(|each| &each.clusters));
        for target in places {
            let state = entity.copies.entry(target.name.as_str().into()).or_default();
            state.wanted_since.get_or_insert(now);
        }
        if let Some(template) = &entity.template
            && object.spec.resource.resource_version == *template.meta.resource_version
        {
            entity.described = Some(content_version(&template.meta));
        }
        entity.unaccounted = false;
        let before = entity.binding.replace(Binding { meta, name: name.clone(), object: object.clone() });
        let after = entity.binding.as_ref();
        let spec_changed = before.as_ref().is_none_or(|held| held.object.spec != object.spec);
        let placement_changed = before.as_ref().is_none_or(|held| {
            held.object.spec.clusters != object.spec.clusters
                || held.object.spec.propagate_deps != object.spec.propagate_deps
                || held.object.spec.placement.is_some() != object.spec.placement.is_some()
                || held.object.spec.conflict_resolution != object.spec.conflict_resolution
                || held.object.spec.preserve_resources_on_deletion != object.spec.preserve_resources_on_deletion
                || held.meta.deleting.is_some() != object.metadata.deletion_timestamp.is_some()
        });
        let claims = (
            before.as_ref().and_then(|held| claim_of(&held.meta)),
            after.and_then(|held| claim_of(&held.meta)),
        );
        if spec_changed {
            entity.spec_written = Some(now);
        }
        if before.as_ref().is_none_or(|held| held.object.status != object.status) && object.status.is_some() {
            entity.answers = None;
            entity.status_written = Some(now);
        }
        self.by_binding.insert(name, id.clone());
        self.claim_changed(&id, claims.0, claims.1, dirty);
        if placement_changed {
            self.dirty_dependencies(&id, dirty);
        }
        self.dirty_entity(&id, dirty);
    }

    fn binding_gone(&mut self, name: &Named, uid: Option<&str>, revision: Option<u64>, now: Time, dirty: &mut Dirty) {
        let Some(id) = self.by_binding.get(name).cloned() else { return };
        let Some(entity) = self.entities.get_mut(&id) else { return };
        let Some(held) = &entity.binding else { return };
        if uid.is_some_and(|uid| *uid != *held.meta.uid)
            || revision.is_some_and(|revision| revision < entity.binding_floor)
        {
            return;
        }
        entity.binding_floor = (entity.binding_floor + 1).max(revision.unwrap_or_default());
        entity.unaccounted = entity.template.is_some();
        entity.described = None;
        let claim = entity.binding.take().and_then(|held| claim_of(&held.meta));
        self.by_binding.remove(name);
        self.claim_changed(&id, claim, None, dirty);
        self.dirty_dependencies(&id, dirty);
        self.dirty_entity(&id, dirty);
        self.forget_if_empty(&id, now);
    }

    // --- members

    /// Cost: O(bindings with a placement) when something that scheduling looks at changed, else O(1).
    fn cluster_seen(&mut self, cluster: Arc<Cluster>, dirty: &mut Dirty) {
        let meta = meta_of(&cluster.metadata);
        let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
        let before = self.members.get(&name);
        if before.is_some_and(|held| is_old(&meta.resource_version, held.meta.revision())) {
            return;
        }
        let changed = before.is_none_or(|held| {
            scheduler::relevant_change(&held.object, &cluster)
                || held.meta.deleting.is_some() != meta.deleting.is_some()
        });
        let going = meta.deleting.is_some();
        let (probe, failing_since) =
            before.map(|held| (held.probe.clone(), held.failing_since)).unwrap_or_default();
        self.members.insert(name.clone(), Member { meta, object: cluster, probe, failing_since });
        self.use_member(&name);
        dirty.push(Key::Cluster(name.clone()));
        if changed {
            self.dirty_scheduled(dirty);
            if going {
                self.dirty_copies_on(&name, dirty);
            }
        }
    }

    /// Cost: O(entities): every place on the member ends.
    fn cluster_gone(&mut self, name: &Str, uid: Option<&str>, dirty: &mut Dirty) {
        let Some(held) = self.members.get(name) else { return };
        if uid.is_some_and(|uid| *uid != *held.meta.uid) {
            return;
        }
        self.members.remove(name);
        self.forget_member(name);
        for (id, entity) in &mut self.entities {
            if entity.copies.remove(name).is_some() {
                dirty.push(Key::Binding(id.clone()));
                dirty.push(Key::BindingStatus(id.clone()));
            }
        }
        self.dirty_scheduled(dirty);
        dirty.push(Key::Cluster(name.clone()));
    }

    /// Cost: O(1); O(entities) when the member begins or ceases to answer.
    fn probed(&mut self, cluster: &Str, probe: Probe, now: Time, dirty: &mut Dirty) {
        let Some(member) = self.members.get_mut(cluster) else { return };
        let answered = member.probe.as_ref().is_some_and(|held| held.healthy);
        member.failing_since = if probe.healthy { None } else { member.failing_since.or(Some(now)) };
        let answers = probe.healthy;
        member.probe = Some(probe);
        dirty.push(Key::Cluster(cluster.clone()));
        if answered != answers {
            for (id, entity) in &mut self.entities {
                let Some(state) = entity.copies.get_mut(cluster) else { continue };
                if let Some(problem) = state.problem.as_mut().filter(|held| held.trouble == Trouble::Unreachable) {
                    problem.retry_at = now;
                    dirty.push(Key::Copy(id.clone(), cluster.clone()));
                }
                dirty.push(Key::BindingStatus(id.clone()));
            }
        }
    }

    // --- copies

    fn copy_seen(&mut self, cluster: &Str, id: &Id, copy: Copy, now: Time, dirty: &mut Dirty) {
        if copy.meta.label(label::HUB) != Some(&*self.config.hub) {
            return;
        }
        let state = self.copy_state(id, cluster);
        if is_old(&copy.meta.resource_version, state.floor) {
            return;
        }
        state.floor = copy.meta.revision();
        state.uncertain = false;
        let before = state.live.replace(copy);
        let live = state.live.as_ref();
        let reported = before.as_ref().map(|held| (&held.status, held.health)) != live.map(|held| (&held.status, held.health));
        let appeared = before.is_none();
        if appeared || reported {
            self.answered(id, now);
            dirty.push(Key::BindingStatus(id.clone()));
            dirty.push(Key::TemplateStatus(id.clone()));
        }
        dirty.push(Key::Copy(id.clone(), cluster.clone()));
        if appeared {
            self.dirty_neighbours(id, cluster, dirty);
        }
    }

    /// The copy is not there any more, or no longer carries our label. The record stays: an object with the recorded
    /// uid is ours even without the label.
    fn copy_gone(&mut self, cluster: &Str, id: &Id, uid: Option<&str>, revision: Option<u64>, now: Time, dirty: &mut Dirty) {
        let Some(state) = self.entities.get_mut(id).and_then(|entity| entity.copies.get_mut(cluster)) else { return };
        let Some(held) = &state.live else {
            state.floor = state.floor.max(revision.unwrap_or_default());
            return;
        };
        if uid.is_some_and(|uid| *uid != *held.meta.uid) || revision.is_some_and(|revision| revision < state.floor) {
            return;
        }
        state.floor = (state.floor + 1).max(revision.unwrap_or_default());
        state.live = None;
        self.copy_ended(id, cluster, now, dirty);
    }

    fn copy_ended(&mut self, id: &Id, cluster: &Str, now: Time, dirty: &mut Dirty) {
        self.answered(id, now);
        self.dirty_neighbours(id, cluster, dirty);
        self.settle(id, now, dirty);
        self.remember_preserved(id, cluster);
        dirty.push(Key::Copy(id.clone(), cluster.clone()));
        dirty.push(Key::Binding(id.clone()));
        dirty.push(Key::BindingStatus(id.clone()));
        dirty.push(Key::TemplateStatus(id.clone()));
        if self.members.get(cluster).is_some_and(|member| member.meta.deleting.is_some()) {
            dirty.push(Key::Cluster(cluster.clone()));
        }
        self.forget_if_empty(id, now);
    }

    fn delivered(&mut self, cluster: &Str, id: &Id, outcome: Delivered, now: Time, dirty: &mut Dirty) {
        let source = crate::delivery::plan::expected_source(self, id, cluster).unwrap_or_default();
        let state = self.copy_state(id, cluster);
        state.in_flight = false;
        let existed = state.live.is_some();
        let told = state.problem.as_ref().map(|problem| problem.message.clone());
        match outcome {
            Delivered::Applied { copy, source } => {
                state.record = Some(record(&copy, source));
                state.problem = None;
                state.uncertain = false;
                if !is_old(&copy.meta.resource_version, state.floor) {
                    state.floor = copy.meta.revision();
                    state.live = Some(copy);
                }
            }
            Delivered::Foreign => {
                state.live = None;
                state.uncertain = false;
                let message = format!(
                    "{id} already stands on {cluster} and is not ours; delete it there, or set conflictResolution: Overwrite to take it over"
                );
                fail(state, Trouble::Foreign, message, source, now);
            }
            Delivered::NoSource(why) => fail(state, Trouble::NoSource, why, source, now),
            Delivered::Rejected(why) => {
                let message = format!("{cluster} refused {id}: {why}");
                fail(state, Trouble::Rejected, message, source, now);
            }
            Delivered::Unreachable(why) => {
                state.uncertain = true;
                let message = format!("{cluster} did not answer for {id}: {why}");
                fail(state, Trouble::Unreachable, message, source, now);
            }
        }
        let exists = state.live.is_some();
        if told != state.problem.as_ref().map(|problem| problem.message.clone())
            && let Some(entity) = self.entities.get(id)
        {
            dirty.extend(entity.referrers.iter().cloned().map(Key::BindingStatus));
        }
        self.answered(id, now);
        dirty.push(Key::Copy(id.clone(), cluster.clone()));
        dirty.push(Key::BindingStatus(id.clone()));
        // Referrers wait for the first success, and former references for the latest one.
        if existed != exists || exists {
            self.dirty_neighbours(id, cluster, dirty);
            self.settle(id, now, dirty);
        }
    }

    fn removed(&mut self, cluster: &Str, id: &Id, outcome: Removed, now: Time, dirty: &mut Dirty) {
        let state = self.copy_state(id, cluster);
        match outcome {
            Removed::Accepted => state.problem = None,
            Removed::Gone | Removed::Released => {
                let revision = state.live.take().map(|held| held.meta.revision().saturating_add(1));
                state.floor = state.floor.max(revision.unwrap_or_default());
                state.record = None;
                state.uncertain = false;
                state.problem = None;
                self.copy_ended(id, cluster, now, dirty);
            }
            Removed::Rejected(why) => {
                let message = format!("{cluster} refused to remove {id}: {why}");
                fail(state, Trouble::Rejected, message, String::new(), now);
            }
            Removed::Unreachable(why) => {
                let message = format!("{cluster} did not answer when {id} was to be removed: {why}");
                fail(state, Trouble::Unreachable, message, String::new(), now);
            }
        }
        dirty.push(Key::Copy(id.clone(), cluster.clone()));
        dirty.push(Key::BindingStatus(id.clone()));
    }

    // --- lists

    /// Cost: O(objects of the kind); O(everything) once, when the hub becomes known.
    fn was_listed(&mut self, watch: Watch, present: &BTreeSet<Which>, now: Time, dirty: &mut Dirty) {
        for which in self.held(&watch) {
            if !present.contains(&which) {
                self.gone(&which, None, None, now, dirty);
            }
        }
        let known = self.is_hub_listed() && self.is_hub_synced();
        self.unlistable.remove(&watch);
        self.listed.insert(watch.clone());
        self.synced.insert(watch.clone());
        let on_hub = !matches!(watch, Watch::Copies(..));
        match &watch {
            Watch::Copies(cluster, gvk) => {
                for (id, entity) in &mut self.entities {
                    if id.gvk == *gvk
                        && let Some(state) = entity.copies.get_mut(cluster)
                    {
                        state.uncertain &= state.in_flight;
                        dirty.push(Key::Copy(id.clone(), cluster.clone()));
                        dirty.push(Key::BindingStatus(id.clone()));
                        dirty.push(Key::Binding(id.clone()));
                        dirty.push(Key::TemplateStatus(id.clone()));
                    }
                }
                dirty.push(Key::Cluster(cluster.clone()));
            }
            Watch::Templates(gvk) => {
                let ids: Vec<Id> = self.entities.keys().filter(|id| id.gvk == *gvk).cloned().collect();
                for id in ids {
                    self.dirty_referrers(&id, dirty);
                    dirty.push(Key::Template(id.clone()));
                    self.dirty_entity(&id, dirty);
                }
            }
            Watch::Policies | Watch::Bindings | Watch::Clusters => {}
        }
        if on_hub && !known && self.is_hub_listed() {
            self.remember_former();
            dirty.extend(self.policies.keys().cloned().map(Key::Policy));
            dirty.extend(self.members.keys().cloned().map(Key::Cluster));
            let ids: Vec<Id> = self.entities.keys().cloned().collect();
            for id in ids {
                dirty.push(Key::Template(id.clone()));
                self.dirty_entity(&id, dirty);
            }
        }
    }

    /// After a start: who is named in a stored `requiredBy` and does not refer to the object any more may still hold it.
    /// A hint that only ever delays a removal. Cost: O(bindings × snapshots), once.
    fn remember_former(&mut self) {
        let mut former = Vec::new();
        for (id, entity) in &self.entities {
            for snapshot in entity.binding.iter().flat_map(|binding| &binding.object.spec.required_by) {
                let referrer = self.by_binding.get(&Named::new(&snapshot.namespace, &snapshot.name));
                if let Some(referrer) = referrer.filter(|referrer| !entity.referrers.contains(*referrer)) {
                    former.push((id.clone(), referrer.clone()));
                }
            }
        }
        for (id, referrer) in former {
            self.entities.entry(id.clone()).or_default().former.insert(referrer.clone());
            self.entities.entry(referrer).or_default().left_behind.insert(id);
        }
    }

    fn lost(&mut self, watch: Watch, why: String) {
        self.synced.remove(&watch);
        if !self.listed.contains(&watch) {
            self.unlistable.insert(watch, why);
        }
    }

    /// What the index holds of what a watch covers.
    fn held(&self, watch: &Watch) -> Vec<Which> {
        match watch {
            Watch::Policies => self.policies.keys().cloned().map(Which::Policy).collect(),
            Watch::Bindings => self.by_binding.keys().cloned().map(Which::Binding).collect(),
            Watch::Clusters => self.members.keys().cloned().map(Which::Cluster).collect(),
            Watch::Templates(gvk) => self
                .entities
                .iter()
                .filter(|(id, entity)| id.gvk == *gvk && entity.template.is_some())
                .map(|(id, _)| Which::Template(id.clone()))
                .collect(),
            Watch::Copies(cluster, gvk) => self
                .entities
                .iter()
                .filter(|(id, entity)| {
                    id.gvk == *gvk && entity.copies.get(cluster).is_some_and(|state| state.live.is_some())
                })
                .map(|(id, _)| Which::Copy(cluster.clone(), id.clone()))
                .collect(),
        }
    }

    // --- what to plan again

    /// Everything of one entity. Cost: O(copies).
    fn dirty_entity(&self, id: &Id, dirty: &mut Dirty) {
        dirty.push(Key::Binding(id.clone()));
        let Some(entity) = self.entities.get(id) else { return };
        for cluster in entity.copies.keys() {
            dirty.push(Key::Copy(id.clone(), cluster.clone()));
        }
        if entity.binding.is_some() {
            dirty.push(Key::BindingStatus(id.clone()));
            dirty.push(Key::TemplateStatus(id.clone()));
        }
    }

    /// What waits for a template to appear. Cost: O(referrers × copies waiting).
    fn dirty_referrers(&self, id: &Id, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else { return };
        for referrer in &entity.referrers {
            dirty.push(Key::BindingStatus(referrer.clone()));
            let Some(waiting) = self.entities.get(referrer) else { continue };
            for (cluster, state) in &waiting.copies {
                if state.live.is_none() {
                    dirty.push(Key::Copy(referrer.clone(), cluster.clone()));
                }
            }
        }
    }

    /// What a template takes along. Cost: O(references × clusters).
    fn dirty_dependencies(&self, id: &Id, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else { return };
        for reference in &entity.references {
            let dependency = referred(reference);
            self.dirty_entity(&dependency, dirty);
        }
    }

    /// What depends on whether a copy stands on a member: its referrers' first release there, and the removal of what it
    /// refers to. Cost: O(referrers + references).
    fn dirty_neighbours(&self, id: &Id, cluster: &Str, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else { return };
        for referrer in &entity.referrers {
            let waits = self
                .entities
                .get(referrer)
                .and_then(|each| each.copies.get(cluster))
                .is_some_and(|state| state.live.is_none());
            if waits {
                dirty.push(Key::Copy(referrer.clone(), cluster.clone()));
            }
            dirty.push(Key::BindingStatus(referrer.clone()));
        }
        for reference in &entity.references {
            dirty.push(Key::Copy(referred(reference), cluster.clone()));
        }
        for dependency in &entity.left_behind {
            dirty.push(Key::Copy(dependency.clone(), cluster.clone()));
            dirty.push(Key::Binding(dependency.clone()));
        }
    }

    fn dirty_templates(&self, gvk: &Gvk, namespace: &Str, dirty: &mut Dirty) {
        let first = Id { gvk: gvk.clone(), namespace: namespace.clone(), name: "".into() };
        for (id, _) in self.entities.range(first..) {
            if id.gvk != *gvk || id.namespace != *namespace {
                break;
            }
            dirty.push(Key::Template(id.clone()));
            dirty.push(Key::Binding(id.clone()));
        }
    }

    fn dirty_claimed(&self, policy: &Named, dirty: &mut Dirty) {
        for id in self.claimed.get(policy).into_iter().flatten() {
            dirty.push(Key::Template(id.clone()));
            dirty.push(Key::Binding(id.clone()));
        }
        dirty.push(Key::Policy(policy.clone()));
    }

    fn dirty_scheduled(&self, dirty: &mut Dirty) {
        for (id, entity) in &self.entities {
            if entity.binding.as_ref().is_some_and(|binding| binding.object.spec.placement.is_some()) {
                dirty.push(Key::Binding(id.clone()));
                dirty.push(Key::BindingStatus(id.clone()));
            }
        }
    }

    fn dirty_copies_on(&self, cluster: &Str, dirty: &mut Dirty) {
        for (id, entity) in &self.entities {
            if entity.copies.contains_key(cluster) {
                dirty.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }

    // --- upkeep

    /// A template and its binding may both carry a claim; the policy keeps both from ending.
    fn claim_changed(&mut self, id: &Id, before: Option<Named>, after: Option<Named>, dirty: &mut Dirty) {
        if before == after {
            return;
        }
        let entity = self.entities.get(id);
        let still: Vec<Named> = entity
            .and_then(|each| each.template.as_ref())
            .and_then(|template| claim_of(&template.meta))
            .into_iter()
            .chain(entity.and_then(|each| each.binding.as_ref()).and_then(|binding| claim_of(&binding.meta)))
            .collect();
        if let Some(policy) = before
            && !still.contains(&policy)
        {
            if let Some(ids) = self.claimed.get_mut(&policy) {
                ids.remove(id);
                if ids.is_empty() {
                    self.claimed.remove(&policy);
                }
            }
            dirty.push(Key::Policy(policy));
        }
        if let Some(policy) = after {
            self.claimed.entry(policy.clone()).or_default().insert(id.clone());
            dirty.push(Key::Policy(policy));
        }
    }

    fn copy_state(&mut self, id: &Id, cluster: &Str) -> &mut CopyState {
        self.entities.entry(id.clone()).or_default().copies.entry(cluster.clone()).or_default()
    }

    /// A member answered for a copy: the status has news.
    fn answered(&mut self, id: &Id, now: Time) {
        if let Some(entity) = self.entities.get_mut(id) {
            entity.answers = Some(entity.answers.map_or((now, now), |(first, _)| (first, now)));
        }
    }

    /// Ends the holds of a template whose copies are all current: none of them needs what it used to refer to.
    /// Cost: O(its copies + former references).
    fn settle(&mut self, id: &Id, now: Time, dirty: &mut Dirty) {
        let Some(entity) = self.entities.get(id) else { return };
        if entity.left_behind.is_empty() {
            return;
        }
        let stale = |cluster: &Str| self.may_exist(id, cluster) && !crate::delivery::plan::is_current(self, id, cluster);
        if entity.copies.keys().any(stale) {
            return;
        }
        let left_behind = entity.left_behind.clone();
        let keeping = keeps_on(entity);
        for dependency in left_behind {
            if let Some(entity) = self.entities.get_mut(&dependency) {
                entity.former.remove(id);
                entity.preserved_on.extend(keeping.iter().cloned());
            }
            self.dirty_entity(&dependency, dirty);
            self.forget_if_empty(&dependency, now);
        }
        if let Some(entity) = self.entities.get_mut(id) {
            entity.left_behind.clear();
        }
    }

    /// A workload that was deleted has left a member: what it took along there stays if it asked for that.
    fn remember_preserved(&mut self, id: &Id, cluster: &Str) {
        let Some(entity) = self.entities.get_mut(id) else { return };
        entity.preserved_on.remove(cluster);
        if !entity.absent || !keeps_on(entity).contains(cluster) {
            return;
        }
        let dependencies: Vec<Id> = entity.references.iter().map(referred).collect();
        for dependency in dependencies {
            if let Some(entity) = self.entities.get_mut(&dependency) {
                entity.preserved_on.insert(cluster.clone());
            }
        }
    }

    /// The entity, with its floors as they were when it was forgotten.
    fn unbury(&mut self, id: &Id) -> &mut Entity {
        if !self.entities.contains_key(id)
            && let Some((floor, binding_floor)) = self.tombstones.get(id)
        {
            let entity = Entity { floor: *floor, binding_floor: *binding_floor, ..Entity::default() };
            self.entities.insert(id.clone(), entity);
        }
        self.entities.entry(id.clone()).or_default()
    }

    fn bury(&mut self, id: &Id, floors: (u64, u64), now: Time) {
        self.tombstones.insert(id.clone(), floors);
        self.buried.push_back((now, id.clone()));
        while let Some((time, _)) = self.buried.front() {
            if self.buried.len() <= TOMBSTONES && now.0 - time.0 < TOMBSTONE_AGE {
                break;
            }
            if let Some((_, id)) = self.buried.pop_front() {
                self.tombstones.remove(&id);
            }
        }
    }

    /// Drops an entity that nothing is known of any more.
    fn forget_if_empty(&mut self, id: &Id, now: Time) {
        let Some(entity) = self.entities.get(id) else { return };
        let idle = |state: &CopyState| state.live.is_none() && !state.in_flight && !state.uncertain;
        let empty = entity.template.is_none()
            && entity.binding.is_none()
            && entity.referrers.is_empty()
            && entity.former.is_empty()
            && entity.copies.values().all(idle);
        if !empty {
            return;
        }
        let Some(entity) = self.entities.remove(id) else { return };
        self.bury(id, (entity.floor, entity.binding_floor), now);
        for dependency in entity.references.iter().map(referred).chain(entity.left_behind) {
            if let Some(entity) = self.entities.get_mut(&dependency) {
                entity.referrers.remove(id);
                entity.former.remove(id);
            }
            self.forget_if_empty(&dependency, now);
        }
    }
}

/// The members where a binding that asks for preservation is placed.
fn keeps_on(entity: &Entity) -> BTreeSet<Str> {
    let Some(binding) = &entity.binding else { return BTreeSet::new() };
    if binding.object.spec.preserve_resources_on_deletion != Some(true) {
        return BTreeSet::new();
    }
    binding.object.spec.clusters.iter().map(|target| target.name.as_str().into()).collect()
}

/// What tells one content of a template from another: see [`crate::delivery::source_version`], without the recipe.
#[must_use]
pub fn content_version(meta: &Meta) -> String {
    let none = crate::delivery::Recipe {
        hub: "".into(),
        binding: Named::new("", ""),
        permanent_id: "".into(),
        replicas: None,
        overwrite: false,
        written_uid: None,
    };
    crate::delivery::source_version(meta, &none)
}

/// The policy that claims an object, by its annotations.
#[must_use]
pub fn claim_of(meta: &Meta) -> Option<Named> {
    Some(Named::new(
        meta.annotation(annotation::PROPAGATION_POLICY_NAMESPACE)?,
        meta.annotation(annotation::PROPAGATION_POLICY_NAME)?,
    ))
}

fn named(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Named {
    Named::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

fn selected_kinds(policy: &PropagationPolicy) -> BTreeSet<Gvk> {
    policy.spec.resource_selectors.iter().map(|each| Gvk::new(&each.api_version, &each.kind)).collect()
}

fn record(copy: &Copy, source: String) -> CopyRecord {
    let generation = copy.meta.generation;
    CopyRecord {
        uid: copy.meta.uid.to_string(),
        resource_version: generation.is_none().then(|| copy.meta.resource_version.to_string()),
        generation,
        source,
    }
}

fn fail(state: &mut CopyState, trouble: Trouble, message: String, source: String, now: Time) {
    let attempts = state
        .problem
        .as_ref()
        .filter(|held| held.trouble == trouble && held.source == source)
        .map_or(1, |held| held.attempts.saturating_add(1));
    let longest = if trouble == Trouble::Unreachable { LONGEST_PAUSE_UNREACHABLE } else { LONGEST_PAUSE };
    let pause = (250_i64 << attempts.min(16)).min(longest);
    state.problem = Some(Problem { trouble, message, source, attempts, retry_at: now.plus(pause) });
}
