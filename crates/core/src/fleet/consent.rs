//! Consent: objects of another namespace that a template refers to are propagated only if that namespace allows it.
//!
//! Native rules refer only to the template's own namespace; shipped and declared rules, scripts and hooks may refer to others,
//! and their input is written by whoever may write the template. So the other namespace's owner must agree, by an annotation on
//! the namespace ([`annotation::REFERENCES_FROM`]). Cluster-scoped templates belong to an administrator, and need no consent.
//! Source: architecture 2.15.

use std::collections::BTreeSet;

use entourage_api::keys::annotation;

use super::Fleet;
use crate::{
    object::{Gvk, Meta, ResourceId, Str},
    observation::{Template, Watch},
    reserved::is_skipped_kind,
};

impl Fleet {
    /// True if objects of this namespace (empty: cluster-scoped) may be propagated with a template. Cost: O(log namespaces).
    pub(crate) fn may_need(&self, referrer: &ResourceId, namespace: &str) -> bool {
        if *referrer.namespace == *namespace {
            return true;
        }
        if self.config.is_reserved(namespace) {
            return false;
        }
        referrer.namespace.is_empty()
            || self
                .cache
                .namespaces
                .hub
                .get(namespace)
                .is_some_and(|meta| consents(meta, &referrer.namespace))
    }

    /// As [`Self::may_need`], for a kind: the control plane's own kinds are never propagated as dependencies.
    pub(crate) fn may_take(&self, referrer: &ResourceId, gvk: &Gvk, namespace: &str) -> bool {
        !is_skipped_kind(gvk) && self.may_need(referrer, namespace)
    }

    /// The namespaces that a template refers to without their consent, sorted.
    pub(crate) fn kept_out(&self, id: &ResourceId, template: &Template) -> BTreeSet<Str> {
        let mut outside = outside(id, template);
        outside.retain(|namespace| !self.may_need(id, namespace));
        outside
    }

    /// True if the consents of all namespaces that are referred to from others are known.
    pub(crate) fn are_consents_known(&self) -> bool {
        self.graph.cross_namespace_referrers.is_empty() || self.cache.watches.is_listed(&Watch::Namespaces)
    }

    /// As [`Self::are_consents_known`], and synced: a removal requires that.
    pub(crate) fn are_consents_certain(&self) -> bool {
        self.graph.cross_namespace_referrers.is_empty() || self.cache.watches.is_synced(&Watch::Namespaces)
    }
}

/// The other namespaces that a template refers to; the empty name stands for cluster-scoped objects.
pub(crate) fn outside(id: &ResourceId, template: &Template) -> BTreeSet<Str> {
    let named = template
        .references
        .iter()
        .map(|reference| &reference.id.namespace);
    let selected = template.selections.iter().map(|selection| &selection.namespace);
    named
        .chain(selected)
        .filter(|namespace| **namespace != id.namespace)
        .cloned()
        .collect()
}

/// True if a namespace allows templates of another one to refer to its objects.
pub(crate) fn consents(meta: &Meta, to: &str) -> bool {
    let value = meta.annotation(annotation::REFERENCES_FROM).unwrap_or_default();
    value
        .split(',')
        .map(str::trim)
        .any(|each| each == "*" || each == to)
}
