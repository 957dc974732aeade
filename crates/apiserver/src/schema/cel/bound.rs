//! Evaluation within bounds: what a rule does is counted, and one that does too much ends with an error.

use std::sync::{Arc, LazyLock};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, Value as Cel,
        common::ast::{EntryExpr, Expr, IdedExpr},
        objects::OptionalValue,
    },
};

use super::{
    budget::{self, TICK, WEIGH, pay, step, weight},
    macros::{self, MERGE, call, ided},
    values::Variables,
};
pub(super) use budget::{is_most, is_spent, left, start};

/// The part of its variables' weight that a rule pays for being handed them.
const SHARE: u64 = 4;

/// The functions that rules may call: shared, they are many.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    budget::add_to(&mut context);
    macros::add_to(&mut context);
    context
});

/// Evaluates an expression. A panic of the interpreter is an error like others.
pub(super) fn run(
    program: &IdedExpr,
    variables: &Variables,
    optional_old: bool,
) -> Result<Cel, ExecutionError> {
    step()?;
    pay(variables.weight / SHARE)?;
    let evaluate = || {
        let mut context = FUNCTIONS.new_inner_scope();
        context.add_variable_from_value("self", variables.this.clone());
        match (&variables.old, optional_old) {
            (Some(old), false) => context.add_variable_from_value("oldSelf", old.clone()),
            (Some(old), true) => {
                context.add_variable_from_value(
                    "oldSelf",
                    Cel::Opaque(Arc::new(OptionalValue::of(old.clone()))),
                );
            }
            (None, true) => {
                context.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(OptionalValue::none())));
            }
            (None, false) => {}
        }
        Cel::resolve(program, &context)
    };
    guarded(program, evaluate)
}

/// The same with variables of any name.
pub(super) fn run_with(program: &IdedExpr, variables: &[(&str, Cel)]) -> Result<Cel, ExecutionError> {
    step()?;
    let handed: u64 = variables.iter().map(|(_, value)| weight(value)).sum();
    pay(handed / SHARE)?;
    let evaluate = || {
        let mut context = FUNCTIONS.new_inner_scope();
        for (name, value) in variables {
            context.add_variable_from_value(*name, value.clone());
        }
        Cel::resolve(program, &context)
    };
    guarded(program, evaluate)
}

/// Evaluates on the stack of the request, or, when the expression is deep, on one of its own. A panic is an error.
fn guarded(
    program: &IdedExpr,
    evaluate: impl FnOnce() -> Result<Cel, ExecutionError> + Send,
) -> Result<Cel, ExecutionError> {
    const SHALLOW: usize = 20;
    const STACK: usize = 16 << 20;
    let broken = || ExecutionError::function_error("cel", "the expression cannot be evaluated");
    if is_supported(program, SHALLOW) {
        return std::panic::catch_unwind(std::panic::AssertUnwindSafe(evaluate))
            .unwrap_or_else(|_| Err(broken()));
    }
    let left = budget::left();
    let done = on_stack(STACK, move || {
        budget::set_left(left);
        (evaluate(), budget::left())
    });
    let (result, left) = done.unwrap_or_else(|| (Err(broken()), left));
    budget::set_left(left);
    result
}

/// Works in a thread with a stack of so many bytes; `None` when it panics or there is no such thread.
pub(super) fn on_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(bytes)
            .spawn_scoped(scope, work)
            .ok()?;
        thread.join().ok()
    })
}

/// Depth of nested brackets: what the parser would recurse into.
pub(super) fn brackets(text: &str) -> usize {
    let (mut deep, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => deep += 1,
            b')' | b']' | b'}' => deep = deep.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(deep);
    }
    deepest
}

/// Characters that may begin an operator or a selection.
pub(super) fn operators(text: &str) -> usize {
    text.bytes()
        .filter(|byte| b"+-*/%<>=!&|?.([{".contains(byte) || byte.is_ascii_whitespace())
        .count()
}

/// True if the interpreter can evaluate the expression: not too deep, no messages constructed.
pub(super) fn is_supported(expr: &IdedExpr, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    let mut good = !matches!(expr.expr, Expr::Struct(_) | Expr::Unspecified);
    let is_added = matches!(&expr.expr, Expr::Call(call) if call.func_name == WEIGH);
    let depth = if is_added { depth } else { depth - 1 };
    each(expr, &mut |child| good = good && is_supported(child, depth));
    good
}

/// Visits the direct parts of an expression.
pub(super) fn each<'a>(expr: &'a IdedExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    match &expr.expr {
        Expr::Call(call) => {
            if let Some(target) = &call.target {
                visit(target);
            }
            call.args.iter().for_each(visit);
        }
        Expr::Comprehension(loops) => {
            for part in [
                &loops.iter_range,
                &loops.accu_init,
                &loops.loop_cond,
                &loops.loop_step,
                &loops.result,
            ] {
                visit(part);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(visit),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    visit(&entry.key);
                    visit(&entry.value);
                }
            }
        }
        Expr::Select(select) => visit(&select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

/// The same expression with every loop counting its steps, every copy its size, and macros as what they stand for.
pub(super) fn bounded(mut expr: IdedExpr) -> IdedExpr {
    rewrite(&mut expr);
    expr
}

fn rewrite(expr: &mut IdedExpr) {
    if let Some(expanded) = macros::expanded(expr) {
        expr.expr = expanded;
    }
    match &mut expr.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                rewrite(target);
            }
            call.args.iter_mut().for_each(rewrite);
            match (call.func_name.as_str(), call.args.as_mut_slice()) {
                // A comparison with a text of the rule itself costs no more than that text.
                ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_", [left, right])
                    if !is_literal(left) && !is_literal(right) =>
                {
                    weigh(left);
                }
                ("@in", [_, all]) => weigh(all),
                ("_+_" | "_[_]" | "_?._" | "_[?_]" | MERGE, [_, _]) => weigh(expr),
                _ => {}
            }
        }
        Expr::Comprehension(loops) => {
            rewrite(&mut loops.iter_range);
            rewrite(&mut loops.accu_init);
            rewrite(&mut loops.loop_step);
            rewrite(&mut loops.result);
            let condition = std::mem::take(&mut loops.loop_cond);
            let copied = [&loops.accu_var, &loops.iter_var].map(|name| ided(Expr::Ident(name.clone())));
            loops.loop_cond = call("_&&_", vec![call(TICK, copied.into()), condition]);
        }
        Expr::List(list) => {
            for element in &mut list.elements {
                rewrite(element);
                weigh(element);
            }
        }
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    rewrite(&mut entry.key);
                    rewrite(&mut entry.value);
                    weigh(&mut entry.value);
                }
            }
        }
        Expr::Select(select) => {
            rewrite_base(&mut select.operand);
            weigh(expr);
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

/// The same for what something is selected from: only what is selected in the end is copied.
fn rewrite_base(expr: &mut IdedExpr) {
    match &mut expr.expr {
        Expr::Select(select) => rewrite_base(&mut select.operand),
        _ => rewrite(expr),
    }
}

/// Makes an expression count the size of its value, unless that is known or counted.
fn weigh(expr: &mut IdedExpr) {
    let is_counted = matches!(&expr.expr, Expr::Call(call) if call.func_name == WEIGH);
    if !is_counted && !is_literal(expr) {
        let inner = std::mem::take(expr);
        *expr = call(WEIGH, vec![inner]);
    }
}

fn is_literal(expr: &IdedExpr) -> bool {
    matches!(expr.expr, Expr::Literal(_))
}
