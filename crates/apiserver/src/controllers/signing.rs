//! Certificates for approved CertificateSigningRequests of the signer `kubernetes.io/kube-apiserver-client`, signed by the
//! cluster's authority. Source: the controller csrsigning of kube-controller-manager. Other signers are up to others.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Context, Controller, Queue, Seen, objects::change};
use crate::{
    authority::Authority,
    kinds::certificates::{CLIENT_SIGNER, has_condition},
    object::{
        Object,
        tree::{below, list, made, number, text},
    },
    store::Happened,
    x509::{certificate::Leaf, request::Request},
};

const REQUESTS: &str = "certificates.k8s.io/certificatesigningrequests";

/// The lifetime of a certificate for which none was asked, and the longest.
const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The shortest lifetime.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);

/// The time before now from which on a certificate is valid: clocks differ.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// A lifetime that is not shortened by [`BACKDATE`]: it would be felt.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// Requests that may wait for a certificate.
#[derive(Default)]
pub(super) struct Signing {
    queue: Queue<String>,
}

impl Controller for Signing {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn see(&mut self, seen: &Seen) {
        if seen.place.collection == REQUESTS && seen.happened != Happened::Deleted {
            self.queue.insert(seen.place.key.clone());
        }
    }

    fn work(&mut self, cluster: &dyn Context) -> bool {
        let Some(key) = self.queue.pop_first() else {
            return false;
        };
        let asked = cluster.get(REQUESTS, &key).filter(waits);
        if let (Some(asked), Some(authority)) = (asked, cluster.authority()) {
            answer(cluster, authority, &key, &asked);
        }
        true
    }
}

/// True if a request is approved and has no certificate yet.
fn waits(asked: &Object) -> bool {
    text(below(asked, "spec"), "signerName") == CLIENT_SIGNER
        && has_condition(asked, "Approved")
        && !has_condition(asked, "Denied")
        && !has_condition(asked, "Failed")
        && text(below(asked, "status"), "certificate").is_empty()
}

/// Writes the certificate, or why there will be none, into the status.
fn answer(cluster: &dyn Context, authority: &Authority, key: &str, asked: &Object) {
    let now = cluster.timestamp();
    let signed = match usages(list(below(asked, "spec"), "usages")) {
        Ok(usages) => match sign(authority, asked, usages, now) {
            Ok(certificate) => Ok(BASE64_STANDARD.encode(certificate)),
            Err(error) => {
                // Validation lets nothing through that cannot be signed, so the authority is at its end.
                tracing::warn!(%error, key, "cannot sign a certificate");
                return;
            }
        },
        Err(why) => Err(why),
    };
    let at = cluster.now();
    change(cluster, REQUESTS, key, "status", |asked| {
        if !waits(asked) {
            return false;
        }
        let status = made(asked, "status");
        match &signed {
            Ok(certificate) => {
                status.insert("certificate".to_owned(), certificate.clone().into());
            }
            Err(why) => {
                let failed = json!({"type": "Failed", "status": "True", "reason": "SignerValidationFailure",
                    "message": why, "lastUpdateTime": at, "lastTransitionTime": at});
                let conditions = status.entry("conditions").or_insert_with(|| json!([]));
                if let Value::Array(conditions) = conditions {
                    conditions.push(failed);
                }
            }
        }
        true
    });
}

/// The usages of a client's key: whether it signs, and whether it enciphers keys.
///
/// # Errors
/// Another usage, or a missing one.
fn usages(usages: &[Value]) -> Result<(bool, bool), String> {
    const CLIENT: &str = "client auth";
    let has = |name: &str| usages.iter().any(|usage| usage == name);
    let known = ["digital signature", "key encipherment", CLIENT];
    let other = usages
        .iter()
        .filter_map(Value::as_str)
        .find(|usage| !known.contains(usage));
    match other {
        Some(usage) => Err(format!("invalid usage for client certificate: {usage}")),
        None if !has(CLIENT) => Err(format!("missing required usage for client certificate: {CLIENT}")),
        None => Ok((has(known[0]), has(known[1]))),
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

fn sign(
    authority: &Authority,
    asked: &Object,
    (signs, enciphers): (bool, bool),
    now: Timestamp,
) -> Result<String, Error> {
    let spec = below(asked, "spec");
    let request = Request::of_pem(&BASE64_STANDARD.decode(text(spec, "request"))?)?;
    let seconds = number(spec, "expirationSeconds");
    let (since, until) = validity(now, seconds, authority.until()).ok_or("the authority is at its end")?;
    authority.signed(&Leaf {
        subject: &request.subject,
        public_key: &request.public_key,
        alternative_names: request.alternative_names.as_deref(),
        signs,
        enciphers,
        since,
        until,
    })
}

/// Beginning and end of a certificate for which a lifetime was asked, in seconds; `end`: that of the authority. `None` when that
/// is reached.
fn validity(now: Timestamp, asked: Option<i64>, end: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let asked = asked.map_or(LIFETIME, SignedDuration::from_secs);
    let lifetime = asked.clamp(SHORTEST, LIFETIME);
    let since = now - BACKDATE;
    let from = if lifetime < SHORT { now } else { since };
    (now < end).then(|| (since, (from + lifetime).min(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_lasts_as_long_as_asked_and_no_longer_than_its_authority() {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        let at = |seconds: i64| Timestamp::from_second(1_000_000_000 + seconds).expect("a time");
        let now = at(0);
        let far = at(10 * 365 * DAY);
        for (asked, end, until) in [
            (None, far, Some(at(365 * DAY - 300))),
            (Some(2 * 365 * DAY), far, Some(at(365 * DAY - 300))),
            (Some(DAY), far, Some(at(DAY - 300))),
            // Of a short one nothing is taken away.
            (Some(HOUR), far, Some(at(HOUR))),
            (Some(1), far, Some(at(600))),
            (Some(DAY), at(HOUR), Some(at(HOUR))),
            (None, at(0), None),
        ] {
            let found = validity(now, asked, end);
            let expected = until.map(|until| (at(-300), until));
            assert_eq!(found, expected, "{asked:?}");
        }
    }

    #[test]
    fn usages_are_those_of_a_client() {
        let missing = "missing required usage for client certificate: client auth";
        let other = "invalid usage for client certificate: server auth";
        for (given, expected) in [
            (&["client auth"][..], Ok((false, false))),
            (&["client auth", "digital signature"], Ok((true, false))),
            (
                &["key encipherment", "digital signature", "client auth"],
                Ok((true, true)),
            ),
            (&["digital signature"], Err(missing)),
            (&["client auth", "server auth"], Err(other)),
        ] {
            let values: Vec<Value> = given.iter().map(|&usage| usage.into()).collect();
            assert_eq!(usages(&values), expected.map_err(str::to_owned), "{given:?}");
        }
    }
}
