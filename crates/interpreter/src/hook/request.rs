//! The request to a hook, as JSON.
//!
//! Source: Karmada reference 3.4 (`replicas` is in every request) and the proposal's ExploreRequest. An extension of ours to the
//! latter: `observedObject` for `ExploreRetaining`, without which a hook could retain nothing.

use entourage_api::work::AggregatedStatusItem;
use serde_json::{Value, json};

use super::{Contract, Hook, Subject, VERSIONS};
use crate::question::Question;

impl Hook {
    /// The request for a question; its response repeats `uid`. `None` if the contract does not have the operation.
    ///
    /// The object is sent as it is in the question: the caller has checked that the hook [matches it](Self::is_about).
    #[must_use]
    pub fn request(&self, uid: &str, subject: &Subject<'_>, question: Question<'_>) -> Option<Value> {
        let word = self.contract.word(question.operation())?;
        let object = question.object();
        let mut request = json!({
            "uid": uid,
            "kind": {"group": subject.group, "version": subject.version, "kind": subject.kind},
            "name": object["metadata"]["name"].as_str().unwrap_or_default(),
            "operation": word,
            "object": object,
        });
        if let Some(namespace) = object["metadata"]["namespace"].as_str()
            && !namespace.is_empty()
        {
            request["namespace"] = namespace.into();
        }
        if self.contract == Contract::Interpreter {
            request["replicas"] = 0.into();
        }
        match question {
            Question::Revise(_, replicas) => request["replicas"] = replicas.into(),
            Question::Retain { live, .. } => request["observedObject"] = live.clone(),
            Question::Aggregate { items, .. } => {
                request["aggregatedStatus"] = items.iter().map(|each| self.item(each)).collect();
            }
            _ => {}
        }
        let version = self.call.as_ref().map_or(VERSIONS[0], |call| call.version);
        Some(json!({
            "apiVersion": format!("config.karmada.io/{version}"),
            "kind": self.contract.message(),
            "request": request,
        }))
    }

    /// The report of a cluster, without the fields that only we write; `health` came after the proposal.
    fn item(&self, item: &AggregatedStatusItem) -> Value {
        let mut item = serde_json::to_value(item).unwrap_or_default();
        if let Some(fields) = item.as_object_mut() {
            fields.remove("copy");
            if self.contract == Contract::Explorer {
                fields.remove("health");
            }
        }
        item
    }
}
