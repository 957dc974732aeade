//! Applies or deletes one ResourceQuota of a quota: what is particular to it in the order of requests of [`crate::apply_task`].
//!
//! The object is read before it is written: it may be another's, and only a read shows that. It is small and rarely written.

use entourage_api::{
    keys::{annotation, label},
    work::Resources,
};
use serde_json::{Map, Value, json};

use crate::{
    apply_task::{Applied, ApplyTask, Compared, End, Fetched, Next, RequestError, Stage},
    kinds,
    object::{NamespacedName, ResourceId},
    observation::{AssignedQuota, QuotaOutcome, assignment},
    plan::{Preconditions, QuotaOrder, RemovalMode},
    rendered::Rendered,
    scheduler::estimate::amounts,
};

/// The id of the ResourceQuotas of a quota.
#[must_use]
pub fn id(quota: &NamespacedName) -> ResourceId {
    ResourceId::new(kinds::resource_quota(), &quota.namespace, &quota.name)
}

/// True if a ResourceQuota has exactly these limits.
#[must_use]
pub(crate) fn is_equal(copy: &AssignedQuota, hard: &Resources) -> bool {
    let limits = copy.limits.as_ref();
    !copy.deleting && limits.is_some_and(|limits| amounts(limits) == amounts(hard))
}

/// The ResourceQuota of one assignment.
pub enum Assignment<'a> {
    /// To be applied.
    Assigned(&'a QuotaOrder),
    /// This object is to be deleted.
    Unassigned(&'a Preconditions),
}

/// Returns the task that applies a ResourceQuota, and its first step.
#[must_use]
pub fn assign(order: &QuotaOrder) -> (ApplyTask<Assignment<'_>>, Next<QuotaOutcome>) {
    ApplyTask::apply(Assignment::Assigned(order), None, true)
}

/// Returns the task that deletes a ResourceQuota, and its first step.
#[must_use]
pub fn unassign(preconditions: &Preconditions) -> (ApplyTask<Assignment<'_>>, Next<QuotaOutcome>) {
    let object = Assignment::Unassigned(preconditions);
    ApplyTask::remove(object, preconditions, RemovalMode::Delete)
}

impl Applied for Assignment<'_> {
    type Outcome = QuotaOutcome;

    fn rendered(&self, live: Option<&Value>) -> Option<Rendered> {
        match self {
            Self::Assigned(order) => Some(Rendered(rendered(order, live.unwrap_or(&Value::Null)))),
            Self::Unassigned(_) => None,
        }
    }

    fn left_alone(&self, live: &Value) -> Option<QuotaOutcome> {
        let (Self::Assigned(order), copy) = (self, AssignedQuota::of(live)) else {
            return Some(QuotaOutcome::Abandoned);
        };
        if !copy.is_managed(&order.hub, &order.cluster, &order.quota) {
            return Some(QuotaOutcome::Foreign);
        }
        // A watch reports its end.
        copy.deleting.then_some(QuotaOutcome::Abandoned)
    }

    fn compared(&self, _rendered: &Rendered, live: &Value) -> Compared<QuotaOutcome> {
        match self {
            Self::Assigned(order) if !is_equal(&AssignedQuota::of(live), &order.hard) => {
                Compared::Differs("spec".into())
            }
            _ => Compared::Equal,
        }
    }

    fn outcome(&self, _stage: Stage, end: End) -> (Option<Fetched>, QuotaOutcome) {
        let outcome = match (end, self) {
            (
                End::Applied {
                    object,
                    differed,
                    created,
                },
                _,
            ) => {
                let path = if created {
                    Some("")
                } else {
                    differed.map(|_| "spec")
                };
                QuotaOutcome::Applied(AssignedQuota::of(&object.0), path)
            }
            (End::Gone, Self::Unassigned(known)) => QuotaOutcome::Gone(known.uid.clone()),
            (End::KeepsChanging, _) => QuotaOutcome::Failed("the object keeps changing".into()),
            (End::Kept(_, Some(message)), _) => QuotaOutcome::Failed(message),
            (End::Failed(no, message), _) if no != RequestError::Abandoned => QuotaOutcome::Failed(message),
            // It is being deleted, or it changed: its watch reports that.
            (End::Held(_) | End::Kept(_, None) | End::Failed(..), _) => QuotaOutcome::Abandoned,
            // It may be created, it is not released, and it is rendered here.
            (End::Gone | End::Released(..) | End::NotRendered(_), _) => QuotaOutcome::Abandoned,
        };
        (None, outcome)
    }
}

/// The ResourceQuota, with the labels, annotations and finalizers of others on the live one.
fn rendered(order: &QuotaOrder, live: &Value) -> Value {
    let mut meta = Map::new();
    for field in [
        "uid",
        "resourceVersion",
        "finalizers",
        "ownerReferences",
        "labels",
        "annotations",
    ] {
        if let Some(value) = live["metadata"].get(field) {
            meta.insert(field.to_owned(), value.clone());
        }
    }
    let mut meta = Value::Object(meta);
    meta["name"] = json!(&*order.quota.name);
    meta["namespace"] = json!(&*order.quota.namespace);
    meta["labels"][label::FEDERATED_QUOTA] = json!(&*order.hub);
    meta["annotations"][annotation::FEDERATED_QUOTA_FOR] = json!(assignment(&order.cluster, &order.quota));
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": meta,
        "spec": {"hard": order.hard},
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

    use super::*;
    use crate::apply_task::{
        Answer,
        walk::{no, object, walk},
    };

    fn order() -> QuotaOrder {
        QuotaOrder {
            quota: NamespacedName::new("shop", "team"),
            cluster: "m1".into(),
            hub: "h".into(),
            hard: [("cpu".to_owned(), Quantity("2".into()))].into(),
        }
    }

    fn live(hub: &str, made_for: &str, cpu: &str) -> Value {
        json!({
            "metadata": {"name": "team", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels":
                {label::FEDERATED_QUOTA: hub, "other": "x"}, "annotations": {annotation::FEDERATED_QUOTA_FOR: made_for}},
            "spec": {"hard": {"cpu": cpu}},
        })
    }

    /// Answers the requests of an assignment with these, and says what followed.
    fn reported(answers: Vec<Answer>) -> (String, QuotaOutcome) {
        let order = order();
        let walk = walk(assign(&order), answers);
        (walk.requests, walk.outcome)
    }

    #[test]
    fn an_object_of_another_is_left_alone() {
        for other in [
            live("another", "m1/shop/team", "1"),
            live("h", "m2/shop/team", "1"),
            json!({"metadata": {"name": "team", "namespace": "shop", "uid": "x"}, "spec": {"hard": {"cpu": "2"}}}),
        ] {
            let (requests, outcome) = reported(vec![object(other)]);
            assert_eq!((&*requests, outcome), ("GET", QuotaOutcome::Foreign));
        }
    }

    #[test]
    fn one_that_differs_is_replaced_with_what_others_set_on_it() {
        let order = order();
        let differs = live("h", "m1/shop/team", "1");
        // Changed meanwhile, and equal then by amount.
        let equal = live("h", "m1/shop/team", "2000m");
        let walk = walk(
            assign(&order),
            [object(differs), no(RequestError::Changed), object(equal)],
        );
        assert_eq!(walk.sent["spec"], json!({"hard": {"cpu": "2"}}));
        assert_eq!(walk.sent["metadata"]["labels"]["other"], "x");
        assert_eq!(walk.requests, "GET, PUT 7, GET");
        assert!(matches!(walk.outcome, QuotaOutcome::Applied(_, None)));
    }

    #[test]
    fn the_outcome_of_a_write_says_where_it_differed() {
        let now = || object(live("h", "m1/shop/team", "2"));
        let replaced = reported(vec![object(live("h", "m1/shop/team", "1")), now()]);
        assert!(matches!(replaced.1, QuotaOutcome::Applied(_, Some("spec"))));
        let (requests, created) = reported(vec![no(RequestError::Gone), now()]);
        assert_eq!(requests, "GET, POST");
        assert!(matches!(created, QuotaOutcome::Applied(_, Some(""))));
    }

    #[test]
    fn a_missing_one_is_created_and_a_refusal_is_reported() {
        let order = order();
        let walk = walk(
            assign(&order),
            [no(RequestError::Gone), no(RequestError::Refused)],
        );
        assert!(walk.sent["metadata"].get("uid").is_none());
        assert_eq!(walk.outcome, QuotaOutcome::Failed("why".into()));
        let failed = |error| reported(vec![no(error)]).1;
        assert_eq!(failed(RequestError::Missing), QuotaOutcome::Failed("why".into()));
        assert_eq!(failed(RequestError::Abandoned), QuotaOutcome::Abandoned);
    }

    #[test]
    fn one_that_is_being_deleted_is_awaited() {
        let mut leaving = live("h", "m1/shop/team", "1");
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(reported(vec![object(leaving)]).1, QuotaOutcome::Abandoned);
    }

    #[test]
    fn a_deletion_ends_as_its_answers_prove() {
        let known = Preconditions {
            uid: "u".into(),
            resource_version: "7".into(),
        };
        let mut held = live("h", "m1/shop/team", "1");
        held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        held["metadata"]["finalizers"] = json!(["x/y"]);
        let mut changed = live("h", "m1/shop/team", "1");
        changed["metadata"]["resourceVersion"] = json!("9");
        for (sentence, answers, requests, outcome) in [
            (
                "a Status",
                vec![object(json!({"kind": "Status"}))],
                "DELETE 7",
                QuotaOutcome::Gone("u".into()),
            ),
            (
                "a finalizer",
                vec![object(held)],
                "DELETE 7",
                QuotaOutcome::Abandoned,
            ),
            (
                "gone",
                vec![no(RequestError::Gone)],
                "DELETE 7",
                QuotaOutcome::Gone("u".into()),
            ),
            (
                "changed",
                vec![no(RequestError::Changed), object(changed)],
                "DELETE 7, GET metadata",
                QuotaOutcome::Abandoned,
            ),
            (
                "a conflict about this very version",
                vec![no(RequestError::Changed), object(live("h", "m1/shop/team", "1"))],
                "DELETE 7, GET metadata",
                QuotaOutcome::Failed("why".into()),
            ),
            (
                "refused",
                vec![no(RequestError::Refused)],
                "DELETE 7",
                QuotaOutcome::Failed("why".into()),
            ),
            (
                "abandoned",
                vec![no(RequestError::Abandoned)],
                "DELETE 7",
                QuotaOutcome::Abandoned,
            ),
        ] {
            let walk = walk(unassign(&known), answers);
            assert_eq!((&*walk.requests, walk.outcome), (requests, outcome), "{sentence}");
        }
    }
}
