//! Every command of the tree, so that a new one is found by itself.

use std::collections::BTreeSet;

use clap::Command;

use super::{EXAMPLES, command, parse};
use crate::command::{
    completion::{Target, script},
    man::pages,
};

/// The commands below one, with their whole names.
fn all(command: &Command, above: &str, found: &mut Vec<(String, Command)>) {
    for each in command.get_subcommands() {
        let path = format!("{above}{}", each.get_name());
        all(each, &format!("{path} "), found);
        found.push((path, each.clone()));
    }
}

fn commands() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    all(&command(), "", &mut found);
    assert!(found.len() > 30, "{}", found.len());
    found
}

fn parsed(line: &str) -> Result<(), String> {
    let words = line.split_whitespace().map(|word| word.replace('\'', "").into());
    parse(words).map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn the_help_of_every_command_begins_with_a_sentence_and_ends_with_examples() {
    for (path, command) in commands() {
        let help = command.clone().render_long_help().to_string();
        let first = help.lines().next().unwrap_or_default();
        let is_sentence = first.starts_with(char::is_uppercase) && first.split(' ').count() > 2;
        assert!(is_sentence, "{path}: {first}");
        assert!(
            help.contains("\nExamples:\n"),
            "add an example of `entourage {path}` to EXAMPLES (crates/cli/src/command/help/examples.rs)"
        );
    }
}

#[test]
fn every_example_parses_as_the_command_that_it_is_of() {
    let known: BTreeSet<String> = commands().into_iter().map(|(path, _)| path).collect();
    let mut unknown = Vec::new();
    for (path, examples) in EXAMPLES {
        if !known.contains(*path) {
            unknown.push(path);
            continue;
        }
        for (words, line) in *examples {
            let line = line
                .strip_prefix("source <(")
                .and_then(|rest| rest.strip_suffix(')'))
                .unwrap_or(line);
            let line = line.split(" > ").next().unwrap_or_default();
            assert!(line.starts_with("entourage "), "{line}");
            let name = path.split(' ').next().unwrap_or_default();
            assert!(line.split(' ').any(|word| word == name), "{path}: {line}");
            parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(words.starts_with(char::is_uppercase), "{words}");
        }
    }
    assert!(
        unknown.is_empty() || !cfg!(feature = "embedded"),
        "there are no commands {unknown:?}"
    );
}

#[test]
fn a_misspelt_word_of_a_list_is_answered_with_the_one_that_was_meant() {
    for (line, meant) in [
        ("get clustres", "a similar value exists: 'clusters'"),
        ("get rbs", "a similar value exists: 'rb'"),
        (
            "get resourcebidings",
            "a similar value exists: 'resourcebindings'",
        ),
        (
            "get clusterpropagationpolices",
            "a similar value exists: 'clusterpropagationpolicies'",
        ),
        ("get bindings -o jsn", "did you mean \"json\"?"),
        ("why deploy/web -o jsn", "a similar value exists: 'json'"),
        ("graph -o dto", "a similar value exists: 'dot'"),
        ("completion zhs", "a similar value exists: 'zsh'"),
        ("wyh deploy/web", "a similar subcommand exists: 'why'"),
        ("gte bindings", "a similar subcommand exists: 'get'"),
        ("audit secrest", "a similar subcommand exists: 'secrets'"),
        (
            "why deploy/web --namespcae shop",
            "a similar argument exists: '--namespace'",
        ),
    ] {
        let error = parsed(&format!("entourage {line}")).expect_err(line);
        assert!(error.contains(meant), "{line}: {error}");
    }
    for line in ["get pods", "graph -o svg", "frobnicate"] {
        let error = parsed(&format!("entourage {line}")).expect_err(line);
        assert!(!error.contains("similar"), "{line}: {error}");
    }
}

#[test]
fn completion_knows_every_command_in_every_shell() {
    for target in [Target::Bash, Target::Zsh, Target::Fish, Target::Powershell] {
        let script = String::from_utf8(script(target)).unwrap();
        for (path, command) in commands() {
            let name = command.get_name();
            assert!(
                command.is_hide_set() || script.contains(name),
                "{target:?}: {path}"
            );
        }
        assert!(!script.contains('\u{1b}'), "{target:?}");
    }
}

#[test]
fn every_command_that_is_shown_has_a_page() {
    let pages = pages().unwrap();
    for (path, command) in commands() {
        if command.is_hide_set() {
            continue;
        }
        let name = format!("entourage-{}", path.replace(' ', "-"));
        let page = pages.iter().find(|(of, _)| *of == name);
        let (_, page) = page.unwrap_or_else(|| panic!("no page {name}"));
        let page = String::from_utf8_lossy(page);
        assert!(page.contains("Examples:") && page.contains(".SH"), "{name}");
    }
}

#[test]
fn the_caller_is_for_commands_that_ask_a_hub() {
    for (path, command) in commands() {
        let has_hub = command.get_arguments().any(|arg| arg.get_id() == "kubeconfig");
        let has_context = command.get_arguments().any(|arg| arg.get_id() == "context");
        // The bench takes the current context alone.
        assert!(has_hub == has_context || path == "bench", "{path}");
    }
    for line in [
        "entourage get bindings --as jane",
        "entourage --as jane --as-group devs get bindings",
        "entourage token list --request-timeout 5",
    ] {
        parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    for line in [
        "entourage controllers --as jane",
        "entourage --as jane webhook --service a/b",
        "entourage completion bash --request-timeout 5s",
    ] {
        let error = parsed(line).unwrap_err();
        assert!(error.contains("has no effect on"), "{line}: {error}");
    }
}

#[test]
fn what_is_nearly_a_word_is_suggested() {
    for (line, suggested) in [
        ("entourage gett bindings", "get"),
        ("entourage get bindngs", "bindings"),
        ("entourage get bindings --namspace shop", "--namespace"),
        ("entourage get bindings -o jsn", "json"),
    ] {
        let error = parsed(line).unwrap_err();
        assert!(
            error.contains(&format!("'{suggested}'")) || error.contains(&format!("\"{suggested}\"")),
            "{line}: {error}"
        );
    }
}
