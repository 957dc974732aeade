//! Member clusters: the status of a Cluster, the taints that follow from it, and when a Cluster may be deleted.
//!
//! Status and taints are written on transition only. Module `ready` decides when a member is ready; taints follow from the
//! stored condition (`taints`), so a taint never precedes the condition that explains it.

use entourage_api::{
    cluster::{Cluster, ClusterStatus, SyncMode},
    keys::{condition, finalizer, reason},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

mod capacity;
mod copied;
pub mod credentials;
mod endpoints;
pub mod identity;
mod pull;
mod ready;
mod taint_policies;
mod taints;

use crate::{
    cache::Member,
    condition as conditions,
    fleet::Fleet,
    fleet::identities,
    member_status,
    object::{Gvk, ResourceId, Str, Time},
    plan::{Change, Event, HubObject, Plan, Regarding, SyncRequirement, Verb},
    readiness::is_ready,
};

/// The maximum number of refused kinds that are reported with the member's message.
const MAX_NAMED: usize = 3;

/// Plans a Cluster. Cost: O(kinds it serves + ClusterTaintPolicies); O(resources) while it is being deleted.
#[must_use]
pub fn plan(fleet: &Fleet, name: &Str, now: Time) -> Plan {
    let Some(member) = fleet.cache.members.get(name) else {
        return Plan::nothing();
    };
    let is_pull = member.object.spec.sync_mode == SyncMode::Pull;
    let report = if is_pull { pull::plan } else { ready::plan };
    if member.meta.deleting.is_some() {
        let mut plan = leave(fleet, name, member, now);
        // While it waits, Ready still reports the state of the member.
        if plan.changes.is_empty() && member.meta.has_finalizer(finalizer::CLUSTER) {
            let reported = report(fleet, name, member, now);
            if !reported.changes.is_empty() {
                return reported;
            }
            plan.again_at = plan.again_at.into_iter().chain(reported.again_at).min();
        }
        return plan;
    }
    if !member.meta.has_finalizer(finalizer::CLUSTER) {
        return with_finalizer(name, member);
    }
    // An agent states which cluster it is in.
    if !is_pull && let Some(plan) = identity::fill_in(name, member) {
        return plan;
    }
    let copied = copied::report(fleet, name, member, now);
    if !copied.changes.is_empty() {
        return copied;
    }
    let mut plan = report(fleet, name, member, now);
    plan.again_at = plan.again_at.into_iter().chain(copied.again_at).min();
    plan = tainted(fleet, name, member, plan, now);
    if plan.changes.is_empty() {
        plan.awaits = plan.awaits.or(copied.awaits);
    }
    plan
}

fn with_finalizer(name: &Str, member: &Member) -> Plan {
    let mut all: Vec<&str> = member.meta.finalizers.iter().map(|each| &**each).collect();
    all.push(finalizer::CLUSTER);
    merge(name, member, json!({ "finalizers": all }), "it is new")
}

/// Returns the plan, or that of the taints if it changes nothing on the hub: taints follow from the stored status, so the status is
/// written first. Taints do not wait for a Lease that cannot be read.
fn tainted(fleet: &Fleet, name: &Str, member: &Member, plan: Plan, now: Time) -> Plan {
    let is_writing = !matches!(plan.changes.as_slice(), [] | [Change::GetLease(_)]);
    if is_writing || member.meta.deleting.is_some() {
        return plan;
    }
    match taints::keep(fleet, name, member, now) {
        Some(kept) => Plan {
            again_at: plan.again_at,
            ..kept
        },
        None => plan,
    }
}

fn warning(name: &Str, member: &Member, reason: &'static str, message: String) -> Change {
    event_of(name, member, (true, reason), message)
}

fn event_of(name: &Str, member: &Member, (warning, reason): (bool, &'static str), message: String) -> Change {
    Change::Emit(Event {
        regarding: Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: name.clone(),
            uid: member.meta.uid.clone(),
        },
        warning,
        reason,
        message,
    })
}

/// Removes the finalizer when no managed copy is left there, as far as that can be known.
fn leave(fleet: &Fleet, name: &Str, member: &Member, now: Time) -> Plan {
    if !member.meta.has_finalizer(finalizer::CLUSTER) {
        return Plan::nothing();
    }
    if !fleet.is_base_synced() {
        return Plan::wait_for(SyncRequirement::Base, "the hub is not synced yet");
    }
    if let Some(identities::Objection::Conflict { older }) = identities::objection(fleet, name) {
        let why =
            format!("{older} stands for the same physical cluster: nothing is removed through this one");
        return without_finalizer(fleet, name, member, &why);
    }
    let unwritten = fleet.unwritten_kinds(name);
    let unknown = || {
        let kinds = fleet.graph.kinds.iter();
        kinds.filter(|gvk| !fleet.copies_known(name, gvk) && !unwritten.contains(gvk))
    };
    let refused =
        unknown().filter_map(|gvk| Some((gvk, fleet.cache.watches.refused(&fleet.copies(name, gvk))?)));
    let may_stand = |id: &ResourceId| fleet.may_exist(id, name) && !unwritten.contains(&id.gvk);
    let refused = refused.collect::<Vec<_>>();
    let is_unresponsive = is_unresponsive(fleet, member, now);
    let unresponsive =
        is_unresponsive && (unknown().next().is_some() || fleet.resources().any(|(id, _)| may_stand(id)));
    if let Some(reported) = report_blocking_kinds(name, member, &refused, unresponsive, now) {
        return reported;
    }
    if let Some((id, _)) = fleet.resources().find(|(id, _)| may_stand(id)) {
        return Plan::wait(format!("{id} may still exist there"));
    }
    if fleet.answers(name) && fleet.has_quota_copies(name) {
        return Plan::wait("a ResourceQuota of a FederatedResourceQuota is still there");
    }
    if let Some(gvk) = unknown().next() {
        return Plan::wait(format!(
            "unknown state of {gvk} on the member; unjoin --force gives up a dead cluster"
        ));
    }
    without_finalizer(fleet, name, member, "no managed object is left there")
}

/// Removes the finalizer, once the execution namespace of the Cluster is gone.
fn without_finalizer(fleet: &Fleet, name: &Str, member: &Member, why: &str) -> Plan {
    if fleet.awaits_execution_namespace(name) {
        return Plan::wait("its execution namespace is deleted first");
    }
    let all = member.meta.finalizers.iter().map(|each| &**each);
    let rest: Vec<&str> = all.filter(|each| *each != finalizer::CLUSTER).collect();
    merge(name, member, json!({ "finalizers": rest }), why)
}

/// True if a member has not responded for the failure threshold, or its agent is absent.
fn is_unresponsive(fleet: &Fleet, member: &Member, now: Time) -> bool {
    if member.object.spec.sync_mode == SyncMode::Pull {
        return !is_ready(&member.object);
    }
    let lasts = |since: Time| since.plus(fleet.config.cluster_failure_threshold) <= now;
    let fails = member.probe.as_ref().is_some_and(|probe| !probe.healthy);
    fails && (!is_ready(&member.object) || member.failing_since.is_some_and(lasts))
}

/// Reports what only a user can change about a member that is being removed: the kinds that it forbids to our account although
/// copies of them may exist there, or that it does not respond. On transition; nothing if that is reported already.
fn report_blocking_kinds(
    name: &Str,
    member: &Member,
    refused: &[(&Gvk, &String)],
    unresponsive: bool,
    now: Time,
) -> Option<Plan> {
    let mut status = member.object.status.clone().unwrap_or_default();
    let before = status.conditions.clone();
    if refused.is_empty() && unresponsive {
        let message = format!(
            "unknown state of cluster {name}: it does not respond. The Cluster and the replicas scheduled to it are \
             kept until it responds, or until `entourage unjoin {name} --force` orphans its copies"
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
        let reported = named_kinds(refused);
        let resources: Option<Vec<String>> = refused
            .iter()
            .map(|(gvk, _)| resource_of(&member.object, gvk))
            .collect();
        let flag = resources.map_or_else(
            || "--admin".to_owned(),
            |all| format!("--allow {}", all.join(",")),
        );
        let message = format!(
            "copies may exist on {name} of kinds that the joined account may no longer list and watch: {reported}. \
             Grant the rights with `entourage join {name} {flag}` and the --allow that it was joined with, or \
             orphan the copies with `entourage unjoin {name} --force`"
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

/// Some kinds with their messages, and the number of the others.
fn named_kinds(kinds: &[(&Gvk, &String)]) -> String {
    let reported: Vec<String> = kinds
        .iter()
        .take(MAX_NAMED)
        .map(|(gvk, why)| format!("{} {} ({why})", gvk.api_version(), gvk.kind))
        .collect();
    let more = kinds.len().saturating_sub(MAX_NAMED);
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("{}{more}", reported.join(", "))
}

/// A kind as `--allow` names it, or `None` if the member was never seen to serve it.
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

fn write_status(name: &Str, member: &Member, status: &ClusterStatus, why: &str) -> Plan {
    let body = member_status::patch(&member.meta, member.object.status.as_ref(), status);
    Plan::one(
        Change::Hub {
            object: HubObject::Cluster(name.clone()),
            verb: Verb::MergeStatus(body),
        },
        why,
    )
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use entourage_api::cluster::NodeSummary;

    use super::*;
    use crate::object::Meta;

    /// The status that is written for a Cluster whose stored status becomes this one.
    fn written(stored: &Value, edit: fn(&mut ClusterStatus)) -> Value {
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
            "spec": {"syncMode": "Push"}, "status": stored,
        });
        let member = Member {
            meta: Meta::default(),
            object: Arc::new(serde_json::from_value(cluster).unwrap()),
            id: None,
            probe: None,
            failing_since: None,
            answering_since: None,
        };
        let mut status = member.object.status.clone().unwrap_or_default();
        edit(&mut status);
        let plan = write_status(&"m1".into(), &member, &status, "a test");
        match plan.changes.as_slice() {
            [
                Change::Hub {
                    verb: Verb::MergeStatus(body),
                    ..
                },
            ] => body["status"].clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_actions_of_a_remedy_controller_survive_a_write_of_the_status() {
        let edits: [fn(&mut ClusterStatus); 4] = [
            |status| status.kubernetes_version = "v1.36.2".into(),
            |status| status.api_enablements.clear(),
            |status| status.conditions.clear(),
            |status| status.node_summary = Some(NodeSummary::default()),
        ];
        let actions = json!(["TrafficControl"]);
        for edit in edits {
            let stored = json!({
                "kubernetesVersion": "v1.35.0", "remedyActions": actions,
                "apiEnablements": [{"groupVersion": "v1", "resources": []}],
            });
            assert_eq!(written(&stored, edit)["remedyActions"], actions);
            // A merge patch keeps what it does not name: an action of a moment ago, too.
            let stored = json!({"kubernetesVersion": "v1.35.0"});
            assert_eq!(written(&stored, edit).get("remedyActions"), None);
        }
    }
}
