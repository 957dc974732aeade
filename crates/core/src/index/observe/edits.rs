//! Which observations are edits: what a watch tells of a user's object, and no list. See [`crate::governor`].
//!
//! What an edit has planned again, it explains: its mark is on those templates, and what is not wanted any more when their
//! copies are planned next was ended by it. What a list shows to be otherwise takes the mark off.

use super::Dirty;
use crate::{
    cluster::taints,
    detector::activation,
    distribution,
    governor::explains,
    index::{Binding, Index, meta_of},
    object::{Id, Meta, Str, Time},
    observation::{Observation, Subject, Template, Watch, Which},
    plan::{Change, How, Key, Plan, Proof},
};

/// Where an observation comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A user's edit, told by a watch.
    Edit,
    /// A list.
    List,
    /// Everything else: answers, members, time.
    #[default]
    Other,
}

impl Index {
    /// What kind of news this is; to be asked before it is taken in. Cost: O(labels and annotations of one object).
    pub(super) fn origin(&self, seen: &Observation, now: Time) -> Origin {
        match seen {
            Observation::Seen(subject) => self.origin_of(subject, now),
            Observation::Found(id, template) if self.is_edited(id, template) => Origin::Edit,
            Observation::Gone { which, .. } => match (self.watch_of(which), which) {
                (Some(watch), _) if self.listing.contains(&watch) => Origin::List,
                // A binding ends as its template or policy has it end.
                (_, Which::Binding(name)) => {
                    let held = self.by_binding.get(name).and_then(|id| self.entities.get(id));
                    match held.is_some_and(|entity| explains(entity.edited, now)) {
                        true => Origin::Edit,
                        false => Origin::Other,
                    }
                }
                (Some(_), _) => Origin::Edit,
                (None, _) => Origin::Other,
            },
            _ => Origin::Other,
        }
    }

    fn origin_of(&self, subject: &Subject, now: Time) -> Origin {
        let (which, edited) = match subject {
            Subject::Policy(policy) => {
                let name = super::named(&policy.metadata);
                let held = self.policies.get(&name).map(|held| &held.meta);
                let edited = differs(held, &meta_of(&policy.metadata));
                (Which::Policy(name), edited)
            }
            Subject::Override(policy) => (Which::Override(super::named(&policy.metadata)), true),
            Subject::Customization(object) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                (Which::Customization(name.into()), true)
            }
            Subject::Hooks(name, configured) => (Which::Hooks(configured.contract, name.clone()), true),
            Subject::TaintPolicy(policy) => (Which::TaintPolicy(super::named(&policy.metadata).name), true),
            Subject::Cluster(cluster) => {
                let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
                let edited = self.members.get(&name).is_none_or(|held| {
                    !taints::is_same_of_others(self, &held.object.spec, &cluster.spec)
                        || held.object.metadata.labels != cluster.metadata.labels
                        || held.meta.deleting.is_some() != cluster.metadata.deletion_timestamp.is_some()
                });
                (Which::Cluster(name), edited)
            }
            Subject::Template(id, template) => (Which::Template(id.clone()), self.is_edited(id, template)),
            Subject::Namespace(name, meta) => {
                let edited = self.namespaces.hub.get(name).is_none_or(|held| {
                    held.labels != meta.labels
                        || held.annotations != meta.annotations
                        || held.deleting.is_some() != meta.deleting.is_some()
                });
                (Which::Namespace(None, name.clone()), edited)
            }
            Subject::Distribution(name, object) => {
                let held = self.distributions.held.get(name).map(|held| &held.object.meta);
                (Which::Distribution(name.clone()), differs(held, &object.meta))
            }
            Subject::Binding(binding) => {
                let name = super::named(&binding.metadata);
                let held = self.by_binding.get(&name).and_then(|id| self.entities.get(id));
                let stored = held.and_then(|entity| entity.binding.as_ref());
                let edited = held.is_some_and(|entity| explains(entity.edited, now))
                    || stored.is_some_and(|stored| is_of_others(stored, binding));
                (Which::Binding(name), edited)
            }
            Subject::Rebalancer(object) => {
                let name = super::named(&object.metadata).name;
                let held = self.rebalancers.get(&name).map(|held| held.meta());
                let edited = differs(held, &meta_of(&object.metadata));
                (Which::Rebalancer(name), edited)
            }
            Subject::Copy(..) | Subject::MemberNamespace(..) | Subject::Distributed(..) => {
                return Origin::Other;
            }
        };
        match self.watch_of(&which) {
            Some(watch) if self.listing.contains(&watch) || !self.listed.contains(&watch) => Origin::List,
            _ if edited => Origin::Edit,
            _ => Origin::Other,
        }
    }

    /// Whether a template says something else than before that is not of its status or our claim.
    fn is_edited(&self, id: &Id, template: &Template) -> bool {
        let held = self.entities.get(id).and_then(|entity| entity.template.as_ref());
        let Some(held) = held.map(|held| &held.meta) else {
            return true;
        };
        let meta = &template.meta;
        if meta.is_same_version(held) {
            return false;
        }
        let is_status = meta.content_generation().is_some()
            && meta.content_generation() == held.content_generation()
            && meta.labels == held.labels
            && meta.annotations == held.annotations;
        meta.deleting.is_some() != held.deleting.is_some()
            || (!is_status && activation::is_touched(held, meta))
    }

    /// Marks what an observation has planned again. Cost: O(dirty).
    pub(super) fn mark(&mut self, origin: Origin, dirty: &Dirty, now: Time) {
        let edited = match origin {
            Origin::Edit => Some(now),
            Origin::List => None,
            Origin::Other => return,
        };
        for key in dirty {
            if let Key::Template(id) | Key::Binding(id) = key
                && let Some(entity) = self.entities.get_mut(id)
            {
                entity.edited = edited;
            }
        }
    }

    /// Before a key is planned: whether what is not wanted any more is explained. Cost: O(1) for what is wanted and was not
    /// edited; else that of [`crate::delivery::plan::wants`] and [`Self::survey`].
    pub(in crate::index) fn explain(&mut self, key: &Key, now: Time) {
        if !self.config.brake {
            return;
        }
        match key {
            Key::Copy(id, cluster) => self.explain_copy(id, cluster, now),
            Key::Distributed(name, place) => {
                if let Some(cluster) = &place.cluster
                    && self.leaves_unexplained(name, place)
                {
                    self.survey(cluster, now);
                }
            }
            Key::Namespace(name, cluster) if self.ends_unexplained(name, cluster) => {
                self.survey(cluster, now);
            }
            Key::Cluster(name) => self.count_waiting(name, now),
            _ => {}
        }
    }

    fn explain_copy(&mut self, id: &Id, cluster: &Str, now: Time) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        let Some(state) = entity.copies.get(cluster).filter(|state| state.live.is_some()) else {
            return;
        };
        let ends = entity
            .template
            .as_ref()
            .is_some_and(|template| template.meta.deleting.is_some());
        let wanted =
            !ends && entity.template.is_some() && crate::delivery::plan::wants(self, id, entity, cluster);
        // What is evicted is limited where that is decided.
        let is_evicted = entity
            .binding
            .as_ref()
            .is_some_and(|binding| crate::failover::task::of(&binding.object.spec, cluster).is_some());
        let (explained, counted) = if wanted {
            (false, false)
        } else {
            (
                state.explained || ends || is_evicted || explains(entity.edited, now),
                state.counted,
            )
        };
        let is_due = !wanted && !explained && !counted;
        if (explained, counted) != (state.explained, state.counted) {
            let state = self.copy_state(id, cluster);
            (state.explained, state.counted) = (explained, counted);
        }
        if is_due && self.is_removal_safe(&id.gvk) {
            self.survey(cluster, now);
        }
    }

    fn leaves_unexplained(&self, name: &Str, place: &distribution::Place) -> bool {
        let held = self.distributions.held.get(name);
        let spot = held.and_then(|held| held.spots.get(place));
        spot.is_some_and(|spot| spot.verdict.is_some_and(|each| !each.is_meant()) && !spot.explained)
    }

    fn ends_unexplained(&self, name: &Str, cluster: &Str) -> bool {
        let ending = self.namespaces.ending(cluster, name);
        let seen = self.namespaces.on(cluster, name);
        !self.namespaces.hub.contains_key(name)
            && seen.is_some_and(|seen| seen.is_of(&self.config.hub, cluster))
            && !ending.is_some_and(|ending| ending.explained || ending.counted)
            && self.synced.contains(&Watch::Namespaces)
            && self.is_base_synced()
    }

    /// After a key was planned: counts what will be deleted, and pauses what is too much. Cost: O(log members).
    pub(in crate::index) fn account(&mut self, key: &Key, plan: &Plan, now: Time) {
        if let Key::TemplateStatus(id) = key {
            return self.sends_status(id, plan, now);
        }
        if !self.config.brake {
            return;
        }
        let deletes = plan.changes.iter().any(|change| {
            matches!(
                change,
                Change::Remove { how: How::Delete, .. }
                    | Change::Withdraw { how: How::Delete, .. }
                    | Change::EndNamespace { .. }
            )
        });
        let waits = matches!(plan.awaits.as_deref(), Some(Proof::Removals(_)));
        if !deletes && !waits {
            return;
        }
        let (cluster, explained) = match key {
            Key::Copy(id, cluster) => {
                let leaves = self
                    .members
                    .get(cluster)
                    .is_some_and(|member| member.meta.deleting.is_some());
                let state = self.copy_state(id, cluster);
                let explained = state.explained || leaves;
                if deletes && std::mem::replace(&mut state.counted, true) {
                    return;
                }
                (cluster.clone(), explained)
            }
            Key::Distributed(name, place) => {
                let Some(cluster) = place.cluster.clone() else {
                    return;
                };
                let held = self.distributions.held.get_mut(name);
                let Some(held) = held else { return };
                let ending = held.object.meta.deleting.is_some();
                let Some(spot) = held.spots.get_mut(place) else {
                    return;
                };
                if deletes && std::mem::replace(&mut spot.counted, true) {
                    return;
                }
                (cluster, spot.explained || ending)
            }
            Key::Namespace(name, cluster) => {
                let Some(ending) = self.namespaces.ending_mut(cluster, name) else {
                    return;
                };
                if deletes && std::mem::replace(&mut ending.counted, true) {
                    return;
                }
                (cluster.clone(), ending.explained)
            }
            _ => return,
        };
        if deletes {
            self.charge(&cluster, explained, now);
        } else {
            self.pause(&cluster, explained, now);
        }
    }
}

/// Whether an object is new, or says something else.
fn differs(held: Option<&Meta>, seen: &Meta) -> bool {
    held.is_none_or(|held| {
        held.uid != seen.uid
            || held.generation != seen.generation
            || held.annotations != seen.annotations
            || held.deleting.is_some() != seen.deleting.is_some()
    })
}

/// Whether somebody else decides where a binding's copies are, or asked for that to be decided afresh.
fn is_of_others(stored: &Binding, seen: &entourage_api::work::ResourceBinding) -> bool {
    let (before, after) = (&stored.object.spec, &seen.spec);
    !crate::binding::is_scheduled_by_us(after)
        || before.reschedule_triggered_at != after.reschedule_triggered_at
        || crate::index::is_kept_by_others(&stored.meta)
}

impl Index {
    /// The watch that tells of a user's object; `None` for what is no user's.
    fn watch_of(&self, which: &Which) -> Option<Watch> {
        let scoped = |namespace: &str, namespaced, cluster_scoped| {
            if namespace.is_empty() {
                cluster_scoped
            } else {
                namespaced
            }
        };
        Some(match which {
            Which::Policy(name) => scoped(&name.namespace, Watch::Policies, Watch::ClusterPolicies),
            Which::Override(name) => scoped(&name.namespace, Watch::Overrides, Watch::ClusterOverrides),
            Which::Binding(name) => scoped(&name.namespace, Watch::Bindings, Watch::ClusterBindings),
            Which::Customization(_) => Watch::Customizations,
            Which::Hooks(contract, _) => Watch::Hooks(*contract),
            Which::TaintPolicy(_) => Watch::TaintPolicies,
            Which::Cluster(_) => Watch::Clusters,
            Which::Template(id) => self.templates(&id.gvk),
            Which::Namespace(None, _) => Watch::Namespaces,
            Which::Distribution(_) => Watch::Distributions,
            Which::Rebalancer(_) => Watch::Rebalancers,
            Which::Copy(..) | Which::Namespace(Some(_), _) | Which::Distributed(..) => return None,
        })
    }
}
