//! Whether a live copy has to be written again.
//!
//! A rendered object comes from the hub's API server, so it normally has every default already and the comparison
//! is exact: a field that it lacks and the live copy has was removed, or added by a stranger, and has to go. The
//! exceptions are explicit: an API server of another version fills in or leaves out a default that the hub's did
//! not, so a field counts as equal to its absence, on either side, exactly when it holds the default named in
//! [`DEFAULTS`]. A default that somebody changed on the member still differs.

mod defaults;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::{NativeKind, json::text, native, quantity};
pub use defaults::{DEFAULTS, DefaultRow, FilledIn, QUANTITIES, Scope};

/// Whether the live copy differs from `desired`, the whole rendered object after the kind's retain rule.
///
/// Not compared: `metadata` (the caller compares labels and annotations, strangers' stay) and `status`.
/// Compared by amount: quantities. Compared exactly: everything else, the data of ConfigMaps and Secrets above all.
///
/// Cost: O(size of the objects).
#[must_use]
pub fn differs(desired: &Value, live: &Value) -> bool {
    difference(desired, live).is_some()
}

/// Where the two differ first: a path such as `spec.template.spec.containers[].image`, for a log line or an event.
/// `None` when they do not, in the sense of [`differs`]. The path holds no value and no key of a ConfigMap's or Secret's
/// data.
#[must_use]
pub fn difference(desired: &Value, live: &Value) -> Option<String> {
    let (group, version) = match text(desired, &["apiVersion"]).split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", text(desired, &["apiVersion"])),
    };
    let native = native(group, version, text(desired, &["kind"]));
    let mut comparison = Comparison::of(native);
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

/// User data: an empty map is the same as none, nothing else is.
fn same_data(desired: &Value, live: &Value) -> bool {
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
    desired == live || (is_empty(desired) && is_empty(live))
}

struct Comparison {
    kind: &'static str,
    /// Where the pod spec starts, with a dot at the end; empty for a kind without one.
    pod_spec: String,
    path: String,
    /// The path of the innermost difference, once there is one.
    found: Option<String>,
}

impl Comparison {
    fn of(native: Option<&dyn NativeKind>) -> Self {
        let pod_spec = native.and_then(NativeKind::pod_spec_path);
        Self {
            kind: native.map_or("", |native| native.gvk().kind),
            pod_spec: pod_spec
                .map(|path| format!("{}.", path.join(".")))
                .unwrap_or_default(),
            path: String::new(),
            found: None,
        }
    }

    /// Runs `compare` one step further down.
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
                let either = |parent: &Value| {
                    let name = parent[key].as_str().filter(|name| !name.is_empty());
                    name.or_else(|| parent[other].as_str())
                        .unwrap_or_default()
                        .to_owned()
                };
                this.same(&Value::String(either(desired)), &Value::String(either(live)))
            }
            _ => this.same(&desired[key], &live[key]),
        })
    }

    /// Whether what is present on one side only is what its absence means.
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
        let rows = DEFAULTS.iter().filter(|row| match row.scope {
            Scope::PodSpec => self.in_pod_spec().is_some_and(|path| matches(row.path, path)),
            Scope::Kind(kind) => kind == self.kind && matches(row.path, &self.path),
        });
        rows.map(|row| &row.default).next()
    }

    fn is_quantity(&self) -> bool {
        QUANTITIES.iter().any(|pattern| {
            self.path
                .match_indices('.')
                .map(|(dot, _)| &self.path[dot + 1..])
                .any(|tail| matches(pattern, tail))
        })
    }

    /// The path from the pod spec on, if it lies there.
    fn in_pod_spec(&self) -> Option<&str> {
        if self.pod_spec.is_empty() {
            None
        } else {
            self.path.strip_prefix(&self.pod_spec)
        }
    }
}

/// Whether a path is the pattern's: segment by segment; `*` stands for any one segment, and `containers[]` for an
/// entry of any of a pod's lists of containers.
fn matches(pattern: &str, path: &str) -> bool {
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
