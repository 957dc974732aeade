//! The manners of the binary, command by command: help, errors of usage, closed pipes, and no colours that nobody asked for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    io::Read as _,
    process::{Command, Output, Stdio},
};

use entourage::command::help;

/// The exit code of a process whose reader is gone, as for kubectl.
const OUTPUT_CLOSED: i32 = 141;

/// The words of every command.
fn commands() -> Vec<Vec<String>> {
    fn below(command: &clap::Command, above: &[String], found: &mut Vec<Vec<String>>) {
        for each in command.get_subcommands() {
            let words = [above, &[each.get_name().to_owned()]].concat();
            below(each, &words, found);
            found.push(words);
        }
    }
    let mut found = Vec::new();
    below(&help::command(), &[], &mut found);
    assert!(found.len() > 30, "{}", found.len());
    found
}

fn entourage(words: &[String], more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entourage"));
    command.args(words).args(more).env("KUBECONFIG", "/nonexistent");
    command
}

fn run(words: &[String], more: &[&str]) -> Output {
    entourage(words, more).stdin(Stdio::null()).output().unwrap()
}

/// The exit code and standard error if standard output is closed before anything is written.
fn with_closed_output(mut command: Command) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let done = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    (
        done.status.code(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

#[test]
fn every_command_has_help_that_ends_well_and_quietly() {
    for words in commands() {
        let done = run(&words, &["--help"]);
        let help = String::from_utf8(done.stdout).unwrap();
        assert_eq!(done.status.code(), Some(0), "{words:?}");
        assert!(
            help.contains("Usage: entourage") && help.contains("Examples:"),
            "{words:?}: {help}"
        );
        assert!(done.stderr.is_empty() && !help.contains('\u{1b}'), "{words:?}");
        let closed = with_closed_output(entourage(&words, &["--help"]));
        assert_eq!(closed, (Some(OUTPUT_CLOSED), String::new()), "{words:?}");
    }
}

#[test]
fn an_error_of_usage_has_the_exit_code_2() {
    for words in commands() {
        let mut command = entourage(&words, &["--no-such-flag"]);
        let done = command
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{words:?}: {error}");
        assert!(
            error.contains("--no-such-flag") && !error.contains('\u{1b}'),
            "{words:?}: {error}"
        );
        assert!(done.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn a_list_whose_reader_is_gone_ends_quietly() {
    for (words, more) in [
        ("crds", [].as_slice()),
        ("completion", &["bash"]),
        ("version", &["-o", "json"]),
    ] {
        let closed = with_closed_output(entourage(&[words.to_owned()], more));
        assert_eq!(closed, (Some(OUTPUT_CLOSED), String::new()), "{words}");
    }
    // A reader that leaves in the middle, as `head` does.
    let mut process = entourage(&["crds".to_owned()], &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    process.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let done = process.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(OUTPUT_CLOSED));
    assert!(
        done.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn an_error_names_its_cause_and_a_remedy() {
    let done = run(&["get".to_owned()], &["bindings"]);
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{error}");
    assert!(error.starts_with("error: cannot read the kubeconfig"), "{error}");
    assert!(
        error.contains("--kubeconfig") && error.lines().count() == 1,
        "{error}"
    );
}
