//! `entourage interpret`: validates customizations and webhooks, lists the interpreters of a kind, or interprets objects in
//! files.
//!
//! The flags and the form of the output are those of `karmadactl interpret`. Without -f only the native and shipped rules
//! apply. The command calls only the webhooks in the files.

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{ArgGroup, Args, ValueEnum};
use entourage_api::work::AggregatedStatusItem;
use entourage_core::{
    interpreter::{
        ask::nobody,
        question::{Answer, Question},
    },
    object::Gvk,
};
use serde_json::{Value, json};

use crate::manifests::{self, Manifest};

mod ask;
mod check;
mod given;
mod layers;
mod reach;
#[cfg(test)]
mod tests;

use given::Given;
use reach::{HookUrl, hook_url};

/// The operations, with Karmada's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// The fields of the copy on a member that are kept: needs both files
    #[value(name = "Retain", alias = "retain")]
    Retain,
    /// The number of replicas, and the requirements of one replica
    #[value(name = "InterpretReplica", alias = "interpretReplica")]
    Replica,
    /// The components of an object with several pod templates
    #[value(name = "InterpretComponent", alias = "interpretComponent")]
    Component,
    /// The object with another number of replicas: needs --desired-replica
    #[value(name = "ReviseReplica", alias = "reviseReplica")]
    Revise,
    /// The part of a copy's status that is reported
    #[value(name = "InterpretStatus", alias = "interpretStatus")]
    Status,
    /// The object with the status that is aggregated from its copies: needs --status-file
    #[value(name = "AggregateStatus", alias = "aggregateStatus")]
    Aggregate,
    /// The health of a copy
    #[value(name = "InterpretHealth", alias = "interpretHealth")]
    Health,
    /// The dependencies of the object
    #[value(name = "InterpretDependency", alias = "interpretDependency")]
    Dependency,
}

/// Flags of `entourage interpret`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("what").required(true).args(["check", "layers", "operation"]))]
pub struct InterpretArgs {
    /// ResourceInterpreterCustomizations, and configurations of webhooks, which are called; CustomResourceDefinitions provide
    /// the names of kinds: a file, a directory, or standard input (-); may be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", num_args = 1..)]
    pub filename: Vec<PathBuf>,

    /// URL of a webhook, instead of the one in its configuration; may be given several times. The certificate of one behind a
    /// Service must be valid for the Service's name there, too
    #[arg(long, value_name = "CONFIGURATION/WEBHOOK=URL", value_parser = hook_url, requires = "filename")]
    pub hook_url: Vec<HookUrl>,

    /// Validate the customizations and webhooks; no webhook is called
    #[arg(long, requires = "filename")]
    pub check: bool,

    /// List the interpreters of the object's kind for each operation; none is called
    #[arg(long)]
    pub layers: bool,

    /// Operation to run
    #[arg(long, value_enum, value_name = "OPERATION")]
    pub operation: Option<Operation>,

    /// The template, as the hub has it
    #[arg(long, value_name = "FILE")]
    pub desired_file: Option<PathBuf>,

    /// The object, or its copy as a member has it
    #[arg(long, value_name = "FILE")]
    pub observed_file: Option<PathBuf>,

    /// The status of each cluster: a list of {clusterName, status, …}, or documents of them
    #[arg(long, value_name = "FILE")]
    pub status_file: Option<PathBuf>,

    /// The number of replicas to set
    #[arg(long, value_name = "COUNT")]
    pub desired_replica: Option<i64>,
}

/// Runs the command. Returns 1 if a customization or a webhook is invalid. `notes` receives messages that are not part of the
/// result.
///
/// # Errors
/// A file that cannot be read, a missing flag, or the reason why there is no response.
pub async fn run(args: &InterpretArgs, out: &mut impl Write, notes: &mut impl Write) -> Result<ExitCode> {
    let given = Given::read(&args.filename, &args.hook_url)?;
    if args.check {
        return check::run(&given, out);
    }
    let objects = Objects::read(args)?;
    match args.operation {
        Some(operation) => execute(operation, args, &objects, &given, out, notes).await?,
        None => {
            let object = objects.template()?;
            layers::run(&given, &kind(object), object, out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The interpreted objects. Either replaces the other.
struct Objects {
    desired: Option<Value>,
    observed: Option<Value>,
}

impl Objects {
    fn read(args: &InterpretArgs) -> Result<Self> {
        Ok(Self {
            desired: args.desired_file.as_deref().map(one).transpose()?,
            observed: args.observed_file.as_deref().map(one).transpose()?,
        })
    }

    fn template(&self) -> Result<&Value> {
        let object = self.desired.as_ref().or(self.observed.as_ref());
        object.context("give the object with --desired-file or --observed-file")
    }

    fn copy(&self) -> Result<&Value> {
        let object = self.observed.as_ref().or(self.desired.as_ref());
        object.context("give the object with --observed-file")
    }
}

fn kind(object: &Value) -> Gvk {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    Gvk::new(text("apiVersion"), text("kind"))
}

async fn execute(
    operation: Operation,
    args: &InterpretArgs,
    objects: &Objects,
    given: &Given,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<()> {
    let items;
    let question = match operation {
        Operation::Replica => Question::Replicas(objects.template()?),
        Operation::Component => Question::Components(objects.template()?),
        Operation::Dependency => Question::Dependencies(objects.template()?),
        Operation::Revise => {
            let count = args
                .desired_replica
                .context("give the number with --desired-replica")?;
            Question::Revise(objects.template()?, count)
        }
        Operation::Retain => Question::Retain {
            desired: objects
                .desired
                .as_ref()
                .context("give the template with --desired-file")?,
            live: objects
                .observed
                .as_ref()
                .context("give the copy with --observed-file")?,
        },
        Operation::Status => Question::Reflect(objects.copy()?),
        Operation::Health => Question::Health(objects.copy()?),
        Operation::Aggregate => {
            let path = args
                .status_file
                .as_deref()
                .context("give what clusters reported with --status-file")?;
            items = reported(path)?;
            Question::Aggregate {
                template: objects.template()?,
                items: &items,
            }
        }
    };
    let gvk = kind(question.object());
    let answers = ask::ask(given, &gvk, question, notes).await?;
    if answers.is_empty() {
        bail!("{}", nobody(&gvk, question.operation()));
    }
    let mut results = Vec::new();
    for (layer, answer) in answers {
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

/// The parts of a response, by Karmada's names.
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
            serde_json::from_value(item).map_err(|error| {
                let why = manifests::misfit(&error);
                anyhow!(
                    "{}: {why}; give a list of {{clusterName, status}}",
                    path.display()
                )
            })
        })
        .collect()
}
