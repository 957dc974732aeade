//! Who uses what hooks say of templates: a hook is asked only for an answer that somebody uses.
//!
//! | operation | asked about | who uses the answer | what waits while there is none |
//! |---|---|---|---|
//! | `InterpretDependency` | templates whose dependencies are propagated, and these dependencies | attached bindings | the first placement |
//! | `InterpretReplica` | templates that a policy claims | the division of replicas; the binding's `replicas` | the first placement, if replicas are divided |
//! | `InterpretComponent` | the same, without replicas | the binding's `components` | nothing |
//! | `Prune` | what is rendered | the copy | that copy |
//! | `ReviseReplica` | what is rendered with a share of divided replicas | the copy | that copy |
//! | `Retain` | what is rendered for a copy that exists | the copy | the update of that copy |
//! | `InterpretStatus` | copies | their entry in the binding's status | the status of that entry |
//! | `InterpretHealth` | copies | the same | the health of that entry |
//! | `AggregateStatus` | templates with copies | the template's status | the template's status |
//!
//! What the Index knows of an object is passed to whoever reads it, one object at a time ([`Use`]). An object that nothing
//! is known of yet tells by its own metadata whether a policy claims it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    interpreter::operations::Operation,
    object::{Meta, NamespacedName, ResourceId},
    scope,
};

/// Which answers about a template somebody uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Whether a policy claims it, or did so when its binding was last written: replicas and components.
    pub own: bool,
    /// Whether its dependencies are propagated, for itself or because it is a dependency.
    pub references: bool,
}

/// A change of who uses what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// Of a template.
    Template {
        /// Which one.
        id: ResourceId,
        /// Its answers; `None` when nothing is known of it any more.
        used: Option<Used>,
        /// Whether it was read without an answer that is used: it is to be read again.
        again: bool,
    },
    /// Of what a policy claims: whether it propagates dependencies; `None` when the policy is gone.
    Policy(NamespacedName, Option<bool>),
}

/// What is used, as far as it was told.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    templates: BTreeMap<ResourceId, Used>,
    policies: BTreeMap<NamespacedName, bool>,
    is_everything: bool,
}

impl Used {
    /// All answers.
    pub const ALL: Self = Self {
        own: true,
        references: true,
    };

    /// Whether somebody uses the answer to this operation about a template.
    #[must_use]
    pub fn has(self, operation: Operation) -> bool {
        match operation {
            Operation::References => self.references,
            Operation::Replicas | Operation::Components => self.own,
            _ => true,
        }
    }
}

impl Uses {
    /// Every answer is used, whatever is told: for those who want to see them.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            is_everything: true,
            ..Self::default()
        }
    }

    /// Takes in a change. Answers the template that is to be read again. Cost: O(log templates of kinds with hooks).
    pub fn take(&mut self, change: Use) -> Option<ResourceId> {
        match change {
            Use::Template { id, used, again } => {
                match used {
                    Some(used) => self.templates.insert(id.clone(), used),
                    None => self.templates.remove(&id),
                };
                again.then_some(id)
            }
            Use::Policy(name, Some(follows)) => {
                self.policies.insert(name, follows);
                None
            }
            Use::Policy(name, None) => {
                self.policies.remove(&name);
                None
            }
        }
    }

    /// Which answers about an object are used, by what was told and by the claim in its metadata.
    /// Cost: O(its metadata + log templates of kinds with hooks).
    #[must_use]
    pub fn of(&self, id: &ResourceId, object: &Value) -> Used {
        if self.is_everything {
            return Used::ALL;
        }
        let told = self.templates.get(id).copied().unwrap_or_default();
        let claim = scope::claim_of(&Meta::of(object)).and_then(|name| self.policies.get(&name));
        Used {
            own: told.own || claim.is_some(),
            references: told.references || claim == Some(&true),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Gvk;

    #[test]
    fn a_template_that_nothing_was_told_of_tells_by_its_claim() {
        let id = ResourceId::new(Gvk::new("example.com/v1", "Shop"), "ns", "corner");
        let (_, annotations) = scope::claim(&NamespacedName::new("ns", "shops"), "id");
        let annotations: BTreeMap<&str, String> = annotations
            .into_iter()
            .map(|(key, value)| (key, value.to_string()))
            .collect();
        let claimed = json!({"metadata": {"name": "corner", "annotations": annotations}});
        let mut uses = Uses::default();
        assert_eq!(uses.of(&id, &claimed), Used::default(), "the policy is not known");
        uses.take(Use::Policy(NamespacedName::new("ns", "shops"), Some(false)));
        let own = Used {
            own: true,
            references: false,
        };
        assert_eq!(uses.of(&id, &claimed), own);
        uses.take(Use::Policy(NamespacedName::new("ns", "shops"), Some(true)));
        assert_eq!(uses.of(&id, &claimed), Used::ALL);
        assert_eq!(
            uses.of(&id, &json!({"metadata": {"name": "corner"}})),
            Used::default()
        );
        let used = Some(own);
        let again = uses.take(Use::Template {
            id: id.clone(),
            used,
            again: true,
        });
        assert_eq!(again, Some(id.clone()));
        assert_eq!(uses.of(&id, &json!({})), own);
    }
}
