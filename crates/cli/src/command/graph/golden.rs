//! The golden cases of `entourage graph`: files in `testdata/graph`, each a command line after `#`, and what comes out of
//! the manifests beside it. `UPDATE_GOLDEN=1` rewrites what comes out.

use std::{fs, path::Path};

use clap::Parser as _;

use super::{drawn, of_files};
use crate::command::{Cli, Command};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/graph");

#[test]
fn every_command_line_comes_out_as_its_file_says() {
    let mut files: Vec<_> = fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    assert!(files.len() >= 8, "{FOLDER} holds {} cases", files.len());
    let wrong: Vec<String> = files.iter().filter_map(|file| run(file)).collect();
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE_GOLDEN=1 accepts what came out.",
        wrong.join("\n")
    );
}

/// What is wrong with a case.
fn run(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).unwrap();
    let (line, want) = text.split_once('\n').unwrap_or((&text, ""));
    let words = line.trim_start_matches("# ").split_whitespace();
    let Command::Graph(mut args) = Cli::try_parse_from(words).unwrap().command else {
        panic!("{}: not a graph", file.display());
    };
    for path in &mut args.files.filename {
        *path = Path::new(FOLDER).join(&*path);
    }
    let got = match of_files(&args).and_then(|drawing| drawn(&args, drawing)) {
        Ok(text) => text,
        Err(error) => format!("error: {error:#}\n"),
    };
    if want == got {
        return None;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(file, format!("{line}\n{got}")).unwrap();
        return None;
    }
    Some(format!("--- {}\n{want}+++ got\n{got}", file.display()))
}
