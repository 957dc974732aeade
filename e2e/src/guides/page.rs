//! A page as steps, in the order in which they are read.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// A line of its own that says that the page is run.
const RUN: &str = "<!-- run -->";

/// The languages of blocks of commands. The first one alone is run.
const COMMANDS: &[&str] = &[RUNNABLE, "sh", "bash", "shell"];

/// The language of blocks with `$ ` before each command, and what it prints below.
const RUNNABLE: &str = "console";

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The name of its file, without the extension.
    pub name: String,
    pub(super) steps: Vec<Step>,
    is_run: bool,
    /// No block of the page is run, and the page says why.
    is_left_out: bool,
    /// The blocks of commands that do not say that they are not run.
    commands: Vec<Commands>,
}

/// A block of commands.
#[derive(Clone, Copy, Debug)]
struct Commands {
    line: usize,
    is_runnable: bool,
}

/// A step and the line that it is on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// A file with this name and text.
    File(String, String),
    /// A command for a shell, and what is shown below it.
    Command { command: String, shown: Vec<String> },
    /// The controllers do not reach this member any more.
    Stop(String),
    /// They do again.
    Return(String),
    /// On this member the status of this object is written.
    Report(String, Value),
    /// The controllers are started again, with these of the controllers that are off by default.
    Controllers(Vec<String>),
}

/// A fenced block: the line of its fence, its language, and its lines.
struct Block<'a> {
    line: usize,
    language: &'a str,
    indent: usize,
    lines: Vec<&'a str>,
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// When a comment is no directive, or a block has no end; names the line.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let mut page = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        // The line of a reason that is for the next block.
        let mut reason: Option<usize> = None;
        let mut open: Option<Block<'_>> = None;
        for (at, line) in text.lines().enumerate() {
            let (number, trimmed) = (at + 1, line.trim());
            if let Some(mut block) = open.take() {
                if trimmed == "```" {
                    page.close(&block, reason.take().is_some())?;
                } else {
                    let indent = block.indent.min(line.len() - line.trim_start().len());
                    block.lines.push(&line[indent..]);
                    open = Some(block);
                }
            } else if let Some(language) = trimmed.strip_prefix("```") {
                open = Some(Block {
                    line: number,
                    language,
                    indent: line.len() - line.trim_start().len(),
                    lines: Vec::new(),
                });
            } else if let Some(line) = reason.filter(|_| !trimmed.is_empty()) {
                bail!("line {line}: no block follows this reason");
            } else if trimmed == RUN {
                page.is_run = true;
            } else if let Some(comment) = comment(trimmed) {
                page.note(comment, number, &mut reason)
                    .with_context(|| format!("line {number}"))?;
            }
        }
        if let Some(block) = open {
            bail!("line {}: the block has no end", block.line);
        }
        if let Some(line) = reason {
            bail!("line {line}: no block follows this reason");
        }
        ensure!(
            !(page.is_run && page.is_left_out),
            "line 1: the page is run, and says that it is not"
        );
        Ok(page)
    }

    /// True if the page is to be run.
    #[must_use]
    pub const fn is_run(&self) -> bool {
        self.is_run
    }

    /// The lines of the blocks of commands that nothing runs, and that do not say so.
    pub fn unaccounted(&self) -> impl Iterator<Item = usize> {
        let is_run = |block: &Commands| self.is_run && block.is_runnable;
        let blocks = self.commands.iter().filter(move |block| !is_run(block));
        blocks.filter(|_| !self.is_left_out).map(|block| block.line)
    }

    /// Reads a comment. A reason why the next block is not run is noted in `reason`.
    fn note(&mut self, comment: &str, line: usize, reason: &mut Option<usize>) -> Result<()> {
        if let Some(why) = comment.strip_prefix("not run:") {
            ensure!(!why.trim().is_empty(), "no reason");
            *reason = Some(line);
        } else if let Some(why) = comment.strip_prefix("no block is run:") {
            ensure!(!why.trim().is_empty(), "no reason");
            self.is_left_out = true;
        } else if let Some(directive) = comment.strip_prefix("run: ") {
            let action = directed(directive)?;
            self.steps.push(Step { line, action });
        }
        Ok(())
    }

    fn close(&mut self, block: &Block<'_>, is_left_out: bool) -> Result<()> {
        if is_left_out {
            return Ok(());
        }
        match block.language {
            language if COMMANDS.contains(&language) => {
                let is_runnable = language == RUNNABLE;
                self.commands.push(Commands {
                    line: block.line,
                    is_runnable,
                });
                if is_runnable {
                    self.steps.extend(commands(block)?);
                }
            }
            "yaml" => {
                let name = block.lines.first().and_then(|line| line.strip_prefix("# "));
                let name = name.filter(|name| name.ends_with(".yaml") && !name.contains(char::is_whitespace));
                self.steps.extend(name.map(|name| Step {
                    line: block.line,
                    action: Action::File(name.to_owned(), block.lines.join("\n") + "\n"),
                }));
            }
            _ => {}
        }
        Ok(())
    }
}

fn comment(line: &str) -> Option<&str> {
    Some(line.strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

fn directed(directive: &str) -> Result<Action> {
    if let Some(command) = directive.strip_prefix("$ ") {
        return Ok(Action::Command {
            command: command.to_owned(),
            shown: Vec::new(),
        });
    }
    if let Some(names) = directive.strip_prefix("controllers ") {
        return Ok(Action::Controllers(names.split(',').map(str::to_owned).collect()));
    }
    let (member, rest) = directive.split_once(' ').context("a member and what it does")?;
    let member = member.to_owned();
    Ok(match rest.split_once(' ').unwrap_or((rest, "")) {
        ("stops", "") => Action::Stop(member),
        ("returns", "") => Action::Return(member),
        ("reports", object) => Action::Report(member, serde_json::from_str(object)?),
        _ => bail!("{directive:?} is no directive"),
    })
}

/// The commands of a block. One that ends in a backslash goes on in the next line.
fn commands(block: &Block<'_>) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for (at, line) in block.lines.iter().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: block.line + at + 1,
                action: Action::Command {
                    command: command.to_owned(),
                    shown: Vec::new(),
                },
            });
            goes_on = command.ends_with('\\');
            continue;
        }
        let last = steps.last_mut().map(|step| &mut step.action);
        let Some(Action::Command { command, shown }) = last else {
            bail!(
                "line {}: a block of commands begins with `$ `",
                block.line + at + 1
            );
        };
        if goes_on {
            command.push('\n');
            command.push_str(line);
            goes_on = line.ends_with('\\');
        } else {
            shown.push((*line).to_owned());
        }
    }
    ensure!(!steps.is_empty(), "line {}: no command", block.line);
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A guide\n\n<!-- run -->\n\n1. Save:\n\n   ```yaml\n   # web.yaml\n   kind: X\n     a: b\n   ```\n\n\
                        ```yaml\nkind: Y\n```\n\n<!-- run: member1 stops -->\n<!-- run: controllers a,b -->\n```console\n$ kubectl apply \\\n    -f web.yaml\n\
                        x created\n$ kubectl get x\n```\n<!-- not run: later -->\n```console\n$ never\n```\n";

    #[test]
    fn a_page_is_files_commands_and_what_happens_in_order() {
        let page = Page::parse("a", TEXT).unwrap();
        assert!(page.is_run());
        let command = |command: &str, shown: &[&str]| Action::Command {
            command: command.to_owned(),
            shown: shown.iter().map(|&line| line.to_owned()).collect(),
        };
        let found: Vec<(usize, Action)> = page
            .steps
            .into_iter()
            .map(|step| (step.line, step.action))
            .collect();
        assert_eq!(
            found,
            [
                (
                    7,
                    Action::File("web.yaml".into(), "# web.yaml\nkind: X\n  a: b\n".into())
                ),
                (17, Action::Stop("member1".into())),
                (18, Action::Controllers(vec!["a".into(), "b".into()])),
                (20, command("kubectl apply \\\n    -f web.yaml", &["x created"])),
                (23, command("kubectl get x", &[])),
            ]
        );
    }

    #[test]
    fn a_block_of_commands_is_run_or_says_that_it_is_not() {
        let block = "```console\n$ x\n```\n";
        for (text, lines) in [
            (block.to_owned(), vec![1]),
            (format!("<!-- run -->\n{block}"), vec![]),
            (format!("<!-- not run: it needs a hub -->\n{block}"), vec![]),
            (format!("<!-- not run: once -->\n{block}{block}"), vec![5]),
            (
                format!("<!-- no block is run: it needs a hub -->\n{block}{block}"),
                vec![],
            ),
            ("```sh\nx\n```\n".to_owned(), vec![1]),
            ("<!-- run -->\n```sh\nx\n```\n".to_owned(), vec![2]),
            ("```bash\nx\n```\n```shell\nx\n```\n".to_owned(), vec![1, 4]),
            ("<!-- not run: x -->\n\n```sh\nx\n```\n".to_owned(), vec![]),
            ("```yaml\nx\n```\n```text\nx\n```\n".to_owned(), vec![]),
        ] {
            let page = Page::parse("a", &text).unwrap();
            assert_eq!(page.unaccounted().collect::<Vec<_>>(), lines, "{text}");
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_names_the_line() {
        for text in [
            "```console\n$ x\n",
            "```console\nx\n```\n",
            "```console\n```\n",
            "<!-- run: member1 sleeps -->\n",
            "<!-- not run: x -->\ntext\n```sh\nx\n```\n",
            "<!-- not run: x -->\n",
            "<!-- not run: -->\n```sh\nx\n```\n",
            "<!-- run -->\n<!-- no block is run: x -->\n",
            "<!-- run: member1 reports {] -->\n",
        ] {
            let error = Page::parse("a", text).unwrap_err();
            assert!(format!("{error:#}").contains("line "), "{text:?}: {error:#}");
        }
    }
}
