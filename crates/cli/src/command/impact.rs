//! `entourage impact`: what a change or the deletion of an object touches, cluster by cluster.

use std::{fmt::Write as _, io::Write, process::ExitCode};

use anyhow::Result;
use clap::Args;
use entourage_core::inspection::impact::{self, Impact};

use super::{
    answer::{self, Output},
    explained::{self, LookArgs, Looked},
};
use crate::{args::MemberArgs, plain::plain};

/// Flags of `entourage impact`.
#[derive(Args, Clone, Debug)]
pub struct ImpactArgs {
    /// The object.
    #[command(flatten)]
    pub look: LookArgs,

    /// The members of the answer.
    #[command(flatten)]
    pub members: MemberArgs,
}

/// Runs the command; the answer goes to `out`. The exit code is 0 if the object touches anything, 1 if it touches nothing, 2 after an error.
///
/// # Errors
/// The output was closed.
pub async fn run(
    args: ImpactArgs,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<ExitCode> {
    let done = match explained::look(&args.look).await {
        Ok(looked) => answered(&args, &looked, out, err),
        Err(error) => Err(error),
    };
    answer::ended(done, err)
}

/// Prints what the object touches; true if it touches anything.
///
/// # Errors
/// There is no such cluster, or the output cannot be written.
pub fn answered(
    args: &ImpactArgs,
    looked: &Looked,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<bool> {
    args.members
        .check(|cluster| looked.engine().cluster(cluster).is_some())?;
    let mut impact = impact::impact(looked.engine(), &looked.id, looked.now());
    impact
        .touched
        .retain(|each| args.members.has(each.cluster.as_deref()));
    let output = args.look.output;
    let text = match output {
        Output::Text => text(&impact, &args.members)?,
        format => answer::data_of(format, &impact, looked.remarks())?,
    };
    answer::print(&text, (output, looked.remarks()), out, err)?;
    Ok(!impact.touched.is_empty())
}

fn text(impact: &Impact, members: &MemberArgs) -> Result<String> {
    let mut text = String::new();
    let object = plain(&impact.object.to_string());
    if impact.touched.is_empty() && !members.cluster.is_empty() {
        writeln!(
            text,
            "{object} touches nothing on {}.",
            members.cluster.join(", ")
        )?;
        return Ok(text);
    }
    if impact.touched.is_empty() {
        writeln!(
            text,
            "{object} touches nothing: it has no copy, and nothing refers to it."
        )?;
        return Ok(text);
    }
    for (title, effect) in [("change", true), ("deletion", false)] {
        let touched = impact.touched.iter().filter_map(|each| {
            let message = if effect {
                &each.on_change
            } else {
                &each.on_deletion
            };
            let cluster = each.cluster.as_deref().unwrap_or("(hub)");
            (!message.is_empty()).then(|| {
                [
                    cluster.to_owned(),
                    each.relation.word().to_owned(),
                    each.object.to_string(),
                    message.clone(),
                ]
            })
        });
        let table = answer::table(["CLUSTER", "RELATION", "OBJECT", "EFFECT"], touched.collect());
        if !table.is_empty() {
            writeln!(text, "A {title} of {object} touches:")?;
            text.push_str(&table);
        }
    }
    Ok(text)
}
