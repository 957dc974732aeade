//! The functions that rules may call: a table of their overloads.

use std::{collections::HashMap, sync::LazyLock};

use super::types::Ty;

/// The types that a function takes and returns. Its variables are numbered from 0.
#[derive(Debug)]
pub(super) struct Overload {
    /// True if it is called on a value, its first argument.
    pub(super) on_value: bool,
    pub(super) args: Vec<Ty>,
    pub(super) result: Ty,
}

/// Overloads that several functions share.
const SHARED: [(&str, &str); 3] = [
    (
        "@ordered",
        "bool<bool,bool bool<int,int bool<int,double bool<int,uint bool<uint,uint bool<uint,double bool<uint,int bool<double,double bool<double,int bool<double,uint bool<string,string bool<bytes,bytes bool<timestamp,timestamp bool<duration,duration",
    ),
    ("@part", "int<timestamp int<timestamp,string"),
    (
        "@largest",
        "int<list(int) uint<list(uint) double<list(double) bool<list(bool) duration<list(duration) timestamp<list(timestamp) string<list(string) bytes<list(bytes)",
    ),
];

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: HashMap<&str, Vec<Overload>> = HashMap::new();
    for line in include_str!("functions.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let Some((name, overloads)) = line.split_once(' ') else {
            continue;
        };
        let (on_value, name) = match name.strip_prefix('.') {
            Some(name) => (true, name),
            None => (false, name),
        };
        let known = functions.entry(name).or_default();
        for word in overloads.split(' ') {
            let shared = SHARED
                .iter()
                .find(|(name, _)| *name == word)
                .map(|(_, text)| *text);
            known.extend(
                shared
                    .unwrap_or(word)
                    .split(' ')
                    .filter_map(|text| overload(text, on_value)),
            );
        }
    }
    functions
});

/// `result<argument,argument`.
fn overload(text: &'static str, on_value: bool) -> Option<Overload> {
    let (result, args) = text.split_once('<')?;
    let mut parts = Vec::new();
    let (mut start, mut deep) = (0, 0_i32);
    for (at, letter) in args.char_indices() {
        match letter {
            '(' => deep += 1,
            ')' => deep -= 1,
            ',' if deep == 0 => {
                parts.push(&args[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&args[start..]);
    Some(Overload {
        on_value,
        args: parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(Ty::named)
            .collect(),
        result: Ty::named(result),
    })
}

/// The overloads of a function; `None`: there is none of this name.
pub(super) fn overloads(name: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_function_with_its_overloads() {
        let lines = include_str!("functions.txt")
            .lines()
            .filter(|line| !line.starts_with('#'));
        for line in lines {
            let name = line.split(' ').next().unwrap_or_default().trim_start_matches('.');
            assert!(overloads(name).is_some_and(|known| !known.is_empty()), "{line}");
        }
        assert_eq!(overloads("_<_").map(<[_]>::len), Some(14));
        assert_eq!(overloads("size").map(<[_]>::len), Some(8));
        let query = &overloads("getQuery").expect("a function")[0];
        assert_eq!(query.result.name(), "map(string, list(string))");
    }
}
