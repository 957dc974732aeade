//! `cargo xtask <command>`: generated files, fences and the CI pipeline. `cargo xtask help` lists the commands.

mod arrows;
mod ci;
mod crds;
mod events;
mod fences;
mod fields;
mod fields_file;
mod map;
mod names;
#[cfg(test)]
mod packaging;
#[cfg(test)]
mod pages;
mod rbac;
mod sbom;
mod source;
mod tidy;
mod tree;
mod words;

use std::process::ExitCode;

use anyhow::{Result, bail};

/// One command: its name, what may follow it, what it does, and the function.
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<Outcome>,
}

/// The outcome of a command that did not fail.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// All checks passed; the line is a summary.
    Done(String),
    /// A part of the workspace that this command works on is not there (yet), or this machine lacks something.
    /// The pipeline prints it and repeats it at its end: nothing is skipped in silence.
    Lacks(String),
}

const COMMANDS: &[Command] = &[
    Command {
        name: "ci",
        usage: "[--list | --only NAME.. | --from NAME]",
        about: "the whole pipeline, step by step",
        run: ci::run,
    },
    Command {
        name: "fences",
        usage: "[--print]",
        about: "crates and their modules depend on each other as the architecture says",
        run: fences::run,
    },
    Command {
        name: "tidy",
        usage: "",
        about: "what every source file must keep",
        run: tidy::run,
    },
    Command {
        name: "crds",
        usage: "[--check]",
        about: "crds/*.yaml from the types",
        run: crds::run,
    },
    Command {
        name: "rbac",
        usage: "[--check]",
        about: "config/rbac from the table of controllers",
        run: rbac::run,
    },
    Command {
        name: "sbom",
        usage: "[FILE]",
        about: "the software bill of materials of the binary, CycloneDX 1.5",
        run: sbom::run,
    },
    Command {
        name: "events",
        usage: "[--check]",
        about: "docs/reference/events.md from the table of event reasons",
        run: events::run,
    },
    Command {
        name: "map",
        usage: "[--check | --lines]",
        about: "docs/map.md: what each module is about, by floors",
        run: map::run,
    },
    Command {
        name: "fields",
        usage: "[--check] [DIR]",
        about: "the list of upstream's fields that our types are tested against",
        run: fields_file::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            // The chain of causes and no backtrace: what is wrong lies in the checkout, not in this program.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command that the arguments name. Returns the line to end with.
fn dispatch(args: &[String]) -> Result<String> {
    let (name, rest) = match args.split_first() {
        None => return Ok(help()),
        Some((name, _)) if matches!(name.as_str(), "help" | "--help" | "-h") => return Ok(help()),
        Some((name, rest)) => (name.as_str(), rest),
    };
    let Some(command) = COMMANDS.iter().find(|c| c.name == name) else {
        bail!("no command {name:?}\n{}", help());
    };
    Ok(match (command.run)(rest)? {
        Outcome::Done(what) => format!("{name}: {what}"),
        Outcome::Lacks(what) => format!("{name}: LACKS {what}"),
    })
}

fn help() -> String {
    let mut text = String::from("cargo xtask <command>");
    for c in COMMANDS {
        text += &format!("\n  {:<38} {}", format!("{} {}", c.name, c.usage), c.about);
    }
    text
}

/// True if the arguments are nothing but an optional `--check`; anything else is an error naming it.
fn only_check(args: &[String]) -> Result<bool> {
    match args {
        [] => Ok(false),
        [flag] if flag == "--check" => Ok(true),
        other => bail!("only --check is understood here, not {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_command_stands_twice_and_each_says_what_it_does() {
        let names: BTreeSet<_> = COMMANDS.iter().map(|c| c.name).collect();
        assert_eq!(names.len(), COMMANDS.len());
        assert!(
            COMMANDS
                .iter()
                .all(|c| !c.about.is_empty() && help().contains(c.about))
        );
    }

    #[test]
    fn an_unknown_command_is_answered_with_those_that_there_are() {
        let err = dispatch(&["fence".to_owned()]).unwrap_err().to_string();
        assert!(
            err.contains("no command \"fence\"") && err.contains("tidy"),
            "{err}"
        );
    }

    #[test]
    fn an_unknown_flag_is_named() {
        let err = only_check(&["--chek".to_owned()]).unwrap_err().to_string();
        assert!(err.contains("--chek"), "{err}");
    }
}
