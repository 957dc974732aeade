//! The facts that are kept of a distribution and of an object with the name of its resource. No content.

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
    object::{Gvk, Meta, ResourceId, Str, Time, revision},
    places::Place,
    problem::{Problem, is_subdomain},
};

/// What decisions need of a ResourceDistribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Its metadata.
    pub meta: Meta,
    /// What it says, or everything that is wrong with that, in a sentence.
    pub spec: Result<Spec, String>,
    /// Its status as stored.
    pub status: Value,
}

/// What a ResourceDistribution says.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// ConfigMap or Secret.
    pub gvk: Gvk,
    /// The name of the copies.
    pub name: Str,
    /// Changes with what copies hold; of this process only. Without the source's own version where it has one.
    pub content: u64,
    /// The object that is distributed, where it stands by itself.
    pub source: Option<ResourceId>,
    /// It says another kind or name than its status has, past the rules that keep the two from changing. Kind and name here
    /// are those of the status, by which its copies are known, and nothing is written: this says why.
    pub renamed: Option<String>,
    /// The namespaces.
    pub targets: Targets,
    /// The members whose namespaces are meant; `None` for the hub's.
    pub clusters: Option<ClusterAffinity>,
    /// What happens where an object of this name already exists and is not managed.
    pub write_policy: WritePolicy,
    /// What becomes of the copies when the distribution is deleted.
    pub deletion_policy: DeletionPolicy,
}

impl Spec {
    /// Whether copies must be taken away by us when the distribution ends: garbage collection would not, or not right.
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

    /// Whether a policy took it: then it is carried out on members, by whatever does so there, and not here.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        is_claimed(&self.meta)
    }

    /// Whether somebody confirmed that copies go although no namespace is selected.
    #[must_use]
    pub fn may_be_empty(&self) -> bool {
        self.meta.annotation(annotation::ALLOW_EMPTY_TARGETS) == Some(entourage_api::keys::TRUE)
    }

    /// Whether a copy that cannot be updated may be deleted and made again.
    #[must_use]
    pub fn may_recreate(&self) -> bool {
        self.meta.annotation(annotation::ALLOW_RECREATION) != Some("false")
    }

    /// Whether copies of it may stand on members: it means them, or it did before, as its finalizer tells, which is there
    /// before any copy, or its status, where the finalizer is there for another reason.
    #[must_use]
    pub fn looks_at_members(&self) -> bool {
        let was_there = self.status["clusters"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let may_mean_any = self.may_be_on_any_member();
        self.spec.is_ok() && (may_mean_any || was_there)
    }

    /// Whether a copy of it may stand on any member, whatever its status lists.
    #[must_use]
    pub fn may_be_on_any_member(&self) -> bool {
        self.spec.as_ref().is_ok_and(|spec| {
            let is_left_over = !spec.needs_finalizer() && self.meta.has_finalizer(finalizer::DISTRIBUTION);
            spec.clusters.is_some() || is_left_over
        })
    }

    /// The members on which copies may stand from before it meant none; as its status has them.
    #[must_use]
    pub fn was_reported_on(&self) -> Option<&Value> {
        let means_members = self.spec.as_ref().is_ok_and(|spec| spec.clusters.is_some());
        self.status.get("clusters").filter(|_| !means_members)
    }

    /// Whether its status lists a member.
    #[must_use]
    pub fn reported_on(&self, cluster: &str) -> bool {
        let mut all = self.status["clusters"].as_array().into_iter().flatten();
        all.any(|each| each["name"] == *cluster)
    }

    /// Whether its status says nothing: it is new, or the hub was restored without it.
    pub fn has_no_report(&self) -> bool {
        self.status["clusters"].is_null() && self.status["conditions"].is_null()
    }

    /// Whether its status says the same of places as another one's, but for the members that are listed.
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

    /// The generation that its status is about.
    #[must_use]
    pub fn observed_generation(&self) -> i64 {
        self.status["observedGeneration"].as_i64().unwrap_or_default()
    }
}

fn read(spec: &Value) -> Result<Spec, String> {
    if spec.is_null() {
        return Err("it has no spec: say what is distributed, and where to".into());
    }
    let spec = ResourceDistributionSpec::deserialize(spec).map_err(|_| {
        // Not the deserializer's words: they may quote what is distributed.
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

/// Under the kind and the name that it was first distributed as, where a status tells of any.
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

/// What is kept of an object that has the kind and the name of what is distributed: a copy, the source, or somebody else's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedObject {
    /// Its uid.
    pub uid: Str,
    /// Its resourceVersion.
    pub resource_version: Str,
    /// It is being deleted.
    pub deleting: Option<Time>,
    /// The uid of its controller.
    pub controller: Option<Str>,
    /// Whose it is, for a person; `None` when it is nobody's.
    pub holder: Option<String>,
    /// The distribution that it says it is from.
    pub from: Option<Str>,
    /// The hub that made it, on a member.
    pub hub: Option<Str>,
    /// The place that it was made for, on a member; see [`annotation::DISTRIBUTED_IN`].
    pub place: Option<Str>,
    /// Which distributions may distribute it, if its owner said so.
    pub allowed: Option<Str>,
    /// Whether it carries labels, annotations, finalizers or owners of others, or may carry data that others were asked for,
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

    /// Whether an object in a place is a copy of a distribution: on the hub by its owner's uid, on a member by our hub's id,
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

    /// Whether its owner lets a distribution have it: its name, or `*`, is listed.
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

    /// Whose it is, for a person.
    #[must_use]
    pub fn owner(&self) -> String {
        self.holder.clone().unwrap_or_default()
    }
}

/// Whether a policy claims a distribution: its members carry it out then.
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

/// Whether labels or annotations stand there that no distribution set. A copy that does not say what was set counts as
/// having some.
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
    let others = |map: &BTreeMap<Str, Str>, prefix: &str, own: &[&str]| {
        map.keys()
            .any(|key| !own.contains(&&**key) && !set.contains(format!("{prefix}{key}").as_str()))
    };
    others(&meta.labels, "l:", &[label::DISTRIBUTED_BY]) || others(&meta.annotations, "a:", &OWN)
}
