//! A served resource, and the rules that a kind adds to those of every object.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    object::Object,
    printer::Printer,
    schema::Schema,
    status::{About, FieldError},
    store::{Event, Page, Revision},
};

pub(crate) mod custom;
mod kinds;
pub(crate) mod stored;

pub use custom::Custom;
pub use kinds::{Kinds, by_priority};

/// One served resource in one version: `apps/v1 deployments`.
#[derive(Clone, Debug)]
pub struct Resource {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind of one object.
    pub kind: String,
    /// Kind of a list.
    pub list_kind: String,
    /// Name in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// True if objects live in namespaces.
    pub namespaced: bool,
    /// Verbs of the resource itself, sorted.
    pub verbs: Vec<&'static str>,
    /// Subresources that are served: `status`, `scale`, …
    pub subresources: Vec<&'static str>,
    /// Collection in the store, the same for all versions: `apps/deployments`.
    pub collection: String,
    /// The schema of objects in this version. Those of built-in kinds are built at the first use.
    pub schema: LazySchema,
    /// The kind's own rules.
    pub rules: Arc<dyn Rules>,
    /// The printer of a built-in kind.
    pub(crate) printer: Printer,
    /// Path of the pod spec in an object; empty when the kind makes no pods.
    pub(crate) pod_spec: &'static [&'static str],
    /// For custom resources: the CRD's version as the `crd` module understood it.
    pub custom: Option<Arc<crate::resource::Custom>>,
}

/// A schema that is built when first used.
#[derive(Clone)]
pub struct LazySchema(Arc<std::sync::LazyLock<Arc<Schema>, Build>>);

/// Makes a schema.
type Build = Box<dyn FnOnce() -> Arc<Schema> + Send>;

impl LazySchema {
    /// A schema that `build` makes at its first use.
    pub fn new(build: impl FnOnce() -> Arc<Schema> + Send + 'static) -> Self {
        Self(Arc::new(std::sync::LazyLock::new(Box::new(build))))
    }

    /// The schema.
    #[must_use]
    pub fn get(&self) -> &Arc<Schema> {
        &self.0
    }
}

impl fmt::Debug for LazySchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LazySchema")
    }
}

impl Resource {
    /// `v1` or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Key of an object in the store.
    #[must_use]
    pub fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced {
            format!("{namespace}/{name}")
        } else {
            name.to_owned()
        }
    }

    /// The spec of a pod, or that of the pods that a workload makes.
    pub(crate) fn pod_spec<'a>(&self, whole: &'a Object) -> Option<&'a Object> {
        let (first, rest) = self.pod_spec.split_first()?;
        let found = rest.iter().try_fold(whole.get(*first)?, |at, key| at.get(key))?;
        found.as_object()
    }

    /// True if the resource has this subresource.
    #[must_use]
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.contains(&subresource)
    }
}

/// The group whose objects these are: events of `events.k8s.io` belong to the core group.
fn own_group(resource: &Resource) -> &str {
    resource
        .collection
        .rsplit_once('/')
        .map_or("", |(group, _)| group)
}

/// The name of an object in errors.
pub(crate) fn about<'a>(resource: &'a Resource, name: &'a str) -> About<'a> {
    About {
        group: own_group(resource),
        resource: match resource.plural.as_str() {
            // The server's own slip.
            "componentstatuses" => "componentstatus",
            plural => plural,
        },
        name,
    }
}

/// The name of an object in field errors: by its kind.
pub(crate) fn about_kind<'a>(resource: &'a Resource, name: &'a str) -> About<'a> {
    About {
        group: own_group(resource),
        resource: &resource.kind,
        name,
    }
}

/// The view of the cluster for the rules of kinds: other objects, read only, and the clock.
pub trait Surroundings {
    /// An object of a collection, as stored.
    fn get(&self, collection: &str, key: &str) -> Option<Object>;
    /// All objects of a collection below a prefix.
    fn list(&self, collection: &str, prefix: &str) -> Vec<Object>;
    /// True if objects that name no class get the default one, and Pods what their RuntimeClass says.
    fn has_default_classes(&self) -> bool {
        true
    }
    /// Now, RFC 3339 in whole seconds.
    fn now(&self) -> String;
    /// The events of a collection behind a revision, and the revision that they reach; `None` if they are no longer kept.
    fn events(&self, collection: &str, since: Revision) -> Option<(Vec<Arc<Event>>, Revision)>;
    /// All entries of a collection, and the revision that they are the state of.
    fn entries(&self, collection: &str) -> Page;
}

/// Keeps others from writing objects of the kind while it lives.
pub trait Guard {}

impl<T> Guard for std::sync::MutexGuard<'_, T> {}

/// The rules of one kind. Every method has the answer of a kind without rules of its own.
///
/// `subresource` is empty for the object itself. Objects are complete: apiVersion, kind, metadata.
pub trait Rules: Send + Sync + fmt::Debug {
    /// Fills in what is absent (after decoding in the resource's version, on every write).
    fn defaults(&self, _object: &mut Object) {}

    /// Turns the stored form into that of this group and version, where they differ (Events). What is stored has the form of
    /// the core group; see also `cluster::is_shown_as_stored`.
    fn show_stored(&self, _object: &mut Object) {}

    /// Turns the form of this group and version into the stored one.
    fn to_stored(&self, _object: &mut Object) {}

    /// True if the stored form is that of this group and version.
    fn is_stored_form(&self) -> bool {
        true
    }

    /// True if status is a subresource: dropped on create, kept on update of the object.
    fn has_status(&self) -> bool {
        false
    }

    /// The metadata that a change of the status does not touch (a change of any built-in kind's status may touch the rest).
    fn kept_by_status(&self) -> &'static [&'static str] {
        &[]
    }

    /// True if the server maintains `metadata.generation`: it grows when anything but metadata and status changes.
    fn has_generation(&self) -> bool {
        false
    }

    /// True if an update with a changed `metadata` (annotations of Deployments) also counts for the generation.
    fn generation_changes(&self, old: &Object, new: &Object) -> bool {
        differ_beside(&["metadata", "status"], old, new)
    }

    /// Resets and allocates before a create is validated: status, cluster IPs, finalizers of namespaces.
    fn prepare_create(&self, _object: &mut Object, _around: &dyn Surroundings) -> crate::status::Result<()> {
        Ok(())
    }

    /// Puts what a dry run shows in place of what [`Rules::prepare_create`] allocated for an object that was `asked` for.
    fn rehearse(&self, _object: &mut Object, _asked: &Object) {}

    /// Sets the fields that an update of `subresource` may not change back to `old`; allocations that are kept are copied.
    fn prepare_update(
        &self,
        _subresource: &str,
        _new: &mut Object,
        _old: &Object,
        _around: &dyn Surroundings,
    ) -> crate::status::Result<()> {
        Ok(())
    }

    /// Called right before an object is written, and held while it is: what it claims (addresses, ports) must still be free.
    fn hold<'a>(
        &'a self,
        _object: &Object,
        _around: &dyn Surroundings,
    ) -> crate::status::Result<Option<Box<dyn Guard + 'a>>> {
        Ok(None)
    }

    /// The kind's own errors of an object to be created; metadata was checked.
    fn validate(&self, _object: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    /// The kind's own errors of an update; by default those of a create.
    fn validate_update(&self, subresource: &str, new: &Object, _old: &Object) -> Vec<FieldError> {
        if subresource.is_empty() {
            self.validate(new)
        } else {
            Vec::new()
        }
    }

    /// The errors in a name; empty if it is acceptable.
    fn name_problems(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::names::dns_subdomain(name, prefix)
    }

    /// Warnings for the `Warning` header.
    fn warnings(&self, _new: &Object, _old: Option<&Object>) -> Vec<String> {
        Vec::new()
    }

    /// The warning that every request for the kind is given: it is deprecated.
    fn deprecation(&self) -> Option<&'static str> {
        None
    }

    /// Fields that field selectors know beside `metadata.name` and `metadata.namespace`; `None`: the kind has none of its own.
    fn selectable(&self, _object: &Object) -> Option<BTreeMap<String, String>> {
        None
    }

    /// True if PUT creates an absent object.
    fn create_on_update(&self) -> bool {
        false
    }

    /// True if a PUT without resourceVersion is accepted.
    fn unconditional_update(&self) -> bool {
        true
    }

    /// True if DELETE returns the object instead of a Status.
    fn delete_returns_object(&self) -> bool {
        false
    }

    /// The reason why an object of this name may never be deleted.
    fn undeletable(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// The first deletion of namespaces and CRDs only marks them: makes what else changes then, beside deletionTimestamp, and
    /// returns true. Their own controller removes them, once [`Rules::may_go`] allows it.
    fn begin_delete(&self, _object: &mut Object, _now: &str) -> bool {
        false
    }

    /// True if an object that is being deleted may be removed when no finalizer of its metadata is left.
    fn may_go(&self, _object: &Object) -> bool {
        true
    }

    /// True if an update also checks metadata as a create does (most kinds check only changes): the server then reports
    /// each error once more.
    fn revalidates(&self) -> bool {
        false
    }

    /// The warning of a deletion that orphans dependents by default.
    fn orphan_warning(&self) -> Option<&'static str> {
        None
    }

    /// Seconds of grace for a deletion, `None` where the kind has no graceful deletion.
    fn grace(&self, _object: &Object, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// True if dependents are orphaned by default (Jobs, ReplicationControllers).
    fn orphans_by_default(&self) -> bool {
        false
    }
}

/// True if two objects differ in other fields than these. O(objects).
#[must_use]
pub fn differ_beside(fields: &[&str], old: &Object, new: &Object) -> bool {
    let counted = |object: &'_ Object| {
        object
            .iter()
            .filter(|(name, _)| !fields.contains(&name.as_str()))
            .count()
    };
    counted(old) != counted(new)
        || old
            .iter()
            .filter(|(name, _)| !fields.contains(&name.as_str()))
            .any(|(name, value)| new.get(name) != Some(value))
}
