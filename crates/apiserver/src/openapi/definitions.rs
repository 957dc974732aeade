//! Definitions of an OpenAPI document, from the schemas that decoding and validation use.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use super::enums::Enums;
use crate::{
    resource::Resource,
    schema::{ListKind, Rules, Schema, Type, builtin::Root},
};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

/// The conventions of the API, to which descriptions of custom resources and of lists refer.
const CONVENTIONS: &str =
    "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The version of OpenAPI: the versions refer to definitions differently, and v2 has fewer fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flavor {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0.
    V3,
}

impl Flavor {
    /// A reference to a definition.
    #[must_use]
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({"$ref": format!("#/definitions/{name}")}),
            Self::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }
}

/// Definitions under construction.
#[derive(Debug)]
pub(super) struct Definitions {
    flavor: Flavor,
    /// The group versions that the document is about.
    versions: Vec<(String, String)>,
    enums: Enums,
    done: BTreeMap<String, Value>,
    wanted: BTreeSet<String>,
}

/// The name under which a kind is defined: that of its Go type, or its group turned around.
#[must_use]
pub(super) fn name_of(resource: &Resource) -> String {
    if resource.custom.is_none()
        && let Some(name) = &resource.schema.get().definition
    {
        return name.to_string();
    }
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

impl Definitions {
    /// Returns an empty set for a document about these group versions.
    #[must_use]
    pub(super) fn new(flavor: Flavor, versions: Vec<(String, String)>) -> Self {
        Self {
            flavor,
            versions,
            enums: Enums::new(),
            done: BTreeMap::new(),
            wanted: BTreeSet::new(),
        }
    }

    /// Adds the kind of a resource, its list, and what they are made of.
    pub(super) fn add(&mut self, resource: &Resource) {
        let name = name_of(resource);
        let mut definition = self.body(resource.schema.get());
        let vague = self.flavor == Flavor::V2 && resource.schema.get().preserve_unknown;
        if resource.custom.is_some() && vague {
            // Older clients take the properties that are named, even the metadata, for all that there are.
            definition = json!({"type": "object"});
        } else if resource.custom.is_some() {
            definition["type"] = "object".into();
            if let Some(map) = definition.as_object_mut() {
                map.remove("x-kubernetes-embedded-resource");
            }
            self.add_type(&mut definition);
            definition["properties"]["metadata"] = self.described(
                OBJECT_META,
                &format!("Standard object's metadata. {CONVENTIONS}#metadata"),
                None,
            );
        }
        add_kind(
            &mut definition,
            &resource.group,
            &resource.version,
            &resource.kind,
        );
        self.done.insert(name.clone(), definition);
        if resource.verbs.contains(&"list") {
            self.add_list(resource, &name);
        }
        self.finish();
    }

    /// A reference to a definition, which is added.
    pub(super) fn reference(&mut self, name: &str) -> Value {
        self.wanted.insert(name.to_owned());
        self.flavor.reference(name)
    }

    /// Adds a type that is no kind of a resource, and what it is made of.
    pub(super) fn add_root(&mut self, root: &Root) {
        let body = self.body(&root.schema());
        self.done.insert((root.name)().into_owned(), body);
        self.finish();
    }

    /// All of them.
    #[must_use]
    pub(super) fn into_value(mut self) -> Value {
        self.finish();
        Value::Object(self.done.into_iter().collect())
    }

    fn add_list(&mut self, resource: &Resource, name: &str) {
        let text = format!("Standard list metadata. {CONVENTIONS}#types-kinds");
        let default = resource.custom.is_none().then(|| json!({}));
        let metadata = self.described(LIST_META, &text, default);
        let about = format!("List of {}. {CONVENTIONS}", resource.plural);
        let mut list = json!({
            "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
            "type": "object", "required": ["items"],
            "properties": {
                "items": {"type": "array", "description": about, "items": self.flavor.reference(name)},
                "metadata": metadata,
            },
        });
        self.add_type(&mut list);
        add_kind(&mut list, &resource.group, &resource.version, &resource.list_kind);
        self.done.insert(format!("{name}List"), list);
    }

    /// Adds `apiVersion` and `kind`, described as in every kind.
    fn add_type(&mut self, definition: &mut Value) {
        let any = crate::kinds::definition(DELETE_OPTIONS);
        for field in ["apiVersion", "kind"] {
            definition["properties"][field] = self.node(&any.properties[field]);
        }
    }

    fn finish(&mut self) {
        while let Some(name) = self.wanted.pop_first() {
            if self.done.contains_key(&name) {
                continue;
            }
            // Something must be there before its parts are looked at: definitions may hold themselves.
            self.done.insert(name.clone(), Value::Null);
            let mut value = self.body(&crate::kinds::definition(&name));
            match (name.as_str(), crate::kinds::defined(&name)) {
                (DELETE_OPTIONS | WATCH_EVENT, _) => {
                    let kind = name.rsplit('.').next().unwrap_or_default();
                    for (group, version) in &self.versions {
                        add_kind(&mut value, group, version, kind);
                    }
                }
                (STATUS, _) => add_kind(&mut value, "", "v1", "Status"),
                (_, Some(kind)) => add_kind(&mut value, kind.group, kind.version, kind.kind),
                _ => {}
            }
            self.done.insert(name, value);
        }
    }

    /// A reference with words and a default of its own.
    fn described(&mut self, name: &str, text: &str, default: Option<Value>) -> Value {
        let reference = self.reference(name);
        let mut value = match self.flavor {
            Flavor::V2 => reference,
            Flavor::V3 if text.is_empty() && default.is_none() => return reference,
            Flavor::V3 => json!({"allOf": [reference]}),
        };
        if !text.is_empty() {
            value["description"] = text.into();
        }
        if let Some(default) = default.filter(|_| self.flavor == Flavor::V3) {
            value["default"] = default;
        }
        value
    }

    /// A field of a definition.
    fn field(&mut self, owner: Option<&str>, name: &str, schema: &Arc<Schema>) -> Value {
        let mut value = self.node(schema);
        let Some(owner) = owner else { return value };
        self.enums.add(&mut value, owner, name);
        let default = schema.default.clone().or_else(|| zero(schema));
        // Version 2 has no defaults of built-in kinds.
        if let Some(default) = default {
            value["default"] = default;
        }
        if self.flavor == Flavor::V2
            && let Some(map) = value.as_object_mut()
        {
            map.remove("default");
        }
        value
    }

    fn node(&mut self, schema: &Arc<Schema>) -> Value {
        let Some(name) = schema.definition.clone() else {
            return self.body(schema);
        };
        // Items carry the words of their own definition, which a reader of the reference sees anyway.
        let whole = crate::kinds::definition(&name);
        let words = schema
            .description
            .as_ref()
            .filter(|text| whole.description.as_ref() != Some(text));
        let text = words.map_or("", String::as_str);
        let mut value = self.described(&name, text, zero(schema));
        extensions(&mut value, schema, whole.atomic);
        value
    }

    /// A schema written out.
    fn body(&mut self, schema: &Schema) -> Value {
        let mut map = Map::new();
        let mut set = |key: &str, value: Value| {
            map.insert(key.to_owned(), value);
        };
        if let Some(text) = &schema.description {
            set("description", text.as_str().into());
        }
        let is_quantity = schema.format.as_deref() == Some("quantity");
        if let Some(format) = schema.format.as_ref().filter(|_| !is_quantity) {
            set("format", format.as_str().into());
        }
        let v2 = self.flavor == Flavor::V2;
        let kind = match schema.kind {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::Any | Type::IntOrString => "",
        };
        // Swagger knows no null and no unknown fields: older clients would refuse what the server takes.
        let vague = v2 && (schema.nullable || (schema.preserve_unknown && schema.definition.is_none()));
        if !kind.is_empty() && !vague {
            set("type", kind.into());
        }
        if schema.kind == Type::IntOrString {
            if v2 && schema.definition.is_some() {
                set("type", "string".into());
            }
            if schema.definition.is_some() {
                if !is_quantity {
                    set("format", "int-or-string".into());
                }
                if !v2 && is_quantity {
                    set("oneOf", json!([{"type": "string"}, {"type": "number"}]));
                } else if !v2 {
                    set("oneOf", json!([{"type": "integer"}, {"type": "string"}]));
                }
            } else {
                set("x-kubernetes-int-or-string", true.into());
                if !v2 {
                    set("anyOf", json!([{"type": "integer"}, {"type": "string"}]));
                }
            }
        }
        if schema.nullable && !v2 {
            set("nullable", true.into());
        }
        if let Some(default) = &schema.default {
            set("default", default.clone());
        }
        if !schema.required.is_empty() && !vague {
            set("required", schema.required.clone().into());
        }
        if !schema.properties.is_empty() && !vague {
            let properties: Map<String, Value> = schema
                .properties
                .iter()
                .map(|(name, node)| (name.clone(), self.field(schema.definition.as_deref(), name, node)))
                .collect();
            map.insert("properties".to_owned(), Value::Object(properties));
        }
        if let Some(items) = schema.items.as_ref().filter(|_| !vague) {
            let items = self.node(items);
            map.insert("items".to_owned(), items);
        }
        if let Some(values) = schema.additional.as_ref().filter(|_| !vague) {
            let values = self.node(values);
            map.insert("additionalProperties".to_owned(), values);
        }
        if let Some(rules) = &schema.rules {
            self.rules(&mut map, rules);
        }
        let mut value = Value::Object(map);
        extensions(&mut value, schema, false);
        value
    }

    fn rules(&mut self, map: &mut Map<String, Value>, rules: &Rules) {
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        set(
            "enum",
            (!rules.one_of_values.is_empty()).then(|| rules.one_of_values.clone().into()),
        );
        for (key, exclusive, bound) in [
            ("minimum", "exclusiveMinimum", rules.minimum),
            ("maximum", "exclusiveMaximum", rules.maximum),
        ] {
            set(key, bound.map(|(value, _)| value.into()));
            set(
                exclusive,
                bound.and_then(|(_, exclusive)| exclusive.then(|| true.into())),
            );
        }
        set("multipleOf", rules.multiple_of.map(Value::from));
        set("minLength", rules.min_length.map(Value::from));
        set("maxLength", rules.max_length.map(Value::from));
        set("minItems", rules.min_items.map(Value::from));
        set("maxItems", rules.max_items.map(Value::from));
        set("minProperties", rules.min_properties.map(Value::from));
        set("maxProperties", rules.max_properties.map(Value::from));
        set("uniqueItems", rules.unique_items.then(|| true.into()));
        set(
            "pattern",
            rules.pattern.as_ref().map(|pattern| pattern.as_str().into()),
        );
        if self.flavor == Flavor::V2 {
            return;
        }
        for (key, list) in [
            ("allOf", &rules.all_of),
            ("anyOf", &rules.any_of),
            ("oneOf", &rules.one_of),
        ] {
            if !list.is_empty() {
                let list: Vec<Value> = list.iter().map(|one| self.node(one)).collect();
                map.insert(key.to_owned(), list.into());
            }
        }
        if let Some(not) = &rules.not {
            let not = self.node(not);
            map.insert("not".to_owned(), not);
        }
    }
}

/// The value that Go gives to a field of a built-in kind that is always sent: neither a pointer nor left out when empty.
fn zero(schema: &Schema) -> Option<Value> {
    let is_metadata = matches!(schema.definition.as_deref(), Some(OBJECT_META | LIST_META));
    if schema.pointer || !(schema.always || is_metadata) {
        return None;
    }
    match (schema.kind, &schema.definition) {
        (Type::Object, Some(_)) if !schema.preserve_unknown => Some(json!({})),
        (Type::String, None) if schema.format.is_none() => Some("".into()),
        (Type::Integer | Type::Number, None) => Some(0.into()),
        (Type::Boolean, None) => Some(false.into()),
        _ => None,
    }
}

/// The extensions of Kubernetes to a schema; at a reference, `atomic` is that of the definition.
fn extensions(value: &mut Value, schema: &Schema, atomic: bool) {
    if schema.kind == Type::Array {
        let list = match &schema.list {
            ListKind::Atomic => "atomic",
            ListKind::Set => "set",
            ListKind::Map(keys) => {
                value["x-kubernetes-list-map-keys"] = keys.clone().into();
                "map"
            }
        };
        value["x-kubernetes-list-type"] = list.into();
    } else if schema.atomic != atomic {
        value["x-kubernetes-map-type"] = if atomic { "granular" } else { "atomic" }.into();
    }
    if let Some(key) = &schema.patch_merge_key {
        let strategy = if schema.retain_keys {
            "merge,retainKeys"
        } else {
            "merge"
        };
        value["x-kubernetes-patch-strategy"] = strategy.into();
        if !key.is_empty() {
            value["x-kubernetes-patch-merge-key"] = key.as_str().into();
        }
    } else if schema.retain_keys || schema.replaced {
        let strategy = if schema.replaced { "replace" } else { "retainKeys" };
        value["x-kubernetes-patch-strategy"] = strategy.into();
    }
    if schema.preserve_unknown && schema.definition.is_none() {
        value["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if schema.embedded {
        value["x-kubernetes-embedded-resource"] = true.into();
    }
}

fn add_kind(definition: &mut Value, group: &str, version: &str, kind: &str) {
    let kinds = &mut definition["x-kubernetes-group-version-kind"];
    let one = json!({"group": group, "version": version, "kind": kind});
    match kinds {
        Value::Array(kinds) => kinds.push(one),
        _ => *kinds = json!([one]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(name)) = map.get("$ref") {
                    found.insert(name.rsplit('/').next().unwrap_or_default().to_owned());
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_definition() {
        for flavor in [Flavor::V2, Flavor::V3] {
            let mut definitions = Definitions::new(flavor, Vec::new());
            for resource in crate::kinds::builtin().all() {
                definitions.add(resource);
            }
            let value = definitions.into_value();
            let mut found = BTreeSet::new();
            references(&value, &mut found);
            for name in found {
                assert!(value[&name].is_object(), "{name}");
            }
        }
    }

    #[test]
    fn metadata_is_asked_for_by_events_alone_and_items_do_not_repeat_their_definition() {
        let mut definitions = Definitions::new(Flavor::V3, Vec::new());
        for resource in crate::kinds::builtin().all() {
            definitions.add(resource);
        }
        let value = definitions.into_value();
        let asks = |name: &str| {
            let required = value[name]["required"].as_array();
            required.is_some_and(|fields| fields.contains(&json!("metadata")))
        };
        let kinds: Vec<&String> = value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            kinds.into_iter().filter(|name| asks(name)).collect::<Vec<_>>(),
            ["io.k8s.api.core.v1.Event"]
        );
        let items = &value["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"]["items"];
        assert_eq!(
            items["$ref"],
            "#/components/schemas/io.k8s.api.core.v1.ServicePort"
        );
        assert_eq!(items["description"], json!(null));
    }

    #[test]
    fn fields_have_the_defaults_values_and_marks_of_kubernetes() {
        let meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
        let at = |flavor, owner: &str, field: &str| {
            let mut definitions = Definitions::new(flavor, Vec::new());
            definitions.reference(owner);
            definitions.into_value()[owner]["properties"][field].clone()
        };
        for (field, expected) in [
            ("core.v1.Container.resources", json!({})),
            ("core.v1.Container.name", json!("")),
            ("core.v1.Container.image", Value::Null),
            ("core.v1.Container.livenessProbe", Value::Null),
            ("core.v1.Container.env", Value::Null),
            ("core.v1.ServicePort.port", json!(0)),
            ("core.v1.ServicePort.protocol", json!("TCP")),
            ("core.v1.ServicePort.targetPort", Value::Null),
            ("core.v1.LocalObjectReference.name", json!("")),
            ("core.v1.AzureDiskVolumeSource.readOnly", json!(false)),
            ("core.v1.Pod.metadata", json!({})),
            ("core.v1.PodStatus.startTime", Value::Null),
            ("apps.v1.DeploymentSpec.selector", Value::Null),
            ("networking.v1.HTTPIngressPath.pathType", Value::Null),
        ] {
            let (owner, name) = field.rsplit_once('.').unwrap();
            let owner = format!("io.k8s.api.{owner}");
            assert_eq!(at(Flavor::V3, &owner, name)["default"], expected, "{field}");
            assert_eq!(at(Flavor::V2, &owner, name)["default"], Value::Null, "{field}");
        }
        let selector = at(Flavor::V3, "io.k8s.api.apps.v1.DeploymentSpec", "selector");
        assert_eq!(selector["x-kubernetes-map-type"], Value::Null);
        assert_eq!(
            selector["allOf"][0],
            Flavor::V3.reference(&format!("{meta}.LabelSelector"))
        );
        let policy = at(Flavor::V2, "io.k8s.api.core.v1.PodSpec", "dnsPolicy");
        assert_eq!(policy["enum"][0], "ClusterFirst");
    }

    #[test]
    fn options_of_deletions_name_the_versions_of_the_document() {
        let versions = vec![
            ("apps".to_owned(), "v1".to_owned()),
            (String::new(), "v1".to_owned()),
        ];
        let mut definitions = Definitions::new(Flavor::V3, versions);
        for name in [DELETE_OPTIONS, PATCH, STATUS, "io.k8s.api.policy.v1.Eviction"] {
            definitions.reference(name);
        }
        let value = definitions.into_value();
        let kinds = |name: &str| value[name]["x-kubernetes-group-version-kind"].clone();
        assert_eq!(
            kinds(DELETE_OPTIONS),
            json!([{"group": "apps", "version": "v1", "kind": "DeleteOptions"},
                {"group": "", "version": "v1", "kind": "DeleteOptions"}])
        );
        assert_eq!(kinds(PATCH), Value::Null);
        assert_eq!(
            kinds(STATUS),
            json!([{"group": "", "version": "v1", "kind": "Status"}])
        );
        assert_eq!(
            kinds("io.k8s.api.policy.v1.Eviction"),
            json!([{"group": "policy", "version": "v1", "kind": "Eviction"}])
        );
    }

    #[test]
    fn a_custom_resource_is_named_by_its_group_turned_around() {
        let kinds = crate::kinds::builtin();
        let mut resource = Resource::clone(kinds.find("", "v1", "configmaps").expect("served"));
        resource.group = "stable.example.com".to_owned();
        resource.kind = "Boat".to_owned();
        resource.custom = Some(Arc::default());
        assert_eq!(name_of(&resource), "com.example.stable.v1.Boat");
    }
}
