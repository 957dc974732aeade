//! Where Secrets went: each cluster and namespace of each Secret, because of what, and since when as far as that is recorded.
//!
//! Only metadata, bindings and distributions are asked, which hold no value of a Secret.

use entourage_api::keys::condition;
use serde::Serialize;

use super::{
    distributions,
    explanation::{ObjectName, Presence},
    why,
};
use crate::{
    cache::{Binding, ResourceState},
    fleet::{Fleet, needs::followers},
    kinds::{distribution, is_secret, secret},
    object::{NamespacedName, ResourceId, Str, Time},
    scope,
};

/// The cause for which a Secret is in a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// `policy`, `requiredBy`, `recorded` or `distribution`.
    pub reason: &'static str,
    /// The policy, the workload or other object that needs it, or the distribution.
    pub object: ObjectName,
}

/// The rules by which a Secret is propagated: the value of [`Cause::reason`] and its meaning.
pub const REASONS: &[(&str, &str)] = &[
    ("policy", "a policy that selects the Secret placed it there"),
    ("requiredBy", "an object that is scheduled there needs it"),
    (
        "recorded",
        "its binding records an object that needed it there, and no longer does or is not known",
    ),
    ("distribution", "a ResourceDistribution copies it there"),
];

/// A Secret in a namespace of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretPlace {
    /// The Secret of the hub, or the ResourceDistribution that contains it.
    pub secret: ObjectName,
    /// The cluster; `None`: the hub itself.
    pub cluster: Option<Str>,
    /// The namespace there.
    pub namespace: Str,
    /// The name there.
    pub name: Str,
    /// The state of the copy.
    pub presence: Presence,
    /// The causes.
    pub because: Vec<Cause>,
    /// The time since when all its copies have been applied, RFC 3339, as the status of its binding says; `None` if that is not recorded.
    pub since: Option<String>,
    /// The recorded message about it; empty if there is none.
    pub message: String,
}

/// The places of the Secrets of a namespace of the hub, or of all if it is empty; with the copies of distributions whose source is there,
/// or that contain a Secret, if all are asked for. In order of Secrets, clusters and namespaces.
///
/// Cost: O(Secrets × clusters × referrers + places of distributions).
#[must_use]
pub fn secrets(fleet: &Fleet, namespace: &str, now: Time) -> Vec<SecretPlace> {
    let mut all = propagated(fleet, namespace, now);
    all.extend(distributed(fleet, namespace));
    all.sort_by(|one, other| {
        let key = |each: &SecretPlace| (each.secret.clone(), each.cluster.clone(), each.namespace.clone());
        key(one).cmp(&key(other))
    });
    all
}

fn propagated(fleet: &Fleet, namespace: &str, now: Time) -> Vec<SecretPlace> {
    let kind = secret();
    let first = ResourceId::new(kind.clone(), namespace, "");
    let of_it = |id: &ResourceId| id.gvk == kind && (namespace.is_empty() || *id.namespace == *namespace);
    let resources = fleet.cache.resources.range(first..);
    let mut all = Vec::new();
    for (id, resource) in resources.take_while(|(id, _)| of_it(id)) {
        for (cluster, presence, message) in why::places(fleet, id, now) {
            let because = causes(fleet, id, resource, &cluster);
            // The copy of a distribution is listed with that.
            if because.is_empty() && resource.binding.is_none() {
                continue;
            }
            all.push(SecretPlace {
                secret: id.into(),
                cluster: Some(cluster),
                namespace: id.namespace.clone(),
                name: id.name.clone(),
                presence,
                because,
                since: resource.binding.as_ref().and_then(applied_since),
                message,
            });
        }
    }
    all
}

fn causes(fleet: &Fleet, id: &ResourceId, resource: &ResourceState, cluster: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let binding = resource.binding.as_ref();
    let is_placed = |binding: &&Binding| binding.object.spec.placement.is_some() && binding.needs_on(cluster);
    if let Some(claimant) = binding.filter(is_placed).and_then(Binding::claimant) {
        let kind = scope::policy(&claimant).kind;
        causes.push(Cause {
            reason: "policy",
            object: ObjectName::new(scope::POLICY_API, kind, &claimant.namespace, &claimant.name),
        });
    }
    let mut named: Vec<NamespacedName> = Vec::new();
    for (referrer, _, of_referrer) in followers(fleet, id).filter(|(_, _, each)| each.needs_on(cluster)) {
        named.push(of_referrer.name.clone());
        causes.push(Cause {
            reason: "requiredBy",
            object: referrer.into(),
        });
    }
    let snapshots = binding
        .into_iter()
        .flat_map(|binding| &binding.object.spec.required_by);
    let here = snapshots.filter(|each| each.clusters.iter().any(|target| target.name == *cluster));
    for snapshot in here {
        let name = NamespacedName::new(&snapshot.namespace, &snapshot.name);
        if !named.contains(&name) {
            let kind = scope::binding(&name.namespace).kind;
            causes.push(Cause {
                reason: "recorded",
                object: ObjectName::new(scope::BINDING_API, kind, &name.namespace, &name.name),
            });
        }
    }
    causes
}

fn applied_since(binding: &Binding) -> Option<String> {
    let status = binding.object.status.as_ref()?;
    let mut conditions = status.conditions.iter();
    let applied = conditions.find(|each| each.type_ == condition::FULLY_APPLIED && each.status == "True")?;
    let time = serde_json::to_value(&applied.last_transition_time).ok()?;
    time.as_str().map(ToOwned::to_owned)
}

fn distributed(fleet: &Fleet, namespace: &str) -> Vec<SecretPlace> {
    let mut all = Vec::new();
    for (name, view) in distributions(fleet) {
        let Some(spec) = view.spec().filter(|spec| is_secret(&spec.gvk)) else {
            continue;
        };
        let of_source = spec
            .source
            .as_ref()
            .is_some_and(|source| *source.namespace == *namespace);
        if !namespace.is_empty() && !of_source {
            continue;
        }
        let itself = ResourceId::new(distribution(), "", name);
        let source = spec.source.as_ref().unwrap_or(&itself);
        for (status, places) in view.places() {
            for place in places {
                all.push(SecretPlace {
                    secret: source.into(),
                    cluster: place.cluster.clone(),
                    namespace: place.namespace.clone(),
                    name: spec.name.clone(),
                    presence: why::presence_of(status),
                    because: vec![Cause {
                        reason: "distribution",
                        object: (&itself).into(),
                    }],
                    since: None,
                    message: view
                        .failure_message(place)
                        .unwrap_or_else(|| why::words(status).to_owned()),
                });
            }
        }
    }
    all
}
