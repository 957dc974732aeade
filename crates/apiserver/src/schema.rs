//! The shape of a kind: one model for built-in kinds and for custom resources.
//!
//! Decoding, pruning, defaulting, validation, merging and documentation all walk this tree.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Type {
    /// Anything: no type is declared.
    #[default]
    Any,
    /// A JSON object.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// A string or a whole number.
    IntOrString,
}

/// The identity of the items of a list, for apply and for strategic merge.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ListKind {
    /// One value, replaced as a whole.
    #[default]
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects that these keys identify.
    Map(Vec<String>),
}

/// A node. Absent means "not declared". Nodes are shared: built-in definitions appear many times.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The type.
    pub kind: Type,
    /// True if `null` is a value (custom resources only).
    pub nullable: bool,
    /// `format`: int32, int64, date-time, byte, …
    pub format: Option<String>,
    /// Title and description, for explain.
    pub description: Option<String>,
    /// Fields of an object.
    pub properties: BTreeMap<String, Arc<Self>>,
    /// Values of a map with free keys.
    pub additional: Option<Arc<Self>>,
    /// True if fields beyond `properties` are an error of the object (`additionalProperties: false`; custom resources only).
    pub closed: bool,
    /// True if this node or one below it has CEL rules, so that the others need not be walked.
    pub checked: bool,
    /// Items of a list.
    pub items: Option<Arc<Self>>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// Filled in when absent.
    pub default: Option<Value>,
    /// `x-kubernetes-list-type` and its keys.
    pub list: ListKind,
    /// A map or struct that is replaced as a whole by apply (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// Strategic merge (built-in kinds): the key by which items merge; `Some("")` merges scalars; `None` replaces.
    pub patch_merge_key: Option<String>,
    /// Strategic merge: only the keys in the patch are retained (`retainKeys`).
    pub retain_keys: bool,
    /// Strategic merge: a struct that the patch replaces as a whole.
    pub replaced: bool,
    /// Unknown fields are kept below (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// A whole object with apiVersion, kind and metadata (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// Built-in kinds: name of the definition, such as `io.k8s.api.core.v1.Container`.
    pub definition: Option<Arc<str>>,
    /// Built-in kinds: the zero value is not sent (Go's omitempty on a plain type). Pointers keep their zero.
    pub omit_zero: bool,
    /// Built-in kinds: sent even when empty: `status: {}`, `rules: null`, `name: ""` (Go without omitempty, or a plain struct).
    pub always: bool,
    /// Built-in kinds: a Go pointer where that is not the rule: a struct that is null when absent, a string that keeps `""`.
    pub pointer: bool,
    /// Value validations of a CRD, kept as the JSON they came in (minimum, pattern, enum, oneOf, x-kubernetes-validations …).
    pub rules: Option<Arc<Rules>>,
}

/// Value validations of one node of a CRD's schema.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// `enum`.
    pub one_of_values: Vec<Value>,
    /// `minimum`, with whether it is exclusive.
    pub minimum: Option<(f64, bool)>,
    /// `maximum`, with whether it is exclusive.
    pub maximum: Option<(f64, bool)>,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// `minLength`, in characters.
    pub min_length: Option<u64>,
    /// `maxLength`, in characters.
    pub max_length: Option<u64>,
    /// `pattern`, compiled once.
    pub pattern: Option<regex::Regex>,
    /// `minItems`.
    pub min_items: Option<u64>,
    /// `maxItems`.
    pub max_items: Option<u64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `minProperties`.
    pub min_properties: Option<u64>,
    /// `maxProperties`.
    pub max_properties: Option<u64>,
    /// `allOf`.
    pub all_of: Vec<Arc<Schema>>,
    /// `anyOf`.
    pub any_of: Vec<Arc<Schema>>,
    /// `oneOf`.
    pub one_of: Vec<Arc<Schema>>,
    /// `not`.
    pub not: Option<Arc<Schema>>,
    /// `x-kubernetes-validations`, compiled.
    pub validations: Vec<crate::schema::cel::Rule>,
}

impl Schema {
    /// The schema of a field, declared or of a free map; `None` when the field is unknown.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Arc<Self>> {
        self.properties.get(name).or(self.additional.as_ref())
    }
}

pub mod builtin;
pub(crate) mod cel;
pub(crate) mod declared;
pub(crate) mod formats;
pub(crate) mod prune;
pub(crate) mod validate;
