//! The differences between two states of an object, as sets of fields; and all fields of one state.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    element::Element,
    set::FieldSet,
    shape::{Form, Shape, entries, items},
};

/// The fields in which two states differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Only in the new state.
    pub added: FieldSet,
    /// In both, with another value.
    pub modified: FieldSet,
    /// Only in the old state.
    pub removed: FieldSet,
}

/// The change of a path itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathChange {
    Kept,
    Added,
    Modified,
    Removed,
}

/// Compares two states. O(size of both, by its logarithm).
#[must_use]
pub fn compare(shape: &Shape, old: &Map<String, Value>, new: &Map<String, Value>) -> Comparison {
    let mut found = Comparison::default();
    maps(shape, old, new, &mut found);
    found
}

impl Comparison {
    /// True if nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The fields that are new or different.
    #[must_use]
    pub fn changed(&self) -> FieldSet {
        let mut changed = self.modified.clone();
        changed.union(self.added.clone());
        changed
    }

    fn put(&mut self, element: &Element, change: PathChange, below: Self) {
        let Self {
            added,
            modified,
            removed,
        } = below;
        for (set, below, here) in [
            (&mut self.added, added, PathChange::Added),
            (&mut self.modified, modified, PathChange::Modified),
            (&mut self.removed, removed, PathChange::Removed),
        ] {
            if change == here || !below.is_empty() {
                set.add(element.clone(), change == here, below);
            }
        }
    }
}

/// At least one of the two is there.
fn walk(shape: &Shape, old: Option<&Value>, new: Option<&Value>) -> (PathChange, Comparison) {
    let mut found = Comparison::default();
    let (before, after) = (old.map(|old| shape.form(old)), new.map(|new| shape.form(new)));
    let changed = match (old, new) {
        (None, _) => PathChange::Added,
        (_, None) => PathChange::Removed,
        (Some(old), Some(new)) if old == new => return (PathChange::Kept, found),
        _ => PathChange::Kept,
    };
    match (before, after) {
        (Some(before), Some(after)) if !before.same(&after) => {
            inside(shape, &before, old, None, &mut found);
            inside(shape, &after, None, new, &mut found);
            (PathChange::Modified, found)
        }
        (before, after) => match after.or(before) {
            Some(form) if inside(shape, &form, old, new, &mut found) => (changed, found),
            // A field as a whole: it is there, it went, or it is another one now.
            _ if changed == PathChange::Kept => (PathChange::Modified, found),
            _ => (changed, found),
        },
    }
}

/// Compares what is inside a value that has fields of its own; `false`: it has none, or is empty on both sides.
fn inside(
    shape: &Shape,
    form: &Form,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Comparison,
) -> bool {
    match form {
        Form::Map => {
            let (old, new) = (entries(old), entries(new));
            maps(shape, old, new, found);
            !(old.is_empty() && new.is_empty())
        }
        Form::List { items: shape, keys } => {
            let (old, new) = (items(old), items(new));
            let (before, after) = (indexed(shape, keys, old), indexed(shape, keys, new));
            for (element, olds) in &before {
                let news = after.get(element).map_or(&[][..], Vec::as_slice);
                list_item(shape, element, olds, news, found);
            }
            for (element, news) in after.iter().filter(|(element, _)| !before.contains_key(*element)) {
                list_item(shape, element, &[], news, found);
            }
            !(old.is_empty() && new.is_empty())
        }
        Form::Scalar | Form::AtomicList | Form::AtomicMap => false,
    }
}

fn maps(shape: &Shape, old: &Map<String, Value>, new: &Map<String, Value>, found: &mut Comparison) {
    let gone_or_kept = old.iter().map(|(name, value)| (name, Some(value), new.get(name)));
    let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
    let added = added.map(|(name, value)| (name, None, Some(value)));
    for (name, old, new) in gone_or_kept.chain(added).filter(|(_, old, new)| old != new) {
        if let Some((inner, _)) = shape.field(name) {
            let (change, below) = walk(&inner, old, new);
            found.put(&Element::field(name), change, below);
        }
    }
}

/// Items by their step. Items without one have no owner; validation refuses them.
fn indexed<'a>(shape: &Shape, keys: &[String], items: &'a [Value]) -> BTreeMap<Element, Vec<&'a Value>> {
    let mut found: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = shape.element(keys, item) {
            found.entry(element).or_default().push(item);
        }
    }
    found
}

/// Compares the items of one key. Items that are there twice count as one field.
fn list_item(shape: &Shape, element: &Element, old: &[&Value], new: &[&Value], found: &mut Comparison) {
    let one = |items: &[&'_ Value]| items.len() <= 1;
    let (change, below) = match (old, new) {
        _ if one(old) && one(new) => walk(shape, old.first().copied(), new.first().copied()),
        _ if old.len() >= 2 && new.len() >= 2 => {
            let change = if old == new {
                PathChange::Kept
            } else {
                PathChange::Modified
            };
            (change, Comparison::default())
        }
        (_, [first]) => {
            let (change, below) = walk(shape, None, Some(first));
            found.put(element, change, below);
            (PathChange::Removed, Comparison::default())
        }
        ([first], _) => {
            let (change, below) = walk(shape, Some(first), None);
            found.put(element, change, below);
            (PathChange::Added, Comparison::default())
        }
        (_, []) => (PathChange::Removed, Comparison::default()),
        _ => (PathChange::Added, Comparison::default()),
    };
    found.put(element, change, below);
}

/// All fields of a value, as an applier owns them: leaves, list items, and empty maps.
#[must_use]
pub fn fields(shape: &Shape, value: &Value) -> FieldSet {
    leaves(shape, value).1
}

/// Returns the fields in the value, and true if the value itself is one.
fn leaves(shape: &Shape, value: &Value) -> (bool, FieldSet) {
    let mut set = FieldSet::default();
    match shape.form(value) {
        Form::Map => {
            for (name, value) in entries(Some(value)) {
                let Some((inner, declared)) = shape.field(name) else {
                    continue;
                };
                let (leaf, below) = leaves(&inner, value);
                let empty = value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
                set.add(Element::field(name), leaf || empty || !declared, below);
            }
            (false, set)
        }
        Form::List { items: shape, keys } => {
            for item in items(Some(value)) {
                if let Ok(element) = shape.element(&keys, item) {
                    let (_, below) = leaves(&shape, item);
                    set.add(element, true, below);
                }
            }
            (false, set)
        }
        Form::Scalar | Form::AtomicList | Form::AtomicMap => (true, set),
    }
}
