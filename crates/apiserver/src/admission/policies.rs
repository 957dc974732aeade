//! Admission policies in CEL: they refuse writes, warn about them, or change them.
//!
//! Costs: one list of the policies for each write; only those that match are compiled and evaluated, all within one
//! budget of steps.

use serde_json::Value;

use super::request::{Request, all, spec};
use crate::{
    admission::Context,
    decode,
    kinds::workloads::selects,
    object::{
        Object, field, metadata,
        tree::{below, list, object, text},
    },
    patch::{self, PatchKind},
    resource::{Resource, about},
    schema::{
        Schema,
        cel::{
            OUT_OF_BUDGET,
            free::{self, Expression, Seen},
        },
    },
    status::{Result, Status},
};

/// One policy, to be evaluated with one binding and one set of parameters.
struct Case<'a> {
    policy: &'a Object,
    binding: &'a Object,
    variables: Vec<(&'static str, Seen)>,
}

/// The state that is written and the one before.
#[derive(Clone, Copy)]
pub(crate) struct States<'a> {
    pub(crate) new: Option<&'a Object>,
    pub(crate) old: Option<&'a Object>,
}

/// Refuses what a ValidatingAdmissionPolicy denies. Returns warnings.
pub(crate) fn validate(request: &Request<'_>, states: States<'_>) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    each(request, states, "validatingadmissionpolic", &mut |case| {
        let refused = |reason: &str, why: &str| denied(request, case, reason, why);
        match is_meant(case) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(refused("Invalid", &error)),
        }
        let Some((reason, message)) = failure(case) else {
            return Ok(());
        };
        let actions = list(spec(case.binding), "validationActions");
        if actions.iter().any(|action| action == "Warn") {
            warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                field(case.policy, "name"),
                field(case.binding, "name")
            ));
        }
        if actions.iter().any(|action| action == "Deny") {
            return Err(refused(&reason, &message));
        }
        Ok(())
    })?;
    Ok(warnings)
}

/// Changes what a MutatingAdmissionPolicy wants changed.
pub(crate) fn mutate(request: &Request<'_>, object: &mut Object, old: Option<&Object>) -> Result<()> {
    if !has_any(request.cluster, "mutatingadmissionpolicies") {
        return Ok(());
    }
    let mut current = object.clone();
    let states = States {
        new: Some(object),
        old,
    };
    each(request, states, "mutatingadmissionpolic", &mut |case| {
        let refused = |why: &str| denied(request, case, "Invalid", why);
        match is_meant(case) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return Err(refused(&error)),
        }
        for mutation in list(spec(case.policy), "mutations")
            .iter()
            .filter_map(Value::as_object)
        {
            // The policy sees the changes of those before it.
            let schema = request.resource.schema.get();
            let seen = Seen::of(&Value::Object(current.clone()), schema);
            match case.variables.iter_mut().find(|(name, _)| *name == "object") {
                Some(slot) => slot.1 = seen,
                None => case.variables.push(("object", seen)),
            }
            match mutated(request.resource, mutation, &case.variables, &current) {
                Ok(next) => {
                    current = next;
                    // As for all that follows, also if nothing was changed.
                    request.resource.rules.defaults(&mut current);
                }
                Err(_) if ignores(case.policy) => {}
                Err(error) => return Err(denied(request, case, "Invalid", &error)),
            }
        }
        Ok(())
    })?;
    *object = current;
    Ok(())
}

fn has_any(cluster: &dyn Context, collection: &str) -> bool {
    let collection = format!("admissionregistration.k8s.io/{collection}");
    !cluster.store().list(&collection, "", None, 1).entries.is_empty()
}

/// Calls `tell` for each policy with each of its bindings and parameters that match the write.
fn each(
    request: &Request<'_>,
    states: States<'_>,
    stem: &str,
    tell: &mut dyn FnMut(&mut Case<'_>) -> Result<()>,
) -> Result<()> {
    if !request.is_open() || !has_any(request.cluster, &format!("{stem}ies")) {
        return Ok(());
    }
    free::start();
    let bindings = all(request.cluster, &format!("{stem}ybindings"));
    for policy in all(request.cluster, &format!("{stem}ies")) {
        let constraints = below(spec(&policy), "matchConstraints");
        if list(constraints, "resourceRules").is_empty()
            || !request.is_matched(constraints, states.new, states.old)
        {
            continue;
        }
        let name = field(&policy, "name");
        for binding in bindings
            .iter()
            .filter(|binding| text(spec(binding), "policyName") == name)
        {
            if let Some(resources) = object(spec(binding), "matchResources")
                && !request.is_matched(resources, states.new, states.old)
            {
                continue;
            }
            for params in parameters(request, &policy, binding)? {
                let mut case = Case {
                    policy: &policy,
                    binding,
                    variables: variables(request, states, params.as_ref()),
                };
                add_own_variables(&mut case);
                tell(&mut case)?;
            }
        }
    }
    Ok(())
}

/// The objects that a binding takes its parameters from; `None` for a policy without.
fn parameters(request: &Request<'_>, policy: &Object, binding: &Object) -> Result<Vec<Option<Object>>> {
    let (Some(kind), Some(reference)) = (
        object(spec(policy), "paramKind"),
        object(spec(binding), "paramRef"),
    ) else {
        return Ok(vec![None]);
    };
    let (group, version) = text(kind, "apiVersion")
        .split_once('/')
        .unwrap_or(("", text(kind, "apiVersion")));
    let kinds = request.cluster.kinds();
    let mut found: Vec<Object> = Vec::new();
    if let Some(resource) = kinds.of_kind(group, version, text(kind, "kind")) {
        let namespace = match text(reference, "namespace") {
            "" => request.namespace,
            namespace => namespace,
        };
        match text(reference, "name") {
            "" => {
                let prefix = if resource.namespaced {
                    format!("{namespace}/")
                } else {
                    String::new()
                };
                let selector = object(reference, "selector");
                let every = request.cluster.list(&resource.collection, &prefix);
                found.extend(
                    every
                        .into_iter()
                        .filter(|object| selects(selector, below(metadata(object), "labels"))),
                );
            }
            name => found.extend(
                request
                    .cluster
                    .get(&resource.collection, &resource.key(namespace, name)),
            ),
        }
    }
    if found.is_empty() && text(reference, "parameterNotFoundAction") == "Deny" {
        let case = Case {
            policy,
            binding,
            variables: Vec::new(),
        };
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(denied(request, &case, "Invalid", why));
    }
    Ok(found.into_iter().map(Some).collect())
}

fn variables(
    request: &Request<'_>,
    states: States<'_>,
    params: Option<&Object>,
) -> Vec<(&'static str, Seen)> {
    let schema = request.resource.schema.get();
    let seen = |object: Option<&Object>, schema: &Schema| match object {
        Some(object) => Seen::of(&Value::Object(object.clone()), schema),
        None => Seen::plain(&Value::Null),
    };
    let plain = Schema::default();
    let namespace = if request.resource.namespaced {
        request.namespace_object()
    } else {
        None
    };
    vec![
        ("object", seen(states.new, schema)),
        ("oldObject", seen(states.old, schema)),
        ("request", Seen::plain(&request.to_value())),
        ("params", seen(params, &plain)),
        ("namespaceObject", seen(namespace.as_ref(), &plain)),
    ]
}

/// `variables`: each may use those before it. One that fails is missing.
fn add_own_variables(case: &mut Case<'_>) {
    let mut own: Vec<(String, Seen)> = Vec::new();
    case.variables.push(("variables", Seen::map(&own)));
    let at = case.variables.len() - 1;
    for variable in list(spec(case.policy), "variables")
        .iter()
        .filter_map(Value::as_object)
    {
        let value = Expression::compile(text(variable, "expression"))
            .and_then(|expression| expression.run(&case.variables));
        if let Ok(value) = value {
            own.push((text(variable, "name").to_owned(), value));
            case.variables[at].1 = Seen::map(&own);
        }
    }
}

fn ignores(policy: &Object) -> bool {
    text(spec(policy), "failurePolicy") == "Ignore"
}

/// True if all match conditions hold. One that is false excludes the write whatever the results of the others.
fn is_meant(case: &Case<'_>) -> std::result::Result<bool, String> {
    let met = conditions(spec(case.policy), &case.variables);
    match met {
        Err(_) if ignores(case.policy) => Ok(false),
        met => met,
    }
}

/// The match conditions of a policy or webhook.
pub(super) fn conditions(
    parent: &Object,
    variables: &[(&'static str, Seen)],
) -> std::result::Result<bool, String> {
    let mut failed = Vec::new();
    for condition in list(parent, "matchConditions")
        .iter()
        .filter_map(Value::as_object)
    {
        let result = evaluated(text(condition, "expression"), variables);
        match result.map(|value| value.truth()) {
            Ok(Some(true)) => {}
            Ok(_) => return Ok(false),
            Err(error) if error == OUT_OF_BUDGET => return Err(error),
            Err(error) => failed.push(error),
        }
    }
    match failed.len() {
        0 => Ok(true),
        1 => Err(failed.remove(0)),
        _ => Err(format!("[{}]", failed.join(", "))),
    }
}

/// The value of an expression; the error names it, unless the expressions before it used up the budget.
fn evaluated(source: &str, variables: &[(&'static str, Seen)]) -> std::result::Result<Seen, String> {
    let result = Expression::compile(source).and_then(|expression| expression.run(variables));
    result.map_err(|error| match error.as_str() {
        OUT_OF_BUDGET => error,
        _ => format!("expression '{source}' resulted in error: {error}"),
    })
}

/// The variables of the match conditions of a webhook.
pub(super) fn of_webhooks(request: &Request<'_>, states: States<'_>) -> Vec<(&'static str, Seen)> {
    free::start();
    variables(request, states, None)
}

/// The reason and message of the first validation that fails.
fn failure(case: &Case<'_>) -> Option<(String, String)> {
    for validation in list(spec(case.policy), "validations")
        .iter()
        .filter_map(Value::as_object)
    {
        let source = text(validation, "expression").trim();
        let reason = match text(validation, "reason") {
            "" => "Invalid",
            reason => reason,
        };
        match evaluated(source, &case.variables).map(|value| value.truth()) {
            Ok(Some(true)) => {}
            Ok(_) => return Some((reason.to_owned(), message(case, validation, source))),
            Err(_) if ignores(case.policy) => {}
            Err(error) => return Some(("Invalid".to_owned(), error)),
        }
    }
    None
}

fn message(case: &Case<'_>, validation: &Object, source: &str) -> String {
    let reported = text(validation, "messageExpression").trim();
    if !reported.is_empty()
        && let Ok(value) = Expression::compile(reported).and_then(|reported| reported.run(&case.variables))
        && let Some(text) = value.text().map(str::trim)
        && !text.is_empty()
        && !text.contains('\n')
    {
        return text.to_owned();
    }
    match text(validation, "message").trim() {
        "" => format!("failed expression: {source}"),
        message => message.to_owned(),
    }
}

fn mutated(
    resource: &Resource,
    mutation: &Object,
    variables: &[(&'static str, Seen)],
    current: &Object,
) -> std::result::Result<Object, String> {
    let json_patch = text(mutation, "patchType") == "JSONPatch";
    let part = if json_patch {
        "jsonPatch"
    } else {
        "applyConfiguration"
    };
    let expression = text(below(mutation, part), "expression");
    let mut result = evaluated(expression, variables)?.json();
    let kind = match (json_patch, resource.custom.is_some()) {
        (true, _) => PatchKind::Json,
        (false, true) => PatchKind::Merge,
        (false, false) => PatchKind::Strategic,
    };
    if let (true, Value::Array(operations)) = (json_patch, &mut result) {
        for operation in operations.iter_mut().filter_map(Value::as_object_mut) {
            operation.retain(|_, value| !value.is_null());
        }
    }
    let target = Value::Object(current.clone());
    let reported = |status: Box<Status>| status.message;
    let schema = resource.schema.get();
    let patched = patch::patched(kind, schema, target, result.to_string().as_bytes()).map_err(reported)?;
    let decoded = decode::value(resource, patched, decode::FieldValidation::Ignore).map_err(reported)?;
    Ok(decoded.object)
}

/// The answer to a write that a policy denies.
fn denied(request: &Request<'_>, case: &Case<'_>, reason: &str, why: &str) -> Box<Status> {
    let kind = if object(spec(case.policy), "matchConstraints").is_some()
        && spec(case.policy).contains_key("mutations")
    {
        "MutatingAdmissionPolicy"
    } else {
        "ValidatingAdmissionPolicy"
    };
    let reported = format!(
        "{kind} '{}' with binding '{}' denied request: {why}",
        field(case.policy, "name"),
        field(case.binding, "name")
    );
    let mut status = Status::forbidden(about(request.resource, request.name), &reported);
    status.code = match reason {
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    reason.clone_into(&mut status.reason);
    status
        .details
        .get_or_insert_default()
        .insert("causes".to_owned(), serde_json::json!([{"message": reported}]));
    status
}
