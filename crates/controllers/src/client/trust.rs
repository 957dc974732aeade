//! The trust in a server's certificate: webpki's rules, and a certificate that is itself in the bundle.
//!
//! A serving certificate that is also in the client's trust bundle (`openssl req -x509` makes it with `CA:TRUE`) is a chain of
//! one to a Go client: it is accepted for the names that it has, while it is valid. webpki accepts no CA certificate as a
//! server's, and no server certificate without its issuer's.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// A verifier that trusts certificates issued by these, and these themselves as server certificates. `None` if there is none, or
/// one cannot be read.
pub(crate) fn verifier(trusted: Vec<CertificateDer<'static>>) -> Option<Arc<dyn ServerCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in &trusted {
        roots.add(certificate.clone()).ok()?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .ok()?;
    Some(Arc::new(BundleVerifier { trusted, webpki }))
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
        match self
            .webpki
            .verify_server_cert(end_entity, intermediates, name, ocsp, now)
        {
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

/// True if webpki's only objection is the issuer of a certificate, or that it is a CA. It checks the validity period first, so
/// neither is returned for a certificate that is not valid now.
fn is_about_the_chain(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => true,
        // webpki's errors are identified by their names; rustls wraps those that it does not know.
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.0.to_string() == "CaUsedAsEndEntity"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    /// Made by `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 36500 -subj /CN=hook
    /// -addext subjectAltName=DNS:hook.team.svc,IP:127.0.0.1`, which makes certificates with `CA:TRUE`.
    const BY_OPENSSL: &str = include_str!("trust/self-signed.pem");

    fn in_year(year: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_556_952 + 86_400))
    }

    fn result(
        trusted: &[&CertificateDer<'static>],
        shown: &CertificateDer<'_>,
        name: &str,
    ) -> Result<(), String> {
        result_in(2030, trusted, shown, name)
    }

    fn result_in(
        year: u64,
        trusted: &[&CertificateDer<'static>],
        shown: &CertificateDer<'_>,
        name: &str,
    ) -> Result<(), String> {
        let trusted = trusted.iter().map(|&each| each.clone()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let result = verifier(trusted)
            .unwrap()
            .verify_server_cert(shown, &[], &name, &[], in_year(year));
        result.map(drop).map_err(|error| error.to_string())
    }

    /// Valid from 2020 to 2040, for `hook.team.svc`.
    fn params(is_ca: bool) -> CertificateParams {
        let mut params = CertificateParams::new(["hook.team.svc".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2040, 1, 1);
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params
    }

    fn self_signed() -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        params(true).self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn a_certificate_in_the_bundle_is_accepted_though_it_is_an_authoritys() {
        let own = self_signed();
        assert_eq!(result(&[&own], &own, "hook.team.svc"), Ok(()));
        let other = self_signed();
        assert_eq!(
            result(&[&other, &own], &own, "hook.team.svc"),
            Ok(()),
            "any of several"
        );
    }

    #[test]
    fn what_openssl_makes_by_default_is_accepted_for_its_names() {
        let own = CertificateDer::from_pem_slice(BY_OPENSSL.as_bytes()).unwrap();
        for name in ["hook.team.svc", "127.0.0.1"] {
            assert_eq!(result(&[&own], &own, name), Ok(()), "{name}");
        }
        for name in ["hook", "team.svc", "127.0.0.2"] {
            let error = result(&[&own], &own, name).unwrap_err();
            assert!(error.contains("not valid for name"), "{name}: {error}");
        }
    }

    #[test]
    fn a_certificate_of_the_same_subject_that_is_not_in_the_bundle_is_refused() {
        let (trusted, shown) = (self_signed(), self_signed());
        assert!(result(&[&trusted], &shown, "hook.team.svc").is_err());
    }

    #[test]
    fn a_certificate_of_the_bundle_is_refused_outside_of_its_validity_and_for_other_names() {
        let own = self_signed();
        for year in [2019, 2041] {
            let error = result_in(year, &[&own], &own, "hook.team.svc").unwrap_err();
            assert!(
                error.contains("expired") || error.contains("not valid yet"),
                "{year}: {error}"
            );
        }
        let error = result(&[&own], &own, "other.team.svc").unwrap_err();
        assert!(error.contains("not valid for name"), "{error}");
    }

    #[test]
    fn a_servers_certificate_is_accepted_without_its_issuers_if_it_is_in_the_bundle() {
        let authority = params(true);
        let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let root = authority.self_signed(&authority_key).unwrap().der().clone();
        let issuer = Issuer::from_params(&authority, &authority_key);
        let leaf = params(false).signed_by(&key, &issuer).unwrap().der().clone();
        assert_eq!(result(&[&leaf], &leaf, "hook.team.svc"), Ok(()), "itself");
        assert_eq!(result(&[&root], &leaf, "hook.team.svc"), Ok(()), "its issuer");
        let stranger = self_signed();
        assert!(result(&[&stranger], &leaf, "hook.team.svc").is_err());
        let error = result_in(2041, &[&leaf], &leaf, "hook.team.svc").unwrap_err();
        assert!(error.contains("expired"), "{error}");
    }

    #[test]
    fn no_certificate_or_a_broken_one_is_no_bundle() {
        assert!(verifier(Vec::new()).is_none());
        assert!(verifier(vec![CertificateDer::from(vec![1, 2])]).is_none());
    }
}
