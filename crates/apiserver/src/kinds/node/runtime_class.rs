//! RuntimeClasses.

use serde_json::Value;

use crate::{
    kinds::kind_def::KindDef,
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, object, text},
    },
    printer::{AGE, NAME, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    errors: runtime_class,
    changes: Some(|new, old, errors| {
        if text(new, "handler") != text(old, "handler") {
            errors.invalid("handler", text(new, "handler"), IMMUTABLE);
        }
    }),
    printer: Printer::of(&[NAME, words("Handler", ".handler"), AGE]),
    ..KindDef::of::<k8s_openapi::api::node::v1::RuntimeClass>()
};

fn runtime_class(class: &Object, errors: &mut Errors) {
    let handler = text(class, "handler");
    errors.all_invalid("handler", handler, names::dns_label(handler, false));
    if let Some(overhead) = object(class, "overhead") {
        for (name, amount) in below(overhead, "podFixed") {
            if crate::kinds::amounts::nano(amount).is_some_and(|amount| amount < 0) {
                let field = format!("overhead.podFixed[{name}]");
                errors.invalid(field, Value::clone(amount), crate::object::tree::NOT_NEGATIVE);
            }
        }
    }
    if let Some(scheduling) = object(class, "scheduling") {
        errors.extend(names::labels(
            below(scheduling, "nodeSelector"),
            "scheduling.nodeSelector",
        ));
    }
}
