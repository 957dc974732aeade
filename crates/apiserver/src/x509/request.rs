//! Requests for certificates (PKCS #10), checked as a kube-apiserver checks them.

use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject as _};

use super::{
    certificate::{ALTERNATIVE_NAMES, Names, extension, names},
    der::{BITS, FIELD_0, INTEGER, OID, Reader, SEQUENCE, SET, whole, whole_bits},
    first_label,
};

/// The attribute that asks for extensions, as its OID is encoded.
const EXTENSIONS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];

/// Algorithms of keys.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// The label of a request in PEM.
const LABEL: &str = "CERTIFICATE REQUEST";

/// A request that was signed with the key that it is about. Its parts are as they were encoded.
#[derive(Debug)]
pub(crate) struct Request {
    /// The name, its whole element.
    pub(crate) subject: Vec<u8>,
    /// The public key with its algorithm, the whole element.
    pub(crate) public_key: Vec<u8>,
    /// Further names: the value of the extension.
    pub(crate) alternative_names: Option<Vec<u8>>,
    /// The words of the name.
    pub(crate) names: Names,
}

impl Request {
    /// The request in PEM.
    ///
    /// # Errors
    /// What is wrong with it, in the words of the server where they are known.
    pub(crate) fn of_pem(pem: &[u8]) -> Result<Self, &'static str> {
        let der = CertificateSigningRequestDer::from_pem_slice(pem).ok();
        let der = der.filter(|_| first_label(pem) == Some(LABEL));
        Self::of_der(&der.ok_or("PEM block type must be CERTIFICATE REQUEST")?)
    }

    fn of_der(der: &[u8]) -> Result<Self, &'static str> {
        let signed = Signed::of(der).ok_or("asn1: structure error: malformed certificate request")?;
        signed.check()?;
        signed.request().ok_or("x509: malformed certificate request")
    }
}

/// A request, its signature not yet checked.
struct Signed<'a> {
    /// The bytes that were signed.
    content: &'a [u8],
    fields: Reader<'a>,
    subject: &'a [u8],
    public_key: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> Signed<'a> {
    fn of(der: &'a [u8]) -> Option<Self> {
        let mut parts = whole(der, SEQUENCE)?;
        let content = parts.one(SEQUENCE)?;
        let algorithm = parts.one(SEQUENCE)?.content;
        let signature = whole_bits(parts.one(BITS)?.content)?;
        let mut fields = Reader::new(content.content);
        fields.one(INTEGER)?;
        let subject = fields.one(SEQUENCE)?.whole;
        let public_key = fields.one(SEQUENCE)?.whole;
        parts.is_done().then_some(Self {
            content: content.whole,
            fields,
            subject,
            public_key,
            algorithm,
            signature,
        })
    }

    /// Checks the signature with the request's own key: who asks for a certificate has the key.
    fn check(&self) -> Result<(), &'static str> {
        const UNKNOWN: &str = "x509: cannot verify signature: algorithm unimplemented";
        let mut parts = whole(self.public_key, SEQUENCE).ok_or(UNKNOWN)?;
        let algorithm = parts.one(SEQUENCE).ok_or(UNKNOWN)?.content;
        let bits = parts.one(BITS).ok_or(UNKNOWN)?.content;
        let key = whole_bits(bits).ok_or(UNKNOWN)?;
        let known = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let mut fitting = known
            .all
            .iter()
            .filter(|one| {
                one.public_key_alg_id().as_ref() == algorithm
                    && one.signature_alg_id().as_ref() == self.algorithm
            })
            .peekable();
        if fitting.peek().is_none() {
            return Err(UNKNOWN);
        }
        if fitting.any(|one| one.verify_signature(key, self.content, self.signature).is_ok()) {
            return Ok(());
        }
        let oid = Reader::new(algorithm).one(OID);
        Err(match oid.map(|oid| oid.content) {
            Some(RSA) => "crypto/rsa: verification error",
            Some(ED25519) => "x509: Ed25519 verification failure",
            _ => "x509: ECDSA verification failure",
        })
    }

    fn request(mut self) -> Option<Request> {
        let attributes = self.fields.within(FIELD_0);
        let extensions = attributes.and_then(wanted_extensions);
        let alternative_names = extensions.and_then(|all| extension(all, ALTERNATIVE_NAMES));
        self.fields.is_done().then_some(())?;
        Some(Request {
            names: names(self.subject)?,
            subject: self.subject.to_vec(),
            public_key: self.public_key.to_vec(),
            alternative_names: alternative_names.map(<[u8]>::to_vec),
        })
    }
}

/// The extensions that the attributes ask for.
fn wanted_extensions(mut attributes: Reader<'_>) -> Option<Reader<'_>> {
    while let Some(mut attribute) = attributes.within(SEQUENCE) {
        let oid = attribute.one(OID)?.content;
        let mut values = attribute.within(SET)?;
        if oid == EXTENSIONS {
            return values.within(SEQUENCE);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x509::pem;
    use proptest::prelude::*;
    use rcgen::{
        CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
        SignatureAlgorithm,
    };

    fn request(algorithm: &'static SignatureAlgorithm, names: &[&str]) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "devs");
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let request = params.serialize_request(&key).expect("a request");
        request.der().to_vec()
    }

    #[test]
    fn a_request_says_who_wants_a_certificate_for_which_key() {
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let der = request(algorithm, &["a.example"]);
            let request = Request::of_pem(pem(LABEL, &der).as_bytes()).expect("a request");
            assert_eq!(request.names.common, "jane");
            assert_eq!(request.names.organizations, ["devs"]);
            let names = request.alternative_names.expect("names");
            assert!(names.ends_with(b"a.example"));
        }
        let request = Request::of_der(&request(&PKCS_ED25519, &[])).expect("a request");
        assert_eq!(request.alternative_names, None);
    }

    #[test]
    fn a_request_that_its_key_did_not_sign_is_none() {
        let mut other = request(&PKCS_ECDSA_P256_SHA256, &[]);
        let at = other.windows(4).position(|four| four == b"jane");
        other[at.expect("the name")] = b'J';
        let error = Request::of_der(&other).map(drop);
        assert_eq!(error, Err("x509: ECDSA verification failure"));
        let mut other = request(&PKCS_ED25519, &[]);
        let last = other.len() - 1;
        other[last] ^= 1;
        let error = Request::of_der(&other).map(drop);
        assert_eq!(error, Err("x509: Ed25519 verification failure"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let der = request(&PKCS_ECDSA_P256_SHA256, &[]);
        let no_pem = "PEM block type must be CERTIFICATE REQUEST";
        for (text, problem) in [
            (String::new(), no_pem),
            ("nonsense".to_owned(), no_pem),
            (pem("CERTIFICATE", &der), no_pem),
            (pem("PRIVATE KEY", &der) + &pem(LABEL, &der), no_pem),
            (
                pem(LABEL, &der[..der.len() - 1]),
                "asn1: structure error: malformed certificate request",
            ),
        ] {
            let error = Request::of_pem(text.as_bytes()).map(drop);
            assert_eq!(error, Err(problem), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..150, to: u8) {
            let _ = Request::of_der(&bytes);
            let mut der = request(&PKCS_ED25519, &["a.example"]);
            let at = at % der.len();
            der[at] = to;
            let _ = Request::of_der(&der);
        }
    }
}
