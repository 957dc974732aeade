//! The copies of a template, by member: a sorted list, because most templates have few.
//!
//! A node of a B-tree has room for eleven copies, which would take several KB for each template.

use super::CopyState;
use crate::object::Str;

/// The state of a template's copies, by member, in the order of the members' names.
#[derive(Clone, Debug, Default)]
pub struct Copies(Vec<(Str, Box<CopyState>)>);

impl Copies {
    /// The state on a member. Cost: O(log members).
    #[must_use]
    pub fn get(&self, cluster: &str) -> Option<&CopyState> {
        self.find(cluster).ok().map(|at| &*self.0[at].1)
    }

    /// As [`Self::get`], to be changed.
    pub fn get_mut(&mut self, cluster: &str) -> Option<&mut CopyState> {
        self.find(cluster).ok().map(|at| &mut *self.0[at].1)
    }

    /// True if there is a state for the member. Cost: O(log members).
    #[must_use]
    pub fn contains_key(&self, cluster: &str) -> bool {
        self.find(cluster).is_ok()
    }

    /// The state on a member, which begins as the default. Cost: O(log members), and for a new one a move of as many pointers as
    /// there are members behind it.
    pub fn get_or_default(&mut self, cluster: Str) -> &mut CopyState {
        let at = self.find(&cluster).unwrap_or_else(|at| {
            self.0.insert(at, (cluster, Box::default()));
            at
        });
        &mut self.0[at].1
    }

    /// Removes the state of a member and returns it. Cost: as [`Self::get_or_default`].
    pub fn remove(&mut self, cluster: &str) -> Option<CopyState> {
        self.find(cluster).ok().map(|at| *self.0.remove(at).1)
    }

    /// The members. Cost: O(members).
    pub fn keys(&self) -> impl Iterator<Item = &Str> {
        self.0.iter().map(|(cluster, _)| cluster)
    }

    /// The states. Cost: O(members).
    pub fn values(&self) -> impl Iterator<Item = &CopyState> {
        self.0.iter().map(|(_, state)| &**state)
    }

    /// The members with their states. Cost: O(members).
    pub fn iter(&self) -> impl Iterator<Item = (&Str, &CopyState)> {
        self.0.iter().map(|(cluster, state)| (cluster, &**state))
    }

    /// As [`Self::iter`], to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&Str, &mut CopyState)> {
        self.0
            .iter_mut()
            .map(|(cluster, state)| (&*cluster, &mut **state))
    }

    /// The number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, cluster: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| (**name).cmp(cluster))
    }
}

impl FromIterator<(Str, CopyState)> for Copies {
    fn from_iter<T: IntoIterator<Item = (Str, CopyState)>>(states: T) -> Self {
        let mut copies = Self::default();
        for (cluster, state) in states {
            *copies.get_or_default(cluster) = state;
        }
        copies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Time;

    fn since(millis: i64) -> CopyState {
        CopyState {
            wanted_since: Some(Time(millis)),
            ..CopyState::default()
        }
    }

    #[test]
    fn copies_are_found_changed_and_removed_by_their_member_and_stay_in_order() {
        let mut copies: Copies = [("m2", 2), ("m3", 3), ("m1", 1), ("m3", 4)]
            .map(|(cluster, millis)| (Str::from(cluster), since(millis)))
            .into_iter()
            .collect();
        let wanted = |copies: &Copies| -> Vec<(String, Option<i64>)> {
            let each = copies.iter();
            each.map(|(cluster, state)| (cluster.to_string(), state.wanted_since.map(|time| time.0)))
                .collect()
        };
        let at = |cluster: &str, millis| (cluster.to_owned(), Some(millis));
        assert_eq!(wanted(&copies), [at("m1", 1), at("m2", 2), at("m3", 4)]);
        assert_eq!(copies.len(), 3);
        assert!(copies.contains_key("m2") && !copies.contains_key("m4"));

        copies.get_or_default("m2".into()).wanted_since = Some(Time(5));
        assert_eq!(copies.get_or_default("m0".into()).wanted_since, None);
        copies.get_mut("m0").unwrap().wanted_since = Some(Time(6));
        assert_eq!(
            copies.remove("m1").and_then(|state| state.wanted_since),
            Some(Time(1))
        );
        assert!(copies.remove("m1").is_none() && copies.get("m1").is_none());
        assert_eq!(wanted(&copies), [at("m0", 6), at("m2", 5), at("m3", 4)]);
        assert!(!copies.is_empty());
    }
}
