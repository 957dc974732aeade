//! The referrers of a template: a sorted list of a few, a B-tree of many.
//!
//! Most dependencies have one referrer, for which a node of a B-tree, with room for eleven, would take almost 1 KB.

use std::collections::{BTreeSet, btree_set};

use crate::object::ResourceId;

/// The number of referrers up to which they are a list.
const FEW: usize = 8;

/// Referrers, sorted, each once.
#[derive(Clone, Debug)]
pub struct Referrers(Form);

#[derive(Clone, Debug)]
enum Form {
    /// At most [`FEW`].
    List(Vec<ResourceId>),
    /// More than [`FEW`], now or earlier.
    Tree(BTreeSet<ResourceId>),
}

impl Referrers {
    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::List(list) => list.is_empty(),
            Form::Tree(tree) => tree.is_empty(),
        }
    }

    /// True if this one is among them. Cost: O(log referrers).
    #[must_use]
    pub fn contains(&self, id: &ResourceId) -> bool {
        match &self.0 {
            Form::List(list) => list.binary_search(id).is_ok(),
            Form::Tree(tree) => tree.contains(id),
        }
    }

    /// Adds one, unless it is there. Cost: O(log referrers).
    pub(crate) fn insert(&mut self, id: ResourceId) {
        match &mut self.0 {
            Form::List(list) => match list.binary_search(&id) {
                Ok(_) => {}
                Err(at) if list.len() < FEW => {
                    list.reserve_exact(1);
                    list.insert(at, id);
                }
                Err(_) => {
                    let mut tree: BTreeSet<ResourceId> = std::mem::take(list).into_iter().collect();
                    tree.insert(id);
                    self.0 = Form::Tree(tree);
                }
            },
            Form::Tree(tree) => {
                tree.insert(id);
            }
        }
    }

    /// Removes one, if it is there. Cost: O(log referrers).
    pub(crate) fn remove(&mut self, id: &ResourceId) {
        match &mut self.0 {
            Form::List(list) => {
                if let Ok(at) = list.binary_search(id) {
                    list.remove(at);
                }
            }
            Form::Tree(tree) => {
                tree.remove(id);
                // The memory is freed.
                if tree.is_empty() {
                    *self = Self::default();
                }
            }
        }
    }

    /// The referrers, in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        match &self.0 {
            Form::List(list) => Iter::List(list.iter()),
            Form::Tree(tree) => Iter::Tree(tree.iter()),
        }
    }
}

impl PartialEq for Referrers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Referrers {}

impl Default for Referrers {
    fn default() -> Self {
        Self(Form::List(Vec::new()))
    }
}

impl<'a> IntoIterator for &'a Referrers {
    type Item = &'a ResourceId;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The referrers, in order.
#[derive(Debug)]
pub enum Iter<'a> {
    /// Of a list.
    List(std::slice::Iter<'a, ResourceId>),
    /// Of a B-tree.
    Tree(btree_set::Iter<'a, ResourceId>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a ResourceId;

    fn next(&mut self) -> Option<&'a ResourceId> {
        match self {
            Self::List(list) => list.next(),
            Self::Tree(tree) => tree.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::Gvk;

    proptest! {
        #[test]
        fn a_list_and_a_tree_are_a_set_in_order(changes in prop::collection::vec((any::<bool>(), 0..3 * FEW), 0..100)) {
            let id = |at: usize| ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", &format!("c{at}"));
            let (mut referrers, mut set) = (Referrers::default(), BTreeSet::new());
            for (adds, at) in changes {
                if adds {
                    referrers.insert(id(at));
                    set.insert(id(at));
                } else {
                    referrers.remove(&id(at));
                    set.remove(&id(at));
                }
                prop_assert!(referrers.iter().eq(set.iter()));
                prop_assert_eq!(referrers.is_empty(), set.is_empty());
                prop_assert_eq!(referrers.contains(&id(at)), adds);
                let mut again = Referrers::default();
                set.iter().cloned().for_each(|id| again.insert(id));
                prop_assert_eq!(&referrers, &again);
            }
        }
    }
}
