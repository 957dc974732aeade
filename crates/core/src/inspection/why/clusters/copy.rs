//! The steps of the copy on one cluster: eviction, suspension, overrides, and its recorded state.

use entourage_api::{
    keys::condition,
    work::{AggregatedStatusItem, NotAppliedReason, ResourceHealth},
};

use super::{At, Subject};
use crate::{
    engine,
    eviction::task,
    fleet::{
        current::is_record_outdated,
        suspension::{is_suspended, is_suspended_by_bindings},
        wanted::is_committed,
    },
    inspection::explanation::{
        Effect::{Against, For, Note},
        Presence, Step, rule,
    },
    messages,
    plan::Key,
    scope,
    stored_binding::eviction_from,
};

impl At<'_> {
    pub(super) fn eviction(&self) -> Option<Step> {
        let Subject { fleet, id, now, .. } = *self.subject;
        let of = self.subject.resource.zip(self.subject.binding)?;
        let stored = eviction_from(&of.1.object.spec, self.cluster)?;
        let message = task::report(fleet, id, of, stored, now);
        Some(Step::new(rule::EVICTION, Against, message))
    }

    /// The cause that suspends the delivery to the cluster; `None` if nothing does.
    pub(super) fn suspended_by(&self) -> Option<&'static str> {
        let Subject { fleet, id, .. } = *self.subject;
        let resource = self.subject.resource?;
        if !is_suspended(fleet, id, resource, self.cluster) {
            return None;
        }
        Some(if is_suspended_by_bindings(fleet, id, resource, self.cluster) {
            messages::SUSPENDED
        } else if fleet.awaits_works() {
            "Works are not listed yet: a user may have suspended it there"
        } else {
            "delivery is suspended by spec.suspendDispatching of its Work"
        })
    }

    pub(super) fn suspension(&self) -> Option<Step> {
        let why = self.suspended_by().filter(|_| self.is_wanted())?;
        Some(Step::new(rule::SUSPENSION, Against, why))
    }

    /// The pause of removals on the cluster.
    pub(super) fn pause(&self, presence: Presence) -> Option<Step> {
        if presence != Presence::Leaving {
            return None;
        }
        let status = self.member?.object.status.as_ref()?;
        let mut conditions = status.conditions.iter();
        let reported =
            conditions.find(|each| each.type_ == condition::REMOVALS_PAUSED && each.status == "True")?;
        let message = format!("removals on {} are paused: {}", self.cluster, reported.message);
        Some(Step::new(rule::PAUSE, For, message))
    }

    pub(super) fn overrides(&self) -> Option<Step> {
        let Subject { fleet, id, .. } = *self.subject;
        let template = self.subject.template.filter(|_| self.is_wanted())?;
        let index = &fleet.graph.override_index;
        let rules = index.rules(id, &template.meta.labels, self.member);
        let mut policies: Vec<String> = Vec::new();
        for rule in rules.iter() {
            let policy = format!("{} {}", scope::override_policy(rule.policy()), rule.policy());
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        (!policies.is_empty()).then(|| {
            let message = format!("rules that apply here, in this order: {}", policies.join(", "));
            Step::new(rule::OVERRIDE, Note, message)
        })
    }

    /// The recorded state of the copy, and what its next change waits for.
    pub(super) fn delivery(&self, presence: Presence) -> Vec<Step> {
        let Subject { fleet, id, now, .. } = *self.subject;
        let mut steps = Vec::new();
        let is_suspended = self.is_wanted() && self.suspended_by().is_some();
        if let Some(item) = self.recorded() {
            // Its own step says so.
            if item.applied_reason != Some(NotAppliedReason::Suspended) || !is_suspended {
                steps.push(recorded(item, presence));
            }
        } else if let Some(binding) = self.subject.binding
            && is_committed(binding, self.cluster)
        {
            let message = "the binding names the cluster, and no state of the copy is recorded yet";
            steps.push(Step::new(rule::DELIVERY, Note, message));
        }
        if presence == Presence::Absent || is_suspended {
            return steps;
        }
        if presence == Presence::Present && is_record_outdated(fleet, id, self.cluster) {
            let message = "the copy is of an earlier version of the template, its policy or its overrides";
            steps.push(Step::new(rule::DELIVERY, Note, message));
        }
        let plan = engine::plan(fleet, &Key::Copy(id.clone(), self.cluster.clone()), now);
        let why = plan.why.join("; ");
        if why.is_empty() {
            return steps;
        }
        let (effect, message) = match (plan.changes.is_empty(), presence) {
            (true, Presence::Leaving) => (For, format!("the copy stays for now: {why}")),
            (true, Presence::Present) => (Note, format!("its next change waits: {why}")),
            (true, _) => (Against, format!("the copy waits: {why}")),
            (false, _) => (Note, format!("a change of the copy is due: {why}")),
        };
        steps.push(Step::new(rule::DELIVERY, effect, message));
        steps
    }
}

fn recorded(item: &AggregatedStatusItem, presence: Presence) -> Step {
    if item.applied {
        let health = match item.health {
            None => String::new(),
            Some(ResourceHealth::Unknown) => ", and its health is unknown".to_owned(),
            Some(health) => format!(", {health:?}"),
        };
        return Step::new(rule::DELIVERY, For, format!("the copy is applied{health}"));
    }
    let reason = item.applied_reason.as_ref();
    let reason = reason.map_or_else(|| "NotApplied".to_owned(), |reason| format!("{reason:?}"));
    let message = match item.applied_message.as_str() {
        "" => reason,
        message => format!("{reason}: {message}"),
    };
    let effect = if presence == Presence::KeptAway {
        Against
    } else {
        Note
    };
    Step::new(rule::DELIVERY, effect, message)
}
