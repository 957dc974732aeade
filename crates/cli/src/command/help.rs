//! The command line as a whole: the commands with examples, and the flags that only some of them have.

use std::ffi::OsString;

use clap::{
    ArgMatches, Command, CommandFactory as _, FromArgMatches as _, error::ErrorKind, parser::ValueSource,
};

use super::Cli;

mod examples;
#[cfg(test)]
mod tests;

use examples::EXAMPLES;

/// Commands that act by themselves, and never as somebody else.
const SERVERS: [&str; 4] = ["agent", "controllers", "proxy", "webhook"];

/// The flags about the caller.
const CALLER: [&str; 4] = ["as", "as_group", "as_uid", "request_timeout"];

/// Reads a command line.
///
/// # Errors
/// The help, the version, or an error of usage.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(line)?;
    let (leaf, flags) = leaf(&command, &matches);
    let is_given = |flag: &&&str| flags.value_source(flag) == Some(ValueSource::CommandLine);
    if let Some(flag) = CALLER.iter().find(is_given).filter(|_| !has_caller(leaf)) {
        let text = format!(
            "--{} has no effect on `entourage {}`: it is for commands that ask a hub for you",
            flag.replace('_', "-"),
            leaf.get_name()
        );
        return Err(command.error(ErrorKind::ArgumentConflict, text));
    }
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The commands, with examples in their help.
#[must_use]
pub fn command() -> Command {
    let mut command = Cli::command();
    let bare = command.clone();
    for each in bare.get_subcommands() {
        command = command.mut_subcommand(each.get_name(), |each| with_examples(each, ""));
    }
    command
}

fn with_examples(command: Command, above: &str) -> Command {
    let path = format!("{above}{}", command.get_name());
    let mut command = match help_of(&path) {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    let bare = command.clone();
    for each in bare.get_subcommands() {
        command = command.mut_subcommand(each.get_name(), |each| with_examples(each, &format!("{path} ")));
    }
    command
}

fn help_of(path: &str) -> Option<String> {
    let (_, examples) = EXAMPLES.iter().find(|(of, _)| *of == path)?;
    let lines = examples
        .iter()
        .map(|(words, line)| format!("  # {words}\n  {line}"));
    Some(format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n\n")))
}

/// The command that the line names, and its flags.
fn leaf<'a>(command: &'a Command, matches: &'a ArgMatches) -> (&'a Command, &'a ArgMatches) {
    match matches.subcommand() {
        Some((name, below)) => match command.find_subcommand(name) {
            Some(command) => leaf(command, below),
            None => (command, matches),
        },
        None => (command, matches),
    }
}

fn has_caller(command: &Command) -> bool {
    let has_hub = command.get_arguments().any(|arg| arg.get_id() == "kubeconfig");
    has_hub && !SERVERS.contains(&command.get_name())
}
