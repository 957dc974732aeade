//! Kinds of `networking.k8s.io`.

use super::kind_def::KindDef;

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &ingress::DEF,
    &ingress_class::DEF,
    &ip_address::DEF,
    &network_policy::DEF,
    &service_cidr::DEF,
];
