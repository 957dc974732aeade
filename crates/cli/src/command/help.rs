//! The command line as a whole: the commands with examples, and the flags that only some of them have.

use std::ffi::OsString;

use clap::{
    Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _,
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};

use super::Cli;
use crate::suggest::nearest;

mod examples;
#[cfg(feature = "embedded")]
#[cfg(test)]
mod pages;
#[cfg(feature = "commands")]
#[cfg(test)]
mod tests;

use examples::EXAMPLES;

/// Commands that act by themselves, and never as somebody else.
const SERVERS: [&str; 4] = ["agent", "controllers", "proxy", "webhook"];

/// The flags about the caller.
const CALLER: [&str; 4] = ["as", "as_group", "as_uid", "request_timeout"];

/// Commands whose exit code 2 is an answer: a pipeline must not take a misspelt flag for it.
const ANSWERS_BY_2: [&str; 2] = ["plan", "preflight"];

/// Reads a command line.
///
/// # Errors
/// The help, the version, or an error of usage.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let line: Vec<OsString> = line.into_iter().collect();
    let matches = command.try_get_matches_from_mut(&line);
    let matches = matches.map_err(|error| suggesting(error, &command, &line))?;
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

/// The exit code of the help, the version, or an error of usage: 0 or 2, as clap has it, or 1 of the commands whose exit code 2 is an answer.
#[must_use]
pub fn exit_code(answer: &clap::Error, line: &[OsString]) -> u8 {
    let code = u8::try_from(answer.exit_code()).unwrap_or(1);
    let lenient = Cli::command().ignore_errors(true);
    let found = lenient.try_get_matches_from(line).ok();
    let named = found.as_ref().and_then(ArgMatches::subcommand_name);
    let answers_by_2 = match named {
        Some(name) => ANSWERS_BY_2.contains(&name),
        // Something before the command is wrong.
        None => line
            .iter()
            .any(|word| ANSWERS_BY_2.iter().any(|name| word == name)),
    };
    if code == 2 && answers_by_2 { 1 } else { code }
}

/// The error with the word that was meant. By itself, clap knows no aliases, suggests nothing for `wyh`, and `tree` for `gte`.
fn suggesting(mut error: clap::Error, command: &Command, line: &[OsString]) -> clap::Error {
    let (wrong, suggested) = match error.kind() {
        ErrorKind::InvalidValue => (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(wrong) else {
        return error;
    };
    let words = line.iter().skip(1);
    let named = words.fold(command, |above, word| {
        above.find_subcommand(word).unwrap_or(above)
    });
    let names: Vec<String> = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) => values(named, name),
        _ => named
            .get_subcommands()
            .filter(|each| !each.is_hide_set())
            .map(|each| each.get_name().to_owned())
            .collect(),
    };
    if let Some(near) = nearest(word, names.iter().map(String::as_str)) {
        let near = ContextValue::String(near.to_owned());
        error.insert(suggested, near);
    }
    error
}

/// The words, aliases among them, that an argument takes, which errors call by this name.
fn values(command: &Command, name: &str) -> Vec<String> {
    let args = command.get_arguments().filter(|arg| arg.to_string() == name);
    let values = args.flat_map(Arg::get_possible_values);
    let mut all = Vec::new();
    for value in values.filter(|value| !value.is_hide_set()) {
        all.extend(value.get_name_and_aliases().map(str::to_owned));
    }
    all
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
