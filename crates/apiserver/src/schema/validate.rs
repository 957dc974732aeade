//! Validation of a value by a CRD's schema, with the errors of a kube-apiserver.
//!
//! An update is checked against its old state as well: errors in unchanged parts are ignored (ratcheting).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    schema::{ListKind, Rules, Schema, Type, formats},
    status::{FieldError, Problem},
};

mod number;

/// The number of errors that are collected before the walk ends. The response is unreadable long before.
const MOST: usize = 1000;

/// The errors in `value`; `base`: the field that it is, `None` for a whole object. Errors in unchanged parts of `old` are not
/// reported. O(value × branches of oneOf and the like), and O(depth) more with `old`.
#[must_use]
pub(crate) fn value(
    base: Option<&str>,
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
) -> Vec<FieldError> {
    let mut walk = Walk {
        base,
        path: String::new(),
    };
    walk.node(value, old, schema).errors
}

/// The result of a node: its errors, and the number of checks, by which the best of several alternatives is selected.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    made: usize,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.made += other.made;
        if self.errors.len() < MOST {
            self.errors.extend(other.errors);
        }
    }
}

struct Walk<'a> {
    base: Option<&'a str>,
    path: String,
}

impl Walk<'_> {
    /// The field of an error whose name is `name`.
    fn field(&self, name: &str) -> String {
        let name = name.strip_prefix('.').unwrap_or(name);
        match (self.base, name.is_empty()) {
            (None, true) => "<nil>".to_owned(),
            (None, false) => name.to_owned(),
            (Some(base), true) => base.to_owned(),
            (Some(base), false) => format!("{base}.{name}"),
        }
    }

    /// `spec.masts in body should …`.
    fn invalid(&self, shown: impl Into<Value>, says: &str) -> FieldError {
        FieldError::invalid(
            self.field(&self.path),
            shown,
            format!("{} in body {says}", self.path),
        )
    }

    fn wrong_type(&self, wanted: &str, got: &str) -> FieldError {
        FieldError::new(
            self.field(&self.path),
            Problem::TypeInvalid(got.into()),
            format!("{} in body must be of type {wanted}: {got:?}", self.path),
        )
    }

    /// An error that has no field of its own.
    fn composite(&self, message: String) -> FieldError {
        FieldError::invalid(self.field(""), "", message)
    }

    fn below(&mut self, step: &str, walk: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let length = self.path.len();
        if !self.path.is_empty() && !step.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(step);
        let outcome = walk(self);
        self.path.truncate(length);
        outcome
    }

    fn node(&mut self, value: &Value, old: Option<&Value>, schema: &Schema) -> Outcome {
        let mut outcome = Outcome::default();
        if old == Some(value) {
            return outcome;
        }
        outcome.made += 1;
        if let Some(error) = self.type_error(value, schema) {
            outcome.errors.push(error);
        }
        let none = Rules::default();
        let rules = schema.rules.as_deref().unwrap_or(&none);
        if !value.is_null() {
            self.branches(value, old, rules, &mut outcome);
            match value {
                Value::String(text) => outcome.errors.extend(self.string_errors(text, schema, rules)),
                Value::Number(number) => outcome.errors.extend(self.number_errors(number, schema, rules)),
                Value::Array(items) => self.items(items, old, schema, rules, &mut outcome),
                _ => {}
            }
        }
        if !rules.one_of_values.is_empty() && !rules.one_of_values.iter().any(|one| number::equal(one, value))
        {
            outcome.errors.push(self.not_one_of(value, &rules.one_of_values));
        }
        if let Value::Object(fields) = value {
            self.fields(fields, old, schema, rules, &mut outcome);
        }
        outcome
    }

    fn type_error(&self, value: &Value, schema: &Schema) -> Option<FieldError> {
        let wanted = wanted(schema.kind);
        let got = type_of(value);
        if value.is_null() {
            return (!wanted.is_empty() && !schema.nullable).then(|| self.wrong_type(&wanted.join(","), got));
        }
        let format = schema.format.as_deref().unwrap_or_default();
        let is_text = matches!(value, Value::String(_) | Value::Array(_));
        let fits = wanted.contains(&got)
            || (got == "number" && wanted.contains(&"integer") && number::is_whole(value))
            || (got == "integer" && wanted.contains(&"number"));
        if wanted.is_empty() && format.is_empty() {
            return None;
        }
        if !is_text && !format.is_empty() {
            let got_format = match got {
                "integer" => "int64",
                "number" => "float64",
                _ => "",
            };
            if !fits && got_format != format {
                return Some(self.wrong_type(format, got_format));
            }
        }
        if is_text && !format.is_empty() && !wanted.contains(&"number") && !wanted.contains(&"integer") {
            return None;
        }
        (!fits).then(|| self.wrong_type(&wanted.join(","), got))
    }

    fn string_errors(&self, text: &str, schema: &Schema, rules: &Rules) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let length = || text.chars().count() as u64;
        if let Some(most) = rules.max_length.filter(|most| length() > *most) {
            errors.push(FieldError::new(
                self.field(&self.path),
                Problem::TooLong(text.into()),
                format!("may not be more than {most} bytes"),
            ));
        } else if let Some(least) = rules.min_length.filter(|least| length() < *least) {
            errors.push(self.invalid(text, &format!("should be at least {least} chars long")));
        } else if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            errors.push(self.invalid(text, &format!("should match '{pattern}'")));
        }
        if let Some(format) = schema
            .format
            .as_deref()
            .filter(|format| !formats::has(format, text))
        {
            errors.push(FieldError::new(
                self.field(&self.path),
                Problem::TypeInvalid(text.into()),
                format!("{} in body must be of type {format}: {text:?}", self.path),
            ));
        }
        errors
    }

    fn not_one_of(&self, value: &Value, possible: &[Value]) -> FieldError {
        let possible: Vec<String> = possible
            .iter()
            .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
            .collect();
        let possible: Vec<&str> = possible.iter().map(String::as_str).collect();
        FieldError::not_supported(self.field(&self.path), value.clone(), &possible)
    }

    fn items(
        &mut self,
        items: &[Value],
        old: Option<&Value>,
        schema: &Schema,
        rules: &Rules,
        outcome: &mut Outcome,
    ) {
        if let Some(inner) = schema.items.as_deref() {
            let former = Former::of(old, schema);
            for (at, item) in items.iter().enumerate() {
                if outcome.errors.len() >= MOST {
                    break;
                }
                let old = former.of_item(item);
                outcome.merge(self.below(&format!("[{at}]"), |walk| walk.node(item, old, inner)));
            }
        }
        let count = items.len() as u64;
        if let Some(least) = rules.min_items.filter(|least| count < *least) {
            outcome
                .errors
                .push(self.invalid(count, &format!("should have at least {least} items")));
        }
        if let Some(most) = rules.max_items.filter(|most| count > *most) {
            outcome.errors.push(self.too_many(count, most));
        }
    }

    fn too_many(&self, count: u64, most: u64) -> FieldError {
        FieldError::new(
            self.field(&self.path),
            Problem::TooMany(count.into()),
            format!("must have at most {most} items"),
        )
    }

    fn fields(
        &mut self,
        fields: &serde_json::Map<String, Value>,
        old: Option<&Value>,
        schema: &Schema,
        rules: &Rules,
        outcome: &mut Outcome,
    ) {
        let count = fields.len() as u64;
        if let Some(least) = rules.min_properties.filter(|least| count < *least) {
            outcome
                .errors
                .push(self.invalid(count, &format!("should have at least {least} properties")));
            return;
        }
        if let Some(most) = rules.max_properties.filter(|most| count > *most) {
            outcome.errors.push(self.too_many(count, most));
            return;
        }
        for (name, value) in fields {
            if outcome.errors.len() >= MOST {
                break;
            }
            let old = old.and_then(|old| old.get(name));
            match schema.field(name) {
                Some(field) => outcome.merge(self.below(name, |walk| walk.node(value, old, field))),
                None if schema.closed => {
                    let path = self.path.clone();
                    outcome.merge(self.below(name, |walk| Outcome {
                        errors: vec![FieldError::invalid(
                            walk.field(&walk.path),
                            "",
                            format!("{path}.{name} in body is a forbidden property"),
                        )],
                        made: 1,
                    }));
                }
                None => {}
            }
        }
        for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
            outcome.errors.push(FieldError::required(
                self.field(&format!("{}.{name}", self.path)),
                "",
            ));
        }
    }

    /// allOf, anyOf, oneOf, not. Of alternatives that all fail, the one with the most checks made is reported.
    fn branches(&mut self, value: &Value, old: Option<&Value>, rules: &Rules, outcome: &mut Outcome) {
        let path = self.path.clone();
        if !rules.any_of.is_empty() {
            let (valid, best) = self.alternatives(value, old, &rules.any_of, true);
            if valid == 0 {
                let message = format!("{path:?} must validate at least one schema (anyOf)");
                outcome.errors.push(self.composite(message));
                outcome.merge(best);
            }
        }
        if !rules.one_of.is_empty() {
            let (valid, best) = self.alternatives(value, old, &rules.one_of, false);
            if valid != 1 {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    _ => format!("Found {valid} valid alternatives"),
                };
                let message = format!("{path:?} must validate one and only one schema (oneOf). {found}");
                outcome.errors.push(self.composite(message));
                if valid == 0 {
                    outcome.merge(best);
                }
            }
        }
        if !rules.all_of.is_empty() {
            let mut valid = 0;
            for branch in &rules.all_of {
                let one = self.node(value, old, branch);
                valid += usize::from(one.errors.is_empty());
                outcome.merge(one);
            }
            if valid != rules.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                let message = format!("{path:?} must validate all the schemas (allOf){none}");
                outcome.errors.push(self.composite(message));
            }
        }
        if let Some(not) = &rules.not
            && self.node(value, old, not).errors.is_empty()
        {
            let message = format!("{path:?} must not validate the schema (not)");
            outcome.errors.push(self.composite(message));
        }
    }

    /// The number of alternatives that hold, and the best of those that do not; `first`: one that holds is enough.
    fn alternatives(
        &mut self,
        value: &Value,
        old: Option<&Value>,
        branches: &[std::sync::Arc<Schema>],
        first: bool,
    ) -> (usize, Outcome) {
        let mut valid = 0;
        let mut best: Option<Outcome> = None;
        for branch in branches {
            let one = self.node(value, old, branch);
            if one.errors.is_empty() {
                valid += 1;
                if first {
                    break;
                }
            } else if best.as_ref().is_none_or(|best| one.made > best.made) {
                best = Some(one);
            }
        }
        (valid, best.unwrap_or_default())
    }
}

/// The types that a schema names, in JSON's words.
fn wanted(kind: Type) -> &'static [&'static str] {
    match kind {
        Type::Any => &[],
        Type::Object => &["object"],
        Type::Array => &["array"],
        Type::String => &["string"],
        Type::Integer => &["integer"],
        Type::Number => &["number"],
        Type::Boolean => &["boolean"],
        Type::IntOrString => &["integer", "string"],
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The items that a list had before, found again by their keys. Only lists of type map know which item is which.
pub(crate) struct Former<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> Former<'a> {
    /// The former items of a list; none unless it is a map. O(n log n).
    pub(crate) fn of(old: Option<&'a Value>, schema: &'a Schema) -> Self {
        let ListKind::Map(keys) = &schema.list else {
            return Self {
                keys: &[],
                items: BTreeMap::new(),
            };
        };
        let items = old.and_then(Value::as_array).into_iter().flatten();
        Self {
            keys,
            items: items
                .filter_map(|item| Some((key_of(item, keys)?, item)))
                .collect(),
        }
    }

    /// The former state of an item.
    pub(crate) fn of_item(&self, item: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&key_of(item, self.keys)?).copied()
    }
}

/// The keys of an item of a list-map; `None` if it is no object.
pub(crate) fn key_of(item: &Value, keys: &[String]) -> Option<String> {
    let fields = item.as_object()?;
    let values: Vec<&Value> = keys
        .iter()
        .map(|key| fields.get(key).unwrap_or(&Value::Null))
        .collect();
    serde_json::to_string(&values).ok()
}
