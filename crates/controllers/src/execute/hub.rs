//! Writes objects of the hub, and reads those that a decision needs.

use entourage_core::delivery::render::wipe;
use entourage_core::{
    autoscaling, distribution, interpreter,
    object::{Gvk, ResourceId},
    observation::{self, ObjectRef, Observation, Watch},
    plan::{HubObject, Verb},
    rebalancer, rights, scope,
};
use serde_json::Value;
use tracing::{debug, warn};

use super::{Executor, FORBIDDEN, Outcome, outcome_of};
use crate::{
    client::{Form, path::Path},
    error::{Class, Failure},
    failure_kind::FailureKind,
};

impl Executor {
    /// Writes one object of the hub and observes the response. After 404 or 409 the object is read and observed, and the plan
    /// ends: the core plans again from its current state.
    pub(super) async fn write(&self, object: &HubObject, verb: Verb) -> Outcome {
        let (watch, form) = self.read_as(object);
        let path = Path::hub(object);
        let result = match &verb {
            Verb::Create(body) => self.hub.create(&Path::hub_collection(object), body, form).await,
            Verb::Replace(body) => self.hub.replace(&path, body, form).await,
            Verb::ReplaceStatus(body) => self.hub.replace(&path.status(), body, form).await,
            Verb::Merge(patch) => self.hub.merge(&path, patch, form).await,
            Verb::MergeStatus(patch) => self.hub.merge(&path.status(), patch, form).await,
            Verb::Delete {
                uid,
                resource_version,
            } => {
                // Whole: a namespace is held by finalizers in its spec.
                self.hub.delete(&path, uid, resource_version, Form::Whole).await
            }
        };
        match result {
            Ok(answer) => {
                match &verb {
                    Verb::Delete { uid, .. } if is_deleted(&answer, uid) => {
                        let (which, uid) = (which(object), Some(uid.clone()));
                        self.tell(Observation::Gone {
                            which,
                            uid,
                            revision: None,
                        })
                        .await;
                    }
                    _ => self.see(&watch, answer).await,
                }
                Outcome::Done
            }
            Err(failure) => {
                debug!(object = ?object, error = ?failure, "a write to the hub failed");
                self.learn(object, &verb, &failure).await
            }
        }
    }

    /// Gets a template on the hub.
    pub(super) async fn need(&self, id: &ResourceId) -> Outcome {
        let secret = id.gvk.group.is_empty() && &*id.gvk.kind == "Secret";
        // The type of a Secret is not part of its metadata, and it decides whether the Secret is propagated.
        let interpretation = self.interpreters.of(&id.gvk);
        let form = if secret || interpretation.is_interpreted(&id.gvk) {
            Form::Whole
        } else {
            Form::Metadata
        };
        match self.hub.get(&Path::object(id), form).await {
            Ok(mut object) => {
                let is_propagatable = !interpreter::not_propagatable(&object);
                let template = self.interpreters.template(&interpretation, id, &object).await;
                wipe(&mut object);
                let seen = if is_propagatable {
                    Observation::Found(id.clone(), template)
                } else {
                    Observation::NotPropagatable(id.clone())
                };
                self.tell(seen).await;
                Outcome::Done
            }
            Err(failure) if failure.class() == Class::Missing => {
                match self.hub.is_gone(id, &failure).await {
                    Ok(true) => {}
                    Ok(false) => {
                        return Outcome::Failed {
                            failure_kind: FailureKind::Busy,
                            asked: None,
                        };
                    }
                    Err(failure) => return outcome_of(&failure),
                }
                self.tell(Observation::Absent(id.clone())).await;
                Outcome::Done
            }
            Err(failure) => {
                debug!(object = %id, error = ?failure, "cannot look for a template");
                if failure.code() == FORBIDDEN {
                    self.tell(Observation::Unreadable(id.clone(), failure.text(&id.gvk)))
                        .await;
                }
                outcome_of(&failure)
            }
        }
    }

    pub(super) async fn learn(&self, object: &HubObject, verb: &Verb, failure: &Failure) -> Outcome {
        let (watch, form) = self.read_as(object);
        match failure.class() {
            // The collection is missing: its namespace or its kind. That says nothing about the object.
            Class::Missing if matches!(verb, Verb::Create(_)) => {
                warn!(object = ?object, error = failure.text(&gvk_of(object)), "the hub has no namespace or no kind \
                    for an object");
                return Outcome::Failed {
                    failure_kind: FailureKind::Busy,
                    asked: None,
                };
            }
            Class::Missing | Class::Exists | Class::Conflict => {
                match self.hub.get(&Path::hub(object), form).await {
                    Ok(standing) => self.see(&watch, standing).await,
                    Err(failure) if failure.class() == Class::Missing => {
                        // For our own kinds and templates alike: an address that is not served says nothing about the object.
                        if !failure.is_about(&Path::hub(object).resource) {
                            warn!(object = ?object, "the hub does not serve the address of an object now");
                            return Outcome::Failed {
                                failure_kind: FailureKind::Busy,
                                asked: None,
                            };
                        }
                        self.tell(Observation::Gone {
                            which: which(object),
                            uid: None,
                            revision: None,
                        })
                        .await;
                    }
                    Err(failure) => return outcome_of(&failure),
                }
            }
            Class::Refused => {
                let message = failure.text(&gvk_of(object));
                match (object, verb) {
                    (HubObject::Template(id), Verb::Merge(patch))
                        if failure.code() == FORBIDDEN && !autoscaling::is_write(patch) =>
                    {
                        let remedy = rights::remedy(&id.gvk.group, &id.gvk.kind);
                        warn!(object = %id, error = message, remedy, "the hub refused a claim");
                        self.tell(Observation::Unclaimed(id.clone(), message.clone()))
                            .await;
                    }
                    _ => warn!(object = ?object, error = message, "the hub refused a write"),
                }
                return Outcome::Refused(message);
            }
            _ => {}
        }
        outcome_of(failure)
    }

    pub(super) async fn see(&self, watch: &Watch, mut object: Value) {
        let (interpretation, _) = self
            .interpreters
            .responses(&self.interpreters.to(watch), watch, &object)
            .await;
        let seen = observation::project(watch, &interpretation, &object);
        if let Watch::Templates(_) | Watch::Distributions = watch {
            wipe(&mut object);
        }
        match seen {
            Some(subject) => self.tell(Observation::Seen(subject)).await,
            None => warn!(watch = ?watch, "a server answered with an object that cannot be read"),
        }
    }

    /// The watch as which an object of the hub is observed, and the form in which it is requested.
    fn read_as(&self, object: &HubObject) -> (Watch, Form) {
        match object {
            HubObject::Policy(name) if name.namespace.is_empty() => (Watch::ClusterPolicies, Form::Whole),
            HubObject::Policy(_) => (Watch::Policies, Form::Whole),
            HubObject::Binding(name) if name.namespace.is_empty() => (Watch::ClusterBindings, Form::Whole),
            HubObject::Binding(_) => (Watch::Bindings, Form::Whole),
            HubObject::Cluster(_) => (Watch::Clusters, Form::Whole),
            HubObject::Distribution(_) => (Watch::Distributions, Form::Whole),
            HubObject::Rebalancer(_) => (Watch::Rebalancers, Form::Whole),
            HubObject::Quota(_) => (Watch::Quotas, Form::Whole),
            HubObject::Namespace(_) => (Watch::Namespaces, Form::Metadata),
            HubObject::Work(_) => (Watch::Works, Form::Whole),
            HubObject::ServicePart(part, _) => (Watch::ServiceParts(*part), Form::Whole),
            HubObject::Template(id) => {
                let form = if self.interpreters.of(&id.gvk).is_interpreted(&id.gvk) {
                    Form::Whole
                } else {
                    Form::Metadata
                };
                (Watch::Templates(id.gvk.clone()), form)
            }
        }
    }
}

/// True if the response to a DELETE of the object with this uid proves that it is gone: a Status, or the object itself unless
/// finalizers keep it. Those of a namespace are in its spec. Anything else, as of a proxy, proves nothing; the watch follows.
pub(super) fn is_deleted(answer: &Value, uid: &str) -> bool {
    let is_held = |part: &str| {
        let finalizers = answer[part]["finalizers"].as_array();
        finalizers.is_some_and(|all| !all.is_empty())
    };
    let is_kept = !answer["metadata"]["deletionTimestamp"].is_null()
        && (is_held("metadata") || (answer["kind"] == "Namespace" && is_held("spec")));
    match answer["kind"] == "Status" {
        true => answer["status"] != "Failure",
        false => answer["metadata"]["uid"] == uid && !is_kept,
    }
}

fn which(object: &HubObject) -> ObjectRef {
    match object {
        HubObject::Policy(named) => ObjectRef::Policy(named.clone()),
        HubObject::Binding(named) => ObjectRef::Binding(named.clone()),
        HubObject::Cluster(name) => ObjectRef::Cluster(name.clone()),
        HubObject::Distribution(name) => ObjectRef::Distribution(name.clone()),
        HubObject::Rebalancer(name) => ObjectRef::Rebalancer(name.clone()),
        HubObject::Quota(named) => ObjectRef::Quota(named.clone()),
        HubObject::Namespace(name) => ObjectRef::Namespace(None, name.clone()),
        HubObject::Work(name) => ObjectRef::Work(name.clone()),
        HubObject::ServicePart(part, name) => ObjectRef::ServicePart(*part, name.clone()),
        HubObject::Template(id) => ObjectRef::Template(id.clone()),
    }
}

/// The kind, to decide which parts of a refusal may be shown. Our own kinds have no data.
fn gvk_of(object: &HubObject) -> Gvk {
    match object {
        HubObject::Template(id) => id.gvk.clone(),
        HubObject::Binding(name) => Gvk::new(scope::BINDING_API, scope::binding(&name.namespace).kind),
        HubObject::Policy(name) => Gvk::new(scope::POLICY_API, scope::policy(name).kind),
        HubObject::Cluster(_) => Gvk::new("cluster.karmada.io/v1alpha1", "Cluster"),
        HubObject::Distribution(_) => distribution::gvk(),
        HubObject::Rebalancer(_) => rebalancer::gvk(),
        HubObject::Quota(_) => Gvk::new(scope::POLICY_API, "FederatedResourceQuota"),
        HubObject::Namespace(_) => Gvk::new("v1", "Namespace"),
        HubObject::Work(_) => observation::work_gvk(),
        HubObject::ServicePart(part, _) => part.gvk(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deletion_is_proven_by_a_status_or_by_the_object_without_what_keeps_it() {
        let object = |finalizers: &[&str], in_spec: &[&str], uid: &str| {
            json!({"kind": "Namespace", "spec": {"finalizers": in_spec},
                "metadata": {"uid": uid, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}})
        };
        let at_once = json!({"kind": "Cluster", "metadata": {"uid": "u"}});
        let rows = [
            ("a Status", json!({"kind": "Status", "status": "Success"}), true),
            ("a Status without a word", json!({"kind": "Status"}), true),
            ("a failure", json!({"kind": "Status", "status": "Failure"}), false),
            ("the object as it was", at_once, true),
            ("the object, held by nothing", object(&[], &[], "u"), true),
            ("the object, held", object(&["ours"], &[], "u"), false),
            (
                "a namespace with content",
                object(&[], &["kubernetes"], "u"),
                false,
            ),
            ("another object", object(&[], &[], "other"), false),
            ("nothing", json!({}), false),
            ("no object", Value::Null, false),
        ];
        for (response, answer, is_proof) in rows {
            assert_eq!(is_deleted(&answer, "u"), is_proof, "{response}");
        }
    }
}
