//! The requests and limits of containers.

use serde_json::Value;

use crate::{
    names,
    object::{
        Object,
        tree::{Errors, NOT_NEGATIVE, below},
    },
};

/// Resources of containers that are named without a domain.
const STANDARD: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

/// Further resources that are named without a domain, which containers cannot request.
const OTHER: [&str; 21] = [
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "bandwidth.ingress",
    "bandwidth.egress",
    "count",
    "attachments",
];

/// A quantity in billionths, for comparisons; `None` when it is none.
pub(crate) fn amount(value: &Value) -> Option<i128> {
    crate::kinds::amounts::nano(value)
}

pub(super) fn validate(resources: &Object, path: &str, errors: &mut Errors) {
    let (limits, requests) = (below(resources, "limits"), below(resources, "requests"));
    let mut compute = false;
    let mut huge = false;
    for (amounts, kind) in [(limits, "limits"), (requests, "requests")] {
        for (name, value) in amounts {
            let field = format!("{path}.{kind}[{name}]");
            resource_name(name, &field, errors);
            one_amount(name, value, &field, errors);
            compute |= name == "cpu" || name == "memory";
            huge |= name.starts_with("hugepages-");
            if kind == "requests" {
                against_limit(name, value, limits.get(name), path, errors);
            }
        }
    }
    if huge && !compute {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

/// Amounts without limits beside them: the overhead of a pod.
pub(super) fn amounts(amounts: &Object, path: &str, errors: &mut Errors) {
    for (name, value) in amounts {
        let field = format!("{path}[{name}]");
        resource_name(name, &field, errors);
        one_amount(name, value, &field, errors);
    }
}

fn against_limit(name: &str, request: &Value, limit: Option<&Value>, path: &str, errors: &mut Errors) {
    let overcommit =
        (!name.contains('/') || name.contains("kubernetes.io/")) && !name.starts_with("hugepages-");
    let Some(limit) = limit else {
        if !overcommit {
            errors.required(
                format!("{path}.limits"),
                "Limit must be set for non overcommitable resources",
            );
        }
        return;
    };
    let shown = limit.as_str().unwrap_or_default();
    let (asked, most) = (amount(request), amount(limit));
    let field = format!("{path}.requests");
    if asked != most && !overcommit {
        let why = format!("must be equal to {name} limit of {shown}");
        errors.invalid(field, request.clone(), &why);
    } else if asked > most {
        let why = format!("must be less than or equal to {name} limit of {shown}");
        errors.invalid(field, request.clone(), &why);
    }
}

fn resource_name(name: &str, field: &str, errors: &mut Errors) {
    let problems = names::qualified_name(name);
    if !problems.is_empty() {
        return errors.all_invalid(field, name, problems);
    }
    if name.contains('/') || name.starts_with("hugepages-") || STANDARD.contains(&name) {
        return;
    }
    if !OTHER.contains(&name) {
        errors.invalid(field, name, "must be a standard resource type or fully qualified");
    }
    errors.invalid(field, name, "must be a standard resource for containers");
}

/// One amount of a resource: not negative, and whole where it counts things.
pub(crate) fn one_amount(name: &str, value: &Value, field: &str, errors: &mut Errors) {
    let Some(nano) = amount(value) else { return };
    if nano < 0 {
        errors.invalid(field, value.clone(), NOT_NEGATIVE);
    }
    if is_extended(name) && nano % 1_000_000_000 != 0 {
        errors.invalid(field, value.clone(), "must be an integer");
    }
}

/// True if a resource is one of a vendor, which is counted.
pub(crate) fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}
