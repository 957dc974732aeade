//! The notes beside the outcome of each object: conditions that are not True, and objects that are not propagated.

use std::collections::BTreeSet;

use entourage_api::keys::{condition, reason};
use serde_json::Value;

use super::{Simulation, distributing, is_binding, outcome::Note};
use entourage_core::{
    inspection, interpreter,
    object::{Gvk, NamespacedName, ResourceId},
    scope,
};

/// The conditions of bindings and policies that are not True and were not so before, templates that are not propagated, and
/// templates that cannot be read.
pub(super) fn notes(simulation: &Simulation) -> Vec<Note> {
    let mut notes = BTreeSet::new();
    for (id, object) in simulation.servers.hub.iter() {
        let is_policy = &*id.gvk.group == "policy.karmada.io";
        if !is_policy && !is_binding(id) {
            continue;
        }
        let before = simulation.before().hub.get(id).unwrap_or(&Value::Null);
        let name = if is_policy { id.to_string() } else { bound(object) };
        for each in troubles(object) {
            let same = |held: &&Value| {
                ["type", "reason", "message", "status"]
                    .iter()
                    .all(|field| held[*field] == each[*field])
            };
            let touched = simulation.applied.contains_key(id);
            if touched || !troubles(before).any(|held| same(&held)) {
                notes.insert(note(&name, each));
            }
        }
    }
    notes.extend(without_effect(simulation));
    notes.extend(distributing::notes(simulation));
    notes.extend(stale_dependencies(simulation));
    notes.extend(unreadable(simulation));
    notes.into_iter().collect()
}

fn note(name: &str, condition: &Value) -> Note {
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    Note {
        object: name.to_owned(),
        condition: text("type"),
        reason: text("reason"),
        message: text("message"),
    }
}

/// The template of a binding.
fn bound(binding: &Value) -> String {
    let resource = &binding["spec"]["resource"];
    let text = |field: &str| resource[field].as_str().unwrap_or_default();
    ResourceId::new(
        Gvk::new(text("apiVersion"), text("kind")),
        text("namespace"),
        text("name"),
    )
    .to_string()
}

/// `FullyApplied` is omitted: the copies' outcomes say it better.
fn troubles(object: &Value) -> impl Iterator<Item = &Value> {
    let all = object["status"]["conditions"].as_array();
    all.into_iter()
        .flatten()
        .filter(|each| each["status"] != "True" && each["type"] != condition::FULLY_APPLIED)
}

/// The applied override policies that would change no copy: their kinds have no status that reports it.
fn without_effect(simulation: &Simulation) -> impl Iterator<Item = Note> {
    simulation.applied.keys().filter_map(|id| {
        let is_override =
            id.gvk.api_version() == scope::POLICY_API && id.gvk.kind.ends_with("OverridePolicy");
        let name = NamespacedName::new(&id.namespace, &id.name);
        let why = inspection::override_without_effect(simulation.engine(), &name).filter(|_| is_override)?;
        Some(Note {
            object: id.to_string(),
            condition: condition::EFFECTIVE.into(),
            reason: reason::PARTS_WITHOUT_EFFECT.into(),
            message: format!("it changes no copy: {why}"),
        })
    })
}

/// The objects that decisions need and this account may not read.
fn unreadable(simulation: &Simulation) -> impl Iterator<Item = Note> {
    let unknown = simulation.unreadable.iter();
    let unknown = unknown.filter(|(id, _)| !simulation.servers.hub.contains_key(id));
    unknown.map(|(id, why)| Note {
        object: id.to_string(),
        condition: "Propagated".into(),
        reason: "Unreadable".into(),
        message: format!(
            "it cannot be read on the hub ({why}), so whether it exists, and where it would go, is not in this plan: plan \
             with an account that may get and list it"
        ),
    })
}

/// Applied objects that nothing propagates.
fn stale_dependencies(simulation: &Simulation) -> Vec<Note> {
    let stays = |id: &ResourceId, object: &Value| -> Option<(&str, String)> {
        let has_binding = simulation
            .engine()
            .resource(id)
            .is_some_and(|resource| resource.binding.is_some());
        if has_binding || is_ours_to_read(id) {
            return None;
        }
        Some(if interpreter::not_propagatable(object) {
            let why = "a service-account token is a credential of the hub and is never propagated";
            ("NotPropagatable", why.into())
        } else {
            let why = "no policy selects it and no propagated workload refers to it: it stays on the hub";
            ("NotSelected", why.into())
        })
    };
    simulation
        .applied
        .iter()
        .filter_map(|(id, object)| {
            let (reason, message) = stays(id, object)?;
            Some(Note {
                object: id.to_string(),
                condition: "Propagated".into(),
                reason: reason.into(),
                message,
            })
        })
        .collect()
}

/// True for kinds that configure the hub and are not propagated by themselves.
fn is_ours_to_read(id: &ResourceId) -> bool {
    let group = &*id.gvk.group;
    group.ends_with("karmada.io")
        || group == "apps.kruise.io"
        || matches!(
            (group, &*id.gvk.kind),
            ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
}
