//! The comparison of a live copy with the desired one.
//!
//! A rendered object comes from the hub's API server, so it normally has every default already and the comparison is exact: a
//! field that it lacks and the live copy has was removed, or added by another writer, and is removed from the copy. The
//! exceptions are explicit: an API server of another version fills in or omits a default that the hub's did not, so a field
//! counts as equal to its absence, on either side, exactly if it has the default named in [`DEFAULTS`], and fields that a server
//! derives from other fields are derived on both sides. A default that was changed on the member still differs.

mod defaults;
mod derived;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::{NativeKind, json::text, native, quantity};
pub use defaults::{DEFAULTS, DefaultRow, FilledIn, QUANTITIES, Scope};

/// True if the live copy differs from `desired`, the whole rendered object after the kind's retain rule.
///
/// Not compared: `metadata` (the caller compares labels and annotations, those of other writers stay) and `status`. Compared by
/// amount: quantities. Compared exactly: all other fields, the data of ConfigMaps and Secrets above all.
///
/// Cost: O(size of the objects).
#[must_use]
pub fn differs(desired: &Value, live: &Value) -> bool {
    difference(desired, live).is_some()
}

/// The first difference between the two: a path such as `spec.template.spec.containers[].image`, for a log line or an event.
/// `None` if they are equal, in the sense of [`differs`]. The path has no value and no key of a ConfigMap's or Secret's data.
#[must_use]
pub fn difference(desired: &Value, live: &Value) -> Option<String> {
    let api_version = text(desired, &["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = text(desired, &["kind"]);
    let pod_spec = native(group, version, kind).and_then(NativeKind::pod_spec_path);
    let kind = match group {
        "" => kind.to_owned(),
        group => format!("{kind}.{group}"),
    };
    let desired = derived::completed(&kind, desired, pod_spec);
    let live = derived::completed(&kind, live, pod_spec);
    let mut comparison = Comparison::of(kind, pod_spec);
    let nothing = Map::new();
    let (ours, theirs) = (
        desired.as_object().unwrap_or(&nothing),
        live.as_object().unwrap_or(&nothing),
    );
    for key in union(ours, theirs) {
        let (desired, live) = (&desired[key], &live[key]);
        if SERVER_SET.contains(&key) {
            continue;
        }
        if USER_DATA.contains(&key) {
            if !same_data(desired, live) {
                return Some(key.to_owned());
            }
        } else if !comparison.under(key, |comparison| comparison.same(desired, live)) {
            return Some(comparison.found.unwrap_or_else(|| key.to_owned()));
        }
    }
    None
}

/// Top-level maps whose keys are the user's.
const USER_DATA: &[&str] = &["binaryData", "data", "stringData"];

/// Top-level fields that are not compared.
const SERVER_SET: &[&str] = &["apiVersion", "kind", "metadata", "status"];

fn union<'a>(left: &'a Map<String, Value>, right: &'a Map<String, Value>) -> Vec<&'a str> {
    let only_right = right.keys().filter(|key| !left.contains_key(*key));
    left.keys().chain(only_right).map(String::as_str).collect()
}

/// Compares user data: an empty map equals an absent one, and no other values do.
fn same_data(desired: &Value, live: &Value) -> bool {
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    desired == live || (is_empty(desired) && is_empty(live))
}

struct Comparison {
    /// As in [`Scope::Kind`].
    kind: String,
    /// The path of the pod spec, with a dot at the end; empty for a kind without one.
    pod_spec: String,
    path: String,
    /// The path of the innermost difference, if found.
    found: Option<String>,
}

impl Comparison {
    fn of(kind: String, pod_spec: Option<&[&str]>) -> Self {
        Self {
            kind,
            pod_spec: pod_spec
                .map(|path| format!("{}.", path.join(".")))
                .unwrap_or_default(),
            path: String::new(),
            found: None,
        }
    }

    /// Runs `compare` one level deeper.
    fn under<T>(&mut self, segment: &str, compare: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 && segment != "[]" {
            self.path.push('.');
        }
        self.path.push_str(segment);
        let result = compare(self);
        self.path.truncate(length);
        result
    }

    fn same(&mut self, desired: &Value, live: &Value) -> bool {
        if desired == live {
            return true;
        }
        let same = match (desired, live) {
            (Value::Object(a), Value::Object(b)) => union(a, b)
                .into_iter()
                .all(|key| self.same_field(key, desired, live)),
            (Value::Array(a), Value::Array(b)) if !a.is_empty() && a.len() == b.len() => {
                self.under("[]", |this| a.iter().zip(b).all(|(a, b)| this.same(a, b)))
            }
            (Value::Null, present) | (present, Value::Null) => self.same_as_absent(present),
            (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => true,
            _ => self.is_quantity() && quantity::compare(desired, live) == Some(Ordering::Equal),
        };
        if !same && self.found.is_none() {
            self.found = Some(self.path.clone());
        }
        same
    }

    fn same_field(&mut self, key: &str, desired: &Value, live: &Value) -> bool {
        self.under(key, |this| match this.default_here() {
            Some(FilledIn::ByTheServer) => true,
            Some(FilledIn::AliasOf(other)) => {
                let (desired, live) = (either(desired, key, other), either(live, key, other));
                (is_unset(desired) && is_unset(live)) || this.same(desired, live)
            }
            _ => this.same(&desired[key], &live[key]),
        })
    }

    /// True if a value that is present on one side only equals its absence.
    fn same_as_absent(&mut self, present: &Value) -> bool {
        match present {
            Value::Null => return true,
            Value::Array(list) if list.is_empty() => return true,
            _ => {}
        }
        match (self.default_here(), present) {
            (Some(FilledIn::ByTheServer), _) => true,
            (Some(FilledIn::Text(text)), Value::String(value)) => value == text,
            (Some(FilledIn::OneOf(texts)), Value::String(value)) => texts.contains(&value.as_str()),
            (Some(FilledIn::Number(number)), value) => value.as_i64() == Some(*number),
            (Some(FilledIn::Flag(flag)), Value::Bool(value)) => value == flag,
            (Some(FilledIn::ObjectOfDefaults), Value::Object(map)) => map
                .iter()
                .all(|(key, value)| self.under(key, |this| this.same_as_absent(value))),
            _ => false,
        }
    }

    fn default_here(&self) -> Option<&'static FilledIn> {
        let row = DEFAULTS.iter().find(|row| self.is_at(row.scope, row.path));
        row.map(|row| &row.default)
    }

    fn is_quantity(&self) -> bool {
        QUANTITIES.iter().any(|(scope, path)| self.is_at(*scope, path))
    }

    fn is_at(&self, scope: Scope, path: &str) -> bool {
        match scope {
            Scope::PodSpec => self.in_pod_spec().is_some_and(|here| matches(path, here)),
            Scope::Kind(kind) => kind == self.kind && matches(path, &self.path),
        }
    }

    /// The path within the pod spec, or `None`.
    fn in_pod_spec(&self) -> Option<&str> {
        if self.pod_spec.is_empty() {
            None
        } else {
            self.path.strip_prefix(&self.pod_spec)
        }
    }
}

/// The field, or its substitute.
fn either<'a>(parent: &'a Value, key: &str, other: &str) -> &'a Value {
    if is_unset(&parent[key]) {
        &parent[other]
    } else {
        &parent[key]
    }
}

/// True if a field with a substitute is unset.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value == "" || value == 0
}

/// True if a path matches the pattern: segment by segment; `*` matches any one segment, at the end any key (resources have dots
/// in their names), and `containers[]` an entry of any of a pod's lists of containers.
fn matches(pattern: &str, path: &str) -> bool {
    if let Some(parent) = pattern.strip_suffix(".*") {
        let mut ends = path.match_indices('.').map(|(dot, _)| dot);
        return ends.any(|dot| dot + 1 < path.len() && matches(parent, &path[..dot]));
    }
    let mut path = path.split('.');
    let same = pattern.split('.').all(|pattern| {
        path.next().is_some_and(|segment| {
            pattern == "*"
                || pattern == segment
                || (pattern == "containers[]"
                    && matches!(segment, "initContainers[]" | "ephemeralContainers[]"))
        })
    });
    same && path.next().is_none()
}
