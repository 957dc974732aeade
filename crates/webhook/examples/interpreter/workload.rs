//! The interpretation of a `Workload` of `workload.example.io/v1alpha1`: replicas with a pod template, that can be paused.

use entourage_api::work::{AggregatedStatusItem, DependentObjectReference, ReplicaRequirements};
use entourage_webhook::interpret::{Answered, Interpret, Refusal};
use serde_json::{Value, json};

/// The interpreter of Workloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workloads;

impl Interpret for Workloads {
    fn replicas(&self, template: &Value) -> Answered<(u32, Option<ReplicaRequirements>)> {
        let replicas = wanted(template)?;
        // Of one container; a real interpreter adds up what Kubernetes adds up.
        let container = &template["spec"]["template"]["spec"]["containers"][0];
        let requests = json!({"resourceRequest": container["resources"]["requests"]});
        let requirements = match &requests["resourceRequest"] {
            Value::Object(_) => serde_json::from_value(requests)
                .map_err(|_| Refusal::bad("the requests of the first container are no quantities"))?,
            _ => None,
        };
        Ok((replicas, requirements))
    }

    fn revise_replicas(&self, mut copy: Value, replicas: i64) -> Answered<Value> {
        copy["spec"]["replicas"] = replicas.into();
        Ok(copy)
    }

    fn retain(&self, mut desired: Value, live: &Value) -> Answered<Value> {
        // A user on the member pauses it; the hub does not revert that.
        if let Some(paused) = live["spec"].get("paused") {
            desired["spec"]["paused"] = paused.clone();
        }
        Ok(desired)
    }

    fn status(&self, live: &Value) -> Answered<Option<Value>> {
        let ready = &live["status"]["readyReplicas"];
        Ok((!ready.is_null()).then(|| json!({ "readyReplicas": ready })))
    }

    fn aggregate_status(&self, mut template: Value, items: &[AggregatedStatusItem]) -> Answered<Value> {
        let ready = |item: &AggregatedStatusItem| item.status.as_ref()?["readyReplicas"].as_i64();
        let sum: i64 = items.iter().filter_map(ready).sum();
        template["status"]["readyReplicas"] = sum.into();
        Ok(template)
    }

    fn is_healthy(&self, live: &Value) -> Answered<bool> {
        let ready = live["status"]["readyReplicas"].as_u64().unwrap_or_default();
        Ok(ready >= u64::from(wanted(live)?))
    }

    fn dependencies(&self, template: &Value) -> Answered<Vec<DependentObjectReference>> {
        let namespace = template["metadata"]["namespace"].as_str().unwrap_or_default();
        let volumes = template["spec"]["template"]["spec"]["volumes"].as_array();
        let named = |volume: &Value| {
            let (kind, name) = match (&volume["configMap"]["name"], &volume["secret"]["secretName"]) {
                (Value::String(name), _) => ("ConfigMap", name.clone()),
                (_, Value::String(name)) => ("Secret", name.clone()),
                _ => return None,
            };
            Some(DependentObjectReference {
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name,
                label_selector: None,
            })
        };
        Ok(volumes.into_iter().flatten().filter_map(named).collect())
    }
}

fn wanted(workload: &Value) -> Answered<u32> {
    let replicas = workload["spec"]["replicas"].as_u64();
    replicas
        .and_then(|replicas| u32::try_from(replicas).ok())
        .ok_or_else(|| Refusal::bad("spec.replicas is no number of replicas; give one, 0 or more"))
}
