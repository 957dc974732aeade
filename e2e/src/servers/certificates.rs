//! The keys and certificates of one cluster. Elliptic curves: made in a millisecond and cheap in every handshake.

use std::path::Path;

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The certificate authority of a cluster, for its clients.
#[derive(Clone, Debug)]
pub(super) struct Authority {
    /// For kubeconfig files and CA bundles.
    pub(super) pem: String,
    /// The same for clients in this process.
    pub(super) der: Vec<u8>,
}

/// Writes `ca.{crt,key}`, `apiserver.{crt,key}` and `service-account.{key,pub}` into `dir`, which exists. The serving
/// certificate holds for 127.0.0.1, localhost and the in-cluster names. Fails when a file cannot be written.
pub(super) fn write(cluster: &str, dir: &Path) -> anyhow::Result<Authority> {
    let mut authority = parameters(&format!("{cluster} authority"), &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority_key = KeyPair::generate().context("generating the authority's key")?;
    let certificate = authority
        .self_signed(&authority_key)
        .context("signing the authority's certificate")?;

    let names = [
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
    ];
    let mut serving = parameters("kube-apiserver", &names)?;
    serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let serving_key = KeyPair::generate().context("generating the serving key")?;
    let issuer = Issuer::from_params(&authority, &authority_key);
    let served = serving
        .signed_by(&serving_key, &issuer)
        .context("signing the serving certificate")?;

    let service_accounts = KeyPair::generate().context("generating the service accounts' key")?;
    for (name, content) in [
        ("ca.crt", certificate.pem()),
        ("ca.key", authority_key.serialize_pem()),
        ("apiserver.crt", served.pem()),
        ("apiserver.key", serving_key.serialize_pem()),
        ("service-account.key", service_accounts.serialize_pem()),
        ("service-account.pub", service_accounts.public_key_pem()),
    ] {
        std::fs::write(dir.join(name), content).with_context(|| format!("writing {name} of {cluster}"))?;
    }
    Ok(Authority {
        pem: certificate.pem(),
        der: certificate.der().to_vec(),
    })
}

fn parameters(common_name: &str, names: &[&str]) -> anyhow::Result<CertificateParams> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut parameters = CertificateParams::new(names).context("naming a certificate")?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters
        .distinguished_name
        .push(DnType::CommonName, common_name);
    Ok(parameters)
}
