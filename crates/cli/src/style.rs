//! Colours: on a terminal, if they are wanted.

use std::{
    ffi::OsString,
    io::{IsTerminal as _, stderr, stdout},
};

/// The decoration of text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    colours: bool,
}

impl Style {
    /// Colours when standard output is a terminal and they are wanted.
    #[must_use]
    pub fn of_stdout() -> Self {
        Self {
            colours: are_wanted(stdout().is_terminal(), |name| std::env::var_os(name)),
        }
    }

    /// As [`Self::of_stdout`], of standard error.
    #[must_use]
    pub fn of_stderr() -> Self {
        Self {
            colours: are_wanted(stderr().is_terminal(), |name| std::env::var_os(name)),
        }
    }

    /// True if there are colours.
    #[must_use]
    pub fn has_colours(self) -> bool {
        self.colours
    }

    /// Bold.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Less bright.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Green.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Yellow.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Red.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// A cell of a table: the words for states have colours.
    #[must_use]
    pub fn state(self, word: &str, padded: &str) -> String {
        match word {
            "True" | "Applied" | "Healthy" | "Ready" | "present" => self.good(padded),
            "False" | "Conflict" | "Override" | "InterpretError" | "Refused" | "NotApplied" | "Unhealthy"
            | "Contended" | "NotAllowed" | "DependencyMissing" | "kept away" => self.bad(padded),
            "Unknown" | "Pending" | "Suspended" | "Leaving" | "Copied" | "Unaccounted" | "unknown"
            | "pending" | "leaving" => self.warn(padded),
            _ => padded.to_owned(),
        }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// `NO_COLOR`, `CLICOLOR=0` and `TERM=dumb` turn colours off; nothing turns them on where there is no terminal.
fn are_wanted(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_off = variable("CLICOLOR").is_some_and(|value| value == "0");
    let is_dumb = variable("TERM").is_some_and(|value| value == "dumb");
    is_terminal && !is_set && !is_off && !is_dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        for (is_terminal, name, value, wanted) in [
            (true, "TERM", "xterm-256color", true),
            (false, "TERM", "xterm-256color", false),
            (true, "NO_COLOR", "1", false),
            (true, "NO_COLOR", "", true),
            (true, "CLICOLOR", "0", false),
            (true, "CLICOLOR", "1", true),
            (true, "TERM", "dumb", false),
            (false, "CLICOLOR_FORCE", "1", false),
        ] {
            let variable = |asked: &str| (asked == name).then(|| OsString::from(value));
            assert_eq!(are_wanted(is_terminal, variable), wanted, "{name}={value}");
        }
        assert_eq!(Style::default().state("Applied", "Applied "), "Applied ");
        let style = Style { colours: true };
        assert_eq!(style.state("Applied", "Applied "), "\u{1b}[32mApplied \u{1b}[0m");
        assert_eq!(style.state("web", "web"), "web");
    }
}
