//! The kinds that are built in: one table. A kind is a file of its group, and a row in that group's list.

use std::sync::Arc;

use crate::{
    resource::{Kinds, Resource},
    schema::{
        Schema,
        builtin::{self, Root},
    },
};

mod admissionregistration;
pub(crate) mod amounts;
mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
pub(crate) mod batch;
pub(crate) mod certificates;
mod coordination;
pub(crate) mod core;
mod discovery;
mod events;
mod flowcontrol;
mod kind_def;
mod networking;
mod node;
pub(crate) mod pod_security;
mod pod_spec;
pub(crate) mod policy;
mod rbac;
mod resource;
mod scheduling;
mod storage;
#[cfg(test)]
mod tests;
pub(crate) mod workloads;

use kind_def::KindDef;

pub(crate) use self::{
    authentication::token_request::DEF as TOKEN_REQUEST, autoscaling::scale::DEF as SCALE,
    pod_spec::resources::is_extended, policy::eviction::DEF as EVICTION,
};

/// The kinds that are served, by group, in the order of discovery.
const GROUPS: &[&[&KindDef]] = &[
    core::KINDS,
    events::KINDS,
    authentication::KINDS,
    authorization::KINDS,
    autoscaling::KINDS,
    batch::KINDS,
    certificates::KINDS,
    networking::KINDS,
    policy::KINDS,
    rbac::KINDS,
    storage::KINDS,
    admissionregistration::KINDS,
    apiextensions::KINDS,
    scheduling::KINDS,
    coordination::KINDS,
    node::KINDS,
    discovery::KINDS,
    apps::KINDS,
    flowcontrol::KINDS,
    resource::KINDS,
];

/// The kinds that have no path of their own: they are only sent to subresources of others.
const SENT: &[&KindDef] = &[&TOKEN_REQUEST, &SCALE, &EVICTION];

/// The kinds that a cluster serves if its options say so.
const OPTIONAL: &[&KindDef] = apiregistration::KINDS;

/// Versions that are no longer served, but still known: objects of them differ from objects of no kind.
const PAST: &[(&str, &[&str])] = &[
    ("admissionregistration.k8s.io", &["v1beta1"]),
    ("apiextensions.k8s.io", &["v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("batch", &["v1beta1"]),
    ("certificates.k8s.io", &["v1beta1"]),
    ("coordination.k8s.io", &["v1beta1"]),
    ("discovery.k8s.io", &["v1beta1"]),
    ("events.k8s.io", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta1", "v1beta2", "v1beta3"]),
    ("networking.k8s.io", &["v1beta1"]),
    ("node.k8s.io", &["v1beta1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1alpha1", "v1beta1"]),
    ("scheduling.k8s.io", &["v1beta1"]),
    ("storage.k8s.io", &["v1beta1"]),
];

/// The built-in resources. O(table).
#[must_use]
pub fn builtin() -> Kinds {
    let mut kinds = Kinds::default();
    for def in served() {
        kinds.add(Arc::new(def.resource()));
    }
    kinds
}

/// The resource of APIServices.
pub(crate) fn api_services() -> Vec<Arc<Resource>> {
    OPTIONAL.iter().map(|def| Arc::new(def.resource())).collect()
}

fn served() -> impl Iterator<Item = &'static KindDef> {
    GROUPS.iter().copied().flatten().copied()
}

fn all() -> impl Iterator<Item = &'static KindDef> {
    served().chain(SENT.iter().chain(OPTIONAL).copied())
}

/// The types of all kinds.
pub(crate) fn roots() -> impl Iterator<Item = Root> {
    all().map(|def| def.root)
}

/// The kind of a definition such as `io.k8s.api.autoscaling.v1.Scale`. O(table).
pub(crate) fn defined(name: &str) -> Option<&'static KindDef> {
    all().find(|def| (def.root.name)() == name)
}

/// A kind, whatever path it is served at; `None` when there is no such kind. A past version is
/// taken for v1. O(table).
pub(crate) fn find(group: &str, version: &str, kind: &str) -> Option<&'static KindDef> {
    let is_past = PAST
        .iter()
        .any(|(name, versions)| *name == group && versions.contains(&version));
    let version = if is_past { "v1" } else { version };
    all().find(|def| def.group == group && def.version == version && def.kind == kind)
}

/// The schema of a definition such as `io.k8s.api.core.v1.PodSpec`, whatever kind it is a part of; anything when it is unknown.
#[must_use]
pub(crate) fn definition(name: &str) -> Arc<Schema> {
    builtin::definition(name, || {
        let all: Vec<Root> = roots().chain(Root::SHARED).collect();
        match all.iter().find(|root| (root.name)() == name) {
            Some(root) => vec![*root],
            None => all,
        }
    })
}
