//! Consent: a template names objects of another namespace, which go along only if that namespace lets them.
//!
//! Native rules name nothing outside of a template's namespace; shipped and declared rules, scripts and hooks may, and what
//! they go by is written by whoever may write the template. So the other namespace's owner must agree, by an annotation on
//! the namespace ([`annotation::REFERENCES_FROM`]). What has no namespace itself is an administrator's, and needs no consent.
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
    /// Whether a template may take along what lies in this namespace; empty for what has none. Cost: O(log namespaces).
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

    /// As [`Self::may_need`], of a kind: the control plane's own kinds are never taken along.
    pub(crate) fn may_take(&self, referrer: &ResourceId, gvk: &Gvk, namespace: &str) -> bool {
        !is_skipped_kind(gvk) && self.may_need(referrer, namespace)
    }

    /// What a template names and may not take along: the namespaces, sorted.
    pub(crate) fn kept_out(&self, id: &ResourceId, template: &Template) -> BTreeSet<Str> {
        let mut outside = outside(id, template);
        outside.retain(|namespace| !self.may_need(id, namespace));
        outside
    }

    /// Whether it is known what may be taken along from other namespaces, as far as anybody names something there.
    pub(crate) fn are_consents_known(&self) -> bool {
        self.graph.cross_namespace_referrers.is_empty() || self.cache.watches.is_listed(&Watch::Namespaces)
    }

    /// As [`Self::are_consents_known`], as they are now: a removal takes that.
    pub(crate) fn are_consents_certain(&self) -> bool {
        self.graph.cross_namespace_referrers.is_empty() || self.cache.watches.is_synced(&Watch::Namespaces)
    }
}

/// The namespaces besides its own in which a template names something; empty for what has none.
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

/// Whether a namespace lets templates of another one take along what lies in it.
pub(crate) fn consents(meta: &Meta, to: &str) -> bool {
    let value = meta.annotation(annotation::REFERENCES_FROM).unwrap_or_default();
    value
        .split(',')
        .map(str::trim)
        .any(|each| each == "*" || each == to)
}
