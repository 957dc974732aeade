//! CEL outside of CRDs: expressions over variables with names of their own, as admission has them.
//!
//! They are compiled and bounded like the rules of CRDs. What they build (`Object{…}`, `JSONPatch{…}`) are maps.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use kube_cel::cel::{
    Value as Cel,
    common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr},
    objects::{Key, Map as CelMap},
};
use serde_json::{Map, Value};

use super::{OUT_OF_BUDGET, bound, explained, parse_with, values::Variables};
use crate::schema::Schema;

/// Compiled expressions that are remembered; each is bounded in size.
const MOST_KNOWN: usize = 256;

static KNOWN: LazyLock<Mutex<HashMap<String, Expression>>> = LazyLock::new(Mutex::default);

/// An expression that can be evaluated.
#[derive(Clone, Debug)]
pub(crate) struct Expression(Arc<IdedExpr>);

/// A value that expressions see.
#[derive(Clone)]
pub(crate) struct Seen(Cel);

crate::hidden::without_content!(Seen);

impl Seen {
    /// A value of a schema: its field names are identifiers. O(value).
    pub(crate) fn of(value: &Value, schema: &Schema) -> Self {
        Self(Variables::of(value, None, schema).this)
    }

    /// A value without a schema.
    pub(crate) fn plain(value: &Value) -> Self {
        Self::of(value, &Schema::default())
    }

    /// A map of values.
    pub(crate) fn map(entries: &[(String, Self)]) -> Self {
        let entries = entries.iter().map(|(name, value)| {
            let key = Key::String(Arc::new(name.clone()));
            (key, value.0.clone())
        });
        let map = Arc::new(entries.collect());
        Self(Cel::Map(CelMap { map }))
    }

    /// Its value as a boolean; `None` if it is not one.
    pub(crate) fn truth(&self) -> Option<bool> {
        match &self.0 {
            Cel::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// A string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.0 {
            Cel::String(text) => Some(text),
            _ => None,
        }
    }

    /// The name of its type.
    pub(crate) fn type_name(&self) -> String {
        self.0.type_of().to_string()
    }

    /// The value as JSON; what JSON does not know is null.
    pub(crate) fn json(&self) -> Value {
        json(&self.0)
    }
}

/// All steps of the next evaluations are left again: one request, one budget.
pub(crate) fn start() {
    bound::start();
}

impl Expression {
    /// Compiles a text; the error is in the parser's words. Recently compiled texts are cached: policies
    /// are evaluated for every write.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(expression) = known.get(text) {
            return Ok(expression.clone());
        }
        drop(known);
        let expr = parse_with(text, structs_are_maps)?;
        let expression = Self(Arc::new(bound::bounded(expr)));
        known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(text.to_owned(), expression.clone());
        Ok(expression)
    }

    /// Evaluates, in the words of a kube-apiserver when it fails.
    pub(crate) fn run(&self, variables: &[(&str, Seen)]) -> Result<Seen, String> {
        let variables: Vec<(&str, Cel)> = variables
            .iter()
            .map(|(name, value)| (*name, value.0.clone()))
            .collect();
        let before = bound::left();
        match bound::run_with(&self.0, &variables) {
            _ if bound::is_spent() && !bound::is_most(before) => Err(OUT_OF_BUDGET.to_owned()),
            Ok(value) => Ok(Seen(value)),
            Err(error) => Err(explained(&error)),
        }
    }

    /// The value of an expression that uses no variables; `None` when it uses some or fails.
    pub(crate) fn constant(&self) -> Option<Seen> {
        start();
        bound::run_with(&self.0, &[]).ok().map(Seen)
    }
}

/// `Type{field: value}` becomes `{"field": value}`. Stops at a depth that is refused afterwards.
fn structs_are_maps(expr: &mut IdedExpr, depth: usize) {
    if depth == 0 {
        return;
    }
    if let Expr::Struct(message) = &mut expr.expr {
        let mut entries = std::mem::take(&mut message.entries);
        for entry in &mut entries {
            if let EntryExpr::StructField(field) = &mut entry.expr {
                let key = IdedExpr {
                    id: entry.id,
                    expr: Expr::Literal(LiteralValue::String(std::mem::take(&mut field.field).into())),
                };
                entry.expr = EntryExpr::MapEntry(MapEntryExpr {
                    key,
                    value: std::mem::take(&mut field.value),
                    optional: field.optional,
                });
            }
        }
        expr.expr = Expr::Map(MapExpr { entries });
    }
    match &mut expr.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                structs_are_maps(target, depth - 1);
            }
            for argument in &mut call.args {
                structs_are_maps(argument, depth - 1);
            }
        }
        Expr::Comprehension(loops) => {
            for part in [
                &mut loops.iter_range,
                &mut loops.accu_init,
                &mut loops.loop_cond,
                &mut loops.loop_step,
                &mut loops.result,
            ] {
                structs_are_maps(part, depth - 1);
            }
        }
        Expr::List(list) => {
            for item in &mut list.elements {
                structs_are_maps(item, depth - 1);
            }
        }
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    structs_are_maps(&mut entry.key, depth - 1);
                    structs_are_maps(&mut entry.value, depth - 1);
                }
            }
        }
        Expr::Select(select) => structs_are_maps(&mut select.operand, depth - 1),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

fn json(value: &Cel) -> Value {
    match value {
        Cel::List(items) => Value::Array(items.iter().map(json).collect()),
        Cel::Map(map) => {
            let mut object = Map::new();
            for (key, value) in map.map.iter() {
                object.insert(key.to_string(), json(value));
            }
            Value::Object(object)
        }
        Cel::Int(number) => (*number).into(),
        Cel::UInt(number) => (*number).into(),
        Cel::Float(number) => (*number).into(),
        Cel::String(text) => text.as_str().into(),
        Cel::Bool(truth) => (*truth).into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str, object: &Value) -> Result<Value, String> {
        start();
        let object = Seen::plain(object);
        Expression::compile(text)?
            .run(&[("object", object)])
            .map(|value| value.json())
    }

    #[test]
    fn what_is_constructed_is_a_map() {
        assert_eq!(
            value(
                "[JSONPatch{op: 'add', path: '/a', value: Object.spec{n: object.n + 1}}]",
                &json!({"n": 1})
            ),
            Ok(json!([{"op": "add", "path": "/a", "value": {"n": 2}}]))
        );
    }

    #[test]
    fn errors_are_reported_in_the_servers_words() {
        for (text, error) in [
            ("object.labels == 1", "no such key: labels"),
            (
                "object.nope(",
                "ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.nope(\n | ............^",
            ),
        ] {
            assert_eq!(value(text, &json!({})), Err(error.to_owned()), "{text}");
        }
        for bad in ["(".repeat(1000), "a.".repeat(20_000), "1+".repeat(7000)] {
            assert!(value(&bad, &json!({})).is_err());
        }
    }
}
