//! Trust in a webhook's certificate: webpki's rules, and a certificate that is itself in the `caBundle`.
//!
//! A kube-apiserver accepts a serving certificate that is in the bundle as a chain of one (`openssl req -x509` makes such, with
//! `CA:TRUE`), while it is valid and for its names. webpki accepts no authority's certificate as a server's, and no server's
//! certificate without its issuer's. The controllers do the same with hooks and members
//! (`crates/controllers/src/client/trust.rs`); this crate depends on none of the others.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// A verifier that trusts what these certificates issued, and these certificates themselves as those of servers.
pub(super) fn verifier(
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in &trusted {
        roots
            .add(certificate.clone())
            .map_err(|error| error.to_string())?;
    }
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(BundleVerifier { trusted, webpki }))
}

#[derive(Debug)]
struct BundleVerifier {
    trusted: Vec<CertificateDer<'static>>,
    webpki: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let result = self
            .webpki
            .verify_server_cert(end_entity, intermediates, name, ocsp, now);
        match result {
            Err(error) if is_about_the_chain(&error) && self.trusted.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.webpki
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// True if webpki's only objection is to the issuer of a certificate, or to its being an authority's. It checks the period of
/// validity before both, so neither is reported for a certificate that is not valid now.
fn is_about_the_chain(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(error) => is_unvouched(error),
        _ => false,
    }
}

/// True if no trusted authority issued a certificate, though it may be valid otherwise: a server that presents an authority's
/// certificate which is not in the bundle is one such case.
pub(super) fn is_unvouched(error: &CertificateError) -> bool {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => true,
        // webpki's errors are their own names; rustls wraps those that it does not know.
        CertificateError::Other(other) => other.0.to_string() == "CaUsedAsEndEntity",
        _ => false,
    }
}
