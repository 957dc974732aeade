//! PriorityClasses and RuntimeClasses.

use serde_json::Value;

use super::kind::Kind;
use crate::{
    names,
    object::{
        Object, field,
        tree::{Errors, IMMUTABLE, below, count, default, object, text},
    },
};

/// The highest value that a user's class may have.
const HIGHEST: i64 = 1_000_000_000;

/// The prefix of the classes that every cluster has.
const SYSTEM: &str = "system-";

/// PriorityClass.
pub(super) static PRIORITY_CLASS: Kind = Kind {
    kind: "PriorityClass",
    has_generation: true,
    defaults: |class| {
        default(class, "preemptionPolicy", "PreemptLowerPriority");
        // Always sent.
        class.entry("value").or_insert_with(|| 0.into());
    },
    errors: priority_class,
    changes: Some(|new, old, errors| {
        if count(new, "value") != count(old, "value") {
            errors.forbidden("value", "may not be changed in an update.");
        }
        if text(new, "preemptionPolicy") != text(old, "preemptionPolicy") {
            errors.invalid("preemptionPolicy", text(new, "preemptionPolicy"), IMMUTABLE);
        }
    }),
    ..Kind::PLAIN
};

/// RuntimeClass.
pub(super) static RUNTIME_CLASS: Kind = Kind {
    kind: "RuntimeClass",
    errors: runtime_class,
    changes: Some(|new, old, errors| {
        if text(new, "handler") != text(old, "handler") {
            errors.invalid("handler", text(new, "handler"), IMMUTABLE);
        }
    }),
    ..Kind::PLAIN
};

fn priority_class(class: &Object, errors: &mut Errors) {
    let (name, value) = (field(class, "name"), count(class, "value"));
    let known = matches!(
        (name, value),
        ("system-cluster-critical", 2_000_000_000) | ("system-node-critical", 2_000_001_000)
    );
    if name.starts_with(SYSTEM) {
        if !known {
            let detail = "priority class names with 'system-' prefix are reserved for system use only. error: only system priority classes may have this prefix";
            errors.forbidden("metadata.name", detail);
        }
    } else if value > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.forbidden("value", &detail);
    }
    errors.required_one_of(
        "preemptionPolicy",
        text(class, "preemptionPolicy"),
        &["Never", "PreemptLowerPriority"],
    );
}

fn runtime_class(class: &Object, errors: &mut Errors) {
    let handler = text(class, "handler");
    errors.all_invalid("handler", handler, names::dns_label(handler, false));
    if let Some(overhead) = object(class, "overhead") {
        for (name, amount) in below(overhead, "podFixed") {
            if super::amounts::nano(amount).is_some_and(|amount| amount < 0) {
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
