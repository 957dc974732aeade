//! The token with which the controllers call a member.
//!
//! The first choice is a Secret of type service-account-token, which the member's token controller fills and which is valid
//! until it is deleted. If no such controller runs, a token is requested, which expires.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use entourage_api::keys::annotation;
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec, TokenReview, TokenReviewSpec},
        core::v1::ServiceAccount,
    },
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api,
    api::{DynamicObject, PostParams},
};
use serde_json::json;

use super::made_by_us;
use crate::{
    apply::{SECRET, Target},
    connect,
    wait::{Waited, until},
};

/// The time that the token controller may take.
const FILLED_WITHIN: Duration = Duration::from_secs(5);

/// The requested lifetime of a token; servers may grant less.
const REQUESTED: i64 = 365 * 24 * 3600;

/// A requested token that expires sooner than this is replaced.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// A bearer token. No `Debug`: it is a secret.
#[derive(Clone)]
pub struct Token {
    /// The token itself.
    pub value: String,
    /// The time at which it expires, RFC 3339; `None` if it does not.
    pub expires: Option<String>,
}

/// The token of a Secret on the hub, from an earlier join.
pub(super) fn held(secret: &DynamicObject) -> Option<Token> {
    let value = token_of(secret)?;
    let annotations = secret.metadata.annotations.as_ref();
    let expires = annotations
        .and_then(|all| all.get(annotation::TOKEN_EXPIRES))
        .cloned();
    Some(Token { value, expires })
}

/// Returns a token for the account: `held`, if the member still accepts it for long enough, else a new one.
///
/// # Errors
/// The member issues none.
pub async fn obtain(
    target: &mut Target<'_>,
    namespace: &str,
    account: &str,
    held: Option<Token>,
) -> Result<Token> {
    if let Some(held) = held
        && lasts(held.expires.as_deref(), Timestamp::now())
        && is_accepted(
            target,
            &held.value,
            &format!("system:serviceaccount:{namespace}:{account}"),
        )
        .await
    {
        return Ok(held);
    }
    if target.dry_run {
        target.say(SECRET, &secret_name(account), "created")?;
        return Ok(Token {
            value: String::new(),
            expires: None,
        });
    }
    match from_secret(target, namespace, account).await? {
        Some(value) => Ok(Token { value, expires: None }),
        None => request(target, namespace, account).await,
    }
}

/// Name of the Secret on the member that the token controller fills.
#[must_use]
pub fn secret_name(account: &str) -> String {
    format!("{account}-token")
}

/// The token of the Secret; `None` if no token controller fills it.
async fn from_secret(target: &mut Target<'_>, namespace: &str, account: &str) -> Result<Option<String>> {
    let name = secret_name(account);
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "name": name, "namespace": namespace, "labels": made_by_us(),
            "annotations": {"kubernetes.io/service-account.name": account},
        },
    });
    target.ensure(SECRET, object).await?;
    let api = target.api(SECRET, namespace);
    let waited = until(&api, &name, FILLED_WITHIN, |secret| {
        secret.and_then(token_of).is_some()
    })
    .await;
    let waited = waited
        .map_err(connect::explain)
        .context("cannot read the token's Secret on the member")?;
    match waited {
        Waited::Met(secret) => Ok(secret.as_ref().and_then(token_of)),
        Waited::TimedOut(_) => {
            target.delete(SECRET, namespace, &name).await?;
            Ok(None)
        }
    }
}

fn token_of(secret: &DynamicObject) -> Option<String> {
    let encoded = secret.data["data"].get("token")?.clone();
    decode(encoded).filter(|token| !token.is_empty())
}

/// A string of a Secret's `data`.
pub(crate) fn decode(encoded: serde_json::Value) -> Option<String> {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(encoded).ok()?;
    String::from_utf8(bytes.0).ok()
}

async fn request(target: &mut Target<'_>, namespace: &str, account: &str) -> Result<Token> {
    let accounts: Api<ServiceAccount> = Api::namespaced(target.client.clone(), namespace);
    let asked = TokenRequest {
        spec: Some(TokenRequestSpec {
            expiration_seconds: Some(REQUESTED),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let post = PostParams::default();
    let call = accounts.create_subresource("token", account, &post, &asked);
    let answer: kube::Result<TokenRequest> = connect::within(call).await;
    let status = answer
        .map_err(connect::explain)
        .with_context(|| format!("the member issued no token for the serviceaccount {namespace}/{account}"))?
        .status;
    let expires = status
        .as_ref()
        .and_then(|status| status.expiration_timestamp.as_ref());
    let expires = expires.map(|end| end.0.to_string());
    let Some(value) = status
        .and_then(|status| status.token)
        .filter(|token| !token.is_empty())
    else {
        bail!("the member answered the request for a token without one")
    };
    writeln!(target.out, "member: serviceaccount/{account} token requested")?;
    Ok(Token { value, expires })
}

/// True if the member accepts the token for the user.
async fn is_accepted(target: &Target<'_>, token: &str, user: &str) -> bool {
    let reviews: Api<TokenReview> = Api::all(target.client.clone());
    let spec = TokenReviewSpec {
        token: token.to_owned(),
        ..TokenReviewSpec::default()
    };
    let review = TokenReview {
        spec,
        ..TokenReview::default()
    };
    let Ok(answer) = connect::within(reviews.create(&PostParams::default(), &review)).await else {
        return false;
    };
    let Some(status) = answer.status else { return false };
    let name = status.user.and_then(|user| user.username);
    status.authenticated == Some(true) && name.as_deref() == Some(user)
}

fn lasts(expires: Option<&str>, now: Timestamp) -> bool {
    let Some(expires) = expires else { return true };
    expires
        .parse::<Timestamp>()
        .is_ok_and(|end| end.duration_since(now) > RENEWED_BEFORE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_token_is_replaced_before_it_ends() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert!(lasts(None, now));
        assert!(lasts(Some("2026-12-31T00:00:00Z"), now));
        for short in ["2026-03-01T00:00:00Z", "2025-01-01T00:00:00Z", "garbage"] {
            assert!(!lasts(Some(short), now), "{short}");
        }
    }
}
