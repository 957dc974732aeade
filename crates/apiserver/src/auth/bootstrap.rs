//! Bootstrap tokens: bearer tokens that Secrets of `kube-system` describe, for who is not yet known to the cluster.
//! Source: the bootstrap token authenticator of kube-apiserver.
//!
//! Cost of a token: one read of the Secret that it names.

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{User, same};
use crate::{
    decode,
    object::{Object, field},
    resource::stored,
    store::Store,
};

/// The type of their Secrets.
pub(crate) const TYPE: &str = "bootstrap.kubernetes.io/token";

/// The namespace of their Secrets.
pub(crate) const NAMESPACE: &str = "kube-system";

/// The group of everybody with such a token.
const GROUP: &str = "system:bootstrappers";

/// Lengths of the two parts of a token.
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

/// The longest name of a further group, behind [`GROUP`] and a colon.
const GROUP_LENGTH: usize = 256;

/// The end of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// None.
    Never,
    /// After this time.
    In(SignedDuration),
    /// Reached, or not readable.
    Over,
}

/// The user of a bootstrap token; `None` when it is none, or none that authenticates. The reason is told to nobody: it would
/// help only who guesses.
pub(super) fn user(store: &Store, now: Timestamp, token: &str) -> Option<User> {
    let (id, secret) = parts(token)?;
    let entry = store.get("secrets", &format!("{NAMESPACE}/bootstrap-token-{id}"))?;
    let described = stored::decode_without_books(&entry.object);
    let is_meant = field(&described, "deletionTimestamp").is_empty()
        && described.get("type").and_then(Value::as_str) == Some(TYPE)
        && same(&datum(&described, "token-secret"), secret)
        && datum(&described, "token-id") == id
        && end(&described, now) != End::Over
        && datum(&described, "usage-bootstrap-authentication") == "true";
    let groups = groups(&datum(&described, "auth-extra-groups")).filter(|_| is_meant)?;
    Some(User {
        name: format!("system:bootstrap:{id}"),
        groups,
        ..User::default()
    })
}

/// The end of the token that a Secret describes.
pub(crate) fn end(described: &Object, now: Timestamp) -> End {
    let text = datum(described, "expiration");
    if text.is_empty() {
        return End::Never;
    }
    let read = decode::read_time(&text, false).ok().flatten();
    let at = read.and_then(|text| text.parse::<Timestamp>().ok());
    match at.map(|at| at.duration_since(now)) {
        Some(left) if left > SignedDuration::ZERO => End::In(left),
        _ => End::Over,
    }
}

/// `ID.SECRET`.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9'))
    };
    (is(id, ID_LENGTH) && is(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// A value of the Secret; empty when absent or no text.
fn datum(described: &Object, key: &str) -> String {
    let encoded = described.get("data").and_then(|data| data.get(key));
    let bytes = BASE64_STANDARD.decode(encoded.and_then(Value::as_str).unwrap_or_default());
    bytes
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// All groups of a token with these further ones, sorted; `None` if one of them is not below the group of all.
fn groups(further: &str) -> Option<Vec<String>> {
    let mut groups = BTreeSet::from([GROUP.to_owned()]);
    for group in further.split(',').filter(|_| !further.is_empty()) {
        let below = group.strip_prefix(GROUP)?.strip_prefix(':')?;
        let is_inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b':' | b'-');
        let ends = below
            .bytes()
            .next_back()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        if below.len() > GROUP_LENGTH || !below.bytes().all(is_inner) || !ends {
            return None;
        }
        groups.insert(group.to_owned());
    }
    Some(groups.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Expect;
    use serde_json::json;

    const TOKEN: &str = "abcdef.0123456789abcdef";
    const NOW: &str = "2026-11-27T12:00:00Z";

    /// The user of the token where its Secret has these fields beside the usual ones; `null` takes one away.
    fn user_with(changes: &Value) -> Option<User> {
        let mut secret = json!({"type": TYPE, "metadata": {"namespace": NAMESPACE, "name": "bootstrap-token-abcdef"}, "data": {}});
        let mut data = json!({"token-id": "abcdef", "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true"});
        for (key, value) in changes.as_object().into_iter().flatten() {
            match key.as_str() {
                "type" => secret["type"] = value.clone(),
                "deletionTimestamp" => secret["metadata"][key] = value.clone(),
                key => data[key] = value.clone(),
            }
        }
        for (key, value) in data.as_object().into_iter().flatten() {
            if let Some(text) = value.as_str() {
                secret["data"][key] = BASE64_STANDARD.encode(text).into();
            }
        }
        let store = Store::new();
        let Value::Object(secret) = secret else {
            panic!("an object")
        };
        let key = "kube-system/bootstrap-token-abcdef";
        let put = store.put("secrets", key, Expect::Absent, |revision| {
            stored::encode(secret, revision)
        });
        put.expect("written");
        user(&store, NOW.parse().expect("a time"), TOKEN)
    }

    #[test]
    fn a_token_is_that_of_a_bootstrapper() {
        let user = user_with(&json!({})).expect("a user");
        assert_eq!(user, User::new("system:bootstrap:abcdef", &[GROUP]));
        let user = user_with(&json!({"auth-extra-groups":
            "system:bootstrappers:z,system:bootstrappers:karmada:default-cluster-token,system:bootstrappers:z"}));
        let groups = user.expect("a user").groups;
        assert_eq!(
            groups,
            [
                GROUP,
                "system:bootstrappers:karmada:default-cluster-token",
                "system:bootstrappers:z"
            ]
        );
    }

    #[test]
    fn a_token_is_refused_unless_its_secret_fits_and_allows_it() {
        let long = format!("{GROUP}:{}", "a".repeat(257));
        for (fields, is_good) in [
            (json!({"expiration": "2026-11-27T12:00:01Z"}), true),
            (json!({"expiration": "2026-11-27T14:00:01+02:00"}), true),
            (json!({"expiration": NOW}), false),
            (json!({"expiration": "2026-11-27T11:00:00Z"}), false),
            (json!({"expiration": "tomorrow"}), false),
            (json!({"type": "Opaque"}), false),
            (json!({"deletionTimestamp": NOW}), false),
            (json!({"token-secret": "0123456789abcdeg"}), false),
            (json!({"token-secret": null}), false),
            (json!({"token-id": "abcdeg"}), false),
            (json!({"token-id": null}), false),
            (json!({"usage-bootstrap-authentication": "yes"}), false),
            (json!({"usage-bootstrap-authentication": null}), false),
            (json!({"auth-extra-groups": ""}), true),
            (json!({"auth-extra-groups": "system:bootstrappers:a-1:b"}), true),
            (json!({"auth-extra-groups": "system:masters"}), false),
            (json!({"auth-extra-groups": "system:bootstrappers"}), false),
            (json!({"auth-extra-groups": "system:bootstrappers:"}), false),
            (json!({"auth-extra-groups": "system:bootstrappers:a-"}), false),
            (json!({"auth-extra-groups": "system:bootstrappers:A"}), false),
            (json!({"auth-extra-groups": "system:bootstrappers:a,"}), false),
            (json!({"auth-extra-groups": long}), false),
        ] {
            assert_eq!(user_with(&fields).is_some(), is_good, "{fields}");
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in [
            "",
            "abcdef",
            "abcdef.",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdef0",
            "abcdeF.0123456789abcdef",
            "../..f.0123456789abcdef",
            "abcdef.0123456789abcde.",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
        assert_eq!(parts(TOKEN), Some(("abcdef", "0123456789abcdef")));
    }
}
