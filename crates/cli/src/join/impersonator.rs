//! The account on a member that may impersonate users of the hub, for requests through `clusters/NAME/proxy`: whom, its rights, its
//! token, and the Secret of `spec.impersonatorSecretRef` on the hub.
//!
//! To impersonate everyone is to have every right on the member. So nobody may be impersonated unless the administrator of the
//! member says so, or gives the controllers every right anyhow (`--admin`).

use anyhow::{Result, bail};
use entourage_core::cluster::credentials::impersonator_secret;
use serde_json::{Value, json};

use super::{
    JoinArgs, Reach,
    hub::{belongs_to_other, secret},
    is_ours, rights, token,
};
use crate::apply::{SECRET, SERVICE_ACCOUNT, Target};

/// The users of the hub that an account may impersonate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All users and groups.
    Everyone,
    /// None: there is no account.
    Nobody,
    /// These.
    Listed {
        /// Names of users.
        users: Vec<String>,
        /// Names of groups. All groups of a user must be among them, but for `system:authenticated`.
        groups: Vec<String>,
    },
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
    if users.is_empty() {
        return Err("name at least one user: groups are only impersonated together with one".to_owned());
    }
    Ok(Whom::Listed { users, groups })
}

/// The change that a join makes.
pub enum Intent {
    /// There is no account, and none is made.
    Absent,
    /// The rights stay as they are; the address of the Secret is brought up to date.
    Keep(token::Token),
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

/// The change by the flags and an earlier join on the hub.
///
/// # Errors
/// The Secret cannot be read, or is not for this member.
pub async fn intent(hub: &Target<'_>, args: &JoinArgs) -> Result<Intent> {
    let name = impersonator_secret(&args.name);
    let namespace = &args.cluster_namespace;
    let standing = hub.get(SECRET, namespace, &name).await?;
    let whom = match (&args.impersonate, args.admin) {
        (Some(whom), _) => Some(whom.clone()),
        (None, true) => Some(Whom::Everyone),
        (None, false) => None,
    };
    let Some(standing) = standing else {
        return Ok(match whom {
            None | Some(Whom::Nobody) => Intent::Absent,
            Some(whom) => Intent::Allow(whom, None),
        });
    };
    if !is_ours(&standing) || belongs_to_other(&standing, &args.name).is_some() {
        // Another tool's, such as karmadactl's.
        if whom.is_none() || args.impersonate.is_none() {
            return Ok(Intent::Absent);
        }
        bail!(
            "the secret {namespace}/{name} on the hub was not made by `entourage join {}`; delete it, or join without \
             --impersonate",
            args.name
        );
    }
    let held = token::held(&standing);
    Ok(match (whom, held) {
        (Some(Whom::Nobody), _) => Intent::Remove,
        (Some(whom), held) => Intent::Allow(whom, held),
        (None, Some(held)) => Intent::Keep(held),
        (None, None) => Intent::Absent,
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
    let (whom, held) = match intent {
        Intent::Absent => return Ok(Outcome::Absent),
        Intent::Keep(held) if usable => return Ok(Outcome::Present(held.value, held.expires)),
        Intent::Keep(_) => return Ok(Outcome::Removed),
        Intent::Remove => {
            remove(member, namespace, &account).await?;
            return Ok(Outcome::Removed);
        }
        Intent::Allow(whom, held) => (whom, held.filter(|_| usable)),
    };
    rights::ensure(member, namespace, &account, rules(&whom), false).await?;
    let token = token::obtain(member, namespace, &account, held).await?;
    Ok(Outcome::Present(token.value, token.expires))
}

/// The rules of the account: to impersonate, and nothing else.
fn rules(whom: &Whom) -> Value {
    let core = |resources: &[&str], names: &[String]| {
        let mut rule = json!({"apiGroups": [""], "resources": resources, "verbs": ["impersonate"]});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    };
    // Every key of extra is a resource of its own, userextras/KEY. None gives a right without a user.
    let extras =
        json!({"apiGroups": ["authentication.k8s.io"], "resources": ["*"], "verbs": ["impersonate"]});
    match whom {
        Whom::Everyone => json!([core(&["users", "groups", "serviceaccounts"], &[]), extras]),
        Whom::Listed { users, groups } if groups.is_empty() => json!([core(&["users"], users), extras]),
        Whom::Listed { users, groups } => json!([core(&["users"], users), core(&["groups"], groups), extras]),
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
    rights::remove(member, namespace, account).await
}

/// The same, if the member has the account.
///
/// # Errors
/// As [`Target::delete`].
pub async fn remove_if_present(member: &mut Target<'_>, namespace: &str, account: &str) -> Result<()> {
    let account = account_name(account);
    match member.get(SERVICE_ACCOUNT, namespace, &account).await? {
        Some(_) => remove(member, namespace, &account).await,
        None => Ok(()),
    }
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
        ];
        for (text, expected) in cases {
            assert_eq!(whom(text).ok(), expected, "{text}");
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
        let rules = rules(&named);
        assert_eq!(rules[0]["resourceNames"], json!(["jane"]));
        assert_eq!(rules[1]["resourceNames"], json!(["devs"]));
    }
}
