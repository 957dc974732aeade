//! The admission plugins of CertificateSigningRequests: CertificateApproval, CertificateSigning and
//! CertificateSubjectRestriction; and the user that a request names, who is always the one that made it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;

use crate::{
    admission::{policies::States, request::Request},
    auth::{Access, MASTERS, User, rbac::Wanted},
    kinds::certificates::{CLIENT_SIGNER, GROUP, PLURAL},
    object::{
        Object,
        tree::{below, made, same, text},
    },
    resource::{Resource, about},
    status::{Result, Status},
    x509,
};

/// Writes the user of the request into a new CertificateSigningRequest; other objects stay as they are.
pub(crate) fn name_user(resource: &Resource, object: &mut Object, user: &User) {
    if !is_meant(resource) {
        return;
    }
    let spec = made(object, "spec");
    for (field, value, is_set) in [
        ("username", json!(user.name), !user.name.is_empty()),
        ("uid", json!(user.uid), !user.uid.is_empty()),
        ("groups", json!(user.groups), !user.groups.is_empty()),
        ("extra", json!(user.extra), !user.extra.is_empty()),
    ] {
        if is_set {
            spec.insert(field.to_owned(), value);
        } else {
            spec.remove(field);
        }
    }
}

/// Refuses who approves or signs without the verb for the signer, and a request for a certificate of [`MASTERS`].
pub(crate) fn check(access: Access<'_>, request: &Request<'_>, states: States<'_>) -> Result<()> {
    let (true, Some(new)) = (is_meant(request.resource), states.new) else {
        return Ok(());
    };
    let refused = |why: &str| Err(Status::forbidden(about(request.resource, request.name), why));
    let Some(old) = states.old else {
        return match restricted(below(new, "spec")) {
            Some(why) => refused(&why),
            None => Ok(()),
        };
    };
    // The signer of a request never changes.
    let signer = text(below(old, "spec"), "signerName");
    let field = |object: &Object, name: &str| below(object, "status").get(name).cloned();
    let changes = |name: &str| !same(field(new, name).as_ref(), field(old, name).as_ref());
    let verb = match request.subresource {
        "approval" => "approve",
        "status" if changes("certificate") || changes("conditions") => "sign",
        _ => return Ok(()),
    };
    if may(access, request.user, verb, signer) {
        return Ok(());
    }
    refused(&format!(
        "user not permitted to {verb} requests with signerName {signer:?}"
    ))
}

fn is_meant(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == PLURAL
}

/// True if the user has the verb for the signer, or for all of its domain.
fn may(access: Access<'_>, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let all = format!("{domain}/*");
    user.is_master()
        || [signer, &all].into_iter().any(|name| {
            let wanted = Wanted {
                verb,
                group: GROUP,
                resource: "signers",
                name,
                ..Wanted::default()
            };
            access.rbac().allows(user, &wanted).is_some()
        })
}

/// The reason why a request with this spec is not taken.
fn restricted(spec: &Object) -> Option<String> {
    if text(spec, "signerName") != CLIENT_SIGNER {
        return None;
    }
    let pem = BASE64_STANDARD.decode(text(spec, "request")).unwrap_or_default();
    match x509::request::Request::of_pem(&pem) {
        Err(problem) => Some(format!("failed to parse CSR: {problem}")),
        Ok(request) if request.names.organizations.iter().any(|one| one == MASTERS) => Some(format!(
            "use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        )),
        Ok(_) => None,
    }
}
