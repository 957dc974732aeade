//! Copies on the members of the model.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Simulation, objects::merge, servers};
use crate::{
    delivery::{RenderSpec, render, source_version},
    namespaces,
    object::{ResourceId, Str},
    observation::{self, Delivered, Observation, Removed, Watch},
    plan::{Preconditions, RemovalMode},
};

impl Simulation {
    /// Renders a template and applies the copy; `blind` if the live copy need not be read before.
    pub(super) fn deliver(
        &mut self,
        id: &ResourceId,
        cluster: &Str,
        render_spec: &RenderSpec,
        blind: bool,
    ) -> Vec<Observation> {
        let outcome = self.brought(id, cluster, render_spec, blind);
        let absent = matches!(outcome, Delivered::NoSource(_)).then(|| match self.hub.get(id) {
            Some(object) if crate::interpreter::never_travels(object) => {
                Observation::NeverTravels(id.clone())
            }
            _ => Observation::Absent(id.clone()),
        });
        let told = Observation::Delivered(cluster.clone(), id.clone(), outcome);
        [told].into_iter().chain(absent).collect()
    }

    fn brought(
        &mut self,
        id: &ResourceId,
        cluster: &Str,
        render_spec: &RenderSpec,
        blind: bool,
    ) -> Delivered {
        let Some(source) = self.hub.get(id) else {
            return Delivered::NoSource("it does not exist on the hub".into());
        };
        let source_is = source_version(&observation::template_meta(&id.gvk, source), render_spec);
        let Some(member) = self.members.get_mut(cluster) else {
            return Delivered::Unreachable("there is no such member".into());
        };
        let live = member.objects.get(id).cloned();
        if let Some(live) = &live
            && render::standing(render_spec, cluster, live) == render::Standing::Foreign
        {
            return Delivered::Foreign;
        }
        let preconditions = live
            .as_ref()
            .filter(|_| blind)
            .map(|live| json!({"metadata": live["metadata"]}));
        let rendered = render::render(
            render_spec,
            id,
            cluster,
            source,
            preconditions.as_ref().or(live.as_ref()),
        );
        let rendered = match rendered {
            Ok(rendered) => rendered,
            Err(render::Refusal::Override(bad)) => return Delivered::BadOverride(bad.to_string()),
            Err(render::Refusal::NoResponse(why)) => return Delivered::Uninterpreted(why),
            Err(refusal) => return Delivered::NoSource(refusal.to_string()),
        };
        let applied = |object: &Value, differed: Option<String>| Delivered::Applied {
            copy: observation::copy(&render_spec.interpretation, &id.gvk, object),
            source: source_is.clone(),
            differed,
        };
        let read = live.as_ref().filter(|_| !blind);
        let differed = read.and_then(|live| render::difference(&rendered, live));
        let next = match &live {
            None => self.versions.created(id, rendered.object().clone(), self.now),
            Some(live) if !blind && differed.is_none() => return applied(live, None),
            Some(live) => {
                let mut next = rendered.object().clone();
                if let Some(status) = live.get("status") {
                    next["status"] = status.clone();
                }
                self.versions.replaced(id, live, next)
            }
        };
        let outcome = applied(&next, differed);
        member.objects.insert(id.clone(), next);
        self.make_namespace(cluster, &id.namespace);
        self.copy_changed(cluster, id, live.as_ref());
        outcome
    }

    /// Creates the namespace of a copy if it does not exist.
    fn make_namespace(&mut self, cluster: &Str, name: &Str) {
        let id = servers::namespace(name);
        let known = self.open.contains(&Watch::MemberNamespaces(cluster.clone()));
        let there = self
            .members
            .get(cluster)
            .is_none_or(|member| member.unreadable.is_some() || member.objects.contains(&id));
        // Every server has `default` from the start.
        if known && !there && !name.is_empty() && &**name != "default" {
            self.bring_namespace(cluster, name, &BTreeMap::new(), &BTreeMap::new());
        }
    }

    /// Creates a namespace of a member, or merges missing labels and annotations into it.
    pub(super) fn bring_namespace(
        &mut self,
        cluster: &Str,
        name: &Str,
        labels: &BTreeMap<Str, Str>,
        annotations: &BTreeMap<Str, Str>,
    ) {
        let id = servers::namespace(name);
        let Some(member) = self.members.get_mut(cluster) else {
            return;
        };
        let live = member.objects.get(&id).cloned();
        let next = match &live {
            None => {
                let made = namespaces::created((&self.engine.config.hub, cluster), name, labels, annotations);
                self.versions.created(&id, made, self.now)
            }
            Some(live) => {
                let Some(patch) = namespaces::patch(live, &self.engine.config.hub, labels, annotations)
                else {
                    return;
                };
                let mut next = live.clone();
                merge(&mut next, &patch);
                self.versions.replaced(&id, live, next)
            }
        };
        member.objects.insert(id.clone(), next);
        self.copy_changed(cluster, &id, live.as_ref());
    }

    /// Deletes or releases exactly the copy that the plan names; `None` if it has changed.
    pub(super) fn remove(
        &mut self,
        id: &ResourceId,
        cluster: &Str,
        preconditions: &Preconditions,
        mode: RemovalMode,
    ) -> Option<Vec<Observation>> {
        let member = self.members.get_mut(cluster)?;
        let live = member.objects.get(id).cloned();
        let outcome = match live {
            Some(live) if live["metadata"]["uid"] == *preconditions.uid => {
                if live["metadata"]["resourceVersion"] != *preconditions.resource_version {
                    return None;
                }
                let outcome = match mode {
                    RemovalMode::Delete => {
                        member.objects.remove(id);
                        Removed::Accepted
                    }
                    RemovalMode::Release | RemovalMode::HandOver => {
                        let hub = &self.engine.config.hub;
                        let freed = match mode {
                            RemovalMode::HandOver => render::hand_over(&live, hub, cluster),
                            _ => render::release(&live, hub, cluster),
                        };
                        let mut freed = freed.unwrap_or_else(|| live.clone());
                        without_empty(&mut freed);
                        let freed = self.versions.replaced(id, &live, freed);
                        member.objects.insert(id.clone(), freed);
                        Removed::Released
                    }
                };
                self.copy_changed(cluster, id, Some(&live));
                outcome
            }
            _ => Removed::Gone,
        };
        Some(vec![Observation::Removed(cluster.clone(), id.clone(), outcome)])
    }
}

/// Removes empty labels and annotations, as a server does.
fn without_empty(object: &mut Value) {
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
    }
}
