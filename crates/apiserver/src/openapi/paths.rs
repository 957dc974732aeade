//! Paths of an OpenAPI document: operations, their parameters, and the kinds of their bodies.

use serde_json::{Map, Value, json};

use super::{
    definitions::{DELETE_OPTIONS, Definitions, Flavor, PATCH, STATUS, WATCH_EVENT, name_of},
    operations::{LIST, OPERATIONS, Operation},
    parameters::{self, Parameters},
};
use crate::{
    discovery::{self, Sub},
    kinds,
    resource::Resource,
};

/// The parts of a document that paths add to.
pub(super) struct Parts<'a> {
    pub(super) flavor: Flavor,
    pub(super) definitions: &'a mut Definitions,
    pub(super) parameters: &'a mut Parameters,
}

/// Adds the paths of a resource.
pub(super) fn add(paths: &mut Map<String, Value>, parts: &mut Parts<'_>, resource: &Resource) {
    let prefix = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let whole = Path {
        resource,
        sub: None,
        named: false,
        scoped: resource.namespaced,
        verbs: Vec::new(),
    };
    let among = |verbs: &[&'static str]| {
        let verbs = verbs.iter().copied();
        verbs.filter(|verb| resource.verbs.contains(verb)).collect()
    };
    let mut insert = |path: String, one: Path<'_>| {
        if !one.verbs.is_empty() {
            paths.insert(path, one.item(parts));
        }
    };
    let plural = &resource.plural;
    let place = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let base = format!("{prefix}{place}/{plural}");
    if resource.namespaced {
        let verbs = among(&["list"]);
        let all = Path {
            scoped: false,
            verbs,
            ..whole.clone()
        };
        insert(format!("{prefix}/{plural}"), all);
    }
    if resource.custom.is_none() && resource.verbs.contains(&"watch") {
        for (place, behind, scoped, verb) in [
            ("", "", false, "watchlist"),
            (place, "", resource.namespaced, "watchlist"),
            (place, "/{name}", resource.namespaced, "watch"),
        ] {
            let verbs = vec![verb];
            let one = Path {
                named: !behind.is_empty(),
                scoped,
                verbs,
                ..whole.clone()
            };
            insert(format!("{prefix}/watch{place}/{plural}{behind}"), one);
        }
    }
    let verbs = among(&["list", "create", "deletecollection"]);
    insert(
        base.clone(),
        Path {
            verbs,
            ..whole.clone()
        },
    );
    let verbs = among(&["get", "update", "patch", "delete"]);
    insert(
        format!("{base}/{{name}}"),
        Path {
            named: true,
            verbs,
            ..whole.clone()
        },
    );
    for &name in &resource.subresources {
        let sub = discovery::subresource(resource, name);
        let verbs = sub.verbs.to_vec();
        let one = Path {
            sub: Some((name, sub)),
            named: true,
            verbs,
            ..whole.clone()
        };
        insert(format!("{base}/{{name}}/{name}"), one);
    }
}

#[derive(Clone)]
struct Path<'a> {
    resource: &'a Resource,
    sub: Option<(&'static str, Sub)>,
    named: bool,
    scoped: bool,
    verbs: Vec<&'static str>,
}

impl Path<'_> {
    fn item(&self, parts: &mut Parts<'_>) -> Value {
        let operations: Vec<(&Operation, Vec<&str>)> = OPERATIONS
            .iter()
            .filter(|one| self.verbs.contains(&one.verb))
            .map(|one| (one, self.parameters(one, parts.parameters)))
            .collect();
        // Parameters that all operations take stand at the path.
        let is_common = |key: &&str| operations.iter().all(|(_, keys)| keys.contains(key));
        let common = operations
            .first()
            .into_iter()
            .flat_map(|(_, keys)| keys)
            .copied()
            .filter(is_common);
        let mut common: Vec<&str> = common.collect();
        if self.scoped {
            common.push("namespace");
        }
        let mut item = Map::new();
        for (operation, keys) in &operations {
            let own = keys.iter().copied().filter(|key| !common.contains(key)).collect();
            item.insert(operation.method.to_owned(), self.operation(parts, operation, own));
        }
        let mut all = Vec::new();
        if self.named {
            all.push(("name", parts.parameters.object(self.kind())));
        }
        all.extend(
            common
                .into_iter()
                .map(|key| (parameters::name(key), parts.parameters.get(key))),
        );
        item.insert("parameters".to_owned(), sorted(all));
        Value::Object(item)
    }

    /// The kind of the bodies.
    fn kind(&self) -> &str {
        self.sub
            .as_ref()
            .map_or(&self.resource.kind, |(_, sub)| &sub.kind)
    }

    fn sub(&self) -> &'static str {
        self.sub.as_ref().map_or("", |(name, _)| *name)
    }

    /// True if requests are handed on to a node or a pod.
    fn is_connect(&self) -> bool {
        matches!(self.sub(), "attach" | "exec" | "portforward" | "proxy")
    }

    /// The keys of the parameters of an operation.
    fn parameters(&self, operation: &Operation, table: &Parameters) -> Vec<&'static str> {
        if self.is_connect() {
            let leading = if self.sub() == "proxy" {
                self.resource.kind.clone() + "."
            } else {
                String::new()
            };
            return table.special(&format!("{leading}{}.", self.sub())).collect();
        }
        let mut keys = operation.parameters.to_vec();
        match operation.verb {
            "deletecollection" => {
                keys.extend(
                    LIST.iter()
                        .filter(|key| !["allowWatchBookmarks", "watch"].contains(*key)),
                );
            }
            "get" if self.sub() == "log" => keys.extend(table.special("log.")),
            _ => {}
        }
        keys.push("pretty");
        keys
    }

    fn operation(&self, parts: &mut Parts<'_>, operation: &Operation, keys: Vec<&str>) -> Value {
        let resource = self.resource;
        let group = match resource.group.as_str() {
            "" => "core".to_owned(),
            group => in_camel_case(group),
        };
        let (group_of_kind, version_of_kind) = match &self.sub {
            Some((_, sub)) if !sub.group.is_empty() => (sub.group, sub.version),
            _ => (resource.group.as_str(), resource.version.as_str()),
        };
        let (action, id, text) = self.words(operation);
        let when = |condition: bool, word: &'static str| if condition { word } else { "" };
        let is_list = matches!(operation.verb, "list" | "watchlist");
        let is_across = is_list && resource.namespaced && !self.scoped;
        let id = [
            id,
            capital(&group),
            capital(&resource.version),
            when(operation.verb == "deletecollection", "Collection").to_owned(),
            capital(when(self.is_connect(), operation.method)),
            when(self.scoped, "Namespaced").to_owned(),
            resource.kind.clone(),
            when(operation.verb == "watchlist", "List").to_owned(),
            capital(self.sub()),
            when(is_across, "ForAllNamespaces").to_owned(),
        ]
        .concat();
        let mut value = json!({
            "tags": [format!("{group}_{}", resource.version)], "description": text, "operationId": id,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": group_of_kind, "version": version_of_kind, "kind": self.kind()},
        });
        let (consumes, produces) = self.media(operation);
        let mut parameters: Vec<(&str, Value)> = keys
            .into_iter()
            .map(|key| (parameters::name(key), parts.parameters.get(key)))
            .collect();
        if let Some((body, is_required)) = self.body(operation) {
            let reference = parts.definitions.reference(&body);
            let is_general = [DELETE_OPTIONS, PATCH].contains(&body.as_str());
            if parts.flavor == Flavor::V2 {
                let body = parts.parameters.body(&reference, is_required, is_general);
                parameters.push(("body", body));
            } else {
                value["requestBody"] = json!({"content": content(&consumes, &reference)});
                if is_required {
                    value["requestBody"]["required"] = true.into();
                }
            }
        }
        if !parameters.is_empty() {
            value["parameters"] = sorted(parameters);
        }
        let schema = match self.answer(operation) {
            Some(name) => parts.definitions.reference(&name),
            None => json!({"type": "string"}),
        };
        let mut responses = json!({"401": {"description": "Unauthorized"}});
        for (code, text) in [("200", "OK"), ("201", "Created"), ("202", "Accepted")] {
            if operation.codes.contains(&code) && (code == "200" || !self.is_connect()) {
                responses[code] = match parts.flavor {
                    Flavor::V2 => json!({"description": text, "schema": schema}),
                    Flavor::V3 => json!({"description": text, "content": content(&produces, &schema)}),
                };
            }
        }
        value["responses"] = responses;
        if parts.flavor == Flavor::V2 {
            value["consumes"] = consumes.into();
            value["produces"] = produces.into();
            value["schemes"] = json!(["https"]);
        }
        value
    }

    /// The action, the first word of the name, and the description.
    fn words(&self, operation: &Operation) -> (&'static str, String, String) {
        let kind = &self.resource.kind;
        let sub = self.sub();
        if self.is_connect() {
            let method = operation.method.to_uppercase();
            let text = format!("connect {method} requests to {sub} of {kind}");
            return ("connect", "connect".to_owned(), text);
        }
        let of = if sub.is_empty() {
            String::new()
        } else {
            format!("{sub} of ")
        };
        let text = operation
            .text
            .replace("{of}", &of)
            .replace("{a}", article(kind))
            .replace("{kind}", kind);
        let is_custom = self.resource.custom.is_some();
        let text = if is_custom {
            text.replace("list or watch", "list")
        } else {
            text
        };
        (operation.action, operation.id.to_owned(), text)
    }

    /// The media types of requests and of answers.
    fn media(&self, operation: &Operation) -> (Vec<&'static str>, Vec<&'static str>) {
        const CUSTOM: [&str; 2] = ["application/json", "application/yaml"];
        let is_custom = self.resource.custom.is_some();
        let consumes = match operation.verb {
            "patch" if !self.is_connect() => {
                let all = [
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/strategic-merge-patch+json",
                    "application/apply-patch+yaml",
                ];
                all.into_iter()
                    .filter(|one| !(is_custom && one.contains("strategic")))
                    .collect()
            }
            _ if is_custom => CUSTOM.to_vec(),
            _ => vec!["*/*"],
        };
        if self.is_connect() {
            return (consumes, vec!["*/*"]);
        }
        let mut produces = CUSTOM.to_vec();
        if !is_custom {
            produces.push("application/vnd.kubernetes.protobuf");
        }
        if self.sub() == "log" {
            produces.insert(0, "text/plain");
        }
        if matches!(operation.verb, "list" | "watchlist" | "watch") && !is_custom {
            produces.push("application/json;stream=watch");
            produces.push("application/vnd.kubernetes.protobuf;stream=watch");
        }
        (consumes, produces)
    }

    /// The definition of the body of requests; true if there must be one.
    fn body(&self, operation: &Operation) -> Option<(String, bool)> {
        if self.is_connect() {
            return None;
        }
        match operation.verb {
            "create" | "update" => self.definition().map(|name| (name, true)),
            "patch" => Some((PATCH.to_owned(), true)),
            "delete" | "deletecollection" => Some((DELETE_OPTIONS.to_owned(), false)),
            _ => None,
        }
    }

    /// The definition of the answer; `None` for text.
    fn answer(&self, operation: &Operation) -> Option<String> {
        if self.is_connect() || self.sub() == "log" {
            return None;
        }
        match operation.verb {
            "list" => self.definition().map(|name| name + "List"),
            "watchlist" | "watch" => Some(WATCH_EVENT.to_owned()),
            "delete" if self.resource.rules.delete_returns_object() => self.definition(),
            "delete" | "deletecollection" => Some(STATUS.to_owned()),
            _ => self.definition(),
        }
    }

    /// The definition of the kind.
    fn definition(&self) -> Option<String> {
        match &self.sub {
            Some((_, sub)) if sub.kind != self.resource.kind => {
                let (group, version) = match sub.group {
                    "" => (self.resource.group.as_str(), self.resource.version.as_str()),
                    group => (group, sub.version),
                };
                kinds::find(group, version, &sub.kind).map(|def| (def.root.name)().into_owned())
            }
            _ => Some(name_of(self.resource)),
        }
    }
}

/// Parameters by their names.
fn sorted(mut parameters: Vec<(&str, Value)>) -> Value {
    parameters.sort_by_key(|(name, _)| *name);
    parameters.into_iter().map(|(_, value)| value).collect()
}

pub(super) fn content(media: &[&str], schema: &Value) -> Map<String, Value> {
    let one = |media: &&str| ((*media).to_owned(), json!({"schema": schema}));
    media.iter().map(one).collect()
}

/// The article before a kind; names that are plurals have none.
fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        ""
    } else if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
        "an "
    } else {
        "a "
    }
}

/// `rbac.authorization.k8s.io` as operations are named: `rbacAuthorization`.
pub(super) fn in_camel_case(group: &str) -> String {
    let mut words = group.trim_end_matches(".k8s.io").split('.');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &capital(word))
}

pub(super) fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::{super::operations::WRITE, *};

    fn made(flavor: Flavor, group: &str, plural: &str) -> Map<String, Value> {
        let kinds = kinds::builtin();
        let resource = kinds.find(group, "v1", plural).expect("served");
        let mut paths = Map::new();
        let mut parts = Parts {
            flavor,
            definitions: &mut Definitions::new(flavor, Vec::new()),
            parameters: &mut Parameters::new(flavor),
        };
        add(&mut paths, &mut parts, resource);
        paths
    }

    #[test]
    fn operations_are_named_and_described_as_in_kubernetes() {
        let deployments = "/apis/apps/v1/namespaces/{namespace}/deployments";
        for (path, method, id, text, codes) in [
            (
                deployments,
                "get",
                "listAppsV1NamespacedDeployment",
                "list or watch objects of kind Deployment",
                2,
            ),
            (
                deployments,
                "post",
                "createAppsV1NamespacedDeployment",
                "create a Deployment",
                4,
            ),
            (
                deployments,
                "delete",
                "deleteAppsV1CollectionNamespacedDeployment",
                "delete collection of Deployment",
                2,
            ),
            (
                "/apis/apps/v1/deployments",
                "get",
                "listAppsV1DeploymentForAllNamespaces",
                "list or watch objects of kind Deployment",
                2,
            ),
            (
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
                "patch",
                "patchAppsV1NamespacedDeploymentScale",
                "partially update scale of the specified Deployment",
                3,
            ),
            (
                "/apis/apps/v1/watch/deployments",
                "get",
                "watchAppsV1DeploymentListForAllNamespaces",
                "watch individual changes to a list of Deployment. deprecated: use the 'watch' parameter with a list operation instead.",
                2,
            ),
        ] {
            for flavor in [Flavor::V2, Flavor::V3] {
                let operation = &made(flavor, "apps", "deployments")[path][method];
                assert_eq!(operation["operationId"], id);
                assert_eq!(operation["description"], text);
                assert_eq!(
                    operation["responses"].as_object().map(Map::len),
                    Some(codes),
                    "{id}"
                );
            }
        }
        let pods = made(Flavor::V3, "", "pods");
        for (sub, method, id, text) in [
            (
                "eviction",
                "post",
                "createCoreV1NamespacedPodEviction",
                "create eviction of a Pod",
            ),
            (
                "log",
                "get",
                "readCoreV1NamespacedPodLog",
                "read log of the specified Pod",
            ),
            (
                "exec",
                "post",
                "connectCoreV1PostNamespacedPodExec",
                "connect POST requests to exec of Pod",
            ),
        ] {
            let operation = &pods[&format!("/api/v1/namespaces/{{namespace}}/pods/{{name}}/{sub}")][method];
            assert_eq!(operation["operationId"], id);
            assert_eq!(operation["description"], text);
        }
    }

    #[test]
    fn parameters_that_all_operations_take_stand_at_the_path() {
        let names = |value: &Value| -> Vec<String> {
            let all = value.as_array().into_iter().flatten();
            all.map(|one| one["name"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let pods = made(Flavor::V3, "", "pods");
        let one = &pods["/api/v1/namespaces/{namespace}/pods/{name}"];
        assert_eq!(names(&one["parameters"]), ["name", "namespace", "pretty"]);
        assert_eq!(names(&one["put"]["parameters"]), WRITE);
        let eviction = &pods["/api/v1/namespaces/{namespace}/pods/{name}/eviction"];
        let expected = [
            "dryRun",
            "fieldManager",
            "fieldValidation",
            "name",
            "namespace",
            "pretty",
        ];
        assert_eq!(names(&eviction["parameters"]), expected);
        assert_eq!(eviction["post"]["parameters"], Value::Null);
        let exec = &pods["/api/v1/namespaces/{namespace}/pods/{name}/exec"];
        assert_eq!(names(&exec["parameters"])[..2], ["command", "container"]);
    }

    #[test]
    fn bodies_and_answers_name_their_definitions() {
        let pods = made(Flavor::V3, "", "pods");
        let maps = made(Flavor::V3, "", "configmaps");
        let answer = |paths: &Map<String, Value>, plural: &str| {
            let path = format!("/api/v1/namespaces/{{namespace}}/{plural}/{{name}}");
            paths[&path]["delete"]["responses"]["200"]["content"]["application/json"]["schema"].clone()
        };
        assert_eq!(
            answer(&pods, "pods"),
            Flavor::V3.reference("io.k8s.api.core.v1.Pod")
        );
        assert_eq!(answer(&maps, "configmaps"), Flavor::V3.reference(STATUS));
        let eviction = &pods["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]["requestBody"];
        let expected = json!({"content": {"*/*": {"schema": Flavor::V3.reference("io.k8s.api.policy.v1.Eviction")}}, "required": true});
        assert_eq!(*eviction, expected);
    }

    #[test]
    fn kinds_take_the_article_of_their_first_letter_and_plurals_none() {
        for (kind, expected) in [
            ("Pod", "a "),
            ("Ingress", "an "),
            ("Endpoints", ""),
            ("StorageClass", "a "),
        ] {
            assert_eq!(article(kind), expected, "{kind}");
        }
    }
}
