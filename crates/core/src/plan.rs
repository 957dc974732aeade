//! What the core answers: a [`Plan`] for a [`Key`]. Plans are data; the shell carries them out and nothing else.
//!
//! A plan concerns ONE API server. Its changes are carried out in order and stop at the first that fails; the outcome
//! of each is an observation. A plan never holds a payload, so it can be printed, compared and stored.

use std::collections::{BTreeMap, BTreeSet};

use entourage_api::work::AggregatedStatusItem;
use serde::Serialize;
use serde_json::Value;

use crate::{
    distributed::render,
    interpreter::Interpretation,
    object::{Gvk, NamespacedName, ResourceId, Str, Time},
    places::Place,
    render_spec::RenderSpec,
    server::Server,
};

/// What a plan is made for. Each key has one planner, and each object of an API server one writer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Key {
    /// A PropagationPolicy: its permanent id, finalizer and conditions.
    Policy(NamespacedName),
    /// A template: which policy claims it.
    Template(ResourceId),
    /// A template: its aggregated status.
    TemplateStatus(ResourceId),
    /// The binding of a template: metadata and spec, creation and end.
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
    /// An OverridePolicy, or without a namespace a ClusterOverridePolicy: whether it changes any copy.
    Override(NamespacedName),
    /// A WorkloadRebalancer: its status, and its end.
    Rebalancer(Str),
}

impl Key {
    /// The API server its plan writes to.
    #[must_use]
    pub fn server(&self) -> Server {
        match self {
            Self::Copy(_, cluster) | Self::Namespace(_, cluster) => Server::Member(cluster.clone()),
            Self::Distributed(_, place) => place.server(),
            _ => Server::Hub,
        }
    }

    /// The object its plan writes to: two keys with the same lane are never carried out at the same time.
    #[must_use]
    pub fn serialization_key(&self) -> Self {
        match self {
            Self::TemplateStatus(id) => Self::Template(id.clone()),
            Self::BindingStatus(id) => Self::Binding(id.clone()),
            Self::DistributionStatus(name) => Self::Distribution(name.clone()),
            other => other.clone(),
        }
    }

    /// Whether its plan writes nothing but the status of an object that has a planner of its own.
    #[must_use]
    pub fn is_status(&self) -> bool {
        self.serialization_key() != *self
    }

    /// The word for metrics and spans.
    #[must_use]
    pub const fn controller(&self) -> &'static str {
        match self {
            Self::Policy(_) | Self::Template(_) => "detector",
            Self::TemplateStatus(_) | Self::BindingStatus(_) => "status",
            Self::Binding(_) => "dependencies",
            Self::Copy(..) => "delivery",
            Self::Cluster(_) => "cluster",
            Self::Namespace(..) => "namespaces",
            Self::Distribution(_) | Self::DistributionStatus(_) | Self::Distributed(..) => "distribution",
            Self::Override(_) => "overrides",
            Self::Rebalancer(_) => "rebalancer",
        }
    }
}

/// What is to be done for a key now, and when to ask again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Ask again at this time although nothing may have been observed.
    pub again_at: Option<Time>,
    /// Why, for `entourage plan` and debug logs.
    pub why: Vec<String>,
    /// What must be known before anything is changed: the key is planned again when it is, and need not be before.
    #[serde(skip)]
    pub awaits: Option<Box<SyncRequirement>>,
    /// The clusters that a binding is to leave and that count for the budgets of evictions, whether it may leave them now or not;
    /// `None` where that was not decided.
    #[serde(skip)]
    pub leaves: Option<BTreeSet<Str>>,
    /// The clusters that the binding places its template on as stored, and no longer when this is carried out.
    #[serde(skip)]
    pub leaving: Box<[Str]>,
}

/// What is to be known before something may be done; see [`crate::index::Index::plan`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncRequirement {
    /// Policies, overrides, bindings, clusters and the templates of a kind were listed, or these cannot be.
    Kind(Gvk),
    /// Every kind in use that refers was listed, or cannot be: who needs what is known.
    Referrers,
    /// The templates of a kind are known as they are now, or cannot be.
    Templates(Gvk),
    /// Policies, bindings and clusters are known as they are now.
    Base,
    /// The override policies were listed.
    Overrides,
    /// Whatever may need an object of a kind is known as it is now, and what held it before this process began.
    Removal(Gvk),
    /// The copies of a kind on a member were listed, or cannot be. This and the next one last: no list of the hub proves them,
    /// and there are as many as kinds times members.
    Copies(Str, Gvk),
    /// Deletions on a member are not paused; see [`crate::governor`].
    Removals(Str),
}

impl Plan {
    /// Nothing to do.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Nothing to do before `time`.
    #[must_use]
    pub fn wait_until(time: Time, why: impl Into<String>) -> Self {
        Self {
            again_at: Some(time),
            why: vec![why.into()],
            ..Self::default()
        }
    }

    /// Nothing to do until something is observed.
    #[must_use]
    pub fn wait(why: impl Into<String>) -> Self {
        Self {
            why: vec![why.into()],
            ..Self::default()
        }
    }

    /// Nothing to do until this is known.
    #[must_use]
    pub fn wait_for(proof: SyncRequirement, why: impl Into<String>) -> Self {
        Self {
            why: vec![why.into()],
            awaits: Some(Box::new(proof)),
            ..Self::default()
        }
    }

    /// Nothing to do until it is proven that nobody needs an object of this kind.
    #[must_use]
    pub fn not_proven(gvk: &Gvk) -> Self {
        Self::wait_for(
            SyncRequirement::Removal(gvk.clone()),
            "it may still be required: not synced yet",
        )
    }

    /// One change.
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
}

/// How a hub object is written. Bodies hold objects that are the control plane's alone, never a template's payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Verb {
    /// POST the object.
    Create(Value),
    /// PUT the object; it carries its resourceVersion.
    Replace(Value),
    /// PUT the status subresource; the object carries its resourceVersion.
    ReplaceStatus(Value),
    /// JSON merge patch; it carries `metadata.resourceVersion` and `metadata.uid`.
    Merge(Value),
    /// JSON merge patch of the status subresource; it carries `metadata.resourceVersion` and `metadata.uid`.
    MergeStatus(Value),
    /// DELETE, background propagation, with uid and resourceVersion as preconditions.
    Delete {
        /// The uid it must have.
        uid: Str,
        /// The resourceVersion it must have.
        resource_version: Str,
    },
}

/// What must still hold on the member for a change to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preconditions {
    /// The uid of the copy.
    pub uid: Str,
    /// The resourceVersion of the copy.
    pub resource_version: Str,
}

/// How a copy ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RemovalMode {
    /// It is deleted.
    Delete,
    /// Our marks are removed and it stays.
    Release,
    /// A namespace that nothing asks to keep: it is released, but for the record of who created it. When the hub has deleted
    /// its own, [`crate::namespaces`] decides what becomes of it.
    HandOver,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Change {
    /// Write an object of the hub.
    Hub {
        /// Which object.
        object: HubObject,
        /// How.
        verb: Verb,
    },
    /// Fetch the template, render it and bring the member's copy in line. See [`crate::delivery`].
    Deliver {
        /// The template, and the copy's identity.
        id: ResourceId,
        /// The member.
        cluster: Str,
        /// How to render it: data only.
        render_spec: RenderSpec,
        /// The copy as last seen; `None` creates it.
        live: Option<Preconditions>,
        /// Whether the live copy must be read before it is written (retain rules, drift, foreign labels).
        read_first: bool,
    },
    /// End a copy of ours on a member.
    Remove {
        /// The copy's identity.
        id: ResourceId,
        /// The member.
        cluster: Str,
        /// Exactly this object; anything else is left alone.
        preconditions: Preconditions,
        /// Delete it, or release it.
        mode: RemovalMode,
    },
    /// Bring the copy of a distribution in line: fetch what is distributed, render it, and write it. See
    /// [`crate::distribution`].
    Distribute(Box<Order>),
    /// End a copy of a distribution.
    Withdraw {
        /// The distribution.
        distribution: Str,
        /// Where.
        place: Place,
        /// The copy.
        id: ResourceId,
        /// The distribution's uid.
        uid: Str,
        /// Exactly this object; anything else is left alone.
        preconditions: Preconditions,
        /// Delete it, or release it.
        mode: RemovalMode,
    },
    /// Bring a namespace of a member in line: made if there is none, else what is missing is merged in. See
    /// [`crate::namespaces`].
    Namespace {
        /// The member.
        cluster: Str,
        /// The namespace.
        name: Str,
        /// The labels that we set.
        labels: BTreeMap<Str, Str>,
        /// The annotations that we set.
        annotations: BTreeMap<Str, Str>,
    },
    /// The decision needs to know what is in a namespace of a member that the hub deleted: the hub is asked whether it has it,
    /// then everything in it is listed. Answered by `LookedInto`. See [`crate::namespaces::content`].
    LookInto {
        /// The member.
        cluster: Str,
        /// The namespace.
        name: Str,
        /// The uids of copies of distributions in it that this hub accounts for: they are no content.
        copies: BTreeSet<Str>,
    },
    /// End a namespace of a member: delete it with what Kubernetes put into it, or take our records off. Before either the hub
    /// is asked whether it has it. Before a deletion it is looked into once more, and only if that finds nothing, and the hub
    /// still has none, it is deleted: what was found before may be old. Answered by `LookedInto` if that found something, else
    /// by `NamespaceEnded`, and what became of it by `Seen` or `Gone`.
    EndNamespace {
        /// The member.
        cluster: Str,
        /// The namespace.
        name: Str,
        /// Exactly this object; anything else is left alone.
        preconditions: Preconditions,
        /// As for [`Self::LookInto`].
        copies: BTreeSet<Str>,
        /// Delete it, or release it.
        mode: RemovalMode,
        /// To be recorded when it was released, and only then.
        told: Option<Box<Event>>,
    },
    /// The decision needs to know whether a copy stands on the member, after a write whose outcome is unknown: a point
    /// GET there. Answered by `Removed(.., Gone)` when there is none of ours, or by `Seen`.
    GetCopy {
        /// The copy's identity.
        id: ResourceId,
        /// The member.
        cluster: Str,
    },
    /// The decision itself needs to know whether this template exists on the hub: a point GET of its metadata.
    /// Answered by `Absent`, `NeverTravels`, or `Found`.
    GetTemplate(ResourceId),
    /// The status of a template is made of its copies' by what people taught us of the kind, which needs the whole object:
    /// it is read, asked about, and its status written if it differs ([`crate::status::template::aggregated`]). Answered by
    /// `Aggregated`.
    Aggregate {
        /// The template.
        id: ResourceId,
        /// What they taught us.
        interpretation: Interpretation,
        /// What each cluster reported.
        items: Vec<AggregatedStatusItem>,
        /// Which question this is: it is told back with the outcome.
        asked: u64,
    },
    /// Nothing can be done for the key before a person changes something, for this reason. It is told as a server's refusal
    /// is: once, see [`crate::refusal`]. Alone in a plan it is not tried again: what the decision looked at dirties the key.
    Refuse(String),
    /// An Event to be recorded on the hub. Losing one is no error.
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
    /// What happened, where, why and what to do; never an object's content.
    pub message: String,
}

/// What an Event is about.
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

/// How a copy of a distribution is brought in line: data only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order {
    /// The distribution.
    pub distribution: Str,
    /// Where.
    pub place: Place,
    /// The copy.
    pub id: ResourceId,
    /// How it is made.
    pub render_spec: render::DistributionRenderSpec,
    /// The object that is distributed where it stands by itself; else it is in the distribution.
    pub source: Option<ResourceId>,
    /// What stands there, as last seen; `None` creates it.
    pub live: Option<Preconditions>,
    /// Whether it must be read before it is written.
    pub read_first: bool,
    /// Whether it may be deleted and made again where an update cannot change it.
    pub may_recreate: bool,
    /// Whether it may be written at all; else it is compared.
    pub may_write: bool,
}
