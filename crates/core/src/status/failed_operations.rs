//! The message of a binding when the interpretation of its template or copies by scripts, rules or hooks fails.

use std::collections::BTreeSet;

use entourage_api::keys::annotation;

use crate::{
    cache::ResourceState,
    fleet::Fleet,
    interpreter::{operations::Operation, question::InterpretError},
    object::ResourceId,
    observation::Template,
};

/// The interpretations of a template and its copies that failed, with operation and consequence. Only results in use are
/// reported; one copy stands for all.
pub(super) fn failed_operations(
    fleet: &Fleet,
    id: &ResourceId,
    template: &Template,
    resource: &ResourceState,
) -> Option<String> {
    let errors = errors(fleet, id, template, resource);
    let mut all = grouped(errors.iter().copied());
    all.extend(
        fleet
            .kept_out(id, template)
            .iter()
            .map(|namespace| kept_out(fleet, id, namespace)),
    );
    if fleet.links(id).is_cut {
        all.push(
            "its dependency graph is larger than is followed: the farthest dependencies are not propagated; \
             propagate them by a policy of their own"
                .to_owned(),
        );
    }
    let mut problems = resource
        .copies
        .values()
        .filter_map(|state| state.problem.as_ref());
    let delivery = problems.find_map(|problem| Some((problem, problem.interpret_error.as_deref()?)));
    if let Some((problem, error)) = delivery
        && !errors.iter().any(|each| is_same_failure(each, error))
    {
        all.push(problem.message.clone());
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// The interpret errors of a template and its copies whose results are in use; one copy stands for all.
pub(super) fn errors<'a>(
    fleet: &Fleet,
    id: &ResourceId,
    template: &'a Template,
    resource: &'a ResourceState,
) -> Vec<&'a InterpretError> {
    let of_copies = resource
        .copies
        .values()
        .filter_map(|state| state.live.as_ref().map(|live| &live.failed_operations))
        .find(|unanswered| !unanswered.is_empty());
    template
        .failed_operations
        .iter()
        .filter(|each| is_used(fleet, id, (template, resource), each))
        .chain(of_copies.into_iter().flatten())
        .chain(&resource.unaggregated)
        .collect()
}

/// The operations of [`errors`]. Cost: O(copies).
pub(super) fn operations(fleet: &Fleet, id: &ResourceId, resource: &ResourceState) -> BTreeSet<Operation> {
    let template = resource.template.as_ref();
    let errors = template.map(|template| errors(fleet, id, template, resource));
    errors.into_iter().flatten().map(|each| each.operation).collect()
}

/// True if both report the same failure, whatever may end it.
fn is_same_failure(one: &InterpretError, other: &InterpretError) -> bool {
    one.layer == other.layer && one.operation == other.operation && one.why == other.why
}

/// True if the failed result about a template is in use.
fn is_used(
    fleet: &Fleet,
    id: &ResourceId,
    (template, resource): (&Template, &ResourceState),
    each: &InterpretError,
) -> bool {
    let binding = resource.last_binding();
    let own = binding.is_some_and(|binding| binding.object.spec.placement.is_some());
    let required = binding.is_some_and(|binding| !binding.object.spec.required_by.is_empty());
    match each.operation {
        _ if each.is_unasked() => false,
        Operation::References => fleet.will_follow(id, resource) || required,
        Operation::Components => own && template.replicas.is_none(),
        _ => own,
    }
}

/// The interpreter, the operation, the cause, and the consequence. A hook that does not respond is named once.
fn grouped<'a>(all: impl Iterator<Item = &'a InterpretError>) -> Vec<String> {
    let mut groups: Vec<(&InterpretError, Vec<&InterpretError>)> = Vec::new();
    for each in all {
        let same =
            |(first, _): &&mut (&InterpretError, _)| first.layer == each.layer && first.why == each.why;
        match groups.iter_mut().find(same) {
            Some((_, group)) if group.iter().any(|held| held.operation == each.operation) => {}
            Some((_, group)) => group.push(each),
            None => groups.push((each, vec![each])),
        }
    }
    let text = |(first, group): (&InterpretError, Vec<&InterpretError>)| {
        let words: Vec<_> = group.iter().map(|each| each.word()).collect();
        let stays: Vec<_> = group.iter().map(|each| subject(each.operation)).collect();
        format!(
            "{}: {} failed: {}; {} stay as last known",
            first.layer,
            words.join(", "),
            first.why,
            stays.join(", ")
        )
    };
    groups.into_iter().map(text).collect()
}

/// The subject of an operation, of a template or its copies.
const fn subject(operation: Operation) -> &'static str {
    match operation {
        Operation::References => "its dependencies",
        Operation::Replicas => "its replicas",
        Operation::Components => "its components",
        Operation::Reflect => "the reported statuses",
        Operation::Health => "the reported health states",
        Operation::Aggregate => "the fields of the template's status",
        Operation::Prune | Operation::Revise | Operation::Retain => "its copies",
    }
}

fn kept_out(fleet: &Fleet, id: &ResourceId, namespace: &str) -> String {
    if fleet.config.is_reserved(namespace) {
        return format!(
            "dependencies in namespace {namespace} are never propagated: it is a system namespace"
        );
    }
    if namespace.is_empty() {
        return "cluster-scoped dependencies of a namespaced template are not propagated; propagate them by a policy \
            of their own".to_owned();
    }
    format!(
        "dependencies in namespace {namespace} are not propagated: permit it by annotating that namespace with {}: \
         {}",
        annotation::REFERENCES_FROM,
        id.namespace
    )
}
