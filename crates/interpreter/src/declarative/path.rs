//! Paths: parsed once, walked over any JSON.
//!
//! A subset of RFC 9535: members by name, elements by index, all of them, those that match a comparison. There is no recursive
//! descent and no slice, so that a walk visits each value at most once for each path.

use std::{fmt, ops::ControlFlow};

use serde_json::Value;

mod parse;

/// A parsed path. It may match any number of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    steps: Vec<Step>,
    /// True if it began with `$`: a path beside a value then begins at the whole object.
    is_absolute: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The members of these names, one in most cases.
    Members(Vec<String>),
    /// An element of a list.
    Element(usize),
    /// Every element of a list or member of an object.
    All,
    /// The elements or members that match.
    Fitting(Filter),
}

/// A comparison of a field with a constant; without one, the field must exist.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Filter {
    field: Vec<String>,
    test: Option<(bool, Value)>,
}

/// The reason why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathError {
    /// The position, in characters from 1.
    pub(super) at: usize,
    /// The problem.
    pub(super) problem: &'static str,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}: {}", self.at, self.problem)
    }
}

/// A value at a path.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    /// The value.
    pub(super) value: &'a Value,
    /// The object with the last member that the path names.
    pub(super) holder: &'a Value,
    /// The key of the last member matched by a wildcard.
    pub(super) key: Option<&'a str>,
}

impl Path {
    /// Parses a path.
    ///
    /// # Errors
    /// If the text is empty, is too long, or is not in the subset.
    pub(super) fn parse(text: &str) -> Result<Self, PathError> {
        parse::parse(text)
    }

    /// The names, or `None` for a path that has other steps.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        let name = |step: &'_ Step| match step {
            Step::Members(names) if names.len() == 1 => Some(()),
            _ => None,
        };
        self.steps.iter().all(|step| name(step).is_some()).then(|| {
            self.steps
                .iter()
                .filter_map(|step| match step {
                    Step::Members(names) => names.first().map(String::as_str),
                    _ => None,
                })
                .collect()
        })
    }

    /// The last name in it.
    pub(super) fn last_name(&self) -> Option<&str> {
        self.steps.iter().rev().find_map(|step| match step {
            Step::Members(names) => names.first().map(String::as_str),
            _ => None,
        })
    }

    /// Calls `visit` with every value at the path from `start`. Cost: O(values on the way).
    pub(super) fn each<'a>(&self, start: &'a Value, visit: &mut dyn FnMut(Found<'a>)) {
        let _ = self.until(start, &mut |found| {
            visit(found);
            ControlFlow::Continue(())
        });
    }

    /// The same until `visit` breaks.
    fn until<'a>(&self, start: &'a Value, visit: Visit<'_, 'a>) -> ControlFlow<()> {
        let found = Found {
            value: start,
            holder: start,
            key: None,
        };
        walk(&self.steps, found, visit)
    }

    /// The same, for a path beside a value: it begins at the value's parent, or at the whole object.
    pub(super) fn each_beside<'a>(
        &self,
        object: &'a Value,
        holder: &'a Value,
        visit: &mut dyn FnMut(Found<'a>),
    ) {
        self.each(if self.is_absolute { object } else { holder }, visit);
    }

    /// [`Self::each`], with the JSON pointer of each value.
    pub(super) fn each_pointer(&self, start: &Value, visit: &mut dyn FnMut(&Value, String)) {
        walk_pointers(&self.steps, start, String::new(), visit);
    }

    /// The first value at the path; null if none. Cost: O(values on the way to it): it is searched beside each of many values.
    pub(super) fn first<'a>(&self, start: &'a Value) -> &'a Value {
        let mut first = &Value::Null;
        let _ = self.until(start, &mut |found| {
            first = found.value;
            ControlFlow::Break(())
        });
        first
    }

    /// [`Self::first`] beside a value.
    pub(super) fn first_beside<'a>(&self, object: &'a Value, holder: &'a Value) -> &'a Value {
        self.first(if self.is_absolute { object } else { holder })
    }
}

type Visit<'v, 'a> = &'v mut dyn FnMut(Found<'a>) -> ControlFlow<()>;

fn walk<'a>(steps: &[Step], at: Found<'a>, visit: Visit<'_, 'a>) -> ControlFlow<()> {
    let Some((step, rest)) = steps.split_first() else {
        return if at.value.is_null() {
            ControlFlow::Continue(())
        } else {
            visit(at)
        };
    };
    match step {
        Step::Members(names) => names
            .iter()
            .filter_map(|name| at.value.get(name))
            .try_for_each(|value| {
                let holder = at.value;
                walk(rest, Found { value, holder, ..at }, visit)
            }),
        Step::Element(number) => match at.value.as_array().and_then(|list| list.get(*number)) {
            Some(value) => walk(rest, Found { value, ..at }, visit),
            None => ControlFlow::Continue(()),
        },
        Step::All => each_child(at, &mut |child| walk(rest, child, visit)),
        Step::Fitting(filter) => each_child(at, &mut |child| {
            if filter.fits(child.value) {
                walk(rest, child, visit)
            } else {
                ControlFlow::Continue(())
            }
        }),
    }
}

fn walk_pointers(steps: &[Step], value: &Value, at: String, visit: &mut dyn FnMut(&Value, String)) {
    let Some((step, rest)) = steps.split_first() else {
        if !value.is_null() {
            visit(value, at);
        }
        return;
    };
    let mut go = |token: &str, child: &Value| {
        let token = token.replace('~', "~0").replace('/', "~1");
        walk_pointers(rest, child, format!("{at}/{token}"), visit);
    };
    match (step, value) {
        (Step::Members(names), _) => names
            .iter()
            .for_each(|name| value.get(name).into_iter().for_each(|child| go(name, child))),
        (_, Value::Array(list)) => list
            .iter()
            .enumerate()
            .filter(|(at, child)| step.takes(Some(*at), child))
            .for_each(|(at, child)| go(&at.to_string(), child)),
        (_, Value::Object(map)) => map
            .iter()
            .filter(|(_, child)| step.takes(None, child))
            .for_each(|(key, child)| go(key, child)),
        _ => {}
    }
}

fn each_child<'a>(at: Found<'a>, visit: Visit<'_, 'a>) -> ControlFlow<()> {
    match at.value {
        Value::Array(list) => list.iter().try_for_each(|value| visit(Found { value, ..at })),
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            visit(Found {
                value,
                key: Some(key),
                ..at
            })
        }),
        _ => ControlFlow::Continue(()),
    }
}

impl Step {
    /// True if it matches a child of a list, which has an index, or of an object.
    fn takes(&self, at: Option<usize>, child: &Value) -> bool {
        match self {
            Self::Members(_) => false,
            Self::Element(number) => at == Some(*number),
            Self::All => true,
            Self::Fitting(filter) => filter.fits(child),
        }
    }
}

impl Filter {
    fn fits(&self, value: &Value) -> bool {
        let field = self.field.iter().try_fold(value, |value, name| value.get(name));
        match &self.test {
            None => field.is_some(),
            Some((is_equal, constant)) => (field == Some(constant)) == *is_equal,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn all<'a>(path: &str, object: &'a Value) -> Vec<&'a Value> {
        let mut all = Vec::new();
        Path::parse(path)
            .unwrap()
            .each(object, &mut |found| all.push(found.value));
        all
    }

    #[test]
    fn a_pointer_leads_where_its_path_does() {
        let object = json!({"a/b": {"~c": [{"n": 1}, {"n": 2, "m": 1}, null]}, "d": {"n": 2}});
        let found = |path: &str| {
            let mut found = Vec::new();
            Path::parse(path)
                .unwrap()
                .each_pointer(&object, &mut |value, at| {
                    assert_eq!(object.pointer(&at), Some(value), "{path}");
                    found.push(at);
                });
            assert_eq!(found.len(), all(path, &object).len(), "{path}");
            found
        };
        assert_eq!(found("['a/b']['~c'][*].n"), ["/a~1b/~0c/0/n", "/a~1b/~0c/1/n"]);
        assert_eq!(found("['a/b']['~c'][1].m"), ["/a~1b/~0c/1/m"]);
        assert_eq!(found("['a/b']['~c'][?@.n == 2]"), ["/a~1b/~0c/1"]);
        assert_eq!(found("*"), ["/a~1b", "/d"]);
        assert_eq!(found("['d','a/b']"), ["/d", "/a~1b"]);
        assert_eq!(found("*.*[0]['n']"), ["/a~1b/~0c/0/n"]);
        assert_eq!(found("[?@.n]"), ["/d"]);
        assert_eq!(found("$"), [""]);
        assert!(found("d[0]").is_empty() && found("x.y").is_empty());
    }

    #[test]
    fn every_form_of_step_leads_where_it_says() {
        let object = json!({
            "spec": {
                "list": [{"type": "a", "n": 1}, {"type": "b", "n": 2}, {"n": 3}],
                "map": {"x": {"n": 4}, "y": {"n": 5}},
                "a/b": "slash", "it's": "quote",
            },
        });
        for (path, wanted) in [
            ("spec.list[*].n", json!([1, 2, 3])),
            ("$.spec.list[1].n", json!([2])),
            ("spec.list[9].n", json!([])),
            ("spec.map.*.n", json!([4, 5])),
            ("spec.map[*].n", json!([4, 5])),
            ("spec.map['y','x','z'].n", json!([5, 4])),
            ("spec['a/b']", json!(["slash"])),
            ("spec['it\\'s']", json!(["quote"])),
            ("spec[\"it's\"]", json!(["quote"])),
            ("spec.list[?@.type == 'b'].n", json!([2])),
            ("spec.list[?(@.type=='b')].n", json!([2])),
            ("spec.list[?@.type!='b'].n", json!([1, 3])),
            ("spec.list[?@.type].n", json!([1, 2])),
            ("spec.list[?@['n'] == 3].n", json!([3])),
            ("spec.list.n", json!([])),
            ("spec.map[0]", json!([])),
        ] {
            assert_eq!(json!(all(path, &object)), wanted, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_place() {
        for (text, at) in [
            ("", 1),
            ("spec..name", 5),
            ("spec.", 6),
            ("spec name", 5),
            ("spec[", 6),
            ("spec[*", 7),
            ("spec['a", 6),
            ("spec[-1]", 6),
            ("spec[1:2]", 7),
            ("ü.a[?x]", 6),
            ("a[?@.b == x]", 11),
            ("a[?(@.b]", 8),
            ("a['b', 'c','b']", 12),
        ] {
            assert_eq!(Path::parse(text).map_err(|error| error.at), Err(at), "{text}");
        }
        assert!(Path::parse(&"a".repeat(513)).is_err());
        assert!(Path::parse(&vec!["a"; 33].join(".")).is_err());
        assert!(Path::parse(&vec!["a"; 32].join(".")).is_ok());
    }

    #[test]
    fn what_stands_beside_a_value_is_found_from_its_holder_or_from_the_object() {
        let object = json!({"kind": "top", "spec": {"list": [{"ref": {"kind": "a", "name": "n"}}]}});
        let path = Path::parse("spec.list[*].ref.name").unwrap();
        let (beside, whole) = (Path::parse("kind").unwrap(), Path::parse("$.kind").unwrap());
        let mut seen = Vec::new();
        path.each(&object, &mut |found| {
            seen.push((
                beside.first_beside(&object, found.holder),
                whole.first_beside(&object, found.holder),
            ));
        });
        assert_eq!(seen, [(&json!("a"), &json!("top"))]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_path_or_an_error_within_it(text in "[a-c.$*?@=!'\"\\\\0-9, ()\\[\\]ü-]{0,40}") {
            let object = json!({"a": [{"b": 1, "c": {"a": 2}}], "b": {"a": [0]}});
            match Path::parse(&text) {
                Ok(path) => {
                    let mut found = Vec::new();
                    path.each(&object, &mut |each| found.push(each.value));
                    prop_assert!(found.len() <= 9, "each value at most once");
                    prop_assert_eq!(path.first(&object), found.first().copied().unwrap_or(&Value::Null));
                }
                Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.at)),
            }
        }
    }
}
