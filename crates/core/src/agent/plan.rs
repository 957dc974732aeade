//! The next step of a Work.

use entourage_api::keys::finalizer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use super::{
    Agent, Source, events,
    state::{ObjectState, Removal, WorkState},
    status,
};
use crate::{
    manifest::WorkOwner,
    object::{ResourceId, Str, Time},
    plan::Event,
};

/// The next step of a key.
#[derive(Debug, Default)]
pub struct Plan {
    /// The step; `None`: there is nothing to do now.
    pub step: Option<Step>,
    /// The time to plan again, if nothing is observed until then.
    pub again_at: Option<Time>,
    /// The reason, for a log.
    pub why: String,
}

/// A step of a plan: requests to one server. Data only, no payload.
#[derive(Clone, Debug)]
pub enum Step {
    /// Fetch the Work, and apply these objects of it.
    Apply(ApplyOrder),
    /// Remove these objects of the Work.
    Remove(RemovalOrder),
    /// A write on the hub.
    Write(HubWrite),
}

/// Objects of a Work to be applied.
#[derive(Clone, Debug)]
pub struct ApplyOrder {
    /// The Work.
    pub owner: WorkOwner,
    /// Its version. Another one is not applied: the plan was not made for it.
    pub source: Source,
    /// The objects.
    pub objects: Vec<ObjectOrder>,
}

/// An object of a Work to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectOrder {
    /// Its index in the manifests.
    pub ordinal: usize,
    /// Its id.
    pub id: ResourceId,
    /// True if it may exist on the cluster: it is read first.
    pub may_exist: bool,
    /// The uid of the object as this process last applied it.
    pub applied: Option<Str>,
}

/// Objects of a Work to be removed.
#[derive(Clone, Debug)]
pub struct RemovalOrder {
    /// The Work.
    pub owner: WorkOwner,
    /// Its uid.
    pub uid: Str,
    /// The objects.
    pub objects: Vec<RemovalObject>,
    /// True if the objects are kept, without ownership metadata.
    pub preserves: bool,
}

/// An object of a Work to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalObject {
    /// Its index in the manifests.
    pub ordinal: usize,
    /// Its id.
    pub id: ResourceId,
    /// The hub that its manifest names; empty for none.
    pub hub: Str,
}

/// A merge patch of an object of the hub, and what follows when it was accepted.
#[derive(Clone, Debug)]
pub struct HubWrite {
    /// The Work; `None` is the Cluster.
    pub work: Option<Str>,
    /// The uid of the object.
    pub uid: Str,
    /// True if the status subresource is written.
    pub is_status: bool,
    /// The patch.
    pub patch: Value,
    /// The fields that it sets.
    pub sent: Sent,
    /// The Events to record when it was accepted.
    pub events: Vec<Event>,
}

/// The fields that a write sets.
#[derive(Clone, Debug)]
pub enum Sent {
    /// The finalizers of a Work.
    Finalizers(Vec<Str>),
    /// The conditions of a Work, and the digest of its manifests' statuses.
    Report(Vec<Condition>, Str),
    /// The status of the Cluster: its watch reports it.
    Cluster,
}

impl Plan {
    pub(super) fn step(step: Step, why: impl Into<String>) -> Self {
        Self {
            step: Some(step),
            again_at: None,
            why: why.into(),
        }
    }

    pub(super) fn wait(again_at: Option<Time>, why: impl Into<String>) -> Self {
        Self {
            step: None,
            again_at,
            why: why.into(),
        }
    }
}

/// The time at which an object is to be applied.
enum Due {
    Now(ObjectOrder),
    At(Time),
    /// As soon as something changes.
    Later,
}

impl Agent {
    pub(super) fn plan_work(&self, name: &Str, now: Time) -> Plan {
        let Some(state) = self.works.get(name) else {
            return Plan::default();
        };
        if let Some(why) = self.objection() {
            return Plan::wait(None, why);
        }
        if let Some(failure) = state.hub_failure.as_ref().filter(|each| now < each.retry_at) {
            return Plan::wait(Some(failure.retry_at), failure.message.clone());
        }
        let is_ours = state.work.meta.has_finalizer(finalizer::EXECUTION);
        match (state.work.meta.deleting, is_ours) {
            (Some(_), true) => self.end(name, state, now),
            (Some(_), false) => Plan::wait(None, "its objects are removed already"),
            // An object must not be applied for a Work that could vanish.
            (None, false) => self.finalizers(name, state, true),
            (None, true) if state.work.suspended => self.report(name, state, None, now),
            (None, true) => self.apply(name, state, now),
        }
    }

    fn apply(&self, name: &Str, state: &WorkState, now: Time) -> Plan {
        let (mut objects, mut again_at) = (Vec::new(), None);
        for (ordinal, object) in state.objects.iter().enumerate() {
            match self.due(state, ordinal, object, now) {
                Due::Now(order) => objects.push(order),
                Due::At(time) => again_at = again_at.into_iter().chain([time]).min(),
                Due::Later => {}
            }
        }
        if objects.is_empty() {
            return self.report(name, state, again_at, now);
        }
        let order = ApplyOrder {
            owner: self.owner(name),
            source: state.source(),
            objects,
        };
        Plan::step(
            Step::Apply(order),
            "it is not applied in this version, or drifted",
        )
    }

    fn due(&self, state: &WorkState, ordinal: usize, object: &ObjectState, now: Time) -> Due {
        let (Some(id), source) = (&object.id, state.source()) else {
            return Due::Later;
        };
        let failure = object.failure.as_ref().filter(|each| each.source == source);
        if let Some(failure) = failure.filter(|each| now < each.retry_at) {
            return Due::At(failure.retry_at);
        }
        let copy = self.copies.get(id);
        let is_synced = self.synced.contains_key(&self.copies_of(&id.gvk));
        let order = ObjectOrder {
            ordinal,
            id: id.clone(),
            may_exist: copy.is_some() || !is_synced,
            applied: object.record.as_ref().map(|record| record.copy.uid.clone()),
        };
        let Some(record) = object.record.as_ref().filter(|each| each.is_in(&source)) else {
            return Due::Now(order);
        };
        if failure.is_some() {
            return Due::Now(order);
        }
        match copy {
            // Its watch reports the end.
            Some(copy) if copy.meta.deleting.is_some() => return Due::Later,
            Some(copy) if record.is_of(&copy.meta) => {
                let over = object.drift.as_ref().map(|drift| drift.over_at());
                return over.filter(|over| now < *over).map_or(Due::Later, Due::At);
            }
            None if !is_synced => return Due::Later,
            _ => {}
        }
        let is_same = copy.is_some_and(|copy| copy.meta.uid == record.copy.uid);
        let equal = object.equal.as_ref().filter(|_| is_same);
        let drift = object.drift.as_ref().map(|drift| drift.retry_at());
        match drift.max(equal.map(|equal| equal.retry_at())) {
            Some(retry_at) if now < retry_at => Due::At(retry_at),
            _ => Due::Now(order),
        }
    }

    /// The Work is being deleted.
    fn end(&self, name: &Str, state: &WorkState, now: Time) -> Plan {
        let (mut objects, mut again_at) = (Vec::new(), None);
        for (ordinal, object) in state.objects.iter().enumerate() {
            match (&object.id, object.removal) {
                (None, _) | (_, Removal::Done) => {}
                (Some(_), Removal::Later(time, _)) if now < time => {
                    again_at = again_at.into_iter().chain([time]).min();
                }
                (Some(id), _) => objects.push(RemovalObject {
                    ordinal,
                    id: id.clone(),
                    hub: state.work.hub_of(ordinal).into(),
                }),
            }
        }
        if !objects.is_empty() {
            let order = RemovalOrder {
                owner: self.owner(name),
                uid: state.work.meta.uid.clone(),
                objects,
                preserves: state.work.preserves,
            };
            return Plan::step(Step::Remove(order), "the Work is being deleted");
        }
        if again_at.is_some() {
            return Plan::wait(again_at, "its objects still exist");
        }
        self.finalizers(name, state, false)
    }

    /// Adds our finalizer, or removes it.
    fn finalizers(&self, name: &Str, state: &WorkState, held: bool) -> Plan {
        let meta = &state.work.meta;
        let others = meta
            .finalizers
            .iter()
            .filter(|each| &***each != finalizer::EXECUTION);
        let mut all: Vec<Str> = others.cloned().collect();
        if held {
            all.push(finalizer::EXECUTION.into());
        }
        let names: Vec<&str> = all.iter().map(|each| &**each).collect();
        let write = HubWrite {
            work: Some(name.clone()),
            uid: meta.uid.clone(),
            is_status: false,
            patch: json!({"metadata": {
                "uid": &*meta.uid, "resourceVersion": &*meta.resource_version, "finalizers": names,
            }}),
            sent: Sent::Finalizers(all),
            events: Vec::new(),
        };
        let why = if held {
            "it has no finalizer"
        } else {
            "no object of it is left"
        };
        Plan::step(Step::Write(write), why)
    }

    /// Writes the status, if it differs.
    fn report(&self, name: &Str, state: &WorkState, again_at: Option<Time>, now: Time) -> Plan {
        let Some(report) = status::report(self, state, now) else {
            return Plan::wait(again_at, "it is as it should be");
        };
        // Conditions are never late; an object's status may change many times a second.
        let due = state.reported_at.map(|last| last.plus(status::INTERVAL));
        if let Some(due) = due.filter(|due| report.is_status_alone && now < *due) {
            return Plan::wait(
                again_at.into_iter().chain([due]).min(),
                "its status was written a moment ago",
            );
        }
        let meta = &state.work.meta;
        let mut patch = json!({
            "metadata": {"uid": &*meta.uid, "resourceVersion": &*meta.resource_version},
            "status": {"conditions": report.conditions},
        });
        if let Some(statuses) = &report.statuses {
            patch["status"]["manifestStatuses"] = json!(statuses);
        }
        let write = HubWrite {
            work: Some(name.clone()),
            uid: meta.uid.clone(),
            is_status: true,
            patch,
            events: events::of_report(self, name, state, &report),
            sent: Sent::Report(report.conditions, report.digest),
        };
        let mut plan = Plan::step(Step::Write(write), "its status differs");
        plan.again_at = again_at;
        plan
    }
}
