//! The output of commands, as a file.
//!
//! ```text
//! [label] kubectl get configmap x
//! | a line of stdout
//! ! a line of stderr
//! ? 1
//! --- real
//! | what that lane prints instead
//! ```

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use anyhow::{Context as _, Result, bail};

/// The first line of a golden file.
const HEAD: &str = "# Written by UPDATE_GOLDEN=1 cargo test -p entourage-e2e --test e2e kubectl\n";

/// Everything a command printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// Its output, normalised.
    pub stdout: String,
    /// Its messages, normalised.
    pub stderr: String,
    /// Its exit code.
    pub code: i32,
}

/// The transcripts of a script, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Golden {
    pub(super) steps: Vec<Expected>,
}

/// The expected result of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) label: String,
    pub(super) command: String,
    /// On both lanes, if no other is given for one.
    pub(super) both: Transcript,
    /// On the lane of that name.
    pub(super) lanes: BTreeMap<String, Transcript>,
}

impl Golden {
    /// Reads a file; one that is not there is empty.
    ///
    /// # Errors
    /// When it cannot be read or is no golden.
    pub fn load(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    pub(super) fn step(&self, label: &str) -> Option<&Expected> {
        self.steps.iter().find(|step| step.label == label)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut golden = Self::default();
        let mut lane = String::new();
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                let (label, command) = rest.split_once("] ").unwrap_or((rest, ""));
                lane.clear();
                golden.steps.push(Expected {
                    label: label.to_owned(),
                    command: command.to_owned(),
                    ..Expected::default()
                });
                continue;
            }
            let step = golden.steps.last_mut().context("output of no command")?;
            if let Some(name) = line.strip_prefix("--- ") {
                lane = name.to_owned();
                step.lanes.insert(lane.clone(), Transcript::default());
                continue;
            }
            let transcript = if lane.is_empty() {
                &mut step.both
            } else {
                step.lanes.entry(lane.clone()).or_default()
            };
            let (mark, rest) = line.split_at(1);
            let rest = rest.strip_prefix(' ').unwrap_or(rest);
            match mark {
                "|" => transcript.stdout.push_str(&format!("{rest}\n")),
                "!" => transcript.stderr.push_str(&format!("{rest}\n")),
                "?" => transcript.code = rest.parse()?,
                _ => bail!("line {}: {line:?}", number + 1),
            }
        }
        Ok(golden)
    }

    pub(super) fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        for step in &self.steps {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n[{}] {}\n{}", step.label, step.command, step.both);
            for (lane, transcript) in &step.lanes {
                let _ = write!(text, "--- {lane}\n{transcript}");
            }
        }
        text
    }
}

impl std::fmt::Display for Transcript {
    /// As it stands in a golden.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (mark, text) in [("|", &self.stdout), ("!", &self.stderr)] {
            for line in text.lines() {
                let space = if line.is_empty() { "" } else { " " };
                writeln!(f, "{mark}{space}{line}")?;
            }
        }
        if self.code != 0 {
            writeln!(f, "? {}", self.code)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_golden_is_read_as_it_is_written() {
        let of = |stdout: &str, stderr: &str, code| Transcript {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            code,
        };
        let golden = Golden {
            steps: vec![
                Expected {
                    label: "a".to_owned(),
                    command: "kubectl get x -o yaml".to_owned(),
                    both: of("a:\n  b: c\n\n| d\n", "", 0),
                    lanes: BTreeMap::from([("real".to_owned(), of("", "no\n", 1))]),
                },
                Expected {
                    label: "b".to_owned(),
                    command: "kubectl".to_owned(),
                    ..Expected::default()
                },
            ],
        };
        assert_eq!(Golden::parse(&golden.render()).unwrap(), golden);
        assert_eq!(golden.step("a").unwrap().lanes["real"].code, 1);
    }
}
