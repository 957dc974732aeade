//! Parameters of operations, from `parameters.txt`. Version 2 keeps those that do not depend on a kind in one place, and refers to them.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use serde_json::{Map, Value, json};

use super::definitions::Flavor;

/// Parameters that Kubernetes repeats at every operation: those of a kind, and two that clients have looked for there.
const REPEATED: [&str; 3] = ["name", "dryRun", "fieldValidation"];

/// The parameters of a document.
#[derive(Debug)]
pub(super) struct Parameters {
    flavor: Flavor,
    rows: BTreeMap<&'static str, (&'static str, String)>,
    /// Version 2: those that operations refer to.
    pub(super) shared: Map<String, Value>,
}

impl Parameters {
    /// Reads the table.
    #[must_use]
    pub(super) fn new(flavor: Flavor) -> Self {
        let lines = include_str!("parameters.txt").lines();
        let rows = lines.filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (key, rest) = line.split_once(' ')?;
            let (kind, text) = rest.split_once(' ')?;
            Some((key, (kind, text.replace("\\n", "\n"))))
        });
        Self {
            flavor,
            rows: rows.collect(),
            shared: Map::new(),
        }
    }

    /// The keys of the parameters that are special to a path: those led by `log.`.
    pub(super) fn special(&self, prefix: &str) -> impl Iterator<Item = &'static str> {
        self.rows
            .keys()
            .copied()
            .filter(move |key| key.starts_with(prefix))
    }

    /// A parameter of the table by its key.
    pub(super) fn get(&mut self, key: &str) -> Value {
        let Some((kind, text)) = self.rows.get(key).cloned() else {
            return Value::Null;
        };
        let place = if key == "namespace" { "path" } else { "query" };
        self.made(name(key), place, kind, &text)
    }

    /// The name of an object of a kind, in the path.
    pub(super) fn object(&mut self, kind: &str) -> Value {
        self.made("name", "path", "string", &format!("name of the {kind}"))
    }

    /// Version 2: the body of a request.
    pub(super) fn body(&mut self, reference: &Value, required: bool, is_shared: bool) -> Value {
        let required = if required { r#","required":true"# } else { "" };
        let text = format!(r#"{{"name":"body","in":"body"{required},"schema":{reference}}}"#);
        self.placed("body", &text, is_shared)
    }

    fn made(&mut self, name: &str, place: &str, kind: &str, text: &str) -> Value {
        let required = place == "path";
        if self.flavor == Flavor::V3 {
            let mut value = json!({"name": name, "in": place, "description": text, "schema": {"type": kind, "uniqueItems": true}});
            if required {
                value["required"] = true.into();
            }
            return value;
        }
        let required = if required { r#","required":true"# } else { "" };
        let text = Value::from(text);
        let text = format!(
            r#"{{"uniqueItems":true,"type":"{kind}","description":{text},"name":"{name}","in":"{place}"{required}}}"#
        );
        self.placed(name, &text, !REPEATED.contains(&name))
    }

    fn placed(&mut self, name: &str, text: &str, is_shared: bool) -> Value {
        let value = serde_json::from_str(text).unwrap_or_default();
        if !is_shared {
            return value;
        }
        let id = format!("{name}-{}", hash(text));
        let reference = json!({"$ref": format!("#/parameters/{id}")});
        self.shared.entry(id).or_insert(value);
        reference
    }
}

/// The name of a parameter by its key: `fieldManager` of `patch.fieldManager`.
#[must_use]
pub(super) fn name(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Eight characters by which Kubernetes tells parameters of one name apart: the beginning of FNV-1.
fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
    });
    URL_SAFE.encode(&hash.to_be_bytes()[..6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_parameters_are_named_as_kubernetes_names_them() {
        let mut parameters = Parameters::new(Flavor::V2);
        for (key, id) in [
            ("namespace", "namespace-vgWSWtn3"),
            ("pretty", "pretty-tJGM1-ng"),
            ("fieldManager", "fieldManager-Qy4HdaTW"),
            ("patch.fieldManager", "fieldManager-7c6nTn1T"),
            ("gracePeriodSeconds", "gracePeriodSeconds--K5HaBOS"),
        ] {
            let expected = json!({"$ref": format!("#/parameters/{id}")});
            assert_eq!(parameters.get(key), expected);
            assert_eq!(parameters.shared[id]["name"], name(key));
        }
        for (definition, required, id) in [
            ("DeleteOptions", false, "body-2Y1dVQaQ"),
            ("Patch", true, "body-78PwaGsr"),
        ] {
            let reference =
                Flavor::V2.reference(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{definition}"));
            let expected = json!({"$ref": format!("#/parameters/{id}")});
            assert_eq!(parameters.body(&reference, required, true), expected);
        }
        assert_eq!(parameters.get("dryRun")["in"], "query");
        assert_eq!(parameters.object("Pod")["required"], true);
    }
}
