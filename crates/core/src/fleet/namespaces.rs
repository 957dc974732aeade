//! What the namespaces of members are to carry of ours: the labels and annotations that users set on the hub's.

use std::{collections::BTreeMap, sync::Arc};

use entourage_api::keys::{TRUE, label};

use crate::{
    config::Config,
    fleet::Fleet,
    marks::Marks,
    member_namespace::{Seen, list::List},
    object::{Gvk, Meta, ResourceId, Str},
    overrides::{self, BadOverride, Rule},
    scope,
};

/// Why nothing is to be set on a namespace of a member.
#[derive(Debug)]
pub(crate) enum Unset {
    /// It is none of ours, or its binding is written by another planner.
    NotWanted,
    /// What is to be set is not known yet.
    Waits(&'static str),
    /// An override policy cannot be applied.
    Bad(BadOverride),
}

impl Fleet {
    /// What a namespace of a member is to carry of ours. Cost: O(labels and annotations).
    ///
    /// # Errors
    /// Why that is nothing, or not known.
    pub(crate) fn wanted_of_namespace(&self, name: &Str, cluster: &Str) -> Result<Marks, Unset> {
        let Some(template) = self.cache.namespaces.hub.get(name) else {
            return Err(Unset::NotWanted);
        };
        if !is_propagated(&self.config, name, template) || !self.cache.namespaces.is_listed(cluster) {
            return Err(Unset::NotWanted);
        }
        if !self.are_bindings_listed() {
            return Err(Unset::Waits("the bindings are not synced yet"));
        }
        let id = id_of(name);
        // Each object has one writer: with a binding, whatever made it, that is the planner of copies.
        if self
            .resource(&id)
            .is_some_and(|resource| resource.last_binding().is_some())
        {
            return Err(Unset::Waits("its binding says where it goes"));
        }
        if self
            .cache
            .members
            .get(cluster)
            .is_none_or(|member| member.meta.deleting.is_some())
        {
            return Err(Unset::NotWanted);
        }
        if !self.are_overrides_listed() {
            return Err(Unset::Waits("the overrides are not synced yet"));
        }
        let rules = self
            .graph
            .override_index
            .rules(&id, &template.labels, self.cache.members.get(cluster));
        wanted(&self.config.hub, template, &id, cluster, &rules).map_err(Unset::Bad)
    }

    /// True if a namespace of a member, as seen, is not as wanted. False where nothing is wanted of it, or not yet.
    /// Cost: as [`Self::wanted_of_namespace`].
    pub(crate) fn is_namespace_changed(&self, name: &Str, cluster: &Str, seen: &Seen) -> bool {
        self.wanted_of_namespace(name, cluster)
            .is_ok_and(|wanted| !seen.carries(&self.config.hub, &wanted))
    }
}

/// The identity of a namespace among templates.
pub(crate) fn id_of(name: &str) -> ResourceId {
    ResourceId::new(Gvk::new("v1", "Namespace"), "", name)
}

/// Whether a namespace of the hub goes to every member.
#[must_use]
pub fn is_propagated(config: &Config, name: &str, template: &Meta) -> bool {
    name != "default"
        && !config.is_reserved(name)
        && template.deleting.is_none()
        && template.label(label::SKIP_AUTO_PROPAGATION) != Some(TRUE)
        && !scope::has_claim_metadata(template)
}

/// The labels and annotations that a member's namespace gets: those that users set on the hub's, changed by
/// ClusterOverridePolicies, and the list of them. None of them, and no list, where there are none.
pub(crate) fn wanted(
    hub: &str,
    template: &Meta,
    id: &ResourceId,
    cluster: &str,
    rules: &[Arc<Rule>],
) -> Result<Marks, BadOverride> {
    let of_users = |all: &BTreeMap<Str, Str>| -> BTreeMap<Str, Str> {
        all.iter()
            .filter(|(key, _)| travels(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let (mut labels, mut annotations) = (of_users(&template.labels), of_users(&template.annotations));
    // A rule that changes something else of other kinds is none for a namespace.
    let rules: Vec<Arc<Rule>> = rules
        .iter()
        .filter(|rule| rule.touches_metadata())
        .cloned()
        .collect();
    overrides::apply_to_metadata(&rules, cluster, &mut labels, &mut annotations)?;
    for (key, record) in overrides::records(&rules, id) {
        annotations.insert(key.into(), record);
    }
    let mut marks = Marks { labels, annotations };
    if !marks.labels.is_empty() || !marks.annotations.is_empty() {
        List::add(hub, &mut marks);
    }
    Ok(marks)
}

/// Not what an API server sets itself, nor what control planes note for themselves.
pub(crate) fn travels(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    key != "kubernetes.io/metadata.name"
        && ["karmada.io", "entourage.dev"].iter().all(|own| {
            domain
                .strip_suffix(own)
                .is_none_or(|rest| !(rest.is_empty() || rest.ends_with('.')))
        })
}
