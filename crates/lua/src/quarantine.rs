//! The objects that a script is not run for again: those for which it reached a limit, until they change.
//!
//! Without it, an object that is too much for a script would cost the limit again with every read of it. Nothing of an object is
//! stored but its uid and its version.

use std::collections::BTreeMap;

use crate::error::ScriptError;

/// The version of a question: the objects, each in its version. Equal only for the same question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub String);

/// The objects that one script is not run for, by uid: at most `capacity`, those asked about last.
#[derive(Debug)]
pub struct Quarantine {
    capacity: usize,
    held: BTreeMap<String, Held>,
    /// Uids by the time of their last question; as many as in `held`.
    order: BTreeMap<u64, String>,
    next: u64,
}

#[derive(Debug)]
struct Held {
    version: Version,
    why: ScriptError,
    at: u64,
}

impl Quarantine {
    /// Creates an empty quarantine.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            held: BTreeMap::new(),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// The error for which the script is not run for this version of the object, or `None`. Another version releases the object.
    /// Cost: O(log n).
    pub fn holds(&mut self, uid: &str, version: &Version) -> Option<ScriptError> {
        let at = self.next;
        let held = self.held.get_mut(uid)?;
        if held.version != *version {
            return None;
        }
        self.order.remove(&held.at);
        self.order.insert(at, uid.to_owned());
        held.at = at;
        self.next += 1;
        Some(held.why.clone())
    }

    /// Quarantines this version of the object. The one not asked about for longest is dropped if there are too many.
    pub fn hold(&mut self, uid: &str, version: Version, why: ScriptError) {
        let at = self.next;
        self.next += 1;
        let held = Held { version, why, at };
        if let Some(before) = self.held.insert(uid.to_owned(), held) {
            self.order.remove(&before.at);
        }
        self.order.insert(at, uid.to_owned());
        while self.held.len() > self.capacity {
            let Some((_, oldest)) = self.order.pop_first() else {
                break;
            };
            self.held.remove(&oldest);
        }
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// True if there are none.
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

    fn of(capacity: usize, uids: &[&str]) -> Quarantine {
        let mut quarantine = Quarantine::new(capacity);
        for uid in uids {
            quarantine.hold(uid, version("1"), why());
        }
        quarantine
    }

    #[test]
    fn an_object_is_held_until_it_changes() {
        let mut quarantine = of(2, &["a"]);
        assert_eq!(quarantine.holds("a", &version("1")), Some(why()));
        assert_eq!(quarantine.holds("a", &version("2")), None);
        assert_eq!(quarantine.holds("b", &version("1")), None);
    }

    #[test]
    fn no_more_are_held_than_there_is_room_for_and_the_last_asked_about_stay() {
        let mut quarantine = of(2, &["a", "b", "b"]);
        assert!(quarantine.holds("a", &version("1")).is_some());
        quarantine.hold("c", version("1"), why());
        assert_eq!((quarantine.len(), quarantine.order.len()), (2, 2));
        assert!(quarantine.holds("b", &version("1")).is_none());
        assert!(quarantine.holds("a", &version("1")).is_some());
        assert!(quarantine.holds("c", &version("1")).is_some());
    }
}
