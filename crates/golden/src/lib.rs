//! The one runner of golden cases. Usually a case is a file with the wanted result last in it; `UPDATE_GOLDEN=1` writes that
//! anew. Where the result is the given object with changes, the wanted result is [`changes`].
//!
//! For tests: what is wrong with a case is reported by a panic.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read fails its test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod changes;

pub use changes::changes;

/// Runs the cases of a folder of `testdata`, which must have at least so many. `outcome` returns the result of a case, as
/// the text from `want:` on.
pub fn run<C: DeserializeOwned>(folder: &str, at_least: usize, outcome: impl Fn(&C) -> String) {
    compare(folder, at_least, files(folder), |file| {
        let text = fs::read_to_string(file).unwrap();
        let given = text
            .split_once("\nwant:")
            .map_or(text.trim_end(), |(given, _)| given);
        (file.to_owned(), format!("{given}\n{}", outcome(&read(file))))
    });
}

/// Runs cases of any form, at least so many: the result of each is a file and its wanted text.
pub fn compare(
    name: &str,
    at_least: usize,
    cases: Vec<PathBuf>,
    outcome: impl Fn(&Path) -> (PathBuf, String),
) {
    assert!(cases.len() >= at_least, "{name} holds {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let (file, got) = outcome(&case);
        let want = fs::read_to_string(&file).unwrap_or_default();
        if want == got {
            continue;
        }
        if is_updating() {
            fs::write(&file, got).unwrap();
        } else {
            let (want, got) = differing(&want, &got);
            wrong.push(format!("--- {}\n{want}+++ got\n{got}", file.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE_GOLDEN=1 accepts what came out.",
        wrong.join("\n")
    );
}

/// The files of a folder of `testdata` and of the folders in it, in order.
pub fn files(folder: &str) -> Vec<PathBuf> {
    // Cargo runs the tests of a package in its folder.
    let (mut folders, mut files) = (vec![Path::new("testdata").join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() { &mut folders } else { &mut files }.push(path);
        }
    }
    files.sort();
    files
}

/// A case.
pub fn read<C: DeserializeOwned>(file: &Path) -> C {
    let text = fs::read_to_string(file).unwrap();
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_str_with_options(&text, options)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The text of a case whose expected result is a value.
pub fn wanted(value: &Value) -> String {
    serde_saphyr::to_string(&json!({ "want": value })).unwrap()
}

/// The one switch.
#[must_use]
pub fn is_updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Both texts from the first line on in which they differ.
fn differing<'a>(want: &'a str, got: &'a str) -> (&'a str, &'a str) {
    let lines = want.split_inclusive('\n').zip(got.split_inclusive('\n'));
    let same: usize = lines
        .take_while(|(one, other)| one == other)
        .map(|(line, _)| line.len())
        .sum();
    (&want[same..], &got[same..])
}
