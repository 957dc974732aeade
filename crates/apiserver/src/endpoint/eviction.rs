//! `pods/eviction`: a deletion that respects the disruption budgets. The pod says first that it is evicted.

use serde_json::json;

use super::binding::{body, created, set_condition};
use crate::{
    admission::Context,
    apply::SERVER,
    call::{Call, Reply},
    delete::{self, DeleteOptions},
    kinds::{EVICTION, core::pod::is_finished, policy::pod_disruption_budget::report, workloads},
    object::{
        Object, field, holds, is_leaving, metadata,
        tree::{below, count, list, made, object, text},
    },
    registry::{Terms, find, rewrite_as},
    resource::stored,
    status::{About, Result, Status},
};

const BUDGETS: &str = "policy/poddisruptionbudgets";
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// The most pods that a budget remembers as disrupted.
const MOST_DISRUPTED: usize = 2000;

/// POST of an Eviction. Cost: the budgets of the namespace.
pub(crate) fn evict(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let terms = Terms::of(cluster, call)?;
    let eviction = body(call, &EVICTION.resource())?;
    let name = field(&eviction, "name");
    if !name.is_empty() && name != call.name {
        return Err(Status::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let mut options = deletion(call, &eviction, terms.dry_run)?;
    let resource = &*call.resource;
    let entry = find(cluster.store(), resource, &call.namespace, &call.name)?;
    let pod = stored::shown(resource, &entry.object);
    let free = is_finished(&pod) || text(below(&pod, "status"), "phase") == "Pending" || is_leaving(&pod);
    if !free {
        spend(cluster, call, &pod, options.dry_run, &terms.now)?;
    }
    if !options.dry_run {
        mark(cluster, call, &mut options, &terms.now)?;
    }
    delete::object(cluster, resource, &call.namespace, &call.name, &options)?;
    Ok(created())
}

/// Writes the reason of its end into the pod, by which failure policies of Jobs and others tell it from a failure. No field manager
/// owns it. The state that is deleted is the one after it.
fn mark(cluster: &dyn Context, call: &Call, options: &mut DeleteOptions, now: &str) -> Result<()> {
    let resource = &*call.resource;
    loop {
        let entry = find(cluster.store(), resource, &call.namespace, &call.name)?;
        let mut pod = stored::shown(resource, &entry.object);
        delete::preconditions(resource, &call.name, &pod, options)?;
        if holds(&pod, "DisruptionTarget") {
            return Ok(());
        }
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now});
        set_condition(&mut pod, condition);
        if let Ok(marked) = delete::write(cluster.store(), resource, &entry, pod) {
            if let Some(version) = &mut options.resource_version {
                *version = marked.revision.to_string();
            }
            return Ok(());
        }
    }
}

/// The options of the deletion: those in the eviction.
fn deletion(call: &Call, eviction: &Object, dry_run: bool) -> Result<DeleteOptions> {
    let body = match object(eviction, "deleteOptions") {
        Some(options) => {
            let mut options = options.clone();
            options.insert("kind".to_owned(), "DeleteOptions".into());
            options.insert("apiVersion".to_owned(), "v1".into());
            serde_json::to_vec(&options).unwrap_or_default().into()
        }
        None => bytes::Bytes::new(),
    };
    let mut options = DeleteOptions::of(&Call {
        method: http::Method::DELETE,
        subresource: String::new(),
        content_type: Some("application/json".to_owned()),
        body,
        ..call.clone()
    })?;
    options.dry_run |= dry_run;
    Ok(options)
}

/// Takes one disruption from the budget of the pod, if it has one.
fn spend(cluster: &dyn Context, call: &Call, pod: &Object, dry_run: bool, now: &str) -> Result<()> {
    let labels = below(metadata(pod), "labels");
    let mut matching = cluster
        .list(BUDGETS, &format!("{}/", call.namespace))
        .into_iter()
        .filter(|budget| workloads::selects(object(below(budget, "spec"), "selector"), labels));
    let Some(budget) = matching.next() else {
        return Ok(());
    };
    if matching.next().is_some() {
        // This error of the server has no reason.
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::new(500, "", why));
    }
    if tolerates_unhealthy(&budget, pod) {
        return Ok(());
    }
    let kinds = cluster.kinds();
    let resource = kinds.of_collection(BUDGETS).ok_or_else(Status::no_such_path)?;
    let name = field(&budget, "name");
    let mut decision = Ok(());
    let written = rewrite_as(
        SERVER,
        cluster,
        resource,
        &resource.key(&call.namespace, name),
        "status",
        &mut |budget| {
            decision = decrement(budget, call, now);
            decision.is_ok() && !dry_run
        },
    );
    if written.is_none() {
        let why = format!("Timeout: couldn't update PodDisruptionBudget {name:?} due to conflicts");
        return Err(Status::new(504, "Timeout", why).with_retry_after(10));
    }
    decision
}

/// True if a pod that is not ready may go without being counted.
fn tolerates_unhealthy(budget: &Object, pod: &Object) -> bool {
    if holds(pod, "Ready") {
        return false;
    }
    let status = below(budget, "status");
    let (healthy, wanted) = (count(status, "currentHealthy"), count(status, "desiredHealthy"));
    text(below(budget, "spec"), "unhealthyPodEvictionPolicy") == "AlwaysAllow"
        || (is_observed(budget) && healthy >= wanted && wanted > 0)
}

fn is_observed(budget: &Object) -> bool {
    count(below(budget, "status"), "observedGeneration") >= count(metadata(budget), "generation")
}

fn decrement(budget: &mut Object, call: &Call, now: &str) -> Result<()> {
    let name = field(budget, "name").to_owned();
    if !is_observed(budget) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(&why, Some(10)));
    }
    let status = made(budget, "status");
    let about = About {
        group: "policy",
        resource: "poddisruptionbudgets",
        name: &name,
    };
    match count(status, "disruptionsAllowed") {
        ..0 => Err(Status::forbidden(about, "pdb disruptions allowed is negative")),
        _ if below(status, "disruptedPods").len() > MOST_DISRUPTED => Err(Status::forbidden(
            about,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )),
        0 => Err(refused(&exhausted(&name, status), None)),
        allowed => {
            status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
            made(status, "disruptedPods").insert(call.name.clone(), now.into());
            if allowed == 1 {
                let generation = count(status, "observedGeneration");
                report(status, ["False", "InsufficientPods", ""], generation, now);
            }
            Ok(())
        }
    }
}

/// The reason why a budget has no disruption left: its condition when that says more than the counts.
fn exhausted(name: &str, status: &Object) -> String {
    let because = list(status, "conditions")
        .iter()
        .filter_map(|one| one.as_object())
        .find(|one| text(one, "type") == "DisruptionAllowed")
        .filter(|one| text(one, "status") == "False" && !text(one, "message").is_empty())
        .map(|one| [text(one, "reason"), text(one, "message")]);
    let (healthy, wanted) = (count(status, "currentHealthy"), count(status, "desiredHealthy"));
    let refuses = format!("The disruption budget {name} does not allow evicting pods currently");
    match because {
        Some(["SyncFailed", message]) => format!("{refuses} because it failed sync: {message}"),
        _ if healthy <= wanted => {
            format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
        }
        Some([reason, message]) => format!("{refuses} ({reason}): {message}"),
        None => refuses,
    }
}

fn refused(why: &str, seconds: Option<u32>) -> Box<Status> {
    let mut details = Object::new();
    details.insert(
        "causes".to_owned(),
        json!([{"reason": "DisruptionBudget", "message": why}]),
    );
    let status = Status::new(429, "TooManyRequests", REFUSED).with_details(details);
    match seconds {
        Some(seconds) => status.with_retry_after(seconds),
        None => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_tells_what_the_condition_or_the_counts_say() {
        let plain = "The disruption budget b does not allow evicting pods currently";
        let counts = "The disruption budget b needs 2 healthy pods and has 2 currently";
        // Healthy pods of 2, status, reason and message of the condition.
        let cases = [
            (2, None, counts.to_owned()),
            (3, None, plain.to_owned()),
            (
                2,
                Some(["False", "SyncFailed", "no scale"]),
                format!("{plain} because it failed sync: no scale"),
            ),
            (2, Some(["False", "Other", "why"]), counts.to_owned()),
            (
                3,
                Some(["False", "Other", "why"]),
                format!("{plain} (Other): why"),
            ),
            (3, Some(["False", "InsufficientPods", ""]), plain.to_owned()),
            (3, Some(["True", "SyncFailed", "why"]), plain.to_owned()),
        ];
        for (healthy, condition, expected) in cases {
            let mut status = Object::new();
            status.insert("currentHealthy".to_owned(), healthy.into());
            status.insert("desiredHealthy".to_owned(), 2.into());
            if let Some(condition) = condition {
                report(&mut status, condition, 1, "2020-01-01T00:00:00Z");
            }
            assert_eq!(exhausted("b", &status), expected, "{healthy} {condition:?}");
        }
    }
}
