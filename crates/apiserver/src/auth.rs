//! Authentication and authorization of requests.
//!
//! Authentication, of which the first that is present counts: client certificates of the cluster's authority, the admin's
//! token, further static tokens, bootstrap tokens, tokens of service accounts; a request without any is `system:anonymous`. Authorization:
//! `system:masters` may do everything, all others what RBAC grants.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use http::{HeaderMap, header};
use jiff::Timestamp;

use crate::{
    status::{Result, Status},
    store::Store,
};

pub(crate) mod about;
pub(crate) mod bootstrap;
pub(crate) mod certificate;
pub(crate) mod escalation;
pub(crate) mod impersonate;
pub(crate) mod policy;
pub(crate) mod rbac;
pub(crate) mod token;

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// The group of authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// The group of unauthenticated users.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The name of an unauthenticated user.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The prefix of the names of service accounts.
const ACCOUNT: &str = "system:serviceaccount:";

/// Namespace and name of the service account that a user is; nothing when it is none.
pub(crate) fn account_of(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The groups of the service accounts of a namespace.
pub(crate) fn groups_of_accounts(namespace: &str) -> Vec<String> {
    let all = "system:serviceaccounts";
    vec![all.to_owned(), format!("{all}:{namespace}")]
}

/// The user of a request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct User {
    /// The name; `system:anonymous` for an unauthenticated user.
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

    /// True if RBAC need not be evaluated.
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

/// The state of authentication and authorization of one cluster.
pub(crate) struct Auth {
    /// The admin's token.
    admin: String,
    /// Further static tokens, and whom they belong to.
    tokens: Vec<(String, User)>,
    key: OnceLock<token::Key>,
    rbac: rbac::Cache,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth")
    }
}

impl Auth {
    /// Returns the authentication by the admin's token and further static ones.
    pub(crate) fn new(admin: String, tokens: Vec<(String, User)>) -> Self {
        Self {
            admin,
            tokens,
            key: OnceLock::new(),
            rbac: rbac::Cache::default(),
        }
    }

    /// The key that signs tokens of service accounts; made when first needed.
    pub(crate) fn key(&self, store: &Store) -> &token::Key {
        self.key.get_or_init(|| token::Key::of(store))
    }

    /// The same if it was made already: who only shows a token makes no key.
    pub(crate) fn known_key(&self, store: &Store) -> Option<&token::Key> {
        if let Some(key) = self.key.get() {
            return Some(key);
        }
        let kept = token::Key::kept(store)?;
        Some(self.key.get_or_init(|| kept))
    }

    /// The user of a bearer token or a client certificate; `certified` is the user of the certificate, if there is one.
    ///
    /// A token of no user is refused even where anonymous requests are allowed.
    pub(crate) fn authenticate(
        &self,
        store: &Store,
        now: Timestamp,
        headers: &HeaderMap,
        certified: Option<&User>,
    ) -> Result<User> {
        if let Some(user) = certified {
            return Ok(user.clone().authenticated());
        }
        let Some(token) = bearer(headers) else {
            return Ok(User::anonymous());
        };
        self.of_token(store, now, &token, &[])
            .map(|(user, _)| user.authenticated())
            .map_err(|_| Status::new(401, "Unauthorized", "Unauthorized"))
    }

    /// The user of a token that is good for one of `audiences` (none named: for this server), and for which of them it is;
    /// otherwise why it is not. Static and bootstrap tokens are good for this server alone.
    pub(crate) fn of_token(
        &self,
        store: &Store,
        now: Timestamp,
        token: &str,
        audiences: &[String],
    ) -> std::result::Result<(User, Vec<String>), String> {
        let server = [token::ISSUER.to_owned()];
        let wanted = if audiences.is_empty() { &server } else { audiences };
        let user = self.of_static_token(token);
        let Some(user) = user.or_else(|| bootstrap::user(store, now, token)) else {
            return token::user(self, store, now, token, wanted);
        };
        let good = common(wanted, &server);
        if good.is_empty() {
            return Err("invalid bearer token".to_owned());
        }
        Ok((user, good))
    }

    fn of_static_token(&self, token: &str) -> Option<User> {
        if same(token, &self.admin) {
            let mut admin = User::new("admin", &[MASTERS]);
            "admin".clone_into(&mut admin.uid);
            return Some(admin);
        }
        let mut tokens = self.tokens.iter();
        let known = tokens.find(|(known, _)| same(token, known));
        known.map(|(_, user)| user.clone())
    }
}

/// Keys and grants together with the store that they are read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    pub(crate) auth: &'a Auth,
    pub(crate) store: &'a Store,
}

impl Access<'_> {
    /// The rules that RBAC grants now.
    pub(crate) fn rbac(self) -> Arc<rbac::Index> {
        self.auth.rbac.current(self.store)
    }
}

/// The second word of the header when the first is `Bearer`. A second space is an empty token to the real server, which is as
/// good as none, and what comes behind the token does not count. Bytes that are no text are a token, too: nobody's.
fn bearer(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let header = headers.get(header::AUTHORIZATION)?.as_bytes();
    let mut words = header.trim_ascii().split(|&byte| byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then(|| String::from_utf8_lossy(token))
}

/// The entries of both lists, in the order of the first.
fn common(wanted: &[String], own: &[String]) -> Vec<String> {
    wanted.iter().filter(|one| own.contains(one)).cloned().collect()
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
            ("Bearer  a", None),
            ("Bearer a b", Some("a")),
            ("Bearer \u{e9}", Some("\u{e9}")),
        ];
        for (text, expected) in cases {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_bytes(text.as_bytes()).expect("a header");
            headers.insert(header::AUTHORIZATION, value);
            assert_eq!(bearer(&headers).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(same("abc", "abc"));
        assert!(!same("abc", "abd"));
        assert!(!same("abc", "abcd"));
    }
}
