//! A strict reader of OpenMetrics text: every family once and together, samples named as their type demands, labels that are valid and
//! unique, histograms that add up. The tests of the webhook's metrics include this file, too.

use std::collections::{BTreeMap, BTreeSet};

/// A sample: its name, its labels, its value.
pub(crate) type Sample = (String, BTreeMap<String, String>, f64);

/// A family as it was announced.
#[derive(Default)]
struct Announced {
    name: String,
    kind: String,
    has_help: bool,
}

/// Reads an exposition.
///
/// Errors: what is wrong, with the line.
pub(crate) fn read(text: &str) -> Result<Vec<Sample>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end with # EOF")?;
    let (mut samples, mut seen, mut series) = (Vec::<Sample>::new(), BTreeSet::new(), BTreeSet::new());
    let mut family = Announced::default();
    for line in body.split_inclusive('\n') {
        let wrong = |what: &str| format!("{what}: {line:?}");
        let line = line
            .strip_suffix('\n')
            .ok_or_else(|| wrong("a line does not end"))?;
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (word, name, rest) = (words.next(), words.next(), words.next());
            let (Some(word), Some(name), Some(rest)) = (word, name, rest) else {
                return Err(wrong("an incomplete comment"));
            };
            if family.name != name {
                if !seen.insert(name.to_owned()) {
                    return Err(wrong("a family is not in one piece"));
                }
                family = Announced {
                    name: name.to_owned(),
                    ..Announced::default()
                };
            }
            match word {
                "TYPE" if family.kind.is_empty() => family.kind = rest.to_owned(),
                "HELP" if !family.has_help => family.has_help = true,
                _ => return Err(wrong("an unknown or repeated comment")),
            }
            continue;
        }
        let (name, labels, value) = sample(line).map_err(|what| wrong(&what))?;
        let suffix = name
            .strip_prefix(&family.name)
            .ok_or_else(|| wrong("a sample of another family"))?;
        let is_named = match family.kind.as_str() {
            "gauge" => suffix.is_empty(),
            "counter" => suffix == "_total",
            "histogram" => ["_bucket", "_count", "_sum"].contains(&suffix),
            _ => return Err(wrong("a sample without a known type")),
        };
        if !is_named || !family.has_help {
            return Err(wrong("a sample that its type does not have, or without help"));
        }
        if (suffix == "_bucket") != labels.contains_key("le") {
            return Err(wrong("le belongs to buckets"));
        }
        if family.kind != "gauge" && !(value.is_finite() && value >= 0.0) {
            return Err(wrong("a count that is none"));
        }
        if !series.insert((name.clone(), labels.clone())) {
            return Err(wrong("a repeated series"));
        }
        samples.push((name, labels, value));
    }
    histograms(&samples)?;
    Ok(samples)
}

/// Reads `name{label="value",…} number`.
fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    if !is_name(name) {
        return Err("no name of a metric".to_owned());
    }
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("a label without a value")?;
            let (value, after) = quoted(after)?;
            if !is_name(label) || label.contains(':') {
                return Err(format!("no name of a label: {label}"));
            }
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("the label {label} twice"));
            }
            match after.split_at_checked(1) {
                Some((",", after)) => rest = after,
                Some(("}", after)) => {
                    rest = after;
                    break;
                }
                _ => return Err("labels that do not end".to_owned()),
            }
        }
    }
    let value = rest.strip_prefix(' ').ok_or("no value")?;
    let value = value.parse().map_err(|_| format!("no number: {value}"))?;
    Ok((name.to_owned(), labels, value))
}

/// The value up to the closing quote, and what follows that.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, char @ ('\\' | '"'))) => value.push(char),
                _ => return Err("an unknown escape".to_owned()),
            },
            char => value.push(char),
        }
    }
    Err("a value that does not end".to_owned())
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// The name of a histogram and its labels without the bound.
type Series<'a> = (&'a str, BTreeMap<&'a str, &'a str>);

/// Buckets rise with their bounds, and the last one, without a bound, is the count.
fn histograms(samples: &[Sample]) -> Result<(), String> {
    let mut buckets: BTreeMap<Series<'_>, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (name, labels, value) in samples {
        let others = labels.iter().filter(|(label, _)| *label != "le");
        let others: BTreeMap<&str, &str> = others.map(|(label, value)| (&**label, &**value)).collect();
        if let Some(name) = name.strip_suffix("_bucket") {
            let bound = labels["le"].replace("+Inf", "inf");
            let bound = bound.parse().map_err(|_| format!("no bound: {bound}"))?;
            buckets.entry((name, others)).or_default().push((bound, *value));
        } else if let Some(name) = name.strip_suffix("_count") {
            counts.insert((name, others), *value);
        }
    }
    for (series, all) in &buckets {
        let rises = all
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let last = all.last().filter(|(bound, _)| bound.is_infinite());
        let count = counts.get(series);
        if !rises || last.map(|(_, value)| value) != count {
            return Err(format!(
                "buckets that do not add up: {series:?} {all:?} {count:?}"
            ));
        }
    }
    match buckets.len() == counts.len() {
        true => Ok(()),
        false => Err("a count without buckets".to_owned()),
    }
}
