//! Creates, updates or deletes one object and reports the result, in kubectl's words.

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::Value;

use crate::{
    connect::{explain, is_not_found, missing_right, within},
    lists::pages,
};

/// A kind that a command reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Group and version as written in a manifest.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// The resource in URLs.
    pub plural: &'static str,
    /// True if its objects have a namespace.
    pub namespaced: bool,
}

/// All kinds that a command reads or writes.
pub const KINDS: &[Kind] = &[
    CLUSTER,
    CLUSTER_RESOURCE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    RESOURCE_BINDING,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOKS,
];

/// A member cluster.
pub const CLUSTER: Kind = cluster_scoped("cluster.karmada.io/v1alpha1", "Cluster", "clusters");
/// The binding of a cluster-scoped template.
pub const CLUSTER_RESOURCE_BINDING: Kind = cluster_scoped(
    "work.karmada.io/v1alpha2",
    "ClusterResourceBinding",
    "clusterresourcebindings",
);
/// A set of rights.
pub const CLUSTER_ROLE: Kind = cluster_scoped("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");
/// A grant of rights to an account.
pub const CLUSTER_ROLE_BINDING: Kind = cluster_scoped(
    "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding",
    "clusterrolebindings",
);
/// Settings.
pub const CONFIG_MAP: Kind = namespaced("v1", "ConfigMap", "configmaps");
/// A definition of a kind.
pub const CRD: Kind = cluster_scoped(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
);
/// A workload.
pub const DEPLOYMENT: Kind = namespaced("apps/v1", "Deployment", "deployments");
/// Webhooks that set defaults.
pub const MUTATING_WEBHOOKS: Kind = cluster_scoped(
    "admissionregistration.k8s.io/v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
);
/// A namespace.
pub const NAMESPACE: Kind = cluster_scoped("v1", "Namespace", "namespaces");
/// The binding of a namespaced template.
pub const RESOURCE_BINDING: Kind =
    namespaced("work.karmada.io/v1alpha2", "ResourceBinding", "resourcebindings");
/// A set of rights in a namespace.
pub const ROLE: Kind = namespaced("rbac.authorization.k8s.io/v1", "Role", "roles");
/// A grant of rights in a namespace to an account.
pub const ROLE_BINDING: Kind = namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings");
/// A Secret.
pub const SECRET: Kind = namespaced("v1", "Secret", "secrets");
/// An identity.
pub const SERVICE_ACCOUNT: Kind = namespaced("v1", "ServiceAccount", "serviceaccounts");
/// Webhooks that validate.
pub const VALIDATING_WEBHOOKS: Kind = cluster_scoped(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
);

const fn cluster_scoped(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        api_version,
        kind,
        plural,
        namespaced: false,
    }
}

const fn namespaced(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        api_version,
        kind,
        plural,
        namespaced: true,
    }
}

impl Kind {
    /// `kind.group` in lower case, as kubectl writes it.
    #[must_use]
    pub fn label(&self) -> String {
        label(self.api_version, self.kind)
    }

    /// The kind in the form of the client library.
    #[must_use]
    pub fn resource(&self) -> ApiResource {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: self.api_version.to_owned(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// `kind.group` in lower case, as kubectl writes it.
#[must_use]
pub fn label(api_version: &str, kind: &str) -> String {
    let kind = kind.to_lowercase();
    match api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}"),
        None => kind,
    }
}

/// The field manager of our writes.
pub(crate) const FIELD_MANAGER: &str = "entourage";

/// The parameters of a create or replace.
#[must_use]
pub fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// The parameters of a patch.
#[must_use]
pub fn patch() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// A server to write to, and the output of the results.
pub struct Target<'a> {
    /// The server.
    pub client: Client,
    /// Its name in the output: `hub`, or `member`.
    pub place: &'static str,
    /// True to write nothing and only report what would be done.
    pub dry_run: bool,
    /// The output.
    pub out: &'a mut (dyn Write + Send),
}

impl Target<'_> {
    /// The objects of a kind in a namespace (ignored for a cluster-scoped kind).
    #[must_use]
    pub fn api(&self, kind: Kind, namespace: &str) -> Api<DynamicObject> {
        if kind.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
        } else {
            Api::all_with(self.client.clone(), &kind.resource())
        }
    }

    /// All objects of a kind, in all namespaces.
    ///
    /// # Errors
    /// The server's; in particular 404 if it does not serve the kind.
    pub async fn list(&self, kind: Kind) -> kube::Result<Vec<DynamicObject>> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind.resource());
        pages(&api, &ListParams::default()).await
    }

    /// One object, or `None` if it is not found.
    ///
    /// # Errors
    /// The object that could not be read, and the cause.
    pub async fn get(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<DynamicObject>> {
        let read = within(self.api(kind, namespace).get_opt(name)).await;
        read.map_err(explain)
            .with_context(|| format!("cannot read {}/{name} on the {}", kind.label(), self.place))
    }

    /// Makes the object contain at least the fields of `desired`: it is created if missing, patched if a field differs, else
    /// not changed. Fields that `desired` does not name are kept, fields that are null in it are removed. Returns the resulting
    /// object.
    ///
    /// # Errors
    /// The object that could not be read or written; for a Secret never with the server's free text, which may quote values.
    pub async fn ensure(&mut self, kind: Kind, desired: Value) -> Result<DynamicObject> {
        let text = |pointer: &str| {
            desired
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let object: Option<DynamicObject> = serde_json::from_value(without_nulls(&desired)).ok();
        // serde's own message could quote a value.
        let object = object.with_context(|| format!("{} {name} is malformed", kind.kind))?;
        let api = self.api(kind, &namespace);
        let live = self.get(kind, &namespace, &name).await?;
        let (verb, answer) = match live {
            None => {
                let post = post();
                (
                    "created",
                    if self.dry_run {
                        Ok(object)
                    } else {
                        within(api.create(&post, &object)).await
                    },
                )
            }
            Some(live) => {
                let before = serde_json::to_value(&live).unwrap_or_default();
                if covers(&before, &desired) {
                    ("unchanged", Ok(live))
                } else if self.dry_run {
                    ("configured", Ok(live))
                } else {
                    let patch = Patch::Merge(&desired);
                    (
                        "configured",
                        within(api.patch(&name, &crate::apply::patch(), &patch)).await,
                    )
                }
            }
        };
        let answer = answer
            .map_err(|error| {
                if kind == SECRET {
                    without_values(error)
                } else {
                    explain(error)
                }
            })
            .with_context(|| format!("cannot write {}/{name} on the {}", kind.label(), self.place))?;
        self.say(kind, &name, verb)?;
        Ok(answer)
    }

    /// Deletes an object; reports that, or that it was not found.
    ///
    /// # Errors
    /// The server's, except 404.
    pub async fn delete(&mut self, kind: Kind, namespace: &str, name: &str) -> Result<()> {
        let api = self.api(kind, namespace);
        let answer = if self.dry_run {
            within(api.get(name)).await.map(drop)
        } else {
            within(api.delete(name, &DeleteParams::background()))
                .await
                .map(drop)
        };
        match answer {
            Ok(()) => self.say(kind, name, "deleted"),
            Err(error) if is_not_found(&error) => self.say(kind, name, "not found"),
            Err(error) => Err(explain(error))
                .with_context(|| format!("cannot delete {}/{name} on the {}", kind.label(), self.place)),
        }
    }

    /// Writes one line about an object.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn say(&mut self, kind: Kind, name: &str, what: &str) -> Result<()> {
        let dry = if self.dry_run { " (dry run)" } else { "" };
        writeln!(self.out, "{}: {}/{name} {what}{dry}", self.place, kind.label())
            .context("cannot write to the terminal")
    }
}

/// Ensures that the namespace called `name` exists.
///
/// # Errors
/// As [`Target::ensure`]; also if the namespace is being deleted.
pub async fn ensure_namespace(target: &mut Target<'_>, name: &str) -> Result<()> {
    let desired = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let namespace = target.ensure(NAMESPACE, desired).await?;
    if namespace.metadata.deletion_timestamp.is_some() {
        bail!(
            "the namespace {name} of the {} is being deleted; try again when it is gone",
            target.place
        );
    }
    Ok(())
}

/// True if a merge patch of `desired` would not change `live`.
pub(crate) fn covers(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            desired.iter().all(|(key, wanted)| match live.get(key) {
                Some(value) => covers(value, wanted),
                None => is_nothing(wanted),
            })
        }
        (live, desired) => live == desired,
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(key, value)| (key.clone(), without_nulls(value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// True for values that a server omits, or a merge patch removes: null, false, empty lists, and maps that contain only such
/// values.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        other => other.is_null() || *other == Value::Bool(false),
    }
}

/// An error about a Secret: the missing right, or the reason and the fields, never the server's free text.
pub(crate) fn without_values(error: kube::Error) -> anyhow::Error {
    if let Some(right) = missing_right(&error) {
        return anyhow::anyhow!("{right}");
    }
    match error {
        kube::Error::Api(status) => {
            let causes = status
                .details
                .as_ref()
                .map(|details| details.causes.as_slice())
                .unwrap_or_default();
            let fields: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
            let text = format!(
                "the server answered {} {} {}",
                status.code,
                status.reason,
                fields.join(", ")
            );
            anyhow::anyhow!("{}", text.trim_end())
        }
        other => explain(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_covers_what_it_holds_and_what_a_server_leaves_out() {
        let live = json!({"metadata": {"labels": {"a": "b"}, "uid": "1"}, "rules": [{"verbs": ["get"]}]});
        for same in [
            json!({"metadata": {"labels": {"a": "b"}}}),
            json!({"metadata": {"annotations": {}}, "secrets": [], "flag": false}),
            json!({"metadata": {"annotations": {"gone": null}}}),
            json!({"rules": [{"verbs": ["get"]}]}),
        ] {
            assert!(covers(&live, &same), "{same}");
        }
        for other in [
            json!({"metadata": {"labels": {"a": "c"}}}),
            json!({"metadata": {"labels": {"x": "y"}}}),
            json!({"rules": [{"verbs": ["get", "list"]}]}),
            json!({"rules": []}),
            json!({"flag": true}),
            json!({"metadata": {"annotations": {"new": "x"}, "uid": null}}),
        ] {
            assert!(!covers(&live, &other), "{other}");
        }
    }

    #[test]
    fn an_error_about_a_secret_quotes_no_value() {
        let status = serde_json::from_value(json!({
            "code": 422, "reason": "Invalid", "message": "data: Invalid value: \"canary\"",
            "details": {"causes": [{"field": "data[token]", "message": "Invalid value: canary", "reason": "x"}]}
        }));
        let error = format!("{:#}", without_values(kube::Error::Api(status.unwrap())));
        assert!(
            error.contains("422 Invalid data[token]") && !error.contains("canary"),
            "{error}"
        );
        let right =
            "secrets \"login\" is forbidden: User \"jane\" cannot get resource \"secrets\" in API group \"\"";
        for (message, expected) in [
            (right, right),
            (
                "admission webhook \"x\" denied the request: canary",
                "the server answered 403 Forbidden",
            ),
        ] {
            let status =
                serde_json::from_value(json!({"code": 403, "reason": "Forbidden", "message": message}));
            let error = format!("{:#}", without_values(kube::Error::Api(status.unwrap())));
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn kinds_are_labelled_as_kubectl_does() {
        assert_eq!(SECRET.label(), "secret");
        assert_eq!(CLUSTER.label(), "cluster.cluster.karmada.io");
        let mut names: Vec<_> = KINDS.iter().map(Kind::label).collect();
        names.dedup();
        assert_eq!(names.len(), KINDS.len());
    }
}
