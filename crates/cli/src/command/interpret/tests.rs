//! Golden cases: command lines over files, and their output.

use futures::FutureExt as _;

use super::run;
use crate::{
    command::Command,
    golden::{command_lines, folder},
};

mod hooked;

#[test]
fn every_command_line_prints_what_is_written_after_it() {
    command_lines("interpret", 8, |command| {
        let Command::Interpret(mut args) = command else {
            panic!("not this command")
        };
        let here = |path: &mut std::path::PathBuf| *path = folder("interpret").join(&*path);
        args.filename.iter_mut().for_each(here);
        for path in [
            &mut args.desired_file,
            &mut args.observed_file,
            &mut args.status_file,
        ] {
            path.iter_mut().for_each(here);
        }
        // No command line of these calls a webhook.
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let ended = match run(&args, &mut out, &mut notes).now_or_never().expect("no call") {
            Ok(code) => format!("{code:?}\n"),
            Err(error) => format!("Error: {error:#}\n"),
        };
        out.append(&mut notes);
        let printed = String::from_utf8(out).unwrap() + &ended;
        printed.replace(&format!("{}/", folder("interpret").display()), "")
    });
}
