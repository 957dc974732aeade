//! Macros that the parser leaves as calls: loops over two variables, those of optionals, and `sortBy`. Each becomes loops over one
//! variable, which the interpreter runs. Source: the extensions TwoVarComprehensions, OptionalTypes and Lists of cel-go.

use std::{cmp::Ordering, sync::Arc};

use kube_cel::cel::{
    Context, ExecutionError, FunctionContext, Value as Cel,
    common::ast::{
        CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue,
        MapEntryExpr, MapExpr,
    },
    objects::{Key, Map, OptionalValue},
};

use super::budget::{pay, weight};

/// Name of the function that adds the entries of a map to another.
pub(super) const MERGE: &str = "@merge";

/// Name of the function that makes pairs of the items of a list or map.
const PAIRS: &str = "@pairs";

/// Name of the function that sorts pairs of items and keys by the keys; its result is the items.
const SORT: &str = "@sortBy";

/// Names of the functions that make a list of an optional, and an optional of such a list: a variable cannot hold an optional.
const UNPACK: &str = "@unpack";
const PACK: &str = "@pack";

/// The variable that a loop gathers its result in.
const RESULT: &str = "@result";

type Result<T> = std::result::Result<T, ExecutionError>;

/// The number of variables that a macro declares: its first arguments. `None`: the call is none of these macros.
pub(super) fn declared(call: &CallExpr) -> Option<usize> {
    let count = match (call.func_name.as_str(), call.args.len()) {
        ("all" | "exists" | "existsOne", 3) => 2,
        ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => 2,
        ("optMap" | "optFlatMap" | "sortBy", 2) => 1,
        _ => return None,
    };
    let are_names = call.args[..count].iter().all(|arg| name_of(arg).is_some());
    (call.target.is_some() && are_names).then_some(count)
}

/// The name that an expression is.
pub(super) fn name_of(expr: &IdedExpr) -> Option<&str> {
    match &expr.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}

/// A call of a macro as what it stands for; `None`: it is none.
pub(super) fn expanded(expr: &IdedExpr) -> Option<Expr> {
    let Expr::Call(macro_call) = &expr.expr else {
        return None;
    };
    let (names, rest) = macro_call.args.split_at(declared(macro_call)?);
    let target = macro_call.target.as_deref()?.clone();
    let name = macro_call.func_name.as_str();
    match (names, rest) {
        ([variable], [body]) => Some(over_one(name, target, name_of(variable)?, body.clone())),
        (_, [filters @ .., body]) => {
            let pair = format!("@pair{}", expr.id);
            let with_pair = |part: &IdedExpr| {
                let mut part = part.clone();
                for (half, variable) in names.iter().enumerate() {
                    replace(
                        &mut part,
                        name_of(variable).unwrap_or_default(),
                        &half_of(&pair, half),
                    );
                }
                part
            };
            let filter = filters.first().map(with_pair);
            over_two(name, &pair, target, with_pair(body), filter)
        }
        _ => None,
    }
}

/// `optMap`, `optFlatMap` and `sortBy`.
fn over_one(name: &str, target: IdedExpr, variable: &str, body: IdedExpr) -> Expr {
    let (function, range, added) = match name {
        "sortBy" => (SORT, target, list(vec![list(vec![ident(variable), body])])),
        "optMap" => (PACK, call(UNPACK, vec![target]), list(vec![body])),
        _ => (PACK, call(UNPACK, vec![target]), call(UNPACK, vec![body])),
    };
    let step = call("_+_", vec![ident(RESULT), added]);
    let looped = loops(range, variable, list(Vec::new()), literal(true), step);
    call(function, vec![looped]).expr
}

/// The macros over two variables, as loops over pairs.
fn over_two(
    name: &str,
    pair: &str,
    target: IdedExpr,
    body: IdedExpr,
    filter: Option<IdedExpr>,
) -> Option<Expr> {
    let result = || ident(RESULT);
    let go_on = |condition| call("@not_strictly_false", vec![condition]);
    let entry = |key, value| {
        let entry = EntryExpr::MapEntry(MapEntryExpr {
            key,
            value,
            optional: false,
        });
        vec![IdedEntryExpr { id: 0, expr: entry }]
    };
    let map = |entries| ided(Expr::Map(MapExpr { entries }));
    let number = |number: i64| ided(Expr::Literal(LiteralValue::Int(number.into())));
    let (init, condition, step) = match name {
        "all" => (literal(true), go_on(result()), call("_&&_", vec![result(), body])),
        "exists" => (
            literal(false),
            go_on(call("!_", vec![result()])),
            call("_||_", vec![result(), body]),
        ),
        "existsOne" => {
            let more = call("_+_", vec![result(), number(1)]);
            let step = call("_?_:_", vec![body, more, result()]);
            (number(0), literal(true), step)
        }
        "transformList" => (list(Vec::new()), literal(true), appended(body)),
        "transformMap" => {
            let added = map(entry(half_of(pair, 0), body));
            (map(Vec::new()), literal(true), call(MERGE, vec![result(), added]))
        }
        "transformMapEntry" => (map(Vec::new()), literal(true), call(MERGE, vec![result(), body])),
        _ => return None,
    };
    let step = match filter {
        Some(filter) => call("_?_:_", vec![filter, step, result()]),
        None => step,
    };
    let looped = loops(call(PAIRS, vec![target]), pair, init, condition, step);
    Some(match name {
        "existsOne" => call("_==_", vec![looped, number(1)]).expr,
        _ => looped.expr,
    })
}

fn loops(range: IdedExpr, variable: &str, init: IdedExpr, condition: IdedExpr, step: IdedExpr) -> IdedExpr {
    ided(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: variable.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: init,
        loop_cond: condition,
        loop_step: step,
        result: ident(RESULT),
    })))
}

fn appended(item: IdedExpr) -> IdedExpr {
    call("_+_", vec![ident(RESULT), list(vec![item])])
}

fn half_of(pair: &str, half: usize) -> IdedExpr {
    let half = i64::try_from(half).unwrap_or_default();
    let half = ided(Expr::Literal(LiteralValue::Int(half.into())));
    call("_[_]", vec![ident(pair), half])
}

fn literal(flag: bool) -> IdedExpr {
    ided(Expr::Literal(LiteralValue::Boolean(flag.into())))
}

fn list(items: Vec<IdedExpr>) -> IdedExpr {
    ided(Expr::List(ListExpr::new(items)))
}

fn ident(name: &str) -> IdedExpr {
    ided(Expr::Ident(name.to_owned()))
}

pub(super) fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    ided(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    }))
}

pub(super) fn ided(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

/// Every use of a variable becomes another expression, except where a macro declares the name again.
fn replace(expr: &mut IdedExpr, variable: &str, by: &IdedExpr) {
    if name_of(expr) == Some(variable) {
        expr.expr = by.expr.clone();
        return;
    }
    match &mut expr.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                replace(target, variable, by);
            }
            let (names, args) = {
                let count = declared(call).unwrap_or_default();
                call.args.split_at_mut(count)
            };
            if !names.iter().any(|name| name_of(name) == Some(variable)) {
                args.iter_mut().for_each(|arg| replace(arg, variable, by));
            }
        }
        Expr::Comprehension(loops) => {
            replace(&mut loops.iter_range, variable, by);
            if loops.iter_var != variable {
                replace(&mut loops.loop_cond, variable, by);
                replace(&mut loops.loop_step, variable, by);
            }
        }
        Expr::List(list) => list
            .elements
            .iter_mut()
            .for_each(|item| replace(item, variable, by)),
        Expr::Select(select) => replace(&mut select.operand, variable, by),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    replace(&mut entry.key, variable, by);
                    replace(&mut entry.value, variable, by);
                }
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

/// Adds the functions that the expanded macros call.
pub(super) fn add_to(context: &mut Context<'static>) {
    context.add_function(PAIRS, |_: &FunctionContext<'_, '_>, of: Cel| pairs(&of));
    context.add_function(MERGE, |_: &FunctionContext<'_, '_>, into: Cel, more: Cel| {
        merged(into, &more)
    });
    context.add_function(SORT, |_: &FunctionContext<'_, '_>, pairs: Cel| sorted(&pairs));
    context.add_function(UNPACK, |_: &FunctionContext<'_, '_>, of: Cel| -> Result<Cel> {
        let value = <&OptionalValue>::try_from(&of)?.value().cloned();
        Ok(Cel::List(Arc::new(value.into_iter().collect())))
    });
    context.add_function(PACK, |_: &FunctionContext<'_, '_>, of: Cel| -> Result<Cel> {
        let value = match &of {
            Cel::List(items) => items.first().cloned(),
            _ => None,
        };
        let packed = value.map_or_else(OptionalValue::none, OptionalValue::of);
        Ok(Cel::Opaque(Arc::new(packed)))
    });
}

fn pairs(of: &Cel) -> Result<Cel> {
    let pair = |first: Cel, second: &Cel| Cel::List(Arc::new(vec![first, second.clone()]));
    let pairs = match of {
        Cel::List(items) => (0_i64..)
            .zip(items.iter())
            .map(|(at, item)| pair(Cel::Int(at), item))
            .collect(),
        Cel::Map(map) => map
            .map
            .iter()
            .map(|(key, value)| {
                let key = match key {
                    Key::Int(key) => Cel::Int(*key),
                    Key::Uint(key) => Cel::UInt(*key),
                    Key::Bool(key) => Cel::Bool(*key),
                    Key::String(key) => Cel::String(key.clone()),
                };
                pair(key, value)
            })
            .collect(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(Cel::List(Arc::new(pairs)))
}

fn merged(into: Cel, more: &Cel) -> Result<Cel> {
    let (Cel::Map(into), Cel::Map(more)) = (into, more) else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut all = Arc::unwrap_or_clone(into.map);
    for (key, value) in more.map.iter() {
        if all.insert(key.clone(), value.clone()).is_some() {
            let problem = format!("insert failed: key {key} already exists");
            return Err(ExecutionError::function_error("cel.@mapInsert", problem));
        }
    }
    Ok(Cel::Map(Map { map: Arc::new(all) }))
}

/// O(items × their logarithm), which is paid for.
fn sorted(pairs: &Cel) -> Result<Cel> {
    let Cel::List(of) = pairs else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let count = of.len() as u64;
    let compared = count.saturating_mul(1 + u64::from(count.max(1).ilog2()));
    pay(compared.saturating_add(weight(pairs)))?;
    let mut pairs: Vec<(&Cel, &Cel)> = Vec::with_capacity(of.len());
    for pair in of.iter() {
        match pair {
            Cel::List(pair) if pair.len() == 2 => pairs.push((&pair[1], &pair[0])),
            _ => return Err(ExecutionError::NoSuchOverload),
        }
    }
    if pairs.iter().any(|(key, _)| pairs[0].0.partial_cmp(key).is_none()) {
        return Err(ExecutionError::NoSuchOverload);
    }
    pairs.sort_by(|(one, _), (other, _)| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    let items = pairs.into_iter().map(|(_, item)| item.clone()).collect();
    Ok(Cel::List(Arc::new(items)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::schema::cel::free::{self, Expression, Seen};

    fn value(text: &str) -> Result<Value, String> {
        free::start();
        let object = json!({"l": [3, 5], "m": {"a": 1, "b": 2}, "deep": {"x": {"a": 1}}});
        Expression::compile(text)?
            .run(&[("self", Seen::plain(&object))])
            .map(|value| value.json())
    }

    #[test]
    fn macros_mean_what_they_mean_in_cel_go() {
        for (text, wanted) in [
            ("self.l.all(i, v, v > i)", json!(true)),
            ("self.l.exists(i, v, i == 1 && v == 5)", json!(true)),
            ("self.l.existsOne(i, v, v > 3)", json!(true)),
            ("self.l.existsOne(i, v, v > 2)", json!(false)),
            ("self.m.existsOne(k, v, k == 'b' && v == 2)", json!(true)),
            ("self.l.existsOne(v, v > 3)", json!(true)),
            ("self.l.transformList(i, v, i + v)", json!([3, 6])),
            ("self.l.transformList(i, v, i > 0, v)", json!([5])),
            ("self.m.transformMap(k, v, v * 2)", json!({"a": 2, "b": 4})),
            ("self.m.transformMap(k, v, v > 1, k + k)", json!({"b": "bb"})),
            ("self.l.transformMap(i, v, v)[1]", json!(5)),
            (
                "self.m.transformMapEntry(k, v, {k + k: v})",
                json!({"aa": 1, "bb": 2}),
            ),
            (
                "self.m.transformMapEntry(k, v, k == 'a', {k: [v]})",
                json!({"a": [1]}),
            ),
            // The names of an inner loop hide those of the outer one, and its body sees both.
            (
                "self.deep.all(k, v, v.exists(i, w, i == 'a' && k == 'x'))",
                json!(true),
            ),
            ("self.l.all(i, v, self.m.exists(i, w, i == 'a'))", json!(true)),
            (
                "self.deep.transformList(k, v, v.transformMap(i, w, k + i))",
                json!([{"a": "xa"}]),
            ),
            ("optional.of(1).optMap(v, v + 1).value()", json!(2)),
            ("optional.none().optMap(v, v + 1).hasValue()", json!(false)),
            ("self.?m.optMap(v, v.a + 1).orValue(0)", json!(2)),
            ("self.?nope.optMap(v, v.a).orValue(7)", json!(7)),
            (
                "self.?m.optFlatMap(v, v.?b).optMap(v, v * 10).orValue(0)",
                json!(20),
            ),
            ("self.?nope.?deeper.hasValue()", json!(false)),
            ("self.?m.?a.orValue(0) + self.?m.a.orValue(0)", json!(2)),
            ("self.?m.nope.orValue(9)", json!(9)),
            ("self.l[?1].orValue(0) + self.l[?7].orValue(1)", json!(6)),
            ("self.m[?'b'].value() + self.?m[?'c'].orValue(3)", json!(5)),
            ("[{'n': 2}, {'n': 1}].sortBy(e, e.n).map(e, e.n)", json!([1, 2])),
            ("[].sortBy(e, e)", json!([])),
            ("['bb', 'a'].sortBy(e, e.size())", json!(["a", "bb"])),
            ("lists.range(3)", json!([0, 1, 2])),
        ] {
            assert_eq!(value(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_a_macro_cannot_do_is_an_error() {
        for (text, error) in [
            (
                "self.m.transformMapEntry(k, v, {'same': v})",
                "insert failed: key same already exists",
            ),
            ("self.m.transformMapEntry(k, v, v)", "no such overload"),
            ("[1, 'a'].sortBy(e, e)", "no such overload"),
            ("'text'.all(i, v, true)", "no such overload"),
        ] {
            assert_eq!(value(text), Err(error.to_owned()), "{text}");
        }
    }
}
