//! The rights that an account needs, and which of them a server grants, by SelfSubjectAccessReview.

use std::collections::BTreeSet;

use entourage_controllers::controllers::{CONTROLLERS, Within};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};

use super::{RightsOf, Role};
use crate::raw;

/// The maximum number of reviews at a time.
const AT_ONCE: usize = 8;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

const RBAC: &str = "rbac.authorization.k8s.io";

/// One right.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    verb: &'static str,
    group: &'static str,
    /// `resource` or `resource/subresource`.
    resource: String,
    /// Empty for all.
    namespace: &'static str,
    /// Empty for all.
    name: &'static str,
}

/// The rights of an administrator who sets a hub up with `entourage init`: verbs, group, resources.
const OF_INIT: &[(&[&str], &str, &[&str])] = &[
    (
        &["get", "create", "patch"],
        "",
        &["namespaces", "serviceaccounts"],
    ),
    (
        &["get", "list", "watch", "create", "patch"],
        "apiextensions.k8s.io",
        &["customresourcedefinitions"],
    ),
    (
        &["get", "create", "patch"],
        RBAC,
        &["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
    ),
    (&["escalate", "bind"], RBAC, &["clusterroles", "roles"]),
];

/// The rights of an administrator on a member for `entourage join`.
const OF_JOIN: &[(&[&str], &str, &[&str])] = &[
    (
        &["get", "create", "patch"],
        "",
        &["namespaces", "serviceaccounts", "secrets"],
    ),
    (&["create"], "", &["serviceaccounts/token"]),
    (
        &["get", "create", "patch"],
        RBAC,
        &["clusterroles", "clusterrolebindings"],
    ),
    (&["escalate", "bind"], RBAC, &["clusterroles"]),
];

/// The rights for a role; each once, sorted.
#[must_use]
pub fn wanted(role: Role, of: RightsOf) -> BTreeSet<Right> {
    match (role, of) {
        (Role::Hub, RightsOf::Controllers) => of_controllers(),
        (Role::Hub, RightsOf::Admin) => of_table(OF_INIT),
        (Role::Member, _) => of_table(OF_JOIN),
    }
}

fn of_table(table: &[(&[&'static str], &'static str, &[&'static str])]) -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for &(verbs, group, resources) in table {
        for resource in resources {
            all.extend(verbs.iter().copied().map(|verb| Right {
                verb,
                group,
                resource: (*resource).to_owned(),
                ..Right::default()
            }));
        }
    }
    all
}

/// The rights of the controllers that are always enabled.
fn of_controllers() -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for rule in CONTROLLERS
        .iter()
        .filter(|controller| controller.gate.is_none())
        .flat_map(|controller| controller.rules)
    {
        let (namespace, names): (&str, &[&str]) = match rule.within {
            Within::All => ("", &[""]),
            Within::Namespace(namespace) => (namespace, &[""]),
            Within::Objects(names) => ("", names),
            Within::Object(namespace, ref name) => (namespace, std::slice::from_ref(name)),
        };
        for (group, resource) in rule.resources.list() {
            for &verb in rule.verbs {
                all.extend(names.iter().copied().map(|name| Right {
                    verb,
                    group,
                    resource: resource.clone(),
                    namespace,
                    name,
                }));
            }
        }
    }
    all
}

impl Right {
    fn review(&self) -> Value {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
            "resourceAttributes": {"verb": self.verb, "group": self.group, "resource": resource,
                "subresource": subresource, "namespace": self.namespace, "name": self.name}}})
    }

    /// The kind of object that the right is for: `deployments.apps`.
    #[must_use]
    pub fn resource(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let name = if self.name.is_empty() { "" } else { " " };
        format!("{}{dot}{}{name}{}", self.resource, self.group, self.name)
    }

    /// The verb.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        self.verb
    }
}

/// Those of the rights that the server does not grant.
///
/// # Errors
/// The server does not respond.
pub async fn denied(client: &Client, wanted: BTreeSet<Right>) -> kube::Result<Vec<Right>> {
    let reviews = stream::iter(wanted).map(|right| async move {
        let answer = raw::post(client, REVIEWS, &right.review()).await?;
        let allowed = answer["status"]["allowed"] == true;
        Ok::<_, kube::Error>((!allowed).then_some(right))
    });
    let denied: Vec<Option<Right>> = reviews.buffered(AT_ONCE).try_collect().await?;
    Ok(denied.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_of_the_controllers_are_those_of_the_role() {
        let all = wanted(Role::Hub, RightsOf::Controllers);
        let has = |verb: &str, group: &str, resource: &str| {
            all.iter()
                .any(|right| (right.verb, right.group, right.resource.as_str()) == (verb, group, resource))
        };
        assert!(has("list", "cluster.karmada.io", "clusters"));
        assert!(has("patch", "cluster.karmada.io", "clusters/status"));
        assert!(has("get", "apps", "deployments"));
        assert!(
            !has(
                "update",
                "certificates.k8s.io",
                "certificatesigningrequests/approval"
            ),
            "gated"
        );
    }

    #[test]
    fn a_review_names_the_subresource() {
        let all = wanted(Role::Member, RightsOf::Admin);
        let token = all.iter().find(|right| right.resource == "serviceaccounts/token");
        let token = token.unwrap();
        let attributes = &token.review()["spec"]["resourceAttributes"];
        assert_eq!(attributes["resource"], "serviceaccounts");
        assert_eq!(attributes["subresource"], "token");
        assert_eq!(token.resource(), "serviceaccounts/token");
    }
}
