//! Role-based access control: what roles grant, and to whom bindings give them.
//!
//! The four collections are kept as an index that follows the store's events. A request costs the bindings of its user
//! and their rules, never a scan of the collections.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

use serde::Deserialize;
use serde_json::Value;

use super::User;
use crate::store::{Entry, Happened, Revision, Store};

#[cfg(test)]
mod tests;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Collections in the store, in the order in which the index keeps their revisions.
const COLLECTIONS: [&str; 4] = [
    "rbac.authorization.k8s.io/roles",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/rolebindings",
    "rbac.authorization.k8s.io/clusterrolebindings",
];

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    /// Verbs, `*` for all.
    pub verbs: Vec<String>,
    /// API groups, `*` for all.
    pub api_groups: Vec<String>,
    /// Resources, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// Names; none: all.
    pub resource_names: Vec<String>,
    /// Paths, `*` at the end stands for anything.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}

/// The requested access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    /// Verb.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Resource.
    pub resource: &'a str,
    /// Subresource, empty for the resource.
    pub subresource: &'a str,
    /// Name, empty for none in particular.
    pub name: &'a str,
    /// Namespace, empty for the whole cluster.
    pub namespace: &'a str,
    /// Path, when it is not about resources.
    pub path: Option<&'a str>,
}

/// The role a binding gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Its name.
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Binding {
    /// Empty for a ClusterRoleBinding.
    namespace: String,
    name: String,
    subjects: Vec<Subject>,
    role: RoleRef,
}

/// The key of a subject: users and service accounts by user name, groups by name.
type Key = (bool, String);

/// The rules that RBAC grants at one revision of the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    roles: BTreeMap<String, Arc<Vec<Rule>>>,
    cluster_roles: BTreeMap<String, Arc<Vec<Rule>>>,
    bindings: BTreeMap<(bool, String), Arc<Binding>>,
    subjects: BTreeMap<Key, BTreeSet<(bool, String)>>,
}

/// The index and how far it has come.
#[derive(Debug, Default)]
pub(super) struct Cache(RwLock<(Revision, [Revision; 4], Arc<Index>)>);

impl Cache {
    /// The index at the store's revision. O(1) when nothing was written since, otherwise O(events of the four collections since).
    pub(super) fn current(&self, store: &Store) -> Arc<Index> {
        let now = store.revision();
        {
            let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if state.0 == now {
                return state.2.clone();
            }
        }
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if state.0 >= now {
            return state.2.clone();
        }
        let (_, at, index) = &mut *state;
        for (which, collection) in COLLECTIONS.iter().enumerate() {
            if at[which] > 0
                && let Ok((events, reached)) = store.events(collection, "", at[which], 0)
            {
                at[which] = reached;
                if !events.is_empty() {
                    let index = Arc::make_mut(index);
                    for event in events {
                        index.change(which, &event.entry, event.happened != Happened::Deleted);
                    }
                }
                continue;
            }
            let page = store.list(collection, "", None, 0);
            at[which] = page.revision;
            let index = Arc::make_mut(index);
            index.forget(which);
            for entry in &page.entries {
                index.change(which, entry, true);
            }
        }
        // A store with a file shows events after they are committed: those not shown yet are read again.
        state.0 = state.1.iter().copied().min().unwrap_or_default();
        state.2.clone()
    }
}

impl Index {
    fn forget(&mut self, which: usize) {
        match which {
            0 => self.roles.clear(),
            1 => self.cluster_roles.clear(),
            _ => {
                let cluster = which == 3;
                self.bindings.retain(|key, _| key.0 != cluster);
                for keys in self.subjects.values_mut() {
                    keys.retain(|key| key.0 != cluster);
                }
            }
        }
    }

    fn change(&mut self, which: usize, entry: &Entry, there: bool) {
        match which {
            0 | 1 => {
                #[derive(Default, Deserialize)]
                #[serde(default)]
                struct Role {
                    rules: Option<Vec<Rule>>,
                }
                let roles = if which == 0 {
                    &mut self.roles
                } else {
                    &mut self.cluster_roles
                };
                if there {
                    let role: Role = serde_json::from_slice(&entry.object).unwrap_or_default();
                    roles.insert(entry.key.clone(), Arc::new(role.rules.unwrap_or_default()));
                } else {
                    roles.remove(&entry.key);
                }
            }
            _ => self.change_binding((which == 3, entry.key.clone()), entry, there),
        }
    }

    fn change_binding(&mut self, key: (bool, String), entry: &Entry, there: bool) {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Stored {
            subjects: Option<Vec<Subject>>,
            role_ref: RoleRef,
        }
        if let Some(old) = self.bindings.remove(&key) {
            for subject in &old.subjects {
                let subject = subject_key(subject, &old.namespace);
                if let Some(keys) = self.subjects.get_mut(&subject) {
                    keys.remove(&key);
                    if keys.is_empty() {
                        self.subjects.remove(&subject);
                    }
                }
            }
        }
        if !there {
            return;
        }
        let stored: Stored = serde_json::from_slice(&entry.object).unwrap_or_default();
        let (namespace, name) = entry.key.split_once('/').unwrap_or(("", &entry.key));
        let binding = Binding {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subjects: stored.subjects.unwrap_or_default(),
            role: stored.role_ref,
        };
        for subject in &binding.subjects {
            self.subjects
                .entry(subject_key(subject, namespace))
                .or_default()
                .insert(key.clone());
        }
        self.bindings.insert(key, Arc::new(binding));
    }

    /// The rules of a role as a binding in `namespace` names it; `None` when there is no such role.
    #[must_use]
    pub(crate) fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<Arc<Vec<Rule>>> {
        match role.kind.as_str() {
            "ClusterRole" => self.cluster_roles.get(&role.name).cloned(),
            _ => self.roles.get(&format!("{namespace}/{}", role.name)).cloned(),
        }
    }

    /// Bindings of a user that count in `namespace`: those of the cluster first, then those of the namespace, by name.
    fn bindings_of<'a>(&'a self, user: &User, namespace: &str) -> Vec<(&'a Binding, &'a Subject)> {
        let mut keys: BTreeSet<&(bool, String)> = BTreeSet::new();
        let groups = user.groups.iter().map(|group| (true, group.clone()));
        for key in groups.chain([(false, user.name.clone())]) {
            keys.extend(self.subjects.get(&key).into_iter().flatten());
        }
        let mut found: Vec<_> = keys
            .into_iter()
            .filter_map(|key| self.bindings.get(key))
            .filter(|binding| binding.namespace.is_empty() || binding.namespace == namespace)
            .filter_map(|binding| {
                let mine = |subject: &&Subject| applies(subject, user, &binding.namespace);
                Some((&**binding, binding.subjects.iter().find(mine)?))
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| {
            (!a.namespace.is_empty(), &a.name).cmp(&(!b.namespace.is_empty(), &b.name))
        });
        found
    }

    /// The reason why the user has access, in the words of the real server; `None` if it has none.
    #[must_use]
    pub(crate) fn allows(&self, user: &User, wanted: &Wanted<'_>) -> Option<String> {
        self.bindings_of(user, wanted.namespace)
            .into_iter()
            .find_map(|(binding, subject)| {
                let rules = self.rules_of(&binding.role, &binding.namespace)?;
                rules
                    .iter()
                    .any(|rule| rule.allows(wanted))
                    .then(|| reason(binding, subject))
            })
    }

    /// Every rule that counts for a user in a namespace, in the order of the bindings.
    #[must_use]
    pub(crate) fn rules_for(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (binding, _) in self.bindings_of(user, namespace) {
            if let Some(of_role) = self.rules_of(&binding.role, &binding.namespace) {
                rules.extend(of_role.iter().cloned());
            }
        }
        rules
    }
}

fn subject_key(subject: &Subject, namespace: &str) -> Key {
    match subject.kind.as_str() {
        "Group" => (true, subject.name.clone()),
        "ServiceAccount" => {
            let home = if subject.namespace.is_empty() {
                namespace
            } else {
                &subject.namespace
            };
            (false, format!("system:serviceaccount:{home}:{}", subject.name))
        }
        _ => (false, subject.name.clone()),
    }
}

fn applies(subject: &Subject, user: &User, namespace: &str) -> bool {
    let (group, name) = subject_key(subject, namespace);
    if group {
        user.groups.contains(&name)
    } else {
        user.name == name
    }
}

fn reason(binding: &Binding, subject: &Subject) -> String {
    let role = format!("{} \"{}\"", binding.role.kind, binding.role.name);
    let whom = if subject.kind == "ServiceAccount" {
        format!("ServiceAccount \"{}/{}\"", subject.name, subject.namespace)
    } else {
        format!("{} \"{}\"", subject.kind, subject.name)
    };
    if binding.namespace.is_empty() {
        format!(
            "RBAC: allowed by ClusterRoleBinding \"{}\" of {role} to {whom}",
            binding.name
        )
    } else {
        let name = format!("{}/{}", binding.name, binding.namespace);
        format!("RBAC: allowed by RoleBinding \"{name}\" of {role} to {whom}")
    }
}

impl Rule {
    /// True if the rule grants the requested access.
    #[must_use]
    pub(crate) fn allows(&self, wanted: &Wanted<'_>) -> bool {
        let has = |list: &[String], what: &str| list.iter().any(|one| one == "*" || one == what);
        if !has(&self.verbs, wanted.verb) {
            return false;
        }
        if let Some(path) = wanted.path {
            return self.non_resource_urls.iter().any(|url| covers(url, path));
        }
        let names = &self.resource_names;
        has(&self.api_groups, wanted.group)
            && self.resources.iter().any(|resource| matches(resource, wanted))
            && (names.is_empty() || names.iter().any(|name| name == wanted.name))
    }

    /// As the real server prints a rule in messages.
    #[must_use]
    pub(crate) fn compact(&self) -> String {
        let lists = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("ResourceNames", &self.resource_names),
            ("NonResourceURLs", &self.non_resource_urls),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> = lists
            .iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| {
                let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
                format!("{name}:[{}]", quoted.join(" "))
            })
            .collect();
        format!("{{{}}}", parts.join(", "))
    }

    /// The rule as reviews show it.
    #[must_use]
    pub(crate) fn to_value(&self) -> Value {
        let mut map = serde_json::Map::new();
        for (name, list) in [
            ("verbs", &self.verbs),
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !list.is_empty() {
                map.insert(name.to_owned(), list.clone().into());
            }
        }
        Value::Object(map)
    }
}

/// True if a path of a rule stands for `path`.
#[must_use]
pub(super) fn covers(url: &str, path: &str) -> bool {
    url == "*"
        || url == path
        || url
            .strip_suffix('*')
            .is_some_and(|prefix| path.starts_with(prefix))
}

fn matches(resource: &str, wanted: &Wanted<'_>) -> bool {
    if resource == "*" {
        return true;
    }
    if wanted.subresource.is_empty() {
        return resource == wanted.resource;
    }
    match resource.split_once('/') {
        Some(("*", sub)) => sub == wanted.subresource,
        Some((main, sub)) => main == wanted.resource && sub == wanted.subresource,
        None => false,
    }
}

/// True if a resource is one of RBAC's own.
#[must_use]
pub(super) fn is_rbac(group: &str) -> bool {
    group == GROUP
}
