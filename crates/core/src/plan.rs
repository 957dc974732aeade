//! The output of the core: a [`Plan`] for a [`Key`]. Plans are data; the shell executes them and nothing else.
//!
//! A plan concerns ONE API server. Its changes are executed in order and stop at the first that fails; the outcome of each is an
//! observation. A plan never holds a payload, so it can be printed, compared and stored.

use std::collections::BTreeSet;

use entourage_api::work::AggregatedStatusItem;
use serde::Serialize;
use serde_json::Value;

mod attempts;
mod evidence;
mod orders;
mod uses;

pub use evidence::{Evidence, EvidenceObject, EvidenceState};
pub use orders::{ComponentSet, EstimateOrder, Order, QuotaOrder, WithdrawalOrder, WorkOrder};
pub use uses::{EstimateUse, RoomUse};

use crate::{
    interpreter::Interpretation,
    object::{Gvk, NamespacedName, ResourceId, Str, StrMap, Time},
    observation::ServicePart,
    places::Place,
    render_spec::RenderSpec,
    server::Server,
};

/// The subject of a plan. Each key has one planner, and each object of an API server one writer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Key {
    /// A PropagationPolicy: its permanent id, finalizer and conditions.
    Policy(NamespacedName),
    /// A template: which policy claims it.
    Template(ResourceId),
    /// A template: its aggregated status.
    TemplateStatus(ResourceId),
    /// A template: the label and the replicas that follow from autoscalers on members.
    Scaling(ResourceId),
    /// The binding of a template: metadata and spec, creation and deletion.
    Binding(ResourceId),
    /// The binding of a template: status.
    BindingStatus(ResourceId),
    /// The copy of a template on a member.
    Copy(ResourceId, Str),
    /// A Cluster: its status and finalizer.
    Cluster(Str),
    /// A namespace on a member.
    Namespace(Str, Str),
    /// A ResourceDistribution: its finalizer.
    Distribution(Str),
    /// A ResourceDistribution: its status.
    DistributionStatus(Str),
    /// The copy of a ResourceDistribution in a namespace.
    Distributed(Str, Place),
    /// An OverridePolicy, or without a namespace a ClusterOverridePolicy: the report whether it changes any copy.
    Override(NamespacedName),
    /// A WorkloadRebalancer: its status and its deletion.
    Rebalancer(Str),
    /// A FederatedResourceQuota: its finalizer and its status.
    Quota(NamespacedName),
    /// The ResourceQuota of a FederatedResourceQuota on a member.
    QuotaCopy(NamespacedName, Str),
    /// The execution namespace of a Cluster, on the hub.
    ExecutionNamespace(Str),
    /// The Work that mirrors the copy of a template on a member.
    Work(ResourceId, Str),
    /// The EndpointSlices of the hub that stand for those of a Service of a member.
    Endpoints(Str, NamespacedName),
    /// The Service of the hub that stands for a ServiceImport.
    DerivedService(NamespacedName),
}

impl Key {
    /// The API server its plan writes to.
    #[must_use]
    pub fn server(&self) -> Server {
        match self {
            Self::Copy(_, cluster) | Self::Namespace(_, cluster) | Self::QuotaCopy(_, cluster) => {
                Server::Member(cluster.clone())
            }
            Self::Distributed(_, place) => place.server(),
            _ => Server::Hub,
        }
    }

    /// The key of the object that its plan writes to: plans of keys with one serialization key never run at the same time.
    #[must_use]
    pub fn serialization_key(&self) -> Self {
        match self {
            Self::TemplateStatus(id) | Self::Scaling(id) => Self::Template(id.clone()),
            Self::BindingStatus(id) => Self::Binding(id.clone()),
            Self::DistributionStatus(name) => Self::Distribution(name.clone()),
            other => other.clone(),
        }
    }

    /// True if its plan writes only a status, of an object whose content has another planner, or a view: other keys go first.
    #[must_use]
    pub fn is_status(&self) -> bool {
        let is_content = matches!(self, Self::Scaling(_));
        matches!(self, Self::Work(..)) || !is_content && self.serialization_key() != *self
    }

    /// The controller's name in metrics and spans.
    #[must_use]
    pub const fn controller(&self) -> &'static str {
        match self {
            Self::Policy(_) | Self::Template(_) | Self::Scaling(_) => "detector",
            Self::TemplateStatus(_) | Self::BindingStatus(_) => "status",
            Self::Binding(_) => "dependencies",
            Self::Copy(..) => "delivery",
            Self::Cluster(_) | Self::ExecutionNamespace(_) => "cluster",
            Self::Namespace(..) => "namespaces",
            Self::Distribution(_) | Self::DistributionStatus(_) | Self::Distributed(..) => "distribution",
            Self::Override(_) => "overrides",
            Self::Rebalancer(_) => "rebalancer",
            Self::Quota(_) | Self::QuotaCopy(..) => "quotas",
            Self::Work(..) => "works",
            Self::Endpoints(..) | Self::DerivedService(_) => "services",
        }
    }
}

/// The changes to make for a key now, and when to plan it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The time to plan the key again even if nothing was observed.
    pub again_at: Option<Time>,
    /// The reasons, for `entourage plan` and debug logs.
    pub why: Vec<String>,
    /// The sync requirement to be met before anything is changed: the key is planned again when it is met.
    #[serde(skip)]
    pub awaits: Option<Box<SyncRequirement>>,
    /// The clusters that a binding is to be evicted from and that count for the eviction budget, whether they are evicted now or
    /// not; `None` if that was not decided.
    #[serde(skip)]
    pub leaves: Option<BTreeSet<Str>>,
    /// The clusters that the stored binding schedules its template to and that it no longer schedules it to once this plan is
    /// executed.
    #[serde(skip)]
    pub leaving: Box<[Str]>,
    /// The use of the room of members by a binding that is scheduled by room; `None` for every other plan.
    #[serde(skip)]
    pub room: Option<Box<RoomUse>>,
    /// The use of the estimates of room by a binding that waits for some, or asks for some; `None` for every other plan.
    #[serde(skip)]
    pub estimates: Option<Box<EstimateUse>>,
    /// True if a binding waits until the quotas of its namespace leave more.
    #[serde(skip)]
    pub exceeds_quota: bool,
}

/// A part of the cache that must be synced before a change may be made; see [`crate::Engine::plan`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncRequirement {
    /// Policies, overrides, bindings, clusters and the templates of a kind were listed, or the kind cannot be listed.
    Kind(Gvk),
    /// Every kind in use that refers to other objects was listed, or cannot be: all dependents are known.
    Referrers,
    /// The templates of a kind are synced as of now, or cannot be listed.
    Templates(Gvk),
    /// Policies, bindings and clusters are synced as of now.
    Base,
    /// The override policies were listed.
    Overrides,
    /// Every source that may require an object of a kind is synced as of now, and what kept it before this process started is
    /// known.
    Removal(Gvk),
    /// The PriorityClasses were listed, or cannot be.
    Priorities,
    /// The namespaces, with the allow-lists of their Secrets, and the Clusters are synced as of now.
    SecretLists,
    /// The copies of a kind on a member were listed, or cannot be. This and the next variant come last: no list of the hub
    /// proves them, and there are as many as kinds times members.
    Copies(Str, Gvk),
    /// Deletions on a member are not paused; see [`crate::governor`].
    Removals(Str),
}

impl Plan {
    /// An empty plan.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// An empty plan until `time`.
    #[must_use]
    pub fn wait_until(time: Time, why: impl Into<String>) -> Self {
        Self {
            again_at: Some(time),
            why: vec![why.into()],
            ..Self::default()
        }
    }

    /// True if a binding is not planned further before answers of estimators are there.
    #[must_use]
    pub fn waits_for_estimates(&self) -> bool {
        self.estimates.as_ref().is_some_and(|used| used.waits)
    }

    /// An empty plan until something is observed.
    #[must_use]
    pub fn wait(why: impl Into<String>) -> Self {
        Self {
            why: vec![why.into()],
            ..Self::default()
        }
    }

    /// An empty plan until this requirement is met.
    #[must_use]
    pub fn wait_for(proof: SyncRequirement, why: impl Into<String>) -> Self {
        Self {
            why: vec![why.into()],
            awaits: Some(Box::new(proof)),
            ..Self::default()
        }
    }

    /// An empty plan until it is proven that no other object requires an object of this kind.
    #[must_use]
    pub fn not_proven(gvk: &Gvk) -> Self {
        Self::wait_for(
            SyncRequirement::Removal(gvk.clone()),
            "it may still be required: not synced yet",
        )
    }

    /// A plan of one change.
    #[must_use]
    pub fn one(change: Change, why: impl Into<String>) -> Self {
        Self {
            changes: vec![change],
            why: vec![why.into()],
            ..Self::default()
        }
    }
}

/// An object on the hub that the control plane writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum HubObject {
    /// A PropagationPolicy.
    Policy(NamespacedName),
    /// A ResourceBinding.
    Binding(NamespacedName),
    /// A Cluster.
    Cluster(Str),
    /// A template.
    Template(ResourceId),
    /// A ResourceDistribution.
    Distribution(Str),
    /// A WorkloadRebalancer.
    Rebalancer(Str),
    /// A FederatedResourceQuota.
    Quota(NamespacedName),
    /// A namespace.
    Namespace(Str),
    /// A Work.
    Work(NamespacedName),
    /// A Service or an EndpointSlice that belongs to a Service of other clusters.
    ServicePart(ServicePart, NamespacedName),
}

/// The request for a hub object. Bodies hold objects that only the control plane writes, never a template's payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Verb {
    /// POST the object.
    Create(Value),
    /// PUT the object; its resourceVersion is set.
    Replace(Value),
    /// PUT the status subresource; the object's resourceVersion is set.
    ReplaceStatus(Value),
    /// JSON merge patch with `metadata.resourceVersion` and `metadata.uid`.
    Merge(Value),
    /// JSON merge patch of the status subresource with `metadata.resourceVersion` and `metadata.uid`.
    MergeStatus(Value),
    /// DELETE, background propagation, with uid and resourceVersion as preconditions.
    Delete {
        /// The uid it must have.
        uid: Str,
        /// The resourceVersion it must have.
        resource_version: Str,
    },
}

impl Verb {
    /// The DELETE of an object in this state.
    #[must_use]
    pub fn delete(preconditions: Preconditions) -> Self {
        Self::Delete {
            uid: preconditions.uid,
            resource_version: preconditions.resource_version,
        }
    }
}

/// The state of the object on the member that a change requires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preconditions {
    /// The uid of the copy.
    pub uid: Str,
    /// The resourceVersion of the copy.
    pub resource_version: Str,
}

/// The way a copy is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RemovalMode {
    /// The copy is deleted.
    Delete,
    /// The ownership metadata is removed and the object is kept.
    Release,
    /// A namespace that no rule asks to preserve: it is released, but the annotation of its creator is kept. When the hub has
    /// deleted its own namespace, [`crate::namespaces`] decides whether this one is deleted.
    HandOver,
}

/// One change to an API server, or one request that a decision needs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Change {
    /// Write an object of the hub.
    Hub {
        /// The object.
        object: HubObject,
        /// The request.
        verb: Verb,
    },
    /// Get the template, render it and apply the copy on the member. See [`crate::delivery`].
    Deliver {
        /// The template's id, which is the copy's id.
        id: ResourceId,
        /// The member.
        cluster: Str,
        /// The data it is rendered with.
        render_spec: RenderSpec,
        /// The copy as last observed; `None` creates it.
        live: Option<Preconditions>,
        /// True if the live copy must be read before it is written (retain rules, drift, labels of other writers).
        read_first: bool,
    },
    /// Remove a copy that this hub manages from a member.
    Remove {
        /// The copy's id.
        id: ResourceId,
        /// The member.
        cluster: Str,
        /// The uid and resourceVersion of exactly this object; no other object is changed.
        preconditions: Preconditions,
        /// Delete or release.
        mode: RemovalMode,
    },
    /// Apply the copy of a distribution: get the source object, render it, and write it. See [`crate::distribution`].
    Distribute(Box<Order>),
    /// Remove a copy of a distribution.
    Withdraw(Box<WithdrawalOrder>),
    /// Apply the ResourceQuota of a FederatedResourceQuota on a member. See [`crate::quotas`].
    AssignQuota(Box<QuotaOrder>),
    /// Delete the ResourceQuota of a FederatedResourceQuota on a member.
    UnassignQuota {
        /// The quota.
        quota: NamespacedName,
        /// The member.
        cluster: Str,
        /// The uid and resourceVersion of exactly this object; no other object is changed.
        preconditions: Preconditions,
    },
    /// Apply a namespace of a member: it is created if it does not exist, else missing labels and annotations are merged in. See
    /// [`crate::namespaces`].
    Namespace {
        /// The member.
        cluster: Str,
        /// The namespace.
        name: Str,
        /// The labels that this hub sets.
        labels: StrMap,
        /// The annotations that this hub sets.
        annotations: StrMap,
    },
    /// Find out what a namespace contains on a member after the hub deleted its own: the hub is asked whether the namespace
    /// exists there, then all objects in it are listed. Its outcome is `LookedInto`. See [`crate::namespaces::content`].
    LookInto {
        /// The member.
        cluster: Str,
        /// The namespace.
        name: Str,
        /// The uids of copies of distributions in it that this hub manages: they do not count as content.
        copies: BTreeSet<Str>,
    },
    /// Remove a namespace of a member: delete it with the objects that Kubernetes created in it, or remove this hub's records.
    /// Before either, the hub is asked whether the namespace exists there. Before a deletion its content is listed once more,
    /// because the earlier result may be old: it is deleted only if it is still empty and the hub still has no such namespace.
    /// Its outcome is `LookedInto` if content was found, else `NamespaceEnded`, and `Seen` or `Gone` for the namespace itself.
    EndNamespace {
        /// The member.
        cluster: Str,
        /// The namespace.
        name: Str,
        /// The uid and resourceVersion of exactly this object; no other object is changed.
        preconditions: Preconditions,
        /// As for [`Self::LookInto`].
        copies: BTreeSet<Str>,
        /// Delete or release.
        mode: RemovalMode,
        /// The Event to record if it was released, and only then.
        event: Option<Box<Event>>,
    },
    /// Write the Work that mirrors a copy: get the template, render it, and create or merge the Work. See [`crate::works`].
    MirrorWork(Box<WorkOrder>),
    /// Delete the execution namespace of a Cluster that leaves. Before that the hub is asked for one Work in it: while there is
    /// any, nothing is deleted. See [`crate::execution_namespaces`].
    EndExecutionNamespace {
        /// The namespace.
        name: Str,
        /// The uid and resourceVersion of exactly this object.
        preconditions: Preconditions,
        /// The Event to record if it was deleted, and only then.
        event: Box<Event>,
    },
    /// Find out whether a copy exists on the member after a write whose outcome is unknown: a point GET there. Its outcome is
    /// `Removed(.., Gone)` if no copy managed by this hub exists, or `Seen`.
    GetCopy {
        /// The copy's id.
        id: ResourceId,
        /// The member.
        cluster: Str,
    },
    /// Find out whether this template exists on the hub: a point GET of its metadata. Its outcome is `Absent`, `NotPropagatable`,
    /// or `Found`.
    GetTemplate(ResourceId),
    /// Find out whether the agent of a cluster in Pull mode has renewed its Lease, although no watch reported that: a point GET of
    /// the Lease on the hub. Its outcome is `LeaseRead`.
    GetLease(Str),
    /// Aggregate the status of a template by an interpretation that needs the whole object: the template is read, interpreted,
    /// and its status written if it differs ([`crate::status::template::aggregated`]). Its outcome is `Aggregated`.
    Aggregate {
        /// The template.
        id: ResourceId,
        /// The interpretation of the kind.
        interpretation: Interpretation,
        /// The status that each cluster reported.
        items: Vec<AggregatedStatusItem>,
        /// The number of this request: the outcome repeats it.
        asked: u64,
    },
    /// Ask the estimators of members for the room of their nodes. Its outcome is one `Estimated` for all of them, later: the change
    /// itself ends at once.
    Estimate(Box<EstimateOrder>),
    /// Nothing can be done for the key before a user changes something, for this reason. It is reported once, as a refusal by a
    /// server is; see [`crate::refusal`]. Alone in a plan it is not retried: a change of the objects that the decision read
    /// makes the key dirty.
    Refuse(String),
    /// Record an Event on the hub. Losing one is no error.
    Emit(Event),
}

/// An Event on an object of the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// The `involvedObject`: apiVersion, kind, namespace, name, uid.
    pub regarding: Regarding,
    /// `Warning` or `Normal`.
    pub warning: bool,
    /// A reason of the table in `entourage_api::keys::event`.
    pub reason: &'static str,
    /// The event, the object, the cause and what to do; never an object's content.
    pub message: String,
}

/// The object that an Event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Regarding {
    /// `apiVersion`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped.
    pub namespace: Str,
    /// Name.
    pub name: Str,
    /// Uid.
    pub uid: Str,
}
