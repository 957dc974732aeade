//! `entourage interpret`: whether customizations are right, and what the rules of a kind make of objects in files.
//!
//! The flags and the form of the output are those that users of `karmadactl interpret` know. Without -f the rules are those
//! that are known without customizations.

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::{ArgGroup, Args, ValueEnum};
use entourage_api::{config::ResourceInterpreterCustomization, work::AggregatedStatusItem};
use entourage_core::{
    interpreter::{
        ask,
        question::{Answer, Question},
    },
    object::Gvk,
};
use entourage_lua::Lua;
use serde_json::{Value, json};

use crate::manifests::{self, Manifest};

mod check;
#[cfg(test)]
mod tests;

/// The operations, as Karmada calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// What of the copy on a member is kept: needs both files
    #[value(name = "Retain", alias = "retain")]
    Retain,
    /// How many replicas, and what one of them needs
    #[value(name = "InterpretReplica", alias = "interpretReplica")]
    Replica,
    /// The parts of an object with several pod templates
    #[value(name = "InterpretComponent", alias = "interpretComponent")]
    Component,
    /// The object with another number of replicas: needs --desired-replica
    #[value(name = "ReviseReplica", alias = "reviseReplica")]
    Revise,
    /// What of a copy's status is reported
    #[value(name = "InterpretStatus", alias = "interpretStatus")]
    Status,
    /// The object with the status that is made of its copies': needs --status-file
    #[value(name = "AggregateStatus", alias = "aggregateStatus")]
    Aggregate,
    /// Whether a copy does well
    #[value(name = "InterpretHealth", alias = "interpretHealth")]
    Health,
    /// What the object needs
    #[value(name = "InterpretDependency", alias = "interpretDependency")]
    Dependency,
}

/// Flags of `entourage interpret`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("what").required(true).args(["check", "operation"]))]
pub struct InterpretArgs {
    /// ResourceInterpreterCustomizations: a file, a directory, or standard input (-); may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", num_args = 1..)]
    pub filename: Vec<PathBuf>,

    /// Say whether the customizations are right
    #[arg(long, requires = "filename")]
    pub check: bool,

    /// What is asked
    #[arg(long, value_enum, value_name = "OPERATION")]
    pub operation: Option<Operation>,

    /// The template, as the hub has it
    #[arg(long, value_name = "FILE")]
    pub desired_file: Option<PathBuf>,

    /// The object, or its copy as a member has it
    #[arg(long, value_name = "FILE")]
    pub observed_file: Option<PathBuf>,

    /// What each cluster reported: a list of {clusterName, status, …}, or documents of them
    #[arg(long, value_name = "FILE")]
    pub status_file: Option<PathBuf>,

    /// The number of replicas to set
    #[arg(long, value_name = "COUNT")]
    pub desired_replica: Option<i64>,
}

/// Runs the command; answers with 1 when a customization is wrong.
///
/// # Errors
/// A file that cannot be read, a flag that is missing, or why there is no answer.
pub fn run(args: &InterpretArgs, out: &mut impl Write) -> Result<ExitCode> {
    let given = customizations(&args.filename)?;
    match args.operation {
        Some(operation) => execute(operation, args, &given, out).map(|()| ExitCode::SUCCESS),
        None => check::run(&given, out),
    }
}

/// A customization and where it was read.
pub(super) struct Given {
    origin: String,
    customization: ResourceInterpreterCustomization,
}

fn customizations(paths: &[PathBuf]) -> Result<Vec<Given>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for manifest in manifests::read(paths)? {
        let object = manifest.value()?;
        let origin = manifest.origin().to_owned();
        if object["kind"] != "ResourceInterpreterCustomization" {
            bail!(
                "{origin}: {manifest} is no ResourceInterpreterCustomization; give objects with --desired-file or --observed-file"
            );
        }
        let customization = serde_json::from_value(object).with_context(|| {
            format!("{origin}: {manifest} cannot be read; compare it with what `entourage crds` prints")
        })?;
        all.push(Given {
            origin,
            customization,
        });
    }
    Ok(all)
}

fn execute(operation: Operation, args: &InterpretArgs, given: &[Given], out: &mut impl Write) -> Result<()> {
    let desired = args.desired_file.as_deref().map(one).transpose()?;
    let observed = args.observed_file.as_deref().map(one).transpose()?;
    let template = || {
        let object = desired.as_ref().or(observed.as_ref());
        object.context("give the object with --desired-file or --observed-file")
    };
    let copy = || {
        let object = observed.as_ref().or(desired.as_ref());
        object.context("give the object with --observed-file")
    };
    let items;
    let question = match operation {
        Operation::Replica => Question::Replicas(template()?),
        Operation::Component => Question::Components(template()?),
        Operation::Dependency => Question::Dependencies(template()?),
        Operation::Revise => {
            let count = args
                .desired_replica
                .context("give the number with --desired-replica")?;
            Question::Revise(template()?, count)
        }
        Operation::Retain => Question::Retain {
            desired: desired
                .as_ref()
                .context("give the template with --desired-file")?,
            live: observed.as_ref().context("give the copy with --observed-file")?,
        },
        Operation::Status => Question::Reflect(copy()?),
        Operation::Health => Question::Health(copy()?),
        Operation::Aggregate => {
            let path = args
                .status_file
                .as_deref()
                .context("give what clusters reported with --status-file")?;
            items = reported(path)?;
            Question::Aggregate {
                template: template()?,
                items: &items,
            }
        }
    };
    let object = template()?;
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let gvk = Gvk::new(text("apiVersion"), text("kind"));
    let customizations: Vec<_> = given.iter().map(|each| each.customization.clone()).collect();
    let taught = ask::taught(&gvk, &customizations, Some(&Lua::default()));
    let answers = ask::ask(&taught, &gvk, question);
    if answers.is_empty() {
        bail!("{}", ask::nobody(&gvk, question.operation()));
    }
    let mut results = Vec::new();
    for (layer, answer) in answers {
        let answer = answer.map_err(anyhow::Error::new)?;
        results.extend(
            shown(answer)
                .into_iter()
                .map(|(name, value)| (layer.clone(), name, value)),
        );
    }
    let count = results.len();
    for (number, (layer, name, value)) in results.into_iter().enumerate() {
        writeln!(out, "---\n# [{}/{count}] {name}: by {layer}", number + 1)?;
        write!(out, "{}", serde_saphyr::to_string(&value)?)?;
    }
    Ok(())
}

/// The parts of an answer, by the names that users of Karmada know.
fn shown(answer: Answer) -> Vec<(&'static str, Value)> {
    match answer {
        Answer::Replicas {
            replicas,
            requirements,
        } => {
            vec![("replica", json!(replicas)), ("requires", json!(requirements))]
        }
        Answer::Components(all) => vec![("components", json!(all))],
        Answer::Object(object) => vec![("object", object)],
        Answer::Status(status) => vec![("status", json!(status))],
        Answer::Healthy(healthy) => vec![("healthy", json!(healthy))],
        Answer::References(all) => vec![("dependencies", json!(all))],
        Answer::Dependencies(all) => vec![("dependencies", json!(all))],
    }
}

fn one(path: &std::path::Path) -> Result<Value> {
    let all = manifests::read(&[path.to_owned()])?;
    match all.as_slice() {
        [manifest] => Manifest::value(manifest),
        _ => bail!("{}: give one object, not {}", path.display(), all.len()),
    }
}

fn reported(path: &std::path::Path) -> Result<Vec<AggregatedStatusItem>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let documents = manifests::documents(&text, &path.display().to_string())?;
    let items = documents.into_iter().flat_map(|document| match document {
        Value::Array(items) => items,
        other => vec![other],
    });
    items
        .map(|item| {
            serde_json::from_value(item)
                .with_context(|| format!("{}: give a list of {{clusterName, status}}", path.display()))
        })
        .collect()
}
