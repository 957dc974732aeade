//! Reads a CertificateSigningRequest and the PKCS#10 request in it.

use entourage_core::registration::SigningRequest;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use x509_parser::{
    certification_request::X509CertificationRequest,
    extensions::ParsedExtension,
    oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME},
    pem::Pem,
    prelude::FromDer as _,
};

/// The contents of a request; `None` if they cannot be parsed.
pub(super) fn read(object: &CertificateSigningRequest) -> Option<SigningRequest> {
    let spec = &object.spec;
    let (pem, _) = Pem::read(std::io::Cursor::new(&spec.request.0)).ok()?;
    let (rest, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    if !rest.is_empty() || pem.label != "CERTIFICATE REQUEST" {
        return None;
    }
    let status = object.status.as_ref();
    let is_signed =
        status.is_some_and(|status| status.certificate.as_ref().is_some_and(|it| !it.0.is_empty()));
    let has_condition =
        status.is_some_and(|status| status.conditions.as_ref().is_some_and(|all| !all.is_empty()));
    let mut read = SigningRequest {
        username: spec.username.clone().unwrap_or_default(),
        signer: spec.signer_name.clone(),
        usages: spec.usages.clone().unwrap_or_default(),
        has_more: asks_for_names(&request),
        is_settled: is_signed || has_condition,
        ..SigningRequest::default()
    };
    for attribute in request.certification_request_info.subject.iter_attributes() {
        let values = if *attribute.attr_type() == OID_X509_COMMON_NAME {
            &mut read.common_names
        } else if *attribute.attr_type() == OID_X509_ORGANIZATION_NAME {
            &mut read.organizations
        } else {
            read.has_more = true;
            continue;
        };
        match attribute.as_str() {
            Ok(text) => values.push(text.to_owned()),
            Err(_) => read.has_more = true,
        }
    }
    Some(read)
}

/// True if an extension other than the uses of the key is requested, such as alternative names.
fn asks_for_names(request: &X509CertificationRequest<'_>) -> bool {
    let is_use = |extension: &ParsedExtension<'_>| {
        matches!(
            extension,
            ParsedExtension::KeyUsage(_) | ParsedExtension::ExtendedKeyUsage(_)
        )
    };
    request
        .requested_extensions()
        .is_some_and(|mut all| all.any(|extension| !is_use(extension)))
}
