//! Kinds of the core group.

use super::kind_def::KindDef;

mod binding;
mod component_status;
mod config_map;
pub(super) mod endpoints;
pub(super) mod event;
mod limit_range;
pub(crate) mod namespace;
mod node;
mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub(super) mod service;
mod service_account;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &binding::DEF,
    &component_status::DEF,
    &config_map::DEF,
    &endpoints::DEF,
    &event::DEF,
    &limit_range::DEF,
    &namespace::DEF,
    &node::DEF,
    &persistent_volume::DEF,
    &persistent_volume_claim::DEF,
    &pod::DEF,
    &pod_template::DEF,
    &replication_controller::DEF,
    &resource_quota::DEF,
    &secret::DEF,
    &service::DEF,
    &service_account::DEF,
];
