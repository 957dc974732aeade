//! Reads a CertificateSigningRequest and the PKCS#10 request in it.
//!
//! It is parsed a second time by the API server and by the signer, in other words of the same formats: where two parsers could read
//! different requests, the approval of one would sign the other. So the encoding must be the one that encoders write, and a request must
//! ask for nothing but a subject.

use entourage_core::registration::SigningRequest;
use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use x509_parser::{
    certification_request::X509CertificationRequest,
    oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME},
    prelude::FromDer as _,
};

/// The longest request that is read, in bytes of PEM. One with an RSA key of 4,096 bits has less than 2,000.
const LONGEST: usize = 16 << 10;

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----\n";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// The contents of a request; `None` if they cannot be parsed.
pub(super) fn read(object: &CertificateSigningRequest) -> Option<SigningRequest> {
    let spec = &object.spec;
    let der = der(&spec.request.0)?;
    let (rest, request) = X509CertificationRequest::from_der(&der).ok()?;
    if !rest.is_empty() {
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
        // Extensions such as alternative names are attributes, too.
        has_more: !request.certification_request_info.attributes().is_empty(),
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

/// The bytes of exactly one block of PEM with nothing around it, no headers, and nothing but base64 in it.
fn der(pem: &[u8]) -> Option<Vec<u8>> {
    if pem.len() > LONGEST {
        return None;
    }
    let text = std::str::from_utf8(pem).ok()?.replace("\r\n", "\n");
    let body = text
        .strip_prefix(BEGIN)?
        .trim_end_matches('\n')
        .strip_suffix(END)?;
    let is_base64 = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=' | b'\n');
    if !body.ends_with('\n') || !body.bytes().all(is_base64) {
        return None;
    }
    let decoded: ByteString = serde_json::from_value(body.replace('\n', "").into()).ok()?;
    Some(decoded.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(body: &str) -> String {
        format!("{BEGIN}{body}{END}\n")
    }

    #[test]
    fn one_block_of_base64_is_read() {
        for text in [
            wrapped("aGVs\nbG8=\n"),
            wrapped("aGVsbG8=\n").replace('\n', "\r\n"),
            wrapped("aGVsbG8=\n").trim_end().to_owned(),
        ] {
            assert_eq!(der(text.as_bytes()).as_deref(), Some(&b"hello"[..]), "{text}");
        }
    }

    #[test]
    fn what_two_parsers_could_read_differently_is_not_read() {
        let good = wrapped("aGVsbG8=\n");
        // Go skips a block whose end has another label, and reads the next one.
        let ends = good.replace("END CERTIFICATE REQUEST", "END X");
        for text in [
            format!("{good}{good}"),
            format!("{ends}{good}"),
            format!("# a comment\n{good}"),
            format!("\n{good}"),
            format!("{good}more"),
            wrapped("Header: value\n\naGVsbG8=\n"),
            wrapped("aGVs bG8=\n"),
            wrapped("aGVsbG8=\n-----\n"),
            wrapped("aGVsbG8="),
            wrapped(""),
            good.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"),
            wrapped(&format!("{}\n", "A".repeat(LONGEST))),
            String::new(),
        ] {
            assert_eq!(der(text.as_bytes()), None, "{}", &text[..text.len().min(200)]);
        }
    }
}
