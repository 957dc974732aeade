//! Tokens of service accounts: JSON Web Tokens signed by a key of the cluster (ES256).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
        KeyPair as _, UnparsedPublicKey,
    },
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Auth, User};
use crate::{
    object::Object,
    random::new_uid,
    resource::stored,
    store::{Expect, Store},
};

/// The issuer of the tokens, and the audience of this server.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// Verified tokens that are remembered.
const MOST_VERIFIED: usize = 256;

/// Longest token that is looked at, in bytes.
const LONGEST: usize = 16 << 10;

const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

static ALGORITHM: &EcdsaSigningAlgorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;

/// The key pair; it never leaves the process and its store.
pub(crate) struct Key {
    pair: Option<EcdsaKeyPair>,
    id: String,
    /// The claims of recently verified tokens, by their digests: the same few come with every request.
    verified: Mutex<HashMap<[u8; 32], Arc<Value>>>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// The collection in which the store keeps the key; it is not served.
const KEYS: &str = "internal/keys";

/// The field of the stored object that holds the key in base64.
const PKCS8: &str = "pkcs8";

fn unwrapped(stored: &[u8]) -> Vec<u8> {
    let stored: Value = serde_json::from_slice(stored).unwrap_or_default();
    let text = stored[PKCS8].as_str().unwrap_or_default();
    STANDARD.decode(text).unwrap_or_default()
}

impl Key {
    /// The key of a cluster: the one in its store, so that tokens outlive the process, or a fresh one that is put there.
    pub(super) fn of(store: &Store) -> Self {
        if let Some(kept) = Self::kept(store) {
            return kept;
        }
        let Ok(pkcs8) = EcdsaKeyPair::generate_pkcs8(ALGORITHM, &SystemRandom::new()) else {
            return Self::from_pkcs8(&[]);
        };
        // JSON, as everything in a store.
        let stored = json!({PKCS8: STANDARD.encode(pkcs8.as_ref())}).to_string();
        match store.put(KEYS, ISSUER, Expect::Absent, |_| stored.into()) {
            Ok(entry) => Self::from_pkcs8(&unwrapped(&entry.object)),
            Err(_) => Self::kept(store).unwrap_or_else(|| Self::from_pkcs8(&[])),
        }
    }

    /// The key in the store, if there is one.
    pub(super) fn kept(store: &Store) -> Option<Self> {
        let entry = store.get(KEYS, ISSUER)?;
        Some(Self::from_pkcs8(&unwrapped(&entry.object)))
    }

    /// Without a usable key no token is signed or believed.
    fn from_pkcs8(pkcs8: &[u8]) -> Self {
        let pair = EcdsaKeyPair::from_pkcs8(ALGORITHM, pkcs8, &SystemRandom::new()).ok();
        let public = pair.as_ref().map(|pair| pair.public_key().as_ref().to_vec());
        // Named after its public half: the same key has the same name in every process.
        let id = URL_SAFE_NO_PAD.encode(&Sha256::digest(public.unwrap_or_default())[..16]);
        Self {
            pair,
            id,
            verified: Mutex::default(),
        }
    }

    /// The public half as a JSON Web Key Set.
    #[must_use]
    pub(crate) fn jwks(&self) -> Value {
        let keys: Vec<Value> = self
            .pair
            .iter()
            .filter_map(|pair| {
                // An uncompressed point: 4, x, y.
                let point = pair.public_key().as_ref();
                let coordinate = |range| point.get(range).map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
                Some(
                    json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
                    "x": coordinate(1..33)?, "y": coordinate(33..65)?}),
                )
            })
            .collect();
        json!({ "keys": keys })
    }

    fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({"alg": "ES256", "kid": self.id});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(claims));
        let signature = self
            .pair
            .as_ref()?
            .sign(&SystemRandom::new(), text.as_bytes())
            .ok()?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref())))
    }

    fn verified(&self, token: &str) -> Option<Arc<Value>> {
        let digest = <[u8; 32]>::from(Sha256::digest(token));
        let known = || self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = known().get(&digest) {
            return Some(claims.clone());
        }
        let claims = Arc::new(self.claims(token)?);
        let mut known = known();
        if known.len() == MOST_VERIFIED {
            known.clear();
        }
        known.insert(digest, claims.clone());
        Some(claims)
    }

    fn claims(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = self.pair.as_ref()?.public_key().as_ref();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
            .verify(text.as_bytes(), &signature)
            .ok()?;
        let claims = URL_SAFE_NO_PAD.decode(text.split_once('.')?.1).ok()?;
        serde_json::from_slice(&claims).ok()
    }
}

/// The claims of a new token.
#[derive(Debug)]
pub(crate) struct Claims<'a> {
    /// Namespace of the service account.
    pub(crate) namespace: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its UID.
    pub(crate) uid: &'a str,
    /// Audiences, at least one.
    pub(crate) audiences: &'a [String],
    /// Seconds since 1970.
    pub(crate) now: i64,
    /// Seconds from now.
    pub(crate) expires_in: i64,
    /// The object that the token dies with; for a pod also its node.
    pub(crate) bound: &'a [Bound],
}

/// An object that a token names.
#[derive(Debug)]
pub(crate) struct Bound {
    /// Its kind, in lower case.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// Empty for a node that is not there.
    pub(crate) uid: String,
}

/// A signed token; `None` when there is no key.
pub(crate) fn issue(key: &Key, claims: &Claims<'_>) -> Option<String> {
    let mut about = json!({
        "namespace": claims.namespace,
        "serviceaccount": {"name": claims.name, "uid": claims.uid},
    });
    for Bound { kind, name, uid } in claims.bound {
        about[*kind] = json!({"name": name});
        if !uid.is_empty() {
            about[*kind]["uid"] = uid.as_str().into();
        }
    }
    key.sign(&json!({
        "aud": claims.audiences, "iss": ISSUER, "sub": format!("system:serviceaccount:{}:{}", claims.namespace, claims.name),
        "iat": claims.now, "nbf": claims.now, "exp": claims.now.saturating_add(claims.expires_in),
        "jti": new_uid(), "kubernetes.io": about,
    }))
}

/// The service account a token belongs to, and for which of the audiences in `wanted` it is good, if it is ours, not over,
/// good for one at least, and the account and what it is bound to still exist. Otherwise the words of a TokenReview.
pub(super) fn user(
    auth: &Auth,
    store: &Store,
    now: Timestamp,
    token: &str,
    wanted: &[String],
) -> Result<(User, Vec<String>), String> {
    let invalid = || "invalid bearer token".to_owned();
    if token.len() > LONGEST || token.matches('.').count() != 2 {
        return Err(invalid());
    }
    let claims = auth
        .known_key(store)
        .and_then(|key| key.verified(token))
        .ok_or_else(invalid)?;
    let own = strings(&claims["aud"]);
    let good = super::common(wanted, &own);
    if good.is_empty() {
        return Err(format!(
            "[invalid bearer token, token audiences {} is invalid for the target audiences {}]",
            quoted(&own),
            quoted(wanted)
        ));
    }
    let now = now.as_second();
    let time = |name: &str| claims[name].as_i64().unwrap_or(0);
    if now >= time("exp") {
        return Err("[invalid bearer token, service account token has expired]".to_owned());
    }
    let about = &claims["kubernetes.io"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&about["namespace"]);
    let name = text(&about["serviceaccount"]["name"]);
    let uid = text(&about["serviceaccount"]["uid"]);
    let alive = |collection: &str, key: &str, uid: &str| {
        let entry = store.get(collection, key);
        entry.is_some_and(|entry| {
            let object = stored::decode_without_books(&entry.object);
            metadata(&object, "uid") == uid && metadata(&object, "deletionTimestamp").is_empty()
        })
    };
    if !alive("serviceaccounts", &format!("{namespace}/{name}"), &uid) {
        return Err("[invalid bearer token, service account token has been invalidated]".to_owned());
    }
    let mut extra = vec![(
        CREDENTIAL.to_owned(),
        vec![format!("JTI={}", text(&claims["jti"]))],
    )];
    for (kind, collection, namespaced) in [
        ("pod", "pods", true),
        ("secret", "secrets", true),
        ("node", "nodes", false),
    ] {
        let bound = &about[kind];
        if bound.is_null() {
            continue;
        }
        let (bound_name, bound_uid) = (text(&bound["name"]), text(&bound["uid"]));
        let key = if namespaced {
            format!("{namespace}/{bound_name}")
        } else {
            bound_name.clone()
        };
        // The node of a pod may be gone: the pod counts.
        let counts = kind != "node" || about["pod"].is_null();
        if counts && !alive(collection, &key, &bound_uid) {
            return Err("[invalid bearer token, service account token has been invalidated]".to_owned());
        }
        if kind != "secret" {
            extra.push((
                format!("authentication.kubernetes.io/{kind}-name"),
                vec![bound_name],
            ));
            if !bound_uid.is_empty() {
                extra.push((
                    format!("authentication.kubernetes.io/{kind}-uid"),
                    vec![bound_uid],
                ));
            }
        }
    }
    let user = User {
        name: text(&claims["sub"]),
        uid,
        groups: super::groups_of_accounts(&namespace),
        extra: extra.into_iter().collect(),
    };
    Ok((user, good))
}

fn metadata<'a>(object: &'a Object, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(key: &Key) -> String {
        let claims = Claims {
            namespace: "n",
            name: "robot",
            uid: "u",
            audiences: &[ISSUER.to_owned()],
            now: 0,
            expires_in: 600,
            bound: &[],
        };
        issue(key, &claims).expect("there is randomness")
    }

    #[test]
    fn a_token_is_believed_by_the_key_that_signed_it_only() {
        let (key, other) = (Key::of(&Store::new()), Key::of(&Store::new()));
        let token = token(&key);
        assert_eq!(
            key.verified(&token).expect("ours")["sub"],
            "system:serviceaccount:n:robot"
        );
        assert!(other.verified(&token).is_none());
    }

    #[test]
    fn the_key_of_a_store_stays_the_same() {
        let store = Store::new();
        let token = token(&Key::of(&store));
        assert!(Key::of(&store).verified(&token).is_some());
    }

    #[test]
    fn a_token_that_is_only_shown_makes_no_key() {
        let cluster = crate::server::tests_support::bare();
        let before = cluster.store.revision();
        let server = [ISSUER.to_owned()];
        assert!(
            user(
                &cluster.auth,
                &cluster.store,
                cluster.timestamp(),
                "a.b.c",
                &server
            )
            .is_err()
        );
        assert_eq!(cluster.store.revision(), before);
        assert!(cluster.store.get(KEYS, ISSUER).is_none());
        cluster.auth.key(&cluster.store);
        assert!(cluster.store.get(KEYS, ISSUER).is_some());
        assert!(
            user(
                &cluster.auth,
                &cluster.store,
                cluster.timestamp(),
                "a.b.c",
                &server
            )
            .is_err()
        );
    }

    #[test]
    fn a_changed_token_is_not_believed() {
        let key = Key::of(&Store::new());
        let token = token(&key);
        for at in [10, token.len() / 2, token.len() - 3] {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert!(key.verified(&String::from_utf8(bytes).expect("text")).is_none());
        }
        for bad in ["", ".", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30."] {
            assert!(key.verified(bad).is_none());
        }
    }
}
