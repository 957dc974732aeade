//! The golden cases of `entourage plan`: folders in `testdata/plan`, each with `flags`, its files in `files`, and what comes
//! out in `want.txt`. `UPDATE_GOLDEN=1` rewrites `want.txt`.

use std::fs;

use clap::Parser as _;

use super::{PlanArgs, alone, finish};
use crate::{
    command::{Cli, Command},
    golden,
};

#[test]
fn every_case_comes_out_as_its_folder_says() {
    golden::folders("plan", "want.txt", 8, |case| {
        let flags = fs::read_to_string(case.join("flags")).unwrap_or_default();
        let files = case.join("files");
        let line = ["entourage", "plan", "-f", files.to_str().unwrap()];
        let Command::Plan(args) = Cli::try_parse_from(line.into_iter().chain(flags.split_whitespace()))
            .unwrap()
            .command
        else {
            panic!("{}: not a plan", case.display());
        };
        printed(&args).replace(files.to_str().unwrap(), "files")
    });
}

fn printed(args: &PlanArgs) -> String {
    let mut out = Vec::new();
    let ended = args
        .files
        .read()
        .and_then(|manifests| alone(args, &manifests))
        .and_then(|simulated| finish(args, &simulated, &mut out));
    let mut text = String::from_utf8(out).unwrap();
    match ended {
        Ok(code) if code == std::process::ExitCode::SUCCESS => {}
        Ok(_) => text.push_str("exit code 2\n"),
        Err(error) => text.push_str(&format!("error: {error:#}\n")),
    }
    text
}
