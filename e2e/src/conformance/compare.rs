//! Comparing a recorded body with the one that came.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::bind::{Bindings, short};

/// Compares, binding placeholders. The error begins with where the two differ.
pub(super) struct Comparison<'a> {
    pub(super) bindings: &'a mut Bindings,
    /// managedFields come in the recorded order; otherwise they are sorted first, as the recording is.
    pub(super) keep_order: bool,
}

impl Comparison<'_> {
    /// Both must be the same.
    pub(super) fn same(&mut self, want: &Value, got: &Value, at: &str) -> Result<(), String> {
        match (want, got) {
            (Value::Object(map), _) if map.len() == 1 && map.contains_key("$repeat") => {
                let unrolled = repeated(&map["$repeat"]);
                self.same(&unrolled, got, at)
            }
            (Value::Object(want), Value::Object(got)) => self.same_object(want, got, at),
            (Value::Array(want), Value::Array(got)) if want.len() == got.len() => want
                .iter()
                .zip(got)
                .enumerate()
                .try_for_each(|(i, (want, got))| self.same(want, got, &format!("{at}[{i}]"))),
            (Value::String(want), got) if Bindings::has_placeholder(want) => {
                let text = match got {
                    Value::String(text) => text.clone(),
                    Value::Number(number) if want.starts_with("<nodeport") => number.to_string(),
                    other => return Err(format!("{at}: want {want:?}, got {}", shown(other))),
                };
                self.bindings
                    .unify(want, &text)
                    .map_err(|why| format!("{at}: {why}"))
            }
            _ if want == got || same_number(want, got) => Ok(()),
            _ => Err(format!("{at}: want {}, got {}", shown(want), shown(got))),
        }
    }

    fn same_object(
        &mut self,
        want: &Map<String, Value>,
        got: &Map<String, Value>,
        at: &str,
    ) -> Result<(), String> {
        let bindings = self.bindings.clone();
        let named = |key: &str| bindings.text(key).unwrap_or_else(|_| key.to_owned());
        let names: BTreeMap<String, &String> = want.keys().map(|key| (named(key), key)).collect();
        if let Some((key, value)) = got.iter().find(|(key, _)| !names.contains_key(*key)) {
            return Err(format!("{at}.{key}: unexpected {}", shown(value)));
        }
        for (key, value) in want {
            let found = got.get(key).or_else(|| got.get(&named(key)));
            let Some(found) = found else {
                return Err(format!("{at}.{key}: missing, want {}", shown(value)));
            };
            let at = format!("{at}.{key}");
            match (key.as_str(), found) {
                ("managedFields", Value::Array(list)) if !self.keep_order => {
                    let sorted = sorted_by(list, &["manager", "operation", "apiVersion", "subresource"]);
                    self.same(value, &sorted, &at)?;
                }
                ("causes", Value::Array(list)) if of_conflicts(value) => {
                    self.same(value, &sorted_by(list, &["message", "field"]), &at)?;
                }
                _ => self.same(value, found, &at)?,
            }
        }
        Ok(())
    }

    /// Checks that the recorded items exist, in this order; there may be more.
    pub(super) fn subset(&mut self, want: &Value, got: &Value, at: &str) -> Result<(), String> {
        match (want, got) {
            (Value::Object(want), Value::Object(got)) => {
                for (key, value) in want {
                    let Some(found) = got.get(key) else {
                        return Err(format!("{at}.{key}: missing, want {}", shown(value)));
                    };
                    self.subset(value, found, &format!("{at}.{key}"))?;
                }
                Ok(())
            }
            (Value::Array(want), Value::Array(got)) => {
                let mut rest = got.iter();
                'wanted: for (i, value) in want.iter().enumerate() {
                    for found in rest.by_ref() {
                        let at = format!("{at}[{i}]");
                        match self.subset(value, found, &at) {
                            Ok(()) => continue 'wanted,
                            Err(why) if value.is_object() && identity(value) == identity(found) => {
                                return Err(why);
                            }
                            Err(_) => {}
                        }
                    }
                    return Err(format!("{at}[{i}]: not found (in this order): {}", shown(value)));
                }
                Ok(())
            }
            _ => self.same(want, got, at),
        }
    }
}

fn repeated(repeat: &Value) -> Value {
    let count = repeat["count"].as_u64().unwrap_or(0);
    Value::Array((0..count).map(|_| repeat["item"].clone()).collect())
}

/// `2` and `2.0` are the same JSON number to whoever reads it.
fn same_number(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Number(want), Value::Number(got)) => want.as_f64() == got.as_f64(),
        _ => false,
    }
}

fn of_conflicts(causes: &Value) -> bool {
    let causes = causes.as_array();
    causes.is_some_and(|list| list.iter().any(|cause| cause["reason"] == "FieldManagerConflict"))
}

fn sorted_by(list: &[Value], keys: &[&str]) -> Value {
    let mut list = list.to_vec();
    list.sort_by_cached_key(|entry| {
        keys.iter()
            .map(|key| entry[*key].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    });
    Value::Array(list)
}

fn identity(value: &Value) -> Option<&Value> {
    ["name", "resource", "version", "groupVersion"]
        .iter()
        .find_map(|key| value.get(key))
        .or_else(|| value.get("metadata")?.get("name"))
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.len() > 400 { short(&text) } else { text }
}

/// Puts into a fixed order what the server sends in a random one: the causes of an invalid custom resource with
/// the parts of its message, the rules of a SelfSubjectRulesReview.
pub(super) fn canonical(mut body: Value) -> Value {
    if body["kind"] == "SelfSubjectRulesReview" {
        for rules in ["resourceRules", "nonResourceRules"] {
            if let Some(list) = body["status"].get_mut(rules).and_then(Value::as_array_mut) {
                list.sort_by_cached_key(Value::to_string);
            }
        }
        return body;
    }
    let custom = body["details"]["group"]
        .as_str()
        .is_some_and(|group| group.ends_with("example.com"));
    let Some(causes) = body["details"]["causes"]
        .as_array()
        .filter(|causes| causes.len() > 1)
    else {
        return body;
    };
    if body["kind"] != "Status" || body["reason"] != "Invalid" || !custom {
        return body;
    }
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let list = |causes: &[Value]| {
        let mut parts: Vec<String> = Vec::new();
        for cause in causes {
            let part = format!("{}: {}", text(cause, "field"), text(cause, "message"));
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        format!("[{}]", parts.join(", "))
    };
    let mut sorted = causes.clone();
    sorted.sort_by_cached_key(|cause| {
        let field = text(cause, "field");
        let message = if field == "<nil>" {
            text(cause, "message")
        } else {
            String::new()
        };
        (field, message)
    });
    let message = text(&body, "message");
    if let Some(start) = message.strip_suffix(&list(causes)) {
        body["message"] = json!(format!("{start}{}", list(&sorted)));
    }
    body["details"]["causes"] = Value::Array(sorted);
    body
}
