//! The layers of a kind, operation by operation, in the order in which they are asked. For users; their results are in
//! [`super::ask`].
//!
//! Source of the order: Karmada reference 3.5. Customizations, hooks, native kinds.

use entourage_api::config::{ResourceInterpreterCustomization, customization::MergeDependencies};

use super::{
    ask,
    customized::operations as customized,
    hook::{self, Hook, Policy, Subject},
    native,
    operations::Operation,
    rule, shipped,
};

/// A layer that has the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its name for a user: `ResourceInterpreterCustomization "name"`, `native rules`.
    pub name: String,
    /// Its role.
    pub role: Role,
}

/// The role of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is always asked, and its result counts.
    Answers,
    /// It is always asked, and its result is merged with those of the layers before it.
    Adds,
    /// It is asked if the hook before it, whose policy is Ignore, fails.
    StandsIn,
}

/// The layers that have an operation for a kind, in order; empty if there are none. An invalid rule, or a hook that cannot be
/// called, still has its operation.
///
/// Cost: O(rules of the customizations and hooks).
#[must_use]
pub fn layers_of(
    subject: &Subject<'_>,
    operation: Operation,
    customizations: &[ResourceInterpreterCustomization],
    hooks: &[Hook],
) -> Vec<Layer> {
    let refers = operation == Operation::References;
    let mut interpretation: Vec<_> = customizations
        .iter()
        .filter(|each| is_of(subject, each) && customized(each).contains(&operation))
        .collect();
    interpretation.sort_by_key(|each| each.metadata.name.clone());
    let adds = refers
        && interpretation
            .iter()
            .all(|each| each.spec.merge == Some(MergeDependencies::Add));
    interpretation.truncate(if refers { interpretation.len() } else { 1 });
    let is_alone = !interpretation.is_empty() && !adds;
    let mut all: Vec<Layer> = Vec::new();
    for each in interpretation {
        let name = each.metadata.name.as_deref().unwrap_or_default();
        let role = if all.is_empty() { Role::Answers } else { Role::Adds };
        all.push(Layer {
            name: format!("ResourceInterpreterCustomization {name:?}"),
            role,
        });
    }
    if is_alone {
        return all;
    }
    let role = if all.is_empty() { Role::Answers } else { Role::Adds };
    let hook = hook::choose(hooks, subject, operation);
    all.extend(hook.map(|hook| Layer {
        name: hook.layer(),
        role,
    }));
    let known = known(subject, operation).map(str::to_owned);
    match hook.map(Hook::policy) {
        Some(Policy::Fail) => {}
        Some(Policy::Ignore) => all.extend(known.map(|name| Layer {
            name,
            role: Role::StandsIn,
        })),
        None => all.extend(known.map(|name| Layer { name, role })),
    }
    all
}

fn is_of(subject: &Subject<'_>, customization: &ResourceInterpreterCustomization) -> bool {
    let target = &customization.spec.target;
    let (group, version) = target
        .api_version
        .split_once('/')
        .unwrap_or(("", &target.api_version));
    (group, version, &*target.kind) == (subject.group, subject.version, subject.kind)
}

/// The native or shipped layer with the operation, or `None`.
fn known(subject: &Subject<'_>, operation: Operation) -> Option<&'static str> {
    let native = native(subject.group, subject.version, subject.kind)?;
    let has = if native.declared().is_some() {
        let all = shipped::all().iter();
        let mut of_it = all.filter(|shipped| {
            let file = shipped.file();
            (&*file.group, &*file.kind) == (subject.group, subject.kind)
        });
        // Each reports its status, the whole of it without a rule.
        operation == Operation::Reflect
            || of_it.any(|shipped| rule::operations(&shipped.file().rules).contains(&operation))
    } else {
        native::has(native, operation)
    };
    has.then(|| ask::layer(native))
}

#[cfg(test)]
mod tests;
