//! The authority of a cluster: its certificate, that of the server, and those of clients.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SigningKey as _, date_time_ymd,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};

use crate::x509::{
    certificate::{Leaf, Names, Root, name, signed},
    pem,
};

/// Errors of making certificates: none is expected with the parameters used here.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// A certificate authority with the certificate of servers on loopback.
#[derive(Clone)]
pub struct Authority {
    /// Its certificate, PEM.
    pub certificate: String,
    root: Arc<Root>,
    issuer: Arc<Issuer<'static, KeyPair>>,
    config: Arc<ServerConfig>,
    #[cfg(test)]
    server: CertificateDer<'static>,
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

/// The names in the certificate of a server.
const NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// The lifetime of a certificate, in years.
const YEARS: i16 = 10;

/// The time from which on a certificate is valid: clocks may differ.
const BEFORE: SignedDuration = SignedDuration::from_hours(24);

/// The beginnings of a certificate for these names that is valid since yesterday, for [`YEARS`]. Strict verifiers want an
/// end, and clocks may differ.
fn dated(names: Vec<String>) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let yesterday = (Timestamp::now() - BEFORE).to_zoned(TimeZone::UTC);
    let at = |year: i16| {
        let month = yesterday.month().unsigned_abs();
        // No month lacks the 28th.
        let day = yesterday.day().unsigned_abs().min(28);
        date_time_ymd(year.into(), month, day)
    };
    params.not_before = at(yesterday.year());
    params.not_after = at(yesterday.year() + YEARS);
    Ok(params)
}

impl Authority {
    /// A fresh authority and a server certificate for 127.0.0.1 and localhost signed by it. Clients may show a certificate of
    /// the authority; they need not.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new() -> Result<Self, Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params()?.self_signed(&key)?.pem();
        Self::with(certificate, key)
    }

    /// The authority with this certificate and this key, both PEM, as [`certificate`](Self::certificate) and [`key`](Self::key)
    /// once gave them: who trusted it then trusts it now. The server's own certificate is a fresh one.
    ///
    /// # Errors
    /// When they cannot be read, or there is no randomness.
    pub fn restored(certificate: &str, key: &str) -> Result<Self, Error> {
        Self::with(certificate.to_owned(), KeyPair::from_pem(key)?)
    }

    /// The private key, PEM.
    #[must_use]
    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    fn with(certificate: String, key: KeyPair) -> Result<Self, Error> {
        let certified = CertificateDer::from_pem_slice(certificate.as_bytes())?;
        let root = Root::of(&certified).ok_or("the authority's certificate cannot be read")?;
        if !key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err("the authority's key is none of ECDSA P-256".into());
        }
        let issuer = Issuer::new(params()?, key);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut leaf = dated(NAMES.iter().map(|&name| name.to_owned()).collect())?;
        leaf.distinguished_name
            .push(DnType::CommonName, "entourage-server");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        let leaf = leaf.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::try_from(key.serialize_der())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certified)?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![CertificateDer::from(leaf.der().to_vec())], key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            certificate,
            root: Arc::new(root),
            issuer: Arc::new(issuer),
            config: Arc::new(config),
            #[cfg(test)]
            server: leaf.der().clone(),
        })
    }

    /// A certificate of a user of these groups: `system:masters` makes an admin.
    ///
    /// # Errors
    /// When there is no randomness, or a name cannot be written in a certificate.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<ClientCertificate, Error> {
        let subject = name(&Names {
            common: user.to_owned(),
            organizations: groups.iter().map(|&group| group.to_owned()).collect(),
        });
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = self.signed(&Leaf {
            subject: &subject,
            public_key: &key.subject_public_key_info(),
            alternative_names: None,
            signs: true,
            enciphers: false,
            since: Timestamp::now() - BEFORE,
            until: self.until(),
        })?;
        Ok(ClientCertificate {
            certificate,
            key: key.serialize_pem(),
        })
    }

    /// The end of its certificate: it signs nothing beyond.
    pub(crate) fn until(&self) -> Timestamp {
        self.root.until
    }

    /// Signs the certificate of a client, PEM.
    pub(crate) fn signed(&self, leaf: &Leaf<'_>) -> Result<String, Error> {
        let der = signed(leaf, &self.root, |content| self.issuer.key().sign(content))?;
        Ok(pem("CERTIFICATE", &der))
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

/// The content of every authority's certificate beside its key.
fn params() -> Result<CertificateParams, Error> {
    let mut params = dated(Vec::new())?;
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "entourage");
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The DER of an extension's OID below 2.5.29.
    fn has(der: &[u8], extension: u8) -> bool {
        der.windows(5)
            .any(|bytes| bytes == [0x06, 0x03, 0x55, 0x1d, extension])
    }

    fn der(pem: &str) -> Vec<u8> {
        use rustls::pki_types::pem::PemObject as _;
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        der.to_vec()
    }

    #[test]
    fn certificates_say_what_strict_verifiers_ask_for() {
        const KEY_USAGE: u8 = 15;
        const ALTERNATIVE_NAME: u8 = 17;
        const AUTHORITY_KEY: u8 = 35;
        const EXTENDED_USAGE: u8 = 37;
        let authority = Authority::new().expect("an authority");
        let client = authority.client("jane", &[]).expect("a certificate");
        let (root, server, client) = (
            der(&authority.certificate),
            authority.server.clone(),
            der(&client.certificate),
        );
        assert!(has(&root, KEY_USAGE));
        for leaf in [&*server, &client] {
            for extension in [KEY_USAGE, AUTHORITY_KEY, EXTENDED_USAGE] {
                assert!(has(leaf, extension), "{extension}");
            }
        }
        assert!(has(&server, ALTERNATIVE_NAME));
        let six = std::net::Ipv6Addr::LOCALHOST.octets();
        assert!(server.windows(16).any(|bytes| bytes == six));
        // A certificate that never expires has the year 9999.
        for certificate in [&root, &server.to_vec(), &client] {
            assert!(!certificate.windows(4).any(|bytes| bytes == b"9999"));
            assert!(!certificate.windows(6).any(|bytes| bytes == b"409601"));
        }
    }

    #[test]
    fn a_client_certificate_names_all_groups() {
        let authority = Authority::new().expect("an authority");
        let client = authority.client("jane", &["devs", "ops"]).expect("a certificate");
        let names = crate::x509::certificate::subject(&der(&client.certificate)).expect("a certificate");
        assert_eq!(names.common, "jane");
        assert_eq!(names.organizations, ["devs", "ops"]);
    }

    #[test]
    fn an_authority_that_is_restored_ends_when_it_did() {
        let authority = Authority::new().expect("an authority");
        let restored = Authority::restored(&authority.certificate, &authority.key()).expect("an authority");
        assert_eq!(restored.until(), authority.until());
        assert!(restored.until() > Timestamp::now() + SignedDuration::from_hours(9 * 365 * 24));
    }
}
