//! The rules of a kind as a value: flags and functions, so that a kind is a constant that names what differs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    names,
    object::{Object, tree::Errors},
    resource::{Rules, Surroundings, differ_beside},
    status::{FieldError, Result},
};

/// Names the fields of an object that selectors know.
type Selectable = fn(&Object) -> BTreeMap<String, String>;

/// Flags and functions of a kind. [`Kind::PLAIN`] is a kind without rules of its own: constants name what they have beside it.
pub(crate) struct Kind {
    /// Kind, for Debug.
    pub(crate) kind: &'static str,
    /// Whether status is a subresource. Create sets it to what `created` makes.
    pub(crate) has_status: bool,
    /// Whether the server counts generations.
    pub(crate) has_generation: bool,
    /// Whether changed labels count for the generation too.
    pub(crate) labels_count: bool,
    /// Whether PUT creates.
    pub(crate) create_on_update: bool,
    /// Whether DELETE answers with the object.
    pub(crate) returns_object: bool,
    /// Whether a PUT must name a resourceVersion.
    pub(crate) conditional: bool,
    /// Whether an update also checks metadata as a create does, and so tells its errors once more.
    pub(crate) revalidates: bool,
    /// What names look like; the flag: it is a prefix of one.
    pub(crate) names: fn(&str, bool) -> Vec<String>,
    /// Fills in what is absent.
    pub(crate) defaults: fn(&mut Object),
    /// Resets and fills in on create.
    pub(crate) created: fn(&mut Object),
    /// Sets back what an update (of the subresource) may not touch: new, old.
    pub(crate) updated: fn(&str, &mut Object, &Object),
    /// Errors of one state.
    pub(crate) errors: fn(&Object, &mut Errors),
    /// Errors of an update: new, old. `None`: those of the new state.
    pub(crate) changes: Option<fn(&Object, &Object, &mut Errors)>,
    /// Errors of an update of `status`: new, old.
    pub(crate) status_changes: fn(&Object, &Object, &mut Errors),
    /// Warnings about the new state.
    pub(crate) warnings: fn(&Object) -> Vec<String>,
    /// What every request for the kind is told: it is deprecated.
    pub(crate) deprecation: Option<&'static str>,
    /// Fields for field selectors.
    pub(crate) selectable: Option<Selectable>,
}

impl Kind {
    /// A kind without rules.
    pub(crate) const PLAIN: Self = Self {
        kind: "",
        has_status: false,
        has_generation: false,
        labels_count: false,
        create_on_update: false,
        returns_object: false,
        conditional: false,
        revalidates: false,
        names: names::dns_subdomain,
        defaults: |_| {},
        created: |_| {},
        updated: |_, _, _| {},
        errors: |_, _| {},
        changes: None,
        status_changes: |_, _, _| {},
        warnings: |_| Vec::new(),
        deprecation: None,
        selectable: None,
    };
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kind({})", self.kind)
    }
}

impl Rules for &'static Kind {
    fn defaults(&self, object: &mut Object) {
        (self.defaults)(object);
    }

    fn has_status(&self) -> bool {
        self.has_status
    }

    fn has_generation(&self) -> bool {
        self.has_generation
    }

    fn generation_changes(&self, old: &Object, new: &Object) -> bool {
        let labels = |object: &Object| crate::object::metadata(object).get("labels").cloned();
        differ_beside(&["metadata", "status"], old, new) || self.labels_count && labels(old) != labels(new)
    }

    fn prepare_create(&self, object: &mut Object, _: &dyn Surroundings) -> Result<()> {
        (self.created)(object);
        Ok(())
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
        _: &dyn Surroundings,
    ) -> Result<()> {
        (self.updated)(subresource, new, old);
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = Errors::default();
        (self.errors)(object, &mut errors);
        errors.0
    }

    fn validate_update(&self, subresource: &str, new: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = Errors::default();
        match (subresource, self.changes) {
            ("", Some(changes)) => changes(new, old, &mut errors),
            ("", None) => (self.errors)(new, &mut errors),
            ("status", _) => (self.status_changes)(new, old, &mut errors),
            _ => {}
        }
        errors.0
    }

    fn name_problems(&self, name: &str, prefix: bool) -> Vec<String> {
        (self.names)(name, prefix)
    }

    fn warnings(&self, new: &Object, _: Option<&Object>) -> Vec<String> {
        (self.warnings)(new)
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
