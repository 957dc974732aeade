//! The one runner of golden cases: a file for each case, with the wanted result last in it. `UPDATE_GOLDEN=1` writes that
//! anew.
//!
//! For tests: what is wrong with a case is told by a panic.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read fails its test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Runs the cases of a folder of `testdata`, of which there are so many at least. `outcome` says what comes of a case, as
/// the text from `want:` on.
pub fn run<C: DeserializeOwned>(folder: &str, at_least: usize, outcome: impl Fn(&C) -> String) {
    let files = files(folder);
    assert!(files.len() >= at_least, "{folder} holds {} cases", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let got = outcome(&read(&file));
        let (given, want) = text.split_once("\nwant:").unwrap_or((text.trim_end(), ""));
        let want = format!("want:{want}");
        if want == got {
            continue;
        }
        if is_updating() {
            fs::write(&file, format!("{given}\n{got}")).unwrap();
        } else {
            wrong.push(format!("--- {}\n{want}+++ got\n{got}", file.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE_GOLDEN=1 accepts what came out.",
        wrong.join("\n")
    );
}

/// The files of a folder of `testdata`, in order.
pub fn files(folder: &str) -> Vec<PathBuf> {
    // Cargo runs the tests of a package in its folder.
    let folder = Path::new("testdata").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
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

/// What is wanted, where it is a value.
pub fn wanted(value: &Value) -> String {
    serde_saphyr::to_string(&json!({ "want": value })).unwrap()
}

/// The one switch.
#[must_use]
pub fn is_updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}
