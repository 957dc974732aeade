//! Checks of stored certificates: readable, and signed by the authority beside them.

use std::{sync::Arc, time::Duration};

use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};

use super::Terms;

/// The certificates of a PEM text, at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    if all.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    Ok(all)
}

/// The same, each of which is a valid authority.
pub(super) fn authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = certificates(pem)?;
    for one in &all {
        let mut roots = RootCertStore::empty();
        roots.add(one.clone()).map_err(|error| error.to_string())?;
    }
    Ok(all)
}

/// Succeeds if an authority signed a certificate for the names and the time of the terms.
pub(super) fn signed(
    chain: &[CertificateDer<'static>],
    authority: &CertificateDer<'static>,
    terms: &Terms,
    provider: Arc<CryptoProvider>,
) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).map_err(|error| error.to_string())?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| error.to_string())?;
    // Independent of the present time: an expired certificate is renewed, not discarded.
    let last = u64::try_from(terms.not_after.as_second()).unwrap_or_default();
    let last = UnixTime::since_unix_epoch(Duration::from_secs(last.saturating_sub(1)));
    // A name that no client can request is not verified.
    let names = terms
        .names
        .iter()
        .filter_map(|name| ServerName::try_from(name.as_str()).ok());
    for name in names {
        verifier
            .verify_server_cert(&chain[0], &chain[1..], &name, &[], last)
            .map_err(|error| format!("ca.crt does not verify tls.crt: {error}"))?;
    }
    Ok(())
}

/// The first certificate of a bundle.
pub(super) fn first_certificate(bundle: &str) -> &str {
    const END: &str = "-----END CERTIFICATE-----";
    match bundle.find(END) {
        Some(at) => {
            let end = at + END.len();
            let line = bundle[end..]
                .find('\n')
                .map_or(bundle.len(), |more| end + more + 1);
            &bundle[..line]
        }
        None => "",
    }
}
