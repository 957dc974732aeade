//! `entourage why`: the chain of rules that puts an object on its clusters, or keeps it away.

use std::{fmt::Write as _, io::Write, process::ExitCode};

use anyhow::{Result, bail};
use clap::Args;
use entourage_core::inspection::{
    explanation::{ClusterExplanation, Effect, Explanation, Step, rule},
    why,
};

use super::{
    answer::{self, Output},
    explained::{self, LookArgs, Looked},
};
use crate::{args, plain::plain, suggest::hint};

/// Flags of `entourage why`.
#[derive(Args, Clone, Debug)]
pub struct WhyArgs {
    /// The object.
    #[command(flatten)]
    pub look: LookArgs,

    /// The answer for this cluster alone
    #[arg(short = 'C', short_alias = 'c', long, value_name = "NAME", value_parser = args::cluster_name)]
    pub cluster: Option<String>,
}

/// Runs the command; the explanation goes to `out`. The exit code is 0 if the object is on the cluster, or without --cluster on any; 1 if it
/// is not; 2 after an error.
///
/// # Errors
/// The output was closed.
pub async fn run(
    args: WhyArgs,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<ExitCode> {
    let done = match explained::look(&args.look).await {
        Ok(looked) => answered(&args, &looked, out, err),
        Err(error) => Err(error),
    };
    answer::ended(done, err)
}

/// Prints the explanation; true if the object is there.
///
/// # Errors
/// There is no such cluster, or the output cannot be written.
pub fn answered(
    args: &WhyArgs,
    looked: &Looked,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> Result<bool> {
    let mut explanation = why::why(looked.engine(), &looked.id, looked.exists, looked.now());
    if let Some(cluster) = &args.cluster {
        let known: Vec<String> = explanation
            .clusters
            .iter()
            .map(|each| each.cluster.to_string())
            .collect();
        explanation.clusters.retain(|each| *each.cluster == **cluster);
        if explanation.clusters.is_empty() {
            let near = hint(cluster, known.iter().map(String::as_str));
            bail!(
                "cluster {cluster:?} not found{near}; members: {}",
                known.join(", ")
            );
        }
    }
    let output = args.look.output;
    let text = match output {
        Output::Text => text(&explanation)?,
        format => answer::data_of(format, &explanation, looked.remarks())?,
    };
    answer::print(&text, (output, looked.remarks()), out, err)?;
    Ok(explanation.is_there())
}

/// The explanation as lines: the object, then its clusters, those with the same steps together.
fn text(explanation: &Explanation) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{}", plain(&explanation.object.to_string()))?;
    let width = width(explanation);
    for step in &explanation.steps {
        print_step(&mut text, step, width)?;
    }
    for same in grouped(&explanation.clusters) {
        let names: Vec<&str> = same.iter().map(|each| &*each.cluster).collect();
        let Some(first) = same.first() else { continue };
        writeln!(text, "{}: {}", plain(&names.join(", ")), first.presence)?;
        let passed = first.steps.iter().filter(|step| is_passed(step));
        let passed: Vec<&str> = passed.filter_map(|step| step.filter).collect();
        if !passed.is_empty() {
            writeln!(text, "    {:<width$}  passed: {}", "filter", passed.join(", "))?;
        }
        for step in first.steps.iter().filter(|step| !is_passed(step)) {
            print_step(&mut text, step, width)?;
        }
    }
    Ok(text)
}

/// The clusters with equal states and steps, by the first of them.
fn grouped(clusters: &[ClusterExplanation]) -> Vec<Vec<&ClusterExplanation>> {
    let mut groups: Vec<Vec<&ClusterExplanation>> = Vec::new();
    for cluster in clusters {
        let is_same = |group: &&mut Vec<&ClusterExplanation>| {
            let first = group.first();
            first.is_some_and(|first| first.presence == cluster.presence && first.steps == cluster.steps)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(cluster),
            None => groups.push(vec![cluster]),
        }
    }
    groups
}

/// The width of the longest name that is shown.
fn width(explanation: &Explanation) -> usize {
    let clusters = explanation.clusters.iter().flat_map(|each| &each.steps);
    let all = explanation.steps.iter().chain(clusters);
    let shown = all.filter(|step| !is_passed(step));
    shown.map(|step| name(step).len()).max().unwrap_or_default()
}

fn name(step: &Step) -> &'static str {
    step.filter.unwrap_or(step.rule)
}

/// True for a filter that passes a cluster.
fn is_passed(step: &Step) -> bool {
    step.rule == rule::FILTER && step.effect == Effect::Note
}

/// `  + policy        PropagationPolicy shop/web claims it: …`.
fn print_step(text: &mut String, step: &Step, width: usize) -> std::fmt::Result {
    let mark = match step.effect {
        Effect::For => '+',
        Effect::Against => '-',
        Effect::Note => ' ',
    };
    let name = name(step);
    writeln!(text, "  {mark} {name:<width$}  {}", plain(&step.message))
}
