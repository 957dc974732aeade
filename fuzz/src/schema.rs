//! Custom resources: any schema is admitted or refused; objects are pruned, given defaults and judged, all of it once.

use std::sync::{Arc, LazyLock};

use arbitrary::{Result, Unstructured};
use entourage_apiserver::{
    Object, crd,
    decode::{self, FieldValidation, Media},
    kinds,
    resource::Resource,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Case, make};

mod declared;

use declared::{declared, rules};

/// The schema of a CRD, and two states of an object.
#[derive(Debug, Serialize, Deserialize)]
pub struct Custom {
    /// `openAPIV3Schema`.
    pub schema: Value,
    /// An object; its type and name are filled in.
    pub object: Value,
    /// The same before.
    pub old: Value,
}

static CRDS: LazyLock<Option<Arc<Resource>>> = LazyLock::new(|| {
    let found = kinds::builtin();
    found
        .find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .cloned()
});

/// A CRD of the kind Thing with this schema, as one that is established.
pub fn crd(schema: &Value) -> Object {
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        "status": {"acceptedNames": names, "storedVersions": ["v1"], "conditions": []}});
    match crd {
        Value::Object(crd) => crd,
        _ => Object::new(),
    }
}

/// The resource that such a CRD serves.
pub fn resource(schema: &Value) -> Option<Arc<Resource>> {
    crd::resources(&crd(schema), None, &Arc::default())
        .into_iter()
        .next()
}

impl Case for Custom {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut properties = Map::new();
        for name in ["a", "b", "spec", "status"] {
            if u.int_in_range(0..=2)? > 0 {
                properties.insert(name.to_owned(), declared(u, 4)?);
            }
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if u.ratio(1, 4)? {
            schema["x-kubernetes-validations"] = rules(u)?;
        }
        if u.ratio(1, 8)? {
            make::tweak(u, &mut schema)?;
        }
        let resource = resource(&schema).ok_or(arbitrary::Error::IncorrectFormat)?;
        let object = make::of(u, resource.schema.get(), 7)?;
        let mut old = object.clone();
        make::tweak(u, &mut old)?;
        Ok(Self { schema, object, old })
    }

    fn check(&self) {
        // A null in a default is filled in as it stands, and taken out of what is read again: nulls go before defaults come.
        let admitted = is_admitted(&crd(&self.schema)) && !has_null_default(&self.schema);
        let Some(resource) = resource(&self.schema) else {
            return;
        };
        let old = shaped(&resource, &self.old, admitted);
        let Some(new) = shaped(&resource, &self.object, admitted) else {
            return;
        };
        let errors = resource.rules.validate(&new);
        let _ = resource.rules.warnings(&new, old.as_ref());
        if let Some(old) = &old {
            for subresource in ["", "status"] {
                let _ = resource.rules.validate_update(subresource, &new, old);
            }
        }
        // Rules that compare with the old state do not apply to what is created.
        if errors.is_empty() && !self.schema.to_string().contains("oldSelf") {
            let errors = resource.rules.validate_update("", &new, &new);
            assert_eq!(errors, [], "what could be created may stay as it is");
        }
    }
}

/// True if a default of the schema holds a null.
fn has_null_default(schema: &Value) -> bool {
    let has_null = |value: &Value| value.to_string().contains("null");
    match schema {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| key == "default" && has_null(value) || has_null_default(value)),
        Value::Array(list) => list.iter().any(has_null_default),
        _ => false,
    }
}

/// True if the server accepts the CRD.
fn is_admitted(crd: &Object) -> bool {
    let Some(crds) = &*CRDS else { return false };
    let body = Value::Object(crd.clone()).to_string();
    let Ok(decoded) = decode::body(crds, body.as_bytes(), Media::Json, FieldValidation::Warn) else {
        return false;
    };
    let mut crd = decoded.object;
    crds.rules.defaults(&mut crd);
    let mut again = crd.clone();
    crds.rules.defaults(&mut again);
    assert_eq!(again, crd, "defaults of a CRD, filled in again");
    let _ = crds.rules.warnings(&crd, None);
    let errors = crds.rules.validate(&crd);
    errors.is_empty()
}

/// The object as the server would store it: pruned, with defaults. What is shaped once stays as it is.
fn shaped(resource: &Resource, object: &Value, admitted: bool) -> Option<Object> {
    let Value::Object(object) = object else {
        return None;
    };
    let mut object = object.clone();
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.insert("kind".to_owned(), resource.kind.clone().into());
    if let Value::Object(metadata) = object.entry("metadata").or_insert_with(|| json!({})) {
        metadata.insert("name".to_owned(), "x".into());
    }
    let decode =
        |object: &Object| decode::value(resource, Value::Object(object.clone()), FieldValidation::Warn).ok();
    let decoded = decode(&object)?;
    let mut shaped = decoded.object;
    let again = decode(&shaped);
    assert_eq!(
        again.as_ref().map(|again| &again.object),
        Some(&shaped),
        "pruned again"
    );
    assert_eq!(
        again.map(|again| again.warnings.len()),
        Some(0),
        "nothing unknown is left"
    );
    resource.rules.defaults(&mut shaped);
    if admitted {
        let mut again = shaped.clone();
        resource.rules.defaults(&mut again);
        assert_eq!(
            Value::Object(again),
            Value::Object(shaped.clone()),
            "defaults filled in again"
        );
        assert_eq!(
            decode(&shaped).map(|decoded| decoded.object),
            Some(shaped.clone()),
            "defaults are not pruned"
        );
    }
    Some(shaped)
}

/// For the target of requests: a CRD with any schema.
pub fn any_crd(u: &mut Unstructured<'_>) -> Result<Value> {
    let schema = json!({"type": "object", "properties": {"spec": declared(u, 3)?}});
    Ok(Value::Object(crd(&schema)))
}
