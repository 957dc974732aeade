//! Discovery of a hub by a bootstrap token: the ConfigMap `cluster-info`, whose kubeconfig is signed with each token.
//!
//! Who has nothing but a token reads the ConfigMap from a server that it cannot trust yet. The signature with the secret part of its
//! token proves that the address and the certificates in it are those of one who knows the token; the secret part itself is sent to
//! nobody.
//!
//! Source: Kubernetes, the controller `bootstrapsigner` of kube-controller-manager and `k8s.io/cluster-bootstrap/token/jws`: a JSON
//! Web Signature (RFC 7515) of the algorithm HS256 without its content. Clients compare it byte for byte, so its header is
//! exactly that.

use std::collections::BTreeMap;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    object::Time,
    rendered::{Rendered, wipe},
};

/// The namespace of the ConfigMap.
pub const NAMESPACE: &str = "kube-public";
/// Its name.
pub const NAME: &str = "cluster-info";
/// The key of the kubeconfig in it.
pub const KUBECONFIG: &str = "kubeconfig";
/// The prefix of the keys of signatures; the id of the token follows.
pub const SIGNATURE: &str = "jws-kubeconfig-";

/// The namespace of the Secrets that are bootstrap tokens.
pub const TOKENS: &str = "kube-system";
/// The prefix of their names; the id of the token follows.
pub const TOKEN: &str = "bootstrap-token-";
/// Their type.
pub const TOKEN_TYPE: &str = "bootstrap.kubernetes.io/token";

/// The length of the id of a token, and of its secret part.
pub const LENGTHS: (usize, usize) = (6, 16);

/// The length of a block of SHA-256, in bytes.
const BLOCK: usize = 64;

/// A token that signs. No `Debug`; its secret part is wiped when it is dropped.
pub struct SigningToken {
    id: String,
    secret: Rendered,
}

/// The token that a Secret describes; `None` if it is none, has expired, or does not sign. The Secret is wiped.
#[must_use]
pub fn token(mut secret: Value, now: Time) -> Option<SigningToken> {
    let token = described(&secret, now);
    wipe(&mut secret);
    token
}

fn described(secret: &Value, now: Time) -> Option<SigningToken> {
    let id = secret["metadata"]["name"].as_str()?.strip_prefix(TOKEN)?;
    let signs = datum(secret, "usage-bootstrap-signing").as_deref() == Some("true");
    let is_id = is_part(id, LENGTHS.0) && datum(secret, "token-id").as_deref() == Some(id);
    let has_expired = datum(secret, "expiration").is_some_and(|end| has_expired(&end, now));
    if !is_id || !signs || has_expired || secret["type"] != TOKEN_TYPE {
        return None;
    }
    Some(SigningToken {
        id: id.to_owned(),
        // Moved, not copied: it is wiped.
        secret: Rendered(Value::String(datum(secret, "token-secret")?)),
    })
}

/// True for a text that is no time, too: as the authenticator reads it.
fn has_expired(end: &str, now: Time) -> bool {
    let end = serde_json::from_value::<v1::Time>(json!(end));
    !end.is_ok_and(|end| Time::from_k8s(&end) > now)
}

/// A value of a Secret as text; `None` if it is missing, empty or no text.
fn datum(secret: &Value, key: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// True for so many lower-case letters and digits.
#[must_use]
pub fn is_part(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// The merge patch of the ConfigMap after which exactly these tokens sign its kubeconfig; `None` if they do, or if it has none.
///
/// Cost: O(tokens × length of the kubeconfig).
#[must_use]
pub fn signed(config_map: &Value, tokens: &[SigningToken]) -> Option<Value> {
    let data = config_map["data"].as_object()?;
    let kubeconfig = data.get(KUBECONFIG)?.as_str()?;
    let mut changes: BTreeMap<String, Value> = data
        .keys()
        .filter(|key| key.starts_with(SIGNATURE))
        .map(|key| (key.clone(), Value::Null))
        .collect();
    for token in tokens {
        let secret = token.secret.object().as_str().unwrap_or_default();
        let signature = json!(signature(kubeconfig, &token.id, secret));
        changes.insert(format!("{SIGNATURE}{}", token.id), signature);
    }
    changes.retain(|key, value| data.get(key) != Some(&*value));
    let meta = &config_map["metadata"];
    (!changes.is_empty()).then(|| {
        json!({
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "data": changes,
        })
    })
}

/// The kubeconfig of a ConfigMap if it is signed with this token.
///
/// # Errors
/// A sentence for the user; [`Unverified::is_awaited`] of it if the signature may still come.
pub fn verified<'a>(config_map: &'a Value, id: &str, secret: &str) -> Result<&'a str, Unverified> {
    let data = &config_map["data"];
    let kubeconfig = data[KUBECONFIG].as_str().filter(|text| !text.is_empty());
    let kubeconfig = kubeconfig.ok_or(Unverified::NoKubeconfig)?;
    match data[format!("{SIGNATURE}{id}")].as_str() {
        None => Err(Unverified::NotSigned),
        Some(held) if is_same(held, &signature(kubeconfig, id, secret)) => Ok(kubeconfig),
        Some(_) => Err(Unverified::SignedByAnother),
    }
}

/// The reason why a ConfigMap is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unverified {
    /// It has no kubeconfig.
    NoKubeconfig,
    /// It has no signature for the id of the token.
    NotSigned,
    /// The signature is not made with the token.
    SignedByAnother,
}

impl Unverified {
    /// True if the signer may not have come to it yet.
    #[must_use]
    pub const fn is_awaited(self) -> bool {
        matches!(self, Self::NotSigned)
    }
}

impl std::fmt::Display for Unverified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoKubeconfig => "its ConfigMap kube-public/cluster-info has no kubeconfig",
            Self::NotSigned => {
                "its ConfigMap kube-public/cluster-info is not signed for this token: the token does not exist any more, may not \
                 sign, or no controller signs (entourage controllers --controllers=*,bootstrapsigner, or a \
                 kube-controller-manager with bootstrapsigner)"
            }
            Self::SignedByAnother => {
                "the signature of its ConfigMap kube-public/cluster-info is not made with this token: it is another hub, or \
                 somebody between changes what it says. Nothing was sent to it"
            }
        })
    }
}

/// True for the same signature, in a time that tells nothing of where they differ.
fn is_same(held: &str, wanted: &str) -> bool {
    let pairs = held.bytes().zip(wanted.bytes());
    held.len() == wanted.len() && pairs.fold(0, |all, (held, wanted)| all | (held ^ wanted)) == 0
}

/// The signature of a text by a token, without the text.
fn signature(content: &str, id: &str, secret: &str) -> String {
    // An id has nothing that JSON escapes.
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let signature = URL_SAFE_NO_PAD.encode(hmac(secret.as_bytes(), signed.as_bytes()));
    format!("{header}..{signature}")
}

/// HMAC with SHA-256. Source: RFC 2104.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > BLOCK {
        Sha256::digest(key).to_vec()
    } else {
        key.to_vec()
    };
    block.resize(BLOCK, 0);
    let hashed = |pad: u8, message: &[u8]| {
        let padded: Vec<u8> = block.iter().map(|byte| byte ^ pad).collect();
        let mut hash = Sha256::new();
        hash.update(padded);
        hash.update(message);
        hash.finalize().to_vec()
    };
    hashed(0x5c, &hashed(0x36, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &str = "Hello from the other side. I must have called a thousand times.";

    #[test]
    fn a_signature_is_byte_for_byte_that_of_kubernetes() {
        // Of the tests of k8s.io/cluster-bootstrap/token/jws.
        let header = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9";
        for (content, secret, wanted) in [
            (
                CONTENT,
                "my voice is my passcode",
                "VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8",
            ),
            (
                "",
                "my voice is my passcode",
                "7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk",
            ),
            (
                CONTENT,
                "my voice is my passcode. my voice is my passcode",
                "SFoKn0-YxqnvpSExt4LuCZ_7pvIBdX3SoUO_NsTpkdg",
            ),
        ] {
            assert_eq!(
                signature(content, "joshua", secret),
                format!("{header}..{wanted}")
            );
        }
    }

    #[test]
    fn a_key_that_is_longer_than_a_block_is_hashed() {
        // Test case 6 of RFC 4231.
        let hex: String = hmac(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
        )
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
        assert_eq!(
            hex,
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    fn secret(change: impl FnOnce(&mut Value)) -> Value {
        let value = |text: &str| json!(STANDARD.encode(text));
        let mut secret = json!({"type": TOKEN_TYPE, "metadata": {"name": "bootstrap-token-abcdef", "namespace": TOKENS}, "data": {
            "token-id": value("abcdef"), "token-secret": value("0123456789abcdef"), "usage-bootstrap-signing": value("true"),
            "expiration": value("2026-01-01T00:00:01Z"),
        }});
        change(&mut secret);
        secret
    }

    /// 2026-01-01T00:00:00Z.
    const NOW: Time = Time(1_767_225_600_000);

    #[test]
    fn a_token_signs_if_it_is_one_that_may_and_has_not_expired() {
        type Change = fn(&mut Value);
        let table: [(&str, Change, bool); 9] = [
            ("as it is", |_| {}, true),
            ("for ever", |it| it["data"]["expiration"] = json!(""), true),
            (
                "over",
                |it| it["data"]["expiration"] = json!(STANDARD.encode("2026-01-01T00:00:00Z")),
                false,
            ),
            (
                "no time",
                |it| it["data"]["expiration"] = json!(STANDARD.encode("soon")),
                false,
            ),
            (
                "another use",
                |it| it["data"]["usage-bootstrap-signing"] = json!(STANDARD.encode("false")),
                false,
            ),
            (
                "another id",
                |it| it["metadata"]["name"] = json!("bootstrap-token-abcdeg"),
                false,
            ),
            (
                "another name",
                |it| it["metadata"]["name"] = json!("token-abcdef"),
                false,
            ),
            ("another type", |it| it["type"] = json!("Opaque"), false),
            ("no secret", |it| it["data"]["token-secret"] = json!(null), false),
        ];
        for (what, change, signs) in table {
            assert_eq!(token(secret(change), NOW).is_some(), signs, "{what}");
        }
    }

    #[test]
    fn exactly_the_tokens_that_sign_have_a_signature() {
        let kubeconfig = "apiVersion: v1\n";
        let mut stored = json!({
            "metadata": {"uid": "u", "resourceVersion": "7"},
            "data": {KUBECONFIG: kubeconfig, "other": "kept", "jws-kubeconfig-gonegn": "x"},
        });
        let tokens = [token(secret(|_| {}), NOW).unwrap()];
        let patch = signed(&stored, &tokens).unwrap();
        assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        assert_eq!(patch["data"]["jws-kubeconfig-gonegn"], Value::Null);
        assert_eq!(patch["data"].as_object().unwrap().len(), 2);
        assert!(!patch.to_string().contains("0123456789abcdef"));
        // As the hub has merged it.
        stored["data"] =
            json!({KUBECONFIG: kubeconfig, "jws-kubeconfig-abcdef": patch["data"]["jws-kubeconfig-abcdef"]});
        assert_eq!(signed(&stored, &tokens), None);
        assert_eq!(verified(&stored, "abcdef", "0123456789abcdef"), Ok(kubeconfig));
        assert_eq!(
            signed(&stored, &[]).unwrap()["data"],
            json!({"jws-kubeconfig-abcdef": null})
        );
        assert_eq!(
            signed(&json!({"data": {"jws-kubeconfig-abcdef": "x"}}), &tokens),
            None
        );
    }

    #[test]
    fn what_is_not_signed_with_the_token_is_not_trusted() {
        let tokens = [token(secret(|_| {}), NOW).unwrap()];
        let signed_as = |kubeconfig: &str| {
            let mut stored = json!({"data": {KUBECONFIG: kubeconfig}});
            let patch = signed(&stored, &tokens).unwrap();
            stored["data"]["jws-kubeconfig-abcdef"] = patch["data"]["jws-kubeconfig-abcdef"].clone();
            stored
        };
        let good = signed_as("server: https://hub");
        let mut changed = good.clone();
        changed["data"][KUBECONFIG] = json!("server: https://evil");
        for (stored, id, secret, wanted) in [
            (&good, "abcdef", "0123456789abcdeg", Unverified::SignedByAnother),
            (&good, "abcdeg", "0123456789abcdef", Unverified::NotSigned),
            (
                &changed,
                "abcdef",
                "0123456789abcdef",
                Unverified::SignedByAnother,
            ),
            (&json!({}), "abcdef", "0123456789abcdef", Unverified::NoKubeconfig),
        ] {
            assert_eq!(verified(stored, id, secret), Err(wanted));
        }
        assert!(Unverified::NotSigned.is_awaited() && !Unverified::SignedByAnother.is_awaited());
    }

    #[test]
    fn a_signature_counts_as_a_whole_and_with_the_algorithm_that_it_is_made_with() {
        let tokens = [token(secret(|_| {}), NOW).unwrap()];
        let mut stored = json!({"data": {KUBECONFIG: "server: https://hub"}});
        let made = signed(&stored, &tokens).unwrap()["data"]["jws-kubeconfig-abcdef"].clone();
        let made = made.as_str().unwrap();
        let mac = made.split_once("..").unwrap().1;
        let with_header = |header: &str, mac: &str| format!("{}..{mac}", URL_SAFE_NO_PAD.encode(header));
        for (held, wanted) in [
            (made.to_owned(), true),
            (String::new(), false),
            (made[..made.len() - 1].to_owned(), false),
            (format!("{made}A"), false),
            (format!("B{}", &made[1..]), false),
            (with_header(r#"{"alg":"none","kid":"abcdef"}"#, ""), false),
            (with_header(r#"{"alg":"none","kid":"abcdef"}"#, mac), false),
            (with_header(r#"{"alg":"HS512","kid":"abcdef"}"#, mac), false),
            (with_header(r#"{"alg":"HS256","kid":"abcdeg"}"#, mac), false),
        ] {
            stored["data"]["jws-kubeconfig-abcdef"] = json!(held);
            let is_verified = verified(&stored, "abcdef", "0123456789abcdef").is_ok();
            assert_eq!(is_verified, wanted, "{held}");
        }
    }
}
