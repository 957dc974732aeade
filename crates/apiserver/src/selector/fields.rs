//! Field selectors: `metadata.name=a,spec.nodeName!=b`, and the selectable fields of each kind.

use std::collections::BTreeMap;

use crate::{object::Object, resource::Resource};

/// The field that every kind has.
pub(super) const NAME: &str = "metadata.name";

/// The field that every namespaced kind has, and cluster-scoped ones without fields of their own.
pub(super) const NAMESPACE: &str = "metadata.namespace";

/// One condition: a field has a value, or has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) field: String,
    pub(super) value: String,
    pub(super) negated: bool,
}

impl Term {
    pub(super) fn matches(&self, value: &str) -> bool {
        (self.value == value) != self.negated
    }
}

type Parsed<T> = std::result::Result<T, String>;

/// The conditions, in byte order of how they are written. O(length).
pub(super) fn parse(text: &str) -> Parsed<Vec<Term>> {
    let mut parts = split(text);
    parts.sort_unstable();
    let mut terms = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let at = part.find("!=").into_iter().chain(part.find('=')).min();
        let Some(at) = at else {
            return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
        };
        let (field, rest) = part.split_at(at);
        let negated = rest.starts_with('!');
        let value = rest
            .strip_prefix("!=")
            .or_else(|| rest.strip_prefix("=="))
            .unwrap_or(&rest[1..]);
        terms.push(Term {
            field: field.to_owned(),
            value: unescaped(value)?,
            negated,
        });
    }
    Ok(terms)
}

/// Parts between commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescaped(text: &str) -> Parsed<String> {
    let mut value = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    ));
                }
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(letter)
                ));
            }
            _ => value.push(letter),
        }
    }
    Ok(value)
}

/// The fields of an object of its kind with their values; `None`: the kind has none of its own.
pub(super) fn own(resource: &Resource, object: &Object) -> Option<BTreeMap<String, String>> {
    if (resource.group.as_str(), resource.kind.as_str())
        == ("certificates.k8s.io", "CertificateSigningRequest")
    {
        let signer = object.get("spec").and_then(|spec| spec["signerName"].as_str());
        let signer = signer.unwrap_or_default().to_owned();
        return Some(BTreeMap::from([("spec.signerName".to_owned(), signer)]));
    }
    let mut fields = resource.rules.selectable(object)?;
    // An old name of metadata.name that no version of the API takes.
    fields.remove("name");
    (!fields.is_empty() || resource.custom.is_some()).then_some(fields)
}

/// Names of fields that mean another one: group, kind, requested field, actual field.
const ALIASES: &[(&str, &str, &str, &str)] = &[("", "Pod", "spec.host", "spec.nodeName")];

/// Says what the resource knows each field as; the message of the first that it does not know.
pub(super) fn resolve(resource: &Resource, terms: &mut [Term]) -> Parsed<()> {
    let mut known = own(resource, &Object::new());
    if known.is_none() && resource.custom.is_some() {
        known = Some(BTreeMap::new());
    }
    for term in terms {
        let here = |(group, kind, alias, _): &&(&str, &str, &str, &str)| {
            *group == resource.group && *kind == resource.kind && *alias == term.field
        };
        if let Some((.., meant)) = ALIASES.iter().find(here) {
            (*meant).clone_into(&mut term.field);
            continue;
        }
        let field = &term.field;
        let fits = match &known {
            _ if field == NAME => true,
            None => field == NAMESPACE,
            Some(known) => known.contains_key(field) || field == NAMESPACE && resource.namespaced,
        };
        if fits {
            continue;
        }
        return Err(match known {
            None => format!("{field:?} is not a known field selector: only \"{NAME}\", \"{NAMESPACE}\""),
            Some(_) if resource.group == "batch" => {
                format!("field label {field:?} not supported for {}", resource.kind)
            }
            Some(_) => format!("field label not supported: {field}"),
        });
    }
    Ok(())
}
