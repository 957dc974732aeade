//! Rust sources as the checks see them: which are tests, and their production code without comments and strings.

use std::ops::Range;

/// The modules that `path` declares as `#[cfg(test)] mod name;`, each as its path without `.rs`.
pub(crate) fn test_modules(path: &str, text: &str) -> Vec<String> {
    declarations(path, text, |before| before == TEST)
}

/// All modules that `path` declares as `mod name;`.
pub(crate) fn modules(path: &str, text: &str) -> Vec<String> {
    declarations(path, text, |_| true)
}

/// The declared modules whose line before passes.
fn declarations(path: &str, text: &str, passes: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(stem) = path.strip_suffix(".rs") else {
        return Vec::new();
    };
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    let lines: Vec<&str> = std::iter::once("").chain(text.lines().map(str::trim)).collect();
    let declared = lines
        .windows(2)
        .filter(|pair| passes(pair[0]))
        .filter_map(|pair| {
            let (before, name) = pair[1].strip_suffix(';')?.split_once("mod ")?;
            let is_visibility = before.is_empty() || before.starts_with("pub");
            is_visibility.then(|| format!("{folder}/{name}"))
        });
    declared.collect()
}

/// True if a compiler reads the file: it is the root of a crate, or some module of `modules`, as [`modules`] names them.
pub(crate) fn is_compiled(path: &str, modules: &[String]) -> bool {
    let Some((_, below)) = path.split_once("/src/") else {
        return true;
    };
    let module = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs"));
    let is_root = matches!(below, "lib.rs" | "main.rs") || below.starts_with("bin/");
    is_root || module.is_none_or(|module| modules.iter().any(|declared| declared == module))
}

/// True if the file is test code as a whole: under `tests/`, or a module that its parent declares under `#[cfg(test)]`.
pub(crate) fn is_test(path: &str, test_modules: &[String]) -> bool {
    let in_module = |module: &String| {
        path.strip_prefix(module.as_str())
            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    path.starts_with("tests/") || path.contains("/tests/") || test_modules.iter().any(in_module)
}

/// The attribute of test code, in this form only, as rustfmt writes it.
const TEST: &str = "#[cfg(test)]";

/// The text with comments, strings, characters and items under `#[cfg(test)]` as spaces. Line breaks stay, so that a line
/// has the number that it has in the file. A path in an attribute (`#[serde(with = "crate::x")]`) stays: it is code.
pub(crate) fn production(text: &str) -> String {
    let code = code(text);
    let tests = tests(&code);
    let in_test = |at: usize| tests.iter().any(|test| test.contains(&at));
    code.chars()
        .enumerate()
        .map(|(at, c)| if in_test(at) { blank(c) } else { c })
        .collect()
}

/// The ranges, in characters, of the items under `#[cfg(test)]` in code without comments and strings.
fn tests(code: &str) -> Vec<Range<usize>> {
    let mut tests = Vec::new();
    let (mut bytes, mut chars) = (0, 0);
    while let Some(at) = code[bytes..].find(TEST).map(|at| bytes + at) {
        let end = at + TEST.len() + item(&code[at + TEST.len()..]);
        let start = chars + code[bytes..at].chars().count();
        (bytes, chars) = (end, start + code[at..end].chars().count());
        tests.push(start..chars);
    }
    tests
}

fn blank(c: char) -> char {
    if c == '\n' { c } else { ' ' }
}

/// The length of the item, field, variant or arm that the text begins with, attributes and all.
fn item(text: &str) -> usize {
    let mut start = 0;
    while text[start..].trim_start().starts_with('#') {
        start += text[start..].find(']').map_or(text.len() - start, |end| end + 1);
    }
    let mut words = text[start..].split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let first = words.find(|word| !matches!(*word, "" | "pub" | "crate" | "super" | "in" | "self"));
    // A comma ends a field or a variant, but stands among the type parameters of an item; a brace does not end a `use`.
    let is_item = first.is_some_and(|word| ITEMS.contains(&word));
    let is_use = first == Some("use");
    let mut depth = 0_usize;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < start) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        let ends = match c {
            ';' => true,
            '}' => !is_use,
            ',' => !is_item,
            _ => false,
        };
        if ends && depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// The words that an item begins with.
const ITEMS: &[&str] = &[
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "union",
    "unsafe",
    "use",
];

/// The kind of a piece of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Code,
    Comment,
    Text,
}

/// A source in pieces, as ranges of its characters: strings and characters with their quotes, raw strings without their `r`.
fn pieces(chars: &[char]) -> Vec<(Piece, usize, usize)> {
    let at = |n: usize| chars.get(n).copied().unwrap_or('\n');
    let mut pieces = Vec::new();
    let (mut n, mut code) = (0, 0);
    while n < chars.len() {
        let (piece, end) = match chars[n] {
            '/' if at(n + 1) == '/' => (Piece::Comment, line_end(chars, n)),
            '/' if at(n + 1) == '*' => (Piece::Comment, comment_end(chars, n)),
            '"' => (Piece::Text, string_end(chars, n)),
            '\'' => (Piece::Text, character_end(chars, n)),
            c if c.is_alphanumeric() || c == '_' => {
                // A word as a whole, so that the `r` of `for"` is none of a raw string.
                let end = (n..chars.len())
                    .find(|n| !(at(*n).is_alphanumeric() || at(*n) == '_'))
                    .unwrap_or(chars.len());
                let word: String = chars[n..end].iter().collect();
                n = end;
                let raw = matches!(word.as_str(), "r" | "br" | "cr");
                (Piece::Text, if raw { raw_end(chars, n) } else { n })
            }
            _ => (Piece::Code, n + 1),
        };
        if piece == Piece::Code {
            n = end;
        } else if end > n {
            pieces.push((Piece::Code, code, n));
            pieces.push((piece, n, end));
            (n, code) = (end, end);
        } else if matches!(chars.get(n), Some('\'')) {
            // A lifetime.
            n += 1;
        }
    }
    pieces.push((Piece::Code, code, chars.len()));
    pieces
}

/// The text with comments, strings and characters as spaces, but for paths in attributes.
pub(crate) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    // The number of open brackets of an attribute.
    let mut attribute = 0_usize;
    for (piece, start, end) in pieces(&chars) {
        if piece == Piece::Code {
            for c in &chars[start..end] {
                match c {
                    '[' if attribute > 0 || out.ends_with('#') || out.ends_with("#!") => attribute += 1,
                    ']' => attribute = attribute.saturating_sub(1),
                    _ => {}
                }
                out.push(*c);
            }
            continue;
        }
        let hidden: String = chars[start..end].iter().collect();
        match hidden.trim_matches('"') {
            path if attribute > 0 && is_path(path) => out += &format!(" {path} "),
            _ => out.extend(hidden.chars().map(blank)),
        }
    }
    out
}

/// The strings of production code: the line where each begins, and its text with lines that `\` continues joined.
pub(crate) fn messages(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let tests = tests(&code(text));
    let in_test = |at: usize| tests.iter().any(|test| test.contains(&at));
    let mut messages = Vec::new();
    let mut line = 1;
    for (piece, start, end) in pieces(&chars) {
        let written: String = chars[start..end].iter().collect();
        let is_string = written.ends_with(['"', '#']);
        if piece == Piece::Text && is_string && !in_test(start) {
            let mut lines = written.trim_matches(['"', '#']).split("\\\n");
            let first = lines.next().unwrap_or_default().to_owned();
            let joined = lines.fold(first, |joined, line| joined + line.trim_start());
            messages.push((line, joined));
        }
        line += written.matches('\n').count();
    }
    messages
}

fn is_path(text: &str) -> bool {
    let of_names = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
    (text.starts_with("crate::") || text.starts_with("super::")) && text.chars().all(of_names)
}

fn line_end(chars: &[char], start: usize) -> usize {
    let rest = &chars[start..];
    rest.iter()
        .position(|c| *c == '\n')
        .map_or(chars.len(), |n| start + n)
}

fn comment_end(chars: &[char], start: usize) -> usize {
    let (mut n, mut depth) = (start, 0_usize);
    while n < chars.len() {
        match &chars[n..chars.len().min(n + 2)] {
            ['/', '*'] => (depth, n) = (depth + 1, n + 2),
            ['*', '/'] => (depth, n) = (depth - 1, n + 2),
            _ => n += 1,
        }
        if depth == 0 {
            break;
        }
    }
    n
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut n = start + 1;
    while n < chars.len() {
        match chars[n] {
            '"' => return n + 1,
            '\\' => n += 2,
            _ => n += 1,
        }
    }
    chars.len()
}

/// The end of a raw string whose `r` was read: `start` itself if there is none.
fn raw_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start..].iter().take_while(|c| **c == '#').count();
    if chars.get(start + hashes) != Some(&'"') {
        return start;
    }
    let mut n = start + hashes + 1;
    while n < chars.len() {
        let closes =
            chars[n] == '"' && chars[n + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
        n += 1;
        if closes {
            return n + hashes;
        }
    }
    chars.len()
}

/// The end of a character: `start` itself for a lifetime.
fn character_end(chars: &[char], start: usize) -> usize {
    match (chars.get(start + 1), chars.get(start + 2)) {
        (Some('\\'), Some(_)) => {
            let rest = chars[start + 3..].iter().position(|c| *c == '\'');
            rest.map_or(chars.len(), |n| start + 3 + n + 1)
        }
        (Some(_), Some('\'')) => start + 3,
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_known_by_their_place_or_their_declaration() {
        let mut modules = test_modules("crates/core/src/a.rs", "#[cfg(test)]\nmod golden;\nmod b;\n");
        modules.extend(test_modules(
            "crates/core/src/lib.rs",
            "#[cfg(test)]\npub(crate) mod made;\n#[cfg(test)]\nmod inline {\n",
        ));
        assert_eq!(modules, ["crates/core/src/a/golden", "crates/core/src/made"]);
        for (path, test) in [
            ("crates/core/src/a/golden.rs", true),
            ("crates/core/src/made/up.rs", true),
            ("crates/core/src/made_up.rs", false),
            ("crates/core/src/a/b.rs", false),
            ("crates/core/tests/golden.rs", true),
        ] {
            assert_eq!(is_test(path, &modules), test, "{path}");
        }
    }

    #[test]
    fn a_file_that_nobody_declares_is_not_compiled() {
        let modules = modules(
            "crates/x/src/a.rs",
            "//! mod d;\nmod b;\npub(crate) mod c;\n// mod e;\n",
        );
        for (path, compiled) in [
            ("crates/x/src/lib.rs", true),
            ("crates/x/src/a/b.rs", true),
            ("crates/x/src/a/c/mod.rs", true),
            ("crates/x/src/a/d.rs", false),
            ("crates/x/src/a/e.rs", false),
            ("e2e/tests/f.rs", true),
        ] {
            assert_eq!(is_compiled(path, &modules), compiled, "{path}");
        }
    }

    /// The words left of a text, without the spaces between.
    fn left(text: &str) -> String {
        production(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        for (text, code) in [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            ("//! a\n/// b\nc", "c"),
            (r#"a("b // \" c") d"#, "a( ) d"),
            ("a(r#\"b \"c\" d\"#) e", "a(r ) e"),
            ("a(br\"\\\") b", "a(br ) b"),
            (r"a('\'', '\u{7f}', '{', 'b') c", "a( , , , ) c"),
            ("fn a<'a>(b: &'a str)", "fn a<'a>(b: &'a str)"),
            ("r#type", "r#type"),
            ("\"never closed", ""),
        ] {
            assert_eq!(left(text), code, "{text}");
        }
    }

    #[test]
    fn a_path_in_an_attribute_is_code_and_other_text_in_one_is_not() {
        assert_eq!(
            left(r#"#[a(with = "crate::b::c")] d("crate::e")"#),
            "#[a(with = crate::b::c )] d( )"
        );
        assert_eq!(left(r#"#[doc = "crate::b is c"] d"#), "#[doc = ] d");
    }

    #[test]
    fn an_item_under_cfg_test_is_no_code_and_the_next_one_is() {
        for (text, code) in [
            ("a;\n#[cfg(test)]\nmod tests {\n    b { c }\n}\nd;", "a; d;"),
            ("#[cfg(test)]\nmod tests;\nd;", "d;"),
            ("#[cfg(test)]\nuse a::{b, c};\nd;", "d;"),
            ("#[cfg(test)]\n#[derive(A, B)]\nstruct C<D, E> { f: D }\nd;", "d;"),
            (
                "#[cfg(test)]\npub(crate) fn a<B, C>(d: [u8; 3]) -> E { f }\nd;",
                "d;",
            ),
            (
                "struct A {\n    #[cfg(test)]\n    pub b: C<D>,\n    e: F,\n}",
                "struct A { e: F, }",
            ),
            ("enum A {\n    #[cfg(test)]\n    B(C, D)\n}", "enum A { }"),
            ("f(\n    #[cfg(test)]\n    a(b, c),\n    d,\n)", "f( d, )"),
        ] {
            assert_eq!(left(text), code, "{text}");
        }
    }

    #[test]
    fn messages_are_the_strings_of_production_code() {
        let text = "//! \"a\"\nf(\"b \\\n   c\", 'd', r#\"e\"#);\n#[cfg(test)]\nmod t {\n    g(\"h\")\n}\nfn i<'j>() { \"é k\" }";
        let found = messages(text);
        let expected = [(2, "b c"), (3, "e"), (8, "é k")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "a\n/* b\nc */ d\n\"e\nf\" g\n#[cfg(test)]\nmod h {\n}\ni";
        let lines: Vec<_> = production(text).lines().map(|l| l.trim().to_owned()).collect();
        assert_eq!(lines, ["a", "", "d", "", "g", "", "", "", "i"]);
    }
}
