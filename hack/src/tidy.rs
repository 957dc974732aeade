//! The rules for every text file of the checkout: a table, each with its reason and its own samples.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};

use crate::{Outcome, fences, source, tree, words};

/// One file as the rules see it.
struct File<'a> {
    path: &'a str,
    text: &'a str,
    /// Test code as a whole: under `tests/`, or a module that its parent declares under `#[cfg(test)]`.
    test: bool,
}

/// A finding: line (from 1) and what is wrong there.
type Finding = (usize, String);

struct Rule {
    name: &'static str,
    reason: &'static str,
    applies: fn(&str) -> bool,
    check: fn(&File<'_>) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "module-doc",
        reason: "a reader learns in the first line what a file is for",
        applies: is_rust,
        check: module_doc,
    },
    Rule {
        name: "trailing-space",
        reason: "diffs show changes, not spaces",
        applies: is_prose_or_code,
        check: trailing_space,
    },
    Rule {
        name: "final-newline",
        reason: "the last line is a line",
        applies: is_prose_or_code,
        check: final_newline,
    },
    Rule {
        name: "size",
        reason: "one subject a file; past 500 lines of production code the file says why: // over 500 lines: <reason>",
        applies: is_rust,
        check: size,
    },
    Rule {
        name: "purity",
        reason: "what decides has no clock, no randomness, no order that differs from run to run, no environment, no threads",
        applies: is_pure,
        check: purity,
    },
    Rule {
        name: "words",
        reason: "one term for each concept, the same in code, messages and pages: hack/src/words.rs",
        applies: words::applies,
        check: banned,
    },
    Rule {
        name: "definition",
        reason: "a doc comment defines the thing, \"The clusters that …\"; it does not ask \"Which clusters …\"",
        applies: is_rust,
        check: definition,
    },
    Rule {
        name: "home-path",
        reason: "a path of one machine means nothing on another",
        applies: is_prose_or_code,
        check: home_path,
    },
];

/// The limit of the rule `size`, in lines of production code.
const LONGEST: usize = 500;

/// Words that the rule `purity` finds as whole words of code.
const IMPURE: &[&str] = &[
    "HashMap",
    "HashSet",
    "SystemTime",
    "Instant",
    "std::env",
    "env::var",
    "thread",
    "std::fs",
    "std::net",
];

/// Words that the rule `definition` refuses at the beginning of a doc comment. A sentence such as "When true, …" is accepted: `When`
/// and `Where` with a comma in the line.
const QUESTIONS: &[&str] = &[
    "How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why",
];

/// Checks every file of the checkout against every rule. Errors: all findings, as `path:line: rule: what`.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    if !args.is_empty() {
        bail!("tidy takes no arguments");
    }
    let root = tree::root();
    let (mut findings, mut texts) = (Vec::new(), BTreeMap::new());
    for path in tree::files(&root)? {
        if RULES.iter().any(|r| (r.applies)(&path)) {
            let text = fs::read_to_string(root.join(&path))?;
            texts.insert(path, text);
        }
    }
    let test_modules: Vec<String> = texts
        .iter()
        .flat_map(|(path, text)| source::test_modules(path, text))
        .collect();
    let modules: Vec<String> = texts
        .iter()
        .flat_map(|(path, text)| source::modules(path, text))
        .collect();
    let forgotten = texts.keys().filter(|path| !source::is_compiled(path, &modules));
    findings.extend(forgotten.map(|path| {
        format!("{path}:1: module: nothing declares it, so it is not compiled (declare it in its parent: mod name;)")
    }));
    for (path, text) in &texts {
        let test = source::is_test(path, &test_modules);
        let file = File { path, text, test };
        let rules = RULES.iter().filter(|r| (r.applies)(path));
        for rule in rules {
            let found = (rule.check)(&file).into_iter();
            findings.extend(
                found.map(|(line, what)| format!("{path}:{line}: {}: {what} ({})", rule.name, rule.reason)),
            );
        }
    }
    if !findings.is_empty() {
        bail!("{} findings\n  {}", findings.len(), findings.join("\n  "));
    }
    Ok(Outcome::Done(format!(
        "{} files keep {} rules",
        texts.len(),
        RULES.len()
    )))
}

// === which files ===

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn is_pure(path: &str) -> bool {
    let source = path
        .strip_prefix("crates/")
        .and_then(|path| path.split_once("/src/"));
    is_rust(path) && source.is_some_and(|(name, _)| fences::PURE.contains(&name))
}

fn is_prose_or_code(path: &str) -> bool {
    let written_by_hand = [".rs", ".toml", ".md", ".sh"]
        .iter()
        .any(|end| path.ends_with(end));
    (written_by_hand || path == ".ci/run") && !path.contains("/testdata/")
}

// === the rules ===

fn module_doc(file: &File<'_>) -> Vec<Finding> {
    match file.text.starts_with("//!") {
        true => Vec::new(),
        false => vec![(1, "does not start with //!".to_owned())],
    }
}

fn trailing_space(file: &File<'_>) -> Vec<Finding> {
    let bad = file
        .text
        .split('\n')
        .enumerate()
        .filter(|(_, line)| line.ends_with([' ', '\t', '\r']));
    bad.map(|(n, _)| (n + 1, "space at the end of the line".to_owned()))
        .collect()
}

fn final_newline(file: &File<'_>) -> Vec<Finding> {
    match file.text.is_empty() || (file.text.ends_with('\n') && !file.text.ends_with("\n\n")) {
        true => Vec::new(),
        false => vec![(
            file.text.lines().count(),
            "the file does not end with exactly one newline".to_owned(),
        )],
    }
}

fn size(file: &File<'_>) -> Vec<Finding> {
    let lines = before_tests(file.text).lines().count();
    let excused = file.text.lines().any(|line| {
        let reason = line.trim_start().strip_prefix("// over 500 lines:");
        reason.is_some_and(|reason| !reason.trim().is_empty())
    });
    if file.test || lines <= LONGEST || excused {
        return Vec::new();
    }
    vec![(
        LONGEST,
        format!("{lines} lines of production code and no marker with a reason"),
    )]
}

fn purity(file: &File<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if file.test {
        return found;
    }
    for (n, code) in source::production(file.text).lines().enumerate() {
        found.extend(
            IMPURE
                .iter()
                .filter(|w| has_word(code, w))
                .map(|w| (n + 1, (*w).to_owned())),
        );
    }
    found
}

/// Identifiers in all code, tests included; phrases in strings of production code and in pages.
fn banned(file: &File<'_>) -> Vec<Finding> {
    let line_at = |at: usize, text: &str| text[..at].matches('\n').count() + 1;
    if !is_rust(file.path) {
        let found = words::phrases(file.text).into_iter();
        return found.map(|(at, what)| (line_at(at, file.text), what)).collect();
    }
    let code = source::code(file.text);
    let found = words::identifiers(&code).into_iter();
    let mut found: Vec<Finding> = found.map(|(at, what)| (line_at(at, &code), what)).collect();
    if !file.test && !words::STORED.contains(&file.path) {
        for (line, message) in source::messages(file.text) {
            found.extend(words::phrases(&message).into_iter().map(|(_, what)| (line, what)));
        }
    }
    found
}

/// The first line of each doc comment.
fn definition(file: &File<'_>) -> Vec<Finding> {
    let doc = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        text.map(|text| text.trim_start().to_owned())
    };
    let (mut found, mut inside) = (Vec::new(), false);
    for (n, line) in file.text.lines().enumerate() {
        let doc = doc(line);
        if let Some(text) = doc.as_deref().filter(|_| !inside) {
            let first = text
                .split(|c: char| !c.is_alphabetic())
                .next()
                .unwrap_or_default();
            let is_clause = ["When", "Where"].contains(&first) && text.contains(',');
            if QUESTIONS.contains(&first) && !is_clause {
                found.push((n + 1, format!("a doc comment begins with {first:?}")));
            }
        }
        inside = doc.is_some_and(|text| inside || !text.is_empty());
    }
    found
}

fn home_path(file: &File<'_>) -> Vec<Finding> {
    // Put together here so that this file does not find itself.
    let prefixes = [["/ho", "me/"], ["/ro", "ot/"], ["/Use", "rs/"]].map(|parts| parts.concat());
    let mut found = Vec::new();
    for (n, line) in file.text.lines().enumerate() {
        for prefix in &prefixes {
            let starts_a_path = |at: usize| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| {
                    c.is_alphanumeric() || matches!(c, '.' | '}' | '$' | '_' | '-' | '/' | '~')
                })
            };
            if line
                .match_indices(prefix.as_str())
                .any(|(at, _)| starts_a_path(at))
            {
                found.push((n + 1, format!("an absolute path under {prefix}")));
            }
        }
    }
    found
}

/// The text before the first inline test module: `#[cfg(test)]` and `mod … {` at the beginning of two lines.
fn before_tests(text: &str) -> &str {
    let inline = |at: &usize| {
        let next = text[*at..].lines().nth(1).unwrap_or_default();
        next.contains("mod ") && next.ends_with('{')
    };
    let starts_line = |at: &usize| *at == 0 || text[..*at].ends_with('\n');
    let mut markers = text
        .match_indices("#[cfg(test)]\n")
        .map(|(at, _)| at)
        .filter(starts_line);
    markers.find(inline).map_or(text, |end| &text[..end])
}

fn has_word(code: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule, path, a text that it must refuse there, and one that it must accept.
    fn samples() -> Vec<(&'static str, &'static str, String, String)> {
        let sample = |rule, path, bad: &str, good: &str| (rule, path, bad.to_owned(), good.to_owned());
        let long = ";\n".repeat(LONGEST + 1);
        vec![
            sample(
                "module-doc",
                "crates/api/src/a.rs",
                "use std::fmt;\n",
                "//! The a.\nuse std::fmt;\n",
            ),
            sample("trailing-space", "docs/a.md", "one \ntwo\n", "one\ntwo\n"),
            sample("trailing-space", ".ci/run", "one\r\n", "one\n"),
            sample("final-newline", "docs/a.md", "one", "one\n"),
            sample("final-newline", "docs/a.md", "one\n\n", ""),
            sample(
                "size",
                "crates/api/src/a.rs",
                &long,
                &format!("// over 500 lines: a table\n{long}"),
            ),
            sample(
                "size",
                "crates/api/src/a.rs",
                &long,
                &format!("//! A.\n#[cfg(test)]\nmod tests {{\n{long}}}\n"),
            ),
            sample(
                "size",
                "crates/api/src/a.rs",
                &format!("// over 500 lines:\n{long}"),
                &long[2..],
            ),
            sample(
                "purity",
                "crates/core/src/a.rs",
                "use std::collections::HashMap;\n",
                "// not a HashMap: its order differs\n",
            ),
            sample(
                "purity",
                "crates/model/src/a/b.rs",
                "std::thread::spawn(f)\n",
                "fn thread_pool(at: MyInstant) {}\n",
            ),
            sample(
                "purity",
                "crates/core/src/a.rs",
                "let at: Instant;\n",
                "//! A.\n#[cfg(test)]\nmod tests {\nuse std::env;\n}\n",
            ),
            sample(
                "words",
                "crates/core/src/a.rs",
                "#[cfg(test)]\nmod tests {\n    struct Doubts;\n}\n",
                "// Doubts\nconst A: &str = \"Doubts\";\nstruct NoDoubts;\n",
            ),
            sample(
                "words",
                "crates/core/src/a.rs",
                "const A: &str = \"it already stands \\\n    on m1\";\n",
                "// it already stands on m1\n#[cfg(test)]\nconst A: &str = \"already stands on\";\n",
            ),
            sample(
                "words",
                "docs/a.md",
                "It already stands\non m1.\n",
                "It already exists on m1.\n",
            ),
            sample(
                "definition",
                "crates/core/src/a.rs",
                "    /// Which clusters are ready.\n    fn ready() {}\n",
                "/// The clusters that are ready.\n///\n/// # Errors\n/// When none is.\n// Which?\n",
            ),
            sample(
                "definition",
                "crates/core/src/a.rs",
                "//! What it does.\n",
                "//! Whatever.\n",
            ),
            sample(
                "definition",
                "crates/core/src/a.rs",
                "///\n/// Why.\n",
                "/// When none is ready, the last choice stays.\n",
            ),
            sample(
                "definition",
                "crates/core/src/a.rs",
                "/// A.\nfn a() {}\n/// How it ends.\nfn b() {}\n",
                "/// A.\nfn a() {}\n/// Its end.\nfn b() {}\n",
            ),
            sample(
                "home-path",
                "docs/a.md",
                concat!("see /ho", "me/someone/src\n"),
                "$HOME/src, https://example.com/home/page\n",
            ),
        ]
    }

    #[test]
    fn every_rule_refuses_and_accepts_its_samples() {
        for (name, path, bad, good) in samples() {
            let rule = RULES.iter().find(|r| r.name == name).unwrap();
            assert!((rule.applies)(path), "{name} does not look at {path}");
            assert!(
                !(rule.check)(&File {
                    path,
                    text: &bad,
                    test: false
                })
                .is_empty(),
                "{name} accepts {bad:?}"
            );
            let findings = (rule.check)(&File {
                path,
                text: &good,
                test: false,
            });
            assert!(findings.is_empty(), "{name} refuses {good:?}: {findings:?}");
        }
    }

    #[test]
    fn every_rule_has_a_reason_a_sample_and_a_name_of_its_own() {
        for (n, rule) in RULES.iter().enumerate() {
            assert!(!rule.reason.is_empty());
            assert!(
                samples().iter().any(|s| s.0 == rule.name),
                "{} has no sample",
                rule.name
            );
            assert!(
                RULES[..n].iter().all(|other| other.name != rule.name),
                "{} stands twice",
                rule.name
            );
        }
    }

    #[test]
    fn a_declared_test_module_hides_nothing_of_its_parent() {
        let long = format!("#[cfg(test)]\nmod golden;\n{}", ";\n".repeat(LONGEST));
        let file = File {
            path: "crates/api/src/a.rs",
            text: &long,
            test: false,
        };
        assert_eq!(size(&file).len(), 1);
    }

    #[test]
    fn test_data_is_left_to_itself() {
        assert!(!is_prose_or_code("crates/api/testdata/a.md"));
    }
}
