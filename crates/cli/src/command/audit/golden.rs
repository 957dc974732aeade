//! The golden cases of `entourage audit`: files in `testdata/audit`, each a command line after `#`, and its output for the manifests
//! beside it. `UPDATE_GOLDEN=1` rewrites the output.

use super::{AuditSubject, answered, of_files};
use crate::{
    command::{Command, answer::ended},
    golden,
    style::Style,
};

/// The values of the Secrets in the manifests, as base64 and as text.
const VALUES: [&str; 2] = ["Y2FuYXJ5", "canary"];

#[test]
fn every_command_line_comes_out_as_its_file_says_and_without_a_value() {
    golden::command_lines("audit", 5, |command| {
        let Command::Audit(args) = command else {
            panic!("audits nothing: {command:?}");
        };
        let AuditSubject::Secrets(mut args) = args.subject;
        for path in &mut args.files.filename {
            *path = golden::folder("audit").join(&*path);
        }
        let audited = of_files(&args).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let done = answered(&args, &audited, Style::default(), &mut out, &mut err);
        let code = match &done {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(_) => 2,
        };
        ended(done, &mut err).unwrap();
        let text = String::from_utf8([out, err].concat()).unwrap();
        for value in VALUES {
            assert!(!text.contains(value), "{text}");
        }
        format!("{}exit code {code}\n", without_times(&text))
    });
}

/// The simulation records the time of its run.
fn without_times(text: &str) -> String {
    let masked = |line: &str| match line.split_once("\"since\": \"") {
        Some((indent, _)) => format!("{indent}\"since\": \"TIME\"\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(masked).collect()
}
