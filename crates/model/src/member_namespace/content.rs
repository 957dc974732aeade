//! The content of a member's namespace that was deleted on the hub: Kubernetes' own objects, objects that are about to be
//! deleted, or content.
//!
//! Kubernetes creates the ServiceAccount `default` with its tokens in each namespace, the ConfigMap with the cluster's root
//! certificate, and Events. An object with an owner is deleted with it; an object that is being deleted disappears soon, and so
//! do the Endpoints of a deleted Service. Such objects are waited for: their absence must be observed. A copy of a distribution
//! that this hub accounts for is not content. Every other object is, a PersistentVolumeClaim in particular, and so is any
//! object that another hub manages.

use std::collections::BTreeSet;

use entourage_api::keys::label;
use serde_json::Value;

use crate::object::Str;

/// The number of objects that a message names.
const NAMED: usize = 5;

/// The result of an inspection of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Only objects that Kubernetes creates itself, and copies of distributions that this hub accounts for.
    Nothing,
    /// Also objects that are about to be deleted: their names, for a person.
    Leaving(String),
    /// Content: its names, for a person.
    Held(String),
    /// A kind may not be listed: the kind and the cause. Only a person can change that.
    Unknown(String),
    /// The list of a kind failed this time: the kind and the cause.
    NoResponse(String),
    /// The namespace exists on the hub again.
    OnHub,
}

/// An inspection of a namespace, object by object.
#[derive(Debug)]
pub struct Look<'a> {
    hub: &'a str,
    copies: &'a BTreeSet<Str>,
    content: Found,
    leaving: Found,
}

/// The objects found. Only a few are named: a namespace may hold any number of objects.
#[derive(Debug, Default)]
struct Found {
    names: Vec<String>,
    count: usize,
    /// True if some objects were not inspected.
    is_cut: bool,
}

/// True if objects of a resource are never content, so that the resource need not be listed.
#[must_use]
pub fn is_passing(group: &str, resource: &str) -> bool {
    matches!((group, resource), ("" | "events.k8s.io", "events"))
}

impl<'a> Look<'a> {
    /// Begins an inspection for a hub; `copies` are the uids of copies of its distributions.
    #[must_use]
    pub fn new(hub: &'a str, copies: &'a BTreeSet<Str>) -> Self {
        Self {
            hub,
            copies,
            content: Found::default(),
            leaving: Found::default(),
        }
    }

    /// True if enough content was found: further objects change neither the result nor the names in it.
    #[must_use]
    pub const fn has_enough(&self) -> bool {
        self.content.count > NAMED
    }

    /// Records that some objects were not inspected, because enough content was found.
    pub const fn cut(&mut self) {
        self.content.is_cut = true;
    }

    /// Adds the metadata of one object.
    pub fn add(&mut self, (group, kind): (&str, &str), object: &Value) {
        let meta = &object["metadata"];
        let name = format!("{kind} {}", meta["name"].as_str().unwrap_or_default());
        let of_another = [label::HUB, label::DISTRIBUTED_BY]
            .iter()
            .any(|key| meta["labels"][key].as_str().is_some_and(|hub| hub != self.hub));
        let is_accounted = meta["uid"].as_str().is_some_and(|uid| self.copies.contains(uid));
        if !of_another && (is_accounted || is_kubernetes_own((group, kind), meta)) {
            return;
        }
        if !of_another && leaves((group, kind), meta) {
            self.leaving.add(name);
        } else {
            self.content.add(name);
        }
    }

    /// Adds the result of another inspection of the same namespace.
    pub fn join(&mut self, other: Self) {
        self.content.join(other.content);
        self.leaving.join(other.leaving);
    }

    /// The result.
    #[must_use]
    pub fn contents(&self) -> Contents {
        if self.content.count > 0 {
            return Contents::Held(self.content.summary());
        }
        if self.leaving.count > 0 {
            return Contents::Leaving(self.leaving.summary());
        }
        Contents::Nothing
    }
}

impl Found {
    fn add(&mut self, name: String) {
        self.count += 1;
        if self.names.len() < NAMED {
            self.names.push(name);
        }
    }

    fn join(&mut self, other: Self) {
        let space = NAMED.saturating_sub(self.names.len());
        self.names.extend(other.names.into_iter().take(space));
        self.count += other.count;
        self.is_cut |= other.is_cut;
    }

    fn summary(&self) -> String {
        let some = self.names.join(", ");
        match self.count - self.names.len() {
            0 => some,
            _ if self.is_cut => format!("{some} and more"),
            more => format!("{some} and {more} more"),
        }
    }
}

fn is_kubernetes_own((group, kind): (&str, &str), meta: &Value) -> bool {
    let is_named = |name: &str| meta["name"] == name;
    match (group, kind) {
        ("" | "events.k8s.io", "Event") => true,
        ("", "ServiceAccount") => is_named("default"),
        ("", "ConfigMap") => is_named("kube-root-ca.crt"),
        // The tokens that Kubernetes before 1.24 created itself. A token of a user has another name.
        ("", "Secret") => {
            meta["annotations"]["kubernetes.io/service-account.name"] == "default"
                && meta["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with("default-token-"))
        }
        _ => false,
    }
}

/// True if the object will be deleted without us: its deletion has begun, its owner is garbage collected with it, or it belongs
/// to a deleted Service. The deletion is proven only by its absence.
fn leaves((group, kind): (&str, &str), meta: &Value) -> bool {
    let has_owner = meta["ownerReferences"]
        .as_array()
        .is_some_and(|owners| !owners.is_empty());
    let is_of_a_service = (group, kind) == ("", "Endpoints")
        && (meta["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"].is_string()
            || meta["labels"]["endpoints.kubernetes.io/managed-by"].is_string());
    meta["deletionTimestamp"].is_string() || has_owner || is_of_a_service
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn look(objects: &[(&str, &str, Value)]) -> Contents {
        let copies = BTreeSet::from(["c".into()]);
        let mut look = Look::new("hub", &copies);
        for (group, kind, meta) in objects {
            look.add((group, kind), &json!({"metadata": meta}));
        }
        look.contents()
    }

    #[test]
    fn what_kubernetes_puts_into_a_namespace_is_no_content() {
        let own = [
            ("", "ServiceAccount", json!({"name": "default"})),
            ("", "ConfigMap", json!({"name": "kube-root-ca.crt"})),
            (
                "",
                "Secret",
                json!({"name": "default-token-x", "annotations": {"kubernetes.io/service-account.name": "default"}}),
            ),
            ("", "Event", json!({"name": "web.17"})),
        ];
        assert_eq!(look(&own), Contents::Nothing);
        assert_eq!(look(&[]), Contents::Nothing);
    }

    #[test]
    fn a_copy_of_a_distribution_is_no_content_where_it_is_accounted_for() {
        let labels = json!({"entourage.dev/distributed-by": "hub"});
        let copy = |uid: &str| {
            (
                "",
                "ConfigMap",
                json!({"name": "pull", "uid": uid, "labels": labels}),
            )
        };
        assert_eq!(look(&[copy("c")]), Contents::Nothing);
        // A user copied it, with its labels.
        assert_eq!(look(&[copy("x")]), Contents::Held("ConfigMap pull".into()));
    }

    #[test]
    fn everything_else_is_and_is_named() {
        let content = [
            ("", "PersistentVolumeClaim", json!({"name": "data", "uid": "p"})),
            ("", "ConfigMap", json!({"name": "settings"})),
            ("", "ServiceAccount", json!({"name": "builder"})),
            (
                "",
                "Secret",
                json!({"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}}),
            ),
            ("", "Endpoints", json!({"name": "outside"})),
            ("discovery.k8s.io", "EndpointSlice", json!({"name": "outside-1"})),
            ("example.dev", "Event", json!({"name": "party"})),
            // Another kind of the same name.
            ("example.dev", "ServiceAccount", json!({"name": "default"})),
            ("", "Pod", json!({})),
        ];
        for (group, kind, meta) in content {
            let name = format!("{kind} {}", meta["name"].as_str().unwrap_or_default());
            let own = ("", "ConfigMap", json!({"name": "kube-root-ca.crt"}));
            assert_eq!(look(&[own, (group, kind, meta)]), Contents::Held(name));
        }
        let many: Vec<_> = std::iter::repeat_n(("", "Pod", json!({"name": "x"})), 7).collect();
        let Contents::Held(words) = look(&many) else {
            panic!()
        };
        assert!(words.ends_with("and 2 more"), "{words}");
    }

    #[test]
    fn a_look_has_enough_when_it_found_more_than_it_names() {
        let copies = BTreeSet::new();
        let (mut whole, mut part) = (Look::new("hub", &copies), Look::new("hub", &copies));
        for _ in 0..NAMED {
            assert!(!part.has_enough());
            part.add(("", "Pod"), &json!({"metadata": {"name": "x"}}));
        }
        assert!(!part.has_enough(), "each of them can be named");
        part.add(("", "Pod"), &json!({"metadata": {"name": "y"}}));
        assert!(part.has_enough());
        part.cut();
        whole.join(part);
        assert!(whole.has_enough());
        let Contents::Held(words) = whole.contents() else {
            panic!()
        };
        assert_eq!(words, "Pod x, Pod x, Pod x, Pod x, Pod x and more");
    }

    #[test]
    fn what_another_hub_manages_is_content_whatever_it_is() {
        for key in ["entourage.dev/hub", "entourage.dev/distributed-by"] {
            let object = |name: &str| {
                let owners = json!([{"uid": "u"}]);
                let labels = json!({key: "other"});
                json!({"name": name, "uid": "c", "labels": labels, "ownerReferences": owners})
            };
            let account = ("", "ServiceAccount", object("default"));
            assert_eq!(look(&[account]), Contents::Held("ServiceAccount default".into()));
            let secret = ("", "Secret", object("pull"));
            assert_eq!(look(&[secret]), Contents::Held("Secret pull".into()));
        }
    }

    #[test]
    fn what_follows_its_owner_or_is_being_deleted_leaves() {
        let owned = (
            "apps",
            "ReplicaSet",
            json!({"name": "web-1", "ownerReferences": [{"uid": "u"}]}),
        );
        let going = (
            "",
            "PersistentVolumeClaim",
            json!({"name": "data", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        );
        let endpoints = (
            "",
            "Endpoints",
            json!({"name": "web", "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "x"}}),
        );
        let leaving = [owned.clone(), going, endpoints];
        let words = "ReplicaSet web-1, PersistentVolumeClaim data, Endpoints web";
        assert_eq!(look(&leaving), Contents::Leaving(words.into()));
        // An object whose owner is content is not named beside the owner.
        let owner = ("apps", "Deployment", json!({"name": "web", "uid": "u"}));
        assert_eq!(look(&[owned, owner]), Contents::Held("Deployment web".into()));
    }
}
