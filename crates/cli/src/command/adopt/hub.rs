//! The hub's bindings, and the templates that copies were made from.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use entourage_api::keys::{CONFLICT_OVERWRITE, annotation};
use entourage_core::{
    adoption::{HubState, Versions},
    kinds::{distribution, quota},
    object::{Gvk, ResourceId},
    rendered::wipe,
    scope,
};
use kube::{Client, api::ListParams};

use super::member;
use crate::{
    connect::explain,
    kinds::{self, Kinds},
    lists::{PAGE, every, list_metadata},
};

/// The bindings, namespaces, distributions and quotas, and the templates of these kinds.
///
/// # Errors
/// The hub cannot be read.
pub(super) async fn state(hub: &Client, templates: &BTreeSet<Gvk>) -> Result<HubState> {
    let mut state = HubState::default();
    for kind in [scope::BINDING.kind, scope::CLUSTER_BINDING.kind] {
        for binding in every(hub, Gvk::new(scope::BINDING_API, kind), true).await? {
            state.add_binding(&binding);
        }
    }
    for quota in every(hub, quota(), false).await? {
        state.add_quota(&quota);
    }
    for mut distribution in every(hub, distribution(), false).await? {
        state.add_distribution(&distribution);
        // It may embed a Secret.
        wipe(&mut distribution);
    }
    for namespace in every(hub, Gvk::new("v1", "Namespace"), true).await? {
        state.add_namespace(&namespace);
    }
    add_templates(hub, &mut state, templates).await?;
    Ok(state)
}

/// The templates and policies of the hub by which it takes over objects of others at once.
///
/// # Errors
/// The policies cannot be read.
pub(super) async fn overwriting(hub: &Client, state: &HubState) -> Result<Vec<String>> {
    let mut all: Vec<String> = state.overwriting.iter().map(ToString::to_string).collect();
    for kind in [scope::POLICY.kind, scope::CLUSTER_POLICY.kind] {
        for policy in every(hub, Gvk::new(scope::POLICY_API, kind), true).await? {
            if policy["spec"]["conflictResolution"] == "Overwrite" {
                all.extend(ResourceId::of(&policy).map(|id| id.to_string()));
            }
        }
    }
    Ok(all)
}

/// Adds the templates of these kinds, and of those that need others, whatever version of a kind is named: the hub may serve another one than a member.
pub(super) async fn add_templates(hub: &Client, state: &mut HubState, wanted: &BTreeSet<Gvk>) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut wanted = wanted.clone();
    wanted.append(&mut state.kinds_of_referrers());
    let failed = "cannot ask the hub which kinds it serves";
    let preferred = kinds::preferred(hub).await.context(failed)?;
    let is_wanted = |gvk: &Gvk| wanted.contains(gvk);
    let of_bindings = state.versions().into_iter().filter(is_wanted);
    let known = wanted.iter().cloned().chain(member::known().filter(is_wanted));
    let versions = Versions::new(of_bindings, known, &preferred);
    let mut kinds = Kinds::default();
    for (_, versions) in versions.iter() {
        let found = kinds.first_served(hub, versions).await.context(failed)?;
        let Some((gvk, served)) = found else { continue };
        let all = list_metadata(hub, &served, &ListParams::default().limit(PAGE)).await;
        let all = all
            .map_err(explain)
            .with_context(|| format!("cannot list {} on the hub", served.resource.plural))?;
        let live = all.into_iter().filter(|meta| meta.deletion_timestamp.is_none());
        for meta in live {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let id = ResourceId::new(gvk.clone(), &text(&meta.namespace), &text(&meta.name));
            let setting = meta
                .annotations
                .as_ref()
                .and_then(|all| all.get(annotation::CONFLICT_RESOLUTION));
            if setting.is_some_and(|setting| setting == CONFLICT_OVERWRITE) {
                state.overwriting.insert(id.clone());
            }
            state.templates.insert(id, text(&meta.uid).into());
        }
    }
    Ok(())
}
