//! Impersonation by the `Impersonate-*` headers.

use http::{HeaderMap, HeaderValue};

use super::{ANONYMOUS, AUTHENTICATED, Access, UNAUTHENTICATED, User};
use crate::{
    auth::about::About,
    query::percent_decoded,
    status::{Result, Status},
};

const EXTRA: &str = "impersonate-extra-";

/// The user that the headers name, if they name one and `user` may act as it; otherwise `user`.
pub(crate) fn impersonated(
    access: Access<'_>,
    headers: &HeaderMap,
    user: User,
    about: &About,
) -> Result<User> {
    let Some(mut other) = asked(headers)? else {
        return Ok(user);
    };
    if !user.is_master() {
        // Constrained impersonation has a verb of its own; its refusal is the one that is reported.
        let verb = format!("impersonate-on:user-info:{}", about.verb);
        let about = About {
            verb,
            ..about.clone()
        };
        if !may_impersonate(access, &user, &other) {
            return Err(super::policy::forbidden(&user, &about));
        }
    }
    complete(&mut other);
    Ok(other)
}

/// Adds the groups that a user of this name always has. Source: the impersonation filter of
/// k8s.io/apiserver.
fn complete(user: &mut User) {
    if let Some((namespace, _)) = super::account_of(&user.name)
        && user.groups.is_empty()
    {
        user.groups = super::groups_of_accounts(namespace);
    }
    let has = |wanted: &str| user.groups.iter().any(|group| group == wanted);
    if user.name == ANONYMOUS {
        if !has(UNAUTHENTICATED) {
            user.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
}

/// The user that the headers name.
fn asked(headers: &HeaderMap) -> Result<Option<User>> {
    let text = |name: &str| headers.get(name).map(written).unwrap_or_default();
    let mut user = User {
        name: text("impersonate-user"),
        uid: text("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(written).collect(),
        ..User::default()
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            user.extra
                .entry(percent_decoded(key, false))
                .or_default()
                .push(written(value));
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == User::default() {
        return Ok(None);
    }
    Err(Status::bad_request(format!(
        "requested {} without impersonating a user name",
        in_go(&user)
    )))
}

/// The text of a header, whatever its alphabet: a name that was left out would have the request done as somebody else.
fn written(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// As Go prints the struct: the message quotes it.
fn in_go(user: &User) -> String {
    let quoted = |list: &[String]| {
        list.iter()
            .map(|one| format!("{one:?}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let groups = if user.groups.is_empty() {
        "[]string(nil)".to_owned()
    } else {
        format!("[]string{{{}}}", quoted(&user.groups))
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| format!("{key:?}:[]string{{{}}}", quoted(values)))
            .collect();
        format!("map[string][]string{{{}}}", pairs.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}",
        user.name, user.uid
    )
}

/// True if RBAC grants the verb `impersonate` on everything that the headers name.
fn may_impersonate(access: Access<'_>, user: &User, other: &User) -> bool {
    let index = access.rbac();
    let may = |group: &str, resource: &str, subresource: &str, name: &str, namespace: &str| {
        let wanted = super::rbac::Wanted {
            verb: "impersonate",
            group,
            resource,
            subresource,
            name,
            namespace,
            path: None,
        };
        index.allows(user, &wanted).is_some()
    };
    let named = match super::account_of(&other.name) {
        Some((namespace, name)) => may("", "serviceaccounts", "", name, namespace),
        None => may("", "users", "", &other.name, ""),
    };
    named
        && other.groups.iter().all(|group| may("", "groups", "", group, ""))
        && (other.uid.is_empty() || may("authentication.k8s.io", "uids", "", &other.uid, ""))
        && other.extra.iter().all(|(key, values)| {
            values
                .iter()
                .all(|value| may("authentication.k8s.io", "userextras", key, value, ""))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_of_service_accounts_bring_their_groups() {
        let of_n = [
            "system:serviceaccounts",
            "system:serviceaccounts:n",
            AUTHENTICATED,
        ];
        let cases: [(&str, &[&str], &[&str]); 9] = [
            ("system:serviceaccount:n:a", &[], &of_n),
            ("system:serviceaccount:n:a", &["g"], &["g", AUTHENTICATED]),
            ("system:serviceaccount:n", &[], &[AUTHENTICATED]),
            ("system:serviceaccount:n:", &[], &[AUTHENTICATED]),
            ("system:serviceaccount::a", &[], &[AUTHENTICATED]),
            ("system:serviceaccount:n:a:b", &[], &[AUTHENTICATED]),
            ("jane", &[UNAUTHENTICATED], &[UNAUTHENTICATED]),
            (ANONYMOUS, &[], &[UNAUTHENTICATED]),
            (ANONYMOUS, &["g"], &["g", UNAUTHENTICATED]),
        ];
        for (name, groups, expected) in cases {
            let mut user = User::new(name, groups);
            complete(&mut user);
            assert_eq!(user.groups, expected, "{name} {groups:?}");
        }
    }
}
