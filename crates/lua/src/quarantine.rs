//! Which objects a script is not run for again: those for which it reached a limit, until they change.
//!
//! Without it, an object that a script cannot cope with would cost the limit again with every look at it.

use std::collections::{BTreeMap, VecDeque};

use crate::error::ScriptError;

/// What a script was asked about: the objects, each in its version. Equal only if the script would be asked the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub String);

/// The objects that one script is kept from, by uid. Holds the latest `capacity` of them.
#[derive(Debug)]
pub struct Quarantine {
    capacity: usize,
    held: BTreeMap<String, (Version, ScriptError)>,
    order: VecDeque<String>,
}

impl Quarantine {
    /// An empty one.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            held: BTreeMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Why the script is not run for this version of the object, if so. Another version sets it free. Cost: O(log n).
    #[must_use]
    pub fn holds(&self, uid: &str, version: &Version) -> Option<&ScriptError> {
        let (held, why) = self.held.get(uid)?;
        (held == version).then_some(why)
    }

    /// Keeps the script from this version of the object. The oldest one is let go when there are too many.
    pub fn hold(&mut self, uid: &str, version: Version, why: ScriptError) {
        if self.held.insert(uid.to_owned(), (version, why)).is_none() {
            self.order.push_back(uid.to_owned());
        }
        while self.order.len() > self.capacity {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            self.held.remove(&oldest);
        }
    }

    /// How many objects are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why() -> ScriptError {
        ScriptError::Memory {
            script: "a".into(),
            line: None,
            bytes: 1,
        }
    }

    fn version(text: &str) -> Version {
        Version(text.into())
    }

    #[test]
    fn an_object_is_held_until_it_changes() {
        let mut quarantine = Quarantine::new(2);
        quarantine.hold("a", version("1"), why());
        assert_eq!(quarantine.holds("a", &version("1")), Some(&why()));
        assert_eq!(quarantine.holds("a", &version("2")), None);
        assert_eq!(quarantine.holds("b", &version("1")), None);
    }

    #[test]
    fn no_more_are_held_than_there_is_room_for() {
        let mut quarantine = Quarantine::new(2);
        for uid in ["a", "b", "b", "c"] {
            quarantine.hold(uid, version("1"), why());
        }
        assert_eq!(quarantine.len(), 2);
        assert!(quarantine.holds("a", &version("1")).is_none());
        assert!(quarantine.holds("c", &version("1")).is_some());
    }
}
