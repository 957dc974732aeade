//! Kinds of `certificates.k8s.io`.

use super::kind_def::KindDef;
use crate::object::{
    Object,
    tree::{below, list},
};

mod certificate_signing_request;

/// The group.
pub(crate) const GROUP: &str = "certificates.k8s.io";

/// The resource of CertificateSigningRequests.
pub(crate) const PLURAL: &str = "certificatesigningrequests";

/// The signer whose certificates authenticate clients of the API server.
pub(crate) const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[&certificate_signing_request::DEF];

/// True if a CertificateSigningRequest has a condition of this type.
pub(crate) fn has_condition(request: &Object, kind: &str) -> bool {
    list(below(request, "status"), "conditions")
        .iter()
        .any(|condition| condition["type"] == kind)
}
