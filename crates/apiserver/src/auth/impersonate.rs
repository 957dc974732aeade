//! Acting as somebody else by the `Impersonate-*` headers.

use http::HeaderMap;

use super::{ANONYMOUS, AUTHENTICATED, User};
use crate::{
    cluster::Inner,
    endpoint::query::percent_decoded,
    http::path::About,
    status::{Result, Status},
};

const EXTRA: &str = "impersonate-extra-";

/// The user that the headers name, if they name one and `user` may act as it; otherwise `user`.
pub(crate) fn impersonated(cluster: &Inner, headers: &HeaderMap, user: User, about: &About) -> Result<User> {
    let Some(mut other) = asked(headers)? else {
        return Ok(user);
    };
    if !user.is_master() {
        // Constrained impersonation asks for a verb of its own; its refusal is the one that is told.
        let verb = format!("impersonate-on:user-info:{}", about.verb);
        let about = About {
            verb,
            ..about.clone()
        };
        if !may_impersonate(cluster, &user, &other) {
            return Err(super::policy::forbidden(&user, &about));
        }
    }
    if let Some(account) = other.name.strip_prefix("system:serviceaccount:")
        && other.groups.is_empty()
    {
        let namespace = account.split(':').next().unwrap_or_default();
        other.groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
    }
    if other.name != ANONYMOUS
        && !other
            .groups
            .iter()
            .any(|group| group == AUTHENTICATED || group == super::UNAUTHENTICATED)
    {
        other.groups.push(AUTHENTICATED.to_owned());
    }
    if other.name == ANONYMOUS && other.groups.is_empty() {
        other.groups.push(super::UNAUTHENTICATED.to_owned());
    }
    Ok(other)
}

/// Whom the headers ask for.
fn asked(headers: &HeaderMap) -> Result<Option<User>> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    let mut user = User {
        name: text("impersonate-user"),
        uid: text("impersonate-uid"),
        groups: headers
            .get_all("impersonate-group")
            .iter()
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect(),
        ..User::default()
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA)
            && let Ok(value) = value.to_str()
        {
            user.extra
                .entry(percent_decoded(key, false))
                .or_default()
                .push(value.to_owned());
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

/// Whether RBAC grants the verb `impersonate` on everything that the headers name.
fn may_impersonate(cluster: &Inner, user: &User, other: &User) -> bool {
    let index = cluster.auth.rbac(cluster);
    let may = |group: &str, resource: &str, subresource: &str, name: &str, namespace: &str| {
        let wanted = super::rbac::Wanted {
            verb: "impersonate",
            group,
            resource,
            subresource,
            name,
            namespace,
            path: "",
        };
        index.allows(user, &wanted).is_some()
    };
    let account = other
        .name
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'));
    let named = match account {
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
