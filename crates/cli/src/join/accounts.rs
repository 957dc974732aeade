//! The ServiceAccounts of the hub that may be impersonated on a member: a Role in the namespace of each.
//!
//! To impersonate `system:serviceaccount:NAMESPACE:NAME`, an API server asks for the right on the resource `serviceaccounts` of that
//! namespace, and not for one on `users`. A ClusterRole that names the account would allow those of that name in all namespaces.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::{is_ours, made_by_us};
use crate::{
    apply::{Kind, NAMESPACE, ROLE, ROLE_BINDING, Target},
    connect,
};

/// The prefix of the names of ServiceAccounts.
pub(super) const PREFIX: &str = "system:serviceaccount:";

/// Namespace and name of the ServiceAccount that a user is; `None` for any other user.
pub(super) fn of_user(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(PREFIX)?.split_once(':')?;
    // They become steps of paths.
    let plain = |text: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(allowed)
    };
    (plain(namespace) && plain(name)).then_some((namespace, name))
}

/// The ServiceAccounts among users: the names by namespace.
pub(super) fn among(users: &[String]) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (namespace, name) in users.iter().filter_map(|user| of_user(user)) {
        all.entry(namespace).or_default().push(name);
    }
    all
}

/// Lets the account `account` of namespace `home` impersonate these ServiceAccounts, and no others.
///
/// # Errors
/// A namespace does not exist on the member; as [`Target::ensure`].
pub(super) async fn ensure(
    member: &mut Target<'_>,
    home: &str,
    account: &str,
    wanted: &BTreeMap<&str, Vec<&str>>,
) -> Result<()> {
    for namespace in wanted.keys() {
        if member.get(NAMESPACE, "", namespace).await?.is_none() {
            bail!(
                "the member has no namespace {namespace}, so no user {PREFIX}{namespace}:NAME may be named; create it first, or \
                 leave them out"
            );
        }
    }
    remove(member, account, wanted).await?;
    for (namespace, names) in wanted {
        let metadata = json!({"name": account, "namespace": namespace, "labels": made_by_us()});
        let rule = json!({
            "apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": names, "verbs": ["impersonate"],
        });
        let role = json!({
            "apiVersion": ROLE.api_version, "kind": ROLE.kind, "metadata": metadata, "rules": [rule],
        });
        member.ensure(ROLE, role).await?;
        let binding = json!({
            "apiVersion": ROLE_BINDING.api_version, "kind": ROLE_BINDING.kind, "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": home}],
        });
        member.ensure(ROLE_BINDING, binding).await?;
    }
    Ok(())
}

/// Takes the Roles of the account off the member, but for those of the namespaces that are `wanted`.
///
/// # Errors
/// The member cannot be read; as [`Target::delete`].
pub(super) async fn remove(
    member: &mut Target<'_>,
    account: &str,
    wanted: &BTreeMap<&str, Vec<&str>>,
) -> Result<()> {
    for kind in [ROLE_BINDING, ROLE] {
        for namespace in standing(member, kind, account).await? {
            if !wanted.contains_key(namespace.as_str()) {
                member.delete(kind, &namespace, account).await?;
            }
        }
    }
    Ok(())
}

/// The namespaces in which the account has an object of this kind.
async fn standing(member: &Target<'_>, kind: Kind, account: &str) -> Result<Vec<String>> {
    let all = member
        .list(kind)
        .await
        .map_err(connect::explain)
        .with_context(|| format!("cannot list the {} on the {}", kind.plural, member.place))?;
    let own = all
        .into_iter()
        .filter(|each| each.metadata.name.as_deref() == Some(account) && is_ours(each));
    Ok(own.filter_map(|each| each.metadata.namespace).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_that_are_service_accounts() {
        let cases = [
            ("system:serviceaccount:shop:robot", Some(("shop", "robot"))),
            ("system:serviceaccount:shop:ro.bot-1", Some(("shop", "ro.bot-1"))),
            ("jane", None),
            ("system:serviceaccount:shop", None),
            ("system:serviceaccount:shop:", None),
            ("system:serviceaccount::robot", None),
            ("system:serviceaccount:shop:robot:x", None),
            ("system:serviceaccount:../x:robot", None),
            ("system:serviceaccount:shop:Robot", None),
        ];
        for (user, expected) in cases {
            assert_eq!(of_user(user), expected, "{user}");
        }
        let users = [
            "jane",
            "system:serviceaccount:b:x",
            "system:serviceaccount:a:y",
            "system:serviceaccount:b:z",
        ]
        .map(str::to_owned);
        assert_eq!(
            among(&users),
            BTreeMap::from([("a", vec!["y"]), ("b", vec!["x", "z"])])
        );
    }
}
