//! Who asks, and whether they may.
//!
//! Authentication: the admin's token, further static tokens, client certificates of the cluster's authority, tokens of
//! service accounts; nobody is `system:anonymous`. Authorization: `system:masters` may everything, everybody else what
//! RBAC grants.

use std::{collections::BTreeMap, sync::OnceLock};

use http::{HeaderMap, header};

use crate::{
    cluster::Inner,
    status::{Result, Status},
    store::Store,
};

pub mod certificate;
pub mod escalation;
pub mod impersonate;
pub mod policy;
pub mod rbac;
pub mod review;
pub mod token;

/// The group whose members may everything.
pub const MASTERS: &str = "system:masters";

/// The group of everybody who is known.
pub const AUTHENTICATED: &str = "system:authenticated";

/// The group of everybody who is not.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The name of whoever gives none.
pub const ANONYMOUS: &str = "system:anonymous";

/// The user of a request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct User {
    /// Name, `system:anonymous` for nobody.
    pub name: String,
    /// UID, empty when there is none.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// `extra` of impersonation and service accounts.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user of these groups.
    #[must_use]
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            ..Self::default()
        }
    }

    fn anonymous() -> Self {
        Self::new(ANONYMOUS, &[UNAUTHENTICATED])
    }

    /// Whether RBAC need not be asked.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// The same user, known to be so.
    pub(crate) fn authenticated(mut self) -> Self {
        if self.name != ANONYMOUS && !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// What authentication and authorization keep for one cluster.
#[derive(Default)]
pub struct Auth {
    key: OnceLock<token::Key>,
    rbac: rbac::Cache,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth")
    }
}

impl Auth {
    /// The key that signs tokens of service accounts; made when first needed.
    pub(crate) fn key(&self, store: &Store) -> &token::Key {
        self.key.get_or_init(|| token::Key::of(store))
    }

    /// What RBAC grants now.
    pub(crate) fn rbac(&self, cluster: &Inner) -> std::sync::Arc<rbac::Index> {
        self.rbac.current(&cluster.store)
    }
}

/// Whom a bearer token or a client certificate belongs to; `certified` is the user of the certificate, if one was shown.
///
/// A token that belongs to nobody is refused even where anybody may ask.
pub(crate) fn authenticate(cluster: &Inner, headers: &HeaderMap, certified: Option<&User>) -> Result<User> {
    if let Some(user) = certified {
        return Ok(user.clone().authenticated());
    }
    let Some(token) = bearer(headers) else {
        return Ok(User::anonymous());
    };
    of_token(cluster, token, &[])
        .ok()
        .map(User::authenticated)
        .ok_or_else(|| Status::new(401, "Unauthorized", "Unauthorized"))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.trim().split_once(' ')?;
    // A second space is an empty token to the real server: as good as none.
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.starts_with(' ')).then_some(token)
}

/// The user of a token that is good for one of `audiences` (none named: for this server); otherwise why it is not.
pub(crate) fn of_token(
    cluster: &Inner,
    token: &str,
    audiences: &[String],
) -> std::result::Result<User, String> {
    if same(token, &cluster.options.admin_token) {
        let mut admin = User::new("admin", &[MASTERS]);
        "admin".clone_into(&mut admin.uid);
        return Ok(admin);
    }
    for (known, user) in &cluster.options.tokens {
        if same(token, known) {
            return Ok(user.clone());
        }
    }
    token::user(cluster, token, audiences)
}

/// Compares in a time that depends on the lengths only.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |diff, (x, y)| diff | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_bearer_tokens_are_looked_at() {
        let cases = [
            ("Bearer a", Some("a")),
            ("bearer a", Some("a")),
            ("Basic a", None),
            ("Bearer", None),
            ("Bearer ", None),
        ];
        for (text, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            assert_eq!(bearer(&headers), expected, "{text:?}");
        }
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same("abc", "abc"));
        assert!(!same("abc", "abd"));
        assert!(!same("abc", "abcd"));
    }
}
