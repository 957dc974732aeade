//! The distributed object: its validation, and the part of it that copies get.
//!
//! The same rules hold at admission and for the controller, which is as safe without the webhook.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Map, Value, json};

use super::{
    hash::{resource_hash, write},
    normal,
};
use entourage_interpreter::not_propagatable;
use entourage_model::{
    object::{Gvk, Str},
    problem::{Problem, is_subdomain},
    rendered::Rendered,
};

/// The cached facts about a distributed object.
#[derive(Clone, PartialEq, Eq)]
pub struct Subject {
    /// ConfigMap or Secret.
    pub gvk: Gvk,
    /// Its name.
    pub name: Str,
    /// Changes with the content of copies; of this process only.
    pub content: u64,
}

/// Without the number: it is a digest, possibly of a Secret.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("gvk", &self.gvk)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Reads `spec.resource`. Of an object from `resourceFrom`, read the [`sanitised`] form: the metadata that a server writes is
/// not content of the copies. Source: ResourceDistribution reference 2 and 6.6.
///
/// # Errors
/// All errors in it, without any of its content.
///
/// Cost: O(size of the resource).
pub fn read(resource: &Value) -> Result<Subject, Vec<Problem>> {
    let fields = resource.as_object().filter(|fields| !fields.is_empty());
    let Some(fields) = fields else {
        let cause = match resource {
            Value::Null | Value::Object(_) => "there is nothing in it",
            _ => "it is not an object",
        };
        return Err(vec![problem(
            "",
            cause,
            "write the ConfigMap or Secret here, whole",
        )]);
    };
    if fields.contains_key("items") {
        let remedy = "make a ResourceDistribution for each object";
        return Err(vec![problem("items", "a list cannot be distributed", remedy)]);
    }
    let (Some(kind), mut problems) = (kind(resource), Vec::new()) else {
        return Err(vec![wrong_kind(resource)]);
    };
    check_metadata(&resource["metadata"], &mut problems);
    if not_propagatable(resource) {
        problems.push(problem(
            "type",
            "a token of a service account is of use in its own namespace only, where a controller keeps filling it",
            "let each namespace have its own, or distribute a Secret of another type",
        ));
    }
    check_content(kind, resource, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Subject {
        gvk: Gvk::new("v1", kind),
        name: resource["metadata"]["name"].as_str().unwrap_or_default().into(),
        content: number(resource),
    })
}

/// The content of a resource's copies: normalised, with the labels and annotations that are propagated and no other metadata
/// than the name. Sanitising twice has the same result as once.
///
/// Cost: O(size of the resource). The result may be a Secret, and is not wiped by itself.
#[must_use]
pub fn sanitised(resource: &Value) -> Value {
    let meta = &resource["metadata"];
    let mut kept = Map::new();
    if let Some(name) = meta["name"].as_str() {
        kept.insert("name".to_owned(), json!(name));
    }
    for field in ["labels", "annotations"] {
        let map = normal::travelling(&meta[field]);
        if !map.is_empty() {
            kept.insert(field.to_owned(), Value::Object(map));
        }
    }
    let mut copy = normal::content(resource["kind"].as_str().unwrap_or_default(), resource);
    for field in ["apiVersion", "kind"] {
        if let Some(text) = resource[field].as_str() {
            copy.insert(field.to_owned(), json!(text));
        }
    }
    copy.insert("metadata".to_owned(), Value::Object(kept));
    Value::Object(copy)
}

/// The limit of a server for all values together, in bytes: `MaxSecretSize` of Kubernetes, which applies to ConfigMaps, too.
const MOST_BYTES: usize = 1 << 20;

/// The kinds that are distributed.
const KINDS: &[&str] = &["ConfigMap", "Secret"];

/// The hash on the copies is part of their content: two spellings of one resource have different hashes.
fn number(resource: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let copy = Rendered(sanitised(resource));
    write(copy.object(), &mut |bytes| hasher.write(bytes));
    resource_hash(resource).hash(&mut hasher);
    hasher.finish()
}

fn problem(field: &str, cause: impl Into<String>, remedy: &str) -> Problem {
    let dot = if field.is_empty() { "" } else { "." };
    Problem::new(format!("spec.resource{dot}{field}"), cause, remedy)
}

fn kind(resource: &Value) -> Option<&'static str> {
    let kind = resource["kind"].as_str()?;
    let known = KINDS.iter().copied().find(|known| *known == kind);
    known.filter(|_| resource["apiVersion"] == "v1")
}

/// Names only group and kind: a Secret whose kind is misspelled is still a Secret.
fn wrong_kind(resource: &Value) -> Problem {
    let text = |field: &str| resource[field].as_str().unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if KINDS.contains(&kind) {
        let remedy = "write apiVersion: v1";
        return problem("apiVersion", format!("it is not that of a {kind}"), remedy);
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_plain = |text: &str| {
        text.len() <= 253
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    let cause = match (kind, group) {
        ("", _) => "there is none".to_owned(),
        (kind, group) if !is_plain(kind) || !is_plain(group) => "it is none that could be".to_owned(),
        (kind, "") => format!("kind {kind} cannot be distributed"),
        (kind, group) => format!("kind {kind} of group {group} cannot be distributed"),
    };
    problem(
        "kind",
        cause,
        "distribute a ConfigMap or a Secret, both of apiVersion v1",
    )
}

fn check_metadata(meta: &Value, problems: &mut Vec<Problem>) {
    let remedy =
        "give the copies a name: lower-case letters, digits, '-' and '.', a letter or digit at both ends";
    match meta["name"].as_str() {
        None | Some("") => problems.push(problem("metadata.name", "there is none", remedy)),
        Some(name) if !is_subdomain(name) => {
            problems.push(problem("metadata.name", "it is not a DNS-1123 subdomain", remedy));
        }
        Some(_) => {}
    }
    if !matches!(&meta["generateName"], Value::Null) && meta["generateName"] != "" {
        problems.push(problem(
            "metadata.generateName",
            "copies with a name that a server makes up would be made again and again",
            "remove it, and give metadata.name",
        ));
    }
    for field in ["labels", "annotations"] {
        texts(&meta[field], &format!("metadata.{field}"), problems);
    }
}

fn check_content(kind: &str, resource: &Value, problems: &mut Vec<Problem>) {
    let mut bytes = 0_usize;
    if kind == "Secret" {
        let data = keyed(resource, "data", problems);
        let plain = keyed(resource, "stringData", problems);
        bytes += encoded_bytes("data", data, |key| !has(plain, key), problems);
        bytes += plain_bytes(plain);
        if !matches!(resource["type"], Value::Null | Value::String(_)) {
            problems.push(problem(
                "type",
                "it is not a string",
                "write a type, or leave it out for Opaque",
            ));
        }
    } else {
        let data = keyed(resource, "data", problems);
        let binary = keyed(resource, "binaryData", problems);
        bytes += plain_bytes(data);
        bytes += encoded_bytes("binaryData", binary, |_| true, problems);
        if data.into_iter().flatten().any(|(key, _)| has(binary, key)) {
            let cause = "a key of it is in data, too";
            problems.push(problem("binaryData", cause, "keep it in one of the two"));
        }
    }
    if bytes > MOST_BYTES {
        problems.push(problem(
            "",
            format!("its values are {bytes} bytes together, and a server takes {MOST_BYTES}"),
            "remove some of them, or distribute them as several objects",
        ));
    }
    if !matches!(resource["immutable"], Value::Null | Value::Bool(_)) {
        problems.push(problem(
            "immutable",
            "it is neither true nor false",
            "write one of them, or leave it out",
        ));
    }
}

/// The map, or `None` if it is null or not a map. Its values must be texts.
fn texts<'a>(value: &'a Value, field: &str, problems: &mut Vec<Problem>) -> Option<&'a Map<String, Value>> {
    match value {
        Value::Null => None,
        Value::Object(map) => {
            if map.values().any(|value| normal::text(value).is_none()) {
                let remedy = "quote numbers, true and false; write a structure as one text";
                problems.push(problem(field, "a value of it is not a string", remedy));
            }
            Some(map)
        }
        _ => {
            problems.push(problem(field, "it is not a map", "write keys, each with a text"));
            None
        }
    }
}

/// As [`texts`]; its keys must be valid keys of data.
fn keyed<'a>(
    resource: &'a Value,
    field: &str,
    problems: &mut Vec<Problem>,
) -> Option<&'a Map<String, Value>> {
    let map = texts(&resource[field], field, problems)?;
    if !map.keys().all(|key| is_key(key)) {
        problems.push(problem(
            field,
            "a key of it is not allowed",
            "use letters, digits, '-', '_' and '.', at most 253, and no two dots at the start",
        ));
    }
    Some(map)
}

/// True if Kubernetes accepts a key of data: it must be a valid file name in a volume.
fn is_key(key: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=253).contains(&key.len()) && key.bytes().all(is_allowed) && key != "." && !key.starts_with("..")
}

fn has(map: Option<&Map<String, Value>>, key: &str) -> bool {
    map.is_some_and(|map| map.contains_key(key))
}

fn plain_bytes(map: Option<&Map<String, Value>>) -> usize {
    let values = map.into_iter().flat_map(Map::values);
    values.filter_map(normal::text).map(str::len).sum()
}

/// The number of bytes of the values whose keys count; all of them must be valid.
fn encoded_bytes(
    field: &str,
    map: Option<&Map<String, Value>>,
    counts: impl Fn(&str) -> bool,
    problems: &mut Vec<Problem>,
) -> usize {
    let mut all = 0;
    let mut is_sound = true;
    for (key, value) in map.into_iter().flatten() {
        let Some(text) = normal::text(value) else { continue };
        match normal::decoded(text) {
            Some(bytes) if counts(key) => all += bytes.len(),
            Some(_) => {}
            None => is_sound = false,
        }
    }
    if !is_sound {
        let remedy = match field {
            "data" => "encode it, or write it as it is under stringData",
            _ => "encode it, or write a text under data",
        };
        problems.push(problem(field, "a value of it is not base64", remedy));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data})
    }

    #[test]
    fn the_content_changes_with_what_copies_hold() {
        let content = |resource: &Value| read(resource).unwrap().content;
        let one = secret(&json!({"a": "YQ=="}));
        assert_eq!(content(&one), content(&one.clone()));
        for change in [
            json!({"data": {"a": "Yg=="}}),
            json!({"data": {"b": "YQ=="}}),
            json!({"type": "t"}),
            json!({"immutable": true}),
            json!({"metadata": {"name": "other"}}),
            json!({"metadata": {"name": "s", "labels": {"a": "b"}}}),
            json!({"metadata": {"name": "s", "annotations": {"a": "b"}}}),
        ] {
            let mut other = one.clone();
            let fields = other.as_object_mut().unwrap();
            fields.extend(change.as_object().unwrap().clone());
            assert_ne!(content(&one), content(&other), "{change}");
        }
    }

    #[test]
    fn what_a_server_adds_to_the_source_changes_nothing() {
        let mut one = secret(&json!({"a": "YQ=="}));
        let before = read(&sanitised(&one)).unwrap();
        one["metadata"]["resourceVersion"] = json!("7");
        one["metadata"]["managedFields"] = json!([{}]);
        assert_eq!(read(&sanitised(&one)).unwrap(), before);
    }

    #[test]
    fn values_may_have_a_mebibyte_together_and_no_more() {
        let most = "x".repeat(MOST_BYTES);
        let map = |data: &Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data});
        assert!(read(&map(&json!({"a": most}))).is_ok());
        let problems = read(&map(&json!({"a": most, "b": "y"}))).unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "spec.resource: its values are 1048577 bytes together, and a server takes 1048576; \
             remove some of them, or distribute them as several objects"
        );
        // Values that stringData overrides do not count.
        let mut hidden = secret(&json!({"a": "YWFhYQ=="}));
        hidden["stringData"] = json!({"a": most});
        assert!(read(&hidden).is_ok());
    }

    #[test]
    fn the_number_is_not_shown() {
        let subject = read(&secret(&json!({}))).unwrap();
        assert!(!format!("{subject:?}").contains(&subject.content.to_string()));
    }
}
