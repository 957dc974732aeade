//! The errors in a CRD, in the order of a kube-apiserver.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{columns, list_in, openapi, structural, versions};
use crate::{
    names,
    object::{Object, metadata},
    schema::declared::{list, object, text},
    status::{FieldError, Problem},
};

/// The annotation that CRDs in the groups of Kubernetes need.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// All errors of a new CRD. O(schemas).
pub(super) fn of(crd: &Object) -> Vec<FieldError> {
    let none = Map::new();
    let spec = object(crd, "spec").unwrap_or(&none);
    let mut errors = Vec::new();
    let name = metadata(crd)
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let wanted = format!(
        "{}.{}",
        named(spec, "plural"),
        text(spec, "group").unwrap_or_default()
    );
    if name != wanted {
        errors.push(FieldError::invalid(
            "metadata.name",
            name,
            r#"must be spec.names.plural+"."+spec.group"#,
        ));
    }
    errors.extend(of_spec(crd, spec));
    errors.extend(stored_versions(crd));
    errors.extend(approval(crd, spec));
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(true)) {
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    errors
}

/// All errors of a changed CRD: some things never change.
pub(super) fn of_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = of(new)
        .into_iter()
        .filter(|error| error.field != "metadata.name")
        .collect();
    fn at_path(crd: &Object, path: &[&str]) -> Value {
        let spec = crd.get("spec");
        path.iter()
            .try_fold(spec.unwrap_or(&Value::Null), |value, step| value.get(*step))
            .cloned()
            .unwrap_or_default()
    }
    let established = list(object(new, "status").unwrap_or(&Map::new()), "conditions").any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Established")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    });
    let mut fixed: Vec<&[&str]> = Vec::new();
    if established {
        fixed.extend([&["scope"][..], &["names", "kind"]]);
    }
    fixed.extend([&["group"][..], &["names", "plural"]]);
    for path in fixed {
        let value = at_path(new, path);
        if value != at_path(old, path) {
            errors.push(FieldError::invalid(
                format!("spec.{}", path.join(".")),
                value,
                "field is immutable",
            ));
        }
    }
    errors
}

fn named<'a>(spec: &'a Map<String, Value>, name: &str) -> &'a str {
    object(spec, "names")
        .and_then(|names| text(names, name))
        .unwrap_or_default()
}

fn of_spec(crd: &Object, spec: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(group_error(text(spec, "group").unwrap_or_default()));
    errors.extend(one_of(
        "spec.scope",
        text(spec, "scope").unwrap_or_default(),
        &["Cluster", "Namespaced"],
    ));
    let all = list_in(crd, "versions");
    for (at, version) in all.iter().enumerate() {
        if openapi::schema_of(version).is_none() {
            errors.push(FieldError::required(
                format!("spec.versions[{at}].schema.openAPIV3Schema"),
                "",
            ));
        }
    }
    let schemas = versions::parts(&all, "schema", "validation");
    let subresources = versions::parts(&all, "subresources", "subresources");
    let printed = versions::parts(&all, "additionalPrinterColumns", "additionalPrinterColumns");
    let selectable = versions::parts(&all, "selectableFields", "selectableFields");
    let status = all
        .iter()
        .any(|version| object(version, "subresources").is_some_and(|sub| sub.contains_key("status")));
    let mut seen = BTreeSet::new();
    let mut unique = true;
    for (at, version) in all.iter().enumerate() {
        let name = text(version, "name").unwrap_or_default();
        unique &= seen.insert(name);
        errors.extend(label(&format!("spec.versions[{at}].name"), name));
        errors.extend(deprecation(
            version,
            &format!("spec.versions[{at}].deprecationWarning"),
        ));
        if let Some(part) = schemas.per_version.get(at) {
            errors.extend(of_schema(part, status));
        }
        if let Some(part) = subresources.per_version.get(at) {
            errors.extend(columns::subresources(part));
        }
        if let Some(part) = printed.per_version.get(at) {
            errors.extend(columns::columns(part));
        }
        if let Some(part) = selectable.per_version.get(at) {
            errors.extend(columns::selectable(part));
        }
    }
    let shown = || Problem::InvalidText(versions::shown(spec));
    if !unique {
        errors.push(FieldError::new(
            "spec.versions",
            shown(),
            "must contain unique version names",
        ));
    }
    if all.iter().filter(|version| versions::is_storage(version)).count() != 1 {
        errors.push(FieldError::new(
            "spec.versions",
            shown(),
            "must have exactly one version marked as storage version",
        ));
    }
    // Errors in the old single version are still reported.
    if let Some(first) = all.first() {
        errors.extend(label("spec.version", text(first, "name").unwrap_or_default()));
    }
    errors.extend(name_errors(spec));
    if let Some(part) = &schemas.shared {
        errors.extend(of_schema(part, status));
    }
    if let Some(part) = &subresources.shared {
        errors.extend(columns::subresources(part));
    }
    if let Some(part) = &printed.shared {
        errors.extend(columns::columns(part));
    }
    if let Some(part) = &selectable.shared {
        errors.extend(columns::selectable(part));
    }
    errors.extend(columns::conversion(spec));
    errors
}

/// The errors of a schema: of its fields, of the costs of its rules, of its structure, of its defaults.
fn of_schema(part: &versions::Part<'_>, status: bool) -> Vec<FieldError> {
    let Some(root) = part
        .value
        .and_then(|schema| object(schema.as_object()?, "openAPIV3Schema"))
    else {
        return Vec::new();
    };
    let path = format!("{}.openAPIV3Schema", part.path);
    let mut errors = openapi::root_errors(root, &path, status);
    let checked = openapi::errors(root, &path);
    let structural = openapi::is_structural(root);
    errors.extend(checked);
    if openapi::is_too_deep(root) {
        return errors;
    }
    errors.extend(crate::schema::cel::admit::errors(root, &path, errors.is_empty()));
    if structural {
        let found = structural::errors(root, &path);
        if found.is_empty() {
            errors.extend(super::defaulted::errors(root, &path));
        }
        errors.extend(found);
    }
    errors
}

fn group_error(group: &str) -> Option<FieldError> {
    if group.is_empty() {
        return Some(FieldError::required("spec.group", ""));
    }
    let problems = names::dns_subdomain(group, false);
    if !problems.is_empty() {
        return Some(FieldError::invalid("spec.group", group, problems.join(",")));
    }
    (!group.contains('.'))
        .then(|| FieldError::invalid("spec.group", group, "should be a domain with at least one dot"))
}

/// A required word out of a few.
pub(super) fn one_of(path: &str, value: &str, possible: &[&str]) -> Option<FieldError> {
    if value.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    (!possible.contains(&value)).then(|| FieldError::not_supported(path, value, possible))
}

fn label(path: &str, value: &str) -> Option<FieldError> {
    let problems = names::dns1035_label(value, false);
    (!problems.is_empty()).then(|| FieldError::invalid(path, value, problems.join(",")))
}

fn deprecation(version: &Map<String, Value>, path: &str) -> Option<FieldError> {
    const LONGEST: usize = 256;
    let warning = text(version, "deprecationWarning")?;
    let problem = if version.get("deprecated") != Some(&Value::Bool(true)) {
        "can only be set for deprecated versions"
    } else if warning.trim() != warning {
        "must not start or end with whitespace"
    } else if warning.is_empty() {
        "must not be an empty string"
    } else if warning.len() > LONGEST {
        "must be <= 256 characters long"
    } else if warning.chars().any(char::is_control) {
        "must only contain printable UTF-8 characters; non-printable character found"
    } else {
        return None;
    };
    Some(FieldError::invalid(path, warning, problem))
}

fn name_errors(spec: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["plural", "singular", "kind", "listKind"] {
        if named(spec, name).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{name}"), ""));
        }
    }
    for name in ["plural", "singular"] {
        let value = named(spec, name);
        if !value.is_empty() {
            errors.extend(label(&format!("spec.names.{name}"), value));
        }
    }
    for name in ["kind", "listKind"] {
        let value = named(spec, name);
        let problems = names::dns1035_label(&value.to_lowercase(), false);
        if !value.is_empty() && !problems.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                problems.join(",")
            );
            errors.push(FieldError::invalid(format!("spec.names.{name}"), value, detail));
        }
    }
    let each = |name: &str| -> Vec<FieldError> {
        let none = Map::new();
        list(object(spec, "names").unwrap_or(&none), name)
            .enumerate()
            .filter_map(|(at, value)| label(&format!("spec.names.{name}[{at}]"), value.as_str()?))
            .collect()
    };
    errors.extend(each("shortNames"));
    let kind = named(spec, "kind");
    if !kind.is_empty() && kind == named(spec, "listKind") {
        errors.push(FieldError::invalid(
            "spec.names.listKind",
            kind,
            "kind and listKind may not be the same",
        ));
    }
    errors.extend(each("categories"));
    errors
}

/// The versions that objects may be stored as are all there, and the storage version is one of them.
pub(super) fn stored_versions(crd: &Object) -> Vec<FieldError> {
    const PATH: &str = "status.storedVersions";
    let none = Map::new();
    let stored = object(crd, "status")
        .unwrap_or(&none)
        .get("storedVersions")
        .cloned()
        .unwrap_or_default();
    let names: Vec<&str> = stored
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() {
        return vec![FieldError::invalid(
            PATH,
            stored.clone(),
            "must have at least one stored version",
        )];
    }
    let mut errors = Vec::new();
    let versions = list_in(crd, "versions");
    for version in &versions {
        let name = text(version, "name").unwrap_or_default();
        if versions::is_storage(version) && !names.contains(&name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(PATH, stored.clone(), detail));
        }
    }
    for (at, name) in names.iter().enumerate() {
        if versions.iter().any(|version| text(version, "name") == Some(name)) {
            continue;
        }
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("{PATH}[{at}]"), *name, detail));
    }
    errors
}

/// CRDs in the groups of Kubernetes name their approval.
fn approval(crd: &Object, spec: &Map<String, Value>) -> Option<FieldError> {
    const MORE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let group = text(spec, "group").unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|suffix| group == *suffix || group.ends_with(&format!(".{suffix}")));
    if !protected {
        return None;
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    let reported = metadata(crd)
        .get("annotations")
        .and_then(|annotations| annotations.get(APPROVAL))
        .and_then(Value::as_str)
        .unwrap_or_default();
    if reported.is_empty() {
        return Some(FieldError::required(
            field,
            format!("protected groups must have approval annotation {APPROVAL:?}, {MORE}"),
        ));
    }
    let is_url = reported
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    (!is_url && !reported.starts_with("unapproved")).then(|| {
        FieldError::invalid(
            field,
            reported,
            format!(
                "protected groups must have approval annotation {APPROVAL:?} with either a URL or a reason starting with \"unapproved\", {MORE}"
            ),
        )
    })
}
