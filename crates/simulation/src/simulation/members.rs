//! The members: those that respond, and the assumed objects of those that cannot be read.

use entourage_api::keys::condition;
use serde_json::{Value, json};

use super::{Simulation, is_cluster};
use crate::{notifications::observe, objects::kept, writes};
use entourage_core::{
    delivery::render,
    inspection,
    object::{ResourceId, Str},
    observation::{Observation, Probe, Server, Watch},
};

impl Simulation {
    /// Probes the members that were not probed: one whose Cluster has no Ready condition counts as ready.
    pub(super) fn probe_members(&mut self) {
        let is_new =
            |id: &ResourceId| self.engine().cluster(&id.name).is_some() && !self.probed.contains(&id.name);
        let hub = self.servers.hub.iter();
        let clusters: Vec<(Str, Probe)> = hub
            .filter(|(id, _)| is_cluster(id) && is_new(id))
            .map(|(id, object)| (id.name.clone(), probe(object)))
            .collect();
        for (name, probe) in clusters {
            self.servers.members.entry(name.clone()).or_default();
            self.probed.insert(name.clone());
            observe(self, Observation::Probed(name, probe));
        }
    }

    /// A member with known APIs serves a kind as soon as its CustomResourceDefinition exists.
    pub(super) fn define(&mut self, cluster: &Str, definition: &ResourceId) {
        if &*definition.gvk.kind != "CustomResourceDefinition" {
            return;
        }
        let definition = self
            .servers
            .members
            .get(cluster)
            .and_then(|objects| objects.get(definition));
        let Some(spec) = definition.map(|definition| definition["spec"].clone()) else {
            return;
        };
        let Some((id, mut object)) = self
            .servers
            .hub
            .iter()
            .find(|(id, _)| is_cluster(id) && id.name == *cluster)
            .map(|(id, object)| (id.clone(), object.clone()))
        else {
            return;
        };
        let Some(known) = object["status"]["apiEnablements"].as_array_mut() else {
            return;
        };
        let before = known.len();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = json!({"name": spec["names"]["plural"], "kind": spec["names"]["kind"]});
        for version in spec["versions"].as_array().into_iter().flatten() {
            if version["served"] == true {
                let version = format!("{}/{}", text(&spec["group"]), text(&version["name"]));
                let served = json!({"groupVersion": version, "resources": [resource]});
                if !known.contains(&served) {
                    known.push(served);
                }
            }
        }
        if known.len() == before {
            return;
        }
        writes::replace(self, &Server::Hub, &id, object);
    }

    /// Assumes the copies of a member that cannot be read to be as the hub recorded them when it wrote them: rendered from the
    /// current templates, with the recorded uid and version.
    pub(super) fn assume(&mut self, cluster: &Str, watch: &Watch, why: &str) {
        self.servers.members.entry(cluster.clone()).or_default();
        let unread = self.unread.entry(cluster.clone());
        unread.or_insert_with(|| why.to_owned());
        let Watch::Copies(_, gvk) = watch else { return };
        let ids: Vec<ResourceId> = self
            .engine()
            .resources()
            .filter(|(id, _)| id.gvk == *gvk)
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            if let Some(copy) = self.recorded(&id, cluster) {
                self.take_in(&Server::Member(cluster.clone()), &id, copy);
            }
        }
    }

    /// The copy that the hub recorded; `None` if there is none.
    fn recorded(&self, id: &ResourceId, cluster: &Str) -> Option<Value> {
        let record = self.engine().resource(id)?.copies.get(cluster)?.record.clone()?;
        let render_spec = inspection::render_spec(self.engine(), id, cluster)?;
        let rendered = render::render(&render_spec, id, cluster, self.servers.hub.get(id)?, None).ok()?;
        let mut copy = kept(rendered.object().clone());
        copy["metadata"]["uid"] = json!(record.uid);
        // A copy that was never listed may have any version: it only must be lower than the next ones.
        copy["metadata"]["resourceVersion"] = json!(record.resource_version.as_deref().unwrap_or("1"));
        if let Some(generation) = record.generation {
            copy["metadata"]["generation"] = json!(generation);
        }
        Some(copy)
    }
}

/// The result that a probe of the member would have, by its Cluster.
fn probe(cluster: &Value) -> Probe {
    let ready = cluster["status"]["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|each| each["type"] == condition::READY));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = cluster["status"]["kubernetesVersion"].as_str();
    // A Work is written also while the agent is absent, as soon as it has reported once.
    let is_written =
        cluster["spec"]["syncMode"] == "Pull" && version.is_some_and(|version| !version.is_empty());
    match ready.filter(|ready| ready["status"] != "True" && !is_written) {
        Some(ready) => Probe {
            healthy: false,
            reason: text(&ready["reason"]),
            message: text(&ready["message"]),
            kubernetes_version: None,
            api_enablements: None,
        },
        None => Probe {
            healthy: true,
            reason: "ClusterReady".into(),
            message: ready.map(|ready| text(&ready["message"])).unwrap_or_default(),
            kubernetes_version: Some(version.unwrap_or("v1.36.0").to_owned()),
            api_enablements: None,
        },
    }
}
