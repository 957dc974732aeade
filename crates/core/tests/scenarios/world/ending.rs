//! Members that are looked into, and end namespaces as API servers with a namespace controller do.

use std::collections::BTreeSet;

use entourage_api::keys::annotation;
use entourage_core::{
    namespaces::{
        self,
        content::{Contents, Look},
    },
    object::{Gvk, Str},
    observation::Observation,
    plan::{Event, Preconditions, RemovalMode},
};
use serde_json::Value;

use super::{HUB_ID, World, key_named, merge};

/// A namespace that was just created, with the record that it is the very one.
pub(super) fn prove(cluster: &str, mut namespace: Value) -> Value {
    let uid = namespace["metadata"]["uid"].as_str().expect("uid").to_owned();
    merge(&mut namespace, &namespaces::proven((HUB_ID, cluster), &uid));
    namespace
}

impl World {
    /// Carries out `Change::LookInto`; `None` when the member is down.
    pub(super) fn look_into(
        &mut self,
        cluster: &Str,
        name: &Str,
        copies: &BTreeSet<Str>,
    ) -> Option<Vec<Observation>> {
        let contents = self.contents(cluster, name, copies)?;
        if let Some((key, object)) = self.comes_after_a_look.take() {
            self.meddle_at(cluster, &key, |_| Some(object));
        }
        Some(vec![Observation::LookedInto(
            cluster.clone(),
            name.clone(),
            contents,
        )])
    }

    fn contents(&self, cluster: &Str, name: &Str, copies: &BTreeSet<Str>) -> Option<Contents> {
        if self.members[&**cluster].down {
            return None;
        }
        if self.hub.contains_key(&key_named("Namespace", name)) {
            return Some(Contents::OnHub);
        }
        let mut look = Look::new(HUB_ID, copies);
        for (key, object) in &self.members[&**cluster].objects {
            if key.1 == **name {
                let gvk = Gvk::new(object["apiVersion"].as_str().expect("apiVersion"), &key.0);
                look.add((&gvk.group, &gvk.kind), object);
            }
        }
        Some(match (look.contents(), &self.unlisted) {
            (held @ Contents::Held(_), _) => held,
            (_, Some(unlisted)) => unlisted.clone(),
            (contents, None) => contents,
        })
    }

    /// Carries out `Change::EndNamespace`; `None` when the member is down.
    pub(super) fn end_of_namespace(
        &mut self,
        cluster: &Str,
        name: &Str,
        preconditions: &Preconditions,
        (mode, copies): (RemovalMode, &BTreeSet<Str>),
        told: Option<Box<Event>>,
    ) -> Option<Vec<Observation>> {
        if let Some(left) = self.changed_before_it_ends.checked_sub(1) {
            self.changed_before_it_ends = left;
            self.meddle(cluster, "Namespace", name, |mut live| {
                live["metadata"]["annotations"]["theirs"] = left.to_string().into();
                Some(live)
            });
        }
        let contents = self.contents(cluster, name, copies)?;
        let is_in_the_way = match mode {
            RemovalMode::Delete => contents != Contents::Nothing,
            _ => contents == Contents::OnHub,
        };
        if is_in_the_way {
            return Some(vec![Observation::LookedInto(
                cluster.clone(),
                name.clone(),
                contents,
            )]);
        }
        let key = key_named("Namespace", name);
        let held = self.members[&**cluster].objects.get(&key).cloned();
        let is_it = |held: &Value| {
            held["metadata"]["uid"] == *preconditions.uid
                && held["metadata"]["resourceVersion"] == *preconditions.resource_version
        };
        if let Some(held) = held.filter(is_it) {
            let creator = &held["metadata"]["annotations"][annotation::CREATED_BY];
            let creator = creator.as_str().expect("it is not ours");
            assert!(
                creator.starts_with(&namespaces::creator(HUB_ID, cluster)),
                "{creator}"
            );
            let proof = namespaces::proof(HUB_ID, cluster, &preconditions.uid);
            assert!(
                mode == RemovalMode::Release || creator == proof,
                "{name}: {creator}"
            );
            self.writes.push(format!("{cluster} {mode:?} namespace {name}"));
            if mode == RemovalMode::Release {
                let mut next = held.clone();
                merge(&mut next, &namespaces::released(preconditions, HUB_ID));
                let next = self.put(&held, next);
                let objects = &mut self.members.get_mut(&**cluster).expect("member").objects;
                objects.insert(key.clone(), next);
                self.member_changed(cluster, &key, &held);
                self.emit(&told.expect("it is told"));
            } else {
                let inside = self.members[&**cluster].objects.keys();
                let inside: Vec<_> = inside.filter(|each| each.1 == **name).cloned().collect();
                for each in std::iter::once(key).chain(inside) {
                    let objects = &mut self.members.get_mut(&**cluster).expect("member").objects;
                    let before = objects.remove(&each).expect("it is there");
                    self.member_changed(cluster, &each, &before);
                }
            }
        }
        Some(vec![Observation::NamespaceEnded(cluster.clone(), name.clone())])
    }
}
