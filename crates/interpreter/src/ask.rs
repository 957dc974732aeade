//! All layers behind one question: the layer that answers, and its result. For `entourage interpret` and for authors of rules.
//!
//! Decisions do not use this module: they need several results at a time, and read an object once.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    Health, Interpretation, NativeKind,
    customized::{Customized, Engine},
    native,
    operations::{Contract, Operation},
    question::{Answer, InterpretError, Question, Until},
    references, requirements,
};
use entourage_api::config::ResourceInterpreterCustomization;
use entourage_model::object::Gvk;

/// The interpretation of a kind by these customizations. Cost: O(the length of their scripts).
#[must_use]
pub fn interpretation(
    gvk: &Gvk,
    customizations: &[ResourceInterpreterCustomization],
    engine: Option<&dyn Engine>,
) -> Interpretation {
    let mut of_it: Vec<_> = customizations
        .iter()
        .filter(|each| {
            let target = &each.spec.target;
            target.api_version == gvk.api_version() && *target.kind == *gvk.kind
        })
        .collect();
    of_it.sort_by_key(|each| each.metadata.name.clone());
    Interpretation::from(Customized::of(of_it.into_iter(), engine))
}

/// The layers that have the question's operation for a kind, with the result of each: one, or for dependencies all that are
/// merged. Empty if there is none: then the kind has no such operation.
#[must_use]
pub fn ask(
    interpretation: &Interpretation,
    gvk: &Gvk,
    question: Question<'_>,
) -> Vec<(String, Result<Answer, InterpretError>)> {
    let mut all = ask_customizations(interpretation, question);
    if asks_below(interpretation, question.operation()) {
        let known = ask_known(gvk, question);
        all.extend(known.map(|(layer, answer)| (layer.to_owned(), Ok(answer))));
    }
    all
}

/// As [`ask`], by the customizations alone.
#[must_use]
pub fn ask_customizations(
    interpretation: &Interpretation,
    question: Question<'_>,
) -> Vec<(String, Result<Answer, InterpretError>)> {
    interpretation.each(question)
}

/// True if the layers below the customizations are asked: these have no such operation, or are merged with them.
#[must_use]
pub fn asks_below(interpretation: &Interpretation, operation: Operation) -> bool {
    !interpretation.has(operation) || operation == Operation::References && interpretation.adds()
}

/// As [`ask`], by the native interpreter or the shipped rules.
#[must_use]
pub fn ask_known(gvk: &Gvk, question: Question<'_>) -> Option<(&'static str, Answer)> {
    let native = native(&gvk.group, &gvk.version, &gvk.kind)?;
    Some((layer(native), of_native(native, question)?))
}

/// The name of the layer of a kind that needs no configuration.
pub(super) fn layer(native: &dyn NativeKind) -> &'static str {
    if native.declared().is_some() {
        "shipped rules"
    } else {
        "native rules"
    }
}

fn of_native(native: &dyn NativeKind, question: Question<'_>) -> Option<Answer> {
    let namespace = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str();
        namespace.unwrap_or_default().to_owned()
    };
    let has = |operation| native.declared().is_some() || native::has(native, operation);
    match question {
        Question::Replicas(object) => Some(Answer::Replicas {
            replicas: native.replicas(object)?,
            requirements: requirements::requirements(native, &namespace(object), object),
        }),
        Question::Components(object) => {
            let components = requirements::components(native, object);
            (!components.is_empty()).then_some(Answer::Components(components))
        }
        Question::Prune(object) => {
            let mut object = object.clone();
            native.prune(&mut object);
            native::has(native, Operation::Prune).then_some(Answer::Object(object))
        }
        Question::Revise(object, replicas) => {
            native.replicas(object)?;
            let mut object = object.clone();
            native.revise_replicas(&mut object, replicas);
            Some(Answer::Object(object))
        }
        Question::Retain { desired, live } => {
            let mut object = desired.clone();
            native.retain(&mut object, live);
            has(Operation::Retain).then_some(Answer::Object(object))
        }
        Question::Reflect(live) => native
            .reports_status()
            .then(|| Answer::Status(native.reflect(live))),
        Question::Aggregate { template, items } => {
            let items: Vec<(&str, Option<&Value>)> = items
                .iter()
                .map(|item| (item.cluster_name.as_str(), item.status.as_ref()))
                .collect();
            let mut object = template.clone();
            if let Some(status) = native.aggregate(template, &items) {
                object["status"] = status;
            }
            has(Operation::Aggregate).then_some(Answer::Object(object))
        }
        Question::Health(live) => {
            let healthy = native.health(live) == Health::Healthy;
            has(Operation::Health).then_some(Answer::Healthy(healthy))
        }
        Question::Dependencies(object) => references::refers(native)
            .then(|| Answer::References(references::references(native, &namespace(object), object))),
    }
}

/// The error if no layer has the operation, for a user.
#[must_use]
pub fn nobody(gvk: &Gvk, operation: Operation) -> InterpretError {
    InterpretError {
        layer: format!("{} {}", gvk.api_version(), gvk.kind),
        contract: Contract::Interpreter,
        operation,
        why: Cow::Borrowed(
            "no customization, no hook, no shipped and no native rule implements this operation",
        ),
        until: Until::Changed,
    }
}
