//! Rules of what teaches us kinds: customizations and webhooks of interpreters.

use std::collections::BTreeSet;

use entourage_api::config::declarative::DeclarativeRules;
use serde::Deserialize as _;
use serde_json::Value;

use crate::interpreter::declarative::Declared;

use super::{Problem, is_unset, items, text};

/// The operation that several customizations of one kind may have: their references add up.
const SHARED: &str = "dependencyInterpretation";

/// The versions of the hook protocol that are spoken.
const VERSIONS: [&str; 1] = ["v1alpha1"];

/// One customization decides on an operation of a kind.
pub(super) fn alone(object: &Value, others: &[Value], problems: &mut Vec<Problem>) {
    let target = &object["spec"]["target"];
    let own = operations(object);
    let name = |object: &Value| text(&object["metadata"]["name"]).to_owned();
    let rivals = others
        .iter()
        .filter(|other| name(other) != name(object) && other["spec"]["target"] == *target);
    for rival in rivals {
        for operation in operations(rival).intersection(&own) {
            problems.push(Problem::new(
                format!("spec.customizations.{operation}"),
                format!(
                    "{:?} has it for {} {} already",
                    name(rival),
                    text(&target["apiVersion"]),
                    text(&target["kind"])
                ),
                "change that one, or take it out there first",
            ));
        }
    }
}

fn operations(object: &Value) -> BTreeSet<&str> {
    let customizations = object["spec"]["customizations"].as_object();
    let given = customizations.into_iter().flatten();
    given
        .filter(|(name, value)| *name != SHARED && !value.is_null())
        .map(|(name, _)| name.as_str())
        .collect()
}

/// The declarative rules can be followed: the first that cannot is told with its place.
pub(super) fn declarative(object: &Value, problems: &mut Vec<Problem>) {
    let given = &object["spec"]["declarative"];
    if given.is_null() {
        return;
    }
    let Ok(rules) = DeclarativeRules::deserialize(given) else {
        // What has another shape is refused by the schema, with the field's name.
        return;
    };
    if let Err(error) = Declared::compile(&rules) {
        problems.push(Problem::new(
            format!("spec.declarative.{}", error.field),
            error.problem,
            error.remedy,
        ));
    }
}

/// Webhooks have names of their own, in full: two parts or more, with or without the dot at the end.
pub(super) fn names(object: &Value, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (at, webhook) in items(&object["webhooks"]).iter().enumerate() {
        let (field, name) = (format!("webhooks[{at}].name"), text(&webhook["name"]));
        let is_part = |part: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            (1..=63).contains(&part.len())
                && part.chars().all(inner)
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        let parts = name.strip_suffix('.').unwrap_or(name);
        if parts.len() > 253 || parts.split('.').count() < 2 || !parts.split('.').all(is_part) {
            problems.push(Problem::new(
                field,
                format!("{name:?} is no full domain name"),
                "name it as workloads.example.com",
            ));
        } else if !seen.insert(name) {
            problems.push(Problem::new(
                field,
                format!("{name:?} names another webhook too"),
                "give each a name of its own",
            ));
        }
    }
}

/// Webhooks can be called: in one place, for a time, in words that we know.
pub(super) fn clients(object: &Value, problems: &mut Vec<Problem>) {
    for (at, webhook) in items(&object["webhooks"]).iter().enumerate() {
        let path = format!("webhooks[{at}]");
        let client = &webhook["clientConfig"];
        if is_unset(&client["url"]) == client["service"].is_null() {
            problems.push(Problem::new(
                format!("{path}.clientConfig"),
                "a webhook is at a url or behind a service",
                "give one of the two",
            ));
        }
        let url = text(&client["url"]);
        if !url.is_empty() && !url.starts_with("https://") {
            problems.push(Problem::new(
                format!("{path}.clientConfig.url"),
                format!("{url:?} is not https"),
                "give a URL that begins with https://",
            ));
        }
        let timeout = webhook["timeoutSeconds"].as_i64();
        if let Some(seconds) = timeout.filter(|seconds| !(1..=30).contains(seconds)) {
            problems.push(Problem::new(
                format!("{path}.timeoutSeconds"),
                format!("{seconds} is out of range"),
                "give 1 to 30 seconds",
            ));
        }
        let versions = items(&webhook["interpreterContextVersions"]);
        if !versions.iter().any(|version| VERSIONS.contains(&text(version))) {
            problems.push(Problem::new(
                format!("{path}.interpreterContextVersions"),
                "no version is among them that is spoken here",
                format!("add {}", VERSIONS.join(" or ")),
            ));
        }
    }
}
