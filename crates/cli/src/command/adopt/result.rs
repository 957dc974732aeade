//! The decisions as a table, what became of them, and the error at the end.

use std::io::Write;

use anyhow::{Context as _, Result, bail};
use entourage_core::{adoption::Decision, object::ResourceId};
use serde_json::Value;

use super::{
    member::Scan,
    write::{Outcome, is_written},
};
use crate::command::get::table::{Row, Shown, View};

/// The decisions on all objects, and the results of the writes with `--yes`.
pub(super) struct Decided {
    pub(super) rows: Vec<Row>,
    /// The number of objects that were adopted or given back, or are to be.
    pub(super) adopted: usize,
    /// The number of objects that were adopted before.
    pub(super) already: usize,
    pub(super) left: usize,
    pub(super) failed: usize,
    /// The error that ended the run before all members had their turn.
    pub(super) result: Result<()>,
}

impl Decided {
    pub(super) fn new() -> Self {
        Self {
            rows: Vec::new(),
            adopted: 0,
            already: 0,
            left: 0,
            failed: 0,
            result: Ok(()),
        }
    }

    /// Counts an object, and says what happened to it.
    pub(super) fn count(&mut self, decision: &Decision, written: Option<&Result<Outcome, String>>) -> String {
        let done = match decision {
            Decision::Return => "given back",
            _ => "adopted",
        };
        let (counter, words) = match (is_written(decision), written) {
            (true, Some(Err(why))) => (&mut self.failed, format!("not {done}: {why}")),
            (true, Some(Ok(Outcome::Adopted))) => (&mut self.adopted, done.to_owned()),
            (true, Some(Ok(Outcome::Gone))) => (&mut self.left, "left alone: not found any more".to_owned()),
            (true, None) => (&mut self.adopted, decision.to_string()),
            (false, _) if *decision == Decision::Adopted => (&mut self.already, decision.to_string()),
            (false, _) => (&mut self.left, decision.to_string()),
        };
        *counter += 1;
        words
    }
}

/// The rows under their titles.
pub(super) fn table(rows: Vec<Row>) -> String {
    let view = View {
        columns: vec![
            ("CLUSTER", Shown::Always),
            ("NAMESPACE", Shown::Always),
            ("OBJECT", Shown::Always),
            ("DECISION", Shown::Always),
        ],
        rows,
        more: Vec::new(),
    };
    view.table(false, true)
}

pub(super) fn row(cluster: &str, id: &ResourceId, words: String) -> Row {
    Row {
        name: String::new(),
        cells: vec![
            cluster.to_owned(),
            id.namespace.to_string(),
            format!("{} {}", id.gvk.kind, id.name),
            words,
        ],
        item: Value::Null,
    }
}

/// Reports what was not read; an error if anything is left to do.
pub(super) fn finish(out: &mut (dyn Write + Send), scans: &[Scan], failed: usize) -> Result<()> {
    let mut unread = 0;
    for scan in scans {
        let (failures, remarks) = match &scan.result {
            Ok(member) => (member.unread.clone(), member.notes.clone()),
            Err(why) => (vec![format!("not read: {why}")], Vec::new()),
        };
        unread += usize::from(!failures.is_empty());
        for note in failures.into_iter().chain(remarks) {
            writeln!(out, "note: {}: {note}", scan.cluster).context("cannot write to the terminal")?;
        }
    }
    let mut problems = Vec::new();
    if failed > 0 {
        problems.push(format!("{} not adopted", objects(failed)));
    }
    if unread > 0 {
        let plural = if unread == 1 { "member was" } else { "members were" };
        problems.push(format!("{unread} {plural} not read completely"));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "{}; correct the cause and run this again to continue",
        problems.join(", ")
    )
}

/// Both errors, if there are two.
pub(super) fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Err(one), Err(other)) => bail!("{one:#}; {other:#}"),
        (one, other) => one.and(other),
    }
}

pub(super) fn objects(count: usize) -> String {
    format!("{count} {}", if count == 1 { "object" } else { "objects" })
}
