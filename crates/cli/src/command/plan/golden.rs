//! The golden cases of `entourage plan`: folders in `testdata/plan`, each with `flags`, its files in `files`, and what comes
//! out in `want.txt`. `UPDATE_GOLDEN=1` rewrites `want.txt`.

use std::{fs, path::Path};

use clap::Parser as _;

use super::{PlanArgs, alone, finish};
use crate::{
    command::{Cli, Command},
    manifests,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/plan");

#[test]
fn every_case_comes_out_as_its_folder_says() {
    let mut cases: Vec<_> = fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() >= 8, "{FOLDER} holds {} cases", cases.len());
    let wrong: Vec<String> = cases.iter().filter_map(|case| run(case)).collect();
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE_GOLDEN=1 accepts what came out.",
        wrong.join("\n")
    );
}

/// What is wrong with a case.
fn run(case: &Path) -> Option<String> {
    let flags = fs::read_to_string(case.join("flags")).unwrap_or_default();
    let files = case.join("files");
    let line = ["entourage", "plan", "-f", files.to_str().unwrap()];
    let Command::Plan(args) = Cli::try_parse_from(line.into_iter().chain(flags.split_whitespace()))
        .unwrap()
        .command
    else {
        panic!("{}: not a plan", case.display());
    };
    let got = printed(&args).replace(files.to_str().unwrap(), "files");
    let want = fs::read_to_string(case.join("want.txt")).unwrap_or_default();
    if want == got {
        return None;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(case.join("want.txt"), got).unwrap();
        return None;
    }
    Some(format!("--- {}\n{want}+++ got\n{got}", case.display()))
}

fn printed(args: &PlanArgs) -> String {
    let mut out = Vec::new();
    let ended = manifests::read_below(&args.files.filename, args.files.recursive)
        .and_then(|manifests| alone(args, &manifests))
        .and_then(|rehearsed| finish(args, &rehearsed, &mut out));
    let mut text = String::from_utf8(out).unwrap();
    match ended {
        Ok(code) if code == std::process::ExitCode::SUCCESS => {}
        Ok(_) => text.push_str("exit code 2\n"),
        Err(error) => text.push_str(&format!("error: {error:#}\n")),
    }
    text
}
