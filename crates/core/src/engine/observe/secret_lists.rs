//! Changes of the allow-lists of Secrets, and of the labels that they read: see [`crate::fleet::secrets`].

use entourage_api::keys::annotation;

use super::Dirty;
use crate::{
    allowed_clusters::AllowedClusters,
    engine::routes::Changed,
    fleet::Fleet,
    kinds::{is_secret, secret},
    object::{Meta, NamespacedName, ResourceId, Str, StrMap, Time},
};

fn list_of(meta: &Meta) -> Option<&str> {
    meta.annotation(annotation::SECRETS_TO)
}

impl Fleet {
    /// A namespace of the hub appeared or was deleted, or its list changed: the Secrets of this namespace are planned again, and the
    /// distributions of one of them. Cost: O(its Secrets × (copies + referrers) + distributions); O(1) if the list is as before.
    pub(super) fn secret_list_changed(
        &mut self,
        namespace: &Str,
        before: Option<&Meta>,
        now: Time,
        dirty: &mut Dirty,
    ) {
        let after = self.cache.namespaces.hub.get(namespace);
        if before.map(list_of) == after.map(list_of) {
            return;
        }
        let owner = NamespacedName::new(namespace, "");
        self.graph.secret_lists.set(owner, after);
        self.route(Changed::SecretsOf(namespace), dirty);
        let is_of_it = |source: &ResourceId| is_secret(&source.gvk) && source.namespace == *namespace;
        let all = self.memory.distributions.held.iter();
        let distributed = all.filter(|(_, held)| {
            let spec = held.object.spec.as_ref().ok();
            spec.and_then(|spec| spec.source.as_ref()).is_some_and(is_of_it)
        });
        let names: Vec<Str> = distributed.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.route(Changed::Distribution(&name), dirty);
            self.evaluate_all(&name, None, now, dirty);
        }
    }

    /// A Secret was observed, or deleted: its own list may have changed. Cost: O(referrers) if it has; else O(1).
    pub(super) fn own_list_changed(&mut self, id: &ResourceId, before: Option<&Meta>, dirty: &mut Dirty) {
        if !is_secret(&id.gvk) {
            return;
        }
        let template = self.cache.resources.get(id);
        let after = template
            .and_then(|resource| resource.template.as_ref())
            .map(|template| &template.meta);
        if before.and_then(list_of) == after.and_then(list_of) {
            return;
        }
        let owner = NamespacedName::new(&id.namespace, &id.name);
        self.graph.secret_lists.set(owner, after);
        self.route(Changed::Presence(id), dirty);
    }

    /// The labels of a Cluster changed: the Secrets are planned again that a list now allows there, or no longer does. Cost: O(lists that
    /// read labels), and O(Secrets + their referrers) of those whose answer differs.
    pub(super) fn labels_of_cluster_changed(&self, cluster: &Str, before: &StrMap, dirty: &mut Dirty) {
        let Some(member) = self.cache.members.get(cluster) else {
            return;
        };
        let after = &member.meta.labels;
        if before == after {
            return;
        }
        for owner in self.graph.secret_lists.by_labels() {
            let id = ResourceId::new(secret(), &owner.namespace, &owner.name);
            let meta = match owner.name.is_empty() {
                true => self.cache.namespaces.hub.get(&owner.namespace),
                false => self
                    .resource(&id)
                    .and_then(|resource| resource.template.as_ref())
                    .map(|template| &template.meta),
            };
            let list = meta.and_then(list_of).map(AllowedClusters::read);
            let Some(Ok(list)) = list else { continue };
            if list.allows(cluster, before) == list.allows(cluster, after) {
                continue;
            }
            if owner.name.is_empty() {
                for id in self.secrets_of(&owner.namespace) {
                    self.route(Changed::SecretOn(id, cluster), dirty);
                }
            } else {
                self.route(Changed::SecretOn(&id, cluster), dirty);
            }
        }
    }

    /// The Secrets of a namespace of the hub. Cost: O(log resources + those).
    fn secrets_of(&self, namespace: &str) -> impl Iterator<Item = &ResourceId> {
        let first = ResourceId::new(secret(), namespace, "");
        let from = self.cache.resources.range(first.clone()..);
        let of_it = from.take_while(move |(id, _)| id.gvk == first.gvk && id.namespace == first.namespace);
        of_it.map(|(id, _)| id)
    }

    /// The Secrets of a namespace, and what waits for them or reports them. Cost: O(those × (copies + referrers)).
    pub(in crate::engine) fn dirty_secrets(&self, namespace: &str, dirty: &mut Dirty) {
        for id in self.secrets_of(namespace) {
            self.route(Changed::Presence(id), dirty);
            self.route(Changed::Template(id), dirty);
        }
    }
}
