//! Links: the dependencies of templates and their referrers, in both directions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use super::{
    closure::{ids, kept},
    referrers::Referrers,
};
use crate::{interpreter::references::DependencyReference, object::ResourceId};

/// The links of one template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The template's own references: by name, and the matches of its selectors; sorted. Without those to other namespaces that
    /// do not consent. Kept after the template is deleted until a GET has proved its absence.
    pub direct: Arc<[DependencyReference]>,
    /// The dependencies that are propagated with the template: its own, theirs, and so on; sorted, each once. Kept after the
    /// template is deleted, until its copies are. Invariant: see `graph/closure.rs`.
    pub references: Arc<[DependencyReference]>,
    /// True if the closure is larger than what was followed.
    pub is_cut: bool,
    /// The templates that have this one among their references: the reverse direction of `references`.
    pub referrers: Referrers,
    /// The templates that no longer have this one among their references, while copies of them may still need it.
    pub stale_referrers: BTreeSet<ResourceId>,
    /// The earlier dependencies of this template: the reverse direction of `stale_referrers`.
    pub stale_dependencies: BTreeSet<ResourceId>,
}

impl Links {
    /// True if the template has no links at all.
    fn is_empty(&self) -> bool {
        self.direct.is_empty() && self.references.is_empty() && !self.is_cut && !self.holds()
    }

    /// True if another template has, or had, this one among its references, or this one has stale dependencies.
    pub(crate) fn holds(&self) -> bool {
        self.is_held() || !self.stale_dependencies.is_empty()
    }

    /// True if another template has, or had, this one among its references.
    pub(crate) fn is_held(&self) -> bool {
        !self.referrers.is_empty() || !self.stale_referrers.is_empty()
    }
}

/// The change of a template's closure.
#[derive(Debug)]
pub(crate) struct Reached {
    /// The dependencies that it reached before, and does not any more.
    pub(crate) lost: Vec<ResourceId>,
    /// The dependencies that it did not reach before.
    pub(crate) gained: Vec<ResourceId>,
}

/// The links of all templates that have any.
#[derive(Debug, Default)]
pub(crate) struct LinkTable {
    links: BTreeMap<ResourceId, Links>,
}

/// The links of a template that has none.
static NONE: LazyLock<Links> = LazyLock::new(Links::default);

impl LinkTable {
    /// The links of a template. Cost: O(log templates).
    pub(crate) fn of(&self, id: &ResourceId) -> &Links {
        self.links.get(id).unwrap_or(&NONE)
    }

    /// Changes the links of a template. Cost: O(log templates).
    pub(crate) fn change<T>(&mut self, id: &ResourceId, change: impl FnOnce(&mut Links) -> T) -> T {
        if let Some(links) = self.links.get_mut(id) {
            let result = change(links);
            if links.is_empty() {
                self.links.remove(id);
            }
            return result;
        }
        let mut links = Links::default();
        let result = change(&mut links);
        if !links.is_empty() {
            self.links.insert(id.clone(), links);
        }
        result
    }

    /// Updates the references of a template, and the reverse direction, to its closure. Returns the difference, or `None` if
    /// there is none. Cost: O(its closure).
    pub(crate) fn reach(&mut self, id: &ResourceId) -> Option<Reached> {
        let (references, is_cut) = self.closure(id);
        let held = self.of(id).references.clone();
        let references = match is_cut {
            true => kept(&held, &references),
            false => references,
        };
        if *held == *references {
            if self.of(id).is_cut != is_cut {
                self.change(id, |links| links.is_cut = is_cut);
            }
            return None;
        }
        let (before, after) = (ids(&held), ids(&references));
        let lost: Vec<ResourceId> = before.difference(&after).cloned().collect();
        let gained: Vec<ResourceId> = after.difference(&before).cloned().collect();
        self.change(id, |links| {
            (links.references, links.is_cut) = (references, is_cut);
            links.stale_dependencies.extend(lost.iter().cloned());
            links.stale_dependencies.retain(|each| !after.contains(each));
        });
        for dependency in &lost {
            self.change(dependency, |links| {
                links.referrers.remove(id);
                links.stale_referrers.insert(id.clone());
            });
        }
        for dependency in &gained {
            self.change(dependency, |links| {
                links.stale_referrers.remove(id);
                links.referrers.insert(id.clone());
            });
        }
        Some(Reached { lost, gained })
    }

    /// Copies of a template may still need this dependency, from before this process began.
    pub(crate) fn hold(&mut self, dependency: &ResourceId, referrer: &ResourceId) {
        self.change(dependency, |links| links.stale_referrers.insert(referrer.clone()));
        self.change(referrer, |links| {
            links.stale_dependencies.insert(dependency.clone())
        });
    }

    /// Copies of a template no longer need its stale dependencies. Returns these. Cost: O(their number).
    pub(crate) fn release(&mut self, id: &ResourceId) -> BTreeSet<ResourceId> {
        let released = self.change(id, |links| std::mem::take(&mut links.stale_dependencies));
        for dependency in &released {
            self.change(dependency, |links| links.stale_referrers.remove(id));
        }
        released
    }

    /// A template was forgotten, and its links with it. Returns its dependencies, also the stale ones. Cost: O(their number).
    pub(crate) fn forget(&mut self, id: &ResourceId) -> Vec<ResourceId> {
        let links = self.links.remove(id).unwrap_or_default();
        let references = links.references.iter().map(|each| each.id.clone());
        let all: Vec<ResourceId> = references.chain(links.stale_dependencies).collect();
        for dependency in &all {
            self.change(dependency, |links| {
                links.referrers.remove(id);
                links.stale_referrers.remove(id);
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::object::Gvk;

    const TEMPLATES: usize = 6;

    fn id(at: usize) -> ResourceId {
        ResourceId::new(Gvk::new("v1", "ConfigMap"), "default", &format!("c{at}"))
    }

    fn all() -> impl Iterator<Item = ResourceId> {
        (0..TEMPLATES).map(id)
    }

    fn refers(table: &mut LinkTable, from: usize, to: &[usize]) {
        let direct: BTreeSet<usize> = to.iter().copied().filter(|at| *at != from).collect();
        let reference = |at| DependencyReference {
            id: id(at),
            optional: false,
        };
        table.change(&id(from), |links| {
            links.direct = direct.into_iter().map(reference).collect();
        });
        let changed = std::iter::once(id(from)).chain(table.of(&id(from)).referrers.iter().cloned());
        for each in changed.collect::<Vec<_>>() {
            table.reach(&each);
        }
    }

    proptest! {
        /// Both directions agree, and nothing is kept of a template without links.
        #[test]
        fn both_directions_agree_after_any_order_of_changes(
            changes in prop::collection::vec((0..4, 0..TEMPLATES, prop::collection::vec(0..TEMPLATES, 0..4)), 1..40),
        ) {
            let mut table = LinkTable::default();
            for (kind, at, to) in changes {
                match kind {
                    0 | 1 => refers(&mut table, at, &to),
                    2 => drop(table.release(&id(at))),
                    _ if !table.of(&id(at)).is_held() => drop(table.forget(&id(at))),
                    _ => {
                        let is_known = |to: &&usize| !table.of(&id(**to)).referrers.contains(&id(at));
                        let to: Vec<usize> = to.iter().filter(is_known).copied().collect();
                        to.iter().for_each(|to| table.hold(&id(*to), &id(at)));
                    }
                }
                for (one, other) in all().flat_map(|one| all().map(move |other| (one.clone(), other))) {
                    let (from, to) = (table.of(&one), table.of(&other));
                    let references = from.references.iter().any(|each| each.id == other);
                    prop_assert_eq!(references, to.referrers.contains(&one));
                    prop_assert_eq!(from.stale_dependencies.contains(&other), to.stale_referrers.contains(&one));
                    prop_assert!(!(references && from.stale_dependencies.contains(&other)));
                }
                prop_assert!(!table.links.values().any(Links::is_empty));
            }
        }
    }
}
