//! `entourage tree`: a workload, its dependencies, and the clusters of each with the states of their copies.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use clap::Args;
use entourage_core::inspection::tree::{self, Node, NodeCluster};

use super::{
    answer::{self, Output},
    explained::{self, LookArgs, Looked},
};
use crate::{args::MemberArgs, plain::plain};

/// Flags of `entourage tree`.
#[derive(Args, Clone, Debug)]
pub struct TreeArgs {
    /// The object.
    #[command(flatten)]
    pub look: LookArgs,

    /// The members of the answer.
    #[command(flatten)]
    pub members: MemberArgs,
}

/// Runs the command; the tree goes to `out`. The exit code is 0 if the object is on any cluster, 1 if it is on none, 2 after an error.
///
/// # Errors
/// The output was closed.
pub async fn run(
    args: TreeArgs,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<ExitCode> {
    let done = match explained::look(&args.look).await {
        Ok(looked) => answered(&args, &looked, out, err),
        Err(error) => Err(error),
    };
    answer::ended(done, err)
}

/// Prints the tree; true if the object is on any cluster.
///
/// # Errors
/// There is no such cluster, or the output cannot be written.
pub fn answered(
    args: &TreeArgs,
    looked: &Looked,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<bool> {
    args.members
        .check(|cluster| looked.engine().cluster(cluster).is_some())?;
    let mut tree = tree::tree(looked.engine(), &looked.id, looked.exists, looked.now());
    keep(&mut tree, &args.members);
    let output = args.look.output;
    let text = match output {
        Output::Text => text(&tree, &args.members),
        format => answer::data_of(format, &tree, looked.remarks())?,
    };
    answer::print(&text, (output, looked.remarks()), out, err)?;
    Ok(tree.is_there())
}

/// Keeps the clusters that are asked for.
fn keep(node: &mut Node, members: &MemberArgs) {
    node.clusters.retain(|each| members.has(Some(&*each.cluster)));
    for dependency in &mut node.dependencies {
        keep(dependency, members);
    }
}

/// The tree as lines: objects, and behind each its clusters in a column.
fn text(tree: &Node, members: &MemberArgs) -> String {
    let nowhere = match members.cluster.as_slice() {
        [] => "on no cluster".to_owned(),
        asked => format!("not on {}", asked.join(", ")),
    };
    let mut lines = Vec::new();
    draw(tree, ("", ""), &nowhere, &mut lines);
    let width = lines.iter().map(|(title, _)| title.chars().count()).max();
    let width = width.unwrap_or_default();
    let line =
        |(title, state): &(String, String)| format!("{title:<width$}  {state}").trim_end().to_owned() + "\n";
    lines.iter().map(line).collect()
}

/// Adds the lines of an object: its title, and its state. `first` comes before its own line, `rest` before those of its dependencies.
/// `nowhere` is the state of an object without clusters.
fn draw(node: &Node, (first, rest): (&str, &str), nowhere: &str, lines: &mut Vec<(String, String)>) {
    let title = format!("{first}{}", plain(&node.object.to_string()));
    lines.push((title, state(node, nowhere)));
    let last = node.dependencies.len().saturating_sub(1);
    for (position, dependency) in node.dependencies.iter().enumerate() {
        let (branch, below) = if position == last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        let before = (format!("{rest}{branch}"), format!("{rest}{below}"));
        draw(dependency, (&before.0, &before.1), nowhere, lines);
    }
}

fn state(node: &Node, nowhere: &str) -> String {
    let mut words = Vec::new();
    if node.optional {
        words.push("optional".to_owned());
    }
    match node.exists {
        Some(true) => {}
        Some(false) => words.push("missing on the hub".to_owned()),
        None => words.push("not watched".to_owned()),
    }
    if node.clusters.is_empty() {
        words.push(nowhere.to_owned());
    } else {
        let clusters: Vec<String> = node.clusters.iter().map(place).collect();
        words.push(clusters.join(", "));
    }
    if node.repeated {
        words.push("its dependencies are above".to_owned());
    }
    words.join("; ")
}

/// `m1 kept away (Secret shop/login already exists on m1 …)`.
fn place(at: &NodeCluster) -> String {
    let state = format!("{} {}", plain(&at.cluster), at.presence);
    if at.message.is_empty() {
        return state;
    }
    format!("{state} ({})", plain(&at.message))
}
