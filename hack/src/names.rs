//! The dependencies between the top-level modules of a crate, read from its sources.
//!
//! What counts are paths from the crate's root (`crate::x`, `super::x`) in production code. No compiler looks at it: names
//! that come in by a glob of another module, and methods, are not seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::source;

/// The items of the root itself, as a module.
pub(crate) const ROOT: &str = "lib";

/// The dependencies of one crate's modules.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// Module → module that it names → the places where it does, as `path:line`.
    pub(crate) arrows: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// One word of code, and its line.
type Token<'a> = (usize, &'a str);

/// One name that a `use` or a path brings, from the root or another place that the caller knows.
#[derive(Debug)]
struct Leaf<'a> {
    line: usize,
    /// The first word of the path.
    first: &'a str,
    /// Under which name it is known then.
    name: &'a str,
    /// The path is this one word and calls it: a function, where a module may have the same name.
    called: bool,
}

/// The graph of a crate whose sources are `files`, path below `src` → text. `src` is for the places.
pub(crate) fn graph(src: &str, files: &BTreeMap<String, String>) -> Graph {
    let tests: Vec<String> = files
        .iter()
        .flat_map(|(path, text)| source::test_modules(&format!("/{path}"), text))
        .collect();
    // A binary beside a library is a crate of its own.
    let root = ["lib.rs", "main.rs"]
        .into_iter()
        .find(|root| files.contains_key(*root));
    let files: Vec<(&str, String)> = files
        .iter()
        .filter(|(path, _)| Some(path.as_str()) == root || !matches!(path.as_str(), "lib.rs" | "main.rs"))
        .filter(|(path, _)| !source::is_test(&format!("/{path}"), &tests))
        .map(|(path, text)| (path.as_str(), source::production(text)))
        .collect();
    let module_of = |path: &str| match Some(path) == root {
        true => ROOT.to_owned(),
        false => path
            .split('/')
            .next()
            .unwrap_or(path)
            .trim_end_matches(".rs")
            .to_owned(),
    };
    let mut graph = Graph::default();
    for (path, _) in &files {
        graph.arrows.entry(module_of(path)).or_default();
    }
    let modules: BTreeSet<String> = graph.arrows.keys().cloned().collect();
    let root_text = files
        .iter()
        .find(|(path, _)| Some(*path) == root)
        .map(|(_, text)| text.as_str());
    let exports = exports(&tokens(root_text.unwrap_or_default()), &modules);
    for (path, text) in &files {
        let from = module_of(path);
        let tokens = tokens(text);
        let leaves = match from == ROOT {
            true => named_in_the_root(&tokens, &modules),
            false => named_from_the_root(&tokens, depth(path)),
        };
        for leaf in leaves {
            let Some(to) = resolve(&leaf, &modules, &exports).filter(|to| *to != from) else {
                continue;
            };
            let place = format!("{src}/{path}:{}", leaf.line);
            let names = graph.arrows.entry(from.clone()).or_default();
            let places = names.entry(to.to_owned()).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
    }
    graph
}

/// The module depth of a file's items: `a.rs` and `a/mod.rs` one, `a/b.rs` two.
fn depth(path: &str) -> usize {
    path.split('/').filter(|part| *part != "mod.rs").count()
}

/// The module that a path from the root leads to. An export of a module under the root's name is that module's, a name
/// from another crate has none, and all others are defined in the root itself.
fn resolve<'a>(
    leaf: &Leaf<'a>,
    modules: &'a BTreeSet<String>,
    exports: &BTreeMap<&'a str, Option<&'a str>>,
) -> Option<&'a str> {
    match modules.get(leaf.first) {
        Some(module) if !leaf.called => Some(module),
        _ => exports.get(leaf.first).copied().unwrap_or(Some(ROOT)),
    }
}

/// The names that the root brings in by `use`, for itself or for everyone: name → module, or none for another crate's.
fn exports<'a>(root: &[Token<'a>], modules: &BTreeSet<String>) -> BTreeMap<&'a str, Option<&'a str>> {
    let mut exports = BTreeMap::new();
    for (n, (_, word)) in root.iter().enumerate() {
        if *word == "use" {
            let mut leaves = Vec::new();
            leaves_of(root, n + 1, None, &mut leaves);
            let origin = |leaf: &Leaf<'a>| modules.contains(leaf.first).then_some(leaf.first);
            exports.extend(leaves.iter().map(|leaf| (leaf.name, origin(leaf))));
        }
    }
    exports
}

/// The names in the root itself: a path there may begin with a module.
fn named_in_the_root<'a>(tokens: &[Token<'a>], modules: &BTreeSet<String>) -> Vec<Leaf<'a>> {
    let word = |n: usize| tokens.get(n).map_or("", |t| t.1);
    let mut leaves = Vec::new();
    for (n, (line, name)) in tokens.iter().enumerate() {
        let of_the_root = n == 0 || word(n - 1) != "::" || (n > 1 && matches!(word(n - 2), "crate" | "self"));
        if word(n + 1) == "::" && of_the_root && modules.contains(*name) {
            let called = false;
            leaves.push(Leaf {
                line: *line,
                first: name,
                name,
                called,
            });
        }
    }
    leaves
}

/// The names in a file `depth` modules below the root, by paths from the root.
fn named_from_the_root<'a>(tokens: &[Token<'a>], depth: usize) -> Vec<Leaf<'a>> {
    let word = |n: usize| tokens.get(n).map_or("", |t| t.1);
    let mut leaves = Vec::new();
    // The number of open braces, and the number at which each open inline module was opened.
    let (mut braces, mut inline) = (0_usize, Vec::new());
    let mut n = 0;
    while n < tokens.len() {
        match word(n) {
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                inline.pop_if(|opened| *opened == braces);
            }
            "mod" if word(n + 2) == "{" => inline.push(braces),
            "crate" if word(n + 1) == "::" => {
                leaves_of(tokens, n + 2, None, &mut leaves);
            }
            "super" if word(n + 1) == "::" => {
                let mut up = 1;
                while word(n + 2) == "super" && word(n + 3) == "::" {
                    (up, n) = (up + 1, n + 2);
                }
                if up == depth + inline.len() {
                    leaves_of(tokens, n + 2, None, &mut leaves);
                }
            }
            _ => {}
        }
        n += 1;
    }
    leaves
}

/// Reads the path or tree that begins at `n`, below `first` if that was read already. Answers where it ends.
fn leaves_of<'a>(
    tokens: &[Token<'a>],
    mut n: usize,
    first: Option<&'a str>,
    leaves: &mut Vec<Leaf<'a>>,
) -> usize {
    let word = |n: usize| tokens.get(n).map_or("", |t| t.1);
    if word(n) == "{" {
        n += 1;
        while !matches!(word(n), "}" | "") {
            let end = leaves_of(tokens, n, first, leaves);
            // A token that is no path cannot stand here; it must not stop us either.
            n = end.max(n + 1);
            if word(end) == "," {
                n = end + 1;
            } else if word(end) == "}" {
                n = end;
            }
        }
        return n + 1;
    }
    let Some((line, name)) = tokens.get(n).copied() else {
        return n;
    };
    let root = matches!(name, "crate" | "self") && first.is_none() && word(n + 1) == "::";
    let below = if root { None } else { Some(first.unwrap_or(name)) };
    if word(n + 1) == "::" && (word(n + 2) == "{" || word(n + 2) == "*" || is_name(word(n + 2))) {
        return leaves_of(tokens, n + 2, below, leaves);
    }
    let renamed = word(n + 1) == "as";
    let called = first.is_none() && word(n + 1) == "(";
    let name = if renamed { word(n + 2) } else { name };
    let first = first.unwrap_or(tokens[n].1);
    leaves.push(Leaf {
        line,
        first,
        name,
        called,
    });
    n + if renamed { 3 } else { 1 }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The words, `::` and single signs of code without comments and strings.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (n, mut line) in code.lines().enumerate() {
        loop {
            line = line.trim_start();
            let of_names = |c: char| c.is_alphanumeric() || c == '_';
            let end = match line.chars().next() {
                None => break,
                Some(c) if of_names(c) => line.find(|c| !of_names(c)).unwrap_or(line.len()),
                Some(':') if line.starts_with("::") => 2,
                Some(c) => c.len_utf8(),
            };
            let (token, rest) = line.split_at(end);
            tokens.push((n + 1, token));
            line = rest;
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrows of a crate of these files, as `from -> to line`.
    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let graph = made(files);
        let mut found = Vec::new();
        for (from, names) in &graph.arrows {
            for (to, places) in names {
                let lines: Vec<&str> = places.iter().filter_map(|p| p.rsplit(':').next()).collect();
                found.push(format!("{from} -> {to} {}", lines.join(",")));
            }
        }
        found
    }

    fn made(files: &[(&str, &str)]) -> Graph {
        let of_three = ["lib.rs", "a.rs", "b.rs", "c.rs"].map(|path| (path.to_owned(), String::new()));
        let mut all = BTreeMap::from(of_three);
        all.extend(
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned())),
        );
        graph("crates/x/src", &all)
    }

    #[test]
    fn a_use_names_every_module_of_its_group() {
        for (text, expected) in [
            ("use crate::b::C;", "a -> b 1"),
            (
                "use crate::{\n    b::{C, d::E},\n    c as f,\n};",
                "a -> b 2 a -> c 3",
            ),
            ("use crate::{b::{self, *}, c::{D}};", "a -> b 1 a -> c 1"),
            ("use super::{b, c::d};", "a -> b 1 a -> c 1"),
            ("use {crate::b, std::fmt};", "a -> b 1"),
            ("use crate::a::d; use self::b::C; use b::D;", ""),
        ] {
            assert_eq!(arrows(&[("a.rs", text)]).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_path_in_code_counts_and_a_visibility_does_not() {
        let text = "pub(crate) fn f(x: crate::b::X) -> Y { crate::c::g::<u8>(super::c::H { x }) }\n\
                    #[serde(with = \"crate::b::at\")]\npub(in crate::a) struct Z;";
        assert_eq!(arrows(&[("a.rs", text)]), ["a -> b 1,2", "a -> c 1"]);
    }

    #[test]
    fn super_counts_from_where_it_stands() {
        for (path, text, expected) in [
            ("a.rs", "use super::b;", "a -> b 1"),
            ("a/d.rs", "use super::b;", ""),
            ("a/d.rs", "use super::super::b::{C};", "a -> b 1"),
            ("a/mod.rs", "use super::b;", "a -> b 1"),
            (
                "a.rs",
                "mod d { use super::b; mod e { use super::super::super::c; } }\nuse super::b;",
                "a -> b 2 a -> c 1",
            ),
        ] {
            assert_eq!(arrows(&[(path, text)]).join(" "), expected, "{path}: {text}");
        }
    }

    #[test]
    fn what_the_root_exports_is_the_module_s_and_what_it_holds_is_its_own() {
        let root = "pub use b::{X, d::Y as Z};\nuse self::c::V;\npub fn a() {}\npub struct W;\nfn f() { c::g(crate::b::h) }";
        for (text, expected) in [
            ("use crate::X;", "b -> b"),
            ("use crate::{Z, V};", "a -> b a -> c"),
            ("use crate::Y;", "a -> lib"),
            ("use crate::W;", "a -> lib"),
            ("fn f() { crate::a() }", "a -> lib"),
            ("use crate::*;", "a -> lib"),
        ] {
            let found = arrows(&[("lib.rs", root), ("a.rs", text)]);
            let (own, of_the_root) = found
                .iter()
                .partition::<Vec<_>, _>(|arrow| arrow.starts_with("a "));
            let own: Vec<_> = own
                .iter()
                .filter_map(|arrow| arrow.rsplit_once(' '))
                .map(|a| a.0)
                .collect();
            assert_eq!(own.join(" "), expected.replace("b -> b", "a -> b"), "{text}");
            assert_eq!(of_the_root, ["lib -> b 1,5", "lib -> c 2,5"]);
        }
    }

    #[test]
    fn what_the_root_brings_in_from_another_crate_is_no_module_s() {
        let root = "pub use other::{d, e::F};\npub use further as g;";
        let text = "use crate::{d::X, F, g::Y};\nfn f() { crate::d::h(super::g::i) }\nuse crate::W;";
        assert_eq!(arrows(&[("lib.rs", root), ("a.rs", text)]), ["a -> lib 3"]);
    }

    #[test]
    fn tests_and_comments_do_not_count() {
        let tests = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod properties {\n    use crate::b;\n}\n#[cfg(test)]\nuse crate::c;\n";
        let found = arrows(&[
            ("a.rs", tests),
            ("a/tests.rs", "use crate::b;"),
            ("a/tests/more.rs", "use crate::c;"),
            ("lib.rs", "#[cfg(test)]\nmod golden;"),
            ("golden.rs", "use crate::a;"),
            (
                "b.rs",
                "//! [`crate::a`]\n/* crate::a::b */ // crate::c::d\nconst X: &str = \"crate::a::b\";",
            ),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_binary_beside_a_library_is_left_out_and_a_binary_alone_is_a_crate() {
        assert_eq!(arrows(&[("main.rs", "use x::a; fn main() { a::b() }")]), [""; 0]);
        let alone = BTreeMap::from([("main.rs", "mod a; fn main() { a::b() }"), ("a.rs", "")]);
        let alone = alone
            .into_iter()
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .collect();
        assert_eq!(
            graph("src", &alone).arrows[ROOT].keys().collect::<Vec<_>>(),
            ["a"]
        );
    }
}
