//! Member clusters: what a Cluster's status says, and when a Cluster may go.
//!
//! Status is written on transition only. A member that stops answering is given the failure threshold before its Ready
//! condition turns False (karmada reference 4.1).

use entourage_api::{
    cluster::{ApiEnablement, ApiResource, Cluster, ClusterStatus, SyncMode},
    keys::{condition, event, finalizer, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

pub(crate) mod copied;
pub mod identity;

use crate::{
    condition as conditions, governor,
    index::{Index, Member},
    object::{Gvk, Id, Str, Time},
    observation::Probe,
    plan::{Change, Event, HubObject, Plan, Proof, Regarding, Verb},
};

pub mod credentials;

/// What is told of a cluster in Pull mode.
const PULL: &str = "spec.syncMode Pull is stored and has no effect in this version: nothing is delivered; join the cluster in Push \
                    mode";

/// How many kinds that a member refuses are told with its words.
const TOLD: usize = 3;

/// Whether the Ready condition of a Cluster, as stored, is True.
#[must_use]
pub fn is_ready(cluster: &Cluster) -> bool {
    let all = cluster.status.iter().flat_map(|status| &status.conditions);
    all.into_iter()
        .any(|each| each.type_ == condition::READY && each.status == "True")
}

/// Plans a Cluster. Cost: O(kinds it serves); O(entities) while it is being deleted.
#[must_use]
pub fn plan(index: &Index, name: &Str, now: Time) -> Plan {
    let Some(member) = index.members.get(name) else {
        return Plan::nothing();
    };
    if member.object.spec.sync_mode == SyncMode::Pull {
        return tell_pull(name, member, now);
    }
    if member.meta.deleting.is_some() {
        let mut plan = leave(index, name, member, now);
        // While it waits, Ready goes on telling whether the member answers.
        if plan.changes.is_empty() && member.meta.has_finalizer(finalizer::CLUSTER) {
            let told = condition_of(index, name, member, now);
            if !told.changes.is_empty() {
                return told;
            }
            plan.again_at = plan.again_at.into_iter().chain(told.again_at).min();
        }
        return plan;
    }
    if !member.meta.has_finalizer(finalizer::CLUSTER) {
        let mut all: Vec<&str> = member.meta.finalizers.iter().map(|each| &**each).collect();
        all.push(finalizer::CLUSTER);
        return merge(name, member, json!({ "finalizers": all }), "it is new");
    }
    if let Some(plan) = identity::fill_in(name, member) {
        return plan;
    }
    let copied = copied::report(index, name, member, now);
    if !copied.changes.is_empty() {
        return copied;
    }
    let mut plan = condition_of(index, name, member, now);
    plan.again_at = plan.again_at.into_iter().chain(copied.again_at).min();
    if plan.changes.is_empty() {
        plan.awaits = plan.awaits.or(copied.awaits);
    }
    plan
}

fn condition_of(index: &Index, name: &Str, member: &Member, now: Time) -> Plan {
    let Some(probe) = &member.probe else {
        return Plan::wait("it was not probed yet");
    };
    let objection = identity::objection(index, name);
    let unused = objection.as_ref().map(|objection| Probe {
        healthy: false,
        reason: objection.reason().into(),
        message: objection.message(name),
        ..Probe::default()
    });
    // What a cluster is does not pass by itself: it is told at once.
    let is_certain =
        unused.is_some() || probe.reason == reason::CLUSTER_ID_CHANGED || is_refusal(&probe.reason);
    let probe = unused.as_ref().unwrap_or(probe);
    if !probe.healthy
        && !is_certain
        && is_ready(&member.object)
        && let Some(since) = member.failing_since
    {
        let until = since.plus(index.config.cluster_failure_threshold);
        if now < until {
            return Plan::wait_until(until, "it may come back");
        }
    }
    report(index, name, member, probe, now)
}

/// Says that nothing is delivered to a cluster in Pull mode. The rest of its status is its agent's.
fn tell_pull(name: &Str, member: &Member, now: Time) -> Plan {
    let mut status = member.object.status.clone().unwrap_or_default();
    let before = status.conditions.clone();
    let turned = conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::EFFECTIVE.into(),
            status: "False".into(),
            reason: reason::PARTS_WITHOUT_EFFECT.into(),
            message: PULL.into(),
            observed_generation: member.meta.generation,
            last_transition_time: now.to_k8s(),
        },
    );
    if member.meta.deleting.is_some() || status.conditions == before {
        return Plan::wait("an agent takes care of it");
    }
    let mut plan = write_status(name, member, &status, "nothing is delivered in Pull mode");
    if turned {
        plan.changes
            .push(warning(name, member, event::PARTS_WITHOUT_EFFECT, PULL.into()));
    }
    plan
}

fn warning(name: &Str, member: &Member, reason: &'static str, message: String) -> Change {
    Change::Emit(Event {
        regarding: Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: name.clone(),
            uid: member.meta.uid.clone(),
        },
        warning: true,
        reason,
        message,
    })
}

/// Whether a probe was not sent because the Cluster may not use its credentials: it will not come back by itself.
fn is_refusal(why: &str) -> bool {
    [
        reason::CREDENTIALS_NOT_FOR_CLUSTER,
        reason::CREDENTIALS_NOT_FOR_ADDRESS,
    ]
    .contains(&why)
}

/// Nothing of ours must be left there, as far as that can be known.
fn leave(index: &Index, name: &Str, member: &Member, now: Time) -> Plan {
    if !member.meta.has_finalizer(finalizer::CLUSTER) {
        return Plan::nothing();
    }
    if !index.is_base_synced() {
        return Plan::wait_for(Proof::Base, "the hub is not known yet");
    }
    if let Some(identity::Objection::Conflict { older }) = identity::objection(index, name) {
        let why =
            format!("{older} stands for the same physical cluster: nothing is removed through this one");
        return without_finalizer(name, member, &why);
    }
    let unwritten = index.unwritten_kinds(name);
    let unknown = || {
        let kinds = index.kinds.iter();
        kinds.filter(|gvk| !index.copies_known(name, gvk) && !unwritten.contains(gvk))
    };
    let refused = unknown().filter_map(|gvk| Some((gvk, index.refused.get(&index.copies(name, gvk))?)));
    let may_stand = |id: &Id| index.may_exist(id, name) && !unwritten.contains(&id.gvk);
    let refused = refused.collect::<Vec<_>>();
    let is_silent = is_silent(index, member, now);
    let silent = is_silent && (unknown().next().is_some() || index.entities().any(|(id, _)| may_stand(id)));
    if let Some(told) = tell_what_holds(name, member, &refused, silent, now) {
        return told;
    }
    if let Some((id, _)) = index.entities().find(|(id, _)| may_stand(id)) {
        return Plan::wait(format!("{id} may still stand there"));
    }
    if let Some(gvk) = unknown().next() {
        return Plan::wait(format!(
            "what it holds of {gvk} is not known; unjoin --force gives up on a dead cluster"
        ));
    }
    without_finalizer(name, member, "nothing of ours is left there")
}

fn without_finalizer(name: &Str, member: &Member, why: &str) -> Plan {
    let all = member.meta.finalizers.iter().map(|each| &**each);
    let rest: Vec<&str> = all.filter(|each| *each != finalizer::CLUSTER).collect();
    merge(name, member, json!({ "finalizers": rest }), why)
}

/// Whether a member has not answered for as long as makes it not ready.
fn is_silent(index: &Index, member: &Member, now: Time) -> bool {
    let lasts = |since: Time| since.plus(index.config.cluster_failure_threshold) <= now;
    let fails = member.probe.as_ref().is_some_and(|probe| !probe.healthy);
    fails && (!is_ready(&member.object) || member.failing_since.is_some_and(lasts))
}

/// Says what only a person can change about a member that leaves: which kinds it refuses to our account although copies of
/// them may stand there, or that it does not answer. On transition; nothing when that is told already.
fn tell_what_holds(
    name: &Str,
    member: &Member,
    refused: &[(&Gvk, &String)],
    silent: bool,
    now: Time,
) -> Option<Plan> {
    let mut status = member.object.status.clone().unwrap_or_default();
    let before = status.conditions.clone();
    if refused.is_empty() && silent {
        let message = format!(
            "the cluster {name} does not answer, so which copies are there is not known. The Cluster stays, and so do the \
             replicas scheduled to it, until it answers or `entourage unjoin {name} --force` gives its copies up"
        );
        conditions::set(
            &mut status.conditions,
            Condition {
                type_: condition::RELEASED.into(),
                status: "False".into(),
                reason: reason::COPIES_UNKNOWN.into(),
                message,
                observed_generation: member.meta.generation,
                last_transition_time: now.to_k8s(),
            },
        );
    } else if refused.is_empty() {
        conditions::remove(&mut status.conditions, condition::RELEASED);
    } else {
        let told = told_kinds(refused);
        let resources: Option<Vec<String>> = refused
            .iter()
            .map(|(gvk, _)| resource_of(&member.object, gvk))
            .collect();
        let flag = resources.map_or_else(
            || "--admin".to_owned(),
            |all| format!("--allow {}", all.join(",")),
        );
        let message = format!(
            "copies may stand on {name} of what our account may not list and watch there any more: {told}. Give the rights with \
             `entourage join {name} {flag}` and the --allow that it was joined with, or give the copies up with `entourage \
             unjoin {name} --force`"
        );
        conditions::set(
            &mut status.conditions,
            Condition {
                type_: condition::RELEASED.into(),
                status: "False".into(),
                reason: reason::RIGHTS_MISSING.into(),
                message,
                observed_generation: member.meta.generation,
                last_transition_time: now.to_k8s(),
            },
        );
    }
    (status.conditions != before).then(|| write_status(name, member, &status, "what holds it changed"))
}

/// Some kinds with the words about each; how many more there are.
fn told_kinds(kinds: &[(&Gvk, &String)]) -> String {
    let told: Vec<String> = kinds
        .iter()
        .take(TOLD)
        .map(|(gvk, why)| format!("{} {} ({why})", gvk.api_version(), gvk.kind))
        .collect();
    let more = kinds.len().saturating_sub(TOLD);
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("{}{more}", told.join(", "))
}

/// Says which kinds a member that answers does not list, when that has lasted; answers when to look again. What never was
/// granted, and so was never written there, is no news. While it is not known of every kind, what was said before stands: a
/// restart takes nothing back. Cost: O(kinds); that of [`Index::is_unwritten`] for those that do not list.
fn say_what_is_not_watched(
    index: &Index,
    name: &Str,
    member: &Member,
    conditions: &mut Vec<Condition>,
    now: Time,
) -> Option<Time> {
    let (mut lasting, mut unsettled, mut again_at) = (Vec::new(), false, None);
    for gvk in &index.kinds {
        let watch = index.copies(name, gvk);
        if !index.demand().contains(&watch)
            || index.synced.contains(&watch)
            || index.unserved.contains(&watch)
        {
            continue;
        }
        let Some((since, why)) = index.lost.get(&watch) else {
            unsettled = true;
            continue;
        };
        if index.is_unwritten(name, gvk) {
            continue;
        }
        let until = since.plus(index.config.cluster_failure_threshold);
        if until <= now {
            lasting.push((gvk, why));
        } else {
            unsettled = true;
            again_at = Some(again_at.map_or(until, |held: Time| held.min(until)));
        }
    }
    if !lasting.is_empty() {
        let message = format!(
            "what {name} holds of some kinds is not known as it is now: {}. Until it lists them, changes of copies there are \
             not seen, nothing of them is removed, and their bindings tell what was seen last",
            told_kinds(&lasting)
        );
        conditions::set(
            conditions,
            Condition {
                type_: condition::COPIES_WATCHED.into(),
                status: "False".into(),
                reason: reason::LIST_FAILS.into(),
                message,
                observed_generation: member.meta.generation,
                last_transition_time: now.to_k8s(),
            },
        );
    } else if !unsettled {
        conditions::remove(conditions, condition::COPIES_WATCHED);
    }
    again_at
}

/// A kind as `--allow` names it, if the member was seen to serve it.
fn resource_of(cluster: &Cluster, gvk: &Gvk) -> Option<String> {
    let served = cluster.status.iter().flat_map(|status| &status.api_enablements);
    let mut of_group = served.filter(|each| {
        let group = each.group_version.split_once('/').map_or("", |(group, _)| group);
        *group == *gvk.group
    });
    let plural = of_group.find_map(|each| {
        let mut resources = each.resources.iter();
        resources.find(|resource| *resource.kind == *gvk.kind)
    });
    let plural = &plural?.name;
    Some(if gvk.group.is_empty() {
        plural.clone()
    } else {
        format!("{}/{plural}", gvk.group)
    })
}

fn report(index: &Index, name: &Str, member: &Member, probe: &Probe, now: Time) -> Plan {
    let mut status = member.object.status.clone().unwrap_or_default();
    let generation = member.meta.generation;
    let fallback = if probe.healthy {
        reason::CLUSTER_READY
    } else {
        reason::CLUSTER_NOT_REACHABLE
    };
    let why = if probe.reason.is_empty() {
        fallback
    } else {
        &probe.reason
    };
    let before = status.clone();
    conditions::set(
        &mut status.conditions,
        Condition {
            type_: condition::READY.into(),
            status: if probe.healthy { "True" } else { "False" }.into(),
            reason: why.into(),
            message: same_words(&before.conditions, why, probe),
            observed_generation: generation,
            last_transition_time: now.to_k8s(),
        },
    );
    if let Some(version) = &probe.kubernetes_version {
        status.kubernetes_version.clone_from(version);
    }
    if let Some(served) = &probe.api_enablements {
        status.api_enablements = served
            .iter()
            .map(|(group_version, kinds)| ApiEnablement {
                group_version: group_version.clone(),
                resources: kinds
                    .iter()
                    .map(|(plural, kind)| ApiResource {
                        name: plural.clone(),
                        kind: kind.clone(),
                    })
                    .collect(),
            })
            .collect();
        let empty = status.api_enablements.is_empty();
        conditions::set(
            &mut status.conditions,
            Condition {
                type_: condition::COMPLETE_API_ENABLEMENTS.into(),
                status: if empty { "False" } else { "True" }.into(),
                reason: if empty {
                    reason::EMPTY_API_ENABLEMENTS
                } else {
                    reason::FULL_API_ENABLEMENTS
                }
                .into(),
                message: if empty {
                    "It serves no API that we may see."
                } else {
                    "The list is complete."
                }
                .into(),
                observed_generation: generation,
                last_transition_time: now.to_k8s(),
            },
        );
    }
    conditions::remove(&mut status.conditions, condition::EFFECTIVE);
    let again_at = if probe.healthy {
        say_what_is_not_watched(index, name, member, &mut status.conditions, now)
    } else {
        None
    };
    let (paused, counts_at) = governor::say(index, name, member, &mut status.conditions, now);
    let again_at = again_at.into_iter().chain(counts_at).min();
    if status == before {
        let waits = |until| Plan::wait_until(until, "there is more to say soon");
        return again_at.map_or_else(Plan::nothing, waits);
    }
    let told = before
        .conditions
        .iter()
        .any(|each| each.type_ == condition::READY);
    let turned = !told || is_ready(&member.object) != probe.healthy;
    let mut plan = write_status(name, member, &status, "its status differs");
    plan.again_at = again_at;
    plan.changes.extend(paused.map(Change::Emit));
    if turned && !probe.healthy {
        let told = probe.message.clone();
        plan.changes
            .push(warning(name, member, event::CLUSTER_NOT_READY, told));
    }
    plan
}

fn write_status(name: &Str, member: &Member, status: &ClusterStatus, why: &str) -> Plan {
    // A merge patch only says what is there: what became empty is said too.
    let mut written = serde_json::to_value(status).unwrap_or_default();
    if status.api_enablements.is_empty() {
        written["apiEnablements"] = json!([]);
    }
    if status.conditions.is_empty() {
        written["conditions"] = json!([]);
    }
    let body = json!({
        "metadata": { "uid": &*member.meta.uid, "resourceVersion": &*member.meta.resource_version },
        "status": written,
    });
    Plan::one(
        Change::Hub {
            object: HubObject::Cluster(name.clone()),
            verb: Verb::MergeStatus(body),
        },
        why,
    )
}

/// The words of a failing transport differ from try to try: while the reason is the same, so are the words.
fn same_words(held: &[Condition], reason: &str, probe: &Probe) -> String {
    let held = held.iter().find(|each| each.type_ == condition::READY);
    match held {
        Some(held)
            if !probe.healthy && held.status == "False" && held.reason == reason && !is_refusal(reason) =>
        {
            held.message.clone()
        }
        _ => probe.message.clone(),
    }
}

fn merge(name: &Str, member: &Member, mut metadata: Value, why: &str) -> Plan {
    metadata["uid"] = json!(&*member.meta.uid);
    metadata["resourceVersion"] = json!(&*member.meta.resource_version);
    let verb = Verb::Merge(json!({ "metadata": metadata }));
    Plan::one(
        Change::Hub {
            object: HubObject::Cluster(name.clone()),
            verb,
        },
        why,
    )
}
