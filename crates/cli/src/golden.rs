//! The forms of golden cases of commands. `UPDATE_GOLDEN=1` rewrites the expected output.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Parser as _;

use crate::command::{Cli, Command};
use entourage_golden::compare;

/// A folder of `testdata`.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

/// Runs the `.txt` files of a folder, at least the given number of them: each is a command line after `#`, and its output.
pub(crate) fn command_lines(name: &str, at_least: usize, printed: impl Fn(Command) -> String) {
    let mut files = entries(name);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    compare(name, at_least, files, |file| {
        let text = fs::read_to_string(file).unwrap();
        let line = text.lines().next().unwrap_or_default().to_owned();
        let words = line.trim_start_matches("# ").split_whitespace();
        let command = Cli::try_parse_from(words)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
            .command;
        let got = format!("{line}\n{}", printed(command));
        (file.to_owned(), got)
    });
}

/// Runs the folders in a folder, at least the given number of them: the file `want` of each is the expected result.
pub(crate) fn folders(name: &str, want: &str, at_least: usize, outcome: impl Fn(&Path) -> String) {
    compare(name, at_least, entries(name), |case| {
        (case.join(want), outcome(case))
    });
}

fn entries(name: &str) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    all
}
