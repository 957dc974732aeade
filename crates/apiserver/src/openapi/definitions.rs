//! Definitions of an OpenAPI document, from the schemas that decoding and validation use.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Map, Value, json};

use crate::{
    resource::Resource,
    schema::{ListKind, Rules, Schema, Type, builtin::Root},
};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const API_VERSION: &str = "Version of the schema that the object is written in, such as apps/v1.";
const KIND: &str = "Kind of the object, in camel case. It cannot be changed.";

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
    /// Returns an empty set.
    #[must_use]
    pub(super) const fn new(flavor: Flavor) -> Self {
        Self {
            flavor,
            done: BTreeMap::new(),
            wanted: BTreeSet::new(),
        }
    }

    /// Adds the kind of a resource, its list, and what they are made of.
    pub(super) fn add(&mut self, resource: &Resource) {
        let name = name_of(resource);
        let schema = resource.schema.get();
        let mut definition = self.body(schema);
        let properties = definition
            .as_object_mut()
            .map(|map| map.entry("properties").or_insert_with(|| json!({})));
        if let Some(Value::Object(properties)) = properties {
            properties.insert(
                "apiVersion".to_owned(),
                json!({"type": "string", "description": API_VERSION}),
            );
            properties.insert("kind".to_owned(), json!({"type": "string", "description": KIND}));
            let metadata = self.described(OBJECT_META, "Standard object's metadata.");
            properties.insert("metadata".to_owned(), metadata);
        }
        definition["type"] = "object".into();
        add_kind(&mut definition, resource, &resource.kind);
        self.done.insert(name.clone(), definition);
        if resource.verbs.contains(&"list") {
            self.add_list(resource, &name);
        }
        self.finish();
    }

    /// Adds a type that is no kind of a resource, and what it is made of.
    pub(super) fn add_root(&mut self, root: &Root) {
        let body = self.body(&root.schema());
        self.done.insert((root.name)().into_owned(), body);
        self.finish();
    }

    /// All of them.
    #[must_use]
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.done.into_iter().collect())
    }

    fn add_list(&mut self, resource: &Resource, name: &str) {
        let metadata = self.described(LIST_META, "Standard list metadata.");
        let mut list = json!({
            "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
            "type": "object", "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string", "description": API_VERSION},
                "kind": {"type": "string", "description": KIND},
                "items": {"type": "array", "description": format!("List of {}.", resource.plural), "items": self.flavor.reference(name)},
                "metadata": metadata,
            },
        });
        add_kind(&mut list, resource, &resource.list_kind);
        self.done.insert(format!("{name}List"), list);
    }

    fn finish(&mut self) {
        while let Some(name) = self.wanted.pop_first() {
            if self.done.contains_key(&name) {
                continue;
            }
            // Something must be there before its parts are looked at: definitions may hold themselves.
            self.done.insert(name.clone(), Value::Null);
            let value = if name == LIST_META {
                list_meta()
            } else {
                self.body(&crate::kinds::definition(&name))
            };
            self.done.insert(name, value);
        }
    }

    /// A reference with words of its own.
    fn described(&mut self, name: &str, text: &str) -> Value {
        self.wanted.insert(name.to_owned());
        let reference = self.flavor.reference(name);
        match self.flavor {
            Flavor::V2 => {
                let mut value = reference;
                value["description"] = text.into();
                value
            }
            Flavor::V3 => json!({"description": text, "allOf": [reference]}),
        }
    }

    fn node(&mut self, schema: &Arc<Schema>) -> Value {
        let Some(name) = schema.definition.clone() else {
            return self.body(schema);
        };
        self.wanted.insert(name.to_string());
        // Items carry the words of their own definition, which a reader of the reference sees anyway.
        let words = schema
            .description
            .as_ref()
            .filter(|text| crate::kinds::definition(&name).description.as_ref() != Some(text));
        let mut value = match words {
            Some(text) => self.described(&name, text),
            None => self.flavor.reference(&name),
        };
        extensions(&mut value, schema);
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
        if let Some(format) = &schema.format {
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
                set("format", "int-or-string".into());
                if !v2 {
                    set("oneOf", json!([{"type": "integer"}, {"type": "string"}]));
                }
            } else {
                set("x-kubernetes-int-or-string", true.into());
            }
        }
        if schema.nullable && !v2 {
            set("nullable", true.into());
        }
        if let Some(default) = &schema.default {
            set("default", default.clone());
        }
        let required = required(schema);
        if !required.is_empty() && !vague {
            set("required", required.into());
        }
        if !schema.properties.is_empty() && !vague {
            let properties: Map<String, Value> = schema
                .properties
                .iter()
                .map(|(field, node)| (field.clone(), self.node(node)))
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
        extensions(&mut value, schema);
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

/// The required fields. The generated types require metadata everywhere; Kubernetes does for one kind alone.
fn required(schema: &Schema) -> Vec<String> {
    let optional = schema
        .definition
        .as_ref()
        .is_some_and(|name| **name != *"io.k8s.api.core.v1.Event");
    let fields = schema.required.iter();
    fields
        .filter(|field| !(optional && *field == "metadata"))
        .map(ToString::to_string)
        .collect()
}

/// The extensions of Kubernetes to a schema.
fn extensions(value: &mut Value, schema: &Schema) {
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
    } else if schema.atomic {
        value["x-kubernetes-map-type"] = "atomic".into();
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
    } else if schema.retain_keys {
        value["x-kubernetes-patch-strategy"] = "retainKeys".into();
    }
    if schema.preserve_unknown && schema.definition.is_none() {
        value["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if schema.embedded {
        value["x-kubernetes-embedded-resource"] = true.into();
    }
}

fn add_kind(definition: &mut Value, resource: &Resource, kind: &str) {
    definition["x-kubernetes-group-version-kind"] =
        json!([{"group": resource.group, "version": resource.version, "kind": kind}]);
}

fn list_meta() -> Value {
    json!({
        "description": format!("{META}.ListMeta describes a list: its revision, and where the next page begins."),
        "type": "object",
        "properties": {
            "continue": {"type": "string", "description": "Token of the next page; empty at the end."},
            "remainingItemCount": {"type": "integer", "format": "int64", "description": "Objects behind this page."},
            "resourceVersion": {"type": "string", "description": "Revision of the list."},
            "selfLink": {"type": "string", "description": "Not used any more."},
        },
    })
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
            let mut definitions = Definitions::new(flavor);
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
        let mut definitions = Definitions::new(Flavor::V3);
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
    fn a_custom_resource_is_named_by_its_group_turned_around() {
        let kinds = crate::kinds::builtin();
        let mut resource = Resource::clone(kinds.find("", "v1", "configmaps").expect("served"));
        resource.group = "stable.example.com".to_owned();
        resource.kind = "Boat".to_owned();
        resource.custom = Some(Arc::default());
        assert_eq!(name_of(&resource), "com.example.stable.v1.Boat");
    }
}
