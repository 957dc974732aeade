//! The subject of admission: a write, and the rules of policies and webhooks that match it.

use serde_json::{Value, json};

use crate::{
    admission::Context,
    auth::User,
    kinds::workloads::selects,
    object::{
        Object, metadata,
        tree::{at, below, list, text},
    },
    resource::Resource,
};

/// The group whose objects no policy and no webhook may judge.
const OWN_GROUP: &str = "admissionregistration.k8s.io";

/// A write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The cluster.
    pub(crate) cluster: &'a dyn Context,
    /// The resource of the object.
    pub(crate) resource: &'a Resource,
    /// Through which subresource; empty for the object.
    pub(crate) subresource: &'a str,
    /// CREATE, UPDATE or DELETE.
    pub(crate) operation: &'static str,
    /// The namespace; empty for a cluster-scoped object.
    pub(crate) namespace: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// The user of the request.
    pub(crate) user: &'a User,
    /// True for a dry run.
    pub(crate) dry_run: bool,
}

impl Request<'_> {
    /// True if policies and webhooks apply to it.
    pub(super) fn is_open(&self) -> bool {
        self.resource.group != OWN_GROUP
    }

    /// True if a list of rules with operations names it. An empty list names nothing.
    pub(super) fn is_among(&self, parent: &Object, rules: &str) -> bool {
        list(parent, rules)
            .iter()
            .filter_map(Value::as_object)
            .any(|rule| self.is_named(rule))
    }

    /// True if `matchConstraints` or `matchResources` includes it; without rules (bindings) every resource is.
    pub(super) fn is_matched(&self, matching: &Object, new: Option<&Object>, old: Option<&Object>) -> bool {
        let among = list(matching, "resourceRules").is_empty() || self.is_among(matching, "resourceRules");
        among && !self.is_among(matching, "excludeResourceRules") && self.is_selected(matching, new, old)
    }

    /// True if the selectors of namespaces and objects select it.
    pub(super) fn is_selected(&self, matching: &Object, new: Option<&Object>, old: Option<&Object>) -> bool {
        let labels = |object: &Object| below(metadata(object), "labels").clone();
        let selector = below(matching, "namespaceSelector");
        if !selector.is_empty() {
            let is_namespace = self.resource.group.is_empty() && self.resource.kind == "Namespace";
            let of = if is_namespace {
                new.or(old).map(labels)
            } else if self.resource.namespaced {
                Some(
                    self.namespace_object()
                        .map_or_else(Object::new, |object| labels(&object)),
                )
            } else {
                None
            };
            if of.is_some_and(|labels| !selects(Some(selector), &labels)) {
                return false;
            }
        }
        let selector = below(matching, "objectSelector");
        selector.is_empty()
            || [new, old]
                .into_iter()
                .flatten()
                .any(|object| selects(Some(selector), &labels(object)))
    }

    /// The namespace that it is in.
    pub(super) fn namespace_object(&self) -> Option<Object> {
        self.cluster.get("namespaces", self.namespace)
    }

    /// The variable `request`.
    pub(super) fn to_value(self) -> Value {
        let resource = self.resource;
        let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
        let named =
            json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
        json!({
            "kind": kind, "requestKind": kind, "resource": named, "requestResource": named,
            "subResource": self.subresource, "requestSubResource": self.subresource,
            "name": self.name, "namespace": self.namespace, "operation": self.operation, "dryRun": self.dry_run,
            "userInfo": {"username": self.user.name, "uid": self.user.uid, "groups": self.user.groups,
                "extra": self.user.extra},
        })
    }

    /// The same write as if it were through another resource.
    pub(super) fn as_resource<'a>(&'a self, resource: &'a Resource) -> Request<'a> {
        Request { resource, ..*self }
    }

    fn is_named(&self, rule: &Object) -> bool {
        let has = |key: &str, wanted: &str| {
            list(rule, key)
                .iter()
                .any(|value| value == "*" || value == wanted)
        };
        let names = list(rule, "resourceNames");
        let scope = match text(rule, "scope") {
            "Namespaced" => self.resource.namespaced,
            "Cluster" => !self.resource.namespaced,
            _ => true,
        };
        scope
            && has("operations", self.operation)
            && has("apiGroups", &self.resource.group)
            && has("apiVersions", &self.resource.version)
            && (names.is_empty() || names.iter().any(|name| name == self.name))
            && list(rule, "resources")
                .iter()
                .filter_map(Value::as_str)
                .any(|pattern| self.is_resource(pattern))
    }

    /// `pods`, `pods/*`, `*/scale`, `*` (no subresources), `*/*`.
    fn is_resource(&self, pattern: &str) -> bool {
        let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
        (resource == "*" || resource == self.resource.plural)
            && (subresource == self.subresource || subresource == "*")
    }
}

/// Objects of a collection of cluster-scoped ones, in order of their names.
pub(super) fn all(cluster: &dyn Context, collection: &str) -> Vec<Object> {
    cluster.list(&format!("{OWN_GROUP}/{collection}"), "")
}

/// The spec of a policy or binding.
pub(super) fn spec(object: &Object) -> &Object {
    at(object, &["spec"])
}
