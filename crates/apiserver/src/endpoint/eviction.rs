//! `pods/eviction`: a deletion that respects the disruption budgets.

use serde_json::{Value, json};

use super::binding::{body, created};
use crate::{
    admission::Context,
    call::{Call, Reply},
    delete::{self, DeleteOptions},
    kinds::{EVICTION, core::pod::is_finished, workloads},
    object::{
        Object, field, holds, is_leaving, metadata,
        tree::{below, count, list, made, object, text},
    },
    registry::{Terms, find},
    resource::stored,
    status::{About, Result, Status},
    store::Expect,
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
    let options = deletion(call, &eviction, terms.dry_run)?;
    let resource = &*call.resource;
    let entry = find(cluster.store(), resource, &call.namespace, &call.name)?;
    let pod = stored::shown(resource, &entry.object);
    let free = is_finished(&pod) || text(below(&pod, "status"), "phase") == "Pending" || is_leaving(&pod);
    if !free {
        spend(cluster, call, &pod, options.dry_run, &terms.now)?;
    }
    delete::object(cluster, resource, &call.namespace, &call.name, &options)?;
    Ok(created())
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
    loop {
        let budgets = cluster.list(BUDGETS, &format!("{}/", call.namespace));
        let labels = below(metadata(pod), "labels");
        let mut matching = budgets
            .into_iter()
            .filter(|budget| workloads::selects(object(below(budget, "spec"), "selector"), labels));
        let Some(budget) = matching.next() else {
            return Ok(());
        };
        if matching.next().is_some() {
            return Err(Status::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
        if tolerates_unhealthy(&budget, pod) {
            return Ok(());
        }
        let name = field(&budget, "name").to_owned();
        let next = decremented(budget, call, now)?;
        if dry_run {
            return Ok(());
        }
        let key = format!("{}/{name}", call.namespace);
        let revision = field(&next, "resourceVersion").parse().unwrap_or(0);
        let written = cluster
            .store()
            .put(BUDGETS, &key, Expect::At(revision), |revision| {
                stored::encode(next, revision)
            });
        if written.is_ok() {
            return Ok(());
        }
    }
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

fn decremented(mut budget: Object, call: &Call, now: &str) -> Result<Object> {
    let name = field(&budget, "name").to_owned();
    if !is_observed(&budget) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(&why, Some(10)));
    }
    let status = below(&budget, "status");
    let about = About {
        group: "policy",
        resource: "poddisruptionbudgets",
        name: &name,
    };
    match count(status, "disruptionsAllowed") {
        ..0 => return Err(Status::forbidden(about, "pdb disruptions allowed is negative")),
        0 => {
            let why = format!(
                "The disruption budget {name} needs {} healthy pods and has {} currently",
                count(status, "desiredHealthy"),
                count(status, "currentHealthy")
            );
            return Err(refused(&why, None));
        }
        _ if below(status, "disruptedPods").len() > MOST_DISRUPTED => {
            return Err(Status::forbidden(
                about,
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            ));
        }
        allowed => {
            let status = made(&mut budget, "status");
            status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
            made(status, "disruptedPods").insert(call.name.clone(), now.into());
            let condition = (allowed == 1).then(|| exhausted(status, now));
            if let Some(conditions) = condition {
                status.insert("conditions".to_owned(), conditions);
            }
        }
    }
    Ok(budget)
}

/// The conditions of a budget that has no disruption left.
fn exhausted(status: &Object, now: &str) -> Value {
    let mut conditions = list(status, "conditions").to_vec();
    for one in conditions.iter_mut().filter_map(Value::as_object_mut) {
        if text(one, "type") == "DisruptionAllowed" && text(one, "status") != "False" {
            one.insert("status".to_owned(), "False".into());
            one.insert("reason".to_owned(), "InsufficientPods".into());
            one.insert("lastTransitionTime".to_owned(), now.into());
        }
    }
    Value::Array(conditions)
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
