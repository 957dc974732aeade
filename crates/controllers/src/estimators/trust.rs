//! TLS with estimators: which certificates are trusted, and which is shown.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};

use super::Tls;
use crate::client::trust;

/// The TLS of a client; `None` speaks without TLS.
///
/// # Errors
/// The file that cannot be read, and what to do.
pub(super) fn config(tls: Option<&Tls>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let Some(tls) = tls else {
        return Ok(builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth());
    };
    let verifier: Arc<dyn ServerCertVerifier> = match &tls.ca_file {
        _ if tls.skips_verification => Arc::new(AnyCertificate(algorithms)),
        Some(file) => {
            let wrong = || {
                format!(
                    "{} holds no certificate in PEM that can be trusted",
                    file.display()
                )
            };
            trust::verifier(certificates(file)?).ok_or_else(wrong)?
        }
        None => return Err("there is no CA file to verify estimators with; give one".into()),
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let Some((certificate, key)) = &tls.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let unreadable = |error| format!("{}: {error}; give the private key in PEM", key.display());
    let read = PrivateKeyDer::from_pem_file(key).map_err(unreadable)?;
    let unfit = |error| {
        format!(
            "{} and {} are no certificate and its private key: {error}",
            certificate.display(),
            key.display()
        )
    };
    builder
        .with_client_auth_cert(certificates(certificate)?, read)
        .map_err(unfit)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error| format!("{}: {error}; give certificates in PEM", file.display());
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(unreadable)?.collect();
    all.map_err(unreadable)
}

/// Trusts every certificate whose key signs the handshake: what a user asks for with `--insecure-skip-estimator-verify`.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
