//! Our own certificate authority and certificate: created, read from their stored form, renewed in time.
//!
//! Nothing here reads a clock or uses the network. Time is rounded to days, as certificates are made.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData as _};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject as _},
};

mod check;
mod issue;

use check::{authorities, certificates, first_certificate, signed};

/// The lifetime of an authority in days, and the days left at which it is renewed.
const AUTHORITY_DAYS: (i64, i64) = (3650, 365);

/// The same for a certificate.
const LEAF_DAYS: (i64, i64) = (365, 120);

/// The time for which the present authority stays trusted when all is created anew: until every replica has loaded the new
/// certificate, and not longer, because a leak of the old authority's key may be the reason why the Secret was deleted.
const HANDOVER: SignedDuration = SignedDuration::from_mins(10);

/// Keys of the stored form: a Secret of type `kubernetes.io/tls` with an authority beside it.
pub mod key {
    /// The certificate, PEM.
    pub const CERTIFICATE: &str = "tls.crt";
    /// Its private key, PEM.
    pub const KEY: &str = "tls.key";
    /// The authority's certificate, followed by that of the previous one, PEM.
    pub const AUTHORITY: &str = "ca.crt";
    /// The authority's private key, PEM.
    pub const AUTHORITY_KEY: &str = "ca.key";
    /// The expiry of the certificate and the authority, and the names of the certificate, JSON.
    pub const TERMS: &str = "terms.json";
}

/// The names of a certificate and its expiry.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terms {
    names: Vec<String>,
    not_after: Timestamp,
    authority_not_after: Timestamp,
    /// The time until which the previous authority is trusted, if that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handover_until: Option<Timestamp>,
}

/// The certificate and key to serve with, and the authority that signs the next certificate.
#[derive(Clone)]
pub struct Identity {
    parts: BTreeMap<String, Vec<u8>>,
    terms: Terms,
    config: Arc<ServerConfig>,
}

/// Debug output omits the keys.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

/// The treatment of a stored identity.
#[derive(Debug)]
pub enum Step {
    /// Keep it.
    Keep(Identity),
    /// Store this one in its place.
    Store(Identity),
    /// The Secret does not exist, or is invalid for this reason: [`anew`] creates one.
    Anew(String),
}

/// Returns the treatment of the stored identity, at `now`, for a server of these names: a valid identity for these names that
/// does not expire soon is kept; a certificate that expires soon is replaced by one of the same authority; an authority that
/// expires soon is replaced, and stays trusted for the certificates that it has signed.
///
/// # Errors
/// A name is invalid in a certificate, or there is no randomness.
pub fn step(
    stored: Option<&BTreeMap<String, Vec<u8>>>,
    names: &[String],
    now: Timestamp,
) -> Result<Step, String> {
    let known = match stored.map(|parts| Identity::of(parts.clone())) {
        None => return Ok(Step::Anew("nothing is stored".to_owned())),
        Some(Err(why)) => return Ok(Step::Anew(why)),
        Some(Ok(known)) => known,
    };
    let lasts = |until: Timestamp, left: i64| until.duration_since(now) > days(left);
    if !lasts(known.terms.authority_not_after, AUTHORITY_DAYS.1) {
        let before = known.text(key::AUTHORITY);
        let before = (first_certificate(&before), None);
        return Identity::made(None, before, names, now).map(Step::Store);
    }
    if !lasts(known.terms.not_after, LEAF_DAYS.1) || known.terms.names != names {
        return Identity::made(Some(&known), ("", None), names, now).map(Step::Store);
    }
    match known.terms.handover_until {
        Some(until) if until <= now => known.alone().map(Step::Store),
        _ => Ok(Step::Keep(known)),
    }
}

/// Creates an authority and a certificate. `trusted`: the bundle that the API server uses now, PEM. Its first certificate stays
/// trusted for a while, since other replicas still serve with it.
///
/// # Errors
/// A name is invalid in a certificate, or there is no randomness.
pub fn anew(trusted: &str, names: &[String], now: Timestamp) -> Result<Identity, String> {
    let before = first_certificate(trusted);
    match authorities(before.as_bytes()) {
        Ok(_) => Identity::made(None, (before, Some(now + HANDOVER)), names, now),
        Err(_) => Identity::made(None, ("", None), names, now),
    }
}

impl Identity {
    /// The stored form.
    #[must_use]
    pub const fn parts(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.parts
    }

    /// The authorities that clients must trust, as a `caBundle`: base64 of PEM.
    #[must_use]
    pub fn bundle(&self) -> String {
        STANDARD.encode(self.text(key::AUTHORITY))
    }

    /// Replaces another configuration by its own. Returns true if they differ.
    pub fn replace(&self, current: &mut Option<(Vec<u8>, Arc<ServerConfig>)>) -> bool {
        let certificate = self.parts.get(key::CERTIFICATE).cloned().unwrap_or_default();
        if current.as_ref().is_some_and(|(known, _)| *known == certificate) {
            return false;
        }
        *current = Some((certificate, self.config.clone()));
        true
    }

    /// The TLS configuration of a server with this identity.
    pub(crate) fn config(&self) -> ServerConfig {
        ServerConfig::clone(&self.config)
    }

    fn text(&self, part: &str) -> String {
        let bytes = self.parts.get(part).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Reads the stored form, and checks that its parts belong together: otherwise no client would trust the server.
    fn of(parts: BTreeMap<String, Vec<u8>>) -> Result<Self, String> {
        let part = |name: &str| parts.get(name).ok_or_else(|| format!("{name} is missing"));
        let within = |name: &'static str| move |error: String| format!("{name}: {error}");
        let terms: Terms = serde_json::from_slice(part(key::TERMS)?)
            .map_err(|error| within(key::TERMS)(error.to_string()))?;
        let chain = certificates(part(key::CERTIFICATE)?).map_err(within(key::CERTIFICATE))?;
        let authorities = authorities(part(key::AUTHORITY)?).map_err(within(key::AUTHORITY))?;
        let authority_key = String::from_utf8_lossy(part(key::AUTHORITY_KEY)?);
        let authority_key = KeyPair::from_pem(&authority_key)
            .map_err(|error| within(key::AUTHORITY_KEY)(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // A certificate contains its whole public key.
        let public = authority_key.subject_public_key_info();
        if !authorities[0]
            .windows(public.len())
            .any(|window| window == public)
        {
            return Err("ca.key is not the key of ca.crt".to_owned());
        }
        signed(&chain, &authorities[0], &terms, provider.clone())?;
        let private = PrivateKeyDer::from_pem_slice(part(key::KEY)?)
            .map_err(|error| within(key::KEY)(error.to_string()))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .map_err(|error| within(key::KEY)(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            parts,
            terms,
            config: Arc::new(config),
        })
    }

    /// The same identity, trusted by its own authority only.
    fn alone(&self) -> Result<Self, String> {
        let mut parts = self.parts.clone();
        let terms = Terms {
            handover_until: None,
            ..self.terms.clone()
        };
        let terms = serde_json::to_vec(&terms).map_err(|error| error.to_string())?;
        let bundle = self.text(key::AUTHORITY);
        let own = first_certificate(&bundle).as_bytes().to_vec();
        parts.insert(key::TERMS.to_owned(), terms);
        parts.insert(key::AUTHORITY.to_owned(), own);
        Self::of(parts)
    }
}

const fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    fn stored(step: Step) -> Identity {
        match step {
            Step::Store(identity) => identity,
            Step::Keep(_) | Step::Anew(_) => panic!("{step:?}"),
        }
    }

    fn fresh(names: &[String], now: Timestamp) -> Identity {
        assert!(matches!(step(None, names, now).unwrap(), Step::Anew(_)));
        anew("", names, now).unwrap()
    }

    fn at(day: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + days(20_000 + day)
    }

    #[test]
    fn an_identity_is_kept_until_it_is_time_and_then_made_by_the_same_authority() {
        let names = names(&["127.0.0.1", "hook.ns.svc"]);
        let first = fresh(&names, at(0));
        let parts = first.parts();
        assert!(matches!(step(Some(parts), &names, at(0)).unwrap(), Step::Keep(_)));
        assert!(matches!(
            step(Some(parts), &names, at(244)).unwrap(),
            Step::Keep(_)
        ));
        let second = stored(step(Some(parts), &names, at(245)).unwrap());
        assert_eq!(second.bundle(), first.bundle());
        assert_ne!(second.parts()[key::CERTIFICATE], parts[key::CERTIFICATE]);
        assert!(second.terms.not_after > first.terms.not_after);
        // A server of another name needs another certificate at once.
        let other = stored(step(Some(parts), &self::names(&["other"]), at(0)).unwrap());
        assert_eq!(other.bundle(), first.bundle());
    }

    #[test]
    fn an_authority_that_ends_is_replaced_and_stays_trusted() {
        let names = names(&["localhost"]);
        let first = fresh(&names, at(0));
        let second = stored(step(Some(first.parts()), &names, at(3285)).unwrap());
        let (old, new) = (first.text(key::AUTHORITY), second.text(key::AUTHORITY));
        assert!(new.ends_with(&old) && new.len() > old.len());
        // Only the previous authority: bundles do not grow.
        let third = stored(step(Some(second.parts()), &names, at(2 * 3285)).unwrap());
        assert!(!third.text(key::AUTHORITY).contains(&old));
        assert!(third.text(key::AUTHORITY).ends_with(first_certificate(&new)));
    }

    #[test]
    fn what_cannot_be_used_is_made_anew() {
        let names = names(&["localhost"]);
        let (good, other) = (fresh(&names, at(0)), fresh(&names, at(0)));
        let is_anew = |parts: &BTreeMap<String, Vec<u8>>| {
            matches!(step(Some(parts), &names, at(0)).unwrap(), Step::Anew(_))
        };
        let all = [
            key::CERTIFICATE,
            key::KEY,
            key::AUTHORITY,
            key::AUTHORITY_KEY,
            key::TERMS,
        ];
        const END: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for part in all {
            let mut parts = good.parts().clone();
            parts.remove(part);
            assert!(is_anew(&parts), "{part} is missing");
            for nonsense in ["", "nonsense", END] {
                parts.insert(part.to_owned(), nonsense.into());
                assert!(is_anew(&parts), "{part} is {nonsense:?}");
            }
            if part != key::TERMS {
                parts.insert(part.to_owned(), other.parts()[part].clone());
                assert!(is_anew(&parts), "{part} is another's");
            }
        }
        // Parts that belong together, of another authority or for another name.
        for (taken, from) in [
            ([key::CERTIFICATE, key::KEY], &other),
            ([key::AUTHORITY, key::AUTHORITY_KEY], &other),
            (
                [key::CERTIFICATE, key::KEY],
                &fresh(&self::names(&["elsewhere"]), at(0)),
            ),
        ] {
            let mut parts = good.parts().clone();
            for part in taken {
                parts.insert(part.to_owned(), from.parts()[part].clone());
            }
            assert!(is_anew(&parts), "{taken:?}");
        }
    }

    #[test]
    fn what_has_ended_is_renewed_by_the_authority_that_lasts() {
        let names = names(&["localhost"]);
        let first = fresh(&names, at(0));
        let second = stored(step(Some(first.parts()), &names, at(400)).unwrap());
        assert_eq!(second.bundle(), first.bundle());
    }

    #[test]
    fn what_was_trusted_before_all_was_made_anew_is_trusted_for_a_while() {
        let names = names(&["localhost"]);
        let first = fresh(&names, at(0));
        let (begin, minute) = (at(1), SignedDuration::from_mins(1));
        let second = anew(&first.text(key::AUTHORITY), &names, begin).unwrap();
        let (old, both) = (first.text(key::AUTHORITY), second.text(key::AUTHORITY));
        assert!(both.ends_with(&old) && both.len() > old.len());
        let parts = second.parts();
        assert!(matches!(
            step(Some(parts), &names, begin + minute * 9).unwrap(),
            Step::Keep(_)
        ));
        let alone = stored(step(Some(parts), &names, begin + minute * 10).unwrap());
        assert_eq!(format!("{}{old}", alone.text(key::AUTHORITY)), both);
        assert_eq!(alone.parts()[key::CERTIFICATE], parts[key::CERTIFICATE]);
        assert!(matches!(
            step(Some(alone.parts()), &names, begin + minute * 11).unwrap(),
            Step::Keep(_)
        ));
        // An invalid bundle is not kept.
        assert!(
            anew("nonsense", &names, begin)
                .unwrap()
                .terms
                .handover_until
                .is_none()
        );
    }

    #[test]
    fn the_configuration_changes_only_with_the_certificate() {
        let names = names(&["localhost"]);
        let first = fresh(&names, at(0));
        let mut current = None;
        assert!(first.replace(&mut current));
        assert!(!first.replace(&mut current));
        let second = stored(step(Some(first.parts()), &names, at(300)).unwrap());
        assert!(second.replace(&mut current));
    }

    #[test]
    fn keys_are_not_shown() {
        let identity = fresh(&names(&["localhost"]), at(0));
        let shown = format!("{identity:?} {:?}", Step::Keep(identity.clone()));
        assert!(!shown.contains("PRIVATE") && !shown.contains("ca.key"), "{shown}");
    }
}
