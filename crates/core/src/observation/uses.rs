//! The consumers of hook responses about templates: a hook is asked only for a result that is in use.
//!
//! | operation | asked about | consumer of the result | what waits while there is none |
//! |---|---|---|---|
//! | `InterpretDependency` | templates that propagate dependencies, and these | attached bindings | the first scheduling |
//! | `InterpretReplica` | templates that a policy claims | the division of replicas; the binding's `replicas` | the first scheduling, if divided, or as below |
//! | `InterpretComponent` | the same, without replicas | the binding's `components` | the first scheduling as a set, with the gate `MultiplePodTemplatesScheduling` |
//! | `Prune` | templates that are rendered | the copy | that copy |
//! | `ReviseReplica` | templates that are rendered with a share of divided replicas | the copy | that copy |
//! | `Retain` | templates that are rendered for a copy that exists | the copy | the update of that copy |
//! | `InterpretStatus` | copies | their entry in the binding's status | the status of that entry |
//! | `InterpretHealth` | copies | the same | the health of that entry |
//! | `AggregateStatus` | templates with copies | the template's status | the template's status |
//!
//! The engine passes the use of an object to the reader, one object at a time ([`Use`]). For an object that the engine does not
//! have yet, its own metadata shows whether a policy claims it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    interpreter::operations::Operation,
    object::{Meta, NamespacedName, ResourceId},
    scope,
};

/// The interpretation results about a template that are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// True if a policy claims it, or did when its binding was last written: replicas and components are in use.
    pub own: bool,
    /// True if its dependencies are propagated, for itself or because it is a dependency.
    pub references: bool,
}

/// A change of the results in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// Of one template.
    Template {
        /// The template.
        id: ResourceId,
        /// Its results in use; `None` when the engine no longer has the template.
        used: Option<Used>,
        /// True if it was read without a result that is in use: it must be read again.
        again: bool,
    },
    /// Of the templates that a policy claims: true if it propagates dependencies; `None` when the policy is gone.
    Policy(NamespacedName, Option<bool>),
}

/// The results in use, by the changes received so far.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    templates: BTreeMap<ResourceId, Used>,
    policies: BTreeMap<NamespacedName, bool>,
    is_everything: bool,
}

impl Used {
    /// All results.
    pub const ALL: Self = Self {
        own: true,
        references: true,
    };

    /// True if the result of this operation about a template is in use.
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
    /// Uses every result, whatever changes arrive: for commands that show all of them.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            is_everything: true,
            ..Self::default()
        }
    }

    /// Applies a change. Returns the template that must be read again. Cost: O(log templates of kinds with hooks).
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

    /// Returns the results about an object that are in use, by the changes received and by the claim in its metadata. Cost:
    /// O(its metadata + log templates of kinds with hooks).
    #[must_use]
    pub fn of(&self, id: &ResourceId, object: &Value) -> Used {
        if self.is_everything {
            return Used::ALL;
        }
        let received = self.templates.get(id).copied().unwrap_or_default();
        let claim = scope::claim_of(&Meta::of(object)).and_then(|name| self.policies.get(&name));
        Used {
            own: received.own || claim.is_some(),
            references: received.references || claim == Some(&true),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::Gvk;

    #[test]
    fn a_template_without_facts_shows_its_claim() {
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
