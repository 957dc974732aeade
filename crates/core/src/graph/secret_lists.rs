//! The allow-lists of Secrets that depend on labels of Clusters: those that an edit of such labels can change.

use std::collections::BTreeSet;

use entourage_api::keys::annotation;

use crate::{
    allowed_clusters::AllowedClusters,
    object::{Meta, NamespacedName},
};

/// The owners of such lists: a Secret by its name, a namespace by an empty name.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecretLists {
    by_labels: BTreeSet<NamespacedName>,
}

impl SecretLists {
    /// Notes the list of an owner; `None` if it is gone. Cost: O(length + log lists).
    pub(crate) fn set(&mut self, owner: NamespacedName, meta: Option<&Meta>) {
        let list = meta.and_then(|meta| meta.annotation(annotation::SECRETS_TO));
        let reads_labels = |text| AllowedClusters::read(text).is_ok_and(|list| list.reads_labels());
        match list.is_some_and(reads_labels) {
            true => self.by_labels.insert(owner),
            false => self.by_labels.remove(&owner),
        };
    }

    /// The owners of lists that depend on labels.
    pub(crate) fn by_labels(&self) -> impl Iterator<Item = &NamespacedName> {
        self.by_labels.iter()
    }
}
