//! The account on a member that may impersonate users of the hub, for requests through `clusters/NAME/proxy`: whom, its rights, its
//! token, and the Secret of `spec.impersonatorSecretRef` on the hub.
//!
//! To impersonate everyone is to have every right on the member. So nobody may be impersonated unless the administrator of the
//! member says so, or gives the controllers every right anyhow (`--admin`) and has never said anything else.

use std::{collections::BTreeMap, fmt};

use anyhow::{Result, bail};
use entourage_core::cluster::credentials::impersonator_secret;
use serde_json::{Value, json};

use super::{
    JoinArgs, Reach, accounts,
    hub::{belongs_to_other, secret},
    is_ours, rights, token,
};
use crate::apply::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SECRET, SERVICE_ACCOUNT, Target};

/// The users of the hub that an account may impersonate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All users and groups.
    Everyone,
    /// None: there is no account.
    Nobody,
    /// These.
    Listed {
        /// Names of users, ServiceAccounts among them.
        users: Vec<String>,
        /// Names of groups. All groups of a user must be among them, but for `system:authenticated` and those of ServiceAccounts.
        groups: Vec<String>,
    },
}

/// As the flag reads it.
impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("everyone"),
            Self::Nobody => f.write_str("nobody"),
            Self::Listed { users, groups } => {
                let users = users.iter().map(|each| format!("user:{each}"));
                let groups = groups.iter().map(|each| format!("group:{each}"));
                f.write_str(&users.chain(groups).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Reads `everyone`, `nobody`, or `user:NAME,group:NAME`.
///
/// # Errors
/// A sentence for the user.
pub fn whom(text: &str) -> Result<Whom, String> {
    match text {
        "everyone" => return Ok(Whom::Everyone),
        "nobody" => return Ok(Whom::Nobody),
        _ => {}
    }
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    for part in text.split(',') {
        match part.split_once(':') {
            Some(("user", name)) if !name.is_empty() => users.push(name.to_owned()),
            Some(("group", name)) if !name.is_empty() => groups.push(name.to_owned()),
            _ => return Err("give everyone, nobody, or users and groups: user:jane,group:devs".to_owned()),
        }
    }
    let is_malformed =
        |user: &&String| user.starts_with(accounts::PREFIX) && accounts::of_user(user).is_none();
    if let Some(user) = users.iter().find(is_malformed) {
        return Err(format!(
            "{user} is not a ServiceAccount; give user:{}NAMESPACE:NAME",
            accounts::PREFIX
        ));
    }
    if users.is_empty() {
        return Err("name at least one user: groups are only impersonated together with one".to_owned());
    }
    Ok(Whom::Listed { users, groups })
}

/// The change that a join makes.
pub enum Intent {
    /// There is no account, and none is made.
    Absent,
    /// The rights stay as they are; the address of the Secret is brought up to date, and its token is replaced if the member does
    /// not accept it for long enough.
    Keep(Option<token::Token>),
    /// The account is made, or brought up to date; with the token of an earlier join, if there is one.
    Allow(Whom, Option<token::Token>),
    /// The account is removed.
    Remove,
}

/// The state on the member after [`on_member`].
#[derive(PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was changed.
    Absent,
    /// The hub's Secret shall hold this token, with the time at which it expires.
    Present(String, Option<String>),
    /// The account was removed.
    Removed,
}

/// The change by the flags and an earlier join on the hub. `is_chosen`: an earlier join said whom, so `--admin` alone does not.
///
/// # Errors
/// The Secret cannot be read, or is not for this member.
pub async fn intent(hub: &Target<'_>, args: &JoinArgs, is_chosen: bool) -> Result<Intent> {
    let whom = match &args.impersonate {
        // Whatever the hub has: the account may exist without its Secret.
        Some(Whom::Nobody) => return Ok(Intent::Remove),
        Some(whom) => Some(whom.clone()),
        None => (args.admin && !is_chosen).then_some(Whom::Everyone),
    };
    let name = impersonator_secret(&args.name);
    let namespace = &args.cluster_namespace;
    let Some(standing) = hub.get(SECRET, namespace, &name).await? else {
        return Ok(whom.map_or(Intent::Absent, |whom| Intent::Allow(whom, None)));
    };
    if !is_ours(&standing) || belongs_to_other(&standing, &args.name).is_some() {
        // Another tool's, such as karmadactl's.
        if args.impersonate.is_none() {
            return Ok(Intent::Absent);
        }
        bail!(
            "the secret {namespace}/{name} on the hub was not made by `entourage join {}`; delete it, or join without \
             --impersonate",
            args.name
        );
    }
    let held = token::held(&standing);
    Ok(match whom {
        Some(whom) => Intent::Allow(whom, held),
        None => Intent::Keep(held),
    })
}

/// The name of the account on a member, and of its ClusterRole and ClusterRoleBinding: one per hub.
#[must_use]
pub fn account_name(account: &str) -> String {
    format!("{account}-impersonator")
}

/// Does on the member what is intended. `usable`: a token of an earlier join is for this member.
///
/// # Errors
/// As [`Target::ensure`].
pub async fn on_member(
    member: &mut Target<'_>,
    namespace: &str,
    account: &str,
    intent: Intent,
    usable: bool,
) -> Result<Outcome> {
    let account = account_name(account);
    let held = match intent {
        Intent::Absent => return Ok(Outcome::Absent),
        Intent::Remove => {
            remove(member, namespace, &account).await?;
            return Ok(Outcome::Removed);
        }
        // An account of an earlier join is not left with rights that nobody knows of.
        Intent::Keep(_) if !usable => {
            remove(member, namespace, &account).await?;
            writeln!(
                member.out,
                "note: the hub's Secret of the impersonator is not for this member; to be reached through the hub, join with \
                 --impersonate"
            )?;
            return Ok(Outcome::Removed);
        }
        Intent::Keep(held) => {
            if member.get(SERVICE_ACCOUNT, namespace, &account).await?.is_none() {
                bail!(
                    "the member has no serviceaccount {namespace}/{account}, which requests through the hub need; say with \
                     --impersonate whom it may impersonate: everyone, nobody, or user:NAME,group:NAME"
                );
            }
            held
        }
        Intent::Allow(whom, held) => {
            rights::ensure(member, namespace, &account, rules(&whom), false).await?;
            accounts::ensure(member, namespace, &account, &accounts_of(&whom)).await?;
            held.filter(|_| usable)
        }
    };
    let token = token::obtain(member, namespace, &account, held).await?;
    Ok(Outcome::Present(token.value, token.expires))
}

/// The ServiceAccounts of the hub that are named.
fn accounts_of(whom: &Whom) -> BTreeMap<&str, Vec<&str>> {
    match whom {
        Whom::Listed { users, .. } => accounts::among(users),
        Whom::Everyone | Whom::Nobody => BTreeMap::new(),
    }
}

/// The rules of the account in all namespaces: to impersonate, and nothing else. Without names a rule is about all, so there is none.
fn rules(whom: &Whom) -> Value {
    let named = |resource: &str, names: &[&String]| {
        let rule = json!({
            "apiGroups": [""], "resources": [resource], "resourceNames": names, "verbs": ["impersonate"],
        });
        (!names.is_empty()).then_some(rule)
    };
    // Every key of extra is a resource of its own, userextras/KEY. None gives a right without a user.
    let extras =
        json!({"apiGroups": ["authentication.k8s.io"], "resources": ["*"], "verbs": ["impersonate"]});
    match whom {
        Whom::Everyone => json!([
            {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]},
            extras,
        ]),
        Whom::Listed { users, groups } => {
            let is_user = |user: &&String| accounts::of_user(user).is_none();
            let users: Vec<&String> = users.iter().filter(is_user).collect();
            let groups: Vec<&String> = groups.iter().collect();
            let rules = [named("users", &users), named("groups", &groups), Some(extras)];
            Value::Array(rules.into_iter().flatten().collect())
        }
        Whom::Nobody => json!([]),
    }
}

/// Removes the account, its rights and its token from the member.
///
/// # Errors
/// As [`Target::delete`].
pub async fn remove(member: &mut Target<'_>, namespace: &str, account: &str) -> Result<()> {
    member
        .delete(SECRET, namespace, &token::secret_name(account))
        .await?;
    accounts::remove(member, account, &BTreeMap::new()).await?;
    rights::remove(member, namespace, account).await
}

/// The same, if the member has the account or its rights. `account` is that of the controllers.
///
/// # Errors
/// As [`Target::delete`].
pub async fn remove_if_present(member: &mut Target<'_>, namespace: &str, account: &str) -> Result<()> {
    if is_present(member, namespace, account).await? {
        return remove(member, namespace, &account_name(account)).await;
    }
    Ok(())
}

/// True if the member has the impersonator beside the account `account` of the controllers, or rights of it.
///
/// # Errors
/// The member cannot be read.
pub async fn is_present(member: &Target<'_>, namespace: &str, account: &str) -> Result<bool> {
    let account = account_name(account);
    let parts = [
        (SERVICE_ACCOUNT, namespace),
        (CLUSTER_ROLE_BINDING, ""),
        (CLUSTER_ROLE, ""),
    ];
    for (kind, namespace) in parts {
        if member.get(kind, namespace, &account).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if the hub has a Secret of the impersonator that `entourage join` made for this Cluster.
///
/// # Errors
/// The hub cannot be read.
pub async fn is_on_hub(hub: &Target<'_>, namespace: &str, cluster: &str) -> Result<bool> {
    let standing = hub.get(SECRET, namespace, &impersonator_secret(cluster)).await?;
    Ok(standing.is_some_and(|secret| is_ours(&secret) && belongs_to_other(&secret, cluster).is_none()))
}

/// Writes the hub's Secret. Returns the value for `spec.impersonatorSecretRef`; `None` if that is not changed.
///
/// # Errors
/// As [`Target::ensure`].
pub async fn on_hub(
    hub: &mut Target<'_>,
    args: &JoinArgs,
    reach: &Reach,
    proxy: &str,
    outcome: &Outcome,
) -> Result<Option<Value>> {
    let (value, expires) = match outcome {
        Outcome::Absent => return Ok(None),
        Outcome::Removed => return Ok(Some(Value::Null)),
        Outcome::Present(value, expires) => (value.clone(), expires.clone()),
    };
    let name = impersonator_secret(&args.name);
    let token = token::Token { value, expires };
    let object = secret(&name, args, reach, proxy, &token)?;
    hub.ensure(SECRET, object).await?;
    Ok(Some(json!({"namespace": args.cluster_namespace, "name": name})))
}

/// Deletes the hub's Secret of a member's impersonator, if `entourage join` made it.
///
/// # Errors
/// As [`Target::delete`].
pub async fn remove_secret(hub: &mut Target<'_>, namespace: &str, cluster: &str) -> Result<()> {
    let name = impersonator_secret(cluster);
    let Some(standing) = hub.get(SECRET, namespace, &name).await? else {
        return Ok(());
    };
    // The Secret of a Cluster that is called so is not ours to delete.
    if belongs_to_other(&standing, cluster).is_some() {
        return Ok(());
    }
    if is_ours(&standing) {
        return hub.delete(SECRET, namespace, &name).await;
    }
    hub.say(SECRET, &name, "kept: it was not made by `entourage join`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_to_impersonate() {
        let named = |users: &[&str], groups: &[&str]| Whom::Listed {
            users: users.iter().map(|each| (*each).to_owned()).collect(),
            groups: groups.iter().map(|each| (*each).to_owned()).collect(),
        };
        let cases = [
            ("everyone", Some(Whom::Everyone)),
            ("nobody", Some(Whom::Nobody)),
            ("user:jane", Some(named(&["jane"], &[]))),
            (
                "user:jane,group:devs,user:system:serviceaccount:a:b",
                Some(named(&["jane", "system:serviceaccount:a:b"], &["devs"])),
            ),
            ("group:devs", None),
            ("", None),
            ("jane", None),
            ("user:", None),
            ("user:jane,", None),
            ("everyone,user:jane", None),
            ("user:system:serviceaccount:a", None),
            ("user:jane,user:system:serviceaccount:a:b:c", None),
        ];
        for (text, expected) in cases {
            let read = whom(text).ok();
            assert_eq!(read, expected, "{text}");
            // What is written is read as the same.
            assert_eq!(
                read.and_then(|read| whom(&read.to_string()).ok()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn the_account_may_impersonate_and_do_nothing_else() {
        let named = whom("user:jane,group:devs").unwrap();
        for whom in [Whom::Everyone, named.clone()] {
            for rule in rules(&whom).as_array().unwrap() {
                assert_eq!(rule["verbs"], json!(["impersonate"]), "{whom:?}");
            }
        }
        let of_named = rules(&named);
        assert_eq!(of_named[0]["resourceNames"], json!(["jane"]));
        assert_eq!(of_named[1]["resourceNames"], json!(["devs"]));
        // Accounts alone do not make a rule about all users.
        let accounts = rules(&whom("user:system:serviceaccount:a:b").unwrap());
        assert!(!accounts.to_string().contains("users"), "{accounts}");
        assert_eq!(accounts.as_array().map(Vec::len), Some(1), "{accounts}");
    }
}
