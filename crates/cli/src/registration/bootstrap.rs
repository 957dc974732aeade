//! Bootstrap tokens: Secrets of kube-system by which an API server knows who registers a cluster.
//!
//! Source: Kubernetes, "Authenticating with Bootstrap Tokens". A token is for one cluster: its group has the rights of that alone.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use entourage_core::cluster_info::{
    LENGTHS, TOKEN as PREFIX, TOKEN_TYPE as TYPE, TOKENS as NAMESPACE, is_part,
};
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::base64;
use crate::{
    apply::{SECRET, Target, post, without_values},
    connect::within,
    join::{made_by_us, token::decode},
    lists::pages,
};

/// The prefix of the groups.
const GROUP: &str = "system:bootstrappers:entourage:";
/// The group of the tokens of `karmadactl token create`, which are for every cluster.
pub const KARMADAS: &str = "system:bootstrappers:karmada:default-cluster-token";

/// The name of the Secret of a token.
#[must_use]
pub fn secret_name(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// The group of who registers a cluster.
#[must_use]
pub fn group(cluster: &str) -> String {
    format!("{GROUP}{cluster}")
}

/// A token.
pub struct Token {
    /// The public part, which names the Secret.
    pub id: String,
    /// Both parts, as a client sends them.
    pub value: SecretString,
}

/// A token that exists, without its secret part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The public part.
    pub id: String,
    /// The cluster that it registers; empty for a token that this command did not make.
    pub cluster: String,
    /// The time of its end as the Secret has it; empty if it never ends.
    pub expires: String,
    /// The user's words.
    pub description: String,
}

/// A token to create.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The group of its user.
    pub group: &'a str,
    /// The time until it ends; zero never ends.
    pub ttl: Duration,
    /// The user's words.
    pub description: &'a str,
    /// True if `cluster-info` is signed with it.
    pub signs: bool,
}

/// Creates a token.
///
/// # Errors
/// The Secret cannot be written, without what is in it; the system has no random numbers.
pub async fn create(hub: &mut Target<'_>, wanted: &Wanted<'_>) -> Result<Token> {
    let (id, secret) = (random(LENGTHS.0)?, random(LENGTHS.1)?);
    // This part is public.
    let id = id.expose_secret().to_owned();
    let mut data = json!({
        "token-id": base64(id.as_bytes())?,
        "token-secret": base64(secret.expose_secret().as_bytes())?,
        "usage-bootstrap-authentication": base64(b"true")?,
        "auth-extra-groups": base64(wanted.group.as_bytes())?,
    });
    if wanted.signs {
        data["usage-bootstrap-signing"] = base64(b"true")?;
    }
    if !wanted.description.is_empty() {
        data["description"] = base64(wanted.description.as_bytes())?;
    }
    if !wanted.ttl.is_zero() {
        let end = Timestamp::now()
            .checked_add(wanted.ttl)
            .context("--ttl is too long; 0s is for ever")?;
        let end = Timestamp::from_second(end.as_second())?;
        data["expiration"] = base64(end.to_string().as_bytes())?;
    }
    let name = secret_name(&id);
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": TYPE,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": made_by_us()}, "data": data,
    });
    if !hub.dry_run {
        let object: DynamicObject =
            serde_json::from_value(object).map_err(|_| anyhow!("the Secret is malformed"))?;
        let created = within(hub.api(SECRET, NAMESPACE).create(&post(), &object)).await;
        created
            .map_err(without_values)
            .with_context(|| format!("cannot write secret/{name} on the hub"))?;
    }
    hub.say(SECRET, &name, "created")?;
    let value = SecretString::from(format!("{id}.{}", secret.expose_secret()));
    Ok(Token { id, value })
}

/// The tokens of the hub, by id; with a selector those whose Secrets have the labels.
///
/// # Errors
/// The Secrets cannot be listed.
pub async fn list(hub: &Target<'_>, selector: Option<&str>) -> Result<Vec<Known>> {
    let mut params = ListParams::default().fields(&format!("type={TYPE}"));
    params.label_selector = selector.map(str::to_owned);
    let all = pages(&hub.api(SECRET, NAMESPACE), &params)
        .await
        .map_err(without_values)
        .context("cannot list the bootstrap tokens, which are Secrets of kube-system, on the hub")?;
    let mut known: Vec<Known> = all.iter().filter_map(read).collect();
    known.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(known)
}

/// Deletes the token of this id, or whose value this is.
///
/// # Errors
/// It is neither; there is no such token; the Secret cannot be deleted.
pub async fn delete(hub: &mut Target<'_>, token: &str) -> Result<()> {
    let id = id_of(token)?;
    let name = secret_name(id);
    if hub.get(SECRET, NAMESPACE, &name).await?.is_none() {
        bail!("the hub has no bootstrap token {id}; `entourage token list` shows those that it has");
    }
    hub.delete(SECRET, NAMESPACE, &name).await
}

/// Both parts of a token. An error quotes nothing of it.
///
/// # Errors
/// It is no token.
pub fn parts(token: &str) -> Result<(&str, &str)> {
    let parts = token.split_once('.');
    let is_token = |(id, secret): &(&str, &str)| is_part(id, LENGTHS.0) && is_part(secret, LENGTHS.1);
    parts.filter(is_token).context(
        "--token is no bootstrap token: six lower-case letters and digits, a dot, and sixteen of them",
    )
}

/// The public part of what a user gave. An error quotes nothing of it.
fn id_of(token: &str) -> Result<&str> {
    let (id, secret) = match token.split_once('.') {
        Some((id, secret)) => (id, Some(secret)),
        None => (token, None),
    };
    if !is_part(id, LENGTHS.0) || secret.is_some_and(|secret| !is_part(secret, LENGTHS.1)) {
        bail!("give the id of a token, six lower-case letters and digits, or the whole token");
    }
    Ok(id)
}

fn read(secret: &DynamicObject) -> Option<Known> {
    let text = |key: &str| {
        let value = secret.data["data"].get(key).cloned();
        value.and_then(decode).unwrap_or_default()
    };
    let name = secret.metadata.name.as_deref()?;
    let groups = text("auth-extra-groups");
    let cluster = groups
        .split(',')
        .find_map(|group| group.trim().strip_prefix(GROUP));
    Some(Known {
        id: name.strip_prefix(PREFIX)?.to_owned(),
        cluster: cluster.unwrap_or_default().to_owned(),
        expires: text("expiration"),
        description: text("description"),
    })
}

/// Lower-case letters and digits, each as likely as the others.
fn random(length: usize) -> Result<SecretString> {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    // The largest multiple of 36 below 256.
    const FAIR: u8 = 252;
    let source = SystemRandom::new();
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bytes = [0; 32];
        source
            .fill(&mut bytes)
            .map_err(|_| anyhow!("the system has no random numbers"))?;
        let fair = bytes
            .iter()
            .filter(|byte| **byte < FAIR)
            .take(length - text.len());
        text.extend(fair.map(|byte| char::from(ALPHABET[usize::from(byte % 36)])));
    }
    Ok(SecretString::from(text))
}

/// The same as JSON, for programs.
#[must_use]
pub fn shown(token: &Known) -> Value {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    json!({
        "id": token.id, "cluster": given(&token.cluster), "expires": given(&token.expires),
        "description": given(&token.description),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_named_by_its_id_or_its_value() {
        assert_eq!(id_of("abc123").unwrap(), "abc123");
        assert_eq!(id_of("abc123.0123456789abcdef").unwrap(), "abc123");
        for wrong in [
            "",
            "abc",
            "ABC123",
            "abc123.",
            "abc123.short",
            "../../a",
            "abc123.0123456789abcdeX",
        ] {
            let error = id_of(wrong).unwrap_err().to_string();
            assert!(wrong.len() < 4 || !error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_token_has_two_parts() {
        assert_eq!(
            parts("abc123.0123456789abcdef").unwrap(),
            ("abc123", "0123456789abcdef")
        );
        for wrong in [
            "",
            "abc123",
            "abc123.",
            "abc123.0123456789abcdeX",
            "abc12.0123456789abcdef",
        ] {
            let error = parts(wrong).unwrap_err().to_string();
            assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn random_parts_have_the_length_and_the_letters_of_a_token() {
        let (one, other) = (random(16).unwrap(), random(16).unwrap());
        assert_ne!(one.expose_secret(), other.expose_secret());
        assert!(
            id_of(&format!(
                "{}.{}",
                random(6).unwrap().expose_secret(),
                one.expose_secret()
            ))
            .is_ok()
        );
    }

    #[test]
    fn a_list_shows_nothing_of_the_secret_part() {
        let value = |text: &str| base64(text.as_bytes()).unwrap();
        let secret: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bootstrap-token-abc123"},
            "data": {"token-secret": value("canary"), "expiration": value("2026-01-01T00:00:00Z"),
                "auth-extra-groups": value("system:bootstrappers:other, system:bootstrappers:entourage:edge1")},
        }))
        .unwrap();
        let known = read(&secret).unwrap();
        assert_eq!((known.id.as_str(), known.cluster.as_str()), ("abc123", "edge1"));
        assert_eq!(
            shown(&known),
            json!({"id": "abc123", "cluster": "edge1", "expires": "2026-01-01T00:00:00Z",
            "description": null})
        );
        assert!(!format!("{known:?}").contains("canary"));
    }
}
