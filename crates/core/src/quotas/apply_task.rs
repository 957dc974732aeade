//! Executes the plan of one assignment, request by request: each response determines the next request.
//!
//! The object is read before it is written: it may be another's, and only a read shows that. It is small and rarely written.

use entourage_api::{
    keys::{annotation, label},
    work::Resources,
};
use serde_json::{Map, Value, json};

use crate::{
    distribution::apply_task::{Answer, No, Request},
    kinds,
    object::{NamespacedName, ResourceId},
    observation::{AssignedQuota, QuotaOutcome, assignment},
    plan::{Preconditions, QuotaOrder},
    rendered::Rendered,
    scheduler::estimate::amounts,
};

/// The number of times that an object under concurrent change is read before the task gives up.
const ROUNDS: usize = 4;

/// The next step.
pub enum Next {
    /// Send this request.
    Ask(Request),
    /// The task has ended with this outcome.
    End(QuotaOutcome),
}

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

/// The task that applies one ResourceQuota.
pub struct ApplyTask<'a> {
    order: &'a QuotaOrder,
    stage: Stage,
    /// The number of reads left.
    left: usize,
}

/// The last request.
enum Stage {
    /// GET.
    Reading,
    /// POST.
    Creating,
    /// PUT of the object that was read, and differed at this path.
    Updating(&'static str),
}

impl<'a> ApplyTask<'a> {
    /// Returns a task, and its first request.
    #[must_use]
    pub fn new(order: &'a QuotaOrder) -> (Self, Request) {
        let task = Self {
            order,
            stage: Stage::Reading,
            left: ROUNDS - 1,
        };
        (task, Request::Read)
    }

    /// Returns what follows the response to the last request. Cost: O(size of the object).
    #[must_use]
    pub fn answered(&mut self, answer: &Answer<'_>) -> Next {
        match (answer, &self.stage) {
            (Answer::Abandoned, _) => Next::End(QuotaOutcome::Abandoned),
            (Answer::Object(live), Stage::Reading) => self.compare(live),
            (Answer::Object(made), Stage::Creating) => applied(made, Some("")),
            (Answer::Object(changed), Stage::Updating(path)) => applied(changed, Some(path)),
            (Answer::No(No::Gone, _), Stage::Reading) => {
                self.stage = Stage::Creating;
                Next::Ask(Request::Create(Rendered(rendered(self.order, &Value::Null))))
            }
            (Answer::No(No::Gone | No::Exists | No::Changed, why), _) => self.read_again(why),
            (Answer::No(_, why), _) => Next::End(QuotaOutcome::Failed(why.clone())),
        }
    }

    fn compare(&mut self, live: &Value) -> Next {
        let copy = AssignedQuota::of(live);
        if !copy.is_managed(&self.order.hub, &self.order.cluster, &self.order.quota) {
            return Next::End(QuotaOutcome::Foreign);
        }
        // A watch reports its end.
        if copy.deleting {
            return Next::End(QuotaOutcome::Abandoned);
        }
        if is_equal(&copy, &self.order.hard) {
            return Next::End(QuotaOutcome::Applied(copy, None));
        }
        self.stage = Stage::Updating("spec");
        Next::Ask(Request::Replace(Rendered(rendered(self.order, live))))
    }

    fn read_again(&mut self, why: &str) -> Next {
        let Some(left) = self.left.checked_sub(1) else {
            return Next::End(QuotaOutcome::Failed(why.to_owned()));
        };
        self.left = left;
        self.stage = Stage::Reading;
        Next::Ask(Request::Read)
    }
}

/// The outcome of a DELETE with preconditions, by its response.
#[must_use]
pub fn deleted(answer: &Answer<'_>, preconditions: &Preconditions) -> QuotaOutcome {
    match answer {
        // With a finalizer of another it stays for a while: its watch reports the end.
        Answer::Object(object) if object["metadata"]["deletionTimestamp"].is_string() => {
            QuotaOutcome::Abandoned
        }
        Answer::Object(_) | Answer::No(No::Gone, _) => QuotaOutcome::Gone(preconditions.uid.clone()),
        Answer::No(No::Changed, _) | Answer::Abandoned => QuotaOutcome::Abandoned,
        Answer::No(_, why) => QuotaOutcome::Failed(why.clone()),
    }
}

fn applied(object: &Value, differed: Option<&'static str>) -> Next {
    Next::End(QuotaOutcome::Applied(AssignedQuota::of(object), differed))
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

    #[test]
    fn an_object_of_another_is_left_alone() {
        let order = order();
        for other in [
            live("another", "m1/shop/team", "1"),
            live("h", "m2/shop/team", "1"),
            json!({"metadata": {"name": "team", "namespace": "shop"}, "spec": {"hard": {"cpu": "2"}}}),
        ] {
            let (mut task, _) = ApplyTask::new(&order);
            let next = task.answered(&Answer::Object(&other));
            assert!(matches!(next, Next::End(QuotaOutcome::Foreign)), "{other}");
        }
    }

    #[test]
    fn one_that_differs_is_replaced_with_what_others_set_on_it() {
        let order = order();
        let (mut task, _) = ApplyTask::new(&order);
        let Next::Ask(Request::Replace(sent)) =
            task.answered(&Answer::Object(&live("h", "m1/shop/team", "1")))
        else {
            panic!("a PUT");
        };
        assert_eq!(sent.object()["spec"], json!({"hard": {"cpu": "2"}}));
        assert_eq!(sent.object()["metadata"]["labels"]["other"], "x");
        assert_eq!(sent.object()["metadata"]["resourceVersion"], "7");
        // Changed meanwhile, and equal then by amount.
        assert!(matches!(
            task.answered(&Answer::No(No::Changed, "changed".into())),
            Next::Ask(Request::Read)
        ));
        let next = task.answered(&Answer::Object(&live("h", "m1/shop/team", "2000m")));
        assert!(matches!(next, Next::End(QuotaOutcome::Applied(_, None))));
    }

    #[test]
    fn a_missing_one_is_created_and_a_refusal_is_reported() {
        let order = order();
        let (mut task, _) = ApplyTask::new(&order);
        let Next::Ask(Request::Create(sent)) = task.answered(&Answer::No(No::Gone, String::new())) else {
            panic!("a POST");
        };
        assert!(sent.object()["metadata"].get("uid").is_none());
        let next = task.answered(&Answer::No(No::Refused, "no rights".into()));
        assert!(matches!(next, Next::End(QuotaOutcome::Failed(why)) if why == "no rights"));
    }
}
