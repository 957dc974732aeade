//! The smaller parts of a CRD's versions: printer columns, subresources, selectable fields, and the conversion.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{errors::one_of, openapi::schema_of, versions::Part};
use crate::{
    scale,
    schema::declared::{list, object, text},
    status::{FieldError, Problem},
};

/// The maximum number of selectable fields.
const SELECTABLE: usize = 8;

/// The errors of `additionalPrinterColumns`.
pub(super) fn columns(part: &Part<'_>) -> Vec<FieldError> {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = [
        "byte",
        "date",
        "date-time",
        "double",
        "float",
        "int32",
        "int64",
        "password",
    ];
    let mut errors = Vec::new();
    for (at, column) in part
        .value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = |name: &str| format!("{}[{at}].{name}", part.path);
        let word = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default();
        if word("name").is_empty() {
            errors.push(FieldError::required(path("name"), ""));
        }
        let kind = word("type");
        if kind.is_empty() {
            errors.push(FieldError::required(
                path("type"),
                format!("must be one of {}", TYPES.join(",")),
            ));
        } else if !TYPES.contains(&kind) {
            errors.push(FieldError::invalid(
                path("type"),
                kind,
                format!("must be one of {}", TYPES.join(",")),
            ));
        }
        let format = word("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.push(FieldError::invalid(
                path("format"),
                format,
                format!("must be one of {}", FORMATS.join(",")),
            ));
        }
        let json_path = word("jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(path("JSONPath"), ""));
        } else if !json_path.starts_with('.') {
            errors.push(FieldError::invalid(
                path("JSONPath"),
                json_path,
                "must be a simple json path starting with .",
            ));
        }
    }
    errors
}

/// The errors of `subresources`.
pub(super) fn subresources(part: &Part<'_>) -> Vec<FieldError> {
    let Some(declared) = part
        .value
        .and_then(|value| value.get("scale"))
        .and_then(Value::as_object)
    else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for (name, roots, required) in [
        ("specReplicasPath", &[".spec."][..], true),
        ("statusReplicasPath", &[".status."], true),
        ("labelSelectorPath", &[".spec.", ".status."], false),
    ] {
        let field = format!("{}.scale.{name}", part.path);
        let path = text(declared, name).unwrap_or_default();
        if path.is_empty() {
            if required {
                errors.push(FieldError::required(field, ""));
            }
        } else if scale::steps(path).is_none() {
            errors.push(FieldError::invalid(
                field,
                path,
                "must be a simple json path starting with .",
            ));
        } else if !roots.iter().any(|root| path.starts_with(root)) {
            let under = match roots {
                [root] => format!("should be a json path under {}", root.trim_end_matches('.')),
                _ => "should be a json path under either .spec or .status".to_owned(),
            };
            errors.push(FieldError::invalid(field, path, under));
        }
    }
    errors
}

/// The errors of `selectableFields`.
pub(super) fn selectable(part: &Part<'_>) -> Vec<FieldError> {
    const SCALAR: &str = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
    let mut errors = Vec::new();
    let fields = part
        .value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if fields.len() > SELECTABLE {
        errors.push(FieldError::new(
            part.path.as_str(),
            Problem::TooMany(fields.len().into()),
            format!("must have at most {SELECTABLE} items"),
        ));
    }
    let mut seen = BTreeSet::new();
    for (at, field) in fields.iter().enumerate() {
        let at = format!("{}[{at}].jsonPath", part.path);
        let path = field.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        if path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        if !seen.insert(path) {
            errors.push(FieldError::duplicate(at.as_str(), path));
        }
        let steps = scale::steps(path).filter(|_| !path.contains('['));
        let Some(steps) = steps else {
            errors.push(FieldError::invalid(
                at,
                path,
                "is an invalid path: must be a simple json path starting with .",
            ));
            continue;
        };
        let found = schema_of(part.version).and_then(|root| {
            steps.iter().try_fold(root, |schema, step| {
                object(schema, "properties").and_then(|fields| object(fields, step))
            })
        });
        match found.filter(|_| steps[0] != "metadata") {
            None => errors.push(FieldError::invalid(
                at,
                path,
                "is an invalid path: does not refer to a valid field",
            )),
            Some(schema) if !matches!(text(schema, "type"), Some("string" | "boolean" | "integer")) => {
                errors.push(FieldError::invalid(at, path, SCALAR));
            }
            Some(_) => {}
        }
    }
    errors
}

/// The errors of `spec.conversion`.
pub(super) fn conversion(spec: &Map<String, Value>) -> Vec<FieldError> {
    const PATH: &str = "spec.conversion";
    const NOT: &str = "should not be set when strategy is not set to Webhook";
    let Some(conversion) = object(spec, "conversion") else {
        return Vec::new();
    };
    let strategy = text(conversion, "strategy").unwrap_or_default();
    let mut errors: Vec<FieldError> = one_of(&format!("{PATH}.strategy"), strategy, &["None", "Webhook"])
        .into_iter()
        .collect();
    let none = Map::new();
    let webhook = object(conversion, "webhook");
    let client = webhook.and_then(|webhook| object(webhook, "clientConfig"));
    let reviews: Vec<&Value> = list(webhook.unwrap_or(&none), "conversionReviewVersions").collect();
    let client_path = format!("{PATH}.webhookClientConfig");
    let reviews_path = format!("{PATH}.conversionReviewVersions");
    if strategy != "Webhook" {
        if client.is_some() {
            errors.push(FieldError::forbidden(client_path, NOT));
        }
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(reviews_path, NOT));
        }
        return errors;
    }
    match client {
        None => errors.push(FieldError::required(
            client_path,
            "required when strategy is set to Webhook",
        )),
        Some(client) => {
            let (url, service) = (client.contains_key("url"), client.contains_key("service"));
            if url == service {
                errors.push(FieldError::required(
                    client_path,
                    "exactly one of url or service is required",
                ));
            }
        }
    }
    if reviews.is_empty() {
        errors.push(FieldError::required(reviews_path, ""));
    } else if !reviews
        .iter()
        .any(|one| matches!(one.as_str(), Some("v1" | "v1beta1")))
    {
        errors.push(FieldError::new(
            reviews_path,
            Problem::Invalid(reviews.into_iter().cloned().collect::<Vec<_>>().into()),
            "must include at least one of v1, v1beta1",
        ));
    }
    errors
}
