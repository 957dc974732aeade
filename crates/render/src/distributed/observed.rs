//! The cached state of a distribution, and of an object with the name of a distributed object. Without content.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use entourage_api::{
    keys::{annotation, finalizer, label},
    kruise::{DeletionPolicy, ResourceDistributionSpec, SourceKind, WritePolicy},
    policy::ClusterAffinity,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::{marks, render, targets::Targets, template};
use entourage_model::{
    object::{Gvk, Meta, ResourceId, Str, StrMap, Time, revision},
    places::Place,
    problem::{Problem, is_subdomain},
};

/// The cached state of a ResourceDistribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Its metadata.
    pub meta: Meta,
    /// Its spec, or all errors in it, in a sentence.
    pub spec: Result<Spec, String>,
    /// Its status as stored.
    pub status: Value,
}

/// The spec of a ResourceDistribution, compiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// ConfigMap or Secret.
    pub gvk: Gvk,
    /// The name of the copies.
    pub name: Str,
    /// Changes with the content of copies; of this process only. Without the source's own version if it has one.
    pub content: u64,
    /// The object that is distributed, if `resourceFrom` names one.
    pub source: Option<ResourceId>,
    /// It names another kind or name than its status has, past the rules that keep the two from changing. Kind and name here
    /// are those of the status, by which its copies are found, and no copy is written: this is the cause for the user.
    pub renamed: Option<String>,
    /// The namespaces.
    pub targets: Targets,
    /// The members whose namespaces are targets; `None` for the hub's.
    pub clusters: Option<ClusterAffinity>,
    /// The treatment of an object of this name that already exists and is not managed.
    pub write_policy: WritePolicy,
    /// The treatment of the copies when the distribution is deleted.
    pub deletion_policy: DeletionPolicy,
}

impl Spec {
    /// True if we must delete or release the copies before the distribution is deleted: garbage collection does not do it, or
    /// not correctly.
    #[must_use]
    pub fn needs_finalizer(&self) -> bool {
        self.clusters.is_some() || self.deletion_policy == DeletionPolicy::Orphan
    }
}

impl Distribution {
    /// Projects a ResourceDistribution as served. Cost: O(size of the object).
    #[must_use]
    pub fn of(object: &Value) -> Self {
        Self {
            meta: Meta::of(object),
            spec: read(&object["spec"]).map(|spec| as_recorded(spec, &object["status"]["distributed"])),
            status: object["status"].clone(),
        }
    }

    /// True if a policy claims it: then it is propagated to members and distributed by their controllers, and not here.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        is_claimed(&self.meta)
    }

    /// True if a user confirmed that copies are deleted although no namespace is selected.
    #[must_use]
    pub fn may_be_empty(&self) -> bool {
        self.meta.annotation(annotation::ALLOW_EMPTY_TARGETS) == Some(entourage_api::keys::TRUE)
    }

    /// True if a copy that cannot be updated may be deleted and created again.
    #[must_use]
    pub fn may_recreate(&self) -> bool {
        self.meta.annotation(annotation::ALLOW_RECREATION) != Some("false")
    }

    /// True if copies of it may exist on members: its targets are members, or were before, as its finalizer shows, which is
    /// added before any copy is written, or its status, if the finalizer has another reason.
    #[must_use]
    pub fn looks_at_members(&self) -> bool {
        let was_there = self.status["clusters"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let may_mean_any = self.may_be_on_any_member();
        self.spec.is_ok() && (may_mean_any || was_there)
    }

    /// True if a copy of it may exist on any member, whatever its status lists.
    #[must_use]
    pub fn may_be_on_any_member(&self) -> bool {
        self.spec.as_ref().is_ok_and(|spec| {
            let is_left_over = !spec.needs_finalizer() && self.meta.has_finalizer(finalizer::DISTRIBUTION);
            spec.clusters.is_some() || is_left_over
        })
    }

    /// The members that may have copies from before its targets were namespaces of the hub; as its status has them.
    #[must_use]
    pub fn was_reported_on(&self) -> Option<&Value> {
        let means_members = self.spec.as_ref().is_ok_and(|spec| spec.clusters.is_some());
        self.status.get("clusters").filter(|_| !means_members)
    }

    /// True if its status lists a member.
    #[must_use]
    pub fn reported_on(&self, cluster: &str) -> bool {
        let mut all = self.status["clusters"].as_array().into_iter().flatten();
        all.any(|each| each["name"] == *cluster)
    }

    /// True if its status is empty: it is new, or the hub was restored without the status.
    pub fn has_no_report(&self) -> bool {
        self.status["clusters"].is_null() && self.status["conditions"].is_null()
    }

    /// True if its status reports the same targets as another one's, apart from the list of members.
    pub fn reports_as(&self, other: &Self) -> bool {
        let but_members = |status: &Value| {
            let fields = status.as_object().into_iter().flatten();
            fields
                .filter(|(field, _)| *field != "clusters")
                .map(|(field, value)| (field.clone(), value.clone()))
                .collect::<BTreeMap<_, _>>()
        };
        but_members(&self.status) == but_members(&other.status)
    }

    /// The generation that its status was computed from.
    #[must_use]
    pub fn observed_generation(&self) -> i64 {
        self.status["observedGeneration"].as_i64().unwrap_or_default()
    }
}

fn read(spec: &Value) -> Result<Spec, String> {
    if spec.is_null() {
        return Err("it has no spec: set spec.resource or spec.resourceFrom, and spec.targets".into());
    }
    let spec = ResourceDistributionSpec::deserialize(spec).map_err(|_| {
        // Not the deserializer's message: it may quote the distributed object.
        "its spec cannot be read: compare it with kubectl explain resourcedistribution.spec".to_owned()
    })?;
    let targets = Targets::compile(&spec.targets).map_err(|all| sentence(&all))?;
    let (gvk, name, content, source) = match (&spec.resource, &spec.resource_from) {
        (Some(_), Some(_)) => return Err("resource and resourceFrom are both given: give one".into()),
        (None, None) => return Err("neither resource nor resourceFrom is given: give one".into()),
        (Some(resource), None) => {
            let subject = template::read(&resource.0).map_err(|all| sentence(&all))?;
            (subject.gvk, subject.name, subject.content, None)
        }
        (None, Some(from)) => {
            if from.namespace.is_empty() || from.name.is_empty() {
                return Err("resourceFrom needs the namespace and the name of what is distributed".into());
            }
            let kind = match from.kind {
                SourceKind::ConfigMap => "ConfigMap",
                SourceKind::Secret => "Secret",
            };
            let id = ResourceId::new(Gvk::new("v1", kind), &from.namespace, &from.name);
            (id.gvk.clone(), id.name.clone(), 0, Some(id))
        }
    };
    Ok(Spec {
        gvk,
        name,
        content,
        source,
        renamed: None,
        targets,
        clusters: spec.targets.clusters,
        write_policy: spec.write_policy.unwrap_or_default(),
        deletion_policy: spec.deletion_policy.unwrap_or_default(),
    })
}

/// Returns the spec with the kind and the name that it was first distributed as, if a status records them.
fn as_recorded(mut spec: Spec, recorded: &Value) -> Spec {
    let text = |field: &str| recorded[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let is_one = ["ConfigMap", "Secret"].contains(&kind) && is_subdomain(name);
    if is_one && (kind, name) != (&*spec.gvk.kind, &*spec.name) {
        spec.renamed = Some(format!(
            "{kind} {name} is what it has distributed, and now it says {} {}: write that back, and make another \
             ResourceDistribution for another object",
            spec.gvk.kind, spec.name
        ));
        (spec.gvk, spec.name) = (Gvk::new("v1", kind), name.into());
    }
    spec
}

fn sentence(problems: &[Problem]) -> String {
    let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
    all.join(". ")
}

/// The cached state of an object that has the kind and the name of a distributed object: a copy, the source, or an object that
/// is not managed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedObject {
    /// Its uid.
    pub uid: Str,
    /// Its resourceVersion.
    pub resource_version: Str,
    /// Its deletionTimestamp.
    pub deleting: Option<Time>,
    /// The uid of its controller.
    pub controller: Option<Str>,
    /// Its owner, for a person; `None` if it has none.
    pub holder: Option<String>,
    /// The distribution that its annotation names.
    pub from: Option<Str>,
    /// The id of the hub that made it, on a member.
    pub hub: Option<Str>,
    /// The place that it was made for, on a member; see [`annotation::DISTRIBUTED_IN`].
    pub place: Option<Str>,
    /// The distributions that may distribute it, if its owner consented to any.
    pub allowed: Option<Str>,
    /// The clusters that a Secret may be propagated to, if its owner limits them; see [`annotation::SECRETS_TO`].
    pub secrets_to: Option<Str>,
    /// True if it carries labels, annotations, finalizers or owners of others, or may carry data that other controllers inject,
    /// which an update keeps: it is read before.
    pub foreign: bool,
}

impl ObservedObject {
    /// Projects an object's metadata.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let meta = Meta::of(object);
        let owners = object["metadata"]["ownerReferences"].as_array();
        let controller = owners
            .into_iter()
            .flatten()
            .find(|owner| owner["controller"] == true)
            .map(|owner| owner["uid"].as_str().unwrap_or_default().into());
        let is_foreign = is_foreign(&meta)
            || owners.is_some_and(|all| all.len() > 1)
            || render::may_be_injected(&object["metadata"]);
        let own = |key: &str| meta.annotations.get(key).cloned();
        Self {
            controller,
            holder: marks::holder(object),
            from: own(annotation::DISTRIBUTED_FROM),
            hub: meta.labels.get(label::DISTRIBUTED_BY).cloned(),
            place: own(annotation::DISTRIBUTED_IN),
            allowed: own(annotation::DISTRIBUTION_ALLOWED),
            secrets_to: own(annotation::SECRETS_TO),
            foreign: is_foreign || !meta.finalizers.is_empty(),
            deleting: meta.deleting,
            uid: meta.uid,
            resource_version: meta.resource_version,
        }
    }

    /// The resourceVersion as a number; see [`Meta::revision`].
    #[must_use]
    pub fn revision(&self) -> u64 {
        revision(&self.resource_version)
    }

    /// True if an object in a place is a copy of a distribution: on the hub by its owner's uid, on a member by our hub's id,
    /// the name, and the place itself.
    #[must_use]
    pub fn is_of(&self, distribution: &Str, uid: &str, hub: &str, place: &Place) -> bool {
        match &place.cluster {
            None => self.controller.as_deref() == Some(uid),
            Some(cluster) => {
                self.hub.as_deref() == Some(hub)
                    && self.from.as_ref() == Some(distribution)
                    && self.place.as_deref() == Some(&*marks::place(cluster, &place.namespace))
                    && self.controller.is_none()
            }
        }
    }

    /// True if its owner allows a distribution to distribute it: its name, or `*`, is listed.
    #[must_use]
    pub fn consents_to(&self, distribution: &str) -> bool {
        let mut names = self.allowed.iter().flat_map(|names| names.split(','));
        names.any(|name| ["*", distribution].contains(&name.trim()))
    }

    /// A number that changes with the object; for a source.
    #[must_use]
    pub fn version(&self) -> u64 {
        version(&self.uid, &self.resource_version)
    }

    /// Its owner, for a person; empty if it has none.
    #[must_use]
    pub fn owner(&self) -> String {
        self.holder.clone().unwrap_or_default()
    }
}

/// True if a policy claims a distribution: it is distributed by its members then.
#[must_use]
pub fn is_claimed(meta: &Meta) -> bool {
    [label::CLUSTER_PROPAGATION_POLICY_ID, label::PROPAGATION_POLICY_ID]
        .iter()
        .any(|key| meta.label(key).is_some())
}

/// A number that changes with a source.
#[must_use]
pub fn version(uid: &str, resource_version: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (uid, resource_version).hash(&mut hasher);
    hasher.finish()
}

/// True if there are labels or annotations that no distribution set. A copy without the record of its keys counts as having
/// some.
fn is_foreign(meta: &Meta) -> bool {
    let Some(keys) = meta.annotations.get(annotation::DISTRIBUTED_KEYS) else {
        return true;
    };
    let set: BTreeSet<&str> = keys.split(',').collect();
    const OWN: [&str; 4] = [
        annotation::DISTRIBUTED_FROM,
        annotation::DISTRIBUTED_HASH,
        annotation::DISTRIBUTED_IN,
        annotation::DISTRIBUTED_KEYS,
    ];
    let others = |map: &StrMap, prefix: &str, own: &[&str]| {
        map.keys()
            .any(|key| !own.contains(&&**key) && !set.contains(format!("{prefix}{key}").as_str()))
    };
    others(&meta.labels, "l:", &[label::DISTRIBUTED_BY]) || others(&meta.annotations, "a:", &OWN)
}
