//! Paths of an OpenAPI document: the kind of each path and the parameters that it takes, which clients read.

use k8s_openapi::apimachinery::pkg::{apis::meta::v1 as meta, version::Info};
use serde_json::{Map, Value, json};

use super::definitions::{Flavor, name_of};
use crate::{discovery, resource::Resource, schema::builtin::Root};

/// A parameter of the query: name, type, and whether it may come several times.
type Parameter = (&'static str, &'static str);

const LIST: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const WRITE: &[Parameter] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
];

const PATCH: &[Parameter] = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];

const DELETE: &[Parameter] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

/// One operation: method, verb, action, parameters.
type Operation = (&'static str, &'static str, &'static str, &'static [Parameter]);

const COLLECTION: &[Operation] = &[
    ("get", "list", "list", LIST),
    ("post", "create", "post", WRITE),
    ("delete", "deletecollection", "deletecollection", DELETE),
];

const ITEM: &[Operation] = &[
    ("get", "get", "get", &[]),
    ("put", "update", "put", WRITE),
    ("patch", "patch", "patch", PATCH),
    ("delete", "delete", "delete", DELETE),
];

const SUB: &[Operation] = &[
    ("get", "get", "get", &[]),
    ("put", "update", "put", WRITE),
    ("patch", "patch", "patch", PATCH),
    ("post", "create", "post", WRITE),
    ("delete", "delete", "delete", DELETE),
];

/// Adds the paths of a resource.
pub(super) fn add(paths: &mut Map<String, Value>, flavor: Flavor, resource: &Resource) {
    let prefix = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let about = |operations, named: bool, verbs, kind: &Value, scoped: bool| {
        let one = Path {
            flavor,
            resource,
            named,
            scoped,
            verbs,
            kind: kind.clone(),
        };
        one.item(operations)
    };
    let verbs: &[&str] = &resource.verbs;
    let base = if resource.namespaced {
        format!("{prefix}/namespaces/{{namespace}}")
    } else {
        prefix.clone()
    };
    let collection = format!("{base}/{}", resource.plural);
    paths.insert(
        collection.clone(),
        about(COLLECTION, false, verbs, &kind, resource.namespaced),
    );
    if resource.namespaced && verbs.contains(&"list") {
        let list: &[&str] = &["list"];
        paths.insert(
            format!("{prefix}/{}", resource.plural),
            about(COLLECTION, false, list, &kind, false),
        );
    }
    if verbs.contains(&"get") {
        paths.insert(
            format!("{collection}/{{name}}"),
            about(ITEM, true, verbs, &kind, resource.namespaced),
        );
    }
    for name in &resource.subresources {
        let sub = discovery::subresource(resource, name);
        let own = sub.group.is_empty();
        let kind = json!({
            "group": if own { &resource.group } else { sub.group },
            "version": if own { &resource.version } else { sub.version },
            "kind": sub.kind,
        });
        let path = format!("{collection}/{{name}}/{name}");
        paths.insert(path, about(SUB, true, sub.verbs, &kind, resource.namespaced));
    }
}

struct Path<'a> {
    flavor: Flavor,
    resource: &'a Resource,
    named: bool,
    scoped: bool,
    verbs: &'a [&'a str],
    kind: Value,
}

impl Path<'_> {
    fn item(&self, operations: &[Operation]) -> Value {
        let mut item = Map::new();
        for operation in operations
            .iter()
            .filter(|(_, verb, ..)| self.verbs.contains(verb))
        {
            item.insert(operation.0.to_owned(), self.operation(operation));
        }
        let mut parameters = Vec::new();
        for (name, there) in [("name", self.named), ("namespace", self.scoped)] {
            if there {
                parameters.push(self.parameter(name, "string", "path"));
            }
        }
        parameters.push(self.parameter("pretty", "string", "query"));
        item.insert("parameters".to_owned(), parameters.into());
        Value::Object(item)
    }

    fn operation(&self, (_, verb, action, parameters): &Operation) -> Value {
        let kind = self.kind["kind"].as_str().unwrap_or_default();
        let own = kind == self.resource.kind;
        let scope = if self.scoped { "Namespaced" } else { "" };
        let group = self
            .resource
            .group
            .split('.')
            .next()
            .filter(|group| !group.is_empty());
        let id = format!(
            "{verb}{}{}{scope}{kind}",
            capital(group.unwrap_or("core")),
            capital(&self.resource.version)
        );
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|(name, kind)| self.parameter(name, kind, "query"))
            .collect();
        let mut answer = json!({"description": "OK"});
        let mut operation = json!({
            "description": format!("{verb} {kind}"), "operationId": id,
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": self.kind,
        });
        if own {
            let name = name_of(self.resource);
            let answered = if *verb == "list" {
                format!("{name}List")
            } else {
                name.clone()
            };
            let schema = self.flavor.reference(&answered);
            match self.flavor {
                Flavor::V2 => answer["schema"] = schema,
                Flavor::V3 => {
                    answer["content"] = json!({"application/json": {"schema": schema}});
                    if matches!(*verb, "create" | "update") {
                        let schema = self.flavor.reference(&name);
                        operation["requestBody"] = json!({"content": {"*/*": {"schema": schema}}});
                    }
                }
            }
        }
        if *verb == "patch" && self.flavor == Flavor::V3 {
            let body = json!({"schema": {"type": "object"}});
            operation["requestBody"] = json!({"content": {
                "application/json-patch+json": body, "application/merge-patch+json": body, "application/apply-patch+yaml": body}});
        }
        operation["responses"] = json!({"200": answer});
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        operation
    }

    fn parameter(&self, name: &str, kind: &str, place: &str) -> Value {
        let mut parameter = json!({"name": name, "in": place});
        if place == "path" {
            parameter["required"] = true.into();
        }
        match self.flavor {
            Flavor::V2 => {
                parameter["type"] = kind.into();
                parameter["uniqueItems"] = true.into();
            }
            Flavor::V3 => parameter["schema"] = json!({"type": kind, "uniqueItems": true}),
        }
        parameter
    }
}

/// The operation that lists what is served below a path.
pub(super) struct Discovery {
    tag: String,
    description: &'static str,
    id: String,
    media: &'static [&'static str],
    /// The type of the answer.
    pub(super) answer: Root,
}

impl Discovery {
    /// The operation of a path in words: `apis`, `apps`, `v1`.
    pub(super) fn of(words: &[&str]) -> Option<Self> {
        const ALL: &[&str] = &[
            "application/json",
            "application/vnd.kubernetes.protobuf",
            "application/yaml",
        ];
        const VERSIONS: &str = "get available API versions";
        const RESOURCES: &str = "get available resources";
        let made = |tag: &str, description, id: String, answer| Self {
            tag: tag.to_owned(),
            description,
            id,
            media: ALL,
            answer,
        };
        Some(match words {
            ["api"] => made(
                "core",
                VERSIONS,
                "getCoreAPIVersions".to_owned(),
                Root::of::<meta::APIVersions>(),
            ),
            ["apis"] => made(
                "apis",
                VERSIONS,
                "getAPIVersions".to_owned(),
                Root::of::<meta::APIGroupList>(),
            ),
            ["api", version] => made(
                &format!("core_{version}"),
                RESOURCES,
                format!("getCore{}APIResources", capital(version)),
                Root::of::<meta::APIResourceList>(),
            ),
            ["apis", group] => {
                let group = in_camel_case(group);
                let id = format!("get{}APIGroup", capital(&group));
                made(
                    &group,
                    "get information of a group",
                    id,
                    Root::of::<meta::APIGroup>(),
                )
            }
            ["apis", group, version] => {
                let group = in_camel_case(group);
                let id = format!("get{}{}APIResources", capital(&group), capital(version));
                let tag = format!("{group}_{version}");
                made(&tag, RESOURCES, id, Root::of::<meta::APIResourceList>())
            }
            ["version"] => Self {
                media: &ALL[..1],
                ..made(
                    "version",
                    "get the version information for this server",
                    "getCodeVersion".to_owned(),
                    Root::of::<Info>(),
                )
            },
            _ => return None,
        })
    }

    pub(super) fn item(&self) -> Value {
        let schema = Flavor::V3.reference(&(self.answer.name)());
        let content: Map<String, Value> = self
            .media
            .iter()
            .map(|media| ((*media).to_owned(), json!({"schema": schema})))
            .collect();
        json!({"get": {
            "tags": [self.tag], "description": self.description, "operationId": self.id,
            "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
        }})
    }
}

/// `rbac.authorization.k8s.io` as operations are named: `rbacAuthorization`.
fn in_camel_case(group: &str) -> String {
    let mut words = group.trim_end_matches(".k8s.io").split('.');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &capital(word))
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_is_named_by_its_group_and_version() {
        for (words, tag, id) in [
            (&["api"][..], "core", "getCoreAPIVersions"),
            (
                &["apis", "rbac.authorization.k8s.io"],
                "rbacAuthorization",
                "getRbacAuthorizationAPIGroup",
            ),
            (&["apis", "apps", "v1"], "apps_v1", "getAppsV1APIResources"),
            (&["version"], "version", "getCodeVersion"),
        ] {
            let found = Discovery::of(words).expect(id);
            assert_eq!((found.tag.as_str(), found.id.as_str()), (tag, id));
        }
        assert!(Discovery::of(&["openid", "v1", "jwks"]).is_none());
    }
}
