//! Validation of the rules of a CRD: their fields, their types, and their cost.

use std::sync::Arc;

use kube_cel::cel::common::ast::IdedExpr;
use serde_json::{Map, Value, json};

use super::{
    bound,
    check::{self, Checked, placed},
    cost, mentions, parse, sizes,
    types::Ty,
};
use crate::{
    schema::{
        ListKind, Schema,
        declared::{list, of_resource, text},
    },
    status::{FieldError, Problem},
};

/// Reasons that a rule may give.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Bytes of stack for walking an expression of any depth that is taken.
const CHECKER_STACK: usize = 16 << 20;

/// The errors in the rules of a schema that is valid otherwise; `sound`: it has no other errors, so that rules can be
/// checked against it. O(schema × rules).
pub(crate) fn errors(declared: &Map<String, Value>, path: &str, sound: bool) -> Vec<FieldError> {
    let schema = Arc::new(of_resource(&Value::Object(declared.clone())));
    if !schema.checked && !mentions_rules(declared, 0) {
        return Vec::new();
    }
    let mut walk = Walk {
        sound,
        errors: Vec::new(),
        costs: Vec::new(),
    };
    let at = At {
        path: path.to_owned(),
        count: Some(1),
        unrelated: None,
    };
    walk.node(declared, &schema, &at);
    walk.total(path);
    walk.errors
}

/// True if there is an entry of `x-kubernetes-validations` anywhere, empty ones too.
fn mentions_rules(declared: &Map<String, Value>, depth: usize) -> bool {
    if depth > crate::schema::declared::DEEPEST {
        return false;
    }
    declared.iter().any(|(name, value)| match value {
        Value::Array(items) if name == "x-kubernetes-validations" => !items.is_empty(),
        Value::Object(fields) => mentions_rules(fields, depth + 1),
        _ => false,
    })
}

/// The path of a node.
struct At {
    path: String,
    /// The maximum number of its values in an object; `None`: a list or map above has no limit.
    count: Option<u64>,
    /// The list or map above whose items have no former state.
    unrelated: Option<String>,
}

struct Walk {
    sound: bool,
    errors: Vec<FieldError>,
    costs: Vec<(String, u64)>,
}

impl Walk {
    fn node(&mut self, declared: &Map<String, Value>, schema: &Arc<Schema>, at: &At) {
        for (name, field) in &schema.properties {
            let below = declared
                .get("properties")
                .and_then(|fields| fields.get(name))
                .and_then(Value::as_object);
            if let Some(below) = below {
                let path = format!("{}.properties[{name}]", at.path);
                self.node(
                    below,
                    field,
                    &At {
                        path,
                        count: at.count,
                        unrelated: at.unrelated.clone(),
                    },
                );
            }
        }
        if let (Some(below), Some(items)) = (declared.get("items").and_then(Value::as_object), &schema.items)
        {
            let unrelated = at
                .unrelated
                .clone()
                .or_else(|| (!matches!(schema.list, ListKind::Map(_))).then(|| at.path.clone()));
            let path = format!("{}.items", at.path);
            let limit = schema.rules.as_deref().and_then(|rules| rules.max_items);
            let count = at
                .count
                .zip(limit)
                .map(|(count, limit)| count.saturating_mul(limit));
            self.node(
                below,
                items,
                &At {
                    path,
                    count,
                    unrelated,
                },
            );
        }
        let values = declared.get("additionalProperties").and_then(Value::as_object);
        if let (Some(below), Some(values)) = (values, &schema.additional) {
            let path = format!("{}.additionalProperties", at.path);
            let limit = schema.rules.as_deref().and_then(|rules| rules.max_properties);
            let count = at
                .count
                .zip(limit)
                .map(|(count, limit)| count.saturating_mul(limit));
            self.node(
                below,
                values,
                &At {
                    path,
                    count,
                    unrelated: at.unrelated.clone(),
                },
            );
        }
        for (index, rule) in list(declared, "x-kubernetes-validations").enumerate() {
            if let Some(rule) = rule.as_object() {
                let path = format!("{}.x-kubernetes-validations[{index}]", at.path);
                self.words(rule, schema, &path);
                if self.sound {
                    self.expressions(rule, schema, &path, at);
                }
            }
        }
    }

    /// The parts that are no expressions.
    fn words(&mut self, rule: &Map<String, Value>, schema: &Schema, path: &str) {
        let word = |name: &str| text(rule, name).unwrap_or_default();
        let lines = |text: &str| text.contains(['\n', '\r']);
        let (expression, message) = (word("rule").trim(), word("message").trim());
        let field = |name: &str| format!("{path}.{name}");
        if expression.is_empty() {
            self.errors
                .push(FieldError::required(field("rule"), "rule is not specified"));
        } else if !word("message").is_empty() && message.is_empty() {
            let detail = "message must be non-empty if specified";
            self.errors
                .push(FieldError::invalid(field("message"), word("message"), detail));
        } else if lines(message) {
            let detail = "must not contain line breaks";
            self.errors
                .push(FieldError::invalid(field("message"), word("message"), detail));
        } else if lines(expression) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.errors.push(FieldError::required(field("message"), detail));
        }
        let message_expression = word("messageExpression");
        if !message_expression.is_empty() && message_expression.trim().is_empty() {
            let detail = "must be non-empty if specified";
            self.errors
                .push(FieldError::required(field("messageExpression"), detail));
        }
        if let Some(reason) = text(rule, "reason").filter(|reason| !REASONS.contains(reason)) {
            self.errors
                .push(FieldError::not_supported(field("reason"), reason, &REASONS));
        }
        let field_path = word("fieldPath");
        if field_path.is_empty() {
            return;
        }
        let problem = if field_path.trim().is_empty() {
            "must be non-empty if specified"
        } else if lines(field_path) {
            "must not contain line breaks"
        } else if !is_path(field_path.trim(), schema) {
            "must be a valid path"
        } else {
            return;
        };
        self.errors
            .push(FieldError::invalid(field("fieldPath"), field_path, problem));
    }

    fn expressions(&mut self, rule: &Map<String, Value>, schema: &Arc<Schema>, path: &str, at: &At) {
        let expression = text(rule, "rule").unwrap_or_default().trim();
        if expression.is_empty() {
            return;
        }
        let field = |name: &str| format!("{path}.{name}");
        let whole = |name: &str, detail: String| {
            FieldError::new(field(name), Problem::InvalidText(shown(rule)), detail)
        };
        let optional = rule.get("optionalOldSelf").and_then(Value::as_bool);
        // Rules at what no rule can see are not compiled.
        let Some(this) = Ty::of(schema) else { return };
        let old = if optional == Some(true) {
            Ty::Optional(Box::new(this.clone()))
        } else {
            this.clone()
        };
        let variables = [("self", this), ("oldSelf", old)];
        let parsed = parse(expression);
        let compiled_rule = compiled(expression, &parsed, &variables, schema);
        let is_sound = matches!(compiled_rule, Ok((Ty::Bool, _)));
        let uses_old = is_sound && parsed.as_ref().is_ok_and(|expr| mentions(expr, "oldSelf"));
        match compiled_rule {
            Err(detail) => self.errors.push(whole("rule", detail)),
            Ok((Ty::Bool, cost)) => {
                let count = at.count.unwrap_or_else(|| sizes::most(schema));
                let cost = cost.saturating_mul(count);
                self.costs.push((field("rule"), cost));
                if cost > cost::RULE {
                    let detail = cost::exceeds("estimated rule cost", cost, cost::RULE);
                    self.errors.push(FieldError::forbidden(field("rule"), detail));
                }
            }
            Ok(_) => {
                let detail = "cel expression must evaluate to a bool".to_owned();
                self.errors.push(whole("rule", detail));
            }
        }
        let message = text(rule, "messageExpression").unwrap_or_default().trim();
        if !message.is_empty() && is_sound {
            match compiled(message, &parse(message), &variables, schema) {
                Err(detail) => self
                    .errors
                    .push(whole("messageExpression", format!("messageExpression {detail}"))),
                Ok((Ty::String, cost)) => {
                    self.costs.push((field("messageExpression"), cost));
                    if cost > cost::RULE {
                        let detail = cost::exceeds("estimated messageExpression cost", cost, cost::RULE);
                        self.errors
                            .push(FieldError::forbidden(field("messageExpression"), detail));
                    }
                }
                Ok(_) => {
                    let detail = "messageExpression must evaluate to a string".to_owned();
                    self.errors.push(whole("messageExpression", detail));
                }
            }
        }
        if uses_old {
            if let Some(unrelated) = &at.unrelated {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {unrelated}"
                );
                self.errors
                    .push(FieldError::invalid(field("rule"), expression, detail));
            }
        } else if let Some(optional) = optional {
            self.errors.push(FieldError::invalid(
                field("optionalOldSelf"),
                optional,
                "may not be set if oldSelf is not used in rule",
            ));
        }
    }

    /// The cost of all rules together.
    fn total(&mut self, path: &str) {
        const SHOWN: usize = 4;
        let total = self
            .costs
            .iter()
            .fold(0_u64, |sum, (_, cost)| sum.saturating_add(*cost));
        if total <= cost::SCHEMA {
            return;
        }
        self.costs.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        let large = self
            .costs
            .iter()
            .take(SHOWN)
            .filter(|(_, cost)| *cost > cost::SCHEMA / 100);
        let large: Vec<FieldError> = large
            .map(|(path, _)| {
                let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                FieldError::forbidden(path.clone(), detail)
            })
            .collect();
        self.errors.extend(large);
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        self.errors.push(FieldError::forbidden(
            path,
            cost::exceeds(what, total, cost::SCHEMA),
        ));
    }
}

/// The type and the cost of an expression, or what is wrong with it.
fn compiled(
    text: &str,
    parsed: &Result<IdedExpr, String>,
    variables: &[(&str, Ty)],
    schema: &Arc<Schema>,
) -> Result<(Ty, u64), String> {
    let failed = |error: String| format!("compilation failed: {error}");
    let expr = parsed.as_ref().map_err(|error| failed(syntax(text, error)))?;
    let checked = checked(text, expr, variables).map_err(failed)?;
    let cost = bound::on_stack(CHECKER_STACK, || cost::estimated(expr, &checked.types, schema));
    Ok((checked.ty, cost.unwrap_or(u64::MAX)))
}

/// The findings about an expression without errors, or its errors.
pub(super) fn checked(text: &str, expr: &IdedExpr, variables: &[(&str, Ty)]) -> Result<Checked, String> {
    match bound::on_stack(CHECKER_STACK, || check::check(text, expr, variables)) {
        None => Err("the expression cannot be checked".to_owned()),
        Some(checked) if checked.errors.is_empty() => Ok(checked),
        Some(checked) => Err(checked.errors.join("\n")),
    }
}

/// The parser's error, in the form of the checker.
pub(super) fn syntax(text: &str, error: &str) -> String {
    const TOKENS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
    if error.contains("'<EOF>'") || error.contains("<EOF>") {
        let message = format!("Syntax error: mismatched input '<EOF>' expecting {TOKENS}");
        return placed(text, text.len(), &message);
    }
    let first = error.lines().next().unwrap_or_default();
    if first.starts_with("ERROR: ") {
        return error.to_owned();
    }
    placed(text, 0, &format!("Syntax error: {first}"))
}

/// True if a path leads to fields that are declared: `.a.b`, `.a['b']`.
fn is_path(path: &str, schema: &Schema) -> bool {
    let Some(steps) = crate::scale::steps(path) else {
        return false;
    };
    let mut at = schema;
    for step in &steps {
        match at.field(step) {
            Some(field) => at = field,
            None => return false,
        }
    }
    true
}

/// A rule as the server writes it into an error.
fn shown(rule: &Map<String, Value>) -> String {
    let word = |name: &str| escaped(&json!(text(rule, name).unwrap_or_default()));
    let or_null = |name: &str| rule.get(name).map_or_else(|| "null".to_owned(), escaped);
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        word("rule"),
        word("message"),
        word("messageExpression"),
        or_null("reason"),
        word("fieldPath"),
        or_null("optionalOldSelf"),
    )
}

/// JSON as Go writes it: safe inside of HTML.
fn escaped(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
