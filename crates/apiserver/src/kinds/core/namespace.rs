//! Namespaces: a label with their name, finalizers of their own, and a deletion that empties them first.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use crate::{
    kinds::{kind_def::KindDef, pod_security},
    meta::standard_finalizer,
    names,
    object::{Object, field, metadata_mut, tree::made},
    printer::{AGE, NAME, Printer, words},
    resource::{Rules, Surroundings},
    status::{FieldError, Result},
};

/// The label that every namespace has.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The finalizer of the namespace controller, in `spec.finalizers`.
pub(crate) const KUBERNETES: &str = "kubernetes";

pub(super) static DEF: KindDef = KindDef {
    short: &["ns"],
    subresources: &["finalize", "status"],
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    rules: Some(|| Arc::new(Namespaces)),
    printer: Printer::of(&[
        NAME,
        words("Status", "The status of the namespace").at("status.phase"),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::Namespace>()
};

/// The rules of a Namespace.
#[derive(Debug)]
pub(super) struct Namespaces;

impl Rules for Namespaces {
    fn defaults(&self, object: &mut Object) {
        let name = field(object, "name").to_owned();
        if !name.is_empty() {
            let labels = metadata_mut(object).entry("labels").or_insert_with(|| json!({}));
            if let Value::Object(labels) = labels {
                labels.insert(NAME_LABEL.to_owned(), name.into());
            }
        }
        made(object, "spec");
        let status = made(object, "status");
        status.entry("phase").or_insert_with(|| "Active".into());
    }

    fn has_status(&self) -> bool {
        true
    }

    fn name_problems(&self, name: &str, prefix: bool) -> Vec<String> {
        names::dns_label(name, prefix)
    }

    fn prepare_create(&self, object: &mut Object, _: &dyn Surroundings) -> Result<()> {
        // A generated name is known only now.
        self.defaults(object);
        object.insert("status".to_owned(), json!({"phase": "Active"}));
        if !finalizers(object).any(|name| name == KUBERNETES) {
            let mut all: Vec<Value> = finalizers(object).map(Value::from).collect();
            all.push(KUBERNETES.into());
            made(object, "spec").insert("finalizers".to_owned(), all.into());
        }
        Ok(())
    }

    fn prepare_update(
        &self,
        subresource: &str,
        new: &mut Object,
        old: &Object,
        _: &dyn Surroundings,
    ) -> Result<()> {
        let kept: &[&str] = match subresource {
            "status" => &["spec"],
            "finalize" => &["status"],
            _ => &["spec", "status"],
        };
        for name in kept {
            match old.get(*name) {
                Some(value) => new.insert((*name).to_owned(), value.clone()),
                None => new.remove(*name),
            };
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let mut errors = finalizer_errors(object, |_| "spec.finalizers".to_owned());
        errors.extend(pod_security::labels(object));
        errors
    }

    fn validate_update(&self, subresource: &str, new: &Object, _: &Object) -> Vec<FieldError> {
        match subresource {
            "" => pod_security::labels(new),
            "finalize" => finalizer_errors(new, |at| format!("spec.finalizers[{at}]")),
            "status" => phase_error(new).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn selectable(&self, object: &Object) -> Option<BTreeMap<String, String>> {
        let phase = phase(object).to_owned();
        let name = field(object, "name").to_owned();
        Some([("status.phase".to_owned(), phase), ("name".to_owned(), name)].into())
    }

    fn undeletable(&self, name: &str) -> Option<&'static str> {
        matches!(name, "default" | "kube-system" | "kube-public")
            .then_some("this namespace may not be deleted")
    }

    fn begin_delete(&self, object: &mut Object, _: &str) -> bool {
        made(object, "status").insert("phase".to_owned(), "Terminating".into());
        true
    }

    fn may_go(&self, object: &Object) -> bool {
        finalizers(object).next().is_none()
    }
}

/// `spec.finalizers` of a namespace.
pub(crate) fn finalizers(object: &Object) -> impl Iterator<Item = &str> {
    let list = object.get("spec").and_then(|spec| spec.get("finalizers"));
    let list = list.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// `status.phase` of a namespace.
pub(crate) fn phase(object: &Object) -> &str {
    let phase = object.get("status").and_then(|status| status.get("phase"));
    phase.and_then(Value::as_str).unwrap_or_default()
}

fn finalizer_errors(object: &Object, path: impl Fn(usize) -> String) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, name) in finalizers(object).enumerate() {
        let problems = names::qualified_name(name).into_iter();
        errors.extend(problems.map(|problem| FieldError::invalid(path(at), name, problem)));
        errors.extend(standard_finalizer(name, path(at)));
    }
    errors
}

fn phase_error(object: &Object) -> Option<FieldError> {
    let (wanted, when) = if field(object, "deletionTimestamp").is_empty() {
        ("Active", "empty")
    } else {
        ("Terminating", "not empty")
    };
    let detail = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
    let phase = phase(object);
    (phase != wanted).then(|| FieldError::invalid("status.Phase", phase, detail))
}
