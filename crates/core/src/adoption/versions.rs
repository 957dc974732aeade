//! The versions of kinds in which a server is asked for their objects.

use std::collections::BTreeMap;

use crate::object::{Gvk, Str};

/// The version of each API group that a server prefers, by group.
pub type Preferred = BTreeMap<Str, Str>;

/// Kinds, each with its versions in the order in which a server is asked for them: the first one that it serves counts.
///
/// [`Gvk`]s that differ in the version alone are equal: a set of them would keep one version, whichever was the last.
#[derive(Clone, Debug, Default)]
pub struct Versions(BTreeMap<Gvk, Vec<Gvk>>);

impl Versions {
    /// The versions of bindings come first: the controllers write copies in them, and an older one could not express, and so
    /// would remove, fields that a copy has. Then the version that the server prefers, then the others. Cost: O(n log n).
    #[must_use]
    pub fn new(
        of_bindings: impl IntoIterator<Item = Gvk>,
        known: impl IntoIterator<Item = Gvk>,
        preferred: &Preferred,
    ) -> Self {
        let mut all = Self::default();
        all.extend(of_bindings);
        let known: Vec<Gvk> = known.into_iter().collect();
        let kinds: Vec<Gvk> = all.0.keys().chain(&known).cloned().collect();
        all.extend(kinds.into_iter().filter_map(|gvk| {
            let version = preferred.get(&gvk.group)?.clone();
            Some(Gvk { version, ..gvk })
        }));
        all.extend(known);
        all
    }

    /// Each kind, and its versions.
    pub fn iter(&self) -> impl Iterator<Item = (&Gvk, &[Gvk])> {
        self.0.iter().map(|(gvk, versions)| (gvk, versions.as_slice()))
    }

    fn extend(&mut self, all: impl IntoIterator<Item = Gvk>) {
        for gvk in all {
            let versions = self.0.entry(gvk.clone()).or_default();
            if versions.iter().all(|each| each.version != gvk.version) {
                versions.push(gvk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_binding_comes_first_and_none_is_lost() {
        let scaler = |version: &str| Gvk::new(&format!("autoscaling/{version}"), "HorizontalPodAutoscaler");
        let job = |version: &str| Gvk::new(&format!("batch/{version}"), "CronJob");
        let known = || {
            ["v1", "v2", "v2beta2"]
                .map(scaler)
                .into_iter()
                .chain(["v1", "v1beta1"].map(job))
        };
        let preferred = Preferred::from([("autoscaling".into(), "v2".into()), ("batch".into(), "v1".into())]);
        let scalers = |bindings: Vec<Gvk>| (bindings, scaler(""));
        let jobs = |bindings: Vec<Gvk>| (bindings, job(""));
        for ((bindings, kind), expected) in [
            (scalers(vec![]), vec!["v2", "v1", "v2beta2"]),
            (scalers(vec![scaler("v2")]), vec!["v2", "v1", "v2beta2"]),
            (scalers(vec![scaler("v1")]), vec!["v1", "v2", "v2beta2"]),
            (
                scalers(vec![scaler("v2beta2"), scaler("v1"), scaler("v2beta2")]),
                vec!["v2beta2", "v1", "v2"],
            ),
            (jobs(vec![]), vec!["v1", "v1beta1"]),
            (jobs(vec![job("v1beta1")]), vec!["v1beta1", "v1"]),
            (jobs(vec![job("v2alpha1")]), vec!["v2alpha1", "v1", "v1beta1"]),
        ] {
            let all = Versions::new(bindings.clone(), known(), &preferred);
            let found = all.iter().find(|(gvk, _)| **gvk == kind);
            let versions: Vec<&str> = found
                .into_iter()
                .flat_map(|(_, versions)| versions)
                .map(|gvk| &*gvk.version)
                .collect();
            assert_eq!(versions, expected, "{bindings:?}");
            assert_eq!(all.iter().count(), 2, "one entry for each kind");
        }
    }

    #[test]
    fn a_group_without_a_preferred_version_is_asked_for_as_known() {
        let gvk = Gvk::new("example.com/v1", "Example");
        let all = Versions::new([gvk], [], &Preferred::new());
        assert_eq!(all.iter().count(), 1);
        assert_eq!(all.iter().next().map(|(_, versions)| versions.len()), Some(1));
    }
}
