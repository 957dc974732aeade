//! The rows that `--cluster` and `--field-selector` leave.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use super::{
    Resource, Seen, distributions,
    table::{Row, items, text},
};
use crate::{args::FieldSelector, suggest::hint};

/// Checks that the hub has the member.
///
/// # Errors
/// It has not; the error names the members.
pub(super) fn check(cluster: &str, seen: &Seen) -> Result<()> {
    let known: Vec<&str> = seen
        .clusters
        .iter()
        .map(|each| text(each, "/metadata/name"))
        .collect();
    if known.contains(&cluster) {
        return Ok(());
    }
    let near = hint(cluster, known.iter().copied());
    match known.as_slice() {
        [] => bail!("cluster {cluster:?} not found; the hub has no members"),
        _ => bail!(
            "cluster {cluster:?} not found{near}; members: {}",
            known.join(", ")
        ),
    }
}

/// True if the row is about the member.
pub(super) fn is_on(what: Resource, row: &Row, seen: &Seen, cluster: &str) -> bool {
    let is_listed = || items(&row.item, "/clusters").iter().any(|each| each == cluster);
    match what {
        Resource::Copies => row.item["cluster"] == cluster,
        Resource::Clusters => row.item["name"] == cluster,
        Resource::Bindings | Resource::Policies | Resource::Overrides => is_listed(),
        Resource::Distributions => {
            let name = text(&row.item, "/name");
            let mut all = seen.distributions.iter();
            let found = all.find(|each| text(each, "/metadata/name") == name);
            found.is_some_and(|each| distributions::is_on(seen, each, cluster))
        }
    }
}

/// Keeps the rows whose fields, as `-o json` has them, match.
///
/// # Errors
/// No row has a field; the error names those that there are.
pub(in crate::command) fn by_fields<T>(
    rows: &mut Vec<T>,
    item: impl Fn(&T) -> &Value,
    selector: &FieldSelector,
) -> Result<()> {
    for requirement in &selector.0 {
        let pointer = pointer(&requirement.field);
        if !rows.is_empty() && !rows.iter().any(|row| item(row).pointer(&pointer).is_some()) {
            let known: BTreeSet<&str> = rows
                .iter()
                .filter_map(|row| item(row).as_object())
                .flat_map(|fields| fields.keys().map(String::as_str))
                .collect();
            let near = hint(&requirement.field, known.iter().copied());
            let known: Vec<&str> = known.into_iter().collect();
            bail!(
                "--field-selector: the rows have no field {:?}{near}; fields: {}",
                requirement.field,
                known.join(", ")
            );
        }
        rows.retain(|row| {
            let value = item(row).pointer(&pointer).unwrap_or(&Value::Null);
            is_value(value, &requirement.value) == requirement.is_equal
        });
    }
    Ok(())
}

/// `metadata.name` is `name`, as for kubectl.
fn pointer(field: &str) -> String {
    let field = field.strip_prefix("metadata.").unwrap_or(field);
    format!("/{}", field.replace('.', "/"))
}

/// True if a field has the value; a list, if one of its elements has it.
fn is_value(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Null => wanted.is_empty(),
        Value::String(text) => text == wanted,
        Value::Array(items) => items.iter().any(|item| is_value(item, wanted)),
        other => other.to_string().as_str() == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::args::field_selector;

    #[test]
    fn rows_are_selected_by_the_fields_that_json_has() {
        let row = |name: &str, state: &str, clusters: &[&str]| Row {
            name: name.to_owned(),
            cells: Vec::new(),
            item: json!({"name": name, "state": state, "clusters": clusters, "template": {"kind": "Secret"}, "applied": 1}),
        };
        let left = |selector: &str| -> Result<String, String> {
            let mut rows = vec![row("a", "Applied", &["m1"]), row("b", "Conflict", &["m1", "m2"])];
            let selector = field_selector(selector).unwrap();
            by_fields(&mut rows, |row| &row.item, &selector).map_err(|error| error.to_string())?;
            Ok(rows
                .iter()
                .map(|row| row.name.as_str())
                .collect::<Vec<_>>()
                .join(","))
        };
        for (selector, wanted) in [
            ("state=Conflict", "b"),
            ("state==Conflict", "b"),
            ("state!=Conflict", "a"),
            ("clusters=m1,clusters!=m2", "a"),
            ("template.kind=Secret,applied=1", "a,b"),
            ("metadata.name=a", "a"),
            ("state=x", ""),
        ] {
            assert_eq!(left(selector).as_deref(), Ok(wanted), "{selector}");
        }
        let error = left("sttae=x").unwrap_err();
        for part in [
            "no field \"sttae\"",
            "did you mean \"state\"?",
            "applied, clusters",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        for wrong in ["", "state", "=x", "a=b,"] {
            assert!(field_selector(wrong).is_err(), "{wrong}");
        }
    }
}
