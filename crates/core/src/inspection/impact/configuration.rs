//! The objects that a policy, an override policy or a distribution touches.

use entourage_api::kruise::DeletionPolicy;

use super::{Relation, Touched};
use crate::{
    cache::{Policy, ResourceState},
    fleet::{
        Fleet,
        claims::{candidates, claimed_by},
        wanted::wants,
    },
    inspection::{DistributionView, distribution as view_of, explanation::ObjectName, why},
    matching,
    object::{Meta, NamespacedName, ResourceId, Str, Time},
    scope,
};

/// The templates that a policy claims.
pub(super) fn policy(fleet: &Fleet, name: &NamespacedName, now: Time) -> Vec<Touched> {
    let mut all = Vec::new();
    for (id, resource) in fleet.resources() {
        let Some(template) = resource.standing() else {
            continue;
        };
        let is_claimed = claimed_by(fleet, id, &template.meta).is_some_and(|(holder, _)| holder == name);
        if !is_claimed {
            continue;
        }
        let on_deletion = match next(fleet, id, &template.meta, name) {
            Some((next, _)) => format!("{} {next} claims it", scope::policy(next).kind),
            None => "it stays as it was last scheduled".to_owned(),
        };
        let touched = |cluster: Option<Str>| Touched {
            cluster,
            relation: Relation::Template,
            object: id.into(),
            on_change: "it is scheduled and delivered by the changed policy".to_owned(),
            on_deletion: on_deletion.clone(),
        };
        let places = why::places(fleet, id, now);
        if places.is_empty() {
            all.push(touched(None));
        }
        all.extend(places.into_iter().map(|(cluster, ..)| touched(Some(cluster))));
    }
    all
}

/// The policy that claims a template if another one is gone.
fn next<'a>(
    fleet: &'a Fleet,
    id: &'a ResourceId,
    meta: &'a Meta,
    gone: &NamespacedName,
) -> Option<(&'a NamespacedName, &'a Policy)> {
    let others = candidates(fleet, id, meta).filter(|(name, _)| *name != gone);
    let specs = others.map(|(name, policy)| (name, &policy.object.spec));
    let best = matching::best(specs, id, &meta.labels)?;
    fleet.cache.policies.get_key_value(best)
}

/// The copies that an override policy changes.
pub(super) fn overrides(fleet: &Fleet, name: &NamespacedName) -> Vec<Touched> {
    let mut all = Vec::new();
    for (id, resource) in fleet.resources() {
        for cluster in clusters_changed(fleet, id, resource, name) {
            all.push(Touched {
                cluster: Some(cluster),
                relation: Relation::Copy,
                object: id.into(),
                on_change: "it is rendered by the changed rules".to_owned(),
                on_deletion: "it is rendered without its rules".to_owned(),
            });
        }
    }
    all
}

fn clusters_changed(
    fleet: &Fleet,
    id: &ResourceId,
    resource: &ResourceState,
    name: &NamespacedName,
) -> Vec<Str> {
    let index = &fleet.graph.override_index;
    let Some(template) = resource
        .standing()
        .filter(|_| index.that_may_apply_to(id).contains(name))
    else {
        return Vec::new();
    };
    let members = fleet.cache.members.iter();
    let wanted = members.filter(|(cluster, _)| wants(fleet, id, resource, cluster));
    let changed = wanted.filter(|(_, member)| {
        let rules = index.rules(id, &template.meta.labels, Some(*member));
        rules.iter().any(|rule| rule.policy() == name)
    });
    changed.map(|(cluster, _)| cluster.clone()).collect()
}

/// The copies of a distribution.
pub(super) fn distribution(fleet: &Fleet, name: &Str) -> Vec<Touched> {
    let Some(view) = view_of(fleet, name) else {
        return Vec::new();
    };
    let on_deletion = match view.spec().map(|spec| spec.deletion_policy) {
        Some(DeletionPolicy::Orphan) => "it is kept, without ownership metadata (deletionPolicy)",
        _ => "it is deleted",
    };
    copies_of(name, view, on_deletion)
}

/// The copies of a distribution, as touched by its source or by itself.
pub(super) fn copies_of(name: &Str, view: DistributionView<'_>, on_deletion: &str) -> Vec<Touched> {
    let Some(spec) = view.spec() else {
        return Vec::new();
    };
    let places = view
        .places()
        .flat_map(|(status, places)| places.map(move |place| (status, place)));
    let touched = places.map(|(status, place)| Touched {
        cluster: place.cluster.clone(),
        relation: Relation::Distribution,
        object: ObjectName(ResourceId::new(spec.gvk.clone(), &place.namespace, &spec.name)),
        on_change: format!(
            "ResourceDistribution {name} updates it (now: {})",
            why::words(status)
        ),
        on_deletion: on_deletion.to_owned(),
    });
    touched.collect()
}
