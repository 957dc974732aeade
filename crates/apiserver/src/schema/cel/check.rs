//! The checker of expressions: known fields, known functions, operands that fit together. Errors are worded as the checker
//! of a kube-apiserver words them, with the place in the text.

use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::{
    cost::Cost,
    functions::{FUNCTIONS, NAMESPACES},
    types::Ty,
    values::identifier,
};
use crate::schema::Schema;

/// The findings about an expression.
pub(super) struct Checked {
    pub(super) ty: Ty,
    pub(super) cost: Cost,
    /// The errors, each with its place.
    pub(super) errors: Vec<String>,
}

/// Checks an expression in which the variables have these types. O(expression × its nesting).
pub(super) fn check(text: &str, expr: &IdedExpr, variables: &[(&str, Ty)]) -> Checked {
    let mut checker = Checker {
        text,
        scope: variables
            .iter()
            .map(|(name, ty)| ((*name).to_owned(), ty.clone()))
            .collect(),
        errors: Vec::new(),
    };
    let (ty, cost) = checker.infer(expr);
    Checked {
        ty,
        cost,
        errors: checker.errors,
    }
}

/// A message with the place in the text, as the checker shows it. `at`: offset in bytes.
pub(super) fn placed(text: &str, at: usize, message: &str) -> String {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[..at].matches('\n').count() + 1;
    let column = text[start..at].chars().count();
    let shown = text[start..].lines().next().unwrap_or_default();
    let dots = ".".repeat(column);
    format!(
        "ERROR: <input>:{line}:{}: {message}\n | {shown}\n | {dots}^",
        column + 1
    )
}

struct Checker<'a> {
    text: &'a str,
    scope: Vec<(String, Ty)>,
    errors: Vec<String>,
}

impl Checker<'_> {
    fn error(&mut self, at: usize, message: &str) {
        let error = placed(self.text, at.min(self.text.len()), message);
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// The position of the first use of a word as a word of its own.
    fn word(&self, word: &str) -> usize {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        self.text
            .match_indices(word)
            .map(|(at, _)| at)
            .find(|at| !self.text[..*at].ends_with(part) && !self.text[at + word.len()..].starts_with(part))
            .unwrap_or(0)
    }

    fn infer(&mut self, expr: &IdedExpr) -> (Ty, Cost) {
        match &expr.expr {
            Expr::Literal(literal) => (of_literal(literal), Cost::ZERO),
            Expr::Ident(name) => (self.variable(name), Cost::ONE),
            Expr::Select(select) => {
                let (of, cost) = self.infer(&select.operand);
                let ty = self.field(&of, &select.field);
                (if select.test { Ty::Bool } else { ty }, cost + Cost::ONE)
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::List(list) => {
                let mut items = None;
                let mut cost = Cost::of(10);
                for element in &list.elements {
                    let (ty, more) = self.infer(element);
                    cost = cost + more;
                    items = Some(match items {
                        None => ty,
                        Some(known) if ty.fits(&known) => known,
                        Some(_) => Ty::Dyn,
                    });
                }
                (
                    Ty::List(Box::new(items.unwrap_or(Ty::Dyn)), list.elements.len() as u64),
                    cost,
                )
            }
            Expr::Map(map) => {
                let mut cost = Cost::of(30);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        cost = cost + self.infer(&entry.key).1 + self.infer(&entry.value).1;
                    }
                }
                (Ty::Map(Box::new(Ty::Dyn), map.entries.len() as u64), cost)
            }
            Expr::Struct(_) | Expr::Unspecified => (Ty::Dyn, Cost::ONE),
        }
    }

    fn variable(&mut self, name: &str) -> Ty {
        const TYPES: [&str; 11] = [
            "bool",
            "bytes",
            "double",
            "duration",
            "int",
            "list",
            "map",
            "null_type",
            "string",
            "timestamp",
            "uint",
        ];
        if let Some((_, ty)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            return ty.clone();
        }
        if !TYPES.contains(&name) && name != "type" {
            let at = self.word(name);
            self.error(at, &format!("undeclared reference to '{name}' (in container '')"));
        }
        Ty::Dyn
    }

    fn field(&mut self, of: &Ty, field: &str) -> Ty {
        match of {
            Ty::Object(schema) => {
                let found = schema
                    .properties
                    .iter()
                    .find(|(name, _)| identifier(name).as_deref() == Some(field));
                match found {
                    Some((name, metadata)) if schema.embedded && name == "metadata" => names_of(metadata),
                    Some((_, schema)) => Ty::of(schema),
                    None => {
                        let at = self.after_dot(field);
                        self.error(at, &format!("undefined field '{field}'"));
                        Ty::Dyn
                    }
                }
            }
            Ty::Map(values, _) => Ty::clone(values),
            Ty::Dyn => Ty::Dyn,
            other => {
                let at = self.after_dot(field);
                self.error(
                    at,
                    &format!("type '{}' does not support field selection", other.name()),
                );
                Ty::Dyn
            }
        }
    }

    /// The position of the dot before a field.
    fn after_dot(&self, field: &str) -> usize {
        let dotted = format!(".{field}");
        let part = |c: char| c.is_alphanumeric() || c == '_';
        self.text
            .match_indices(&dotted)
            .map(|(at, _)| at)
            .find(|at| !self.text[at + dotted.len()..].starts_with(part))
            .unwrap_or(0)
    }

    fn call(&mut self, call: &CallExpr) -> (Ty, Cost) {
        if let Some(known) = self.namespaced(call) {
            return known;
        }
        let target = call.target.as_deref().map(|target| self.infer(target));
        let two_variables = call.target.is_some()
            && call.args.len() > 2
            && call.args[..2]
                .iter()
                .all(|arg| matches!(arg.expr, Expr::Ident(_)));
        if two_variables {
            return self.over_pairs(call, target);
        }
        let args: Vec<(Ty, Cost)> = call.args.iter().map(|arg| self.infer(arg)).collect();
        let mut cost = args.iter().fold(Cost::ONE, |cost, (_, more)| cost + *more);
        let mut types: Vec<Ty> = args.into_iter().map(|(ty, _)| ty).collect();
        if let Some((ty, more)) = target {
            cost = cost + more;
            types.insert(0, ty);
        }
        let name = call.func_name.as_str();
        if let Some(ty) = self.operator(name, &types) {
            return (ty, cost + Cost::comparing(name, &types));
        }
        cost = cost + Cost::reading(name, &types);
        match FUNCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, Some(simple))) => (Ty::from(*simple), cost),
            Some((_, None)) => (Ty::Dyn, cost),
            None if name.starts_with(['_', '@', '!', '-', '?']) => (Ty::Dyn, cost),
            None => {
                let at = self.opening(name);
                self.error(at, &format!("undeclared reference to '{name}' (in container '')"));
                (Ty::Dyn, cost)
            }
        }
    }

    /// The position of the bracket behind a function's name.
    fn opening(&self, name: &str) -> usize {
        let called = format!("{name}(");
        self.text.find(&called).map_or(0, |at| at + name.len())
    }

    /// `sets.contains(a, b)` and the like: what is before the dot is no variable.
    fn namespaced(&mut self, call: &CallExpr) -> Option<(Ty, Cost)> {
        let Expr::Ident(namespace) = &call.target.as_deref()?.expr else {
            return None;
        };
        let shadowed = self.scope.iter().any(|(known, _)| known == namespace);
        if shadowed || !NAMESPACES.contains(&namespace.as_str()) {
            return None;
        }
        let cost = call
            .args
            .iter()
            .map(|arg| match (namespace.as_str(), &arg.expr) {
                ("cel", _) => Cost::ZERO,
                _ => self.infer(arg).1,
            })
            .fold(Cost::ONE, |cost, more| cost + more);
        let ty = if namespace == "sets" { Ty::Bool } else { Ty::Dyn };
        Some((ty, cost))
    }

    fn over_pairs(&mut self, call: &CallExpr, target: Option<(Ty, Cost)>) -> (Ty, Cost) {
        let (of, cost) = target.unwrap_or((Ty::Dyn, Cost::ONE));
        let (first, second) = match &of {
            Ty::List(items, _) => (Ty::Int, Ty::clone(items)),
            Ty::Map(values, _) => (Ty::String(super::types::REQUEST), Ty::clone(values)),
            _ => (Ty::Dyn, Ty::Dyn),
        };
        let before = self.scope.len();
        for (arg, ty) in call.args.iter().zip([first, second]) {
            if let Expr::Ident(name) = &arg.expr {
                self.scope.push((name.clone(), ty));
            }
        }
        let body = call.args[2..]
            .iter()
            .map(|arg| self.infer(arg).1)
            .fold(Cost::ONE, |cost, more| cost + more);
        self.scope.truncate(before);
        let ty = match call.func_name.as_str() {
            "all" | "exists" | "existsOne" | "exists_one" => Ty::Bool,
            _ => Ty::Dyn,
        };
        (ty, cost + body.times(of.size()))
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> (Ty, Cost) {
        let (range, cost) = self.infer(&loops.iter_range);
        let item = match &range {
            Ty::List(items, _) => Ty::clone(items),
            Ty::Map(..) | Ty::Object(_) => Ty::String(super::types::REQUEST),
            Ty::Dyn => Ty::Dyn,
            other => {
                let at = self.text.find(&format!("({}", loops.iter_var)).unwrap_or(0);
                self.error(
                    at,
                    &format!(
                        "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                        other.name()
                    ),
                );
                Ty::Dyn
            }
        };
        let (accumulated, init) = self.infer(&loops.accu_init);
        let is_list = matches!(accumulated, Ty::List(..));
        let before = self.scope.len();
        // The collected list is not followed: its type grows with the steps.
        let accumulator = if is_list { Ty::Dyn } else { accumulated };
        self.scope.push((loops.accu_var.clone(), accumulator));
        self.scope.push((loops.iter_var.clone(), item));
        let (_, condition) = self.infer(&loops.loop_cond);
        let (_, step) = self.infer(&loops.loop_step);
        let (result, last) = self.infer(&loops.result);
        self.scope.truncate(before);
        let ty = if is_list {
            Ty::List(Box::new(Ty::Dyn), range.size())
        } else {
            result
        };
        (ty, cost + init + last + (condition + step).times(range.size()))
    }

    /// The type of an operator's result; `None` when it is none.
    fn operator(&mut self, name: &str, types: &[Ty]) -> Option<Ty> {
        let (symbol, good, ty) = match (name, types) {
            ("_&&_" | "_||_", [a, b]) => {
                let good = a.fits(&Ty::Bool) && b.fits(&Ty::Bool);
                (name.trim_matches('_'), good, Ty::Bool)
            }
            ("!_", [a]) => ("!", a.fits(&Ty::Bool), Ty::Bool),
            ("_?_:_", [condition, a, b]) => {
                let ty = if a.fits(b) { a.clone() } else { Ty::Dyn };
                ("?", condition.fits(&Ty::Bool) && a.fits(b), ty)
            }
            ("_==_" | "_!=_", [a, b]) => (name.trim_matches('_'), a.fits(b), Ty::Bool),
            ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => {
                let ordered = |ty: &Ty| !matches!(ty, Ty::List(..) | Ty::Map(..) | Ty::Object(_));
                let good = ordered(a) && ordered(b) && (a.fits(b) || (a.is_number() && b.is_number()));
                (name.trim_matches('_'), good, Ty::Bool)
            }
            ("_+_", [a, b]) => ("+", adds(a, b), sum(a, b)),
            ("_-_", [a, b]) => ("-", subtracts(a, b), difference(a, b)),
            ("_*_" | "_/_" | "_%_", [a, b]) => {
                let number = |ty: &Ty| ty.is_number() || matches!(ty, Ty::Dyn);
                let ty = if matches!(a, Ty::Dyn) {
                    b.clone()
                } else {
                    a.clone()
                };
                (name.trim_matches('_'), number(a) && number(b) && a.fits(b), ty)
            }
            ("-_", [a]) => ("-", a.is_number() || matches!(a, Ty::Dyn), a.clone()),
            ("@in", [_, b]) => {
                let container = matches!(b, Ty::List(..) | Ty::Map(..) | Ty::Dyn);
                (" in ", container, Ty::Bool)
            }
            ("_[_]" | "_[?_]", [a, _]) => {
                let ty = match a {
                    Ty::List(items, _) | Ty::Map(items, _) if name == "_[_]" => Ty::clone(items),
                    _ => Ty::Dyn,
                };
                let good = matches!(a, Ty::List(..) | Ty::Map(..) | Ty::Dyn);
                ("[", good, ty)
            }
            _ => return None,
        };
        if !good {
            let at = self.text.find(symbol).unwrap_or(0);
            let at = if symbol == " in " { at + 1 } else { at };
            let names: Vec<String> = types.iter().map(Ty::name).collect();
            self.error(
                at,
                &format!(
                    "found no matching overload for '{name}' applied to '({})'",
                    names.join(", ")
                ),
            );
            return Some(Ty::Dyn);
        }
        Some(ty)
    }
}

/// Of metadata rules see the names only.
fn names_of(metadata: &Schema) -> Ty {
    let mut seen = metadata.clone();
    seen.properties
        .retain(|name, _| matches!(name.as_str(), "name" | "generateName"));
    Ty::Object(Arc::new(seen))
}

fn adds(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Dyn, _) | (_, Ty::Dyn) => true,
        (Ty::Timestamp, Ty::Duration) | (Ty::Duration, Ty::Timestamp | Ty::Duration) => true,
        (Ty::String(_), Ty::String(_)) | (Ty::Bytes, Ty::Bytes) => true,
        (Ty::List(x, _), Ty::List(y, _)) => x.fits(y),
        _ => a.is_number() && a.fits(b),
    }
}

fn sum(a: &Ty, b: &Ty) -> Ty {
    match (a, b) {
        (Ty::String(x), Ty::String(y)) => Ty::String(x.saturating_add(*y)),
        (Ty::List(items, x), Ty::List(_, y)) => Ty::List(items.clone(), x.saturating_add(*y)),
        (Ty::Timestamp, _) | (_, Ty::Timestamp) => Ty::Timestamp,
        (Ty::Dyn, _) | (_, Ty::Dyn) => Ty::Dyn,
        _ => a.clone(),
    }
}

fn subtracts(a: &Ty, b: &Ty) -> bool {
    match (a, b) {
        (Ty::Dyn, _) | (_, Ty::Dyn) => true,
        (Ty::Timestamp, Ty::Timestamp | Ty::Duration) | (Ty::Duration, Ty::Duration) => true,
        _ => a.is_number() && a.fits(b),
    }
}

fn difference(a: &Ty, b: &Ty) -> Ty {
    match (a, b) {
        (Ty::Timestamp, Ty::Timestamp) => Ty::Duration,
        (Ty::Dyn, _) | (_, Ty::Dyn) => Ty::Dyn,
        _ => a.clone(),
    }
}

fn of_literal(literal: &LiteralValue) -> Ty {
    match literal {
        LiteralValue::Boolean(_) => Ty::Bool,
        LiteralValue::Bytes(_) => Ty::Bytes,
        LiteralValue::Double(_) => Ty::Double,
        LiteralValue::Int(_) => Ty::Int,
        LiteralValue::Null => Ty::Null,
        LiteralValue::String(text) => Ty::String(text.inner().len() as u64),
        LiteralValue::UInt(_) => Ty::Uint,
    }
}
