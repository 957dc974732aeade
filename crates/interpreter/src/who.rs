//! The layer that answers for a kind, operation by operation. For people; the answers are in [`super::ask`].
//!
//! Source of the order: Karmada reference 3.5. Customizations, hooks, kinds that we know.

use entourage_api::config::{ResourceInterpreterCustomization, customization::MergeDependencies};

use super::{
    ask,
    customized::operations as customized,
    hook::{self, Hook, Policy, Subject},
    native,
    operations::Operation,
    rule, shipped,
};

/// One that has the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// For a person: `ResourceInterpreterCustomization "name"`, `native rules`.
    pub name: String,
    /// When it is asked.
    pub role: Role,
}

/// When a layer is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Always, and its answer counts.
    Answers,
    /// Always, and what it finds is added to what those before it find.
    Adds,
    /// When the hook before it, whose policy is Ignore, has no answer.
    StandsIn,
}

/// Who has an operation for a kind, in order; empty if nobody has. That a rule has a mistake, or that a hook cannot be
/// called, takes the operation from nobody.
///
/// Cost: O(rules of the customizations and hooks).
#[must_use]
pub fn who(
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

/// What has the operation without configuration.
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
