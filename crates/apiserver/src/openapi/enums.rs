//! Fields that take one of a few values, from `enums.txt`.

use std::collections::BTreeMap;

use serde_json::Value;

/// A value, and what its documentation says of it.
type Choice = (&'static str, &'static str);

/// The values of every such field. They are read for a document, and dropped with what made it.
#[derive(Debug)]
pub(super) struct Enums {
    /// The values that a field takes, by its short name: `core.v1.PodSpec.dnsPolicy`.
    fields: BTreeMap<&'static str, usize>,
    choices: Vec<Vec<Choice>>,
}

impl Enums {
    /// Reads the table.
    #[must_use]
    pub(super) fn new() -> Self {
        let mut fields = BTreeMap::new();
        let mut choices: Vec<Vec<Choice>> = Vec::new();
        for line in include_str!("enums.txt").lines() {
            if let Some(value) = line.strip_prefix("  ") {
                let (value, text) = value.split_once(": ").unwrap_or((value, ""));
                let value = if value == "\"\"" { "" } else { value };
                choices
                    .last_mut()
                    .into_iter()
                    .for_each(|list| list.push((value, text)));
            } else if !line.is_empty() && !line.starts_with('#') {
                let names = line
                    .split(' ')
                    .map(|name| name.trim_end_matches(['[', ']', '{', '}']));
                fields.extend(names.map(|name| (name, choices.len())));
                choices.push(Vec::new());
            }
        }
        Self { fields, choices }
    }

    /// Adds the values to the schema of a field, of its items, or of the values of a map.
    pub(super) fn add(&self, value: &mut Value, owner: &str, field: &str) {
        let short = owner.trim_start_matches("io.k8s.api.");
        let Some(at) = self.fields.get(format!("{short}.{field}").as_str()) else {
            return;
        };
        let choices = &self.choices[*at];
        let place = match value["type"].as_str() {
            Some("array") => &mut value["items"],
            Some("object") => &mut value["additionalProperties"],
            _ => {
                let mut text = value["description"].as_str().unwrap_or_default().to_owned();
                text += "\n\nPossible enum values:";
                for (value, about) in choices {
                    text += &format!("\n - `{value:?}` {about}");
                    text.truncate(text.trim_end().len());
                }
                value["description"] = text.into();
                value
            }
        };
        place["enum"] = choices.iter().map(|(value, _)| *value).collect();
    }

    /// The fields of the table: owner and field.
    #[cfg(test)]
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.fields.keys().filter_map(|name| name.rsplit_once('.'))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_listed_where_they_stand_and_described_where_they_are_alone() {
        let enums = Enums::new();
        for (field, mut value, expected) in [
            (
                "core.v1.PodSpec.restartPolicy",
                json!({"type": "string", "description": "When."}),
                json!({"type": "string", "enum": ["Always", "Never", "OnFailure"],
                    "description": "When.\n\nPossible enum values:\n - `\"Always\"`\n - `\"Never\"`\n - `\"OnFailure\"`"}),
            ),
            (
                "core.v1.ServiceSpec.ipFamilies",
                json!({"type": "array", "description": "Which.", "items": {"type": "string"}}),
                json!({"type": "array", "description": "Which.", "items": {"type": "string", "enum": ["", "IPv4", "IPv6"]}}),
            ),
            (
                "core.v1.ServiceSpec.sessionAffinity",
                json!({"type": "string", "description": "A."}),
                json!({"type": "string", "enum": ["ClientIP", "None"],
                    "description": "A.\n\nPossible enum values:\n - `\"ClientIP\"` is the Client IP based.\n - `\"None\"` - no session affinity."}),
            ),
            (
                "core.v1.PodSpec.nodeName",
                json!({"type": "string"}),
                json!({"type": "string"}),
            ),
        ] {
            let (owner, name) = field.rsplit_once('.').unwrap();
            enums.add(&mut value, &format!("io.k8s.api.{owner}"), name);
            assert_eq!(value, expected, "{field}");
        }
    }

    #[test]
    fn every_field_of_the_table_exists_and_its_values_are_sorted() {
        let enums = Enums::new();
        for (owner, field) in enums.fields() {
            let schema = crate::kinds::definition(&format!("io.k8s.api.{owner}"));
            assert!(
                schema.properties.contains_key(field),
                "{owner} has no field {field}"
            );
        }
        for choices in &enums.choices {
            assert!(
                choices.len() > 1 && choices.is_sorted_by_key(|(value, _)| *value),
                "{choices:?}"
            );
        }
    }
}
