//! The served resources, and lookups among them.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use super::Resource;

/// All that is served now. A change of a CRD makes a new one; requests keep the one they began with.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    by_path: BTreeMap<(String, String, String), Arc<Resource>>,
    /// Groups with their versions, in the order of discovery: built-in ones first, then those of CRDs by name; the preferred
    /// version first.
    groups: Vec<(String, Vec<String>)>,
    /// Subresources that are no part of a kind, because another part of the process answers them: by group and version, the plural and
    /// the name. For discovery alone.
    connected: BTreeMap<(String, String), Vec<(&'static str, &'static str)>>,
}

impl Kinds {
    /// The resource behind a path.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The resource of a kind, as owner references and bodies name it.
    #[must_use]
    pub fn of_kind<'a>(&'a self, group: &'a str, version: &'a str, kind: &str) -> Option<&'a Arc<Resource>> {
        self.in_version(group, version)
            .find(|resource| resource.kind == kind)
    }

    /// The resources of a version, by plural.
    pub fn in_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.by_path
            .range((group.to_owned(), version.to_owned(), String::new())..)
            .take_while(move |((g, v, _), _)| g == group && v == version)
            .map(|(_, resource)| resource)
    }

    /// The resource whose objects are in a collection of the store, in the version that they are stored in, if it is
    /// served: any other version would prune what it does not know. O(resources).
    #[must_use]
    pub fn of_collection(&self, collection: &str) -> Option<&Arc<Resource>> {
        let is_stored = |resource: &Arc<Resource>| match &resource.custom {
            Some(custom) => custom.storage == resource.version,
            None => true,
        };
        let mut candidates = self.all().filter(|resource| resource.collection == collection);
        let first = candidates.next()?;
        if is_stored(first) {
            return Some(first);
        }
        candidates.find(|resource| is_stored(resource)).or(Some(first))
    }

    /// Every resource in every version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_path.values()
    }

    /// Groups with their versions, preferred first; the core group is `""`.
    #[must_use]
    pub fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }

    /// Has discovery list a subresource with those of a resource, as long as the resource is served.
    pub(crate) fn connect(&mut self, [group, version]: [&str; 2], plural: &'static str, name: &'static str) {
        let path = (group.to_owned(), version.to_owned());
        let all = self.connected.entry(path).or_default();
        if !all.contains(&(plural, name)) {
            all.push((plural, name));
        }
    }

    /// The subresources of a resource for discovery: its own, then those that are connected.
    pub(crate) fn subresources(&self, resource: &Resource) -> impl Iterator<Item = &'static str> {
        let path = (resource.group.clone(), resource.version.clone());
        let connected = self.connected.get(&path).into_iter().flatten();
        let connected = connected.filter(move |(plural, _)| *plural == resource.plural);
        let own = resource.subresources.iter().copied();
        own.chain(connected.map(|(_, name)| *name))
    }

    /// Removes the resources of a CRD, and with the last one their versions and their group. O(resources).
    pub fn remove_custom(&mut self, collection: &str) {
        let gone: Vec<_> = self
            .by_path
            .iter()
            .filter(|(_, resource)| resource.custom.is_some() && resource.collection == collection)
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            self.by_path.remove(&path);
            let (group, version, _) = path;
            let left = self.in_version(&group, &version).next().is_some();
            let Some(at) = self
                .groups
                .iter()
                .position(|(name, _)| *name == group)
                .filter(|_| !left)
            else {
                continue;
            };
            self.groups[at].1.retain(|known| *known != version);
            if self.groups[at].1.is_empty() {
                self.groups.remove(at);
            }
        }
    }

    /// True if the objects of a CRD with these names would be those of a built-in kind.
    #[must_use]
    pub fn is_builtin(&self, group: &str, plural: &str) -> bool {
        let mut all = self.by_path.values();
        all.any(|known| known.custom.is_none() && known.group == group && known.plural == plural)
    }

    /// Adds the resource of a CRD at its place in discovery: groups by name, versions by their priority. A built-in kind
    /// is not replaced.
    pub fn add_custom(&mut self, resource: Arc<Resource>) {
        if self.is_builtin(&resource.group, &resource.plural) {
            return;
        }
        let group = resource.group.clone();
        self.add(resource);
        let builtin = self
            .by_path
            .values()
            .any(|resource| resource.group == group && resource.custom.is_none());
        let Some(at) = self
            .groups
            .iter()
            .position(|(name, _)| *name == group)
            .filter(|_| !builtin)
        else {
            return;
        };
        let mut versions = self.groups.remove(at);
        versions.1.sort_by(|a, b| by_priority(a, b));
        let is_custom = |group: &str| {
            !self
                .by_path
                .values()
                .any(|resource| resource.group == group && resource.custom.is_none())
        };
        let place = self
            .groups
            .iter()
            .position(|(name, _)| *name > group && is_custom(name))
            .unwrap_or(self.groups.len());
        self.groups.insert(place, versions);
    }

    /// Adds one resource; its group and version appear with it.
    pub fn add(&mut self, resource: Arc<Resource>) {
        let (group, version) = (resource.group.clone(), resource.version.clone());
        match self.groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, versions)) if versions.contains(&version) => {}
            Some((_, versions)) => versions.push(version.clone()),
            None => self.groups.push((group.clone(), vec![version.clone()])),
        }
        self.by_path
            .insert((group, version, resource.plural.clone()), resource);
    }
}

/// `v2` before `v1` before `v2beta1` before `v1alpha1` before everything else by name. The first is preferred. Source:
/// `CompareKubeAwareVersionStrings` of k8s.io/apimachinery.
#[must_use]
pub fn by_priority(a: &str, b: &str) -> Ordering {
    match (parsed(a), parsed(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Stability, major, minor.
fn parsed(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().ok()?;
    let word = &rest[digits..];
    if word.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match word.strip_prefix("beta") {
        Some(minor) => (1, minor),
        None => (0, word.strip_prefix("alpha")?),
    };
    Some((stability, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_stability_first() {
        let mut versions = vec![
            "foo10",
            "v1alpha1",
            "v2beta1",
            "v10",
            "v1",
            "v3beta2",
            "foo1",
            "v11alpha2",
            "v2",
        ];
        versions.sort_by(|a, b| by_priority(a, b));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v3beta2",
                "v2beta1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }
}
