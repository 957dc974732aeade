//! A built-in kind as a value: its row, flags and functions, so that a kind is a constant that names what differs.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, SubResourceScope};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::{
    names,
    object::{
        Object, field, metadata, metadata_mut,
        tree::{Errors, below, text},
    },
    printer::Printer,
    resource::{LazySchema, Resource, Rules, Surroundings, differ_beside},
    schema::builtin::Root,
    status::{FieldError, Result},
};

/// Names the fields of an object that selectors know.
type Selectable = fn(&Object) -> BTreeMap<String, String>;

/// A built-in kind. [`KindDef::of`] is one without rules of its own; each kind is a static that names only what differs.
#[derive(Debug)]
pub(crate) struct KindDef {
    /// API group, empty for the core group.
    pub(crate) group: &'static str,
    /// API version.
    pub(crate) version: &'static str,
    /// Kind of one object.
    pub(crate) kind: &'static str,
    /// Name in paths.
    pub(crate) plural: &'static str,
    /// True if objects live in namespaces.
    pub(crate) namespaced: bool,
    /// The type that defines the fields.
    pub(crate) root: Root,
    /// Short names.
    pub(crate) short: &'static [&'static str],
    /// Categories, such as `all`.
    pub(crate) categories: &'static [&'static str],
    /// Subresources, sorted. With `status`, a create drops the status that it is sent; `created` makes the first one.
    pub(crate) subresources: &'static [&'static str],
    /// Verbs of the object itself, sorted.
    pub(crate) verbs: &'static [&'static str],
    /// The group under which objects are stored: its own, unless another group shows the same objects.
    pub(crate) stored_group: &'static str,
    /// Path of the pod spec in an object; empty when the kind makes no pods.
    pub(crate) pod_spec: &'static [&'static str],
    /// The columns and cells of `kubectl get`.
    pub(crate) printer: Printer,
    /// Makes the rules of a kind that needs more than the flags and functions below; those are not used then.
    pub(crate) rules: Option<fn() -> Arc<dyn Rules>>,
    /// True if a create keeps the status in the request.
    pub(crate) keeps_status: bool,
    /// True if the server counts generations.
    pub(crate) has_generation: bool,
    /// True if a change counts for the generation: old, new.
    pub(crate) generation_changes: fn(&Object, &Object) -> bool,
    /// The metadata that a change of the status does not touch.
    pub(crate) kept_by_status: &'static [&'static str],
    /// True if PUT creates.
    pub(crate) create_on_update: bool,
    /// True if DELETE returns the object.
    pub(crate) returns_object: bool,
    /// True if a PUT must name a resourceVersion.
    pub(crate) conditional: bool,
    /// True if an update also checks metadata as a create does, and so reports its errors once more.
    pub(crate) revalidates: bool,
    /// True if dependents are orphaned by default.
    pub(crate) orphans_by_default: bool,
    /// The warning of a deletion that orphans them.
    pub(crate) orphan_warning: Option<&'static str>,
    /// The stored form, where it differs from that of the version.
    pub(crate) form: Option<Form>,
    /// The errors in a name; the flag is true for a prefix of one.
    pub(crate) names: fn(&str, bool) -> Vec<String>,
    /// Fills in what is absent.
    pub(crate) defaults: fn(&mut Object),
    /// Resets and fills in on create.
    pub(crate) created: fn(&mut Object),
    /// Sets back what an update (of the subresource) may not touch: new, old.
    pub(crate) updated: fn(&str, &mut Object, &Object),
    /// Fills in or refuses what depends on other objects or on the clock: subresource, new, old (`None` on create).
    pub(crate) placed: fn(&str, &mut Object, Option<&Object>, &dyn Surroundings) -> Result<()>,
    /// Errors of one state.
    pub(crate) errors: fn(&Object, &mut Errors),
    /// Errors of an update: new, old. `None`: those of the new state.
    pub(crate) changes: Option<fn(&Object, &Object, &mut Errors)>,
    /// Errors of an update of `status`: new, old.
    pub(crate) status_changes: fn(&Object, &Object, &mut Errors),
    /// Warnings about the new state: new, old.
    pub(crate) warnings: fn(&Object, Option<&Object>) -> Vec<String>,
    /// The deprecation warning of every request for the kind.
    pub(crate) deprecation: Option<&'static str>,
    /// Fields for field selectors.
    pub(crate) selectable: Option<Selectable>,
}

/// The metadata that users change, which the status of some kinds does not touch.
pub(crate) const METADATA: &[&str] = &["annotations", "finalizers", "labels", "ownerReferences"];

impl KindDef {
    /// The kind of a type, without rules of its own.
    pub(crate) const fn of<T: Type>() -> Self {
        Self {
            group: T::GROUP,
            version: T::VERSION,
            kind: T::KIND,
            plural: T::URL_PATH_SEGMENT,
            namespaced: T::Scope::NAMESPACED,
            root: Root::of::<T>(),
            short: &[],
            categories: &[],
            subresources: &[],
            verbs: &[
                "create",
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "update",
                "watch",
            ],
            stored_group: T::GROUP,
            pod_spec: &[],
            printer: Printer::DEFAULT,
            rules: None,
            keeps_status: false,
            has_generation: false,
            generation_changes: |old, new| differ_beside(&["metadata", "status"], old, new),
            kept_by_status: &[],
            create_on_update: false,
            returns_object: false,
            conditional: false,
            revalidates: false,
            orphans_by_default: false,
            orphan_warning: None,
            form: None,
            names: names::dns_subdomain,
            defaults: |_| {},
            created: |_| {},
            updated: |_, _, _| {},
            placed: |_, _, _, _| Ok(()),
            errors: |_, _| {},
            changes: None,
            status_changes: |_, _, _| {},
            warnings: |_, _| Vec::new(),
            deprecation: None,
            selectable: None,
        }
    }

    /// The resource that serves the kind.
    pub(crate) fn resource(&'static self) -> Resource {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Resource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            plural: self.plural.to_owned(),
            singular: self.kind.to_ascii_lowercase(),
            short_names: words(self.short),
            categories: words(self.categories),
            namespaced: self.namespaced,
            verbs: self.verbs.to_vec(),
            subresources: self.subresources.to_vec(),
            collection: match self.stored_group {
                "" => self.plural.to_owned(),
                group => format!("{group}/{}", self.plural),
            },
            schema: LazySchema::new(|| self.root.schema()),
            rules: self.rules(),
            printer: self.printer,
            pod_spec: self.pod_spec,
            custom: None,
        }
    }

    /// The rules of the kind.
    pub(crate) fn rules(&'static self) -> Arc<dyn Rules> {
        self.rules.map_or_else(|| Arc::new(self) as _, |rules| rules())
    }
}

/// Between the stored form and that of a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Turns the stored form into that of the version.
    pub(crate) show_stored: fn(&mut Object),
    /// Turns the form of the version into the stored one.
    pub(crate) to_stored: fn(&mut Object),
}

/// A type of the API that is a kind.
pub(crate) trait Type: k8s_openapi::Resource<Scope: Scoped> + JsonSchema {}

impl<T: k8s_openapi::Resource<Scope: Scoped> + JsonSchema> Type for T {}

/// A scope of resources.
pub(crate) trait Scoped {
    /// True if objects live in namespaces.
    const NAMESPACED: bool;
}

impl Scoped for ClusterResourceScope {
    const NAMESPACED: bool = false;
}

impl Scoped for NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl Scoped for SubResourceScope {
    const NAMESPACED: bool = true;
}

impl Rules for &'static KindDef {
    fn defaults(&self, object: &mut Object) {
        (self.defaults)(object);
    }

    fn has_status(&self) -> bool {
        !self.keeps_status && self.subresources.contains(&"status")
    }

    fn has_generation(&self) -> bool {
        self.has_generation
    }

    fn generation_changes(&self, old: &Object, new: &Object) -> bool {
        (self.generation_changes)(old, new)
    }

    fn kept_by_status(&self) -> &'static [&'static str] {
        self.kept_by_status
    }

    fn show_stored(&self, object: &mut Object) {
        if let Some(form) = self.form {
            (form.show_stored)(object);
        }
    }

    fn to_stored(&self, object: &mut Object) {
        if let Some(form) = self.form {
            (form.to_stored)(object);
        }
    }

    fn is_stored_form(&self) -> bool {
        self.form.is_none()
    }

    fn orphans_by_default(&self) -> bool {
        self.orphans_by_default
    }

    fn orphan_warning(&self) -> Option<&'static str> {
        self.orphan_warning
    }

    fn prepare_create(&self, object: &mut Object, around: &dyn Surroundings) -> Result<()> {
        (self.created)(object);
        (self.placed)("", object, None, around)
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
        around: &dyn Surroundings,
    ) -> Result<()> {
        (self.updated)(subresource, new, old);
        (self.placed)(subresource, new, Some(old), around)
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = Errors::default();
        (self.errors)(object, &mut errors);
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = Errors::default();
        match (subresource, self.changes) {
            ("status", _) => (self.status_changes)(new, old, &mut errors),
            (_, Some(changes)) => changes(new, old, &mut errors),
            (_, None) => (self.errors)(new, &mut errors),
        }
        errors.0
    }

    fn name_problems(&self, name: &str, prefix: bool) -> Vec<String> {
        (self.names)(name, prefix)
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        (self.warnings)(new, old)
    }

    fn deprecation(&self) -> Option<&'static str> {
        self.deprecation
    }

    fn selectable(&self, object: &Object) -> Option<BTreeMap<String, String>> {
        self.selectable.map(|selectable| selectable(object))
    }

    fn create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn unconditional_update(&self) -> bool {
        !self.conditional
    }

    fn delete_returns_object(&self) -> bool {
        self.returns_object
    }

    fn revalidates(&self) -> bool {
        self.revalidates
    }
}

/// Fields for selectors from pairs.
pub(crate) fn fields<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// An empty `status`, as kinds send whose status is always there.
pub(crate) fn empty_status(object: &mut Object) {
    object.insert("status".to_owned(), Value::Object(Object::new()));
}

/// The finalizer that keeps what is in use.
pub(crate) fn protect(object: &mut Object, finalizer: &str) {
    let finalizers = metadata_mut(object)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|known| known == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

/// The name of the default class of a collection, which has one of the annotations: of several the newest, then the first
/// by name. Cost: a list of the classes.
pub(crate) fn default_class(collection: &str, marks: &[&str], around: &dyn Surroundings) -> Option<String> {
    if !around.has_default_classes() {
        return None;
    }
    let classes = around.list(collection, "");
    let marked = classes.iter().filter(|class| {
        let annotations = below(metadata(class), "annotations");
        marks.iter().any(|name| text(annotations, name) == "true")
    });
    marked
        .min_by(|one, other| {
            let newest = field(other, "creationTimestamp").cmp(field(one, "creationTimestamp"));
            newest.then_with(|| field(one, "name").cmp(field(other, "name")))
        })
        .map(|class| field(class, "name").to_owned())
}
