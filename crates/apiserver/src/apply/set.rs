//! Sets of fields, as `FieldsV1` holds them: a tree of steps, each either owned itself, or on the way to what is.

use std::collections::{BTreeMap, btree_map};

use serde_json::{Map, Value};

use super::element::Element;

/// A set of paths. Equal sets are equal values: there are no empty branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet(BTreeMap<Element, Node>);

/// The content of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    /// The path that ends here is in the set.
    member: bool,
    /// Paths that go on.
    below: FieldSet,
}

impl FieldSet {
    /// True if no path is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the path of this one step is in the set.
    #[must_use]
    pub fn has(&self, element: &Element) -> bool {
        self.0.get(element).is_some_and(|node| node.member)
    }

    /// The paths behind a step; `None` when there are none.
    #[must_use]
    pub fn below(&self, element: &Element) -> Option<&Self> {
        self.0
            .get(element)
            .map(|node| &node.below)
            .filter(|below| !below.is_empty())
    }

    /// Adds a step, as a `member` and with what is `below` it.
    pub fn add(&mut self, element: Element, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let node = self.0.entry(element).or_default();
        node.member |= member;
        node.below.union(below);
    }

    /// Adds the paths of another set. O(of the smaller one, by its logarithm).
    pub fn union(&mut self, mut other: Self) {
        if other.0.len() > self.0.len() {
            std::mem::swap(self, &mut other);
        }
        for (element, node) in other.0 {
            match self.0.entry(element) {
                btree_map::Entry::Vacant(slot) => {
                    slot.insert(node);
                }
                btree_map::Entry::Occupied(mut slot) => {
                    let here = slot.get_mut();
                    here.member |= node.member;
                    here.below.union(node.below);
                }
            }
        }
    }

    /// The paths that are here and not there. A path that is there does not take those behind it along.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let nodes = self.0.iter().filter_map(|(element, node)| {
            let Some(gone) = other.0.get(element) else {
                return Some((element.clone(), node.clone()));
            };
            let left = Node {
                member: node.member && !gone.member,
                below: node.below.difference(&gone.below),
            };
            left.holds().then(|| (element.clone(), left))
        });
        Self(nodes.collect())
    }

    /// Leaves the [`Self::difference`], without a copy of what stays.
    pub fn subtract(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.0.retain(|element, node| {
            let Some(gone) = other.0.get(element) else {
                return true;
            };
            node.member &= !gone.member;
            node.below.subtract(&gone.below);
            node.holds()
        });
    }

    /// The paths that are here and there.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let nodes = self.0.iter().filter_map(|(element, node)| {
            let there = other.0.get(element)?;
            let both = Node {
                member: node.member && there.member,
                below: node.below.intersection(&there.below),
            };
            both.holds().then(|| (element.clone(), both))
        });
        Self(nodes.collect())
    }

    /// Only the top-level steps that `keep` takes, with all behind them.
    pub fn retain(&mut self, mut keep: impl FnMut(&Element) -> bool) {
        self.0.retain(|element, _| keep(element));
    }

    /// The same with every step that `named` takes as a member. `named` gets the step and its context, which `descend` makes.
    #[must_use]
    pub fn with_members<C>(&self, context: &C, descend: &impl Fn(&C, &Element) -> (bool, C)) -> Self {
        let nodes = self.0.iter().map(|(element, node)| {
            let (named, inner) = descend(context, element);
            let node = Node {
                member: node.member || named && !node.below.is_empty(),
                below: node.below.with_members(&inner, descend),
            };
            (element.clone(), node)
        });
        Self(nodes.collect())
    }

    /// All paths as conflicts write them, in order.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(&mut String::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut String, paths: &mut Vec<String>) {
        // The members of one level come before what is behind any of them.
        for (element, _) in self.0.iter().filter(|(_, node)| node.member) {
            paths.push(format!("{prefix}{element}"));
        }
        for (element, node) in &self.0 {
            let length = prefix.len();
            prefix.push_str(&element.to_string());
            node.below.collect(prefix, paths);
            prefix.truncate(length);
        }
    }

    /// Reads `fieldsV1`; `None` when it is broken. Steps of an unknown kind are skipped.
    #[must_use]
    pub fn parse(value: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (key, value) in value.as_object()? {
            if key == "." {
                continue;
            }
            let Some(element) = Element::parse(key)? else {
                continue;
            };
            let fields = value.as_object()?;
            let below = Self::parse(value)?;
            let member = fields.is_empty() || fields.contains_key(".");
            set.add(element, member, below);
        }
        Some(set)
    }

    /// Writes `fieldsV1`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let fields = self.0.iter().map(|(element, node)| {
            let mut below = node.below.to_value();
            if let (true, Value::Object(fields)) = (node.member && !node.below.is_empty(), &mut below) {
                fields.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (element.to_key(), below)
        });
        Value::Object(fields.collect())
    }
}

impl Node {
    fn holds(&self) -> bool {
        self.member || !self.below.is_empty()
    }
}
