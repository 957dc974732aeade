//! The input of the core: one entry point for watch events, list results, outcomes of writes and responses to requests.
//!
//! [`project`] turns an object as an API server served it into the fields that decisions need; the payload is dropped there.

mod copied;
mod estimated;
mod hooked;
mod interpreted;
mod lease;
mod meta;
pub mod misread;
mod object_ref;
mod outcome;
mod priority_class;
mod probe;
mod quota;
mod services;
mod template;
mod unhealthy;
mod usage;
mod uses;
mod watch;
mod work;

use std::{collections::BTreeSet, sync::Arc};

use entourage_api::{
    apps::WorkloadRebalancer,
    cluster::Cluster,
    config::ResourceInterpreterCustomization,
    policy::{ClusterTaintPolicy, FederatedResourceQuota, OverridePolicy, PropagationPolicy},
    work::{Component, ReplicaRequirements, ResourceBinding},
};
use serde_json::Value;

use crate::{
    distributed::observed::{Distribution, ObservedObject},
    interpreter::{
        Health, Interpretation,
        operations::Operation,
        question::InterpretError,
        references::{DependencyReference, DependencySelection},
    },
    member_namespace::{self, content::Contents},
    object::{Gvk, Meta, NamespacedName, ResourceId, Str, Time},
    places::Place,
    pulled::Applied,
};

pub use copied::copy;
pub use estimated::EstimatorAnswer;
pub use hooked::{Configured, questions, with_unused};
pub(crate) use interpreted::named;
pub use lease::{Lease, LeaseAnswer};
pub use meta::{CopyMeta, owner_hash};
pub use object_ref::ObjectRef;
pub use outcome::{Delivered, Holder, Removed, Wrote};
pub use priority_class::PriorityClass;
pub use probe::Probe;
pub use quota::{AssignedQuota, QuotaOutcome, assignment};
pub use services::{
    DerivedService, Endpoints, Owner, Port, ServiceImport, ServiceObject, ServicePart, Slice, SliceSource,
};
pub use template::template;
pub use usage::{Node, Pod, Unscheduled};
pub use uses::{Use, Used, Uses};
pub use watch::{LEASES, Watch, is_whole, kind_read_by};
pub use work::{Work, digest, gvk as work_gvk};

pub use crate::{interpreter::template_meta, server::Server};

/// The fields of a template that decisions need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Its metadata.
    pub meta: Meta,
    /// Desired replicas, or `None` if the kind has none.
    pub replicas: Option<i32>,
    /// The number of pods of a Job that must succeed, or `None` if it sets none.
    pub completions: Option<i64>,
    /// The resources that one replica requires, or `None` if the kind has no replicas or they require none.
    pub requirements: Option<Arc<ReplicaRequirements>>,
    /// The components, each with pods of its own, or `None` if the kind has none or they are unknown; never empty.
    pub components: Option<Arc<[Component]>>,
    /// The dependencies by name; sorted.
    pub references: Vec<DependencyReference>,
    /// The dependencies by label.
    pub selections: Vec<DependencySelection>,
    /// The workload that it scales, if it is an autoscaler. Boxed: few templates have one.
    pub scales: Option<Box<ResourceId>>,
    /// Its status as stored, for interpreted kinds only.
    pub status: Option<Value>,
    /// The other fields that the aggregation of its status reads, in the layout of the object; null for most kinds.
    pub shape: Value,
    /// The interpretation of the kind as of when this was read.
    pub interpretation: Interpretation,
    /// The operations whose interpretation failed; the fields above are empty there.
    pub failed_operations: Vec<InterpretError>,
}

impl Template {
    /// The error of the interpretation of this operation, or `None` if it did not fail.
    #[must_use]
    pub fn lacks(&self, operation: Operation) -> Option<&InterpretError> {
        self.failed_operations
            .iter()
            .find(|each| each.operation == operation)
    }

    /// True if a result that is in use now was not requested when the template was read.
    #[must_use]
    pub fn is_to_be_asked(&self, used: Used) -> bool {
        let mut unasked = self.failed_operations.iter().filter(|each| each.is_unasked());
        unasked.any(|each| match each.operation {
            Operation::Components => {
                used.own && self.replicas.is_none() && self.lacks(Operation::Replicas).is_none()
            }
            operation => used.has(operation),
        })
    }
}

/// The fields of a copy on a member that decisions need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Copy {
    /// Its metadata.
    pub meta: CopyMeta,
    /// The status reflected to the hub, for interpreted kinds only.
    pub status: Option<Value>,
    /// Its health; kinds without a health rule count as healthy.
    pub health: Option<Health>,
    /// The reason in its status why it is not healthy, or the words of an agent that could not apply it. Boxed: few copies have it.
    pub why_unhealthy: Option<Box<str>>,
    /// The replicas that it requests, if it is a workload whose replicas are left to the member.
    pub replicas: Option<u32>,
    /// True if it holds data that exists nowhere else: a PersistentVolumeClaim that was bound.
    pub holds_data: bool,
    /// The time when the data of a claim was restored there, as an annotation states. Boxed: few copies have it.
    pub data_restored_at: Option<Box<Time>>,
    /// The interpretation of the kind as of when this was read.
    pub interpretation: Interpretation,
    /// The operations whose interpretation failed; the field keeps its earlier value then.
    pub failed_operations: Box<[InterpretError]>,
    /// On a member in Pull mode, whose copies are Works: the state that its agent reports.
    pub by_agent: Option<Applied>,
}

/// An object as projected.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A PropagationPolicy.
    Policy(Arc<PropagationPolicy>),
    /// An OverridePolicy, or without a namespace a ClusterOverridePolicy.
    Override(Arc<OverridePolicy>),
    /// A ResourceInterpreterCustomization.
    Customization(Arc<ResourceInterpreterCustomization>),
    /// A configuration of hooks.
    Hooks(Str, Arc<Configured>),
    /// A ClusterTaintPolicy.
    TaintPolicy(Arc<ClusterTaintPolicy>),
    /// A ResourceBinding.
    Binding(Arc<ResourceBinding>),
    /// A Cluster.
    Cluster(Arc<Cluster>),
    /// A template on the hub.
    Template(ResourceId, Template),
    /// A copy on a member that this hub manages.
    Copy(Str, ResourceId, Copy),
    /// A namespace of the hub.
    Namespace(Str, Meta),
    /// A namespace of a member.
    MemberNamespace(Str, Str, member_namespace::Seen),
    /// A ResourceDistribution.
    Distribution(Str, Arc<Distribution>),
    /// An object, of the hub or of a member, that has the name of what is distributed.
    Distributed(Option<Str>, ResourceId, ObservedObject),
    /// A WorkloadRebalancer.
    Rebalancer(Arc<WorkloadRebalancer>),
    /// A FederatedResourceQuota.
    Quota(Arc<FederatedResourceQuota>),
    /// A ResourceQuota of a member that a FederatedResourceQuota made: the member, the name.
    QuotaCopy(Str, NamespacedName, Box<AssignedQuota>),
    /// A PriorityClass of the hub.
    PriorityClass(Str, Box<PriorityClass>),
    /// A Work.
    Work(NamespacedName, Box<Work>),
    /// The Lease of the agent of a cluster in Pull mode, by the name of the cluster.
    Lease(Str, Lease),
    /// A node of a member.
    Node(Str, Str, Box<Node>),
    /// A pod of a member, by its number.
    Pod(Str, u64, Pod),
    /// An object of the hub that belongs to a Service of other clusters.
    ServicePart(NamespacedName, Box<ServiceObject>),
    /// An EndpointSlice of a Service that a member exports: the member, the Service, its name.
    Endpoints(Str, NamespacedName, Str, Box<Slice>),
}

/// A group version that a member serves, and its kinds as (plural, kind).
pub type Served = (String, Vec<(String, String)>);

/// One fact seen by the shell.
#[derive(Clone, Debug)]
pub enum Observation {
    /// An object was listed, changed, or returned by a write.
    Seen(Subject),
    /// A watch or a write reported that an object is gone. `uid` and `revision` are those of the event when known.
    Gone {
        /// The object.
        which: ObjectRef,
        /// Its uid, when known.
        uid: Option<Str>,
        /// The resourceVersion of the deletion, when known.
        revision: Option<u64>,
    },
    /// A list begins: sent before its first item. A revision below the one reached before means that the server's revisions went
    /// back.
    Listing {
        /// The watch.
        watch: Watch,
        /// The resourceVersion of the list's first page.
        revision: u64,
    },
    /// A watch has reached a revision: sent after the events and bookmarks that state it, and never because of a write, whose
    /// response may overtake a list that was taken before it.
    Reached {
        /// The watch.
        watch: Watch,
        /// The highest resourceVersion that it sent.
        revision: u64,
    },
    /// An initial list, or a new one after a gap, is complete: an object that is not in `present` is gone.
    Listed {
        /// The watch.
        watch: Watch,
        /// The ids of all listed objects.
        present: BTreeSet<ObjectRef>,
        /// The list's resourceVersion: an object written after it is not gone because the list lacks it.
        revision: u64,
    },
    /// The watch cannot list any more (credentials, connection); what it delivered is kept, but proves nothing.
    Lost {
        /// The watch.
        watch: Watch,
        /// The reason, for a user.
        why: String,
    },
    /// As [`Observation::Lost`], because the server responds and refuses the request to our account (403).
    Refused {
        /// The watch.
        watch: Watch,
        /// The reason, for a user.
        why: String,
    },
    /// The server does not serve the version of a kind that a watch asks for.
    Unserved {
        /// The watch.
        watch: Watch,
        /// A version of the kind that the server does serve, or the requested one if it serves none now and may store objects of
        /// the kind; `None` if it serves none and nothing defines the kind, so that no objects of it exist.
        other: Option<Str>,
        /// The reason, for a user.
        why: String,
    },
    /// A point GET on the hub found a template: it exists now, which a watch event does not prove.
    Found(ResourceId, Template),
    /// A point GET on the hub returned 404 for a template.
    Absent(ResourceId),
    /// A point GET on the hub found a template that is never propagated (a token Secret).
    NotPropagatable(ResourceId),
    /// The hub refused our account (403) a point GET of a template, with this message.
    Unreadable(ResourceId, String),
    /// The hub refused our account (403) a change of a template's metadata, its claim most often, with this message.
    Unclaimed(ResourceId, String),
    /// A [`crate::plan::Change::Deliver`] is about to be executed: until its outcome is known a copy may exist there.
    Started(Str, ResourceId),
    /// The outcome of [`crate::plan::Change::Deliver`].
    Delivered(Str, ResourceId, Delivered),
    /// The outcome of [`crate::plan::Change::Remove`].
    Removed(Str, ResourceId, Removed),
    /// A [`crate::plan::Change::Distribute`] is about to be executed: until its outcome is known a copy may exist there.
    Distributing(Str, Place),
    /// The outcome of [`crate::plan::Change::Distribute`] or [`crate::plan::Change::Withdraw`].
    Distributed(Str, Place, Wrote),
    /// The outcome of [`crate::plan::Change::AssignQuota`] or [`crate::plan::Change::UnassignQuota`]: the quota, the member.
    QuotaAssigned(NamespacedName, Str, Box<QuotaOutcome>),
    /// The outcome of [`crate::plan::Change::Aggregate`]: the number of the request, and the error of the interpretation, if it
    /// failed.
    Aggregated(ResourceId, u64, Option<InterpretError>),
    /// The outcome of [`crate::plan::Change::Estimate`]: the key of the requirements, the time of the question, and what came of it at
    /// each member.
    Estimated(Str, Time, Vec<(Str, EstimatorAnswer)>),
    /// A connection to a member was made, and this is the uid of its namespace kube-system: sent before any other request to the
    /// member.
    Identified(Str, Str),
    /// The outcome of [`crate::plan::Change::LookInto`]: the member, the namespace, its content.
    LookedInto(Str, Str, Contents),
    /// [`crate::plan::Change::EndNamespace`] was executed, or another object has that name now: the member, the namespace.
    NamespaceEnded(Str, Str),
    /// The outcome of [`crate::plan::Change::GetLease`]: the cluster, the response.
    LeaseRead(Str, LeaseAnswer),
    /// A member was probed.
    Probed(Str, Probe),
    /// True if this process may write from now on, false if another one does. Until the first of these it may.
    Leads(bool),
    /// The time is [`crate::object::Time`] now; nothing else happened. Timers come from `again_at` of plans.
    Tick,
}

/// Projects an object as a watch served it; `None` if the object cannot be read as the type of the watch (the caller logs and
/// skips it: one bad object must not stop the others).
///
/// `interpretation` is that of the watch's kind.
///
/// Cost: O(size of the object), and that of the interpretation.
#[must_use]
pub fn project(watch: &Watch, interpretation: &Interpretation, object: &Value) -> Option<Subject> {
    match watch {
        Watch::Policies | Watch::ClusterPolicies => read(object).map(|each| Subject::Policy(Arc::new(each))),
        Watch::Overrides | Watch::ClusterOverrides => {
            read(object).map(|each| Subject::Override(Arc::new(each)))
        }
        Watch::Customizations => read(object).map(|each| Subject::Customization(Arc::new(each))),
        Watch::TaintPolicies => read(object).map(|each| Subject::TaintPolicy(Arc::new(each))),
        Watch::Hooks(contract) => Some(Subject::Hooks(
            object["metadata"]["name"].as_str()?.into(),
            Arc::new(Configured::of(*contract, object)?),
        )),
        Watch::Bindings | Watch::ClusterBindings => read(object).map(|each| Subject::Binding(Arc::new(each))),
        Watch::Clusters => read(object).map(|each| Subject::Cluster(Arc::new(each))),
        Watch::Namespaces => Some(Subject::Namespace(
            object["metadata"]["name"].as_str()?.into(),
            Meta::of(object),
        )),
        Watch::MemberNamespaces(cluster) => Some(Subject::MemberNamespace(
            cluster.clone(),
            object["metadata"]["name"].as_str()?.into(),
            member_namespace::Seen::of(object),
        )),
        Watch::Templates(gvk) => {
            let id = identity(gvk, object)?;
            let template = template(interpretation, &id, object);
            Some(Subject::Template(id, template))
        }
        Watch::Copies(cluster, gvk) => Some(Subject::Copy(
            cluster.clone(),
            identity(gvk, object)?,
            copy(interpretation, gvk, object),
        )),
        Watch::Distributions => Some(Subject::Distribution(
            object["metadata"]["name"].as_str()?.into(),
            Arc::new(Distribution::of(object)),
        )),
        Watch::Distributed(cluster, gvk, _) => Some(Subject::Distributed(
            cluster.clone(),
            identity(gvk, object)?,
            ObservedObject::of(object),
        )),
        Watch::Rebalancers => read(object).map(|each| Subject::Rebalancer(Arc::new(each))),
        Watch::Quotas => read(object).map(|each| Subject::Quota(Arc::new(each))),
        Watch::QuotaCopies(cluster) => {
            let id = identity(&kind_read_by(watch), object)?;
            let name = NamespacedName::new(&id.namespace, &id.name);
            let copy = Box::new(AssignedQuota::of(object));
            Some(Subject::QuotaCopy(cluster.clone(), name, copy))
        }
        Watch::PriorityClasses => Some(Subject::PriorityClass(
            object["metadata"]["name"].as_str()?.into(),
            Box::new(PriorityClass::of(object)),
        )),
        Watch::Works => Some(Subject::Work(
            NamespacedName::new(
                object["metadata"]["namespace"].as_str()?,
                object["metadata"]["name"].as_str()?,
            ),
            Box::new(Work::of(object)),
        )),
        Watch::Leases => Some(Subject::Lease(
            object["metadata"]["name"].as_str()?.into(),
            Lease::of(object),
        )),
        Watch::Nodes(cluster) => Some(Subject::Node(
            cluster.clone(),
            object["metadata"]["name"].as_str()?.into(),
            Box::new(Node::of(object)),
        )),
        Watch::Pods(cluster) => Some(Subject::Pod(
            cluster.clone(),
            pod_number(object)?,
            Pod::of(object),
        )),
        Watch::ServiceParts(part) => {
            let id = identity(&part.gvk(), object)?;
            let name = NamespacedName::new(&id.namespace, &id.name);
            Some(Subject::ServicePart(
                name,
                Box::new(ServiceObject::of(*part, object)),
            ))
        }
        Watch::Endpoints(cluster, service) => Some(Subject::Endpoints(
            cluster.clone(),
            service.clone(),
            object["metadata"]["name"].as_str()?.into(),
            Box::new(Slice::of_member(object)),
        )),
    }
}

/// The id of a served object by its watch, or `None` if it has none.
#[must_use]
pub fn which(watch: &Watch, object: &Value) -> Option<ObjectRef> {
    let meta = &object["metadata"];
    let (namespace, name) = (
        meta["namespace"].as_str().unwrap_or_default(),
        meta["name"].as_str()?,
    );
    Some(match watch {
        Watch::Policies | Watch::ClusterPolicies => ObjectRef::Policy(NamespacedName::new(namespace, name)),
        Watch::Overrides | Watch::ClusterOverrides => {
            ObjectRef::Override(NamespacedName::new(namespace, name))
        }
        Watch::Customizations => ObjectRef::Customization(name.into()),
        Watch::Hooks(contract) => ObjectRef::Hooks(*contract, name.into()),
        Watch::TaintPolicies => ObjectRef::TaintPolicy(name.into()),
        Watch::Bindings | Watch::ClusterBindings => ObjectRef::Binding(NamespacedName::new(namespace, name)),
        Watch::Clusters => ObjectRef::Cluster(name.into()),
        Watch::Namespaces => ObjectRef::Namespace(None, name.into()),
        Watch::MemberNamespaces(cluster) => ObjectRef::Namespace(Some(cluster.clone()), name.into()),
        Watch::Templates(gvk) => ObjectRef::Template(ResourceId::new(gvk.clone(), namespace, name)),
        Watch::Copies(cluster, gvk) => {
            ObjectRef::Copy(cluster.clone(), ResourceId::new(gvk.clone(), namespace, name))
        }
        Watch::Distributions => ObjectRef::Distribution(name.into()),
        Watch::Distributed(cluster, gvk, _) => {
            ObjectRef::Distributed(cluster.clone(), ResourceId::new(gvk.clone(), namespace, name))
        }
        Watch::Rebalancers => ObjectRef::Rebalancer(name.into()),
        Watch::Quotas => ObjectRef::Quota(NamespacedName::new(namespace, name)),
        Watch::QuotaCopies(cluster) => {
            ObjectRef::QuotaCopy(cluster.clone(), NamespacedName::new(namespace, name))
        }
        Watch::PriorityClasses => ObjectRef::PriorityClass(name.into()),
        Watch::Works => ObjectRef::Work(NamespacedName::new(namespace, name)),
        Watch::Leases => ObjectRef::Lease(name.into()),
        Watch::Nodes(cluster) => ObjectRef::Node(cluster.clone(), name.into()),
        Watch::Pods(cluster) => ObjectRef::Pod(cluster.clone(), usage::number(namespace, name)),
        Watch::ServiceParts(part) => ObjectRef::ServicePart(*part, NamespacedName::new(namespace, name)),
        Watch::Endpoints(cluster, service) => {
            ObjectRef::Endpoints(cluster.clone(), service.clone(), name.into())
        }
    })
}

fn pod_number(object: &Value) -> Option<u64> {
    let meta = &object["metadata"];
    let namespace = meta["namespace"].as_str().unwrap_or_default();
    Some(usage::number(namespace, meta["name"].as_str()?))
}

fn identity(gvk: &Gvk, object: &Value) -> Option<ResourceId> {
    let meta = &object["metadata"];
    Some(ResourceId::new(
        gvk.clone(),
        meta["namespace"].as_str().unwrap_or_default(),
        meta["name"].as_str()?,
    ))
}

/// Reads a typed object, without the fields that no decision needs.
fn read<T: serde::de::DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::interpreter::hook::Contract;

    #[test]
    fn each_object_is_reported_by_the_watch_that_lists_it_and_no_two_watches_are_the_same() {
        let gvk = Gvk::new("v1", "Secret");
        let watches = [
            Watch::Policies,
            Watch::ClusterPolicies,
            Watch::Overrides,
            Watch::ClusterOverrides,
            Watch::Bindings,
            Watch::ClusterBindings,
            Watch::Clusters,
            Watch::Customizations,
            Watch::Hooks(Contract::Interpreter),
            Watch::Hooks(Contract::Explorer),
            Watch::TaintPolicies,
            Watch::Namespaces,
            Watch::MemberNamespaces("m1".into()),
            Watch::Templates(gvk.clone()),
            Watch::Copies("m1".into(), gvk.clone()),
            Watch::Distributions,
            Watch::Distributed(None, gvk.clone(), "a".into()),
            Watch::Distributed(Some("m1".into()), gvk, "a".into()),
            Watch::Rebalancers,
            Watch::Quotas,
            Watch::QuotaCopies("m1".into()),
            Watch::Works,
            Watch::PriorityClasses,
            Watch::Leases,
            Watch::Nodes("m1".into()),
            Watch::Pods("m1".into()),
            Watch::ServiceParts(ServicePart::Import),
            Watch::ServiceParts(ServicePart::Derived),
            Watch::ServiceParts(ServicePart::Imported),
            Watch::Endpoints("m1".into(), NamespacedName::new("ns", "a")),
            Watch::Endpoints("m1".into(), NamespacedName::new("ns", "b")),
        ];
        for (at, watch) in watches.iter().enumerate() {
            let is_namespaced = matches!(
                watch,
                Watch::Policies | Watch::Overrides | Watch::Bindings | Watch::Works
            );
            let namespace = if is_namespaced { "default" } else { "" };
            let object = json!({"metadata": {"name": "a", "namespace": namespace}});
            let which = which(watch, &object).expect("it has a name");
            assert_eq!(which.watch(), *watch);
            assert!(!watches[..at].contains(watch), "{watch:?}");
        }
    }
}
