//! Validation rules in CEL that a server checks itself on objects of our kinds.
//!
//! The rules are cheap: a server estimates a rule's cost from the longest list and the longest text that a request can hold,
//! and refuses the whole definition when the estimate is too high. So lists that a rule compares with themselves, and texts
//! that it searches, have limits in the schema, far above any real object; `crds/tests.rs` lists them.
//!
//! Facts that a rule cannot see (labels, the namespace, other objects) are checked by `entourage webhook` and by the planners,
//! which reject the object with a condition. They also set defaults that depend on other fields: a schema has only defaults
//! that always hold. Source: Karmada reference 6.2, and 3.4 for webhooks.

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
    /// Names of the definitions that the rule is added to.
    pub crds: &'static [&'static str],
    /// Paths in the schema of each version: property names, `[]` for the items of a list. Usually one.
    pub paths: &'static [Path],
    /// The expression; `self` is the value at the path.
    pub rule: &'static str,
    /// The message to the author of a rejected object.
    pub message: &'static str,
}

/// A path in a schema.
pub type Path = &'static [&'static str];

/// The rules by subject. The one place to add a rule; each rule has a rejected object in `testdata/rules.yaml`.
const RULES: &[&[Rule]] = &[
    cluster::RULES,
    distribution::RULES,
    hook::RULES,
    overrides::RULES,
    policy::RULES,
];

/// All rules.
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

/// The schema at a path, or `None` if there is none.
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
