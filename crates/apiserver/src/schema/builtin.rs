//! Schemas of built-in kinds.
//!
//! Fields, types and documentation come from the generated types; facts that those lack (list keys, merge keys, fields that Go
//! omits) from `builtin/facts.txt`. A definition is built at its first use and shared from then on.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use serde_json::{Map, Value};

use super::{ListKind, Schema, Type};

mod facts;
mod fields;
mod root;

pub(crate) use fields::{AGGREGATOR, EXTENSIONS, Field, Numbers, TABLE, in_order, numbers};
pub use root::Root;

/// A definition that holds itself: it is cut where it comes back, and [`resolve`] goes on from there.
pub(crate) const SCHEMA_PROPS: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

type Definitions = BTreeMap<String, Arc<Schema>>;

/// Definitions built so far. A lock is enough: it is held while one kind is built, once per kind.
static BUILT: LazyLock<Mutex<Definitions>> = LazyLock::new(Mutex::default);

/// The schema of a definition such as `io.k8s.api.apps.v1.Deployment`; anything when it is not one of these roots, and none
/// that was built was made of it. Cost: some milliseconds for the first kind, then a look-up.
#[must_use]
pub fn definition(name: &str, roots: impl FnOnce() -> Vec<Root>) -> Arc<Schema> {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = built.get(name) {
        return Arc::clone(schema);
    }
    let sources = root::generate(&roots());
    Builder {
        sources: &sources,
        built: &mut built,
        open: Vec::new(),
    }
    .definition(name)
}

/// The schema that stands behind a node: the node itself, or the whole definition where it was cut.
#[must_use]
pub fn resolve(schema: &Arc<Schema>) -> Arc<Schema> {
    match &schema.definition {
        Some(name) if schema.preserve_unknown && &**name == SCHEMA_PROPS => definition(name, Vec::new),
        _ => Arc::clone(schema),
    }
}

/// Makes nodes from the generated types.
struct Builder<'a> {
    sources: &'a Map<String, Value>,
    built: &'a mut Definitions,
    /// Definitions that are being built: one that comes back is cut.
    open: Vec<String>,
}

impl Builder<'_> {
    fn definition(&mut self, name: &str) -> Arc<Schema> {
        if let Some(schema) = self.built.get(name) {
            return Arc::clone(schema);
        }
        let source = match self.sources.get(name) {
            Some(source) if !self.open.iter().any(|open| open == name) => source,
            _ => return Arc::new(anything(name)),
        };
        self.open.push(name.to_owned());
        let mut schema = self.node(source, name);
        self.open.pop();
        schema.definition = Some(name.into());
        leaf(name, &mut schema);
        schema.atomic = facts::of(name, ".").contains(&"atomic");
        let schema = Arc::new(schema);
        self.built.insert(name.to_owned(), Arc::clone(&schema));
        schema
    }

    /// A node that is written out; `owner` is the definition whose fields it may hold.
    fn node(&mut self, source: &Value, owner: &str) -> Schema {
        let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut schema = Schema {
            kind: kind(source),
            format: text("format"),
            description: text("description"),
            required: strings(source.get("required")),
            ..Schema::default()
        };
        if let Some(items) = source.get("items") {
            schema.items = Some(self.reference(items, ""));
        }
        if let Some(values) = source
            .get("additionalProperties")
            .filter(|values| values.is_object())
        {
            schema.additional = Some(self.reference(values, ""));
        }
        let fields = source.get("properties").and_then(Value::as_object);
        let is_kind =
            fields.is_some_and(|fields| ["kind", "metadata"].iter().all(|key| fields.contains_key(*key)));
        for (field, value) in fields.into_iter().flatten() {
            let mut node = Schema::clone(&self.reference(value, ""));
            apply_facts(&mut node, owner, field, schema.required.contains(field));
            node.always |=
                is_kind && matches!(field.as_str(), "spec" | "status") && node.kind == Type::Object;
            schema.properties.insert(field.clone(), Arc::new(node));
        }
        require(&mut schema.required, owner);
        schema
    }

    /// A node that may be a reference, with a description of its own.
    fn reference(&mut self, source: &Value, owner: &str) -> Arc<Schema> {
        let Some(target) = source.get("$ref").and_then(Value::as_str) else {
            return Arc::new(self.node(source, owner));
        };
        let name = target.rsplit('/').next().unwrap_or(target);
        let schema = self.definition(name);
        match source.get("description").and_then(Value::as_str) {
            None => schema,
            Some(text) => Arc::new(Schema {
                description: Some(text.to_owned()),
                ..Schema::clone(&schema)
            }),
        }
    }
}

/// A node below which everything is kept.
fn anything(name: &str) -> Schema {
    Schema {
        preserve_unknown: true,
        definition: Some(name.into()),
        ..Schema::default()
    }
}

fn kind(source: &Value) -> Type {
    if source.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Type::IntOrString;
    }
    match source.get("type").and_then(Value::as_str) {
        Some("object") => Type::Object,
        Some("array") => Type::Array,
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        _ => Type::Any,
    }
}

/// Definitions that are no structs.
fn leaf(name: &str, schema: &mut Schema) {
    match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => schema.format = Some("quantity".to_owned()),
        "FieldsV1" | "RawExtension" => schema.preserve_unknown = true,
        "JSON" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => {
            schema.kind = Type::Any;
            schema.preserve_unknown = true;
        }
        _ => {}
    }
}

/// Go's tags of a field: omission when empty, merging of lists.
fn apply_facts(node: &mut Schema, owner: &str, field: &str, required: bool) {
    node.always = required && field != "metadata";
    let mut zero = false;
    for fact in facts::of(owner, field) {
        match fact.split_once(':') {
            Some(("map", keys)) => node.list = ListKind::Map(keys.split('+').map(str::to_owned).collect()),
            Some(("merge", key)) => node.patch_merge_key = Some(key.to_owned()),
            _ => match *fact {
                "zero" => zero = true,
                "ptr" => node.pointer = true,
                "always" => node.always = true,
                "omit" => node.always = false,
                "set" => node.list = ListKind::Set,
                "atomic" if node.kind == Type::Array => node.list = ListKind::Atomic,
                "atomic" => node.atomic = true,
                "replaced" => node.replaced = true,
                "granular" => node.atomic = false,
                "merge" => node.patch_merge_key = Some(String::new()),
                "retain" => node.retain_keys = true,
                other => {
                    let text = other.strip_prefix('=');
                    node.default = text.map(|text| match node.kind {
                        Type::Boolean => (text == "true").into(),
                        _ => text.into(),
                    });
                }
            },
        }
    }
    node.omit_zero = match node.kind {
        Type::String => !node.pointer && !node.always && node.format.as_deref() != Some("date-time"),
        Type::Boolean | Type::Integer | Type::Number => zero,
        _ => false,
    };
}

/// The fields that Kubernetes requires, in its order: the generated types require some that may be absent, and metadata everywhere.
fn require(required: &mut Vec<String>, owner: &str) {
    const NEEDS_METADATA: &str = "io.k8s.api.core.v1.Event";
    required.retain(|field| {
        (field != "metadata" || owner == NEEDS_METADATA) && !facts::of(owner, field).contains(&"omit")
    });
    let order = facts::of(owner, ".")
        .iter()
        .find_map(|fact| fact.strip_prefix("order:"));
    if let Some(order) = order {
        required.sort_by_key(|field| order.split('+').position(|one| one == field));
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResourceList, APIVersions};

    use super::*;
    use crate::kinds;

    fn build_all() {
        for root in kinds::roots() {
            let _ = root.schema();
        }
        let discovery = [Root::of::<APIResourceList>(), Root::of::<APIVersions>()];
        for root in discovery.into_iter().chain(Root::SHARED) {
            let _ = root.schema();
        }
    }

    #[test]
    fn every_fact_names_a_definition_and_a_field_that_exist() {
        build_all();
        let built = BUILT.lock().unwrap();
        for (owner, field) in facts::all() {
            let schema = built
                .get(owner)
                .unwrap_or_else(|| panic!("no definition {owner}"));
            assert!(
                field == "." || schema.properties.contains_key(field),
                "{owner} has no field {field}"
            );
        }
    }

    #[test]
    fn required_fields_are_those_of_kubernetes_in_its_order() {
        build_all();
        for owner in facts::all()
            .filter(|(_, field)| *field == ".")
            .map(|(owner, _)| owner)
        {
            let order = facts::of(owner, ".")
                .iter()
                .find_map(|fact| fact.strip_prefix("order:"));
            if let Some(order) = order {
                let fields: Vec<&str> = order.split('+').collect();
                assert_eq!(kinds::definition(owner).required, fields, "{owner}");
            }
        }
        for (name, required) in [
            ("core.v1.Event", &["metadata", "involvedObject"][..]),
            ("core.v1.ConfigMap", &[]),
            ("core.v1.LocalObjectReference", &[]),
            ("core.v1.SecretKeySelector", &["key"]),
            ("core.v1.VolumeMount", &["name", "mountPath"]),
        ] {
            assert_eq!(
                kinds::definition(&format!("io.k8s.api.{name}")).required,
                required,
                "{name}"
            );
        }
    }

    #[test]
    fn list_map_keys_are_fields_of_the_items() {
        build_all();
        let built = BUILT.lock().unwrap();
        for (name, schema) in built.iter() {
            for (field, node) in &schema.properties {
                let keys = match &node.list {
                    ListKind::Map(keys) => keys.clone(),
                    _ => node
                        .patch_merge_key
                        .iter()
                        .filter(|key| !key.is_empty())
                        .cloned()
                        .collect(),
                };
                for key in keys {
                    let items = node
                        .items
                        .as_ref()
                        .unwrap_or_else(|| panic!("{name}.{field} is no list"));
                    assert!(
                        items.properties.contains_key(&key),
                        "{name}.{field} has no key {key}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_deployment_is_known_down_to_its_ports() {
        let deployment = kinds::definition("io.k8s.api.apps.v1.Deployment");
        let spec = &deployment.properties["spec"];
        assert!(spec.always);
        assert!(spec.properties["paused"].omit_zero);
        assert!(!spec.properties["replicas"].omit_zero);
        let pod = &spec.properties["template"].properties["spec"];
        let ports = &pod.properties["containers"].items.as_ref().unwrap().properties["ports"];
        assert_eq!(
            ports.list,
            ListKind::Map(vec!["containerPort".into(), "protocol".into()])
        );
        assert_eq!(ports.patch_merge_key.as_deref(), Some("containerPort"));
        assert_eq!(
            ports.items.as_ref().unwrap().properties["protocol"].default,
            Some("TCP".into())
        );
        assert!(deployment.properties["metadata"].description.is_some());
    }

    #[test]
    fn schemas_of_crds_go_on_where_they_were_cut() {
        let definition = kinds::definition(
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        );
        let version = definition.properties["spec"].properties["versions"]
            .items
            .clone()
            .unwrap();
        let props = &version.properties["schema"].properties["openAPIV3Schema"];
        let inner = props.properties["properties"].additional.as_ref().unwrap();
        assert!(resolve(inner).properties.contains_key("x-kubernetes-validations"));
    }

    #[test]
    fn an_unknown_definition_is_anything() {
        assert!(kinds::definition("io.example.Nothing").preserve_unknown);
    }
}
