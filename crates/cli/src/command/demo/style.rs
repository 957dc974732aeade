//! Colours, if standard output is a terminal and they are wanted.

use std::io::IsTerminal as _;

/// The decoration of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    colours: bool,
}

impl Style {
    /// Colours when standard output is a terminal and `NO_COLOR` is not set.
    pub(super) fn of_stdout() -> Self {
        Self {
            colours: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
