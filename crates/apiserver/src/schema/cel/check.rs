//! The checker of expressions: known names, known functions, operands that fit together. The rules, and the words of the
//! errors, are those of cel-go with the options that a kube-apiserver sets.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::{
    functions::overloads,
    macros::{self, name_of},
    places::places,
    re2::translated,
    types::{Bound, Ty, general},
    values::identifier,
};
use crate::schema::Schema;

/// The findings about an expression.
pub(super) struct Checked {
    pub(super) ty: Ty,
    /// The types of its parts by their ids.
    pub(super) types: HashMap<u64, Ty>,
    /// The errors, each with its place.
    pub(super) errors: Vec<String>,
}

/// Checks an expression in which the variables have these types. O(expression × its nesting).
pub(super) fn check(text: &str, expr: &IdedExpr, variables: &[(&str, Ty)]) -> Checked {
    let mut checker = Checker {
        places: places(text, expr),
        scope: variables
            .iter()
            .map(|(name, ty)| ((*name).to_owned(), ty.clone()))
            .collect(),
        bound: Bound::default(),
        types: HashMap::new(),
        errors: Vec::new(),
    };
    let ty = checker.infer(expr);
    let ty = checker.bound.resolved(&ty, true);
    if checker.errors.is_empty() {
        checker.literals(expr);
    }
    let bound = &checker.bound;
    let types = checker
        .types
        .iter()
        .map(|(id, ty)| (*id, bound.resolved(ty, true)));
    let types = types.collect();
    checker.errors.sort_by_key(|(at, _)| *at);
    Checked {
        ty,
        types,
        errors: checker
            .errors
            .into_iter()
            .map(|(at, message)| placed(text, at.min(text.len()), &message))
            .collect(),
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

struct Checker {
    places: HashMap<u64, usize>,
    scope: Vec<(String, Ty)>,
    bound: Bound,
    types: HashMap<u64, Ty>,
    errors: Vec<(usize, String)>,
}

impl Checker {
    fn error(&mut self, id: u64, message: String) -> Ty {
        let at = self.places.get(&id).copied().unwrap_or_default();
        self.errors.push((at, message));
        Ty::Error
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Ty {
        self.error(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn mismatch(&mut self, id: u64, wanted: &Ty, found: &Ty) -> Ty {
        let (wanted, found) = (
            self.bound.resolved(wanted, false),
            self.bound.resolved(found, false),
        );
        self.error(
            id,
            format!("expected type '{}' but found '{}'", wanted.name(), found.name()),
        )
    }

    fn infer(&mut self, expr: &IdedExpr) -> Ty {
        let ty = match &expr.expr {
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.variable(expr.id, name),
            Expr::Select(select) => {
                let declared = name_of(&select.operand).and_then(|of| {
                    let name = format!("{of}.{}", select.field);
                    self.declared(&name).cloned()
                });
                let ty = declared.unwrap_or_else(|| {
                    let of = self.infer(&select.operand);
                    self.field(expr.id, &of, &select.field)
                });
                if select.test { Ty::Bool } else { ty }
            }
            Expr::Call(call) => self.call(expr.id, call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::List(list) => {
                let mut items = None;
                for (at, element) in list.elements.iter().enumerate() {
                    let ty = self.infer(element);
                    let ty = self.item(element.id, ty, list.optional_indices.contains(&at));
                    items = Some(self.joined(element.id, items, ty));
                }
                Ty::List(Box::new(items.unwrap_or_else(|| self.variable_type())))
            }
            Expr::Map(map) => self.map(&map.entries),
            Expr::Struct(message) => self.undeclared(expr.id, &message.type_name),
            Expr::Unspecified => Ty::Error,
        };
        self.types.insert(expr.id, ty.clone());
        ty
    }

    fn variable_type(&mut self) -> Ty {
        Ty::Var(self.bound.fresh(1))
    }

    fn map(&mut self, entries: &[kube_cel::cel::common::ast::IdedEntryExpr]) -> Ty {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                let key = self.infer(&entry.key);
                keys = Some(self.joined(entry.key.id, keys, key));
                let value = self.infer(&entry.value);
                let value = self.item(entry.value.id, value, entry.optional);
                values = Some(self.joined(entry.value.id, values, value));
            }
        }
        // Other keys cannot be evaluated, and a type that held them twice would grow with every nesting.
        let keys = keys.map(|keys| match self.bound.resolved(&keys, false) {
            keys @ (Ty::Error | Ty::Bool | Ty::Int | Ty::Uint | Ty::Double | Ty::String) => keys,
            _ => Ty::Dyn,
        });
        let keys = keys.unwrap_or_else(|| self.variable_type());
        let values = values.unwrap_or_else(|| self.variable_type());
        Ty::Map(Box::new(keys), Box::new(values))
    }

    /// The type of an item that may be absent: what is in the optional.
    fn item(&mut self, id: u64, ty: Ty, is_optional: bool) -> Ty {
        match ty {
            Ty::Optional(inner) if is_optional => *inner,
            ty if is_optional && !ty.is_any() => {
                let wanted = Ty::Optional(Box::new(ty.clone()));
                self.mismatch(id, &wanted, &ty)
            }
            ty => ty,
        }
    }

    /// The type of the items of a literal so far, with one more.
    fn joined(&mut self, id: u64, before: Option<Ty>, ty: Ty) -> Ty {
        match before {
            None => ty,
            Some(before) if self.bound.assign(&before, &ty) => general(&before, &ty).clone(),
            Some(before) => self.mismatch(id, &before, &ty),
        }
    }

    /// The type of a variable; its name may have a dot.
    fn declared(&self, name: &str) -> Option<&Ty> {
        let found = self.scope.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, ty)| ty)
    }

    fn variable(&mut self, id: u64, name: &str) -> Ty {
        if let Some(ty) = self.declared(name) {
            return ty.clone();
        }
        let ty = match name {
            "null_type" => Ty::Null,
            "list" => Ty::List(Box::new(Ty::Dyn)),
            "map" => Ty::Map(Box::new(Ty::Dyn), Box::new(Ty::Dyn)),
            "type" => Ty::Type(Box::new(Ty::Dyn)),
            "bool" | "bytes" | "double" | "int" | "string" | "uint" => match name {
                "bool" => Ty::Bool,
                "bytes" => Ty::Bytes,
                "double" => Ty::Double,
                "int" => Ty::Int,
                "string" => Ty::String,
                _ => Ty::Uint,
            },
            "optional_type" => Ty::Optional(Box::new(Ty::Dyn)),
            _ => return self.undeclared(id, name),
        };
        Ty::Type(Box::new(ty))
    }

    fn field(&mut self, id: u64, of: &Ty, field: &str) -> Ty {
        match self.bound.resolved(of, false) {
            Ty::Object(schema) => {
                let found = schema
                    .properties
                    .iter()
                    .find(|(name, _)| identifier(name).as_deref() == Some(field));
                let ty = match found {
                    Some((name, metadata)) if schema.embedded && name == "metadata" => {
                        Some(names_of(metadata))
                    }
                    Some((_, schema)) => Ty::of(schema),
                    None => None,
                };
                ty.unwrap_or_else(|| self.error(id, format!("undefined field '{field}'")))
            }
            Ty::Map(_, values) => *values,
            Ty::Optional(inner) => {
                let ty = self.field(id, &inner, field);
                match ty {
                    Ty::Optional(_) => ty,
                    ty => Ty::Optional(Box::new(ty)),
                }
            }
            Ty::Var(_) => {
                self.bound.assign(&Ty::Dyn, of);
                Ty::Dyn
            }
            ty if ty.is_any() => Ty::Dyn,
            ty => {
                self.error(
                    id,
                    format!("type '{}' does not support field selection", ty.name()),
                );
                Ty::Dyn
            }
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Ty {
        let name = call.func_name.as_str();
        if name == operators::OPT_SELECT {
            return self.optional_field(id, call);
        }
        if let Some(ty) = self.extended_macro(id, call) {
            return ty;
        }
        let mut types: Vec<Ty> = call.args.iter().map(|arg| self.infer(arg)).collect();
        if matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            let mut ty = Ty::Bool;
            for (arg, found) in call.args.iter().zip(&types) {
                if !self.bound.assign(found, &Ty::Bool) {
                    ty = self.mismatch(arg.id, &Ty::Bool, found);
                }
            }
            return ty;
        }
        let Some(target) = call.target.as_deref() else {
            return self.resolve(id, name, &types, false);
        };
        if let Some(prefix) = qualified(target) {
            let name = format!("{prefix}.{name}");
            if overloads(&name).is_some() {
                return self.resolve(id, &name, &types, false);
            }
        }
        let target = self.infer(target);
        types.insert(0, target);
        self.resolve(id, name, &types, true)
    }

    /// The type of the result of the overloads that take these arguments.
    fn resolve(&mut self, id: u64, name: &str, types: &[Ty], on_value: bool) -> Ty {
        let Some(overloads) = overloads(name) else {
            return self.undeclared(id, name);
        };
        let mut result: Option<Ty> = None;
        for overload in overloads.iter().filter(|overload| overload.on_value == on_value) {
            let first = self.bound.fresh(2);
            let args: Vec<Ty> = overload.args.iter().map(|arg| arg.fresh(first)).collect();
            if !self.bound.assign_all(types, &args) {
                continue;
            }
            let ty = self.bound.resolved(&overload.result.fresh(first), false);
            result = Some(match result {
                None => ty,
                Some(before) if matches!(before, Ty::Dyn) || before.is_same(&ty) => before,
                Some(_) => Ty::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let names: Vec<String> = types
                .iter()
                .map(|ty| self.bound.resolved(ty, true).name())
                .collect();
            let shown = match names.split_first() {
                Some((target, args)) if on_value => format!("{target}.({})", args.join(", ")),
                _ => format!("({})", names.join(", ")),
            };
            self.no_overload(id, name, &shown)
        })
    }

    /// `a.?b`.
    fn optional_field(&mut self, id: u64, call: &CallExpr) -> Ty {
        let [of, field] = call.args.as_slice() else {
            return Ty::Error;
        };
        let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
            return Ty::Error;
        };
        let of = self.infer(of);
        match self.field(id, &of, name.inner()) {
            ty @ Ty::Optional(_) => ty,
            ty => Ty::Optional(Box::new(ty)),
        }
    }

    /// Macros that the parser leaves as calls.
    fn extended_macro(&mut self, id: u64, call: &CallExpr) -> Option<Ty> {
        let target = call.target.as_deref()?;
        let (names, bodies) = call.args.split_at(macros::declared(call)?);
        let (result, filters) = bodies.split_last()?;
        let name = call.func_name.as_str();
        let of = self.infer(target);
        let is_one = names.len() == 1;
        let types = if is_one {
            vec![match (self.bound.resolved(&of, true), name) {
                (Ty::Optional(inner), "optMap" | "optFlatMap") | (Ty::List(inner), "sortBy") => *inner,
                _ => Ty::Dyn,
            }]
        } else {
            let (key, value) = self.range(target.id, &of);
            vec![key, value]
        };
        let key = types[0].clone();
        let names = names.iter().filter_map(|name| name_of(name).map(str::to_owned));
        let scope: Vec<(String, Ty)> = names.zip(types).collect();
        let is_check = !is_one && !name.starts_with("transform");
        for condition in filters.iter().chain(is_check.then_some(result)) {
            let ty = self.within(&scope, condition);
            if !self.bound.assign(&ty, &Ty::Bool) {
                self.mismatch(condition.id, &Ty::Bool, &ty);
            }
        }
        if is_check {
            return Some(Ty::Bool);
        }
        let ty = self.within(&scope, result);
        Some(match name {
            "optMap" => Ty::Optional(Box::new(ty)),
            "sortBy" => of,
            "transformList" => Ty::List(Box::new(ty)),
            "transformMap" => Ty::Map(Box::new(key), Box::new(ty)),
            "transformMapEntry" => match self.bound.resolved(&ty, true) {
                ty @ Ty::Map(..) => ty,
                ty if ty.is_any() => ty,
                ty => {
                    let shown = format!("(map(dyn, dyn), {})", ty.name());
                    self.no_overload(id, "cel.@mapInsert", &shown)
                }
            },
            _ => ty,
        })
    }

    fn no_overload(&mut self, id: u64, name: &str, shown: &str) -> Ty {
        self.error(
            id,
            format!("found no matching overload for '{name}' applied to '{shown}'"),
        )
    }

    /// The type of an expression that sees these variables as well.
    fn within(&mut self, variables: &[(String, Ty)], expr: &IdedExpr) -> Ty {
        let before = self.scope.len();
        self.scope.extend_from_slice(variables);
        let ty = self.infer(expr);
        self.scope.truncate(before);
        ty
    }

    /// The types of what two variables run over.
    fn range(&mut self, id: u64, of: &Ty) -> (Ty, Ty) {
        match self.bound.resolved(of, false) {
            Ty::List(items) => (Ty::Int, *items),
            Ty::Map(keys, values) => (*keys, *values),
            ty => {
                let item = self.no_range(id, of, &ty);
                (item.clone(), item)
            }
        }
    }

    /// The type of a variable that runs over what is neither a list nor a map.
    fn no_range(&mut self, id: u64, of: &Ty, resolved: &Ty) -> Ty {
        if resolved.is_any() || matches!(resolved, Ty::Var(_)) {
            self.bound.assign(&Ty::Dyn, of);
            return Ty::Dyn;
        }
        self.error(
            id,
            format!(
                "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                resolved.name()
            ),
        )
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Ty {
        let of = self.infer(&loops.iter_range);
        let accumulated = self.infer(&loops.accu_init);
        let item = match self.bound.resolved(&of, false) {
            Ty::List(items) => *items,
            Ty::Map(keys, _) => *keys,
            ty => self.no_range(loops.iter_range.id, &of, &ty),
        };
        let before = self.scope.len();
        self.scope.push((loops.accu_var.clone(), accumulated.clone()));
        self.scope.push((loops.iter_var.clone(), item));
        self.infer(&loops.loop_cond);
        let step = self.infer(&loops.loop_step);
        if !self.bound.assign(&step, &accumulated) {
            self.mismatch(loops.loop_step.id, &accumulated, &step);
        }
        self.scope.truncate(before + 1);
        let result = self.infer(&loops.result);
        self.scope.truncate(before);
        self.bound.resolved(&result, false)
    }

    /// Refuses durations, times and patterns that are written out and wrong.
    fn literals(&mut self, expr: &IdedExpr) {
        if let Expr::Call(call) = &expr.expr {
            let text = call.args.last().and_then(|arg| match &arg.expr {
                Expr::Literal(LiteralValue::String(text)) => Some((arg.id, text.inner())),
                _ => None,
            });
            let is_wrong = |text: &str| match call.func_name.as_str() {
                "duration" => !crate::schema::formats::is_go_duration(text),
                "timestamp" => text.parse::<jiff::Timestamp>().is_err(),
                // A pattern that is only too large is one of RE2 nevertheless.
                "matches" => matches!(regex::Regex::new(&translated(text)), Err(regex::Error::Syntax(_))),
                _ => false,
            };
            if let Some((id, _)) = text.filter(|(_, text)| is_wrong(text)) {
                self.error(id, format!("invalid {} argument", call.func_name));
            }
        }
        super::bound::each(expr, &mut |part| self.literals(part));
    }
}

/// The name that a chain of selections is: `a.b.c`.
fn qualified(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// Of metadata rules see the names only.
fn names_of(metadata: &Schema) -> Ty {
    let mut seen = metadata.clone();
    seen.properties
        .retain(|name, _| matches!(name.as_str(), "name" | "generateName"));
    Ty::Object(Arc::new(seen))
}

fn of_literal(literal: &LiteralValue) -> Ty {
    match literal {
        LiteralValue::Boolean(_) => Ty::Bool,
        LiteralValue::Bytes(_) => Ty::Bytes,
        LiteralValue::Double(_) => Ty::Double,
        LiteralValue::Int(_) => Ty::Int,
        LiteralValue::Null => Ty::Null,
        LiteralValue::String(_) => Ty::String,
        LiteralValue::UInt(_) => Ty::Uint,
    }
}
