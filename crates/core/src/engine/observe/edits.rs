//! Edits: observations of a user's change by a watch, not by a list. See [`crate::governor`].
//!
//! An edit explains every key that it causes to be planned again: these templates are marked, and copies that are no longer
//! wanted at their next plan were ended by it. A difference that a list shows removes the mark.

use entourage_api::keys::annotation;

use super::Dirty;
use crate::{
    cache::{Binding, meta_of},
    fleet::{
        Fleet, activation,
        exports::{export_of, exported, provider},
        taints,
    },
    memory::{Origin, deletion_pauses::explains},
    object::{Meta, ResourceId, Str, Time},
    observation::{ObjectRef, Observation, Subject, Template, Watch},
    plan::Key,
    stored_binding::is_scheduled_by_us,
};

impl Fleet {
    /// The origin of an observation; to be called before it is recorded. Cost: O(labels and annotations of one object).
    pub(super) fn origin(&self, seen: &Observation, now: Time) -> Origin {
        match seen {
            Observation::Seen(subject) => self.origin_of(subject, now),
            Observation::Found(id, template) if self.is_edited(id, template) => Origin::Edit,
            Observation::Gone { which, .. } => match (self.watch_of(which), which) {
                (Some(watch), _) if self.cache.watches.is_listing(&watch) => Origin::List,
                // This control plane deletes those that stand for endpoints of members: an edit of the export may explain it.
                (_, ObjectRef::Template(id)) if provider(self, id).is_some() => {
                    let export = exported(self, id).and_then(|service| self.resource(&export_of(&service)));
                    match export.is_some_and(|export| explains(export.edited, now)) {
                        true => Origin::Edit,
                        false => Origin::Other,
                    }
                }
                // A binding is deleted because of its template or policy.
                (_, ObjectRef::Binding(name)) => {
                    let held = self
                        .graph
                        .by_binding
                        .get(name)
                        .and_then(|id| self.cache.resources.get(id));
                    match held.is_some_and(|resource| explains(resource.edited, now)) {
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
                let held = self.cache.policies.get(&name).map(|held| &held.meta);
                let edited = differs(held, &meta_of(&policy.metadata));
                (ObjectRef::Policy(name), edited)
            }
            Subject::Override(policy) => (ObjectRef::Override(super::named(&policy.metadata)), true),
            Subject::Customization(object) => {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                (ObjectRef::Customization(name.into()), true)
            }
            Subject::Hooks(name, configured) => (ObjectRef::Hooks(configured.contract, name.clone()), true),
            Subject::TaintPolicy(policy) => {
                (ObjectRef::TaintPolicy(super::named(&policy.metadata).name), true)
            }
            Subject::Cluster(cluster) => {
                let name: Str = cluster.metadata.name.as_deref().unwrap_or_default().into();
                let edited = self.cache.members.get(&name).is_none_or(|held| {
                    !taints::is_same_of_others(self, &held.object.spec, &cluster.spec)
                        || held.object.metadata.labels != cluster.metadata.labels
                        || held.meta.deleting.is_some() != cluster.metadata.deletion_timestamp.is_some()
                });
                (ObjectRef::Cluster(name), edited)
            }
            Subject::Template(id, template) => {
                (ObjectRef::Template(id.clone()), self.is_edited(id, template))
            }
            Subject::Namespace(name, meta) => {
                let edited = self.cache.namespaces.hub.get(name).is_none_or(|held| {
                    held.labels != meta.labels
                        || held.annotations != meta.annotations
                        || held.deleting.is_some() != meta.deleting.is_some()
                });
                (ObjectRef::Namespace(None, name.clone()), edited)
            }
            Subject::Distribution(name, object) => {
                let held = self
                    .memory
                    .distributions
                    .held
                    .get(name)
                    .map(|held| &held.object.meta);
                (ObjectRef::Distribution(name.clone()), differs(held, &object.meta))
            }
            Subject::Binding(binding) => {
                let name = super::named(&binding.metadata);
                let held = self
                    .graph
                    .by_binding
                    .get(&name)
                    .and_then(|id| self.cache.resources.get(id));
                let stored = held.and_then(|resource| resource.binding.as_ref());
                let edited = held.is_some_and(|resource| explains(resource.edited, now))
                    || stored.is_some_and(|stored| is_of_others(stored, binding));
                (ObjectRef::Binding(name), edited)
            }
            Subject::Rebalancer(object) => {
                let name = super::named(&object.metadata).name;
                let held = self.memory.rebalancers.get(&name).map(|held| held.meta());
                let edited = differs(held, &meta_of(&object.metadata));
                (ObjectRef::Rebalancer(name), edited)
            }
            Subject::Quota(object) => {
                let name = super::named(&object.metadata);
                let held = self.memory.quotas.get(&name).map(|held| &held.meta);
                let edited = differs(held, &meta_of(&object.metadata));
                (ObjectRef::Quota(name), edited)
            }
            Subject::PriorityClass(name, class) => {
                let held = self.cache.priority_classes.get(name);
                let edited = held.is_none_or(|held| held.value != class.value);
                (ObjectRef::PriorityClass(name.clone()), edited)
            }
            Subject::Copy(..)
            | Subject::QuotaCopy(..)
            | Subject::MemberNamespace(..)
            | Subject::Distributed(..)
            | Subject::Work(..)
            | Subject::Lease(..)
            | Subject::Node(..)
            | Subject::Pod(..)
            | Subject::ServicePart(..)
            | Subject::Endpoints(..) => {
                return Origin::Other;
            }
        };
        match self.watch_of(&which) {
            Some(watch) if self.cache.watches.is_listing(&watch) || !self.cache.watches.is_listed(&watch) => {
                Origin::List
            }
            _ if edited => Origin::Edit,
            _ => Origin::Other,
        }
    }

    /// True if a template differs from before in more than its status and our claim.
    fn is_edited(&self, id: &ResourceId, template: &Template) -> bool {
        let held = self
            .cache
            .resources
            .get(id)
            .and_then(|resource| resource.template.as_ref());
        let Some(held) = held.map(|held| &held.meta) else {
            return template.meta.annotation(annotation::PROVISION_CLUSTER).is_none();
        };
        let meta = &template.meta;
        // What stands for endpoints of members is no user's.
        if meta.is_same_version(held) || meta.annotation(annotation::PROVISION_CLUSTER).is_some() {
            return false;
        }
        let is_status = meta.content_generation().is_some()
            && meta.content_generation() == held.content_generation()
            && meta.labels == held.labels
            && meta.annotations == held.annotations;
        meta.deleting.is_some() != held.deleting.is_some()
            || (!is_status && activation::is_touched(held, meta))
    }

    /// Marks the keys that an observation has planned again. Cost: O(dirty).
    pub(super) fn mark(&mut self, origin: Origin, dirty: &Dirty, now: Time) {
        let edited = match origin {
            Origin::Edit => Some(now),
            Origin::List => None,
            Origin::Other => return,
        };
        for key in dirty {
            if let Key::Template(id) | Key::Binding(id) = key
                && let Some(resource) = self.cache.resources.get_mut(id)
            {
                resource.edited = edited;
            }
        }
    }
}

/// True if an object is new or has changed.
fn differs(held: Option<&Meta>, seen: &Meta) -> bool {
    held.is_none_or(|held| {
        held.uid != seen.uid
            || held.generation != seen.generation
            || held.annotations != seen.annotations
            || held.deleting.is_some() != seen.deleting.is_some()
    })
}

/// True if another component changed the clusters of a binding, or requested a new scheduling.
fn is_of_others(stored: &Binding, seen: &entourage_api::work::ResourceBinding) -> bool {
    let (before, after) = (&stored.object.spec, &seen.spec);
    !is_scheduled_by_us(after)
        || before.reschedule_triggered_at != after.reschedule_triggered_at
        || stored.is_kept_by_others()
}

impl Fleet {
    /// The watch that reports a user's object; `None` for an object that is no user's.
    fn watch_of(&self, which: &ObjectRef) -> Option<Watch> {
        match which {
            ObjectRef::Template(id) => Some(self.templates(&id.gvk)),
            ObjectRef::Copy(..)
            | ObjectRef::Namespace(Some(_), _)
            | ObjectRef::Distributed(..)
            | ObjectRef::QuotaCopy(..)
            | ObjectRef::Node(..)
            | ObjectRef::Pod(..)
            | ObjectRef::Endpoints(..) => None,
            _ => Some(which.watch()),
        }
    }
}
