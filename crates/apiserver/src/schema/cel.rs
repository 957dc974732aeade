//! The CEL rules of a CRD (`x-kubernetes-validations`): compiled once, evaluated over an object and its old state.
//!
//! The parser, the interpreter and the Kubernetes functions are those of the `kube-cel` crate; the conversion of values, the
//! conditions under which a rule applies, and the report of its failure are ours. The cost of every evaluation is bounded: the
//! steps of loops, and the sizes of copied and searched values.

use serde_json::{Map, Value};

use kube_cel::cel::{ExecutionError, Value as Cel, common::ast::IdedExpr, parser::Parser};

use crate::{
    schema::{Schema, Type, declared::text, validate::Former},
    status::{FieldError, Problem},
};

pub(crate) mod admit;
mod bound;
mod budget;
mod check;
mod cost;
pub(crate) mod free;
mod functions;
mod macros;
mod places;
pub(crate) mod policy;
mod re2;
mod sizes;
mod types;
mod values;

/// Longest text of a rule that is compiled.
pub(crate) const LONGEST: usize = 16 << 10;

/// The maximum nesting depth of an expression: it is evaluated on the stack of a request.
const DEEPEST: usize = 100;

/// The maximum number of operators in an expression: each may be a level of its syntax tree.
const OPERATORS: usize = 2000;

/// The parser's own stack in bytes, enough for [`OPERATORS`] levels.
const PARSER_STACK: usize = 128 << 20;

/// The error of an expression when those before it used up the budget.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// One rule, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The rule as written.
    rule: String,
    message: String,
    reason: String,
    field_path: String,
    optional_old: bool,
    uses_old: bool,
    program: Result<IdedExpr, String>,
    /// The messageExpression as written, and ready.
    computed: Option<(String, IdedExpr)>,
}

impl Rule {
    /// A rule of the list `x-kubernetes-validations`; `None` when it is no object or empty.
    pub(crate) fn compile(declared: &Value) -> Option<Self> {
        let declared: &Map<String, Value> = declared.as_object()?;
        let word = |name: &str| text(declared, name).unwrap_or_default().trim().to_owned();
        let rule = word("rule");
        if rule.is_empty() {
            return None;
        }
        let message_expression = word("messageExpression");
        let parsed = parse(&rule);
        Some(Self {
            uses_old: parsed.as_ref().is_ok_and(|expr| mentions(expr, "oldSelf")),
            program: parsed.map(bound::bounded),
            computed: Some(message_expression)
                .filter(|text| !text.is_empty())
                .and_then(|text| parse(&text).ok().map(|expr| (text, bound::bounded(expr)))),
            message: word("message"),
            reason: word("reason"),
            field_path: word("fieldPath"),
            optional_old: declared.get("optionalOldSelf") == Some(&Value::Bool(true)),
            rule,
        })
    }
}

/// The expression of a text; the parser's complaint, and that of an expression too large or of a kind that is not supported.
pub(crate) fn parse(text: &str) -> Result<IdedExpr, String> {
    parse_with(text, |_, _| {})
}

/// The same with a first change to the expression, down to a depth.
fn parse_with(text: &str, change: fn(&mut IdedExpr, usize)) -> Result<IdedExpr, String> {
    if text.len() > LONGEST {
        return Err(format!(
            "expression code point size exceeds limit: size: {}, limit {LONGEST}",
            text.len()
        ));
    }
    let too_deep = || "expression recursion limit exceeded: 250".to_owned();
    if bound::brackets(text) > DEEPEST || bound::operators(text) > OPERATORS {
        return Err(too_deep());
    }
    // The syntax tree of a text may be too deep for a usual stack, even to be dropped.
    let parsed = bound::on_stack(PARSER_STACK, || {
        match Parser::default().enable_optional_syntax(true).parse(text) {
            Ok(mut expr) => {
                change(&mut expr, DEEPEST);
                Ok(Some(expr).filter(|expr| bound::is_supported(expr, DEEPEST)))
            }
            Err(errors) => Err(errors.to_string().replace("\n|", "\n |")),
        }
    });
    match parsed {
        Some(Ok(Some(expr))) => Ok(expr),
        Some(Ok(None)) => Err(too_deep()),
        Some(Err(error)) => Err(error),
        None => Err("the expression cannot be read".to_owned()),
    }
}

/// True if a variable is used.
pub(crate) fn mentions(expr: &IdedExpr, variable: &str) -> bool {
    expr.references().has_variable(variable)
}

/// The rules that are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The rules that decide: on values that are new or changed, and all that compare with the old value.
    Deciding,
    /// The rules that only warn: on values that did not change.
    Ratcheted,
}

/// The errors of `value` by the rules of `schema`; `base`: the field that it is. O(object × rules), bounded in steps.
#[must_use]
pub(crate) fn evaluate(
    base: Option<&str>,
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    which: Which,
) -> Vec<FieldError> {
    if !schema.checked {
        return Vec::new();
    }
    let mut walk = Walk {
        which,
        errors: Vec::new(),
    };
    bound::start();
    let path = base.unwrap_or_default().to_owned();
    walk.node(&path, value, old, false, schema);
    walk.errors
}

struct Walk {
    which: Which,
    errors: Vec<FieldError>,
}

impl Walk {
    /// `same`: a parent did not change, so neither did this.
    fn node(&mut self, path: &str, value: &Value, old: Option<&Value>, same: bool, schema: &Schema) {
        if !schema.checked || bound::is_spent() {
            return;
        }
        let same = same || old == Some(value);
        self.rules(path, value, old, same, schema);
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let Some(field) = schema.field(name).filter(|field| field.checked) else {
                        continue;
                    };
                    let here = if path.is_empty() {
                        name.clone()
                    } else if schema.properties.contains_key(name) {
                        format!("{path}.{name}")
                    } else {
                        format!("{path}[{name}]")
                    };
                    self.node(&here, value, old.and_then(|old| old.get(name)), same, field);
                }
            }
            Value::Array(items) => {
                let Some(inner) = schema.items.as_deref() else {
                    return;
                };
                let former = Former::of(old, schema);
                for (at, item) in items.iter().enumerate() {
                    self.node(&format!("{path}[{at}]"), item, former.of_item(item), same, inner);
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, path: &str, value: &Value, old: Option<&Value>, same: bool, schema: &Schema) {
        let Some(rules) = schema
            .rules
            .as_deref()
            .filter(|rules| !rules.validations.is_empty())
        else {
            return;
        };
        // A null is no value of the rule's type.
        if value.is_null() {
            return;
        }
        let mut variables: Option<values::Variables> = None;
        for rule in &rules.validations {
            let ratcheted = same && !rule.uses_old;
            if ratcheted != (self.which == Which::Ratcheted) {
                continue;
            }
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let variables = variables.get_or_insert_with(|| values::Variables::of(value, old, schema));
            if let Some(error) = apply(rule, variables, path, value, schema) {
                self.errors.push(error);
            }
            if bound::is_spent() {
                return;
            }
        }
    }
}

/// The error of one rule, if it fails.
fn apply(
    rule: &Rule,
    variables: &values::Variables,
    path: &str,
    value: &Value,
    schema: &Schema,
) -> Option<FieldError> {
    let problem = |at: String, detail: String| Some(FieldError::invalid(at, type_name(schema.kind), detail));
    let program = match &rule.program {
        Ok(program) => program,
        Err(error) => return problem(field(path), format!("rule compile error: {error}")),
    };
    let named = if rule.message.is_empty() {
        &rule.rule
    } else {
        &rule.message
    };
    let before = bound::left();
    let result = bound::run(program, variables, rule.optional_old);
    if bound::is_spent() {
        let detail = if bound::is_most(before) {
            format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {named}"
            )
        } else {
            OUT_OF_BUDGET.to_owned()
        };
        return problem(field(path), detail);
    }
    match result {
        Ok(Cel::Bool(true)) => None,
        Ok(_) => {
            let at = field(&format!("{path}{}", steps(&rule.field_path)));
            let before = bound::left();
            let computed = rule.computed.as_ref().and_then(|(_, program)| {
                computed_message(&bound::run(program, variables, rule.optional_old))
            });
            if bound::is_spent() {
                let detail = match &rule.computed {
                    Some((text, _)) if bound::is_most(before) => format!(
                        "no further validation rules will be run due to call cost exceeds limit for messageExpression: {text:?}"
                    ),
                    _ => format!(
                        "messageExpression evaluation{}",
                        &OUT_OF_BUDGET["validation".len()..]
                    ),
                };
                return problem(at, detail);
            }
            let message = computed.unwrap_or_else(|| match rule.message.as_str() {
                "" => format!("failed rule: {}", rule.rule),
                message => message.to_owned(),
            });
            Some(failure(&rule.reason, at, value, message))
        }
        Err(error) => {
            let detail = match explained(&error) {
                error if error.starts_with("no such overload") => format!(
                    "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {named}"
                ),
                error => format!("{error} evaluating rule: {named}"),
            };
            problem(field(path), detail)
        }
    }
}

/// The message that a messageExpression came to, if it is one line of a sensible length.
fn computed_message(result: &Result<Cel, ExecutionError>) -> Option<String> {
    const MOST: usize = 5 << 10;
    let Ok(Cel::String(text)) = result else {
        return None;
    };
    let text = text.trim();
    (!text.is_empty() && text.len() <= MOST && !text.contains('\n')).then(|| text.to_owned())
}

fn failure(reason: &str, at: String, value: &Value, message: String) -> FieldError {
    let shown = !value.is_object() && !value.is_array();
    match reason {
        "FieldValueForbidden" => FieldError::forbidden(at, message),
        "FieldValueRequired" => FieldError::required(at, message),
        "FieldValueDuplicate" if shown => FieldError::duplicate(at, value.clone()),
        "FieldValueDuplicate" => FieldError::new(at, Problem::DuplicateUnshown, ""),
        _ if shown => FieldError::invalid(at, value.clone(), message),
        _ => FieldError::new(at, Problem::InvalidUnshown, message),
    }
}

/// `.a.b['c']` as field paths are written: `.a.b[c]`.
fn steps(path: &str) -> String {
    path.replace("['", "[").replace("']", "]")
}

fn field(path: &str) -> String {
    match path.strip_prefix('.').unwrap_or(path) {
        "" => "<nil>".to_owned(),
        path => path.to_owned(),
    }
}

fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
        Type::Any | Type::IntOrString => "",
    }
}

/// An error of an evaluation in the words of the interpreter that a kube-apiserver uses.
fn explained(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::FunctionError { function, .. } if function == "quantity" => {
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned()
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedTargetType { .. } => "no such overload".to_owned(),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Cel::Int(at)) => format!("index out of bounds: {at}"),
        ExecutionError::UndeclaredReference(name) => {
            format!("undeclared reference to '{name}' (in container '')")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
