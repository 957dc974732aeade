//! The manners of the binary, command by command: help, errors of usage and their exit codes, closed pipes, colours, and the flags of lists.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    fs::File,
    io::Read as _,
    process::{Command, Output, Stdio},
};

use entourage::command::help;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

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

/// Commands whose exit code 2 is an answer.
const ANSWERS_BY_2: [&str; 2] = ["plan", "preflight"];

#[test]
fn an_error_of_usage_has_the_exit_code_2_where_that_is_no_answer() {
    for words in commands() {
        let done = run(&words, &["--no-such-flag"]);
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        let code = if ANSWERS_BY_2.contains(&words[0].as_str()) {
            1
        } else {
            2
        };
        assert_eq!(done.status.code(), Some(code), "{words:?}: {error}");
        assert!(
            error.contains("--no-such-flag") && !error.contains('\u{1b}'),
            "{words:?}: {error}"
        );
        assert!(done.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn a_pipeline_can_tell_a_misspelt_flag_from_an_answer() {
    for (line, code) in [
        ("plan --exit-cod -f a.yaml", 1),
        ("plan -o svg", 1),
        ("plan -k a -f b", 1),
        ("--as jane plan --no-such-flag", 1),
        ("--no-such-flag plan", 1),
        ("preflight node", 1),
        ("preflight --store-quota much", 1),
        ("plan", 1),
        ("plan --help", 0),
        ("help plan", 0),
        ("get plan", 2),
        ("get bindings plan --no-such-flag", 2),
        ("--as plan get --no-such-flag", 2),
        ("plna", 2),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let done = run(&[], &words);
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(code), "{line}: {error}");
    }
}

/// The output of a command whose output is a terminal.
fn on_a_terminal(line: &str, environment: &[(&str, &str)]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let other = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = entourage(&[], &words);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command
        .env("TERM", "xterm-256color")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(other.try_clone().unwrap())
        .stderr(other);
    let mut process = command.spawn().unwrap();
    // Its ends of the terminal that are here: reading ends when the last one is closed.
    drop(command);
    let mut printed = Vec::new();
    let mut terminal = File::from(terminal);
    let mut part = [0; 4096];
    // Linux says EIO, and not 0, when the other end is closed.
    while let Ok(count @ 1..) = terminal.read(&mut part) {
        printed.extend_from_slice(&part[..count]);
    }
    process.wait().unwrap();
    String::from_utf8_lossy(&printed).into_owned()
}

#[test]
fn a_terminal_has_colours_unless_they_are_turned_off() {
    // The words for states have colours; help and errors have some if another crate of the build has clap make them.
    for (line, part, must_have) in [
        (
            "audit secrets -A -f testdata/audit/shop.yaml",
            "vault/license",
            true,
        ),
        ("get --help", "Examples:", false),
        ("get --no-such-flag", "--no-such-flag", false),
        ("get bindings", "cannot read the kubeconfig", false),
    ] {
        for (environment, are_on) in [
            (&[][..], true),
            (&[("NO_COLOR", "1")], false),
            (&[("CLICOLOR", "0")], false),
            (&[("TERM", "dumb")], false),
        ] {
            let printed = on_a_terminal(line, environment);
            assert!(printed.contains(part), "{line} {environment:?}: {printed}");
            let has_colours = printed.contains('\u{1b}');
            assert!(are_on || !has_colours, "{line} {environment:?}: {printed}");
            assert!(
                has_colours || !(are_on && must_have),
                "{line} {environment:?}: {printed}"
            );
        }
    }
}

/// The flags of lists.
const OF_LISTS: [&str; 7] = ["-n", "-A", "-l", "--field-selector", "-C", "--no-headers", "-w"];

/// The output formats of a command, if it has `-o` with some.
fn formats(command: &clap::Command) -> Vec<String> {
    let output = command.get_arguments().find(|arg| arg.get_id() == "output");
    let values = output.map(clap::Arg::get_possible_values).unwrap_or_default();
    values
        .iter()
        .map(|value| value.get_name().trim_end_matches('=').to_owned())
        .collect()
}

/// The rows of a table on a page whose head begins like this: their cells.
fn table<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let rows = page.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_page_says_which_command_has_which_flags_of_lists() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    let every = {
        let root = help::command();
        formats(root.find_subcommand("get").unwrap())
    };
    let rows = table(&page, "| Command | Flags | `-o` |");
    let mut listed = Vec::new();
    for row in &rows {
        let [commands, flags, output] = row.as_slice() else {
            panic!("{row:?}");
        };
        for name in code(commands) {
            let mut command = &help::command();
            for word in name.split(' ') {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("{name}"));
            }
            let has = |flag: &str| {
                command.get_arguments().any(|arg| {
                    let short = arg.get_short().map(|short| format!("-{short}"));
                    let long = arg.get_long().map(|long| format!("--{long}"));
                    [short, long].into_iter().flatten().any(|each| each == flag)
                })
            };
            for flag in OF_LISTS {
                assert_eq!(
                    code(flags).contains(&flag),
                    has(flag),
                    "docs/commands.md, {name}: {flag}"
                );
            }
            assert!(
                code(flags).iter().all(|flag| OF_LISTS.contains(flag)),
                "docs/commands.md: {row:?}"
            );
            let listed_formats: Vec<String> = match *output {
                "every format" => every.clone(),
                some => code(some).into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(listed_formats, formats(command), "docs/commands.md, {name}: -o");
            listed.push(name);
        }
    }
    for words in commands() {
        let mut command = &help::command();
        for word in &words {
            command = command.find_subcommand(word).unwrap();
        }
        let lists = command
            .get_arguments()
            .any(|arg| arg.get_id() == "field_selector")
            || formats(command).iter().any(|format| format == "yaml");
        assert!(
            !lists || listed.contains(&words.join(" ").as_str()),
            "docs/commands.md: add a row on {words:?} to the table of the flags of lists"
        );
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
