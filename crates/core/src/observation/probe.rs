//! The outcome of a health probe of a member.

use super::Served;

/// The result of a probe of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// True if the member's API server responds and is healthy.
    pub healthy: bool,
    /// A CamelCase reason, e.g. `ClusterReady`, `ClusterNotReachable`, `CredentialsRefused`.
    pub reason: String,
    /// A sentence for the user who must act.
    pub message: String,
    /// The member's version, e.g. `v1.36.2`.
    pub kubernetes_version: Option<String>,
    /// The group versions and kinds it serves: (groupVersion, [(plural, kind)]); `None` when discovery was not asked.
    pub api_enablements: Option<Vec<Served>>,
}
