//! The progress of a list that takes long, on standard error if that is a terminal. It leaves nothing behind.

use std::{
    io::{IsTerminal as _, Write as _, stderr},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// The time after which a list takes long.
const LONG: Duration = Duration::from_secs(1);

/// True while one is shown: lists that are read at the same time would share the line.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The progress of one list.
#[derive(Debug)]
pub struct Progress {
    words: String,
    begun: Instant,
    count: usize,
    /// The letters on the line.
    shown: usize,
}

impl Progress {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(words: String) -> Self {
        Self {
            words,
            begun: Instant::now(),
            count: 0,
            shown: 0,
        }
    }

    /// Counts the objects of a page; `remaining` is what the server says of the rest.
    pub fn add(&mut self, more: usize, remaining: Option<i64>) {
        self.count += more;
        if self.begun.elapsed() < LONG || !is_wanted() {
            return;
        }
        if self.shown == 0 && TAKEN.swap(true, Ordering::Relaxed) {
            return;
        }
        let line = line(&self.words, self.count, remaining);
        // Whoever closed standard error does not want it.
        let _ = write!(stderr(), "\r{line:<width$}", width = self.shown);
        self.shown = line.chars().count().max(self.shown);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown > 0 {
            let _ = write!(stderr(), "\r{:width$}\r", "", width = self.shown);
            TAKEN.store(false, Ordering::Relaxed);
        }
    }
}

fn is_wanted() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    stderr().is_terminal() && !is_dumb
}

fn line(words: &str, count: usize, remaining: Option<i64>) -> String {
    let all = remaining
        .and_then(|remaining| usize::try_from(remaining).ok())
        .filter(|remaining| *remaining > 0)
        .map_or_else(String::new, |remaining| format!(" of {}", count + remaining));
    format!("{words}: {count}{all}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_named_as_far_as_the_server_says_it() {
        assert_eq!(
            line("reading works", 500, Some(1_500)),
            "reading works: 500 of 2000"
        );
        assert_eq!(line("reading works", 500, None), "reading works: 500");
        assert_eq!(line("reading works", 2_000, Some(0)), "reading works: 2000");
    }
}
