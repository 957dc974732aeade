//! Webhook configurations and admission policies: the objects. Module `admission` does what they say.

mod webhooks;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kind::{Kind, empty_status};
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, below, default, each, items, list, made, number, object, object_mut, text},
    },
    schema::cel::free::Expression,
    status::{FieldError, Problem},
};

/// Match conditions of one object.
const MOST_CONDITIONS: usize = 64;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

/// ValidatingWebhookConfiguration.
pub(super) static VALIDATING_WEBHOOKS: Kind = Kind {
    kind: "ValidatingWebhookConfiguration",
    has_generation: true,
    defaults: |configuration| each(configuration, "webhooks", webhook_defaults),
    errors: |configuration, errors| webhooks::webhooks(configuration, false, errors),
    ..Kind::PLAIN
};

/// MutatingWebhookConfiguration.
pub(super) static MUTATING_WEBHOOKS: Kind = Kind {
    kind: "MutatingWebhookConfiguration",
    has_generation: true,
    defaults: |configuration| {
        each(configuration, "webhooks", |webhook| {
            webhook_defaults(webhook);
            default(webhook, "reinvocationPolicy", "Never");
        });
    },
    errors: |configuration, errors| webhooks::webhooks(configuration, true, errors),
    ..Kind::PLAIN
};

/// ValidatingAdmissionPolicy.
pub(super) static VALIDATING_POLICY: Kind = Kind {
    kind: "ValidatingAdmissionPolicy",
    has_status: true,
    has_generation: true,
    defaults: policy_defaults,
    created: empty_status,
    errors: |policy, errors| {
        let spec = below(policy, "spec");
        self::policy(spec, errors);
        validations(spec, errors);
    },
    ..Kind::PLAIN
};

/// ValidatingAdmissionPolicyBinding.
pub(super) static VALIDATING_BINDING: Kind = Kind {
    kind: "ValidatingAdmissionPolicyBinding",
    has_generation: true,
    defaults: binding_defaults,
    errors: |binding, errors| {
        let spec = below(binding, "spec");
        self::binding(spec, errors);
        actions(spec, errors);
    },
    ..Kind::PLAIN
};

/// MutatingAdmissionPolicy.
pub(super) static MUTATING_POLICY: Kind = Kind {
    kind: "MutatingAdmissionPolicy",
    has_generation: true,
    defaults: policy_defaults,
    errors: |policy, errors| {
        let spec = below(policy, "spec");
        self::policy(spec, errors);
        mutations(spec, errors);
    },
    ..Kind::PLAIN
};

/// MutatingAdmissionPolicyBinding.
pub(super) static MUTATING_BINDING: Kind = Kind {
    kind: "MutatingAdmissionPolicyBinding",
    has_generation: true,
    defaults: binding_defaults,
    errors: |binding, errors| self::binding(below(binding, "spec"), errors),
    ..Kind::PLAIN
};

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

/// Whether an expression compiles and, as far as that can be told, has a type.
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

/// What both kinds of policies have.
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

fn validations(spec: &Object, errors: &mut Errors) {
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must be specified";
        errors.required("spec.validations", detail);
        errors.required("spec.auditAnnotations", detail);
    }
    for (path, validation) in items(spec, "validations", "spec") {
        let expression = text(validation, "expression").trim();
        if expression.is_empty() {
            errors.required(format!("{path}.expression"), "expression is not specified");
        } else {
            compiles(expression, "bool", &format!("{path}.expression"), errors);
        }
        let said = text(validation, "messageExpression");
        if !said.is_empty() {
            let field = format!("{path}.messageExpression");
            if said.trim().is_empty() {
                errors.invalid(&field, said, "must be non-empty if specified");
            } else {
                compiles(said.trim(), "string", &field, errors);
            }
        }
        let message = text(validation, "message");
        let field = format!("{path}.message");
        if !message.is_empty() && message.trim().is_empty() {
            errors.invalid(&field, message, "message must be non-empty if specified");
        } else if message.trim().contains('\n') {
            errors.invalid(&field, message, "message must not contain line breaks");
        } else if message.is_empty() && expression.contains('\n') {
            let detail = "message must be specified if expression contains line breaks";
            errors.required(&field, detail);
        }
        if let Some(Value::String(reason)) = validation.get("reason") {
            errors.one_of(
                format!("{path}.reason"),
                reason,
                &["Forbidden", "Invalid", "RequestEntityTooLarge"],
            );
        }
    }
    for (path, annotation) in items(spec, "auditAnnotations", "spec") {
        errors.needs(annotation, &path, "key");
        match text(annotation, "valueExpression").trim() {
            "" => errors.required(
                format!("{path}.valueExpression"),
                "valueExpression is not specified",
            ),
            expression => compiles(expression, "", &format!("{path}.valueExpression"), errors),
        }
    }
}

fn mutations(spec: &Object, errors: &mut Errors) {
    if list(spec, "mutations").is_empty() {
        errors.required("spec.mutations", "mutations must contain at least one item");
    }
    for (path, mutation) in items(spec, "mutations", "spec") {
        let kind = text(mutation, "patchType");
        errors.required_one_of(
            format!("{path}.patchType"),
            kind,
            &["ApplyConfiguration", "JSONPatch"],
        );
        for (wanted, key) in [
            ("ApplyConfiguration", "applyConfiguration"),
            ("JSONPatch", "jsonPatch"),
        ] {
            match (kind == wanted, object(mutation, key)) {
                (true, None) => errors.required(format!("{path}.{key}"), ""),
                (true, Some(patch)) => {
                    let field = format!("{path}.{key}.expression");
                    match text(patch, "expression").trim() {
                        "" => errors.required(field, "expression is not specified"),
                        expression => compiles(expression, "", &field, errors),
                    }
                }
                (false, Some(_)) if !kind.is_empty() => {
                    errors.invalid(
                        format!("{path}.{key}"),
                        "{}",
                        &format!("must not be specified when patchType is {kind}"),
                    );
                }
                _ => {}
            }
        }
    }
    errors.required_one_of(
        "spec.reinvocationPolicy",
        text(spec, "reinvocationPolicy"),
        &["IfNeeded", "Never"],
    );
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

fn actions(spec: &Object, errors: &mut Errors) {
    let actions: Vec<&str> = list(spec, "validationActions")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if actions.is_empty() {
        errors.required(
            "spec.validationActions",
            "at least one validation action is required",
        );
    }
    let mut seen = BTreeSet::new();
    for (at, action) in actions.iter().enumerate() {
        let field = format!("spec.validationActions[{at}]");
        errors.one_of(&field, action, &["Audit", "Deny", "Warn"]);
        if !seen.insert(action) {
            errors.duplicate(&field, *action);
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.invalid("spec.validationActions", actions, detail);
    }
}
