//! The authority of a cluster: its certificate, that of the server, and those of clients.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};

/// Errors of making certificates: none is expected with the parameters used here.
pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;

/// A certificate authority with the certificate of servers on loopback.
#[derive(Clone)]
pub struct Authority {
    /// Its certificate, PEM.
    pub certificate: String,
    issuer: Arc<CertifiedIssuer<'static, KeyPair>>,
    config: Arc<ServerConfig>,
}

/// A client's certificate and key, PEM.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientCertificate")
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// A fresh authority and a server certificate for 127.0.0.1 and localhost signed by it. Clients may show a certificate of
    /// the authority; they need not.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "entourage");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        let leaf = leaf.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(issuer.der().to_vec()))?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![CertificateDer::from(leaf.der().to_vec())], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            certificate: issuer.pem(),
            issuer: Arc::new(issuer),
            config: Arc::new(config),
        })
    }

    /// A certificate of a user of these groups: `system:masters` makes an admin.
    ///
    /// # Errors
    /// When there is no randomness, or a name cannot be written in a certificate.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<ClientCertificate, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &*self.issuer)?;
        Ok(ClientCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}
