//! Comparison of two end states without the values that differ between any two runs: uids, versions, times, permanent ids.
//!
//! Versions and times are masked. An id (a UUID, at any path) is replaced by the path of its first occurrence, so that two
//! states are equal only if their ids also refer to each other in the same way.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

/// An end state: every object under `server Kind namespace/name`.
pub type State = BTreeMap<String, Value>;

/// Fields whose value is a version, at any path. `source` and `entourage.dev/content` are versions of a template: its uid, its
/// generation and a hash of its labels and annotations, which include a permanent id.
const VERSIONS: &[&str] = &[
    "entourage.dev/content",
    "generation",
    "observedGeneration",
    "resourceVersion",
    "resourcetemplate.karmada.io/generation",
    "schedulerObservedGeneration",
    "source",
];

/// Fields of metadata that are ignored.
const DROPPED: &[&str] = &["managedFields", "selfLink"];

/// Kinds whose values are not printed.
const SILENT: &[&str] = &[" Secret ", " ConfigMap "];

/// The length of a UUID.
const UUID: usize = 36;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The object.
    pub object: String,
    /// The path in it; empty if the whole object is missing on one side.
    pub path: String,
    /// The value in the first state, shortened.
    pub left: Option<String>,
    /// The value in the second state, shortened.
    pub right: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".into());
        write!(
            f,
            "{}{}: {} became {}",
            self.object,
            self.path,
            side(&self.left),
            side(&self.right)
        )
    }
}

/// All differences between two states, sorted by object and path.
#[must_use]
pub fn compare(left: &State, right: &State) -> Vec<Difference> {
    let (left, right) = (masked(left), masked(right));
    let mut found = Vec::new();
    for object in left
        .keys()
        .chain(right.keys().filter(|key| !left.contains_key(*key)))
    {
        walk(
            object,
            &mut String::new(),
            left.get(object),
            right.get(object),
            &mut found,
        );
    }
    found.sort_by(|a, b| (&a.object, &a.path).cmp(&(&b.object, &b.path)));
    found
}

/// The state without the values that differ between any two runs.
#[must_use]
pub fn masked(state: &State) -> State {
    let plain: State = state
        .iter()
        .map(|(key, value)| (key.clone(), plain(value)))
        .collect();
    let mut names = BTreeMap::new();
    for (key, value) in &plain {
        name_ids(value, key, &mut names);
    }
    plain
        .iter()
        .map(|(key, value)| (key.clone(), with_names(value, &names)))
        .collect()
}

/// Masks versions and times, and parses JSON in annotations so that it is masked too.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !DROPPED.contains(&key.as_str()));
            let masked = kept.map(|(key, value)| {
                let version = VERSIONS.contains(&key.as_str()) && !value.is_object() && !value.is_array();
                (
                    key.clone(),
                    if version {
                        Value::from("<version>")
                    } else {
                        plain(value)
                    },
                )
            });
            Value::Object(masked.collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::String(text) if is_time(text) => Value::from("<time>"),
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_str(text).map_or_else(|_| value.clone(), |inner| plain(&inner))
        }
        other => other.clone(),
    }
}

fn name_ids(value: &Value, path: &str, names: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            name_ids(value, &format!("{path}.{key}"), names);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(number, value)| {
            name_ids(value, &format!("{path}[{number}]"), names);
        }),
        Value::String(text) => {
            for id in ids(text) {
                names
                    .entry(id.to_owned())
                    .or_insert_with(|| format!("<id of {path}>"));
            }
        }
        _ => {}
    }
}

fn with_names(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), with_names(value, names)))
                .collect(),
        ),
        Value::Array(items) => items.iter().map(|item| with_names(item, names)).collect(),
        Value::String(text) => {
            let found: Vec<_> = ids(text).map(str::to_owned).collect();
            Value::String(
                found
                    .iter()
                    .fold(text.clone(), |text, id| text.replace(id, &names[id])),
            )
        }
        other => other.clone(),
    }
}

/// The UUIDs in a text.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(piece) = text.as_bytes().get(at..at + UUID) {
            if piece.iter().enumerate().all(|(place, byte)| match place {
                8 | 13 | 18 | 23 => *byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            }) {
                at += UUID;
                return text.get(at - UUID..at);
            }
            at += 1;
        }
        None
    })
}

/// True if a text is a time as Kubernetes writes it, such as 2026-11-20T15:07:25Z, with or without fractions.
fn is_time(text: &str) -> bool {
    let pattern = "0000-00-00T00:00:00";
    let digit = |(pattern, byte): (u8, u8)| {
        if pattern == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == pattern
        }
    };
    text.len() > pattern.len() && text.ends_with('Z') && pattern.bytes().zip(text.bytes()).all(digit)
}

fn walk(
    object: &str,
    path: &mut String,
    left: Option<&Value>,
    right: Option<&Value>,
    out: &mut Vec<Difference>,
) {
    let empty = Map::new();
    let length = path.len();
    match (left, right) {
        (left, right) if left == right => {}
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            for key in left
                .keys()
                .chain(right.keys().filter(|key| !left.contains_key(*key)))
            {
                path.push_str(&format!(".{key}"));
                walk(object, path, left.get(key), right.get(key), out);
                path.truncate(length);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for number in 0..left.len().max(right.len()) {
                path.push_str(&format!("[{number}]"));
                walk(object, path, left.get(number), right.get(number), out);
                path.truncate(length);
            }
        }
        (left, right) => {
            let unresponsive =
                SILENT.iter().any(|kind| object.contains(kind)) && !path.starts_with(".metadata");
            let show = |value: Option<&Value>| {
                value.map(|value| match value {
                    _ if path.is_empty() => "an object".to_owned(),
                    _ if unresponsive => "a value".to_owned(),
                    Value::Object(map) if *map == empty => "{}".to_owned(),
                    value => value.to_string().chars().take(200).collect(),
                })
            };
            let (left, right) = (show(left), show(right));
            out.push(Difference {
                object: object.to_owned(),
                path: path.clone(),
                left,
                right,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const A: &str = "4efd799d-5b87-4acd-ad2d-df789084d1b8";
    const B: &str = "76a1c562-1b6c-4437-8491-88b1b8867264";

    fn state(uid: &str, permanent: &str, label: &str, time: &str, version: &str) -> State {
        let binding = json!({
            "metadata": {"uid": uid, "resourceVersion": version, "creationTimestamp": time, "generation": 3,
                "managedFields": [{"time": time}], "labels": {"resourcebinding.karmada.io/permanent-id": permanent},
                "annotations": {"applied": format!("{{\"id\":\"{permanent}\",\"resourceVersion\":\"{version}\"}}")}},
            "status": {"aggregatedStatus": [{"clusterName": "m1", "copy": {"uid": uid, "source": version}}]},
        });
        let copy = json!({"metadata": {"labels": {"id": label}}, "data": {"key": "value"}});
        State::from([
            ("hub ResourceBinding a/x".into(), binding),
            ("m1 ConfigMap a/x".into(), copy),
        ])
    }

    #[test]
    fn states_that_differ_in_ids_versions_and_times_alone_are_equal() {
        let one = state(A, B, B, "2026-11-20T15:07:25Z", "434");
        let two = state(B, A, A, "2026-11-21T16:08:26.123456Z", "99");
        assert_eq!(compare(&one, &two), []);
    }

    #[test]
    fn an_id_that_refers_to_something_else_is_a_difference() {
        let one = state(A, B, B, "2026-11-20T15:07:25Z", "434");
        let two = state(A, B, A, "2026-11-20T15:07:25Z", "434");
        let found = compare(&one, &two);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].object.as_str(), found[0].path.as_str()),
            ("m1 ConfigMap a/x", ".metadata.labels.id")
        );
    }

    #[test]
    fn what_is_missing_is_one_difference_and_disturbs_no_other_name() {
        let one = state(A, B, B, "2026-11-20T15:07:25Z", "1");
        let mut two = one.clone();
        two.insert(
            "hub Deployment a/y".into(),
            json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}}),
        );
        let found = compare(&one, &two);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].left.as_deref(), found[0].right.as_deref()),
            (None, Some("an object"))
        );
    }

    #[test]
    fn content_is_compared_and_not_shown() {
        let one = state(A, B, B, "2026-11-20T15:07:25Z", "1");
        let mut two = one.clone();
        two.get_mut("m1 ConfigMap a/x").unwrap()["data"]["key"] = json!("canary");
        let found = compare(&one, &two);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "m1 ConfigMap a/x.data.key: a value became a value"
        );
    }

    #[test]
    fn the_order_of_a_list_matters() {
        let one = State::from([("hub X a/x".into(), json!({"clusters": [1, 2]}))]);
        let two = State::from([("hub X a/x".into(), json!({"clusters": [2, 1]}))]);
        assert_eq!(compare(&one, &two).len(), 2);
    }

    #[test]
    fn times_and_ids_are_recognised_by_their_form() {
        assert!(is_time("2026-11-20T15:07:25Z") && !is_time("2026-11-20") && !is_time("v1.20.2"));
        let text = format!("x{A}/{B}");
        assert_eq!(ids(&text).collect::<Vec<_>>(), [A, B]);
        assert_eq!(ids("4efd799d-5b87-4acd-ad2d-df789084d1bX").count(), 0);
        assert_eq!(ids("ä4efd799d-5b87-4acd-ad2d-df789084d1b8").count(), 1);
    }
}
