//! Webhook configurations and admission policies: the objects. Module `admission` evaluates them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, default, each, items, list, made, object, object_mut, text},
    },
    printer::{AGE, Column, NAME, Printer, UNSET, View, integer, words},
    schema::cel::free::Expression,
    status::{FieldError, Problem},
};

mod mutating_admission_policy;
mod mutating_admission_policy_binding;
mod mutating_webhook_configuration;
mod validating_admission_policy;
mod validating_admission_policy_binding;
mod validating_webhook_configuration;
mod webhooks;

/// The rows of the group, in the order of discovery.
pub(super) const KINDS: &[&KindDef] = &[
    &mutating_admission_policy::DEF,
    &mutating_admission_policy_binding::DEF,
    &mutating_webhook_configuration::DEF,
    &validating_admission_policy::DEF,
    &validating_admission_policy_binding::DEF,
    &validating_webhook_configuration::DEF,
];

/// Match conditions of one object.
const MOST_CONDITIONS: usize = 64;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

/// The printer of webhook configurations.
const WEBHOOKS: Printer = Printer::of(&[
    NAME,
    integer(
        "Webhooks",
        "Webhooks indicates the number of webhooks configured in this object",
    )
    .shows(|configuration| {
        let count = configuration.count("webhooks");
        count.into()
    }),
    AGE,
]);

const PARAMETERS: Column = words(
    "ParamKind",
    "ParamKind specifies the kind of resources used to parameterize this policy",
);

/// The printer of bindings.
const BINDING: Printer = Printer::of(&[
    NAME,
    words(
        "PolicyName",
        "PolicyName indicates the policy definition which the policy binding binded to",
    )
    .at("spec.policyName"),
    words(
        "ParamRef",
        "ParamRef indicates the param resource which sets the configration param",
    )
    .shows(|binding| {
        let text = |name: &str| binding.text(&format!("spec.paramRef.{name}"));
        match (text("namespace"), text("name")) {
            _ if binding.at("spec.paramRef").is_none() => UNSET.into(),
            ("", "") => binding.selector_text("spec.paramRef.selector").into(),
            ("", name) => format!("*/{name}").into(),
            (namespace, name) => format!("{namespace}/{name}").into(),
        }
    }),
    AGE,
]);

fn parameters(policy: &View<'_>) -> String {
    match policy.at("spec.paramKind") {
        Some(_) => format!(
            "{}/{}",
            policy.text("spec.paramKind.apiVersion"),
            policy.text("spec.paramKind.kind")
        ),
        None => UNSET.to_owned(),
    }
}

fn webhook_defaults(webhook: &mut Object) {
    default(webhook, "failurePolicy", "Fail");
    default(webhook, "timeoutSeconds", 10);
    match_defaults(webhook, "rules");
    if let Some(service) =
        object_mut(webhook, "clientConfig").and_then(|config| object_mut(config, "service"))
    {
        default(service, "port", 443);
    }
}

fn match_defaults(matching: &mut Object, rules: &str) {
    default(matching, "matchPolicy", "Equivalent");
    for selector in ["namespaceSelector", "objectSelector"] {
        matching.entry(selector).or_insert_with(|| json!({}));
    }
    for rules in [rules, "excludeResourceRules"] {
        each(matching, rules, |rule| default(rule, "scope", "*"));
    }
}

fn policy_defaults(policy: &mut Object) {
    let spec = made(policy, "spec");
    default(spec, "failurePolicy", "Fail");
    if let Some(constraints) = object_mut(spec, "matchConstraints") {
        match_defaults(constraints, "resourceRules");
    }
}

fn binding_defaults(binding: &mut Object) {
    let spec = made(binding, "spec");
    if let Some(resources) = object_mut(spec, "matchResources") {
        match_defaults(resources, "resourceRules");
    }
}

fn qualified(name: &str, field: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(field, "");
        return;
    }
    let problems = names::dns_subdomain(name, false);
    if problems.is_empty() {
        if name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.invalid(field, name, detail);
        }
        return;
    }
    errors.all_invalid(field, name, problems);
}

fn selectors(matching: &Object, path: &str, errors: &mut Errors) {
    for key in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = object(matching, key) {
            errors.extend(names::label_selector(selector, &format!("{path}.{key}")));
        }
    }
}

fn rule(rule: &Object, path: &str, errors: &mut Errors) {
    let operations = all(rule, "operations", path, "operations", errors);
    for (at, operation) in operations.iter().enumerate() {
        errors.one_of(format!("{path}.operations[{at}]"), operation, &OPERATIONS);
    }
    all(rule, "apiGroups", path, "API groups", errors);
    let versions = all(rule, "apiVersions", path, "API versions", errors);
    for at in (0..versions.len()).filter(|at| versions[*at].is_empty()) {
        errors.required(format!("{path}.apiVersions[{at}]"), "");
    }
    let resources: Vec<&str> = list(rule, "resources").iter().filter_map(Value::as_str).collect();
    if resources.is_empty() {
        errors.required(format!("{path}.resources"), "");
    }
    for at in (0..resources.len()).filter(|at| resources[*at].is_empty()) {
        errors.required(format!("{path}.resources[{at}]"), "");
    }
    if resources.len() > 1 && resources.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.invalid(format!("{path}.resources"), resources, detail);
    }
    if let Some(Value::String(scope)) = rule.get("scope") {
        errors.one_of(format!("{path}.scope"), scope, &["*", "Cluster", "Namespaced"]);
    }
}

/// A list that is not empty, and has nothing beside a `*`.
fn all<'a>(rule: &'a Object, key: &str, path: &str, called: &str, errors: &mut Errors) -> Vec<&'a str> {
    let values: Vec<&str> = list(rule, key).iter().filter_map(Value::as_str).collect();
    if values.is_empty() {
        errors.required(format!("{path}.{key}"), "");
    }
    if values.len() > 1 && values.contains(&"*") {
        let detail = format!("if '*' is present, must not specify other {called}");
        errors.invalid(format!("{path}.{key}"), values.clone(), &detail);
    }
    values
}

fn conditions(parent: &Object, path: &str, errors: &mut Errors) {
    let conditions = list(parent, "matchConditions");
    if conditions.len() > MOST_CONDITIONS {
        errors.push(FieldError::new(
            format!("{path}.matchConditions"),
            Problem::TooMany(conditions.len().into()),
            format!("must have at most {MOST_CONDITIONS} items"),
        ));
        return;
    }
    let mut seen = BTreeSet::new();
    for (path, condition) in items(parent, "matchConditions", path) {
        match text(condition, "expression").trim() {
            "" => errors.required(format!("{path}.expression"), ""),
            expression => compiles(expression, "bool", &format!("{path}.expression"), errors),
        }
        let name = text(condition, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "");
        } else {
            errors.all_invalid(&format!("{path}.name"), name, names::qualified_name(name));
            if !seen.insert(name) {
                errors.duplicate(format!("{path}.name"), name);
            }
        }
    }
}

/// Checks that an expression compiles and, as far as that is known, has the wanted type.
fn compiles(expression: &str, wanted: &str, field: &str, errors: &mut Errors) {
    match Expression::compile(expression) {
        Err(problem) => {
            errors.invalid(field, expression, &format!("compilation failed: {problem}"));
        }
        Ok(_) if wanted.is_empty() => {}
        Ok(compiled) => {
            if let Some(value) = compiled.constant()
                && value.type_name() != wanted
            {
                let detail = format!("must evaluate to {wanted} but got {}", value.type_name());
                errors.invalid(field, expression, &detail);
            }
        }
    }
}

/// Validates the common part of both kinds of policies.
fn policy(spec: &Object, errors: &mut Errors) {
    errors.required_one_of(
        "spec.failurePolicy",
        text(spec, "failurePolicy"),
        &FAILURE_POLICIES,
    );
    if let Some(kind) = object(spec, "paramKind") {
        for key in ["apiVersion", "kind"] {
            errors.needs(kind, "spec.paramKind", key);
        }
    }
    match object(spec, "matchConstraints") {
        None => errors.required("spec.matchConstraints", ""),
        Some(constraints) => {
            match_resources(constraints, "spec.matchConstraints", errors);
            if list(constraints, "resourceRules").is_empty() {
                errors.required("spec.matchConstraints.resourceRules", "");
            }
        }
    }
    conditions(spec, "spec", errors);
    let mut seen = BTreeSet::new();
    for (path, variable) in items(spec, "variables", "spec") {
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(format!("{path}.name"), "name is not specified");
        } else if !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        match text(variable, "expression").trim() {
            "" => errors.required(format!("{path}.expression"), "expression is not specified"),
            expression => compiles(expression, "", &format!("{path}.expression"), errors),
        }
    }
}

fn match_resources(matching: &Object, path: &str, errors: &mut Errors) {
    if let Some(Value::String(policy)) = matching.get("matchPolicy") {
        errors.one_of(format!("{path}.matchPolicy"), policy, &["Equivalent", "Exact"]);
    }
    selectors(matching, path, errors);
    for key in ["resourceRules", "excludeResourceRules"] {
        for (path, rule) in items(matching, key, path) {
            self::rule(rule, &path, errors);
        }
    }
}

fn binding(spec: &Object, errors: &mut Errors) {
    match text(spec, "policyName") {
        "" => errors.required("spec.policyName", ""),
        name => errors.all_invalid("spec.policyName", name, names::dns_subdomain(name, false)),
    }
    if let Some(reference) = object(spec, "paramRef") {
        match (text(reference, "name"), object(reference, "selector")) {
            ("", None) => errors.required("spec.paramRef.name", "one of name or selector must be specified"),
            ("", Some(selector)) => {
                errors.extend(names::label_selector(selector, "spec.paramRef.selector"));
            }
            (name, Some(_)) => {
                let detail = "name and selector are mutually exclusive";
                errors.forbidden("spec.paramRef.name", &format!("{name}: {detail}"));
            }
            (_, None) => {}
        }
        errors.required_one_of(
            "spec.paramRef.parameterNotFoundAction",
            text(reference, "parameterNotFoundAction"),
            &["Allow", "Deny"],
        );
    }
    if let Some(resources) = object(spec, "matchResources") {
        match_resources(resources, "spec.matchResources", errors);
    }
}
