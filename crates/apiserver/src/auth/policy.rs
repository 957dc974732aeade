//! Authorization of a request, and the roles that every cluster begins with.

use serde_json::{Value, json};

use super::{Access, User, rbac::Wanted};
use crate::{
    auth::about::About,
    random::new_uid,
    resource::{Resource, stored::encode},
    status::{self, Result, Status},
    store::{Expect, Store},
};

/// Refuses what neither `system:masters` nor RBAC allows.
pub(crate) fn authorize(access: Access<'_>, user: &User, about: &About) -> Result<()> {
    if user.is_master() || access.rbac().allows(user, &wanted(about)).is_some() {
        return Ok(());
    }
    Err(forbidden(user, about))
}

/// The target of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// Refuses a PUT or an apply that would create, when its user may not create: the request was authorized as what it is, and
/// turns out to be more. Source: `withAuthorization` of the update and patch handlers in k8s.io/apiserver.
pub(crate) fn authorize_create(access: Access<'_>, user: &User, target: &Target<'_>) -> Result<()> {
    let Target {
        resource,
        subresource,
        namespace,
        name,
    } = *target;
    let wanted = Wanted {
        verb: "create",
        group: &resource.group,
        resource: &resource.plural,
        subresource,
        name,
        namespace,
        path: None,
    };
    if user.is_master() || access.rbac().allows(user, &wanted).is_some() {
        return Ok(());
    }
    // The reason is the authorizer's, and RBAC has none.
    let about = status::About {
        group: &resource.group,
        resource: &resource.plural,
        name,
    };
    Err(Status::forbidden(about, ""))
}

fn wanted(about: &About) -> Wanted<'_> {
    if !about.resource_request {
        return Wanted {
            verb: &about.verb,
            path: Some(&about.path),
            ..Wanted::default()
        };
    }
    Wanted {
        verb: &about.verb,
        group: &about.group,
        resource: &about.resource,
        subresource: &about.subresource,
        name: &about.name,
        namespace: &about.namespace,
        path: None,
    }
}

/// The 403 of a request.
pub(crate) fn forbidden(user: &User, about: &About) -> Box<Status> {
    if !about.resource_request {
        let message = format!(
            "forbidden: User {:?} cannot {} path {:?}",
            user.name, about.verb, about.path
        );
        return Status::new(403, "Forbidden", message).with_details(serde_json::Map::new());
    }
    let place = if about.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", about.namespace)
    };
    let why = format!(
        "User {:?} cannot {} resource {:?} in API group {:?} {place}",
        user.name,
        about.verb,
        about.qualified(),
        about.group
    );
    let about = status::About {
        group: &about.group,
        resource: &about.resource,
        name: &about.name,
    };
    Status::forbidden(about, &why)
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];

/// The resources that users of a namespace write, by API group.
const WORKLOADS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "events",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        "apps",
        &[
            "daemonsets",
            "deployments",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
];

/// The resources that they may only read.
const SEEN: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "bindings",
            "limitranges",
            "namespaces",
            "namespaces/status",
            "pods/log",
            "pods/status",
            "resourcequotas",
            "resourcequotas/status",
            "services/status",
        ],
    ),
    (
        "apps",
        &["controllerrevisions", "deployments/status", "statefulsets/status"],
    ),
    ("batch", &["jobs/status"]),
    ("discovery.k8s.io", &["endpointslices"]),
];

const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// A ClusterRole that every cluster begins with, and the groups it is bound to.
struct Default {
    name: &'static str,
    rules: fn() -> Vec<Value>,
    groups: &'static [&'static str],
}

/// Roles that are made of others: their name, and the one that takes them in. Each takes in all that is labelled for it, and
/// `system:aggregate-to-…` has what is its own.
const AGGREGATES: [(&str, Option<&str>); 3] =
    [("admin", None), ("edit", Some("admin")), ("view", Some("edit"))];

/// The label of what a role takes in.
fn label(role: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{role}")
}

/// All of them. Those that take in others have the rules outright that their controller would give them.
const DEFAULTS: &[Default] = &[
    Default {
        name: "cluster-admin",
        rules: || vec![rule("*", &["*"], &["*"]), paths(&["*"], &["*"])],
        groups: &[super::MASTERS],
    },
    Default {
        name: "admin",
        rules: || [edit(), admin_only()].concat(),
        groups: &[],
    },
    Default {
        name: "edit",
        rules: edit,
        groups: &[],
    },
    Default {
        name: "view",
        rules: view,
        groups: &[],
    },
    Default {
        name: "system:aggregate-to-admin",
        rules: admin_only,
        groups: &[],
    },
    Default {
        name: "system:aggregate-to-edit",
        rules: edit_only,
        groups: &[],
    },
    Default {
        name: "system:aggregate-to-view",
        rules: view,
        groups: &[],
    },
    Default {
        name: "system:discovery",
        rules: || {
            vec![
                paths(
                    &[
                        "/api",
                        "/api/*",
                        "/apis",
                        "/apis/*",
                        "/healthz",
                        "/livez",
                        "/openapi",
                        "/openapi/*",
                        "/readyz",
                        "/version",
                        "/version/",
                    ],
                    &["get"],
                ),
                paths(&["/.well-known", "/.well-known/*"], &["get"]),
            ]
        },
        groups: &[super::AUTHENTICATED],
    },
    Default {
        name: "system:basic-user",
        rules: || {
            vec![
                rule(
                    "authorization.k8s.io",
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    &["create"],
                ),
                rule("authentication.k8s.io", &["selfsubjectreviews"], &["create"]),
            ]
        },
        groups: &[super::AUTHENTICATED],
    },
    Default {
        name: "system:public-info-viewer",
        rules: || vec![paths(PUBLIC, &["get"])],
        groups: &[super::AUTHENTICATED, super::UNAUTHENTICATED],
    },
    Default {
        name: "system:service-account-issuer-discovery",
        rules: || {
            let urls = [
                "/.well-known/openid-configuration",
                "/.well-known/openid-configuration/",
                "/openid/v1/jwks",
                "/openid/v1/jwks/",
            ];
            vec![paths(&urls, &["get"])]
        },
        groups: &["system:serviceaccounts"],
    },
    Default {
        name: "system:auth-delegator",
        rules: || {
            vec![
                rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
                rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
            ]
        },
        groups: &[],
    },
];

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn paths(urls: &[&str], verbs: &[&str]) -> Value {
    json!({"nonResourceURLs": urls, "verbs": verbs})
}

fn view() -> Vec<Value> {
    [WORKLOADS, SEEN]
        .concat()
        .iter()
        .map(|(group, resources)| rule(group, resources, READ))
        .collect()
}

fn admin_only() -> Vec<Value> {
    let both = [READ, WRITE].concat();
    vec![
        rule("rbac.authorization.k8s.io", &["rolebindings", "roles"], &both),
        rule(
            "authorization.k8s.io",
            &["localsubjectaccessreviews"],
            &["create"],
        ),
    ]
}

fn edit() -> Vec<Value> {
    [edit_only(), view()].concat()
}

fn edit_only() -> Vec<Value> {
    let reached = [
        "pods/attach",
        "pods/exec",
        "pods/portforward",
        "pods/proxy",
        "secrets",
        "services/proxy",
    ];
    let mut rules = vec![
        rule("", &reached, READ),
        rule("", &["serviceaccounts"], &["impersonate"]),
        rule("", &["pods/eviction", "serviceaccounts/token"], &["create"]),
        rule("", &reached, WRITE),
        rule("coordination.k8s.io", &["leases"], &[READ, WRITE].concat()),
    ];
    rules.extend(
        WORKLOADS
            .iter()
            .map(|(group, resources)| rule(group, resources, WRITE)),
    );
    rules
}

/// Writes the roles and bindings that every cluster begins with; those that are there stay as they are.
pub(crate) fn furnish(store: &Store, now: &str) {
    let put = |collection: &str, name: &str, mut object: Value| {
        let mut labels = object["metadata"]["labels"].take();
        labels["kubernetes.io/bootstrapping"] = "rbac-defaults".into();
        object["metadata"] = json!({
            "name": name, "uid": new_uid(), "creationTimestamp": now, "labels": labels,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        });
        if let Value::Object(object) = object {
            let collection = format!("rbac.authorization.k8s.io/{collection}");
            // A user's own version of a role is left alone.
            let _ = store.put(&collection, name, Expect::Absent, |revision| {
                encode(object, revision)
            });
        }
    };
    for default in DEFAULTS {
        let mut role = json!({"rules": (default.rules)()});
        for (name, into) in AGGREGATES {
            let own = default.name.strip_prefix("system:aggregate-to-") == Some(name);
            if default.name == name {
                let selector = json!({"matchLabels": {label(name): "true"}});
                role["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
            }
            if let Some(into) = if own {
                Some(name)
            } else {
                into.filter(|_| default.name == name)
            } {
                role["metadata"]["labels"][label(into)] = "true".into();
            }
        }
        put("clusterroles", default.name, role);
        if default.groups.is_empty() {
            continue;
        }
        let subjects: Vec<Value> = default
            .groups
            .iter()
            .map(|group| json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group}))
            .collect();
        let role =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": default.name});
        put(
            "clusterrolebindings",
            default.name,
            json!({"roleRef": role, "subjects": subjects}),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;
    use http::Method;

    fn asked(user: &User, method: &Method, path: &str) -> Result<()> {
        let cluster = crate::server::tests_support::bare();
        authorize(
            cluster.access(),
            user,
            &About::of(method, path, &Query::default()),
        )
    }

    #[test]
    fn everybody_sees_the_version_and_who_is_known_sees_the_apis() {
        let anonymous = User::new(super::super::ANONYMOUS, &[super::super::UNAUTHENTICATED]);
        let jane = User::new("jane", &[super::super::AUTHENTICATED]);
        assert!(asked(&anonymous, &Method::GET, "/version").is_ok());
        assert!(asked(&anonymous, &Method::GET, "/apis").is_err());
        assert!(asked(&jane, &Method::GET, "/apis/apps/v1").is_ok());
        assert!(asked(&jane, &Method::GET, "/api/v1/pods").is_err());
        assert!(
            asked(
                &User::new("root", &[super::super::MASTERS]),
                &Method::DELETE,
                "/api/v1/nodes/x"
            )
            .is_ok()
        );
    }

    #[test]
    fn a_refusal_says_what_and_where() {
        let jane = User::new("jane", &[]);
        let message = |path: &str| {
            asked(&jane, &Method::GET, path)
                .expect_err("refused")
                .message
                .clone()
        };
        assert_eq!(
            message("/apis/apps/v1/namespaces/n/deployments/a/scale"),
            r#"deployments.apps "a" is forbidden: User "jane" cannot get resource "deployments/scale" in API group "apps" in the namespace "n""#
        );
        assert_eq!(
            message("/api/v1/nodes"),
            r#"nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope"#
        );
        assert_eq!(
            message("/metrics"),
            r#"forbidden: User "jane" cannot get path "/metrics""#
        );
    }
}
