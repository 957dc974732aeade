//! Checks of a hub before admission: strict decoding, and the schemas of kinds that the files define.
//!
//! `kubectl` sends `fieldValidation=Strict`: a field that a kind does not have is an error, not a warning. The decoding
//! is that of the embedded server, which is compared with a kube-apiserver's.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicU64},
};

use entourage_apiserver::{
    crd,
    decode::{self, FieldValidation, Media},
    kinds,
    resource::{Kinds, Resource},
    status::FieldError,
};
use entourage_core::distribution;
use serde_json::{Map, Value};

/// The kinds that are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The kinds of Kubernetes, of the control plane and of the files.
    All,
    /// Only the control plane's and those of the files: a hub knows its own better.
    Custom,
}

/// Decodes objects as a hub would.
pub struct Decoder {
    kinds: Kinds,
    /// Kinds that the files define: group and kind.
    defined: BTreeSet<(String, String)>,
    known: Known,
}

impl Decoder {
    /// A decoder for these objects, which may define kinds. Cost: O(size of the definitions that they use).
    #[must_use]
    pub fn new(objects: &[Value], known: Known) -> Self {
        let mut kinds = kinds::builtin();
        let mut defined = BTreeSet::new();
        let used: BTreeSet<&str> = objects
            .iter()
            .filter_map(|object| object["kind"].as_str())
            .collect();
        for crd in entourage_api::crds::crds(None) {
            if used.contains(crd.spec.names.kind.as_str())
                && let Ok(Value::Object(crd)) = serde_json::to_value(crd)
            {
                serve(&mut kinds, crd);
            }
        }
        let definitions = objects
            .iter()
            .filter(|object| object["kind"] == "CustomResourceDefinition");
        for definition in definitions {
            let spec = &definition["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            defined.insert((text(&spec["group"]), text(&spec["names"]["kind"])));
            if let Value::Object(definition) = definition.clone() {
                serve(&mut kinds, definition);
            }
        }
        Self {
            kinds,
            defined,
            known,
        }
    }

    /// True if a hub serves the kind of an object: Kubernetes, the control plane or the files define it.
    #[must_use]
    pub fn knows(&self, object: &Value) -> bool {
        self.resource(object).is_some()
    }

    fn resource<'a>(&'a self, object: &'a Value) -> Option<&'a Resource> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion")
            .split_once('/')
            .unwrap_or(("", text("apiVersion")));
        let known = self.kinds.of_kind(group, version, text("kind"));
        known.map(AsRef::as_ref)
    }

    /// The object as a server takes it: as it is, or of a kind that the files define with its defaults.
    ///
    /// # Errors
    /// Decodes an object. The error is the message of a server that refuses it, without any value of a Secret.
    pub fn decode(&self, object: &Value) -> Result<Value, String> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let Some(resource) = self.resource(object) else {
            return Ok(object.clone());
        };
        let (group, _) = text("apiVersion").split_once('/').unwrap_or_default();
        if resource.custom.is_none() && self.known == Known::Custom {
            return Ok(object.clone());
        }
        let body = object.to_string();
        let decoded = decode::body(resource, body.as_bytes(), Media::Json, FieldValidation::Strict);
        let decoded = decoded.map_err(|status| decode_error(object, &status.message))?;
        if self
            .defined
            .contains(&(group.to_owned(), text("kind").to_owned()))
        {
            return checked(resource, decoded.object);
        }
        Ok(object.clone())
    }
}

/// The object with the defaults of its definition, if the definition takes it.
fn checked(resource: &Resource, mut object: Map<String, Value>) -> Result<Value, String> {
    resource.rules.defaults(&mut object);
    let errors = resource.rules.validate(&object);
    if errors.is_empty() {
        return Ok(Value::Object(object));
    }
    let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    Err(errors.join("; "))
}

/// Has the kind of a definition served, as if the definition were established.
fn serve(kinds: &mut Kinds, mut definition: Map<String, Value>) {
    let names = definition.get("spec").map(|spec| spec["names"].clone());
    definition.insert(
        "status".to_owned(),
        serde_json::json!({"acceptedNames": names.unwrap_or_default()}),
    );
    for resource in crd::resources(&definition, None, &Arc::new(AtomicU64::new(0))) {
        kinds.add_custom(resource);
    }
}

/// The message of a server; for a Secret, and a distribution of one, only the unknown fields: the rest may quote values.
fn decode_error(object: &Value, message: &str) -> String {
    let is_secret = |object: &Value| object["kind"] == "Secret";
    let holds_one =
        is_secret(object) || object["kind"] == distribution::KIND && is_secret(&object["spec"]["resource"]);
    if holds_one && !message.contains("strict decoding error: unknown field") {
        return "it cannot be decoded: a value has another type than its field".into();
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(spec: &Value) -> Value {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"namespace": "default", "name": "web"}, "spec": spec})
    }

    fn refused(object: &Value, known: Known) -> Option<String> {
        Decoder::new(std::slice::from_ref(object), known)
            .decode(object)
            .err()
    }

    #[test]
    fn a_field_that_its_kind_does_not_have_is_refused_in_the_words_of_a_server() {
        let selectors = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
        let wrong = policy(&json!({"resourceSelectors": selectors, "propagateDep": true,
            "placement": {"clusterAffinity": {"clusterName": ["member1"]}}}));
        let error = refused(&wrong, Known::Custom).unwrap();
        assert!(
            error.contains(
                "strict decoding error: unknown field \"spec.placement.clusterAffinity.clusterName\""
            ) && error.contains("unknown field \"spec.propagateDep\""),
            "{error}"
        );
        let right = policy(&json!({"resourceSelectors": selectors, "propagateDeps": true}));
        assert_eq!(refused(&right, Known::All), None);
    }

    #[test]
    fn kinds_of_kubernetes_are_decoded_where_no_hub_does_it() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replica": 3, "selector": {}, "template": {}}});
        let error = refused(&deployment, Known::All).unwrap();
        assert!(error.contains("unknown field \"spec.replica\""), "{error}");
        assert_eq!(refused(&deployment, Known::Custom), None);
        let unknown =
            json!({"apiVersion": "example.com/v1", "kind": "Deployment", "metadata": {"name": "w"}, "x": 1});
        assert_eq!(refused(&unknown, Known::All), None, "nobody knows its schema");
    }

    #[test]
    fn objects_of_a_kind_that_the_files_define_are_checked_and_get_its_defaults() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "cups.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "cups", "kind": "Cup"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "default": 2, "maximum": 9}}}}}}}]}});
        let cup = |spec: Value| {
            json!({"apiVersion": "example.com/v1", "kind": "Cup",
            "metadata": {"name": "mine", "namespace": "default"}, "spec": spec})
        };
        let decoder = Decoder::new(&[definition], Known::Custom);
        assert_eq!(decoder.decode(&cup(json!({}))).unwrap()["spec"]["size"], 2);
        let error = decoder.decode(&cup(json!({"size": 10}))).unwrap_err();
        assert!(error.contains("spec.size"), "{error}");
        let error = decoder.decode(&cup(json!({"height": 1}))).unwrap_err();
        assert!(error.contains("unknown field \"spec.height\""), "{error}");
    }

    #[test]
    fn nothing_of_a_secret_is_quoted() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": ["canary"]}});
        let error = refused(&secret, Known::All).unwrap();
        assert!(!error.contains("canary"), "{error}");
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "dat": {"a": "canary"}});
        let error = refused(&secret, Known::All).unwrap();
        assert!(
            error.contains("unknown field \"dat\"") && !error.contains("canary"),
            "{error}"
        );
    }
}
