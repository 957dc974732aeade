//! The rights of the controllers on a member: one table, and the objects that grant them.

use anyhow::{Result, bail};
use entourage_core::rights::propagated;
use serde_json::{Value, json};

use super::{grants, made_by_us};
use crate::apply::{CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT, Target};

/// Verbs on a kind that is propagated: copies are listed, watched, read, written whole and deleted.
const MANAGE: &[&str] = &["get", "list", "watch", "create", "update", "delete"];

/// The kinds that are propagated without further ado: workloads, what workloads refer to, and what stands before or beside
/// them in a namespace. Group, resource. Kinds that reach over the whole member, or bound what others may use there, are
/// allowed by its administrator, each with `--allow`.
pub fn managed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let granted = propagated().iter().filter(|kind| kind.resource.on_members);
    granted.map(|kind| (kind.group, kind.resource.plural))
}

/// Verbs on namespaces: one that we created ends with that of the hub.
const NAMESPACES: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// Kubernetes' other kinds that have a namespace: they are only listed, to know whether a namespace holds something.
const LOOKED_INTO: &[(&str, &str)] = &[
    ("", "endpoints"),
    ("", "limitranges"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("apps", "controllerrevisions"),
    ("certificates.k8s.io", "podcertificaterequests"),
    ("coordination.k8s.io", "leasecandidates"),
    ("coordination.k8s.io", "leases"),
    ("extensions", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("resource.k8s.io", "podschedulingcontexts"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("scheduling.k8s.io", "podgroups"),
    ("scheduling.k8s.io", "workloads"),
    ("storage.k8s.io", "csistoragecapacities"),
];

/// The resources that the capacity of the member is computed from.
const COUNTED: &[&str] = &["nodes", "pods"];

/// Paths that a probe of the member reads.
const PROBED: &[&str] = &[
    "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/readyz", "/version",
];

/// A kind that `--allow` adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// API group; empty for the core group.
    pub group: String,
    /// Resource: the plural in lower case.
    pub resource: String,
}

/// Reads `resource` or `group/resource`.
///
/// # Errors
/// A sentence for the user.
pub fn extra(text: &str) -> Result<Extra, String> {
    let (group, resource) = text.rsplit_once('/').unwrap_or(("", text));
    let plain = |text: &str, more: &str| {
        text.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || more.contains(c))
    };
    if resource.is_empty() || !plain(resource, "-") || !plain(group, "-.") {
        return Err(
            "give a resource as in RBAC: namespaces, or networking.k8s.io/networkpolicies".to_owned(),
        );
    }
    Ok(Extra {
        group: group.to_owned(),
        resource: resource.to_owned(),
    })
}

/// The rules of the ClusterRole: [`managed`] and `extras`, namespaces on demand, and what a probe reads.
#[must_use]
pub fn rules(extras: &[Extra]) -> Value {
    let mut kinds: Vec<(&str, &str)> = managed().collect();
    kinds.extend(
        extras
            .iter()
            .map(|extra| (extra.group.as_str(), extra.resource.as_str())),
    );
    kinds.sort_unstable();
    kinds.dedup();
    let mut rules = Vec::new();
    for group in kinds.chunk_by(|a, b| a.0 == b.0) {
        let resources: Vec<_> = group.iter().map(|(_, resource)| resource).collect();
        rules.push(json!({"apiGroups": [group[0].0], "resources": resources, "verbs": MANAGE}));
    }
    rules.push(json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": NAMESPACES}));
    rules.push(json!({"apiGroups": [""], "resources": COUNTED, "verbs": ["list", "watch"]}));
    // A namespace that was deleted on the hub is deleted on the member only if its content there is known.
    for group in LOOKED_INTO.chunk_by(|a, b| a.0 == b.0) {
        let resources: Vec<_> = group.iter().map(|(_, resource)| resource).collect();
        rules.push(json!({"apiGroups": [group[0].0], "resources": resources, "verbs": ["list"]}));
    }
    // Whether a kind that is not served is gone, with its objects, or is only not served for a while.
    rules.push(json!({
        "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list", "watch"],
    }));
    // Which kinds it serves, as soon as that changes.
    rules.push(json!({
        "apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"], "verbs": ["list", "watch"],
    }));
    rules.push(json!({"nonResourceURLs": PROBED, "verbs": ["get"]}));
    Value::Array(rules)
}

/// The rules of the agent's ClusterRole on its own cluster: those of the controllers on a member, with namespaces among the kinds, as
/// they come with Works of their own. It looks into no namespace, and keeps no record on it.
#[must_use]
pub fn rules_of_agent() -> Value {
    let namespaces = Extra {
        group: String::new(),
        resource: "namespaces".to_owned(),
    };
    let Value::Array(mut all) = rules(&[namespaces]) else {
        return Value::Null;
    };
    all.retain(|rule| rule["verbs"] != json!(["list"]) && rule["resources"] != json!(["namespaces"]));
    Value::Array(all)
}

/// Rules that allow everything.
#[must_use]
pub fn everything() -> Value {
    json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]}
    ])
}

/// The name of the ServiceAccount, ClusterRole and ClusterRoleBinding on a member: one per hub, so that two hubs do not
/// share an identity.
#[must_use]
pub fn account_name(hub_id: &str) -> String {
    let short: String = hub_id.chars().take_while(|c| *c != '-').take(8).collect();
    format!("entourage-{}", short.to_lowercase())
}

/// Brings the ServiceAccount and its rights to the member. What an earlier join gave and `rules` leave out stays if `kept`.
///
/// # Errors
/// As [`Target::ensure`]; also when a binding of that name grants another role, which cannot be changed.
pub async fn ensure(
    target: &mut Target<'_>,
    namespace: &str,
    account: &str,
    rules: Value,
    kept: bool,
) -> Result<()> {
    let labels = made_by_us();
    let metadata = json!({"name": account, "namespace": namespace, "labels": labels});
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    target.ensure(SERVICE_ACCOUNT, object).await?;
    let metadata = json!({"name": account, "labels": labels});
    let live = target.get(CLUSTER_ROLE, "", account).await?;
    let held = live.map_or(Value::Null, |live| live.data["rules"].clone());
    let (merged, more) = grants::merged(&rules, &held);
    let rules = if kept && !more.is_empty() {
        writeln!(
            target.out,
            "note: the account keeps what it was given before: {}; --rights=minimal takes that back",
            more.join(", ")
        )?;
        merged
    } else {
        rules
    };
    let object = json!({
        "apiVersion": CLUSTER_ROLE.api_version, "kind": "ClusterRole", "metadata": metadata, "rules": rules,
    });
    target.ensure(CLUSTER_ROLE, object).await?;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account});
    if let Some(live) = target.get(CLUSTER_ROLE_BINDING, "", account).await?
        && live.data["roleRef"] != role
    {
        bail!(
            "the clusterrolebinding {account} on the member grants another role; delete it and run this again"
        );
    }
    let object = json!({
        "apiVersion": CLUSTER_ROLE_BINDING.api_version, "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    });
    target.ensure(CLUSTER_ROLE_BINDING, object).await?;
    Ok(())
}

/// Takes the ServiceAccount, its rights and its token off the member.
///
/// # Errors
/// As [`Target::delete`].
pub async fn remove(target: &mut Target<'_>, namespace: &str, account: &str) -> Result<()> {
    target.delete(CLUSTER_ROLE_BINDING, "", account).await?;
    target.delete(CLUSTER_ROLE, "", account).await?;
    target.delete(SERVICE_ACCOUNT, namespace, account).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_every_kind_and_no_wildcard_resource() {
        let rules = rules(&[
            extra("namespaces").unwrap(),
            extra("networking.k8s.io/networkpolicies").unwrap(),
        ]);
        let text = rules.to_string();
        for (_, resource) in managed() {
            assert!(text.contains(&format!("\"{resource}\"")), "{resource}");
        }
        assert!(text.contains("\"namespaces\"") && text.contains("\"networkpolicies\""));
        assert!(!text.contains("\"*\""), "{text}");
        let groups: Vec<_> = rules
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| rule["apiGroups"][0].as_str())
            .collect();
        let mut wanted: Vec<_> = managed().map(|(group, _)| Some(group)).collect();
        wanted.sort();
        wanted.dedup();
        wanted.extend([Some(""), Some("")]);
        let looked: Vec<_> = LOOKED_INTO.iter().map(|(group, _)| Some(*group)).collect();
        wanted.extend(looked.chunk_by(|a, b| a == b).map(|each| each[0]));
        wanted.extend([Some("apiextensions.k8s.io"), Some("apiregistration.k8s.io"), None]);
        assert_eq!(groups, wanted);
    }

    #[test]
    fn extras_are_group_and_resource() {
        assert_eq!(
            extra("services"),
            Ok(Extra {
                group: String::new(),
                resource: "services".into()
            })
        );
        for wrong in ["", "Services", "a/", "*", "apps/*", "a b"] {
            assert!(extra(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_hubs_use_two_accounts() {
        assert_eq!(
            account_name("1a2b3c4d-0000-4000-8000-000000000000"),
            "entourage-1a2b3c4d"
        );
        assert_ne!(account_name("1a2b3c4d-0"), account_name("1a2b3c4e-0"));
    }
}
