//! Kinds of `flowcontrol.apiserver.k8s.io`. They are stored: this server serves every request at once.

use super::kind_def::KindDef;

mod flow_schema;
mod priority_level_configuration;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&flow_schema::DEF, &priority_level_configuration::DEF];
