//! PriorityLevelConfigurations.

use serde_json::Value;

use crate::{
    kinds::kind_def::{KindDef, METADATA, empty_status},
    object::Object,
    object::tree::{default, made, text, within},
    printer::{AGE, NAME, NONE, Printer, View, words},
};

pub(super) static DEF: KindDef = KindDef {
    subresources: &["status"],
    kept_by_status: METADATA,
    has_generation: true,
    defaults,
    created: empty_status,
    printer: Printer::of(&[
        NAME,
        words("Type", ".spec.type"),
        words(
            "NominalConcurrencyShares",
            ".spec.limited.nominalConcurrencyShares",
        )
        .shows(|level| shown(level, "spec.limited.nominalConcurrencyShares")),
        words("Queues", ".spec.limited.limitResponse.queuing.queues").shows(|level| queuing(level, "queues")),
        words("HandSize", ".spec.limited.limitResponse.queuing.handSize")
            .shows(|level| queuing(level, "handSize")),
        words(
            "QueueLengthLimit",
            ".spec.limited.limitResponse.queuing.queueLengthLimit",
        )
        .shows(|level| queuing(level, "queueLengthLimit")),
        AGE,
    ]),
    ..KindDef::of::<k8s_openapi::api::flowcontrol::v1::PriorityLevelConfiguration>()
};

fn shown(level: &View<'_>, path: &str) -> Value {
    level.at(path).cloned().unwrap_or_else(|| NONE.into())
}

fn queuing(level: &View<'_>, field: &str) -> Value {
    shown(level, &format!("spec.limited.limitResponse.queuing.{field}"))
}

fn defaults(level: &mut Object) {
    let spec = made(level, "spec");
    if text(spec, "type") == "Exempt" {
        let exempt = made(spec, "exempt");
        default(exempt, "nominalConcurrencyShares", 0);
        default(exempt, "lendablePercent", 0);
    }
    within(spec, "limited", |limited| {
        default(limited, "nominalConcurrencyShares", 30);
        default(limited, "lendablePercent", 0);
        within(limited, "limitResponse", |response| {
            within(response, "queuing", |queuing| {
                default(queuing, "queues", 64);
                default(queuing, "handSize", 8);
                default(queuing, "queueLengthLimit", 50);
            });
        });
    });
}
