//! Refused writes: when the hub refuses what we write, the person who can change that is told, on the object that they
//! wrote.

use entourage_api::keys::event;

use crate::{
    index::Index,
    plan::{Event, Key, Regarding},
};

/// The Event for a write that the hub refused (validation, quota, rights), with the server's words; `None` when nothing
/// is known of the object any more. The caller emits it when a key is refused for the first time since it last succeeded.
#[must_use]
pub fn event(index: &Index, key: &Key, words: &str) -> Option<Event> {
    let regarding = match key {
        Key::Policy(name) => Regarding {
            api_version: "policy.karmada.io/v1alpha1".into(),
            kind: "PropagationPolicy".into(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: index.policies.get(name)?.meta.uid.clone(),
        },
        Key::Cluster(name) => Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: name.clone(),
            uid: index.members.get(name)?.meta.uid.clone(),
        },
        Key::Template(id)
        | Key::TemplateStatus(id)
        | Key::Binding(id)
        | Key::BindingStatus(id)
        | Key::Copy(id, _) => Regarding {
            api_version: id.gvk.api_version(),
            kind: id.gvk.kind.to_string(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            uid: index.entity(id)?.template.as_ref()?.meta.uid.clone(),
        },
    };
    let what = match key {
        Key::Template(_) => "the claim of the policy",
        Key::TemplateStatus(_) => "the status merged from its members",
        Key::Binding(_) => "its ResourceBinding",
        Key::BindingStatus(_) => "the status of its ResourceBinding",
        Key::Policy(_) | Key::Cluster(_) => "what the control plane adds",
        Key::Copy(..) => "its copy",
    };
    let message = format!("the hub refuses {what}: {words}; it is tried again, change what is refused");
    Some(Event {
        regarding,
        warning: true,
        reason: event::SYNC_WORK_FAILED,
        message,
    })
}
