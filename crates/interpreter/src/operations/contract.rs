//! The two contracts, and their names of the operations.

use super::Operation;

/// The protocol of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// `ResourceInterpreterContext`, Karmada's protocol.
    Interpreter,
    /// `ExploreReview`, the protocol in the proposal of the hooks.
    Explorer,
}

/// The operations, with their names in both contracts. A contract without a name for an operation does not have it.
const WORDS: &[(Operation, Option<&str>, Option<&str>)] = &[
    (
        Operation::References,
        Some("InterpretDependency"),
        Some("ExploreDependencies"),
    ),
    (
        Operation::Replicas,
        Some("InterpretReplica"),
        Some("ExploreReplica"),
    ),
    (Operation::Components, Some("InterpretComponent"), None),
    (
        Operation::Revise,
        Some("ReviseReplica"),
        Some("ExploreReplicaRevising"),
    ),
    (Operation::Prune, Some("Prune"), Some("ExplorePacking")),
    (Operation::Retain, Some("Retain"), Some("ExploreRetaining")),
    (Operation::Reflect, Some("InterpretStatus"), Some("ExploreStatus")),
    (
        Operation::Aggregate,
        Some("AggregateStatus"),
        Some("ExploreStatusAggregating"),
    ),
    (Operation::Health, Some("InterpretHealth"), Some("ExploreHealthy")),
];

impl Contract {
    /// The name of an operation, or `None`.
    #[must_use]
    pub fn word(self, operation: Operation) -> Option<&'static str> {
        let row = WORDS.iter().find(|(each, ..)| *each == operation)?;
        match self {
            Self::Interpreter => row.1,
            Self::Explorer => row.2,
        }
    }

    /// The operation with this name, or `None`.
    #[must_use]
    pub fn operation(self, word: &str) -> Option<Operation> {
        let row = WORDS.iter().find(|(_, interpreter, explorer)| {
            let own = match self {
                Self::Interpreter => interpreter,
                Self::Explorer => explorer,
            };
            *own == Some(word)
        })?;
        Some(row.0)
    }

    /// True if `*` does not match an operation: hooks of Karmada's users were never called to prune, and many were written
    /// before there were components.
    pub(crate) const fn is_named_only(operation: Operation) -> bool {
        matches!(operation, Operation::Prune | Operation::Components)
    }

    /// The operations that a rule with this name, or `*`, may match. See [`Self::is_named_only`].
    pub(crate) fn operations(self, word: &str) -> impl Iterator<Item = Operation> {
        WORDS.iter().map(|row| row.0).filter(move |operation| {
            let own = self.word(*operation);
            own == Some(word) || word == "*" && own.is_some() && !Self::is_named_only(*operation)
        })
    }

    /// The kind of its messages.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Interpreter => "ResourceInterpreterContext",
            Self::Explorer => "ExploreReview",
        }
    }

    /// The kind of its configurations.
    #[must_use]
    pub const fn configuration(self) -> &'static str {
        match self {
            Self::Interpreter => "ResourceInterpreterWebhookConfiguration",
            Self::Explorer => "ResourceExploringWebhookConfiguration",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use entourage_api::config::{explorer, interpreter};

    use super::*;

    #[test]
    fn every_operation_of_the_configurations_has_its_word_and_no_word_has_two() {
        for (contract, listed) in [
            (Contract::Interpreter, interpreter::OPERATIONS),
            (Contract::Explorer, explorer::OPERATIONS),
        ] {
            let words = WORDS
                .iter()
                .filter_map(|(operation, ..)| contract.word(*operation));
            let words: Vec<_> = words.collect();
            assert_eq!(BTreeSet::from_iter(&words).len(), words.len(), "{contract:?}");
            let listed: BTreeSet<_> = listed.iter().filter(|word| **word != "*").collect();
            assert_eq!(BTreeSet::from_iter(&words), listed, "{contract:?}");
            for word in words {
                let operation = contract.operation(word).unwrap();
                assert_eq!(contract.word(operation), Some(word));
            }
            assert_eq!(contract.operation("*"), None);
        }
        for operation in Operation::ALL.iter().chain([&Operation::Components]) {
            assert_eq!(WORDS.iter().filter(|row| row.0 == *operation).count(), 1);
        }
    }
}
