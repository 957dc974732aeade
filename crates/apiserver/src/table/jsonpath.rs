//! The JSON paths of printer columns: names, indexes, slices, wildcards, descent and simple filters.

use serde_json::Value;

/// Steps of a path, at most.
const STEPS: usize = 64;

/// Values that a path is followed to, at most.
const VALUES: usize = 10_000;

/// A path.
#[derive(Debug)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug)]
enum Step {
    /// `.name` or `['name','other']`.
    Names(Vec<String>),
    /// `[1]`, `[-1]`, `[0,2]`.
    Indexes(Vec<i64>),
    /// `[from:to:step]`.
    Slice(Option<i64>, Option<i64>, usize),
    /// `.*` or `[*]`.
    All,
    /// `..`: the value and all below it.
    Descend,
    /// `[?(@.type=="Ready")]`.
    Filter(Operand, Comparison, Operand),
    /// `[?(@.name)]`.
    Exists(Operand),
}

#[derive(Debug)]
enum Operand {
    Path(Path),
    Value(Value),
}

#[derive(Clone, Copy, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
}

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl Path {
    /// Parses `.status.conditions[?(@.type=="Ready")].status`; a `$` in front is left out. `None`: not understood.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() && steps.len() < STEPS {
            if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Descend);
                // A name may follow at once.
                rest = after;
                if !after.is_empty() && !after.starts_with(['[', '.']) {
                    let (step, after) = named(after)?;
                    steps.push(step);
                    rest = after;
                }
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() {
                    break;
                }
                if after.starts_with('[') {
                    rest = after;
                    continue;
                }
                let (step, after) = named(after)?;
                steps.push(step);
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after)?;
                steps.push(bracket(after[..end].trim())?);
                rest = &after[end + 1..];
            } else {
                let (step, after) = named(rest)?;
                steps.push(step);
                rest = after;
            }
        }
        rest.is_empty()
            .then_some(Self(steps))
            .or((rest == ".").then(|| Self(Vec::new())))
    }

    /// The first value that the path leads to.
    pub(super) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let mut found = vec![value];
        for step in &self.0 {
            found = found
                .into_iter()
                .flat_map(|value| step.follow(value))
                .take(VALUES)
                .collect();
        }
        found.into_iter().next()
    }
}

/// A name up to the next dot or bracket; a backslash takes the next letter as it is.
fn named(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            other => name.push(other),
        }
    }
    if name.is_empty() {
        return None;
    }
    let step = if name == "*" {
        Step::All
    } else {
        Step::Names(vec![name])
    };
    Some((step, &text[end..]))
}

/// The end of the bracket: brackets inside and quoted ones do not count.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

/// The content of brackets.
fn bracket(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(condition) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        return filter(condition);
    }
    if text.starts_with(['\'', '"']) {
        let names = text.split(',').map(|name| unquoted(name.trim()));
        return Some(Step::Names(names.collect::<Option<_>>()?));
    }
    if text.contains(':') {
        let mut parts = text.split(':').map(str::trim);
        let mut bound = || match parts.next() {
            None | Some("") => Some(None),
            Some(number) => number.parse().ok().map(Some),
        };
        let (from, to, step) = (bound()?, bound()?, bound()?);
        return Some(Step::Slice(
            from,
            to,
            usize::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0)?,
        ));
    }
    let indexes = text.split(',').map(|index| index.trim().parse().ok());
    Some(Step::Indexes(indexes.collect::<Option<_>>()?))
}

fn unquoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    Some(inner.replace(&format!("\\{quote}"), &quote.to_string()))
}

fn filter(condition: &str) -> Option<Step> {
    let mut quote = None;
    for (at, letter) in condition.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => continue,
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            None => {
                let rest = &condition[at..];
                let Some((sign, comparison)) = COMPARISONS.iter().find(|(sign, _)| rest.starts_with(sign))
                else {
                    continue;
                };
                let (left, right) = (operand(&condition[..at])?, operand(&rest[sign.len()..])?);
                return Some(Step::Filter(left, *comparison, right));
            }
        }
    }
    Some(Step::Exists(operand(condition)?))
}

fn operand(text: &str) -> Option<Operand> {
    let text = text.trim();
    if let Some(path) = text.strip_prefix('@') {
        // A filter inside a filter is not understood: it bounds the depth.
        return (!path.contains('?'))
            .then(|| Path::parse(path))
            .flatten()
            .map(Operand::Path);
    }
    let value = match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if text.starts_with(['\'', '"']) => Value::String(unquoted(text)?),
        _ => Value::Number(text.parse().ok()?),
    };
    Some(Operand::Value(value))
}

impl Operand {
    fn value<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.first(item),
            Self::Value(value) => Some(value),
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            _ => return matches!(self, Self::NotEqual),
        };
        order.is_some_and(|order| match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::LessOrEqual => order.is_le(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::Greater => order.is_gt(),
        })
    }
}

impl Step {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let items = || match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        };
        let list = || value.as_array().map_or(&[][..], Vec::as_slice);
        match self {
            Self::Names(names) => names
                .iter()
                .filter_map(|name| value.as_object()?.get(name))
                .collect(),
            Self::Indexes(indexes) => {
                let at = |index: &i64| list().get(position(*index, list().len())?);
                indexes.iter().filter_map(at).collect()
            }
            Self::Slice(from, to, step) => {
                let length = list().len();
                let bound = |given: Option<i64>, absent: usize| {
                    given.map_or(absent, |index| position(index, length).unwrap_or(0).min(length))
                };
                let (from, to) = (bound(*from, 0), bound(*to, length));
                list()
                    .get(from..to)
                    .unwrap_or_default()
                    .iter()
                    .step_by(*step)
                    .collect()
            }
            Self::All => items(),
            Self::Descend => {
                let mut all = vec![value];
                let mut next = 0;
                while next < all.len() && all.len() < VALUES {
                    match all[next] {
                        Value::Array(items) => all.extend(items),
                        Value::Object(fields) => all.extend(fields.values()),
                        _ => {}
                    }
                    next += 1;
                }
                all
            }
            Self::Filter(left, comparison, right) => {
                let fits = |item: &&Value| match (left.value(item), right.value(item)) {
                    (Some(left), Some(right)) => comparison.holds(left, right),
                    _ => false,
                };
                list().iter().filter(fits).collect()
            }
            Self::Exists(operand) => list()
                .iter()
                .filter(|item| operand.value(item).is_some())
                .collect(),
        }
    }
}

/// An index from the front; negative ones count from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    if index < 0 {
        length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    } else {
        usize::try_from(index).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_their_first_value() {
        let object = json!({
            "spec": {"plots": [{"name": "north"}, {"name": "south", "size": 4}], "a.b/c": "dotted", "list": [1, 2, 3]},
            "status": {"conditions": [{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "False", "n": 5}]},
        });
        let cases = [
            (".spec.plots[*].name", json!("north")),
            ("$.spec.plots[-1].name", json!("south")),
            (".spec.plots[1]['size']", json!(4)),
            (".spec.plots[?(@.size>3)].name", json!("south")),
            (".spec.plots[?(@.size)].name", json!("south")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("False")),
            (".status.conditions[?(@.type=='Ready')].status", json!("False")),
            (".status.conditions[?(@.type!='Synced')].n", json!(5)),
            (".status.conditions[?(@.n<=5)].type", json!("Ready")),
            (".spec.a\\.b/c", json!("dotted")),
            (".spec['a.b/c']", json!("dotted")),
            (".spec.list[1:]", json!(2)),
            (".spec.list[-2:3]", json!(2)),
            (".spec.list[::2]", json!(1)),
            (".spec.list[2,0]", json!(3)),
            ("..size", json!(4)),
            (".status..type", json!("Synced")),
            ("spec.plots[0].name", json!("north")),
        ];
        for (path, expected) in cases {
            let path_read = Path::parse(path).unwrap_or_else(|| panic!("{path}"));
            assert_eq!(path_read.first(&object), Some(&expected), "{path}");
        }
        for path in [
            ".spec.none",
            ".spec.plots[7]",
            ".spec.plots[-7].name",
            ".spec.plots[?(@.size>9)]",
            ".spec.list[2:1]",
        ] {
            assert_eq!(Path::parse(path).unwrap().first(&object), None, "{path}");
        }
        for path in [
            ".spec[",
            ".a[b]",
            ".a[?(@.x==)]",
            ".a['b]",
            ".a[::0]",
            ".a[?(@.b[?(@.c)])]",
        ] {
            assert!(Path::parse(path).is_none(), "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_path_makes_the_parser_panic(path in "[.a-b$@?()\\[\\]'\"=<>0-9:*,\\\\é-]{0,24}") {
            if let Some(path) = Path::parse(&path) {
                let _ = path.first(&json!({"a": [{"b": 1}, [2]], "b": {"a": "é"}}));
            }
        }
    }
}
