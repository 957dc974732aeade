//! Label keys and values, and the selectors made of them.

use serde_json::{Map, Value};

use super::{SUBDOMAIN, bounded, is_subdomain, shape};
use crate::{object::Object, status::FieldError};

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

/// A label key, annotation key (in lower case), finalizer, condition type: a name with an optional domain and a slash before it.
#[must_use]
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(prefix), Some(name), None) => {
            problems.extend(prefix_problems(prefix));
            name
        }
        (Some(name), None, _) => name,
        _ => {
            let rule = shape(&format!("a valid label key {NAME_RULE}"), NAME, &NAME_EXAMPLES);
            return vec![format!(
                "{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        problems.push(shape(&format!("name part {NAME_RULE}"), NAME, &NAME_EXAMPLES));
    }
    problems
}

fn prefix_problems(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut problems = Vec::new();
    if prefix.len() > 253 {
        problems.push("prefix part must be no more than 253 bytes".to_owned());
    }
    if !is_subdomain(prefix) {
        problems.push(shape(
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    problems
}

/// A label value: empty, or a name without a domain.
#[must_use]
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    if !text.is_empty() && !is_name(text) {
        problems.push(shape(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

/// A map of labels below `field`: keys and values.
#[must_use]
pub(crate) fn labels(labels: &Map<String, Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels {
        let value = value.as_str().unwrap_or_default();
        errors.extend(
            qualified_name(key)
                .into_iter()
                .map(|problem| FieldError::invalid(field, key.as_str(), problem)),
        );
        errors.extend(
            label_value(value)
                .into_iter()
                .map(|problem| FieldError::invalid(field, value, problem)),
        );
    }
    errors
}

/// A LabelSelector (`matchLabels`, `matchExpressions`) below `field`. Values of expressions are not checked, as in most kinds.
#[must_use]
pub(crate) fn label_selector(selector: &Object, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(Value::Object(wanted)) = selector.get("matchLabels") {
        errors.extend(labels(wanted, &format!("{field}.matchLabels")));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (at, expression) in expressions.into_iter().flatten().enumerate() {
        let field = format!("{field}.matchExpressions[{at}]");
        let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
        let values = expression
            .get("values")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        match text("operator") {
            "In" | "NotIn" if values == 0 => errors.push(FieldError::required(
                format!("{field}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if values > 0 => errors.push(FieldError::forbidden(
                format!("{field}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{field}.operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = text("key");
        errors.extend(
            qualified_name(key)
                .into_iter()
                .map(|problem| FieldError::invalid(format!("{field}.key"), key, problem)),
        );
    }
    errors
}

fn is_name(text: &str) -> bool {
    bounded(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_and_values_are_judged_as_the_server_does() {
        for good in ["a", "example.com/B_c.d", &"k".repeat(63)] {
            assert!(qualified_name(good).is_empty(), "{good}");
        }
        for (bad, problems) in [
            ("", 2),
            ("/x", 1),
            ("a/b/c", 1),
            ("Bad_/x", 1),
            ("-bad", 1),
            ("/", 3),
        ] {
            assert_eq!(qualified_name(bad).len(), problems, "{bad}");
        }
        assert!(label_value("").is_empty());
        assert_eq!(label_value("b-").len(), 1);
        assert_eq!(label_value(&"-".repeat(64)).len(), 2);
    }

    #[test]
    fn a_selector_names_the_operator_and_the_values_it_lacks() {
        let selector = json!({"matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "b", "operator": "Exists", "values": ["x"]},
            {"key": "c c", "operator": "Like"},
        ]});
        let errors = label_selector(selector.as_object().expect("an object"), "spec.selector");
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.selector.matchExpressions[0].values",
                "spec.selector.matchExpressions[1].values",
                "spec.selector.matchExpressions[2].operator",
                "spec.selector.matchExpressions[2].key",
            ]
        );
    }
}
