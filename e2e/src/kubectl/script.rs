//! A script: commands in order, with what they read and when they run.
//!
//! ```text
//! # A comment.
//! [label] kubectl apply -f -
//! | a line of its standard input
//! @clients 1.24..
//! @until Running
//! [waited] kubectl get pods
//! @beside 3
//! [watched] kubectl get pods -w
//! [deleted] kubectl delete pod x
//! @end watched
//! ```
//!
//! `@clients` limits a command to releases of kubectl (`1.24..`, `..1.23`); `@until TEXT` repeats it until its stdout has the
//! text; `@beside N` runs it beside the following ones, once it printed a first line, until `@end` waits for its N lines
//! of stdout and ends it.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context as _, Result, bail, ensure};

/// The commands of a theme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The theme: the name of its file, and of its namespace.
    pub name: String,
    pub(super) steps: Vec<Step>,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Unique in the script.
    pub(super) label: String,
    /// For a shell.
    pub(super) command: String,
    /// Its standard input.
    pub(super) stdin: String,
    /// The first and the last minor release of kubectl that it is for.
    pub(super) clients: (u32, u32),
    pub(super) mode: Mode,
}

/// The way to run a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Once.
    Once,
    /// Until its stdout has the text.
    Until(String),
    /// Beside others until it printed so many lines.
    Beside(usize),
    /// The end of the command of that label.
    End,
}

impl Script {
    /// Reads `<dir>/<name>.txt`.
    ///
    /// # Errors
    /// When the file cannot be read or is no script; names the line.
    pub fn load(dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(format!("{name}.txt"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(name, &text).with_context(|| path.display().to_string())
    }

    /// Reads the text of a script.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut script = Self {
            name: name.to_owned(),
            steps: Vec::new(),
        };
        let mut next = Next::default();
        for (number, line) in text.lines().enumerate() {
            script
                .read(line, &mut next)
                .with_context(|| format!("line {}", number + 1))?;
        }
        ensure!(next == Next::default(), "a directive stands before no command");
        let mut labels = BTreeSet::new();
        for step in script.steps.iter().filter(|step| step.mode != Mode::End) {
            ensure!(labels.insert(&step.label), "[{}] stands twice", step.label);
        }
        Ok(script)
    }

    /// The commands for a minor release of kubectl.
    pub(super) fn steps_for(&self, minor: u32) -> impl Iterator<Item = &Step> {
        let fits = move |step: &&Step| (step.clients.0..=step.clients.1).contains(&minor);
        self.steps.iter().filter(fits)
    }

    fn read(&mut self, line: &str, next: &mut Next) -> Result<()> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(input) = line.strip_prefix('|') {
            let step = self.steps.last_mut().context("input before any command")?;
            step.stdin.push_str(input.strip_prefix(' ').unwrap_or(input));
            step.stdin.push('\n');
            return Ok(());
        }
        if let Some(directive) = line.strip_prefix('@') {
            let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
            match word {
                "clients" => next.clients = Some(range(rest)?),
                "until" => next.mode = Some(Mode::Until(rest.to_owned())),
                "beside" => next.mode = Some(Mode::Beside(rest.parse()?)),
                "end" => {
                    let begun = self.steps.iter().find(|step| step.label == rest);
                    let begun = begun.with_context(|| format!("[{rest}] has not begun"))?;
                    ensure!(matches!(begun.mode, Mode::Beside(_)), "[{rest}] ended by itself");
                    let end = Step {
                        mode: Mode::End,
                        ..begun.clone()
                    };
                    self.steps.push(end);
                }
                _ => bail!("no directive is called @{word}"),
            }
            return Ok(());
        }
        let rest = line
            .strip_prefix('[')
            .context("neither a command nor a directive")?;
        let (label, command) = rest.split_once("] ").context("a label without a command")?;
        let next = std::mem::take(next);
        self.steps.push(Step {
            label: label.to_owned(),
            command: command.trim_start().to_owned(),
            stdin: String::new(),
            clients: next.clients.unwrap_or((0, u32::MAX)),
            mode: next.mode.unwrap_or(Mode::Once),
        });
        Ok(())
    }
}

/// The settings of directives for the next command.
#[derive(Default, PartialEq, Eq)]
struct Next {
    clients: Option<(u32, u32)>,
    mode: Option<Mode>,
}

fn range(text: &str) -> Result<(u32, u32)> {
    let (from, to) = text.split_once("..").context("clients are FROM..TO")?;
    let minor = |text: &str, none: u32| match text.strip_prefix("1.") {
        Some(minor) => minor.parse().context("a minor release"),
        None if text.is_empty() => Ok(none),
        None => bail!("{text:?} is no release"),
    };
    Ok((minor(from, 0)?, minor(to, u32::MAX)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Why.\n[a] kubectl apply -f -\n| kind: X\n|   b: c\n\n@clients 1.24..\n@until Running\n\
                        [b]   kubectl get x\n@beside 3\n[c] kubectl get x -w\n@end c\n";

    #[test]
    fn a_script_is_commands_with_input_and_directives() {
        let script = Script::parse("x", TEXT).unwrap();
        let [a, b, c, end] = script.steps.as_slice() else {
            panic!("{script:?}")
        };
        assert_eq!(
            (a.command.as_str(), a.stdin.as_str()),
            ("kubectl apply -f -", "kind: X\n  b: c\n")
        );
        assert_eq!(
            (b.clients, &b.mode),
            ((24, u32::MAX), &Mode::Until("Running".to_owned()))
        );
        assert_eq!(b.command, "kubectl get x");
        assert_eq!(
            (&c.mode, &end.mode, c.clients),
            (&Mode::Beside(3), &Mode::End, (0, u32::MAX))
        );
        assert_eq!(script.steps_for(20).count(), 3);
    }

    #[test]
    fn what_is_no_script_is_refused() {
        for text in [
            "kubectl get x\n",
            "[a]\n",
            "| input\n",
            "@never\n",
            "@end a\n",
            "[a] x\n@end a\n",
            "[a] x\n[a] y\n",
            "@until x\n",
            "@clients 2\n[a] x\n",
        ] {
            assert!(Script::parse("x", text).is_err(), "{text:?}");
        }
    }
}
