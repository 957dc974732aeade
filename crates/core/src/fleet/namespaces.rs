//! The desired metadata of members' namespaces: the labels and annotations that users set on the hub's.

use std::sync::Arc;

use entourage_api::keys::{TRUE, label};

use crate::{
    config::Config,
    fleet::Fleet,
    marks::Marks,
    member_namespace::{Seen, list::List},
    object::{Gvk, Meta, ResourceId, Str, StrMap},
    overrides::{self, BadOverride, Rule},
    scope,
};

/// The reason why nothing is to be set on a namespace of a member.
#[derive(Debug)]
pub(crate) enum Unset {
    /// It is not managed by this hub, or another planner writes it because of its binding.
    NotWanted,
    /// The desired metadata is not known yet.
    Waits(&'static str),
    /// An override policy cannot be applied.
    Bad(BadOverride),
}

impl Fleet {
    /// The metadata that this hub is to set on a namespace of a member. Cost: O(labels and annotations).
    ///
    /// # Errors
    /// The reason why there is none, or why it is not known.
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
        // Each object has one writer: an object with a binding, whatever created it, is written by the planner of copies.
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

    /// True if a namespace of a member, as observed, is not as desired. False if there is no desired state, or none yet. Cost:
    /// as [`Self::wanted_of_namespace`].
    pub(crate) fn is_namespace_changed(&self, name: &Str, cluster: &Str, seen: &Seen) -> bool {
        self.wanted_of_namespace(name, cluster)
            .is_ok_and(|wanted| !seen.carries(&self.config.hub, &wanted))
    }
}

/// The identity of a namespace among templates.
pub(crate) fn id_of(name: &str) -> ResourceId {
    ResourceId::new(Gvk::new("v1", "Namespace"), "", name)
}

/// True if a namespace of the hub is propagated to every member.
#[must_use]
pub fn is_propagated(config: &Config, name: &str, template: &Meta) -> bool {
    name != "default"
        && !config.is_reserved(name)
        && template.deleting.is_none()
        && template.label(label::SKIP_AUTO_PROPAGATION) != Some(TRUE)
        && !scope::has_claim_metadata(template)
}

/// The labels and annotations to set on a member's namespace: those that users set on the hub's, changed by
/// ClusterOverridePolicies, and the list of their keys. Empty, without the list, if there are none.
pub(crate) fn wanted(
    hub: &str,
    template: &Meta,
    id: &ResourceId,
    cluster: &str,
    rules: &[Arc<Rule>],
) -> Result<Marks, BadOverride> {
    let of_users = |all: &StrMap| -> StrMap {
        all.iter()
            .filter(|(key, _)| travels(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let (mut labels, mut annotations) = (of_users(&template.labels), of_users(&template.annotations));
    // A rule that changes other fields of other kinds does not apply to a namespace.
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

/// False for keys that an API server sets itself, and for those that control planes use for themselves.
pub(crate) fn travels(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    key != "kubernetes.io/metadata.name"
        && ["karmada.io", "entourage.dev"].iter().all(|own| {
            domain
                .strip_suffix(own)
                .is_none_or(|rest| !(rest.is_empty() || rest.ends_with('.')))
        })
}
