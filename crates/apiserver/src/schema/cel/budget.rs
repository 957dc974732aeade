//! The budget of the rules of one request: loop steps, and the values copied, compared and searched between them.
//!
//! The interpreter copies a value wherever it is selected, handed to a function or gathered in a loop, so costs are counted
//! where values go: `bound` wraps those places, and the functions whose cost grows with their operands are wrapped here.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
    time::Instant,
};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, Value as Cel,
        common::{
            ast::{CallExpr, Expr, IdedExpr, operators},
            types::{CelBytes, CelList, CelMap, CelOptional, CelString, MAP_TYPE},
            value::Val,
        },
        objects::OptionalValue,
    },
};
use regex::Regex;

/// Units of a loop step beside what it copies.
const STEP: u64 = 128;

/// Units that one request may use up in all its rules: 300,000 steps, what the cost limit of a kube-apiserver comes to, or
/// values of some 300 MB; seconds at most.
const UNITS: u64 = 300_000 * STEP;

/// Bytes of a text that cost one unit.
const BYTES: u64 = 8;

/// Name of the function that counts a step: its arguments are variables that the step copies. No identifier of a rule can
/// be this.
pub(super) const TICK: &str = "@tick";

/// Name of the function that is its argument, and counts how large that is.
pub(super) const WEIGH: &str = "@weigh";

/// Regular expressions that are remembered; each is bounded in size.
const MOST_KNOWN: usize = 128;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

type Result<T> = std::result::Result<T, ExecutionError>;

/// A new request begins: everything is left.
pub(super) fn start() {
    LEFT.set(UNITS);
}

/// True if all is used up.
pub(super) fn is_spent() -> bool {
    LEFT.get() == 0
}

/// True if a call that began with so much left, and used it up, used most of the budget alone.
pub(super) fn is_most(left: u64) -> bool {
    left >= UNITS / 2
}

/// The rest of the budget.
pub(super) fn left() -> u64 {
    LEFT.get()
}

/// Sets what is left.
pub(super) fn set_left(left: u64) {
    LEFT.set(left);
}

/// Pays for something.
pub(super) fn pay(units: u64) -> Result<()> {
    let left = LEFT.get().saturating_sub(units);
    LEFT.set(left);
    if left == 0 {
        return Err(ExecutionError::function_error(
            "cost",
            "operation cancelled: actual cost limit exceeded",
        ));
    }
    Ok(())
}

/// Pays for one step.
pub(super) fn step() -> Result<()> {
    pay(STEP)
}

/// Units of a value. O(value).
pub(super) fn weight(value: &Cel) -> u64 {
    match value {
        Cel::String(text) => of_bytes(text.len()),
        Cel::Bytes(bytes) => of_bytes(bytes.len()),
        Cel::List(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Cel::Map(map) => 2 + map.map.values().map(|value| 4 + weight(value)).sum::<u64>(),
        Cel::Opaque(of) => {
            let optional = of.downcast_ref::<OptionalValue>();
            1 + optional.and_then(OptionalValue::value).map_or(0, weight)
        }
        _ => 1,
    }
}

/// The same of a value in the interpreter's hands.
fn weight_of(value: &dyn Val) -> u64 {
    if let Some(text) = value.downcast_ref::<CelString>() {
        of_bytes(text.inner().len())
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        of_bytes(bytes.inner().len())
    } else if let Some(items) = value.downcast_ref::<CelList>() {
        1 + items
            .inner()
            .iter()
            .map(|item| weight_of(item.as_ref()))
            .sum::<u64>()
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        2 + map
            .inner()
            .values()
            .map(|value| 4 + weight_of(value.as_ref()))
            .sum::<u64>()
    } else if let Some(optional) = value.downcast_ref::<CelOptional>() {
        1 + optional.inner().map_or(0, weight_of)
    } else {
        1
    }
}

fn of_bytes(length: usize) -> u64 {
    1 + length as u64 / BYTES
}

/// Adds what counts, and replaces what has to be counted.
pub(super) fn add_to(context: &mut Context<'static>) {
    context.add_function(TICK, |ftx: &FunctionContext<'_, '_>| -> Result<Cel> {
        let copied = ftx.args.iter().filter_map(|argument| match &argument.expr {
            Expr::Ident(name) => Some(weight_of(ftx.ptx.get_variable(name)?.as_ref())),
            _ => None,
        });
        pay(STEP + copied.sum::<u64>())?;
        Ok(Cel::Bool(true))
    });
    context.add_function(WEIGH, |ftx: &FunctionContext<'_, '_>| -> Result<Cel> {
        let [argument] = ftx.args else {
            return Err(ExecutionError::NoSuchOverload);
        };
        let value = found(argument, ftx.ptx)?;
        pay(weight_of(value.as_ref()))?;
        value.as_ref().try_into()
    });
    for (names, costs) in COSTS {
        for name in names.split(' ') {
            let costs = *costs;
            context.add_function(name, move |ftx: &FunctionContext<'_, '_>| -> Result<Cel> {
                paid(name, costs, ftx)
            });
        }
    }
}

/// The value of an expression; what is selected from a variable is not copied on the way.
fn found<'a>(expr: &'a IdedExpr, context: &'a Context<'a>) -> Result<Cow<'a, dyn Val>> {
    match &expr.expr {
        Expr::Select(select) => {
            let left = found(&select.operand, context)?;
            let key = CelString::from(select.field.as_str());
            if !select.test && left.downcast_ref::<CelOptional>().is_some() {
                return chosen(left.as_ref(), &key);
            }
            if left.get_type() != MAP_TYPE {
                return Ok(Cow::Owned(Cel::Bool(false).try_into()?));
            }
            if select.test {
                let container = left.as_container().ok_or(ExecutionError::NoSuchOverload)?;
                return Ok(Cow::Owned(Cel::Bool(container.contains(&key)?).try_into()?));
            }
            part(left, &key)
        }
        // The interpreter's own fail where there is nothing.
        Expr::Call(call)
            if matches!(
                call.func_name.as_str(),
                operators::OPT_SELECT | operators::OPT_INDEX
            ) =>
        {
            match call.args.as_slice() {
                [of, at] => {
                    let left = found(counted(of), context)?;
                    chosen(left.as_ref(), Cel::resolve_val(at, context)?.as_ref())
                }
                _ => Cel::resolve_val(expr, context),
            }
        }
        Expr::Call(call) if call.func_name == "_[_]" => match call.args.as_slice() {
            [of, at] if is_path(counted(of)) => {
                let left = found(counted(of), context)?;
                if left.as_indexer().is_none() {
                    return Cel::resolve_val(expr, context);
                }
                part(left, Cel::resolve_val(at, context)?.as_ref())
            }
            _ => Cel::resolve_val(expr, context),
        },
        _ => Cel::resolve_val(expr, context),
    }
}

fn part<'a>(of: Cow<'a, dyn Val>, at: &dyn Val) -> Result<Cow<'a, dyn Val>> {
    match of {
        Cow::Borrowed(of) => of.as_indexer().ok_or(ExecutionError::NoSuchOverload)?.get(at),
        Cow::Owned(of) => {
            let part = of.as_indexer().ok_or(ExecutionError::NoSuchOverload)?.get(at)?;
            Ok(Cow::Owned(part.into_owned()))
        }
    }
}

/// A part as an optional, of a value or of an optional one: none where there is no such part.
fn chosen<'a>(of: &dyn Val, at: &dyn Val) -> Result<Cow<'a, dyn Val>> {
    let made = |optional: CelOptional| {
        let optional: Box<dyn Val> = Box::new(optional);
        Ok(Cow::Owned(optional))
    };
    if let Some(optional) = of.downcast_ref::<CelOptional>() {
        return match optional.inner() {
            Some(inner) => chosen(inner, at),
            None => made(CelOptional::none()),
        };
    }
    match of.as_indexer().ok_or(ExecutionError::NoSuchOverload)?.get(at) {
        Ok(part) => made(CelOptional::of(part.clone_as_boxed())),
        Err(ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_)) => made(CelOptional::none()),
        Err(error) => Err(error),
    }
}

/// An expression without the count around it.
fn counted(expr: &IdedExpr) -> &IdedExpr {
    match &expr.expr {
        Expr::Call(call) if call.func_name == WEIGH => call.args.first().unwrap_or(expr),
        _ => expr,
    }
}

/// True if it is a variable or a field below one.
fn is_path(expr: &IdedExpr) -> bool {
    match &expr.expr {
        Expr::Ident(_) => true,
        Expr::Select(select) => !select.test && is_path(&select.operand),
        _ => false,
    }
}

/// The growth of the cost of a function.
#[derive(Clone, Copy)]
enum Costs {
    /// Proportional to the size of the arguments.
    Linear,
    /// Proportional to the length of one text times the length of the other.
    Texts,
    /// Proportional to the number of items times their size.
    Pairs,
    /// Proportional to the result, which may be much larger than the arguments.
    Made,
    /// As a regular expression.
    Regex,
}

/// The functions that are counted. Others take what is small, or call the rule's own loops.
const COSTS: &[(&str, Costs)] = &[
    (
        "contains startsWith endsWith size string bytes int uint double duration timestamp charAt lowerAscii upperAscii \
         substring trim reverse isSorted sum min max flatten slice sort first last url isURL ip isIP cidr isCIDR quantity \
         isQuantity semver isSemver strings.quote base64.encode base64.decode ip.isCanonical validate containsIP containsCIDR \
         jsonpatch.escapeKey",
        Costs::Linear,
    ),
    ("indexOf lastIndexOf", Costs::Texts),
    (
        "distinct sets.contains sets.equivalent sets.intersects",
        Costs::Pairs,
    ),
    ("replace join format split lists.range", Costs::Made),
    ("matches find findAll", Costs::Regex),
];

/// The functions as they come.
static PLAIN: LazyLock<Context<'static>> = LazyLock::new(|| Context::default().with_all());

/// Calls a function after its cost was paid.
fn paid(name: &'static str, costs: Costs, ftx: &FunctionContext<'_, '_>) -> Result<Cel> {
    let mut operands: Vec<Cel> = ftx.this.iter().cloned().collect();
    for argument in ftx.args {
        operands.push(ftx.ptx.resolve(argument)?);
    }
    let given: u64 = operands.iter().map(weight).sum();
    pay(given)?;
    match costs {
        Costs::Linear => {}
        Costs::Texts => {
            if let [Cel::String(text), Cel::String(part), ..] = operands.as_slice() {
                pay((text.len() as u64).saturating_mul(part.len() as u64) / (BYTES * BYTES))?;
            }
        }
        Costs::Pairs => pay(given.saturating_mul(given) / 4)?,
        Costs::Made => pay(made(name, &operands))?,
        Costs::Regex => {
            if let Some(result) = searched(name, &operands)? {
                return Ok(result);
            }
        }
    }
    called(name, ftx.this.is_some(), operands)
}

/// Units of what a function would make.
fn made(name: &str, operands: &[Cel]) -> u64 {
    let bytes = match (name, operands) {
        ("replace", [Cel::String(text), Cel::String(from), Cel::String(to), ..]) => {
            let times = text.matches(from.as_str()).count();
            times.saturating_mul(to.len()).saturating_add(text.len())
        }
        ("join", [Cel::List(items), Cel::String(between)]) => items.len().saturating_mul(between.len()),
        // A precision of three digits or more may fill the line.
        ("format", [Cel::String(text), ..]) => {
            const LONGEST: usize = 1 << 16;
            let precise = text
                .split("%.")
                .skip(1)
                .filter(|rest| rest.bytes().take_while(u8::is_ascii_digit).count() >= 3);
            precise.count().saturating_mul(LONGEST)
        }
        ("lists.range", [Cel::Int(count)]) => usize::try_from(*count).unwrap_or_default().saturating_mul(8),
        // Each part is a value of its own.
        ("split", [Cel::String(text), ..]) => text.len().saturating_mul(8),
        _ => 0,
    };
    bytes as u64 / BYTES
}

/// The match of a regular expression; `None` for other operands than it takes.
fn searched(name: &str, operands: &[Cel]) -> Result<Option<Cel>> {
    let (text, pattern, rest) = match operands {
        [Cel::String(text), Cel::String(pattern), rest @ ..] => (text, pattern, rest),
        _ => return Ok(None),
    };
    let length = text.len() as u64;
    pay(length.saturating_mul(1 + pattern.len() as u64 / 32) / 4)?;
    if name == "findAll" {
        pay(length.saturating_mul(length) >> 10)?;
    }
    let Some(regex) = compiled(pattern)? else {
        // The function itself reports the error.
        return Ok(None);
    };
    let string = |text: &str| Cel::String(text.to_owned().into());
    Ok(Some(match (name, rest) {
        ("matches", []) => Cel::Bool(regex.is_match(text)),
        ("find", []) => string(regex.find(text).map_or("", |found| found.as_str())),
        ("findAll", []) => {
            let all: Vec<Cel> = regex
                .find_iter(text)
                .map(|found| string(found.as_str()))
                .collect();
            Cel::List(all.into())
        }
        _ => return Ok(None),
    }))
}

/// A regular expression; compiling one that is not known costs what it takes.
fn compiled(pattern: &str) -> Result<Option<Regex>> {
    /// Units of a microsecond.
    const MICROSECOND: u64 = 32;
    static KNOWN: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = known().get(pattern) {
        return Ok(Some(regex.clone()));
    }
    let begun = Instant::now();
    let regex = Regex::new(&super::re2::translated(pattern)).ok();
    let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    pay(took.saturating_mul(MICROSECOND))?;
    if let Some(regex) = &regex {
        let mut known = known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(pattern.to_owned(), regex.clone());
    }
    Ok(regex)
}

/// Calls the function of that name as it comes; `method`: on the first of the operands.
fn called(name: &'static str, method: bool, operands: Vec<Cel>) -> Result<Cel> {
    let mut context = PLAIN.new_inner_scope();
    let mut idents = Vec::new();
    for (at, operand) in operands.into_iter().enumerate() {
        let variable = format!("@{at}");
        context.add_variable_from_value(variable.clone(), operand);
        idents.push(ident(variable));
    }
    let (target, function) = match name.split_once('.') {
        Some((prefix, function)) => (Some(ident(prefix.to_owned())), function),
        None if method => (Some(idents.remove(0)), name),
        None => (None, name),
    };
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: function.to_owned(),
            target: target.map(Box::new),
            args: idents,
        }),
    };
    Cel::resolve(&call, &context)
}

fn ident(name: String) -> IdedExpr {
    IdedExpr {
        id: 0,
        expr: Expr::Ident(name),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::{Value, json};

    use super::{UNITS, set_left};
    use crate::schema::cel::{
        OUT_OF_BUDGET,
        free::{Expression, Seen},
    };

    fn value(text: &str, object: &Value, units: u64) -> Result<Value, String> {
        set_left(units);
        let object = Seen::plain(object);
        Expression::compile(text)?
            .run(&[("self", object)])
            .map(|value| value.json())
    }

    #[test]
    fn what_would_fill_the_memory_or_take_hours_is_cancelled() {
        let large = json!({"text": "a".repeat(1 << 20), "many": vec![1; 100_000], "few": vec!["a"; 40]});
        let doubled = format!("['x']{}.size()", ".map(a, a + a)".repeat(50));
        let lists = format!("[[1]]{}.size()", ".map(a, a + a)".repeat(50));
        for text in [
            doubled.as_str(),
            lists.as_str(),
            "self.many.all(i, self.text.contains('b') || true)",
            "self.many.all(i, self.text.matches('(a|b)*c') || true)",
            "self.many.all(i, self.text.lowerAscii() != '')",
            "self.many.all(i, self.text == self.text)",
            "self.many.all(i, 1 in self.many)",
            "self.many.map(i, i).size() > 0",
            "self.text.replace('a', self.text) == ''",
            "self.text.indexOf(self.text + 'b') == 0",
            "self.many.map(i, self.text).join(self.text) == ''",
            "'%s%s'.format([self.many.map(i, self.text), self.text]) == ''",
            "self.few.all(i, self.few.all(j, [self.text, self.text, self.text].size() == 3))",
            "sets.contains(self.many, self.many)",
            "self.many.distinct().size() == 1",
        ] {
            let begun = Instant::now();
            // A part of what a request has takes a part of the time.
            let result = value(text, &large, UNITS / 64);
            let error = result.expect_err(text);
            assert_eq!(error, OUT_OF_BUDGET, "{text}");
            assert!(begun.elapsed().as_secs() < 60, "{text}");
        }
        let error = value("lists.range(100000000000).size() > 0", &json!({}), UNITS);
        assert_eq!(
            error,
            Err("operation cancelled: actual cost limit exceeded".to_owned())
        );
    }

    #[test]
    fn what_rules_usually_do_is_within_the_budget_and_means_what_it_meant() {
        let names: Vec<String> = (0..400).map(|number| format!("name-{number}")).collect();
        let object = json!({"names": names, "map": {"a": {"b": [1, 2]}}, "text": "a,b"});
        for (text, wanted) in [
            (
                "self.names.all(n, n.matches('^name-[0-9]+$') && n in self.names)",
                json!(true),
            ),
            (
                "self.names.map(n, n.upperAscii()).filter(n, n.endsWith('9')).size()",
                json!(40),
            ),
            ("self.names.all(n, self.names.exists_one(m, m == n))", json!(true)),
            ("self.map['a'].b[1] + self.map.a.b[0]", json!(3)),
            (
                "has(self.map.a) && !has(self.map.c) && !has(self.map.a.c)",
                json!(true),
            ),
            ("self.text.split(',') + ['c']", json!(["a", "b", "c"])),
            ("[self.text, {'k': self.map.a.b}]", json!(["a,b", {"k": [1, 2]}])),
            (
                "self.text.replace(',', '') + ['x', 'y'].join('-') + '%s%d'.format(['s', 1])",
                json!("abx-ys1"),
            ),
            (
                "'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1'.find('[0-9]') == '1'",
                json!(true),
            ),
            (
                "size(self.names) == self.names.size() && sets.contains([1, 2], [2])",
                json!(true),
            ),
            ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", json!(true)),
            ("self.?text.hasValue()", json!(true)),
            (
                "[3, 1, 2].sort() == [1, 2, 3] && [1, 1].distinct() == [1] && 'abc'.indexOf('c') == 2",
                json!(true),
            ),
            (
                "duration('1h') > duration('1m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
                json!(true),
            ),
        ] {
            assert_eq!(value(text, &object, UNITS), Ok(wanted), "{text}");
        }
        assert_eq!(
            value("self.map.c", &object, UNITS),
            Err("no such key: c".to_owned())
        );
        assert!(value("'a'.matches('(')", &object, UNITS).is_err());
    }
}
