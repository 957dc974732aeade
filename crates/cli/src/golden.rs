//! The runner of golden cases of commands. `UPDATE_GOLDEN=1` rewrites the expected output.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Parser as _;

use crate::command::{Cli, Command};

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

/// Compares each case's file with its result.
fn compare(name: &str, at_least: usize, cases: Vec<PathBuf>, outcome: impl Fn(&Path) -> (PathBuf, String)) {
    assert!(cases.len() >= at_least, "{name} holds {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let (file, got) = outcome(&case);
        let want = fs::read_to_string(&file).unwrap_or_default();
        if want == got {
            continue;
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, got).unwrap();
        } else {
            wrong.push(format!("--- {}\n{want}+++ got\n{got}", case.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE_GOLDEN=1 accepts what came out.",
        wrong.join("\n")
    );
}
