//! The vocabulary of the core: the identity of an object, its observed version, and its cached metadata.
//!
//! No type here holds a payload. A [`Meta`] keeps labels and annotations without kubectl's last-applied annotation, which would
//! hold the whole content of a Secret.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;

mod str_map;

pub use str_map::{StrMap, shared_key};

/// Reads a duration: a number with the unit `ms`, `s`, `m` or `h`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let count = number.parse::<u64>().ok()?;
    count.checked_mul(millis).map(Duration::from_millis)
}

/// A shared, immutable string.
pub type Str = Arc<str>;

/// The annotation in which `kubectl apply` keeps the whole object; it is dropped when read and never propagated.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations in which tools keep whole objects, and so whole Secrets: none of them is cached, hashed or propagated.
pub const WHOLE_OBJECTS: &[&str] = &[
    LAST_APPLIED,
    "kapp.k14s.io/original",
    "kapp.k14s.io/original-diff",
    "objectset.rio.cattle.io/applied",
];

/// Milliseconds since the Unix epoch. The core never reads a clock: the caller passes the time in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Time(pub i64);

impl Time {
    /// This time plus `millis`.
    #[must_use]
    pub const fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// The Kubernetes form, whole seconds as RFC 3339.
    #[must_use]
    pub fn to_k8s(self) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
        let second = k8s_openapi::jiff::Timestamp::from_second(self.0.div_euclid(1000)).unwrap_or_default();
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(second)
    }

    /// From the Kubernetes form.
    #[must_use]
    pub fn from_k8s(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Self {
        Self(time.0.as_millisecond())
    }
}

/// Group, version and kind. Two versions of a kind are the same kind: an API server serves every object in each of its
/// versions, so comparing ignores the version. Requests use the version that the engine first observed.
#[derive(Clone, Debug)]
pub struct Gvk {
    /// API group; empty for the core group.
    pub group: Str,
    /// API version within the group.
    pub version: Str,
    /// Kind, in its singular camel-case form.
    pub kind: Str,
}

impl PartialEq for Gvk {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Gvk {}

impl PartialOrd for Gvk {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Gvk {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.group, &self.kind).cmp(&(&other.group, &other.kind))
    }
}

impl Hash for Gvk {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.group, &self.kind).hash(state);
    }
}

impl Gvk {
    /// True if this is the kind of PersistentVolumeClaims.
    #[must_use]
    pub fn is_claim(&self) -> bool {
        self.group.is_empty() && &*self.kind == "PersistentVolumeClaim"
    }

    /// Builds the kind from an `apiVersion` ("v1", "apps/v1") and a kind.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// True if this is a Namespace.
    #[must_use]
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && &*self.kind == "Namespace"
    }

    /// The `apiVersion` as it is written in a manifest.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)
    }
}

impl Serialize for Gvk {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {}", self.api_version(), self.kind))
    }
}

/// The identity of an object: shared by a template on the hub, its binding and its copies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: Str,
    /// Name.
    pub name: Str,
}

impl ResourceId {
    /// Builds an identity from its parts.
    #[must_use]
    pub fn new(gvk: Gvk, namespace: &str, name: &str) -> Self {
        Self {
            gvk,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The identity of an object; `None` without a kind or a name.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        let meta = &object["metadata"];
        let gvk = Gvk::new(object["apiVersion"].as_str()?, object["kind"].as_str()?);
        let name = meta["name"].as_str().filter(|name| !name.is_empty())?;
        Some(Self::new(
            gvk,
            meta["namespace"].as_str().unwrap_or_default(),
            name,
        ))
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.gvk.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.gvk.kind, self.namespace, self.name)
        }
    }
}

impl Serialize for ResourceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Namespace and name of an object whose kind follows from the context.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: Str,
    /// Name.
    pub name: Str,
}

impl NamespacedName {
    /// From its parts.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Serialize for NamespacedName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The cached part of an object's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The uid that the API server assigned.
    pub uid: Str,
    /// The resourceVersion as served.
    pub resource_version: Str,
    /// `metadata.generation`, for kinds that have one.
    pub generation: Option<i64>,
    /// The substitute of a generation for a kind that has a status and no generation: the interpreter's `content_number`.
    pub content: Option<i64>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp`.
    pub deleting: Option<Time>,
    /// Labels.
    pub labels: StrMap,
    /// Annotations, without [`WHOLE_OBJECTS`].
    pub annotations: StrMap,
    /// Finalizers in their order.
    pub finalizers: Vec<Str>,
}

impl Meta {
    /// Projects `object.metadata`. Absent or misshapen fields count as empty: an API server never serves them so.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let meta = &object["metadata"];
        let text = |field: &str| -> Str { meta[field].as_str().unwrap_or_default().into() };
        Self {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            generation: meta["generation"].as_i64(),
            content: None,
            created: meta["creationTimestamp"].as_str().map(parse_time),
            deleting: meta["deletionTimestamp"].as_str().map(parse_time),
            labels: strings(&meta["labels"]),
            annotations: strings(&meta["annotations"]),
            finalizers: meta["finalizers"]
                .as_array()
                .map(|all| all.iter().filter_map(Value::as_str).map(Into::into).collect())
                .unwrap_or_default(),
        }
    }

    /// A number that changes only with the object's content; `None` if only the resourceVersion shows such a change.
    #[must_use]
    pub fn content_generation(&self) -> Option<i64> {
        self.generation.or(self.content)
    }

    /// The resourceVersion as a number, to order versions of one API server (resourceVersions of one server are comparable
    /// integers, KEP-5504; a value that is not an integer counts as newest).
    #[must_use]
    pub fn revision(&self) -> u64 {
        revision(&self.resource_version)
    }

    /// True if this is the same version of the same object.
    #[must_use]
    pub fn is_same_version(&self, other: &Self) -> bool {
        self.uid == other.uid && self.resource_version == other.resource_version
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(|value| &**value)
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(|value| &**value)
    }

    /// True if the finalizer is present.
    #[must_use]
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|each| &**each == finalizer)
    }
}

/// A resourceVersion as a number; see [`Meta::revision`].
#[must_use]
pub fn revision(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or(u64::MAX)
}

/// True if a deleted object, of which this is the metadata, still exists for a while: for its finalizers, or for its grace
/// period. The response for a Pod that is deleted at once has a deletionTimestamp as well; its watch event may arrive before
/// this response.
#[must_use]
pub fn is_held(meta: &Value) -> bool {
    let finalizers = meta["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let grace = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
    !meta["deletionTimestamp"].is_null() && (finalizers || grace)
}

fn parse_time(text: &str) -> Time {
    Time(
        text.parse::<k8s_openapi::jiff::Timestamp>()
            .map_or(0, |stamp| stamp.as_millisecond()),
    )
}

fn strings(value: &Value) -> StrMap {
    let Some(map) = value.as_object() else {
        return StrMap::new();
    };
    map.iter()
        .filter(|(key, _)| !WHOLE_OBJECTS.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((shared_key(key), value.as_str()?.into())))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_applied_annotation_is_dropped_on_arrival() {
        let meta = Meta::of(&json!({"metadata": {"annotations": {LAST_APPLIED: "canary", "a": "b"}}}));
        assert!(!format!("{meta:?}").contains("canary"));
        assert_eq!(meta.annotation("a"), Some("b"));
    }

    #[test]
    fn a_deletion_timestamp_is_read_as_milliseconds() {
        let meta = Meta::of(&json!({"metadata": {"deletionTimestamp": "1970-01-01T00:00:05Z"}}));
        assert_eq!(meta.deleting, Some(Time(5000)));
    }
}
