//! PriorityClasses.

use crate::{
    kinds::kind_def::KindDef,
    object::{
        Object, field,
        tree::{Errors, IMMUTABLE, count, default, text},
    },
    printer::{AGE, NAME, Printer, boolean, integer, words},
};

/// The highest value that a user's class may have.
const HIGHEST: i64 = 1_000_000_000;

/// The prefix of the classes that every cluster has.
const SYSTEM: &str = "system-";

pub(super) static DEF: KindDef = KindDef {
    short: &["pc"],
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
    printer: Printer::of(&[
        NAME,
        integer("Value", ".value"),
        boolean("Global-Default", ".globalDefault"),
        AGE,
        words("PreemptionPolicy", ".preemptionPolicy"),
    ]),
    ..KindDef::of::<k8s_openapi::api::scheduling::v1::PriorityClass>()
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
