//! What is said of a binding when scripts, rules or hooks have no answer about its template and copies.

use std::collections::BTreeSet;

use entourage_api::keys::annotation;

use crate::{
    index::{Entity, Index, Trouble},
    object::Id,
    observation::Template,
};

/// What is not known of a template and its copies because what people taught us of the kind has no answer, and who was
/// asked. Of copies one stands for all.
pub(super) fn unanswered(index: &Index, id: &Id, template: &Template, entity: &Entity) -> Option<String> {
    let of_copies = entity
        .copies
        .values()
        .filter_map(|state| state.live.as_ref()?.unanswered.as_deref());
    let mut all: Vec<String> = template
        .unanswered
        .iter()
        .chain(of_copies.take(1))
        .chain(&entity.unaggregated)
        .map(|each| format!("{each}; what it answered last stays in force"))
        .collect();
    // A hook that is down is so for all that it is asked.
    let mut told = BTreeSet::new();
    all.retain(|text| told.insert(text.clone()));
    all.extend(
        index
            .kept_out(id, template)
            .iter()
            .map(|namespace| kept_out(index, id, namespace)),
    );
    if entity.is_cut {
        all.push(
            "what it needs refers to more than is followed: what is farthest stays where it is; propagate that by a policy \
             of its own"
                .to_owned(),
        );
    }
    let mut problems = entity.copies.values().filter_map(|state| state.problem.as_ref());
    let delivery =
        problems.find(|problem| matches!(problem.trouble, Trouble::Interpretation | Trouble::Unanswered));
    if let Some(problem) = delivery
        && !all.iter().any(|text| text.starts_with(&problem.message))
    {
        all.push(problem.message.clone());
    }
    (!all.is_empty()).then(|| all.join("; "))
}

fn kept_out(index: &Index, id: &Id, namespace: &str) -> String {
    if index.config.is_reserved(namespace) {
        return format!("what it needs of namespace {namespace} is never taken along: that is the system's");
    }
    if namespace.is_empty() {
        return "what has no namespace is not taken along by what has one; propagate it by a policy of its own".to_owned();
    }
    format!(
        "what it needs of namespace {namespace} is not taken along: let it by annotating that namespace with {}: {}",
        annotation::REFERENCES_FROM,
        id.namespace
    )
}
