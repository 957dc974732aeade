//! Invariants of every change, asked while it is carried out and without what the control plane remembers: nothing is taken
//! from under a workload that needs it, and nothing is delivered where that is suspended.

use std::collections::BTreeSet;

use entourage_core::{interpreter::operations::Operation, object::ResourceId, observation::Watch};
use serde_json::Value;

use super::{HUB_ID, World};

impl World {
    /// I2: nothing is taken from under a workload that still needs it, itself or over its account, as both stand on the member.
    /// What stood there when the removal was planned was asked about then: an edit meanwhile comes too late.
    pub(super) fn assert_unneeded(&self, cluster: &str, id: &ResourceId, stood: &BTreeSet<String>) {
        if !["ConfigMap", "ServiceAccount", "Secret"].contains(&&*id.gvk.kind) || !self.hub.contains_key(id) {
            return;
        }
        // The owner of a Secret revoked it.
        let namespace = self.hub.get(&super::id("Namespace", "", &id.namespace));
        let has_list =
            |object: &&Value| object["metadata"]["annotations"]["entourage.dev/secrets-to"].is_string();
        if self
            .hub
            .get(id)
            .into_iter()
            .chain(namespace)
            .any(|object| has_list(&object))
        {
            return;
        }
        for (key, object) in self.members[cluster].iter() {
            if object["metadata"]["uid"]
                .as_str()
                .is_some_and(|uid| stood.contains(uid))
            {
                continue;
            }
            let name = &key.name;
            let binding = super::id("ResourceBinding", &key.namespace, &format!("{name}-deployment"));
            let follows =
                (self.hub.get(&binding)).is_some_and(|binding| binding["spec"]["propagateDeps"] == true);
            if &*key.gvk.kind != "Deployment" || !follows {
                continue;
            }
            let named = self.still_named(cluster, key);
            let accounts = named.iter().filter(|each| &*each.gvk.kind == "ServiceAccount");
            let over = accounts.flat_map(|account| self.still_named(cluster, account));
            if over.chain(named.clone()).any(|each| each == *id) {
                panic!("{id} is taken away from {cluster} although {name} still needs it there");
            }
        }
    }

    /// The references of an object on the hub and in our copy of it on a member, unless a customization replaces them.
    fn still_named(&self, cluster: &str, key: &ResourceId) -> Vec<ResourceId> {
        let (Some(copy), Some(template)) = (self.at(cluster, key), self.hub.get(key)) else {
            return Vec::new();
        };
        let interpretation = self.process.engine.interpretation(&key.gvk);
        if (interpretation.has(Operation::References) && !interpretation.adds())
            || copy["metadata"]["labels"]["entourage.dev/hub"] != HUB_ID
        {
            return Vec::new();
        }
        let there = named(template);
        named(copy)
            .into_iter()
            .filter(|each| there.contains(each))
            .collect()
    }

    /// Nothing is delivered where everybody who needs it is suspended, as the hub's bindings say it; who does not hear of them
    /// goes by what they reported last. Asked when the plan is made: a suspension that comes while it is being sent comes too late.
    pub(super) fn assert_not_suspended(&self, cluster: &str, id: &ResourceId) {
        if !self.process.open.contains(&Watch::Bindings)
            || !self.process.open.contains(&Watch::ClusterBindings)
        {
            return;
        }
        let bindings = || {
            self.hub.values().filter(|each| {
                each["kind"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("ResourceBinding"))
            })
        };
        let is_on = |binding: &Value| {
            let mut clusters = binding["spec"]["clusters"].as_array().into_iter().flatten();
            !binding["spec"]["placement"].is_null() && clusters.any(|target| target["name"] == cluster)
        };
        let is_held = |binding: &Value| {
            let suspension = &binding["spec"]["suspension"];
            let named = suspension["dispatchingOnClusters"]["clusterNames"].as_array();
            suspension["dispatching"] == true || named.into_iter().flatten().any(|name| name == cluster)
        };
        let own = bindings().find(|binding| {
            let resource = &binding["spec"]["resource"];
            resource["apiVersion"] == id.gvk.api_version()
                && resource["kind"] == *id.gvk.kind
                && resource["name"] == *id.name
                && resource["namespace"].as_str().unwrap_or_default() == &*id.namespace
        });
        let referrers = bindings().filter(|binding| {
            let resource = &binding["spec"]["resource"];
            let named = |part: &str| resource[part].as_str().unwrap_or_default().to_owned();
            let template = self.hub.get(&super::id_in(resource));
            let volumes = template.map(|each| &each["spec"]["template"]["spec"]["volumes"]);
            let mut volumes = volumes.and_then(Value::as_array).into_iter().flatten();
            let names_it =
                &*id.gvk.kind == "ConfigMap" && volumes.any(|volume| volume["configMap"]["name"] == *id.name);
            let imports = &*id.gvk.kind == "EndpointSlice" && resource["kind"] == "ServiceImport";
            (names_it || imports)
                && binding["spec"]["propagateDeps"] == true
                && named("namespace") == *id.namespace
        });
        let mut needing = referrers.chain(own).filter(|binding| is_on(binding)).peekable();
        if needing.peek().is_some() && needing.all(is_held) {
            panic!("{id} is delivered to {cluster} although that is suspended");
        }
    }
}

/// The references of a Deployment or a ServiceAccount, computed the slow way.
pub(crate) fn named(object: &Value) -> Vec<ResourceId> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let pods = &object["spec"]["template"]["spec"];
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let volumes = list(&pods["volumes"]).into_iter();
    let volumes = volumes.map(|each| ("ConfigMap", each["configMap"]["name"].clone()));
    let secrets = list(&object["imagePullSecrets"]).into_iter();
    let secrets = secrets.map(|each| ("Secret", each["name"].clone()));
    let account = [("ServiceAccount", pods["serviceAccountName"].clone())];
    let all = volumes.chain(secrets).chain(account);
    all.filter_map(|(kind, name)| Some(super::id(kind, namespace, name.as_str()?)))
        .collect()
}
