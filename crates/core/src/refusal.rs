//! Refused writes: when the hub refuses a write, or a member refuses a namespace, an Event reports it on the object of the user
//! who can fix it.

use entourage_api::{keys::event, names};

use crate::{
    fleet::{Fleet, exports::export_of, regarding::on_template},
    kinds,
    plan::{Event, Key, Regarding},
    scope,
};

/// The Event for a write that was refused (validation, quota, rights), with the server's message; `None` if the cache no longer
/// has the object. The caller emits it when a key is refused for the first time since it last succeeded.
#[must_use]
pub fn event(fleet: &Fleet, key: &Key, words: &str) -> Option<Event> {
    let regarding = regarding(fleet, key)?;
    let what = match key {
        Key::Template(_) => "the claim of the policy",
        Key::TemplateStatus(_) => "the status merged from its members",
        Key::Scaling(_) => "the label or the replicas that follow from its autoscalers",
        Key::Binding(_) => "its ResourceBinding",
        Key::BindingStatus(_) => "the status of its ResourceBinding",
        Key::Policy(_) | Key::Cluster(_) | Key::Distribution(_) | Key::Override(_) => {
            "what the control plane adds"
        }
        Key::DistributionStatus(_) | Key::Rebalancer(_) | Key::Quota(_) => "its status",
        Key::Copy(..) | Key::Namespace(..) | Key::Distributed(..) | Key::QuotaCopy(..) => "its copy",
        Key::ExecutionNamespace(_) => "its execution namespace",
        Key::Work(..) => "its Work",
        Key::Endpoints(..) => "the EndpointSlices of its Service",
        Key::DerivedService(_) => "the Service that stands for it",
    };
    let (reason, message) = match key {
        Key::Namespace(name, cluster) => (
            event::SYNC_FAILED,
            format!(
                "namespace {name} cannot be updated on {cluster}: {words}; correct that (entourage join renews the \
                 rights of the joined account); retrying"
            ),
        ),
        Key::ExecutionNamespace(cluster) => {
            let leaves = fleet
                .cache
                .members
                .get(cluster)
                .is_some_and(|member| member.meta.deleting.is_some());
            let (reason, what) = if leaves {
                (event::REMOVE_EXECUTION_SPACE_FAILED, "deleted")
            } else {
                (event::CREATE_EXECUTION_SPACE_FAILED, "created")
            };
            let name = names::execution_namespace(cluster);
            (
                reason,
                format!("namespace {name} cannot be {what} on the hub: {words}; retrying"),
            )
        }
        _ => {
            let reason = match key {
                Key::Template(_) => event::APPLY_POLICY_FAILED,
                Key::TemplateStatus(_) => event::AGGREGATE_STATUS_FAILED,
                Key::Scaling(_) => event::FOLLOW_AUTOSCALERS_FAILED,
                Key::Quota(name) if fleet.memory.quotas.is_assigned(name) => {
                    event::COLLECT_QUOTA_STATUS_FAILED
                }
                Key::Quota(_) => event::COLLECT_QUOTA_OVERALL_STATUS_FAILED,
                Key::Endpoints(..) => event::COLLECT_ENDPOINTS_FAILED,
                Key::DerivedService(_) => event::SYNC_DERIVED_SERVICE_FAILED,
                _ => event::SYNC_WORK_FAILED,
            };
            let message = format!("the hub rejected {what}: {words}; retrying; correct what is rejected");
            (reason, message)
        }
    };
    Some(Event {
        regarding,
        warning: true,
        reason,
        message,
    })
}

/// The Event for a decision that cannot be made before a user changes something, with its own message; `None` as for
/// [`event()`].
#[must_use]
pub fn decision(fleet: &Fleet, key: &Key, words: &str) -> Option<Event> {
    match key {
        Key::Binding(_) => Some(Event {
            regarding: regarding(fleet, key)?,
            warning: true,
            reason: event::NO_ANSWER,
            message: format!("{words}; retrying"),
        }),
        Key::Template(_) => Some(Event {
            regarding: regarding(fleet, key)?,
            warning: true,
            reason: event::DELETION_BLOCKED,
            message: words.to_owned(),
        }),
        Key::Scaling(_) => Some(Event {
            regarding: regarding(fleet, key)?,
            warning: true,
            reason: event::FOLLOW_AUTOSCALERS_FAILED,
            message: words.to_owned(),
        }),
        Key::DerivedService(_) => Some(Event {
            regarding: regarding(fleet, key)?,
            warning: true,
            reason: event::SYNC_DERIVED_SERVICE_FAILED,
            message: words.to_owned(),
        }),
        Key::Endpoints(..) => Some(Event {
            regarding: regarding(fleet, key)?,
            warning: true,
            reason: event::COLLECT_ENDPOINTS_FAILED,
            message: words.to_owned(),
        }),
        Key::Override(_) => Some(Event {
            regarding: regarding(fleet, key)?,
            warning: true,
            reason: event::PARTS_WITHOUT_EFFECT,
            message: words.to_owned(),
        }),
        _ => event(fleet, key, words),
    }
}

fn regarding(fleet: &Fleet, key: &Key) -> Option<Regarding> {
    Some(match key {
        Key::Policy(name) => Regarding {
            api_version: scope::POLICY_API.into(),
            kind: scope::policy(name).kind.into(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: fleet.cache.policies.get(name)?.meta.uid.clone(),
        },
        Key::Override(name) => Regarding {
            api_version: scope::POLICY_API.into(),
            kind: scope::override_policy(name).into(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: fleet.graph.override_index.meta(name)?.uid.clone(),
        },
        // The cause is the member, or a policy for it.
        Key::Cluster(name) | Key::Namespace(_, name) | Key::ExecutionNamespace(name) => Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: name.clone(),
            uid: fleet.cache.members.get(name)?.meta.uid.clone(),
        },
        Key::Distribution(name) | Key::DistributionStatus(name) | Key::Distributed(name, _) => Regarding {
            api_version: kinds::DISTRIBUTION_API.into(),
            kind: kinds::DISTRIBUTION.into(),
            namespace: "".into(),
            name: name.clone(),
            uid: fleet.memory.distributions.held.get(name)?.object.meta.uid.clone(),
        },
        Key::Rebalancer(name) => Regarding {
            api_version: kinds::REBALANCER_API.into(),
            kind: kinds::REBALANCER.into(),
            namespace: "".into(),
            name: name.clone(),
            uid: fleet.memory.rebalancers.get(name)?.meta().uid.clone(),
        },
        Key::Quota(name) | Key::QuotaCopy(name, _) => Regarding {
            api_version: kinds::QUOTA_API.into(),
            kind: kinds::QUOTA.into(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: fleet.memory.quotas.get(name)?.meta.uid.clone(),
        },
        Key::Endpoints(_, service) => {
            let id = export_of(service);
            let template = fleet.resource(&id)?.template.as_ref()?;
            on_template(&id, template)
        }
        Key::DerivedService(name) => Regarding {
            api_version: kinds::SERVICES_API.into(),
            kind: "ServiceImport".into(),
            namespace: name.namespace.clone(),
            name: name.name.clone(),
            uid: fleet.cache.services.imports.get(name)?.meta.uid.clone(),
        },
        Key::Template(id)
        | Key::TemplateStatus(id)
        | Key::Scaling(id)
        | Key::Binding(id)
        | Key::BindingStatus(id)
        | Key::Copy(id, _)
        | Key::Work(id, _) => Regarding {
            api_version: id.gvk.api_version(),
            kind: id.gvk.kind.to_string(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            uid: fleet.resource(id)?.template.as_ref()?.meta.uid.clone(),
        },
    })
}
