//! Autoscaling on members, as the templates on the hub show it: the label that leaves replicas to the members, and the replicas
//! that their autoscalers have made.
//!
//! Both are parts of a template that its other planner, [`crate::detector`], does not write; the requests for one object never
//! overlap. Each write has the resourceVersion that was observed: a user who edits the object at the same time wins, and it is
//! decided anew. Another writer that undoes one, as a GitOps tool does, is corrected with back-off and reported
//! ([`ScalingWrites`](crate::cache::ScalingWrites)).
//!
//! # The states of a workload
//!
//! | state | label | annotation | ends |
//! |---|---|---|---|
//! | alone | none | none | an autoscaler that is propagated names it: labelled, or kept |
//! | labelled | `"true"` | the autoscalers | all of them are proven to be gone, and *settled*: alone |
//! | kept | any | none | by the user whose label it is |
//!
//! A label without the annotation is a user's. So is one for an autoscaler whose copies stay on the members when it ends
//! (`keeps_copies`): a released copy is no proof that nothing scales there, so the annotation goes while that is still to come, and
//! the label stays.
//!
//! Another writer of the hub may take the label off. It is set again with back-off; until then the copies have it all the same
//! (`fleet::autoscaling::leaves_replicas`), so that no member loses replicas meanwhile.
//!
//! # The replicas of a labelled workload
//!
//! With [`crate::config::Config::sync_replicas`] and a placement that divides, four numbers follow each other in one direction:
//!
//! 1. The scheduler *assigns* a share to a cluster: `spec.clusters` of the binding. Each cluster that it chooses gets at least one
//!    replica, because no autoscaler comes back from none.
//! 2. The share is *delivered* to the copy once, as a minimum
//!    ([`RenderSpec::at_least`](crate::render_spec::RenderSpec::at_least)): what an eviction moves to a cluster arrives there although
//!    the label keeps what the member has. A delivery never lowers the replicas of a member. The binding records
//!    the shares that the scheduler raised, each with the generation that it was raised from, and the record of the copy the share and the
//!    raise that were delivered last: a share that follows is never delivered, a raise to an earlier number is, and what is edited later
//!    raises nothing again.
//! 3. From then on the share *follows* what the member has (`fleet::autoscaling::as_scaled`), so the scheduler has nothing to
//!    divide again. Not before the binding reports the choice that a user asked for; and not what a share itself made there
//!    (`fleet::autoscaling::share_on`): only what the member decides counts.
//! 4. `spec.replicas` of the template becomes the sum of the shares once each cluster reports its share, at most twice a minute: each
//!    such write is a write on every member, too.
//!
//! A cluster with none beside others with some counts as 0. Where all have none the shares are 0, too, and the template keeps its
//! number: a workload that sleeps is not divided again. Another number that a user writes then is assigned, and wakes it.
//!
//! The workload is *settled* when each share is what its member has, none of them is 0 beside others, and the template has their sum.
//! Only then is the label taken off,
//! so that no replica comes or goes because of that. In doubt the label stays, replicas are not lowered, and where a user can do
//! something about it an event says so.

mod writes;

use std::collections::BTreeSet;

use entourage_api::{
    keys::{self, annotation, event, label},
    work::ResourceBindingSpec,
};
use serde_json::{Map, Value, json};

use crate::{
    cache::{Label, ResourceState, Written},
    eviction::task::is_to_be_confirmed,
    fleet::{
        Fleet,
        autoscaling::{
            autoscaler, is_followed, is_label_unknown, is_scaled_kind, keeps_copies, label_of, marked_by,
            may_scale, replicas_on, scalers, share_on, sum,
        },
        regarding::on_template,
        suspension::is_suspended,
    },
    object::{Meta, ResourceId, Str, Time},
    observation::Template,
    plan::{Change, Event, HubObject, Key, Plan, SyncRequirement, Verb},
    scheduling::{Own, own_part},
    stored_binding::is_of_our_scheduler,
};
pub(crate) use writes::next_writes;

/// The time between two writes of a template's replicas, in milliseconds. Each changes the template's generation, which every copy
/// carries; autoscalers decide every 15 s.
const COLLECT: i64 = 30_000;

/// Plans the label of a template, then its replicas. Cost: O(1) while nothing is scaled; else O(autoscalers of the workload ×
/// candidate policies + clusters of its binding × labels and annotations).
#[must_use]
pub fn plan(fleet: &Fleet, id: &ResourceId, now: Time) -> Plan {
    let Some((resource, template)) = subject(fleet, id) else {
        return Plan::nothing();
    };
    if !fleet.is_kind_listed(&id.gvk) {
        return Plan::wait_for(SyncRequirement::Kind(id.gvk.clone()), "the hub is not synced yet");
    }
    let own = own_part(fleet, id, (resource, template), resource.last_binding());
    if matches!(own, Some(Own::Held(..))) {
        return Plan::wait("a write would count as the change that a lazy policy waits for");
    }
    let of = (resource, template);
    let mut label = plan_label(fleet, id, of, own, now);
    if label
        .changes
        .iter()
        .any(|change| matches!(change, Change::Hub { .. }))
    {
        return label;
    }
    let replicas = plan_replicas(fleet, id, of, own, now);
    if !replicas.changes.is_empty() {
        return replicas;
    }
    label.again_at = label.again_at.into_iter().chain(replicas.again_at).min();
    label.why.extend(replicas.why);
    label
}

/// The plan of a binding or a copy; or that it waits, while it is not known whether the template is about to get its label back: without
/// it replicas would be lowered. Cost: O(1) while no label is set, and for a plan without changes; else that of [`is_label_unknown`].
pub(crate) fn gate(fleet: &Fleet, key: &Key, plan: Plan) -> Plan {
    if !fleet.config.mark_scale_targets || plan.changes.is_empty() {
        return plan;
    }
    let key = fleet.in_use(key);
    let (Key::Binding(id) | Key::Copy(id, _)) = &key else {
        return plan;
    };
    let resource = fleet.resource(id);
    if !resource.is_some_and(|resource| is_label_unknown(fleet, id, resource)) {
        return plan;
    }
    let autoscalers = SyncRequirement::Templates(autoscaler());
    Plan::wait_for(
        autoscalers,
        "whether members decide its replicas is not known yet",
    )
}

/// True if a merge patch of a template is one of this module, and not the claim of a policy.
#[must_use]
pub fn is_write(patch: &Value) -> bool {
    let labels = &patch["metadata"]["labels"];
    !patch["spec"].is_null() || labels.get(label::RETAIN_REPLICAS).is_some()
}

/// The template of a workload that autoscalers may scale, while it is to be written.
fn subject<'a>(fleet: &'a Fleet, id: &ResourceId) -> Option<(&'a ResourceState, &'a Template)> {
    let is_on = fleet.config.mark_scale_targets || fleet.config.sync_replicas;
    if !is_on || !is_scaled_kind(&id.gvk) {
        return None;
    }
    let resource = fleet.resource(id)?;
    let template = resource.template.as_ref()?;
    let meta = &template.meta;
    let is_free = meta.deleting.is_none() && meta.label(label::CLAIMED_BY).is_none();
    is_free.then_some((resource, template))
}

// --- the label

fn plan_label(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    own: Option<Own<'_>>,
    now: Time,
) -> Plan {
    if !fleet.config.mark_scale_targets {
        return Plan::nothing();
    }
    let found = label_of(&template.meta);
    let marked = marked_by(id, &template.meta);
    let scalers: Vec<&ResourceId> = scalers(fleet, id).collect();
    // Nothing is scaled where it is not propagated.
    if marked.is_empty() && (scalers.is_empty() || own.is_none()) {
        return Plan::nothing();
    }
    let mut all = marked.iter().chain(scalers.iter().copied());
    let kept = all
        .find(|each| keeps_copies(fleet, each))
        .map(|each| each.name.clone());
    let names = names(fleet, id, &marked, &scalers);
    let Some(to) = wanted(&found, names.as_ref(), kept.is_some()) else {
        return Plan::nothing();
    };
    let why = match (&kept, &names) {
        (Some(kept), _) => format!("the members keep HorizontalPodAutoscaler {kept}"),
        (None, Some(names)) => format!("scaled by HorizontalPodAutoscaler {names}"),
        (None, None) => match holds(fleet, id, (resource, template), own, &marked) {
            Some(hold) => return hold,
            None => "no HorizontalPodAutoscaler scales it any longer".to_owned(),
        },
    };
    let before = resource
        .scaling_writes
        .as_ref()
        .and_then(|writes| writes.label.as_ref());
    if let Some(until) = before
        .map(|before| before.not_before(0))
        .filter(|until| now < *until)
    {
        return Plan::wait_until(until, "another writer of the hub undoes the label");
    }
    let mut metadata = preconditions(&template.meta);
    metadata.insert(
        "labels".into(),
        json!({ label::RETAIN_REPLICAS: to.value.as_deref() }),
    );
    metadata.insert(
        "annotations".into(),
        json!({ annotation::SCALED_BY: to.by.as_deref() }),
    );
    let mut plan = patch(id, json!({ "metadata": metadata }), why);
    if let Some(kept) = kept.filter(|_| !marked.is_empty()) {
        let message = format!(
            "the label {} of {id} is yours from now on: HorizontalPodAutoscaler {kept} stays on its clusters when its propagation ends \
             (preserveResourcesOnDeletion, or --cascade=orphan); take the label off when nothing there scales the workload any more",
            label::RETAIN_REPLICAS
        );
        plan.changes.push(warning(id, template, message));
    }
    let next = Written::next(before, (&found, to), label::RETAIN_REPLICAS, now);
    plan.changes
        .extend(contested((id, template), before, &next, label::RETAIN_REPLICAS));
    plan
}

/// The names in the annotation while an autoscaler that is propagated names the workload, else `None`: those, and the former ones that
/// may still scale it on a member, or are not known to be gone. So the label goes only when none of all of them scales it.
fn names(fleet: &Fleet, id: &ResourceId, marked: &[ResourceId], scalers: &[&ResourceId]) -> Option<Str> {
    if scalers.is_empty() {
        return None;
    }
    let is_known = PROOF.iter().all(|proof| fleet.has(&proof()));
    let stays = |former: &&ResourceId| !is_known || may_scale(fleet, former, id).is_some();
    let former = marked.iter().filter(stays);
    let names: BTreeSet<&str> = scalers
        .iter()
        .copied()
        .chain(former)
        .map(|each| &*each.name)
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    Some(names.join(",").into())
}

/// The lists that must be synced before an autoscaler is known to be gone.
const PROOF: [fn() -> SyncRequirement; 2] = [
    || SyncRequirement::Base,
    || SyncRequirement::Templates(autoscaler()),
];

/// The label and annotation of a template that has `found` and these autoscalers; `None` if they are as they are to be. `is_kept`: the
/// copies of the autoscaler in the annotation stay when it ends; without one, those of the present autoscaler.
fn wanted(found: &Label, scaler: Option<&Str>, is_kept: bool) -> Option<Label> {
    let set = || Str::from(keys::TRUE);
    let to = match (&found.by, scaler) {
        (None, None) => return None,
        // A user's, whatever it says.
        (None, Some(_)) if found.value.is_some() => return None,
        (None, Some(scaler)) => Label {
            value: Some(set()),
            by: Some(scaler.clone()).filter(|_| !is_kept),
        },
        (Some(_), _) if is_kept => Label {
            value: found.value.clone().or_else(|| scaler.map(|_| set())),
            by: None,
        },
        (Some(_), Some(scaler)) => Label {
            value: Some(found.value.clone().unwrap_or_else(set)),
            by: Some(scaler.clone()),
        },
        (Some(_), None) => Label {
            value: found.value.clone().filter(|held| **held != *keys::TRUE),
            by: None,
        },
    };
    (to != *found).then_some(to)
}

/// The plan that holds the label although no autoscaler that is propagated names the workload; `None` if it may be taken off: the
/// autoscalers that it was set for are proven not to scale the workload on any member, and the workload is settled.
fn holds(
    fleet: &Fleet,
    id: &ResourceId,
    of: (&ResourceState, &Template),
    own: Option<Own<'_>>,
    marked: &[ResourceId],
) -> Option<Plan> {
    if let Some(proof) = PROOF.iter().map(|proof| proof()).find(|proof| !fleet.has(proof)) {
        return Some(Plan::wait_for(
            proof,
            "the autoscaler may still exist: not synced yet",
        ));
    }
    for marked in marked {
        if let Some(cluster) = may_scale(fleet, marked, id) {
            let what = format!("HorizontalPodAutoscaler {} may still scale it", marked.name);
            return Some(hold(fleet, id, cluster, &what));
        }
    }
    if !fleet.config.sync_replicas || own.is_none() {
        return None;
    }
    let (resource, template) = of;
    let Some(binding) = resource
        .binding
        .as_ref()
        .filter(|held| held.meta.deleting.is_none())
    else {
        return Some(Plan::wait("its binding is about to be created"));
    };
    let spec = followed(fleet, id, template, &binding.object.spec)?;
    if let Some(task) = spec.graceful_eviction_tasks.first() {
        let from = &task.from_cluster;
        return Some(match is_to_be_confirmed(task) {
            true => tell(format!(
                "the label {} of {id} stays: its copy on {from} is to be deleted, and that is to be confirmed (suppressDeletion)",
                label::RETAIN_REPLICAS
            )),
            false => Plan::wait("the label stays while it is evicted"),
        });
    }
    let total = sum(fleet, id, resource, spec);
    if total == Some(0) && template.replicas != total {
        let remedy = match own {
            // Nothing divides another number.
            Some(Own::Orphaned) => "set spec.replicas to 0, or scale it up on a cluster",
            _ => "set spec.replicas to another number, 0 if none is to run",
        };
        return Some(tell(format!(
            "the label {} of {id} stays: no cluster has a replica, and the template asks for {}; {remedy}",
            label::RETAIN_REPLICAS,
            template.replicas.unwrap_or_default()
        )));
    }
    for target in &spec.clusters {
        let cluster = Str::from(target.name.as_str());
        match replicas_on(fleet, id, resource, &cluster) {
            None if !fleet.awaits_works() && is_suspended(fleet, id, resource, &cluster) => {
                return Some(tell(format!(
                    "the label {} of {id} stays: delivery to {cluster} is suspended",
                    label::RETAIN_REPLICAS
                )));
            }
            None => return Some(hold(fleet, id, &cluster, "its replicas are not known")),
            Some(replicas) if replicas != target.replicas => {
                // Shares of another scheduler follow nothing.
                let is_final = !is_of_our_scheduler(spec)
                    || share_on(fleet, id, resource, target, false) == target.replicas;
                return Some(match is_final {
                    true => tell(format!(
                        "the label {} of {id} stays: {cluster} reports {replicas} replicas and has a share of {}, which does not change by \
                         itself; scale it there, or take the label off where that does no harm",
                        label::RETAIN_REPLICAS,
                        target.replicas
                    )),
                    false => Plan::wait(format!("the binding has other replicas than {cluster}")),
                });
            }
            Some(_) => {}
        }
    }
    if total != template.replicas {
        return Some(Plan::wait(
            "the template does not have the sum of its clusters yet",
        ));
    }
    // The scheduler takes a cluster without replicas for one that has too few: it would divide all of them anew.
    let asleep = spec.clusters.iter().find(|target| target.replicas == 0);
    asleep.filter(|_| total != Some(0)).map(|asleep| {
        tell(format!(
            "the label {} of {id} stays: {} has no replica, and without the label those of the other clusters would be divided again; \
             scale it up there, or take the label off where that does no harm",
            label::RETAIN_REPLICAS,
            asleep.name
        ))
    })
}

/// The label stays because of a cluster. A user is told if the cluster does not respond: nothing else may end that.
fn hold(fleet: &Fleet, id: &ResourceId, cluster: &Str, what: &str) -> Plan {
    if fleet.answers(cluster) || !fleet.was_probed(cluster) {
        return Plan::wait(format!("{what} on {cluster}"));
    }
    tell(format!(
        "the label {} of {id} stays: {what} on {cluster}, which does not respond",
        label::RETAIN_REPLICAS
    ))
}

fn tell(words: String) -> Plan {
    Plan::one(Change::Refuse(words), "in doubt the label stays")
}

// --- the replicas

fn plan_replicas(
    fleet: &Fleet,
    id: &ResourceId,
    (resource, template): (&ResourceState, &Template),
    own: Option<Own<'_>>,
    now: Time,
) -> Plan {
    let binding = resource
        .binding
        .as_ref()
        .filter(|held| held.meta.deleting.is_none());
    let Some(binding) = binding.filter(|_| matches!(own, Some(Own::Claimed(..) | Own::Orphaned))) else {
        return Plan::nothing();
    };
    let Some(spec) = followed(fleet, id, template, &binding.object.spec) else {
        return Plan::nothing();
    };
    let Some(sum) = sum(fleet, id, resource, spec) else {
        return Plan::wait("not every cluster reports its share of the binding");
    };
    if template.replicas == Some(sum) {
        return Plan::nothing();
    }
    if sum == 0 {
        return Plan::wait("no cluster has a replica: the template keeps its number");
    }
    let before = resource
        .scaling_writes
        .as_ref()
        .and_then(|writes| writes.replicas.as_ref());
    if let Some(until) = before
        .map(|before| before.not_before(COLLECT))
        .filter(|until| now < *until)
    {
        return Plan::wait_until(until, "collecting the steps of autoscalers");
    }
    let body = json!({ "metadata": preconditions(&template.meta), "spec": { "replicas": sum } });
    let mut plan = patch(id, body, "the members have another number of replicas".into());
    let next = Written::next(before, (&template.replicas, Some(sum)), REPLICAS, now);
    plan.changes
        .extend(contested((id, template), before, &next, REPLICAS));
    plan
}

/// The path of the replicas in a template.
const REPLICAS: &str = "spec.replicas";

/// The spec of a binding, if the replicas of its template are followed.
fn followed<'a>(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    spec: &'a ResourceBindingSpec,
) -> Option<&'a ResourceBindingSpec> {
    let placement = spec.placement.as_ref()?;
    is_followed(fleet, id, template, placement).then_some(spec)
}

// --- the writes

/// The event when a write begins to be one that another writer keeps undoing.
fn contested<T: PartialEq>(
    (id, template): (&ResourceId, &Template),
    before: Option<&Written<T>>,
    next: &Written<T>,
    what: &str,
) -> Option<Change> {
    let begins = next.is_contested() && before.is_none_or(|before| !before.is_contested());
    begins.then(|| {
        let message = format!(
            "another writer of the hub, or a webhook of it, keeps changing {what} of {id} (contended); it is set again with back-off: \
             have that writer leave the field alone (Argo CD: ignoreDifferences), or turn the controller off (--controllers)"
        );
        warning(id, template, message)
    })
}

fn warning(id: &ResourceId, template: &Template, message: String) -> Change {
    Change::Emit(Event {
        regarding: on_template(id, template),
        warning: true,
        reason: event::FOLLOW_AUTOSCALERS_FAILED,
        message,
    })
}

fn preconditions(meta: &Meta) -> Map<String, Value> {
    let of = [("uid", &meta.uid), ("resourceVersion", &meta.resource_version)];
    of.into_iter()
        .map(|(key, value)| (key.to_owned(), json!(&**value)))
        .collect()
}

fn patch(id: &ResourceId, body: Value, why: String) -> Plan {
    let object = HubObject::Template(id.clone());
    let verb = Verb::Merge(body);
    Plan::one(Change::Hub { object, verb }, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(value: Option<&str>, by: Option<&str>) -> Label {
        Label {
            value: value.map(Str::from),
            by: by.map(Str::from),
        }
    }

    #[test]
    fn the_label_is_set_while_an_autoscaler_is_there_and_a_users_label_is_left_alone() {
        let set = |value, by| Some(marks(Some(value), Some(by)));
        let users = |value| Some(marks(value, None));
        let (on, off, web) = (Some("true"), Some("false"), Some("web"));
        for (held, by, scaler, want, case) in [
            (None, None, None, None, "nothing scales it"),
            (None, None, web, set("true", "web"), "an autoscaler comes"),
            (on, web, web, None, "as it is to be"),
            (on, None, web, None, "a user's label"),
            (off, None, web, None, "a user's refusal"),
            (off, web, web, None, "a user's refusal of our label"),
            (None, web, web, set("true", "web"), "the label alone was lost"),
            (on, web, Some("web-2"), set("true", "web-2"), "another autoscaler"),
            (
                off,
                web,
                Some("web-2"),
                set("false", "web-2"),
                "another one, refused",
            ),
            (on, web, None, users(None), "it goes"),
            (off, web, None, users(off), "it goes, and the refusal stays"),
            (None, web, None, users(None), "the annotation alone is left"),
            (on, None, None, None, "a user's label, without an autoscaler"),
        ] {
            check(&marks(held, by), scaler, false, want.as_ref(), case);
        }
    }

    #[test]
    fn the_label_for_an_autoscaler_that_members_keep_is_a_users() {
        let (on, off, web) = (Some("true"), Some("false"), Some("web"));
        for (held, by, scaler, want, case) in [
            (None, None, web, Some(marks(on, None)), "it comes"),
            (on, web, web, Some(marks(on, None)), "it is kept from now on"),
            (off, web, web, Some(marks(off, None)), "refused, and kept"),
            (on, web, None, Some(marks(on, None)), "it went"),
            (
                None,
                web,
                None,
                Some(marks(None, None)),
                "the annotation alone is left",
            ),
            (on, None, web, None, "as it is to be"),
            (on, None, None, None, "it went long ago"),
        ] {
            check(&marks(held, by), scaler, true, want.as_ref(), case);
        }
    }

    fn check(found: &Label, scaler: Option<&str>, is_kept: bool, want: Option<&Label>, case: &str) {
        let scaler = scaler.map(Str::from);
        let planned = wanted(found, scaler.as_ref(), is_kept);
        assert_eq!(planned.as_ref(), want, "{case}");
        let after = planned.unwrap_or_else(|| found.clone());
        assert_eq!(
            wanted(&after, scaler.as_ref(), is_kept),
            None,
            "{case}: written once"
        );
    }

    #[test]
    fn the_claim_of_a_policy_is_no_write_of_this_module() {
        for (patch, want) in [
            (json!({"spec": {"replicas": 3}}), true),
            (
                json!({"metadata": {"labels": {label::RETAIN_REPLICAS: "true"}}}),
                true,
            ),
            (
                json!({"metadata": {"labels": {label::RETAIN_REPLICAS: null}}}),
                true,
            ),
            (
                json!({"metadata": {"labels": {label::PROPAGATION_POLICY_ID: "p"}}}),
                false,
            ),
            (
                json!({"metadata": {"annotations": {annotation::WAITS: "w"}}}),
                false,
            ),
        ] {
            assert_eq!(is_write(&patch), want, "{patch}");
        }
    }
}
