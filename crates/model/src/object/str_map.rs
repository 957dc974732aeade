//! A map from strings to strings in one allocation: the labels or annotations of an object.

use std::{collections::BTreeSet, fmt, mem, sync::LazyLock};

use entourage_api::keys::{annotation, label};
use serde::{Serialize, Serializer};

use super::Str;

/// A map from strings to strings, sorted by key. It is meant for a few entries: an insertion costs O(entries), a search
/// O(log entries).
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StrMap(Vec<(Str, Str)>);

/// A reference to an entry.
type Entry<'a> = (&'a Str, &'a Str);

/// The entries of a [`StrMap`], by key.
type Iter<'a> = std::iter::Map<std::slice::Iter<'a, (Str, Str)>, fn(&'a (Str, Str)) -> Entry<'a>>;

impl StrMap {
    /// An empty map. It allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Str> {
        Some(&self.0[self.position(key).ok()?].1)
    }

    /// True if it has the key.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_ok()
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if it has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, by key.
    pub fn iter(&self) -> Iter<'_> {
        self.into_iter()
    }

    /// The keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &Str> {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, by key.
    pub fn values(&self) -> impl Iterator<Item = &Str> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Sets the value of a key, and returns the one that it had.
    pub fn insert(&mut self, key: Str, value: Str) -> Option<Str> {
        match self.position(&key) {
            Ok(at) => Some(mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Str> {
        let at = self.position(key).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Keeps only the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Str, &Str) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(each, _)| (**each).cmp(key))
    }
}

/// Of several entries with one key the last one counts.
impl FromIterator<(Str, Str)> for StrMap {
    fn from_iter<I: IntoIterator<Item = (Str, Str)>>(entries: I) -> Self {
        let mut all: Vec<_> = entries.into_iter().collect();
        if !all.is_sorted_by(|one, next| one.0 < next.0) {
            all.sort_by(|one, next| one.0.cmp(&next.0));
            all.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    mem::swap(later, kept);
                }
                same
            });
        }
        all.shrink_to_fit();
        Self(all)
    }
}

impl<const N: usize> From<[(Str, Str); N]> for StrMap {
    fn from(entries: [(Str, Str); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl Extend<(Str, Str)> for StrMap {
    fn extend<I: IntoIterator<Item = (Str, Str)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl IntoIterator for StrMap {
    type Item = (Str, Str);
    type IntoIter = std::vec::IntoIter<(Str, Str)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a StrMap {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

impl fmt::Debug for StrMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl Serialize for StrMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

/// A key of a label or annotation. Those of this project and of Karmada, which most objects of a hub have, are shared between all
/// objects. Cost: O(log keys).
#[must_use]
pub fn shared_key(text: &str) -> Str {
    static KEYS: LazyLock<BTreeSet<Str>> = LazyLock::new(|| {
        let all = label::ALL.iter().chain(annotation::ALL);
        all.map(|(_, key)| Str::from(*key)).collect()
    });
    KEYS.get(text).cloned().unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// One change of a map.
    #[derive(Clone, Debug)]
    enum Change {
        Insert(u8, u8),
        Remove(u8),
        Retain(u8),
        Extend(Vec<(u8, u8)>),
        Collect(Vec<(u8, u8)>),
    }

    fn change() -> impl Strategy<Value = Change> {
        let key = 0..6_u8;
        let entries = prop::collection::vec((0..6_u8, any::<u8>()), 0..8);
        prop_oneof![
            (key.clone(), any::<u8>()).prop_map(|(key, value)| Change::Insert(key, value)),
            key.clone().prop_map(Change::Remove),
            key.prop_map(Change::Retain),
            entries.clone().prop_map(Change::Extend),
            entries.prop_map(Change::Collect),
        ]
    }

    fn text(number: u8) -> Str {
        number.to_string().into()
    }

    fn texts(entries: Vec<(u8, u8)>) -> impl Iterator<Item = (Str, Str)> {
        entries.into_iter().map(|(key, value)| (text(key), text(value)))
    }

    proptest! {
        #[test]
        fn it_is_a_map_as_the_one_of_the_standard_library(changes in prop::collection::vec(change(), 0..20)) {
            let (mut map, mut model) = (StrMap::new(), BTreeMap::<Str, Str>::new());
            for change in changes {
                match change {
                    Change::Insert(key, value) => prop_assert_eq!(
                        map.insert(text(key), text(value)), model.insert(text(key), text(value))
                    ),
                    Change::Remove(key) => prop_assert_eq!(map.remove(&text(key)), model.remove(&text(key))),
                    Change::Retain(below) => {
                        map.retain(|key, _| **key < *text(below));
                        model.retain(|key, _| **key < *text(below));
                    }
                    Change::Extend(entries) => {
                        map.extend(texts(entries.clone()));
                        model.extend(texts(entries));
                    }
                    Change::Collect(entries) => {
                        map = texts(entries.clone()).collect();
                        model = texts(entries).collect();
                    }
                }
                prop_assert!(map.iter().eq(model.iter()));
                prop_assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                for key in (0..6).map(text) {
                    prop_assert_eq!(map.get(&key), model.get(&key));
                    prop_assert_eq!(map.contains_key(&key), model.contains_key(&key));
                }
                prop_assert_eq!(serde_json::to_string(&map).ok(), serde_json::to_string(&model).ok());
                prop_assert_eq!(format!("{map:?}"), format!("{model:?}"));
            }
        }
    }

    #[test]
    fn known_keys_are_shared() {
        assert!(Str::ptr_eq(&shared_key(label::HUB), &shared_key(label::HUB)));
        assert_eq!(&*shared_key("app"), "app");
    }
}
