//! Validation rules in CEL that API servers apply to our kinds themselves.
//!
//! Only rules that cost little: a server estimates a rule's cost from the longest list and the longest text
//! that a request can hold, and refuses the whole definition when the estimate is too high. So lists that a
//! rule compares with themselves, and texts that it searches, have limits in the schema, far above what
//! anybody writes; `crds/tests.rs` lists them.
//!
//! What a rule cannot see (labels, the namespace, other objects) is left to `entourage webhook` and to the
//! planners, which refuse it with a condition. Defaults that depend on other fields are theirs, too: a
//! schema has only defaults that always hold.
//! Source: Karmada reference 6.2, and 3.4 for hooks.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};

mod cluster;
mod distribution;
mod hook;
mod overrides;
mod policy;

/// One rule.
pub struct Rule {
    /// Names of the definitions that have it.
    pub crds: &'static [&'static str],
    /// Where in the schema of each version: property names, `[]` for the items of a list. Often one place.
    pub paths: &'static [Path],
    /// The expression; `self` is the value at the path.
    pub rule: &'static str,
    /// What the author of a refused object is told.
    pub message: &'static str,
}

/// A place in a schema.
pub type Path = &'static [&'static str];

/// The rules by what they are about. The one place to add some; each rule has a refused object in
/// `testdata/rules.yaml`.
const RULES: &[&[Rule]] = &[
    cluster::RULES,
    distribution::RULES,
    hook::RULES,
    overrides::RULES,
    policy::RULES,
];

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().flatten()
}

/// Adds the rules of a definition to it.
pub(super) fn add(crd: &mut CustomResourceDefinition) {
    let name = crd.metadata.name.clone().unwrap_or_default();
    for version in &mut crd.spec.versions {
        let Some(root) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        for (crds, paths, most) in overrides::LIMITS {
            for path in paths.iter().filter(|_| crds.contains(&name.as_str())) {
                if let Some(schema) = resolve(root, path) {
                    schema.max_items = Some(*most);
                }
            }
        }
        for rule in rules().filter(|rule| rule.crds.contains(&name.as_str())) {
            for path in rule.paths {
                if let Some(schema) = resolve(root, path) {
                    schema
                        .x_kubernetes_validations
                        .get_or_insert_default()
                        .push(ValidationRule {
                            rule: rule.rule.into(),
                            message: Some(rule.message.into()),
                            ..ValidationRule::default()
                        });
                }
            }
        }
    }
}

/// The schema at a path, if there is one.
fn resolve<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> Option<&'a mut JSONSchemaProps> {
    let Some((step, rest)) = path.split_first() else {
        return Some(schema);
    };
    let next = match (*step, &mut schema.items) {
        ("[]", Some(JSONSchemaPropsOrArray::Schema(items))) => Some(items.as_mut()),
        (name, _) => schema.properties.as_mut()?.get_mut(name),
    };
    resolve(next?, rest)
}

#[cfg(test)]
mod tests;
