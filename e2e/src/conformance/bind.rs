//! The values of a scenario's placeholders on this server.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::{Captures, Regex};
use serde_json::Value;

/// `<uid1>`, `<rv3+>`, `<fill:x:300>`, `<time>` …
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?s)<(uid|rv|jwt|ip|hash|gen|continue|nodeport)(\d+)(\+?)>|<fill:(.):(\d+)>|<(time|microtime|age|server|etag|http-date|content-length|audit-id|x-kubernetes-pf-flowschema-uid|x-kubernetes-pf-prioritylevel-uid)>",
    )
});

/// The kind of a placeholder's value.
const SHAPES: &[(&str, &str)] = &[
    (
        "uid",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    ("rv", r"\d+"),
    ("jwt", r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+"),
    ("ip", r"[0-9.]+|[0-9a-f:]+"),
    ("hash", r"[0-9A-Fa-f]+"),
    ("gen", r"[a-z0-9]+"),
    ("continue", r".+"),
    ("nodeport", r"\d+"),
    ("time", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    ("microtime", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"),
    ("age", r"(?:\d+[ydhms])+"),
    ("server", r"[A-Za-z0-9.:\[\]-]+:\d+"),
];

static WHOLE: LazyLock<BTreeMap<&str, Regex>> = LazyLock::new(|| {
    SHAPES
        .iter()
        .map(|(kind, shape)| (*kind, regex(&format!("(?s)^(?:{shape})$"))))
        .collect()
});

/// A pattern written in this file.
fn regex(pattern: &str) -> Regex {
    match Regex::new(pattern) {
        Ok(regex) => regex,
        Err(error) => panic!("{pattern}: {error}"),
    }
}

/// The placeholders that are bound so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    values: BTreeMap<String, String>,
    /// resourceVersions by number: exact ones, and those of lists (`<rvN+>`).
    versions: BTreeMap<(u64, bool), u64>,
}

impl Bindings {
    /// A text of a request with its placeholders replaced.
    pub(super) fn text(&self, text: &str) -> Result<String, String> {
        self.replaced(text, str::to_owned)
    }

    /// A path: tokens are percent-encoded.
    pub(super) fn path(&self, text: &str) -> Result<String, String> {
        self.replaced(text, |token| {
            token
                .bytes()
                .map(|byte| {
                    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                        char::from(byte).to_string()
                    } else {
                        format!("%{byte:02X}")
                    }
                })
                .collect()
        })
    }

    fn replaced(&self, text: &str, token: impl Fn(&str) -> String) -> Result<String, String> {
        let mut failed = None;
        let replaced = PLACEHOLDER.replace_all(text, |found: &Captures<'_>| {
            if let (Some(fill), Some(count)) = (found.get(4), found.get(5)) {
                return fill.as_str().repeat(count.as_str().parse().unwrap_or(0));
            }
            let bound = match (found.get(1), found.get(2)) {
                (Some(kind), Some(number)) if kind.as_str() == "rv" => {
                    let number = number.as_str().parse().unwrap_or(0);
                    let listed = !found[3].is_empty();
                    let exact = self.versions.get(&(number, listed));
                    exact
                        .or_else(|| self.versions.get(&(number, false)))
                        .map(u64::to_string)
                }
                (Some(kind), Some(number)) => {
                    let bound = self.values.get(&format!("{}{}", kind.as_str(), number.as_str()));
                    bound.map(|value| {
                        if kind.as_str() == "continue" {
                            token(value)
                        } else {
                            value.clone()
                        }
                    })
                }
                _ => None,
            };
            bound.unwrap_or_else(|| {
                failed = Some(format!(
                    "{} is not bound: the step that would have bound it differed",
                    &found[0]
                ));
                String::new()
            })
        });
        match failed {
            Some(failed) => Err(failed),
            None => Ok(replaced.into_owned()),
        }
    }

    /// A value of a request with its placeholders replaced; `$repeat` is unrolled.
    pub(super) fn value(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::Object(map) => {
                if let Some(repeat) = map.get("$repeat").filter(|_| map.len() == 1) {
                    let item = self.value(&repeat["item"])?;
                    let count = repeat["count"].as_u64().unwrap_or(0);
                    return Ok(Value::Array((0..count).map(|_| item.clone()).collect()));
                }
                let mut made = serde_json::Map::new();
                for (key, value) in map {
                    let port = value.as_str().is_some_and(|text| text.starts_with("<nodeport"));
                    let mut value = self.value(value)?;
                    if port && let Some(number) = value.as_str().and_then(|text| text.parse::<u64>().ok()) {
                        value = number.into();
                    }
                    made.insert(self.text(key)?, value);
                }
                Value::Object(made)
            }
            Value::Array(list) => Value::Array(
                list.iter()
                    .map(|item| self.value(item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::String(text) => Value::String(self.text(text)?),
            other => other.clone(),
        })
    }

    /// True if a recorded text has a placeholder.
    pub(super) fn has_placeholder(text: &str) -> bool {
        text.contains('<') && PLACEHOLDER.is_match(text)
    }

    /// Compares a recorded text with what came, binding what is not bound yet.
    pub(super) fn unify(&mut self, want: &str, got: &str) -> Result<(), String> {
        if want == got {
            return Ok(());
        }
        let differs = || format!("want {}, got {}", short(want), short(got));
        // One placeholder alone, as most are: no pattern has to be built.
        if let Some(found) = PLACEHOLDER
            .captures(want)
            .filter(|found| found[0].len() == want.len())
            && let (Some(kind), Some(number)) = (found.get(1), found.get(2))
        {
            if !WHOLE[kind.as_str()].is_match(got) {
                return Err(differs());
            }
            return self.bind(kind.as_str(), number.as_str(), !found[3].is_empty(), got);
        }
        let mut pattern = "(?s)^".to_owned();
        let mut groups = Vec::new();
        let mut at = 0;
        for found in PLACEHOLDER.captures_iter(want) {
            let Some(whole) = found.get(0) else { continue };
            pattern.push_str(&regex::escape(&want[at..whole.start()]));
            at = whole.end();
            if let (Some(fill), Some(count)) = (found.get(4), found.get(5)) {
                let count: usize = count.as_str().parse().unwrap_or(0);
                pattern.push_str(&format!("(?:{}){{{count}}}", regex::escape(fill.as_str())));
            } else if let (Some(kind), Some(number)) = (found.get(1), found.get(2)) {
                let shape = shape(kind.as_str());
                pattern.push_str(&format!("({shape})"));
                groups.push((kind.as_str(), number.as_str(), !found[3].is_empty()));
            } else {
                let shape = found.get(6).map_or("", |kind| shape(kind.as_str()));
                pattern.push_str(if shape.is_empty() { r"[\s\S]+" } else { shape });
            }
        }
        pattern.push_str(&regex::escape(&want[at..]));
        pattern.push('$');
        let expanded =
            PLACEHOLDER.replace_all(want, |found: &Captures<'_>| match (found.get(4), found.get(5)) {
                (Some(fill), Some(count)) => fill.as_str().repeat(count.as_str().parse().unwrap_or(0)),
                _ => found[0].to_owned(),
            });
        if expanded == got {
            return Ok(());
        }
        let Ok(pattern) = Regex::new(&pattern) else {
            return Err(differs());
        };
        let Some(matched) = pattern.captures(got) else {
            return Err(differs());
        };
        for (at, (kind, number, listed)) in groups.into_iter().enumerate() {
            self.bind(kind, number, listed, &matched[at + 1])?;
        }
        Ok(())
    }

    fn bind(&mut self, kind: &str, number: &str, listed: bool, got: &str) -> Result<(), String> {
        if kind == "rv" {
            return self.version(number.parse().unwrap_or(0), listed, got.parse().unwrap_or(0));
        }
        let bound = self
            .values
            .entry(format!("{kind}{number}"))
            .or_insert_with(|| got.to_owned());
        if bound == got {
            Ok(())
        } else {
            Err(format!("<{kind}{number}> was {bound}, now {got}"))
        }
    }

    /// Versions of objects are in their order; that of a list lies between an object's and the next one's.
    fn version(&mut self, number: u64, listed: bool, got: u64) -> Result<(), String> {
        if !listed && let Some(bound) = self.versions.get(&(number, false)) {
            if *bound == got {
                return Ok(());
            }
            return Err(format!("resourceVersion: <rv{number}> was {bound}, now {got}"));
        }
        for ((other, _), value) in self.versions.iter().filter(|((_, listed), _)| !listed) {
            let fits = if listed {
                if *other <= number {
                    got >= *value
                } else {
                    got < *value
                }
            } else if *other < number {
                got > *value
            } else {
                got < *value
            };
            if !fits {
                let plus = if listed { "+" } else { "" };
                return Err(format!(
                    "resourceVersion {got} is out of order: <rv{number}{plus}> beside <rv{other}>={value}"
                ));
            }
        }
        self.versions.insert((number, listed), got);
        Ok(())
    }
}

fn shape(kind: &str) -> &'static str {
    SHAPES
        .iter()
        .find(|(name, _)| *name == kind)
        .map_or("", |(_, shape)| *shape)
}

/// A text that is long is cut.
pub(super) fn short(text: &str) -> String {
    const LONGEST: usize = 400;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{:?}…", &text[..at]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Bindings;

    #[test]
    fn a_placeholder_keeps_its_first_value() {
        let mut bindings = Bindings::default();
        let uid = "49a933bf-07ba-4452-9be8-b9e25132d20c";
        assert_eq!(bindings.unify("<uid1>", uid), Ok(()));
        assert_eq!(
            bindings.unify("owner <uid1> is gone", &format!("owner {uid} is gone")),
            Ok(())
        );
        assert!(
            bindings
                .unify("<uid1>", "59a933bf-07ba-4452-9be8-b9e25132d20c")
                .is_err()
        );
        assert!(bindings.unify("<uid2>", "no uid").is_err());
        assert_eq!(bindings.text("x/<uid1>"), Ok(format!("x/{uid}")));
        assert!(bindings.text("<uid2>").is_err());
    }

    #[test]
    fn resource_versions_keep_their_order() {
        let mut bindings = Bindings::default();
        assert_eq!(bindings.unify("<rv2>", "20"), Ok(()));
        assert!(
            bindings.unify("<rv1>", "20").is_err(),
            "an older object has a smaller one"
        );
        assert_eq!(bindings.unify("<rv1>", "10"), Ok(()));
        assert_eq!(
            bindings.unify("<rv1+>", "15"),
            Ok(()),
            "a list between two objects"
        );
        assert!(bindings.unify("<rv1+>", "20").is_err());
        assert!(bindings.unify("<rv0+>", "10").is_err(), "older than every object");
        assert_eq!(bindings.unify("<rv2+>", "99"), Ok(()));
    }

    #[test]
    fn fills_are_exact() {
        let mut bindings = Bindings::default();
        assert_eq!(
            bindings.unify("a<fill:x:250>b", &format!("a{}b", "x".repeat(250))),
            Ok(())
        );
        assert!(
            bindings
                .unify("a<fill:x:250>b", &format!("a{}b", "x".repeat(249)))
                .is_err()
        );
    }
}
