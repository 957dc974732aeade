//! The form of an explanation: the rules that put an object where it is, or keep it away, one step each.

use std::fmt;

use serde::{Serialize, ser::SerializeStruct as _};

use crate::object::{Gvk, ResourceId, Str};

/// The rules of an explanation: the name of each in the output for programs, and its subject. Filters of the scheduler are steps of the
/// rule `filter`, with the name of the filter.
pub const RULES: &[(&str, &str)] = &[
    (
        rule::TEMPLATE,
        "the object exists on the hub and may be propagated",
    ),
    (
        rule::POLICY,
        "the policy that claims it, and the others that select it",
    ),
    (
        rule::ACTIVATION,
        "the policy is lazy, or waits for the override policies that it names",
    ),
    (rule::DEPENDENCY, "the referrers that it is propagated with"),
    (
        rule::SCHEDULING,
        "the clusters that the scheduler has chosen, or why there is none",
    ),
    (rule::QUOTA, "a FederatedResourceQuota of the namespace"),
    (rule::FILTER, "a filter of the scheduler"),
    (rule::PLACEMENT, "the cluster is a target by the placement"),
    (rule::CLUSTER, "the state of the cluster"),
    (
        rule::REQUIRED_BY,
        "the snapshots of referrers that the binding records",
    ),
    (rule::EVICTION, "an eviction task"),
    (
        rule::ALLOW_LIST,
        "the allow-list of a Secret, or of its namespace",
    ),
    (rule::SUSPENSION, "scheduling or delivery is suspended"),
    (rule::PAUSE, "removals on the cluster are paused"),
    (rule::OVERRIDE, "the override policies whose rules apply"),
    (
        rule::DELIVERY,
        "the copy: its recorded state, and what it waits for",
    ),
    (
        rule::DISTRIBUTION,
        "a ResourceDistribution that has a copy of this name there",
    ),
];

/// The names of the rules.
pub mod rule {
    /// The object on the hub.
    pub const TEMPLATE: &str = "template";
    /// The policy that claims it.
    pub const POLICY: &str = "policy";
    /// The moment from which the policy counts.
    pub const ACTIVATION: &str = "activation";
    /// The referrers.
    pub const DEPENDENCY: &str = "dependency";
    /// The scheduling result.
    pub const SCHEDULING: &str = "scheduling";
    /// Quotas.
    pub const QUOTA: &str = "quota";
    /// A filter of the scheduler.
    pub const FILTER: &str = "filter";
    /// The placement of one cluster.
    pub const PLACEMENT: &str = "placement";
    /// The state of one cluster.
    pub const CLUSTER: &str = "cluster";
    /// The recorded snapshots of referrers.
    pub const REQUIRED_BY: &str = "requiredBy";
    /// An eviction.
    pub const EVICTION: &str = "eviction";
    /// An allow-list of Secrets.
    pub const ALLOW_LIST: &str = "allowList";
    /// A suspension.
    pub const SUSPENSION: &str = "suspension";
    /// The pause of removals.
    pub const PAUSE: &str = "pause";
    /// Override policies.
    pub const OVERRIDE: &str = "override";
    /// The copy.
    pub const DELIVERY: &str = "delivery";
    /// A ResourceDistribution.
    pub const DISTRIBUTION: &str = "distribution";
}

/// The effect of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It puts the object there.
    For,
    /// It keeps the object away.
    Against,
    /// It does neither.
    Note,
}

/// One step of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The rule, of [`RULES`].
    pub rule: &'static str,
    /// The name of the filter, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<&'static str>,
    /// The effect.
    pub effect: Effect,
    /// The cause, for a person.
    pub message: String,
}

impl Step {
    /// A step of a rule.
    #[must_use]
    pub fn new(rule: &'static str, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            rule,
            filter: None,
            effect,
            message: message.into(),
        }
    }
}

/// The state of a copy on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Presence {
    /// It is there in the current version.
    Present,
    /// It is wanted there, and a step is still to come.
    Pending,
    /// It is wanted there, and something keeps it away: a conflict, a suspension, a refusal.
    KeptAway,
    /// It is no longer wanted there, and was not removed yet.
    Leaving,
    /// It is not wanted there.
    Absent,
    /// The cluster does not respond: the last known state counts.
    Unknown,
}

impl Presence {
    /// True if a copy is there, as far as is known.
    #[must_use]
    pub const fn is_there(self) -> bool {
        matches!(self, Self::Present | Self::Leaving)
    }
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "present",
            Self::Pending => "pending",
            Self::KeptAway => "kept away",
            Self::Leaving => "leaving",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        })
    }
}

/// The explanation for one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterExplanation {
    /// The cluster.
    pub cluster: Str,
    /// The state of the copy there.
    pub presence: Presence,
    /// The steps, in order of the rules.
    pub steps: Vec<Step>,
}

/// The explanation for an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The object.
    pub object: ObjectName,
    /// The steps that hold for all clusters.
    pub steps: Vec<Step>,
    /// Each cluster, by name.
    pub clusters: Vec<ClusterExplanation>,
}

impl Explanation {
    /// True if a copy is on any of the clusters.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.clusters.iter().any(|each| each.presence.is_there())
    }
}

/// An object in the output for programs: `{apiVersion, kind, namespace, name}`, without a namespace if it has none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectName(pub ResourceId);

impl From<&ResourceId> for ObjectName {
    fn from(id: &ResourceId) -> Self {
        Self(id.clone())
    }
}

impl ObjectName {
    /// From its kind, namespace and name.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self(ResourceId::new(Gvk::new(api_version, kind), namespace, name))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for ObjectName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let id = &self.0;
        let mut object = serializer.serialize_struct("ObjectName", 4)?;
        object.serialize_field("apiVersion", &id.gvk.api_version())?;
        object.serialize_field("kind", &*id.gvk.kind)?;
        if id.namespace.is_empty() {
            object.skip_field("namespace")?;
        } else {
            object.serialize_field("namespace", &*id.namespace)?;
        }
        object.serialize_field("name", &*id.name)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_rule_is_listed_once_and_has_a_subject() {
        let names: BTreeSet<&str> = RULES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), RULES.len());
        assert!(RULES.iter().all(|(_, subject)| !subject.is_empty()));
    }

    #[test]
    fn the_form_for_programs_is_stable() {
        let mut step = Step::new(rule::FILTER, Effect::Against, "tainted");
        step.filter = Some("taints");
        let explanation = Explanation {
            object: ObjectName::new("apps/v1", "Deployment", "shop", "web"),
            steps: vec![Step::new(rule::POLICY, Effect::For, "claimed")],
            clusters: vec![ClusterExplanation {
                cluster: "m1".into(),
                presence: Presence::KeptAway,
                steps: vec![step],
            }],
        };
        let wanted = json!({
            "object": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
            "steps": [{"rule": "policy", "effect": "for", "message": "claimed"}],
            "clusters": [{"cluster": "m1", "presence": "KeptAway",
                "steps": [{"rule": "filter", "filter": "taints", "effect": "against", "message": "tainted"}]}],
        });
        assert_eq!(serde_json::to_value(&explanation).unwrap(), wanted);
        let of_no_namespace = ObjectName::new("v1", "Namespace", "", "shop");
        let wanted = json!({"apiVersion": "v1", "kind": "Namespace", "name": "shop"});
        assert_eq!(serde_json::to_value(of_no_namespace).unwrap(), wanted);
    }
}
