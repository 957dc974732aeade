//! A write to validate, and its refusal.

use std::fmt;

use entourage_interpreter::customized::Engine;
use entourage_model::problem::Problem;
use serde_json::Value;

/// The operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

/// The default maximum number of resource selectors in a PropagationPolicy.
pub const SELECTORS_PER_POLICY: usize = 1_000;

/// The settings of the webhook.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// True if ClusterTaintPolicies may set taints that evict.
    pub allow_no_execute: bool,
    /// The maximum number of kinds outside Kubernetes itself that the PropagationPolicies of a namespace may name; `None`:
    /// [`entourage_core::config::KINDS_PER_NAMESPACE`].
    pub kinds_per_namespace: Option<usize>,
    /// The maximum number of resource selectors in a PropagationPolicy; `None`: [`SELECTORS_PER_POLICY`].
    pub selectors_per_policy: Option<usize>,
    /// The engine that compiles scripts of customizations; `None` accepts them unchecked.
    pub scripts: Option<&'static dyn Engine>,
}

/// A write to validate.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Name; may be empty on a create.
    pub name: &'a str,
    /// The operation.
    pub operation: Operation,
    /// The object after it; `None` for a deletion.
    pub object: Option<&'a Value>,
    /// The object before it; `None` for a create.
    pub old: Option<&'a Value>,
    /// The other objects of the kind that [`looks_around`](crate::looks_around) requests; more do no harm.
    pub others: &'a [Value],
    /// The settings of the webhook.
    pub settings: Settings,
}

/// Debug output omits the objects: a deletion may be that of a Secret.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("group", &self.group)
            .field("kind", &self.kind)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

/// A refused write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status: 422 for an invalid object, 403 for a protected one.
    pub code: u16,
    /// The reason of a Kubernetes Status.
    pub reason: &'static str,
    /// All problems, in one sentence each.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { ". " })?;
        }
        Ok(())
    }
}

/// The other objects of its kind that an object is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Around {
    /// The kinds of its namespace.
    Namespace,
    /// All of them.
    Everywhere,
}

/// True if an object is being deleted.
pub(crate) fn is_leaving(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The items of a list; empty if there is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The items of the list at a JSON pointer, mutable; empty if there is no list.
pub(crate) fn items_mut<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.pointer_mut(pointer).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// A string; empty if there is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// True if a field is absent, null or an empty string.
pub(crate) fn is_unset(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}
