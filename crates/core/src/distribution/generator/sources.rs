//! The sources of the data: literals, files and env files, read as kustomize reads them.
//!
//! Text that does not parse may be a credential pasted into the wrong place. So no error quotes it: errors name the entry, and
//! the line of an env file.

use std::collections::BTreeMap;

use super::{Loaded, Wrong, node::Node};

/// The maximum length of a key of a ConfigMap or Secret.
const LONGEST_KEY: usize = 253;

/// The bytes that some editors begin a file with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Source: the Kubernetes API reference, `data` of a ConfigMap.
const NO_KEY: &str =
    "has no valid key: 1 to 253 letters, digits, '-', '_' and '.', neither . alone nor .. at the beginning";

/// The entries of a configuration, each with its field.
#[derive(Default)]
pub(super) struct Sources {
    env_files: Vec<EnvFile>,
    literals: Vec<Literal>,
    files: Vec<File>,
}

struct EnvFile {
    field: String,
    path: String,
}

struct Literal {
    field: String,
    key: String,
    value: String,
}

struct File {
    field: String,
    key: String,
    path: String,
}

impl Sources {
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let env_files = self.env_files.iter().map(|file| file.path.as_str());
        env_files.chain(self.files.iter().map(|file| file.path.as_str()))
    }
}

/// Reads the entries of `literals`, `files`, `envs` and the older `env`.
pub(super) fn read(resource: &Node<'_>, wrong: &mut Vec<Wrong>) -> Sources {
    let mut sources = Sources::default();
    for node in resource.at("literals").items(wrong) {
        let Some(text) = node.text(wrong) else { continue };
        match literal(&text) {
            Some((key, value)) => sources.literals.push(Literal {
                field: node.field().to_owned(),
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            None => wrong.push(node.wrong("is not KEY=VALUE; it is not shown, as it may be secret")),
        }
    }
    for node in resource.at("files").items(wrong) {
        let Some(text) = node.text(wrong) else { continue };
        match file(&text) {
            Some((key, path)) => sources.files.push(File {
                field: node.field().to_owned(),
                key: key.to_owned(),
                path: path.to_owned(),
            }),
            None => {
                wrong.push(node.wrong("is neither PATH nor KEY=PATH; neither of them may hold another ="))
            }
        }
    }
    let mut nodes = resource.at("envs").items(wrong);
    nodes.extend(Some(resource.at("env")).filter(Node::is_given));
    for node in nodes {
        match node.text(wrong) {
            Some(path) if path.is_empty() => wrong.push(node.wrong("is empty; name an env file")),
            Some(path) => sources.env_files.push(EnvFile {
                field: node.field().to_owned(),
                path,
            }),
            None => {}
        }
    }
    sources
}

/// Every key with its value: those of env files, then literals, then files.
///
/// # Errors
/// Files that cannot be loaded, lines that cannot be parsed, keys that are invalid or given twice.
pub(super) fn pairs(sources: &Sources, loaded: &Loaded) -> Result<BTreeMap<String, Vec<u8>>, Vec<Wrong>> {
    let mut pairs = Pairs::default();
    for EnvFile { field, path } in &sources.env_files {
        let Some(content) = pairs.content(loaded, field, path) else {
            continue;
        };
        for (number, line) in env_lines(content) {
            let place = Place { field, line: number };
            match line {
                Ok(Line {
                    key,
                    value: Some(value),
                }) => pairs.put(place, key, value.into()),
                // An unset variable is an empty value, as in the original.
                Ok(Line { key, value: None }) => {
                    pairs.put(
                        place,
                        key,
                        loaded.environment.get(key).cloned().unwrap_or_default(),
                    );
                }
                Err(why) => pairs.refuse(place, why),
            }
        }
    }
    for Literal { field, key, value } in &sources.literals {
        pairs.put(Place { field, line: 0 }, key, value.as_bytes().to_vec());
    }
    for File { field, key, path } in &sources.files {
        if let Some(content) = pairs.content(loaded, field, path) {
            pairs.put(Place { field, line: 0 }, key, content.to_vec());
        }
    }
    if !pairs.wrong.is_empty() {
        return Err(pairs.wrong);
    }
    Ok(pairs.values)
}

/// The source of a pair.
#[derive(Clone, Copy)]
struct Place<'a> {
    field: &'a str,
    /// The line of an env file, from 1; 0 for other sources.
    line: usize,
}

#[derive(Default)]
struct Pairs<'a> {
    values: BTreeMap<String, Vec<u8>>,
    /// The source of each key.
    places: BTreeMap<String, Place<'a>>,
    wrong: Vec<Wrong>,
}

impl<'a> Pairs<'a> {
    fn content<'l>(&mut self, loaded: &'l Loaded, field: &'a str, path: &str) -> Option<&'l [u8]> {
        let why = match loaded.files.get(path) {
            Some(Ok(content)) => return Some(content),
            Some(Err(why)) => why,
            None => "the file was not loaded",
        };
        self.refuse(Place { field, line: 0 }, why);
        None
    }

    fn put(&mut self, place: Place<'a>, key: &str, value: Vec<u8>) {
        if !is_key(key) {
            return self.refuse(place, NO_KEY);
        }
        if let Some(first) = self.places.get(key) {
            let first = match first.line {
                0 => first.field.to_owned(),
                line => format!("line {line} of {}", first.field),
            };
            return self.refuse(
                place,
                &format!("repeats the key of {first}; remove one of the two"),
            );
        }
        self.places.insert(key.to_owned(), place);
        self.values.insert(key.to_owned(), value);
    }

    fn refuse(&mut self, place: Place<'a>, why: &str) {
        let why = match place.line {
            0 => why.to_owned(),
            line => format!("line {line} {why}"),
        };
        self.wrong.push(Wrong {
            field: place.field.to_owned(),
            why,
        });
    }
}

/// A line of an env file.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    key: &'a str,
    /// `None`: the value of the environment.
    value: Option<&'a str>,
}

/// The lines that are neither blank nor comments, with their numbers. Spaces before a key are ignored, spaces after a value are
/// kept.
fn env_lines(content: &[u8]) -> impl Iterator<Item = (usize, Result<Line<'_>, &'static str>)> {
    let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
    let lines = content.split(|byte| *byte == b'\n').enumerate();
    lines.filter_map(|(before, line)| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let read = match std::str::from_utf8(line).map(str::trim_start) {
            Ok(line) if line.is_empty() || line.starts_with('#') => return None,
            Ok(line) => Ok(match line.split_once('=') {
                Some((key, value)) => Line {
                    key,
                    value: Some(value),
                },
                None => Line {
                    key: line,
                    value: None,
                },
            }),
            Err(_) => Err("is not UTF-8; give such a value as one of the files"),
        };
        Some((before + 1, read))
    })
}

/// Key and value of a literal. Quotes around the whole value are removed.
fn literal(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty())?;
    let within = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    Some((key, within('"').or_else(|| within('\'')).unwrap_or(value)))
}

/// Key and path of a file. Without a key the last part of the path is the key.
fn file(text: &str) -> Option<(&str, &str)> {
    let (key, path) = match text.split_once('=') {
        Some(pair) => pair,
        None => (text.rsplit('/').next()?, text),
    };
    (!key.is_empty() && !path.is_empty() && !path.contains('=')).then_some((key, path))
}

/// True if a text is a valid key of a ConfigMap or Secret.
fn is_key(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST_KEY).contains(&text.len())
        && text.bytes().all(is_inner)
        && text != "."
        && !text.starts_with("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &[u8]) -> Vec<(usize, Result<Line<'_>, &'static str>)> {
        env_lines(content).collect()
    }

    fn line<'a>(key: &'a str, value: impl Into<Option<&'a str>>) -> Result<Line<'a>, &'static str> {
        let value = value.into();
        Ok(Line { key, value })
    }

    #[test]
    fn quotes_around_a_whole_value_do_not_count() {
        for (text, value) in [
            ("k=v", "v"),
            ("k=", ""),
            ("k=\"v w\"", "v w"),
            ("k='v'", "v"),
            ("k=''", ""),
            ("k='\"v\"'", "\"v\""),
            ("k='v\"", "'v\""),
            ("k='", "'"),
            ("k=\"", "\""),
            ("k=v'", "v'"),
            ("k= 'v'", " 'v'"),
            ("k= v ", " v "),
            ("k=a=b=", "a=b="),
        ] {
            assert_eq!(literal(text), Some(("k", value)), "{text}");
        }
        for text in ["", "k", "=v", "="] {
            assert_eq!(literal(text), None, "{text}");
        }
    }

    #[test]
    fn a_file_without_a_key_has_its_own_name() {
        assert_eq!(file("a.txt"), Some(("a.txt", "a.txt")));
        assert_eq!(file("conf/a.txt"), Some(("a.txt", "conf/a.txt")));
        assert_eq!(file("k=conf/a.txt"), Some(("k", "conf/a.txt")));
        for text in ["", "=a", "k=", "k=a=b", "conf/"] {
            assert_eq!(file(text), None, "{text}");
        }
    }

    #[test]
    fn comments_and_blank_lines_are_passed_over() {
        let content = b"# reported\n\n \t\r\n  # reported\nA=1\n\tB= 2 \nC=#3\n";
        let want = vec![(5, line("A", "1")), (6, line("B", " 2 ")), (7, line("C", "#3"))];
        assert_eq!(lines(content), want);
    }

    #[test]
    fn lines_may_end_as_on_windows_and_begin_with_a_mark() {
        let content = b"\xef\xbb\xbfA=1\r\nB=2\r\r\n\xef\xbb\xbfC=3";
        let want = vec![
            (1, line("A", "1")),
            (2, line("B", "2\r")),
            (3, line("\u{feff}C", "3")),
        ];
        assert_eq!(lines(content), want);
        assert!(!is_key("\u{feff}C"));
    }

    #[test]
    fn a_key_alone_asks_the_environment() {
        assert_eq!(
            lines(b"HOME\nA="),
            vec![(1, line("HOME", None)), (2, line("A", ""))]
        );
        let sources = Sources {
            env_files: vec![EnvFile {
                field: "envs[0]".into(),
                path: "e".into(),
            }],
            ..Sources::default()
        };
        let loaded = Loaded {
            files: BTreeMap::from([("e".into(), Ok(b"SET\nUNSET".to_vec()))]),
            environment: BTreeMap::from([("SET".into(), b"on".to_vec())]),
        };
        let want = BTreeMap::from([("SET".into(), b"on".to_vec()), ("UNSET".into(), Vec::new())]);
        assert_eq!(pairs(&sources, &loaded), Ok(want));
    }

    #[test]
    fn a_line_that_is_no_text_is_reported_by_its_number() {
        let read = lines(b"A=1\nB=\xff\nC=3");
        assert_eq!(read.len(), 3);
        assert_eq!(read[1].0, 2);
        assert!(read[1].1.is_err());
    }

    #[test]
    fn keys_are_those_of_a_config_map() {
        for key in ["a", ".a", "A-b_c.0", "0", "a..", &"x".repeat(253)] {
            assert!(is_key(key), "{key}");
        }
        for key in [
            "",
            ".",
            "..",
            "..a",
            "a b",
            "a/b",
            "ä",
            " a",
            "a ",
            &"x".repeat(254),
        ] {
            assert!(!is_key(key), "{key}");
        }
    }
}
