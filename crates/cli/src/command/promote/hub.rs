//! The objects of the hub that decide where new templates go.

use std::collections::BTreeSet;

use anyhow::Result;
use entourage_api::keys::annotation;
use entourage_core::{
    adoption::HubState,
    dependencies::drawing::Drawing,
    object::{Gvk, ResourceId, Str},
    promotion::{
        OverridePolicies,
        claims::{Hub, Member, Policy, Referrer},
    },
    scope,
};
use kube::Client;
use serde_json::Value;

use super::deps::{self, Known};
use crate::{kinds::Kinds, lists::every, members, simulate::interpreters::InterpreterSnapshot};

/// The policies and members, and the templates that may need the new ones on other clusters than `cluster`.
///
/// # Errors
/// The hub cannot be read.
pub(super) async fn facts(
    hub: &Client,
    interpreters: &InterpreterSnapshot,
    cluster: &str,
    new: &[(&ResourceId, &Value)],
) -> Result<Hub> {
    let mut policies = Vec::new();
    for kind in [scope::POLICY.kind, scope::CLUSTER_POLICY.kind] {
        let all = every(hub, Gvk::new(scope::POLICY_API, kind), true).await?;
        policies.extend(all.iter().filter_map(Policy::of));
    }
    let mut overriding = Vec::new();
    for kind in ["OverridePolicy", "ClusterOverridePolicy"] {
        overriding.append(&mut every(hub, Gvk::new(scope::POLICY_API, kind), false).await?);
    }
    let members = members::clusters(hub, &[]).await?;
    let elsewhere = elsewhere(hub, cluster, new).await?;
    Ok(Hub {
        policies,
        members: members.into_iter().map(Member::new).collect(),
        referrers: referrers(hub, interpreters, &elsewhere, new).await?,
        overriding: OverridePolicies::new(&overriding),
    })
}

/// The bindings with dependencies that are scheduled to other clusters, and whose templates may refer to a new one: it is in
/// their namespace, in none, or in one that consents to others.
async fn elsewhere(hub: &Client, cluster: &str, new: &[(&ResourceId, &Value)]) -> Result<HubState> {
    let mut state = HubState::default();
    let namespaces = deps::namespaces(hub).await?;
    let consents = |name: &Str| {
        let id = ResourceId::new(Gvk::new("v1", "Namespace"), "", name);
        let namespace = namespaces.get(&id);
        namespace.is_some_and(|held| !held["metadata"]["annotations"][annotation::REFERENCES_FROM].is_null())
    };
    let is_for_all = new
        .iter()
        .any(|(id, _)| id.namespace.is_empty() || consents(&id.namespace));
    for kind in [scope::BINDING.kind, scope::CLUSTER_BINDING.kind] {
        for binding in every(hub, Gvk::new(scope::BINDING_API, kind), true).await? {
            let namespace = binding["metadata"]["namespace"].as_str().unwrap_or_default();
            let spec = &binding["spec"];
            let has_dependencies = spec["propagateDeps"] == true || spec["requiredBy"].is_array();
            let is_near = |(id, _): &(&ResourceId, &Value)| *id.namespace == *namespace;
            if has_dependencies && (is_for_all || namespace.is_empty() || new.iter().any(is_near)) {
                state.add_binding(&binding);
            }
        }
    }
    let is_elsewhere = |clusters: &BTreeSet<Str>| clusters.iter().any(|name| **name != *cluster);
    state.bindings.retain(|_, placed| is_elsewhere(&placed.clusters));
    Ok(state)
}

/// The dependencies of these bindings' templates among the new ones, direct and indirect ones.
async fn referrers(
    hub: &Client,
    interpreters: &InterpreterSnapshot,
    bindings: &HubState,
    new: &[(&ResourceId, &Value)],
) -> Result<Vec<Referrer>> {
    let mut kinds = Kinds::default();
    let mut known = Known(deps::namespaces(hub).await?);
    for placed in bindings.bindings.values() {
        if let Some(template) = deps::get(hub, &mut kinds, &placed.resource).await? {
            known.0.insert(placed.resource.clone(), template);
        }
    }
    for (id, template) in new {
        known
            .0
            .entry((*id).clone())
            .or_insert_with(|| (*template).clone());
    }
    let drawing = Drawing::of(known.0.iter(), |gvk| interpreters.of(gvk));
    let all = bindings.bindings.values().map(|placed| Referrer {
        template: placed.resource.clone(),
        clusters: placed.clusters.clone(),
        needs: deps::below(&drawing, &placed.resource),
    });
    Ok(all.collect())
}
