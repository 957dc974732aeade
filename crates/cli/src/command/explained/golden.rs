//! The golden cases of `entourage why`, `impact` and `tree`: files in `testdata/explained`, each a command line after `#`, and its output for
//! the manifests beside it. `UPDATE_GOLDEN=1` rewrites the output.

use anyhow::Result;

use super::{LookArgs, of_files};
use crate::{
    command::{Command, answer::ended, impact, tree, why},
    golden,
};

#[test]
fn every_command_line_comes_out_as_its_file_says() {
    golden::command_lines("explained", 8, |command| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let done = answered(command, &mut out, &mut err);
        let code = match &done {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(_) => 2,
        };
        ended(done, &mut err).unwrap();
        let text = String::from_utf8([out, err].concat()).unwrap();
        format!("{text}exit code {code}\n")
    });
}

fn answered(command: Command, out: &mut Vec<u8>, err: &mut Vec<u8>) -> Result<bool> {
    match command {
        Command::Explain(mut args) => {
            beside(&mut args.look);
            why::answered(&args, &of_files(&args.look)?, out, err)
        }
        Command::Impact(mut args) => {
            beside(&mut args.look);
            impact::answered(&args, &of_files(&args.look)?, out, err)
        }
        Command::Tree(mut args) => {
            beside(&mut args.look);
            tree::answered(&args, &of_files(&args.look)?, out, err)
        }
        other => panic!("explains nothing: {other:?}"),
    }
}

/// The files are those in the folder of the cases.
fn beside(args: &mut LookArgs) {
    for path in &mut args.files.filename {
        *path = golden::folder("explained").join(&*path);
    }
}
