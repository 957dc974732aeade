//! Rust sources as the checks see them: which are tests, and their production code without comments and strings.

/// The modules that `path` declares as `#[cfg(test)] mod name;`, each as its path without `.rs`.
pub(crate) fn test_modules(path: &str, text: &str) -> Vec<String> {
    let Some(stem) = path.strip_suffix(".rs") else {
        return Vec::new();
    };
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines
        .windows(2)
        .filter(|pair| pair[0] == TEST)
        .filter_map(|pair| {
            let (_, name) = pair[1].strip_suffix(';')?.split_once("mod ")?;
            Some(format!("{folder}/{name}"))
        });
    declared.collect()
}

/// Whether the file is test code as a whole: under `tests/`, or a module that its parent declares under `#[cfg(test)]`.
pub(crate) fn is_test(path: &str, test_modules: &[String]) -> bool {
    let in_module = |module: &String| {
        path.strip_prefix(module.as_str())
            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    path.starts_with("tests/") || path.contains("/tests/") || test_modules.iter().any(in_module)
}

/// What marks an item as test code. Written like this alone, as rustfmt leaves it.
const TEST: &str = "#[cfg(test)]";

/// The text with comments, strings, characters and items under `#[cfg(test)]` as spaces. Line breaks stay, so that a line
/// has the number that it has in the file. A path in an attribute (`#[serde(with = "crate::x")]`) stays: it is code.
pub(crate) fn production(text: &str) -> String {
    let mut code = code(text);
    while let Some(at) = code.find(TEST) {
        let end = at + TEST.len() + item(&code[at + TEST.len()..]);
        let blank: String = code[at..end].chars().map(blank).collect();
        code.replace_range(at..end, &blank);
    }
    code
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

/// The text with comments, strings and characters as spaces, but for paths in attributes.
fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |n: usize| chars.get(n).copied().unwrap_or('\n');
    let mut out = String::with_capacity(text.len());
    // How many brackets of an attribute are open.
    let mut attribute = 0_usize;
    let mut n = 0;
    while n < chars.len() {
        let c = chars[n];
        let end = match c {
            '/' if at(n + 1) == '/' => line_end(&chars, n),
            '/' if at(n + 1) == '*' => comment_end(&chars, n),
            '"' => string_end(&chars, n),
            '\'' => character_end(&chars, n),
            _ if c.is_alphanumeric() || c == '_' => {
                // A word as a whole, so that the `r` of `for"` is none of a raw string.
                let end = (n..chars.len())
                    .find(|n| !(at(*n).is_alphanumeric() || at(*n) == '_'))
                    .unwrap_or(chars.len());
                out.extend(&chars[n..end]);
                let word: String = chars[n..end].iter().collect();
                n = end;
                let raw = matches!(word.as_str(), "r" | "br" | "cr");
                match raw_end(&chars, n) {
                    end if raw && end > n => end,
                    _ => continue,
                }
            }
            _ => n,
        };
        if end == n {
            match c {
                '[' if attribute > 0 || out.ends_with('#') || out.ends_with("#!") => attribute += 1,
                ']' => attribute = attribute.saturating_sub(1),
                _ => {}
            }
            out.push(c);
            n += 1;
            continue;
        }
        let hidden: String = chars[n..end].iter().collect();
        match hidden.trim_matches('"') {
            path if attribute > 0 && is_path(path) => out += path,
            _ => out.extend(hidden.chars().map(blank)),
        }
        n = end;
    }
    out
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
            "#[a(with = crate::b::c)] d( )"
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
    fn lines_keep_their_numbers() {
        let text = "a\n/* b\nc */ d\n\"e\nf\" g\n#[cfg(test)]\nmod h {\n}\ni";
        let lines: Vec<_> = production(text).lines().map(|l| l.trim().to_owned()).collect();
        assert_eq!(lines, ["a", "", "d", "", "g", "", "", "", "i"]);
    }
}
