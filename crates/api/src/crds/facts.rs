//! The contract of a CRD as text: one line for each path of each version, and a line for names, columns and subresources.
//!
//! The lines of the reference schemas are committed; a test compares ours with them. Descriptions, validation rules and `anyOf`
//! of int-or-string are left out, as is every keyword that is not in `KEYWORDS`.

use serde_json::Value;

/// Keywords that are shown as `keyword=<JSON>` when present, in this order.
const KEYWORDS: &[(&str, &str)] = &[
    ("enum", "enum"),
    ("default", "default"),
    ("pattern", "pattern"),
    ("minLength", "minLength"),
    ("maxLength", "maxLength"),
    ("minItems", "minItems"),
    ("maxItems", "maxItems"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("nullable", "nullable"),
    ("x-kubernetes-list-type", "list-type"),
    ("x-kubernetes-list-map-keys", "list-map-keys"),
    ("x-kubernetes-map-type", "map-type"),
    ("x-kubernetes-int-or-string", "int-or-string"),
    ("x-kubernetes-preserve-unknown-fields", "preserve-unknown-fields"),
    ("x-kubernetes-embedded-resource", "embedded-resource"),
];

/// Returns the lines of a CustomResourceDefinition given as JSON: `<plural> <version> <path> <type> <format> [required]
/// [keyword=value …]`. In a path `.name` is a property, `[]` the items of a list and `{}` the values of a map; `-` stands for
/// no type or format.
pub fn facts(crd: &Value) -> Vec<String> {
    let plural = text(crd, "/spec/names/plural");
    let names = &crd["spec"]["names"];
    let mut lines = vec![format!(
        "{plural} - #names group={} scope={} kind={} listKind={} singular={} shortNames={} categories={}",
        text(crd, "/spec/group"),
        text(crd, "/spec/scope"),
        text(names, "/kind"),
        text(names, "/listKind"),
        text(names, "/singular"),
        names["shortNames"],
        names["categories"],
    )];
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        let prefix = format!("{plural} {}", text(version, "/name"));
        let status = version.pointer("/subresources/status").is_some();
        lines.push(format!(
            "{prefix} #version served={} storage={} status={status}",
            version["served"], version["storage"]
        ));
        for column in version["additionalPrinterColumns"]
            .as_array()
            .into_iter()
            .flatten()
        {
            lines.push(format!(
                "{prefix} #column {} {} {} priority={}",
                text(column, "/name"),
                text(column, "/type"),
                text(column, "/jsonPath"),
                column["priority"].as_i64().unwrap_or(0)
            ));
        }
        walk(
            &prefix,
            "",
            &version["schema"]["openAPIV3Schema"],
            false,
            &mut lines,
        );
    }
    lines
}

/// Adds the line of `schema` at `path` and of all schemas in it.
fn walk(prefix: &str, path: &str, schema: &Value, required: bool, lines: &mut Vec<String>) {
    let shown = if path.is_empty() { "." } else { path };
    let mut line = format!(
        "{prefix} {shown} {} {}",
        or_dash(text(schema, "/type")),
        or_dash(text(schema, "/format"))
    );
    if required {
        line.push_str(" required");
    }
    for (keyword, name) in KEYWORDS {
        if let Some(value) = schema.get(keyword) {
            line.push_str(&format!(" {name}={}", plain(value)));
        }
    }
    lines.push(line);

    let needed: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(
            prefix,
            &format!("{path}.{name}"),
            property,
            needed.contains(&name.as_str()),
            lines,
        );
    }
    if let Some(items) = schema.get("items") {
        walk(prefix, &format!("{path}[]"), items, false, lines);
    }
    if let Some(values) = schema.get("additionalProperties") {
        walk(prefix, &format!("{path}{{}}"), values, false, lines);
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A value as JSON; `1.0` is written `1`, since a typed CRD holds limits as floating point numbers.
fn plain(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 => format!("{number:.0}"),
        _ => value.to_string(),
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}
