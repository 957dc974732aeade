//! A plan as lines, as JSON, and its diffs.

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::{Context as _, Result};
use entourage_simulation::{Fate, Note, Outcome, Place, Report};
use serde_json::{Value, json};

use crate::{
    apply::label,
    command::answer::{self, Output},
    diff::unified,
};

/// The plan as lines: by cluster, then what is worth telling, then counts.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn text(report: &Report, remarks: &[String], show_unchanged: bool, diff: bool) -> Result<String> {
    let mut text = String::new();
    for remark in remarks {
        writeln!(text, "note: {remark}")?;
    }
    for (cluster, why) in &report.unread {
        writeln!(
            text,
            "note: {cluster} is not read: {why}; its copies are assumed to be as the hub recorded them"
        )?;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let mut places: BTreeMap<&Place, Vec<&Outcome>> = BTreeMap::new();
    for outcome in &report.outcomes {
        if show_unchanged || outcome.fate != Fate::Unchanged {
            places.entry(&outcome.place).or_default().push(outcome);
        }
    }
    for (place, outcomes) in &places {
        writeln!(text, "{}", name(place))?;
        let width = outcomes
            .iter()
            .map(|each| title(each).chars().count())
            .max()
            .unwrap_or_default();
        for outcome in outcomes {
            let (fate, title) = (outcome.fate.word(), title(outcome));
            let line = format!("  {fate:<9}  {title:<width$}  {}", outcome.message);
            writeln!(text, "{}", line.trim_end())?;
        }
    }
    if places.is_empty() {
        writeln!(text, "Nothing changes.")?;
    }
    if diff {
        text.push_str(&diffs(report)?);
    }
    if !report.notes.is_empty() {
        writeln!(text, "\nWarnings:")?;
        report
            .notes
            .iter()
            .try_for_each(|note| print_note(&mut text, note))?;
    }
    writeln!(text, "\n{}", counted(report))?;
    Ok(text)
}

/// The plan as one JSON object, or as YAML.
///
/// # Errors
/// It cannot be written.
pub fn data(format: Output, report: &Report, remarks: &[String]) -> Result<String> {
    let mut value = serde_json::to_value(report).context("cannot write the plan as JSON")?;
    let counts: BTreeMap<&str, usize> = report
        .counts()
        .into_iter()
        .map(|(fate, count)| (fate.word(), count))
        .collect();
    value["counts"] = json!(counts);
    value["remarks"] = json!(remarks);
    answer::formatted(format, &value)
}

fn print_note(text: &mut String, note: &Note) -> std::fmt::Result {
    writeln!(
        text,
        "  {}: {} ({})\n    {}",
        note.object, note.condition, note.reason, note.message
    )
}

/// The diffs of everything that changes; equal ones of several clusters once.
fn diffs(report: &Report) -> Result<String> {
    let mut all: Vec<(String, String, Vec<&str>)> = Vec::new();
    // Of what goes the line says enough.
    let shown = |each: &&Outcome| each.fate.is_change() && each.fate != Fate::Removed;
    for outcome in report.outcomes.iter().filter(shown) {
        let diff = unified(&yaml(outcome.before.as_ref())?, &yaml(outcome.after.as_ref())?);
        let title = title(outcome);
        match all.iter_mut().find(|each| each.0 == title && each.1 == diff) {
            Some(each) => each.2.push(name(&outcome.place)),
            None => all.push((title, diff, vec![name(&outcome.place)])),
        }
    }
    let mut text = String::new();
    for (title, diff, places) in all.iter().filter(|each| !each.1.is_empty()) {
        let places = places.join(", ");
        write!(
            text,
            "\n--- {title} now, {places}\n+++ {title} then, {places}\n{diff}"
        )?;
    }
    Ok(text)
}

fn yaml(object: Option<&Value>) -> Result<String> {
    match object {
        Some(object) => serde_saphyr::to_string(object).context("cannot write an object as YAML"),
        None => Ok(String::new()),
    }
}

fn name(place: &Place) -> &str {
    match place {
        Place::Hub => "hub",
        Place::Member(name) => name,
    }
}

/// `deployment.apps default/web`, as kubectl names kinds.
fn title(outcome: &Outcome) -> String {
    let id = &outcome.object;
    let kind = label(&id.gvk.api_version(), &id.gvk.kind);
    let kind = kind.split_once("/").map_or(kind.as_str(), |(kind, _)| kind);
    if id.namespace.is_empty() {
        format!("{kind} {}", id.name)
    } else {
        format!("{kind} {}/{}", id.namespace, id.name)
    }
}

/// `On the hub: 3 created. On 2 members: 4 created, 1 unchanged.`
fn counted(report: &Report) -> String {
    let of = |on_hub: bool| {
        let mut counts: BTreeMap<Fate, usize> = BTreeMap::new();
        let here = report
            .outcomes
            .iter()
            .filter(|each| (each.place == Place::Hub) == on_hub);
        for outcome in here {
            *counts.entry(outcome.fate).or_default() += 1;
        }
        let words: Vec<String> = Fate::ALL
            .iter()
            .filter_map(|fate| Some(format!("{} {}", counts.get(fate)?, fate.word())))
            .collect();
        if words.is_empty() {
            "nothing".to_owned()
        } else {
            words.join(", ")
        }
    };
    let mut members: Vec<&str> = report
        .outcomes
        .iter()
        .filter(|each| each.place != Place::Hub)
        .map(|each| name(&each.place))
        .collect();
    members.dedup();
    let members = match members.len() {
        0 => "the members".to_owned(),
        1 => "1 member".to_owned(),
        count => format!("{count} members"),
    };
    format!("On the hub: {}. On {members}: {}.", of(true), of(false))
}
