//! The interpretation of a kind by customizations and hooks, over the native one.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use entourage_api::work::DependentObjectReference;
use serde_json::Value;

use super::{Copy, Template};
use crate::{
    interpreter::{
        Health, Interpretation,
        operations::{Contract, Operation},
        question::{Answer, InterpretError, Question, Until},
        references::{DependencyReference, DependencySelection},
        requirements,
    },
    object::{Gvk, ResourceId},
};

/// Replaces the fields of a template's projection by the results of its interpretation. Where it has no result the field is
/// empty, or has the native value, and a caller that holds an earlier result keeps it. Cost: that of the rules.
pub(super) fn tell(
    interpretation: &Interpretation,
    id: &ResourceId,
    object: &Value,
    template: &mut Template,
) {
    template.interpretation = interpretation.kept();
    if interpretation.has(Operation::Aggregate) {
        template.status = object.get("status").filter(|status| !status.is_null()).cloned();
    }
    match interpretation.answer(Question::Replicas(object)) {
        Some(Ok(Answer::Replicas {
            replicas,
            requirements,
        })) => {
            template.replicas = i32::try_from(replicas).ok();
            template.completions = None;
            template.requirements = requirements.map(Arc::new);
        }
        Some(other) => {
            let failed_operation = failed(other, Operation::Replicas);
            // If the result is not in use, the native value is good enough: the status of a template that is a dependency.
            if !failed_operation.is_unasked() {
                (template.replicas, template.completions, template.requirements) = (None, None, None);
            }
            template.failed_operations.push(failed_operation);
        }
        None => {}
    }
    if let Some(answer) = interpretation.answer(Question::Components(object)) {
        // The native result does not count, nor an error of it.
        template.components = None;
        template
            .failed_operations
            .retain(|each| each.operation != Operation::Components);
        match requirements::checked_components(answer) {
            Ok(all) => template.components = all,
            Err(failed_operation) => template.failed_operations.push(failed_operation),
        }
    }
    let found = interpretation.dependencies(object);
    if found.is_all {
        (template.references, template.selections) = (Vec::new(), Vec::new());
    }
    template.failed_operations.extend(found.unanswered);
    for answer in found.answers {
        match answer {
            Answer::Dependencies(all) => {
                let (named, selected) = named(id, &all);
                template.references.extend(named);
                template.selections.extend(selected);
            }
            Answer::References(all) => template.references.extend(all),
            other => template
                .failed_operations
                .push(failed(Ok(other), Operation::References)),
        }
    }
    unite(template);
}

/// Sorts references and removes duplicates; one stays optional only if every mention of it is optional.
fn unite(template: &mut Template) {
    template.references.sort();
    template.references.dedup_by(|again, kept| {
        let same = again.id == kept.id;
        kept.optional &= !same || again.optional;
        same
    });
    let mut selections: Vec<DependencySelection> = Vec::new();
    for each in template.selections.drain(..) {
        if !selections.contains(&each) {
            selections.push(each);
        }
    }
    template.selections = selections;
}

/// Replaces the fields of a copy's projection by the results of its interpretation.
pub(super) fn interpret_copy(interpretation: &Interpretation, object: &Value, copy: &mut Copy) {
    copy.interpretation = interpretation.kept();
    let mut failed_operations = Vec::new();
    match interpretation.answer(Question::Reflect(object)) {
        Some(Ok(Answer::Status(status))) => copy.status = status,
        Some(other) => {
            copy.status = None;
            failed_operations.push(failed(other, Operation::Reflect));
        }
        None => {}
    }
    match interpretation.answer(Question::Health(object)) {
        Some(Ok(Answer::Healthy(true))) => copy.health = Some(Health::Healthy),
        Some(Ok(Answer::Healthy(false))) => copy.health = Some(Health::Unhealthy),
        Some(other) => {
            copy.health = Some(Health::Unknown);
            failed_operations.push(failed(other, Operation::Health));
        }
        None => {}
    }
    copy.failed_operations = failed_operations.into();
}

fn failed(answer: Result<Answer, InterpretError>, operation: Operation) -> InterpretError {
    answer.err().unwrap_or_else(|| InterpretError {
        layer: "interpretation".to_owned(),
        contract: Contract::Interpreter,
        operation,
        why: Cow::Borrowed("the answer does not match the operation"),
        until: Until::Changed,
    })
}

/// The named dependencies, by name and by label; each once, and never the object itself.
pub(crate) fn named(
    id: &ResourceId,
    all: &[DependentObjectReference],
) -> (Vec<DependencyReference>, Vec<DependencySelection>) {
    let mut by_name = BTreeMap::new();
    let mut selected = Vec::new();
    for each in all {
        let gvk = Gvk::new(&each.api_version, &each.kind);
        match &each.label_selector {
            Some(selector) => selected.push(DependencySelection {
                gvk,
                namespace: each.namespace.as_str().into(),
                selector: selector.clone(),
            }),
            None => {
                let needed = ResourceId::new(gvk, &each.namespace, &each.name);
                if needed != *id {
                    by_name.insert(needed, false);
                }
            }
        }
    }
    let reference = |(id, optional)| DependencyReference { id, optional };
    (by_name.into_iter().map(reference).collect(), selected)
}
