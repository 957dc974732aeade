//! The fields of a copy on a member that are kept.

use entourage_api::keys::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1;
use serde_json::Value;

use super::{Copy, CopyMeta, interpreted, unhealthy};
use crate::{
    interpreter::{self, Health, Interpretation, operations::Operation, question::InterpretError},
    object::{Gvk, Time},
    pulled::{self, Applied},
};

impl Copy {
    /// True if the copy is on its member, as far as is known: always where this control plane writes it itself.
    #[must_use]
    pub fn is_carried_out(&self) -> bool {
        self.by_agent.is_none_or(|applied| applied == Applied::Done)
    }

    /// The error of the interpretation of this operation, or `None` if it did not fail.
    #[must_use]
    pub fn lacks(&self, operation: Operation) -> Option<&InterpretError> {
        self.failed_operations
            .iter()
            .find(|each| each.operation == operation)
    }

    /// True if it is known to be healthy, or is of a kind without a health rule. False while its health is still to be
    /// interpreted.
    #[must_use]
    pub fn is_known_healthy(&self) -> bool {
        match self.health {
            Some(health) => health == Health::Healthy,
            None => self.lacks(Operation::Health).is_none(),
        }
    }
}

/// Projects a copy.
#[must_use]
pub fn copy(interpretation: &Interpretation, gvk: &Gvk, object: &Value) -> Copy {
    let mut copy = copy_as_known(gvk, object);
    if !interpretation.version().is_empty() {
        interpreted::interpret_copy(interpretation, object, &mut copy);
    }
    if let Some(report) = pulled::applied(object) {
        report_of_agent(&mut copy, interpretation.is_copied_whole(gvk), object, report);
    } else if copy.health == Some(Health::Unhealthy) {
        copy.why_unhealthy = Some(unhealthy::reason(object).into());
    }
    copy
}

/// The agent of a member in Pull mode interprets what is there, as Karmada's does: its status and health are passed on. Without a
/// report the health of a kind that has one is unknown, and so is that of a copy that is not there yet.
fn report_of_agent(copy: &mut Copy, is_whole: bool, object: &Value, (applied, words): (Applied, &str)) {
    copy.failed_operations = Box::default();
    copy.status = object
        .get("status")
        .filter(|status| is_whole && status.is_object())
        .cloned();
    copy.health = match object[pulled::REPORT]["health"].as_str() {
        Some("Healthy") if applied == Applied::Done => Some(Health::Healthy),
        Some("Unhealthy") => Some(Health::Unhealthy),
        None if applied == Applied::Done && !is_whole => None,
        _ => Some(Health::Unknown),
    };
    // What it was given is in the Work's manifest: only the report says what it has. A healthy workload has as many as it requests there,
    // which no report says; one that is still to be counted, or grows one by one, is not healthy.
    let is_healthy = copy.health == Some(Health::Healthy);
    copy.replicas = copy
        .replicas
        .filter(|_| is_healthy)
        .and_then(|_| reported_replicas(object));
    copy.why_unhealthy = match copy.health {
        _ if applied == Applied::Failed => Some(words.into()),
        Some(Health::Unhealthy) => Some("the agent of the cluster reports that it is not healthy".into()),
        _ => None,
    };
    copy.by_agent = Some(applied);
}

/// The replicas that an agent reports, once the workload's controller has seen its latest spec and no replica of an earlier one is
/// left: while it is rolled out there are more of them, or fewer, than are asked for.
fn reported_replicas(object: &Value) -> Option<u32> {
    let status = &object["status"];
    let count = |name: &str| status[name].as_i64().unwrap_or_default();
    let replicas = count("replicas");
    let is_rolled_out = status["updatedReplicas"]
        .as_i64()
        .is_none_or(|updated| updated == replicas);
    let is_seen = count("observedGeneration") >= count("generation");
    // A status that no controller has written yet has none, too.
    let is_written = replicas > 0 || count("observedGeneration") > 0;
    let replicas = u32::try_from(replicas).ok();
    replicas.filter(|_| is_rolled_out && is_seen && is_written)
}

/// Projects a copy by its native interpreter.
fn copy_as_known(gvk: &Gvk, object: &Value) -> Copy {
    let meta = CopyMeta::of(object);
    match interpreter::native(&gvk.group, &gvk.version, &gvk.kind) {
        Some(native) if native.reports_status() => Copy {
            meta: CopyMeta {
                generation: meta
                    .generation
                    .or_else(|| interpreter::content_number(native, object)),
                ..meta
            },
            status: native.reflect(object),
            replicas: interpreter::native::left_to_member(native, object),
            health: Some(native.health(object)),
            holds_data: native.holds_data(object),
            data_restored_at: gvk.is_claim().then(|| restored_at(object)).flatten(),
            ..Copy::default()
        },
        Some(_) => Copy {
            meta,
            ..Copy::default()
        },
        // The kind has no native interpreter: its status is reflected as it is (karmada reference 1.6).
        None => Copy {
            meta,
            status: object.get("status").filter(|status| status.is_object()).cloned(),
            health: Some(Health::Healthy),
            ..Copy::default()
        },
    }
}

fn restored_at(object: &Value) -> Option<Box<Time>> {
    let text = object["metadata"]["annotations"][annotation::DATA_RESTORED_AT].as_str()?;
    let time: v1::Time = serde_json::from_value(text.into()).ok()?;
    Some(Box::new(Time::from_k8s(&time)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_replicas_of_an_agents_report_count_once_a_rollout_has_ended() {
        for (status, want) in [
            (
                json!({"replicas": 4, "updatedReplicas": 4, "observedGeneration": 2, "generation": 2}),
                Some(4),
            ),
            (json!({"replicas": 4}), Some(4)),
            (
                json!({"replicas": 5, "updatedReplicas": 2, "observedGeneration": 2, "generation": 2}),
                None,
            ),
            (
                json!({"replicas": 4, "updatedReplicas": 4, "observedGeneration": 1, "generation": 2}),
                None,
            ),
            (json!({}), None),
            (json!({"replicas": 0}), None),
            (json!({"observedGeneration": 2, "generation": 2}), Some(0)),
        ] {
            let found = reported_replicas(&json!({"status": status}));
            assert_eq!(found, want, "{status}");
        }
    }

    #[test]
    fn the_replicas_of_an_agents_report_count_only_if_the_workload_is_healthy() {
        let gvk = Gvk::new("apps/v1", "StatefulSet");
        let interpretation = Interpretation::default();
        for (report, want) in [
            (json!({"applied": "True", "health": "Healthy"}), Some(3)),
            // It grows from 2 to 6, one by one.
            (json!({"applied": "True", "health": "Unhealthy"}), None),
            (json!({"applied": "True", "health": null}), None),
            (json!({"applied": "False", "health": "Healthy"}), None),
        ] {
            let mut live = json!({
                "metadata": {"labels": {"resourcetemplate.karmada.io/retain-replicas": "true"}},
                "spec": {"replicas": 6},
                "status": {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "observedGeneration": 2, "generation": 2},
            });
            live[pulled::REPORT] = report.clone();
            assert_eq!(copy(&interpretation, &gvk, &live).replicas, want, "{report}");
        }
    }

    #[test]
    fn the_replicas_of_a_copy_are_kept_only_if_they_are_left_to_the_member() {
        let gvk = Gvk::new("apps/v1", "Deployment");
        let interpretation = Interpretation::default();
        for (label, replicas, want) in [("true", 3, Some(3)), ("true", 0, Some(0)), ("false", 3, None)] {
            let live = json!({
                "metadata": {"labels": {"resourcetemplate.karmada.io/retain-replicas": label}},
                "spec": {"replicas": replicas}, "status": {"replicas": 5},
            });
            let found = copy(&interpretation, &gvk, &live).replicas;
            assert_eq!(found, want, "{label}");
        }
    }
}
