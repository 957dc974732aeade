//! The errors of scripts. An error names the script, the position and the cause, and never shows content of the object, which
//! may be a Secret.
//!
//! A message of Lua may quote a value (`error(obj.data.password)`), so it is shown only if it cannot have content of an object:
//! it is one of Lua's own sentences with names that are in the script, or the whole of it is in quotes in the script.

use std::time::Duration;

use crate::chunks::{CHUNK, PRELUDE};

/// The time at which a script that reached a limit is run for the object again, as messages say it.
const AGAIN: &str = "it runs for this object again when the object changes";

/// The reason why a script returned no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// It is not Lua 5.1.
    #[error("script {script:?}: {what}; correct it")]
    Syntax {
        /// Name of the script.
        script: String,
        /// The position and the error there, quoting the script.
        what: String,
    },
    /// It lacks the function of the operation.
    #[error("script {script:?} defines no function {function}; define it, or remove the script")]
    Missing {
        /// Name of the script.
        script: String,
        /// Name of the function.
        function: &'static str,
    },
    /// It failed.
    #[error("script {script:?}{}: {what}", at(.line))]
    Failed {
        /// Name of the script.
        script: String,
        /// The line, from 1.
        line: Option<u32>,
        /// The cause, as far as it can be shown without content of the object.
        what: String,
    },
    /// It returned something else than expected.
    #[error("script {script:?}: {function} must return {expected}{}", of(.field))]
    Shape {
        /// Name of the script.
        script: String,
        /// Name of the function.
        function: &'static str,
        /// The field of the result; empty for the result as a whole.
        field: String,
        /// The expected value.
        expected: &'static str,
    },
    /// It ran too long.
    #[error("script {script:?}{}: hit its limit: stopped after {after:?}; make it do less; {AGAIN}", at(.line))]
    Time {
        /// Name of the script.
        script: String,
        /// The line, from 1.
        line: Option<u32>,
        /// The limit.
        after: Duration,
    },
    /// It executed too many instructions.
    #[error("script {script:?}{}: hit its limit: stopped after {count} instructions; make it do less; {AGAIN}", at(.line))]
    Instructions {
        /// Name of the script.
        script: String,
        /// The line, from 1.
        line: Option<u32>,
        /// The limit.
        count: u64,
    },
    /// It used too much memory, or made a string or a result that is too large.
    #[error("script {script:?}{}: hit its limit: needs more than the {bytes} bytes of memory, the largest string or the largest result; make less of them; {AGAIN}", at(.line))]
    Memory {
        /// Name of the script.
        script: String,
        /// The line, from 1.
        line: Option<u32>,
        /// The limit of the memory.
        bytes: usize,
    },
    /// It reached a limit for this version of the object before, and was not run again. Has the same text as then: a text that
    /// changed each time would cause a write each time.
    #[error("{0}")]
    Quarantined(Box<Self>),
}

impl ScriptError {
    /// True if a limit stopped the script in this run.
    #[must_use]
    pub const fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::Time { .. } | Self::Instructions { .. } | Self::Memory { .. }
        )
    }
}

fn at(line: &Option<u32>) -> String {
    line.map(|line| format!(", line {line}")).unwrap_or_default()
}

fn of(field: &str) -> String {
    match field {
        "" => String::new(),
        field => format!(" at {field}"),
    }
}

/// The message of a library function: it never has a value of an object.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Said(pub(crate) String);

/// An error of a library function; `what` must have no value of an object.
pub(crate) fn say(what: impl Into<String>) -> mlua::Error {
    mlua::Error::external(Said(what.into()))
}

/// From what the compiler reports: it quotes the script and knows nothing else.
pub(crate) fn of_syntax(script: &str, error: &mlua::Error) -> ScriptError {
    let what = match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        _ => "cannot be compiled".to_owned(),
    };
    let what = match what.strip_prefix(CHUNK).and_then(|rest| rest.strip_prefix(':')) {
        Some(rest) => format!("line {rest}"),
        None => what,
    };
    ScriptError::Syntax {
        script: script.to_owned(),
        what: brief(what),
    }
}

/// The maximum length of a script's text that is quoted, in bytes: it may be as long as the script, and appears in conditions
/// and events.
const LONGEST: usize = 256;

/// The beginning of a text.
pub(crate) fn brief(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}

pub(crate) fn root(error: &mlua::Error) -> Option<&mlua::Error> {
    match error {
        mlua::Error::CallbackError { cause, .. } | mlua::Error::WithContext { cause, .. } => root(cause),
        other => Some(other),
    }
}

pub(crate) fn shown(error: &mlua::Error, source: &str) -> String {
    match root(error) {
        Some(mlua::Error::RuntimeError(message)) => shown_message(message, source),
        Some(mlua::Error::ExternalError(reported)) => reported
            .downcast_ref::<Said>()
            .map_or_else(|| "a library function failed".into(), ToString::to_string),
        Some(mlua::Error::BadArgument { to, pos, .. }) => {
            let name = to.as_deref().unwrap_or("a function");
            format!("bad argument #{pos} to {name}")
        }
        Some(mlua::Error::FromLuaConversionError { from, .. }) => format!("a {from} cannot be used there"),
        _ => HIDDEN.to_owned(),
    }
}

/// The substitute for a message that may show content of the object.
const HIDDEN: &str =
    "the script failed; its message is not shown because it is not a text of the script itself";

fn shown_message(message: &str, source: &str) -> String {
    let text = without_traceback(message);
    let text = without_place(text);
    if is_ours(text, source) || is_own_sentence(text, source) || is_quoted(text, source) {
        text.to_owned()
    } else {
        HIDDEN.to_owned()
    }
}

/// The message without Lua's traceback after it.
pub(crate) fn without_traceback(message: &str) -> &str {
    message.split(TRACEBACK).next().unwrap_or_default()
}

const TRACEBACK: &str = "\nstack traceback:";

/// The message without Lua's position `script:12: ` before it.
fn without_place(text: &str) -> &str {
    let name = text.strip_prefix(CHUNK).or_else(|| text.strip_prefix(PRELUDE));
    name.and_then(|rest| rest.strip_prefix(':'))
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .and_then(|rest| rest.strip_prefix(": "))
        .unwrap_or(text)
}

/// True if the script has the whole text in quotes.
fn is_quoted(text: &str, source: &str) -> bool {
    let quotes = [("\"", "\""), ("'", "'"), ("[[", "]]")];
    text.len() >= 4
        && quotes
            .iter()
            .any(|(open, close)| source.contains(&format!("{open}{text}{close}")))
}

/// True for a message of the prelude.
fn is_ours(text: &str, source: &str) -> bool {
    let refused = text.strip_suffix(" is not available to interpreter scripts");
    refused.is_some_and(|name| is_word_of(name, source)) || text == "only 'kube' can be required"
}

/// True for a sentence of Lua itself, with nothing in it but words from this list and names that are in the script.
fn is_own_sentence(text: &str, source: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names_of_script = |name: &str| name == "?" || (name.chars().all(is_name) && is_word_of(name, source));
    let mut words = text.split([' ', '(', ')', ',']).filter(|word| !word.is_empty());
    text.len() < 200
        && SENTENCES.iter().any(|start| text.starts_with(start))
        && words.all(
            |word| match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
                Some(name) => names_of_script(name) || LIBRARY.contains(&name),
                None => WORDS.contains(&word) || ["#1", "#2", "#3", "#4"].contains(&word),
            },
        )
}

/// True if the script has the name as a word of its own.
fn is_word_of(name: &str, source: &str) -> bool {
    source
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .any(|word| word == name)
}

const SENTENCES: &[&str] = &[
    "attempt to ",
    "bad argument ",
    "stack overflow",
    "C stack overflow",
    "invalid order function",
    "'for' ",
    "invalid value",
    "table index is ",
    "wrong number of arguments",
    "calling ",
];

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "C", "NaN", "a", "an", "argument", "arguments", "arithmetic", "at", "attempt", "bad", "base", "be", "boolean",
    "bounds", "call", "compare", "concatenate", "empty", "expected", "field", "for", "function", "get", "global",
    "got", "has", "in", "index", "initial", "integer", "interval", "invalid", "is", "length", "limit", "local",
    "many", "method", "must", "nil", "no", "number", "of", "on", "order", "out", "overflow", "perform", "position",
    "range", "representation", "results", "sorting", "stack", "step", "string", "table", "thread", "to", "too", "two",
    "unpack", "upvalue", "userdata", "value", "values", "with", "wrong", "zero",
];

/// Names of library functions as Lua quotes them.
#[rustfmt::skip]
const LIBRARY: &[&str] = &[
    "abs", "byte", "ceil", "char", "concat", "date", "find", "floor", "fmod", "for", "format", "getn", "gmatch",
    "gsub", "insert", "ipairs", "len", "limit", "lower", "match", "max", "maxn", "min", "next", "pairs", "random",
    "remove", "rep", "reverse", "select", "sort", "sqrt", "step", "sub", "tonumber", "tostring", "type", "unpack",
    "upper",
];

/// The line of the script at which it failed, from the innermost traceback; no more than the script has lines, so that
/// no number of an object passes for one.
pub(crate) fn line_of(error: &mlua::Error, source: &str) -> Option<u32> {
    let traceback = match error {
        mlua::Error::CallbackError { traceback, .. } => traceback.as_str(),
        mlua::Error::RuntimeError(message) => message.rsplit_once(TRACEBACK)?.1,
        _ => return None,
    };
    let (_, after) = traceback.split_once(&format!("{CHUNK}:"))?;
    let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
    let line: u32 = digits.parse().ok()?;
    (1..=source.lines().count())
        .contains(&(line as usize))
        .then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{budget::Budget, run_error::of_run};

    #[test]
    fn a_message_is_shown_only_if_it_stands_in_the_script_or_is_luas_own() {
        let source = "local spec = obj.spec\nerror('no template') error(obj.data.a) spec.x()";
        for (message, is_shown) in [
            ("script:2: no template", true),
            ("script:2: no templat", false),
            ("script:2: hunter2", false),
            ("hunter2\nstack traceback:\n\tscript:1: in main", false),
            ("script:1: attempt to index field 'spec' (a nil value)", true),
            ("script:1: attempt to index field 'hunter2' (a nil value)", false),
            ("script:1: attempt to index hunter2", false),
            ("script:1: attempt to compare number with nil", true),
            ("script:1: attempt to call field '?' (a nil value)", true),
            ("bad argument #1 to 'insert' (table expected, got nil)", true),
            ("bad argument #1 to 'insert' (hunter2)", false),
            ("bad argument #hu to 'insert' (table expected)", false),
        ] {
            let shown = shown_message(message, source);
            assert_eq!(shown != HIDDEN, is_shown, "{message}");
            assert!(!shown.contains("hunter2"));
        }
    }

    #[test]
    fn what_a_script_holds_is_quoted_in_brief() {
        let long = "ä".repeat(100_000);
        for source in [
            format!("x = '{long}\n'"),
            format!("x = {}z", "1".repeat(100_000)),
            format!("x = [[{long}"),
            format!("{} {}", "a".repeat(100_000), "b".repeat(100_000)),
        ] {
            let error = crate::Script::compile("a", &source)
                .map(drop)
                .unwrap_err()
                .to_string();
            assert!(error.len() < 400 && error.contains("line 1"), "{}", error.len());
        }
        let source = format!("error('{long}')");
        let failed = mlua::Error::RuntimeError(format!("script:1: {long}"));
        let error = of_run("a", &source, &Budget::new(), &failed).to_string();
        assert!(error.len() < 400 && error.contains("ää"), "{}", error.len());
    }

    #[test]
    fn the_line_is_one_of_the_script() {
        let failed = |message: &str| line_of(&mlua::Error::RuntimeError(message.into()), "a\nb\nc");
        assert_eq!(
            failed("x\nstack traceback:\n\t[C]: in ?\n\tscript:2: in main"),
            Some(2)
        );
        assert_eq!(failed("script:3: x"), None);
        assert_eq!(failed("x\nstack traceback:\n\tscript:4711: in main"), None);
    }
}
