//! A namespace of a test on the hub and on the members, and the assertions about it.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    eventually::eventually,
    kinds::{OWN, is_ours},
    outline::{Outline, masked},
    server::{Server, status_code},
};

/// The kinds that an outline holds.
const OUTLINED: &[&str] = &[
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "Pod",
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "PersistentVolumeClaim",
];

/// A namespace of a test.
#[derive(Clone)]
pub struct Space {
    /// Its name.
    pub ns: String,
    /// The hub.
    pub hub: Server,
    /// The members, in order.
    pub members: Vec<Server>,
}

/// A condition of an object; null when it is not there.
#[must_use]
pub fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|each| each["type"] == type_))
        .unwrap_or(&Value::Null)
}

impl Space {
    // --- what a user does on the hub

    /// Creates or replaces an object.
    ///
    /// # Errors
    /// When the hub refuses.
    pub async fn apply(&self, object: Value) -> Result<Value> {
        self.hub.apply(&self.here(object)).await
    }

    /// The object in this namespace; a cluster-scoped one as it is.
    fn here(&self, mut object: Value) -> Value {
        let kind_name = object["kind"].as_str().unwrap_or_default();
        if super::kind(kind_name).namespaced {
            object["metadata"]["namespace"] = json!(self.ns);
        }
        object
    }

    /// The name of a cluster-scoped object of this test: no other test's, and cleaned up with it.
    #[must_use]
    pub fn own(&self, name: &str) -> String {
        format!("{}-{name}", self.ns)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<()> {
        self.hub.delete(kind, &self.ns, name).await
    }

    // --- what a user of a member does

    /// Creates or replaces an object behind the controllers' back.
    ///
    /// # Errors
    /// When the member refuses.
    pub async fn apply_on(&self, member: &str, object: Value) -> Result<Value> {
        self.make_namespace(member).await?;
        self.member(member)?.apply(&self.here(object)).await
    }

    /// Changes a copy behind the controllers' back.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn edit_on(
        &self,
        member: &str,
        kind: &str,
        name: &str,
        change: impl Fn(&mut Value),
    ) -> Result<Value> {
        self.member(member)?.edit(kind, &self.ns, name, change).await
    }

    /// Deletes a copy behind the controllers' back.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn delete_on(&self, member: &str, kind: &str, name: &str) -> Result<()> {
        self.member(member)?.delete(kind, &self.ns, name).await
    }

    /// The namespace on a member, before any copy needs it.
    ///
    /// # Errors
    /// When the member refuses.
    pub async fn make_namespace(&self, member: &str) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.ns}});
        self.member(member)?.apply(&namespace).await?;
        Ok(())
    }

    /// Has a member refuse further objects of a kind by a quota, and waits until it does. Undone by deleting the
    /// ResourceQuota `none`.
    ///
    /// # Errors
    /// When the member goes on taking them.
    pub async fn forbid_on(&self, member: &str, kind_name: &str) -> Result<()> {
        let resource = super::kind(kind_name).plural;
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {resource: "0"}},
        });
        self.apply_on(member, quota).await?;
        let server = self.member(member)?;
        // No quota controller runs here: the test says what it would say.
        let full =
            |live: &mut Value| live["status"] = json!({"hard": {resource: "0"}, "used": {resource: "0"}});
        server
            .edit_status("ResourceQuota", &self.ns, "none", full)
            .await?;
        let probe = json!({
            "apiVersion": "v1", "kind": kind_name, "metadata": {"name": "probe", "namespace": self.ns},
        });
        eventually(
            &format!("{member} refuses every {kind_name}"),
            async || match server.create(&probe).await {
                Err(error) if status_code(&error) == 403 => Ok(()),
                Err(error) => Err(error),
                Ok(_) => {
                    server.delete(kind_name, &self.ns, "probe").await?;
                    anyhow::bail!("it takes them")
                }
            },
        )
        .await
    }

    // --- what there is

    /// An object on the hub.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn get(&self, kind: &str, name: &str) -> Result<Value> {
        let object = self.hub.get(kind, &self.ns, name).await?;
        object.with_context(|| format!("no {kind} {}/{name} on the hub", self.ns))
    }

    /// A binding.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn binding(&self, name: &str) -> Result<Value> {
        self.get("ResourceBinding", name).await
    }

    /// A copy, if it is there.
    ///
    /// # Errors
    /// When the member does not answer.
    pub async fn on(&self, member: &str, kind: &str, name: &str) -> Result<Option<Value>> {
        self.member(member)?.get(kind, &self.ns, name).await
    }

    /// A copy.
    ///
    /// # Errors
    /// When it is not there.
    pub async fn copy(&self, member: &str, kind: &str, name: &str) -> Result<Value> {
        let copy = self.on(member, kind, name).await?;
        copy.with_context(|| format!("no {kind} {}/{name} on {member}", self.ns))
    }

    /// The members that hold an object.
    ///
    /// # Errors
    /// When one does not answer.
    pub async fn holders(&self, kind: &str, name: &str) -> Result<Vec<&str>> {
        let mut holders = Vec::new();
        for member in &self.members {
            if member.get(kind, &self.ns, name).await?.is_some() {
                holders.push(member.name.as_str());
            }
        }
        Ok(holders)
    }

    /// The Events of a reason about an object.
    ///
    /// # Errors
    /// When the hub does not respond.
    pub async fn events(&self, reason: &str, name: &str) -> Result<Vec<Value>> {
        let mut events = self.hub.list("Event", &self.ns, "").await?;
        events.retain(|event| event["reason"] == reason && event["involvedObject"]["name"] == name);
        Ok(events)
    }

    /// Waits until the hub has an event of this reason about this object, and answers with it. Events are written after what
    /// they tell of.
    ///
    /// # Errors
    /// When there is none, several, or one that was counted up.
    pub async fn until_reported_once(&self, reason: &str, name: &str) -> Result<Value> {
        let reported = eventually(&format!("Event {reason} of {name}"), async || {
            let events = self.events(reason, name).await?;
            ensure!(!events.is_empty(), "no event");
            Ok(events)
        })
        .await?;
        match reported.as_slice() {
            [event] if event["count"] == 1 => Ok(event.clone()),
            _ => bail!("reported more than once: {reported:#?}"),
        }
    }

    /// A member.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn member(&self, name: &str) -> Result<&Server> {
        self.members
            .iter()
            .find(|member| member.name == name)
            .with_context(|| format!("no member {name}"))
    }

    // --- what must become true

    /// Waits until exactly these members hold an object.
    ///
    /// # Errors
    /// Names the members that do.
    pub async fn until_held(&self, kind: &str, name: &str, members: &[&str]) -> Result<()> {
        eventually(&format!("exactly {members:?} hold {kind} {name}"), async || {
            let holders = self.holders(kind, name).await?;
            ensure!(holders == members, "held by {holders:?}");
            Ok(())
        })
        .await
    }

    /// Waits until an object is deleted on the hub.
    ///
    /// # Errors
    /// Shows what holds it.
    pub async fn until_gone(&self, kind: &str, name: &str) -> Result<()> {
        eventually(&format!("{kind} {name} is gone from the hub"), async || {
            let object = self.hub.get(kind, &self.ns, name).await?;
            let meta = object.map(|object| object["metadata"].clone());
            ensure!(meta.is_none(), "there with {}", meta.unwrap_or_default());
            Ok(())
        })
        .await
    }

    /// Waits until `check` accepts a copy.
    ///
    /// # Errors
    /// What `check` reported last.
    pub async fn until_copy(
        &self,
        member: &str,
        kind: &str,
        name: &str,
        check: impl Fn(&Value) -> Result<()>,
    ) -> Result<Value> {
        eventually(
            &format!("{kind} {name} on {member} is as it should be"),
            async || {
                let copy = self.copy(member, kind, name).await?;
                check(&copy)?;
                Ok(copy)
            },
        )
        .await
    }

    /// Waits until `check` accepts a binding.
    ///
    /// # Errors
    /// What `check` reported last.
    pub async fn until_binding(&self, name: &str, check: impl Fn(&Value) -> Result<()>) -> Result<Value> {
        eventually(&format!("the binding {name} is as it should be"), async || {
            let binding = self.binding(name).await?;
            check(&binding)?;
            Ok(binding)
        })
        .await
    }

    /// Waits until a condition of a binding has this status and a message that contains `says`. Returns the
    /// condition.
    ///
    /// # Errors
    /// Shows the conditions.
    pub async fn until_condition(
        &self,
        binding: &str,
        type_: &str,
        status: &str,
        says: &str,
    ) -> Result<Value> {
        eventually(
            &format!("{type_} of {binding} is {status} and says {says:?}"),
            async || {
                let binding = self.binding(binding).await?;
                let found = condition(&binding, type_);
                let message = found["message"].as_str().unwrap_or_default();
                ensure!(
                    found["status"] == status && message.contains(says),
                    "conditions {}",
                    binding["status"]["conditions"]
                );
                ensure!(
                    found["observedGeneration"].is_i64(),
                    "no observedGeneration: {found}"
                );
                Ok(found.clone())
            },
        )
        .await
    }

    /// Waits until the Deployment `myapp` and the ConfigMap `my-config` are on these members, and the status says so.
    ///
    /// # Errors
    /// Names what is missing.
    pub async fn until_settled(&self, members: &[&str]) -> Result<()> {
        self.until_held("Deployment", "myapp", members).await?;
        self.until_held("ConfigMap", "my-config", members).await?;
        self.until_condition("myapp-deployment", "FullyApplied", "True", "")
            .await?;
        self.until_condition("myapp-deployment", "DependenciesReady", "True", "")
            .await?;
        self.until_condition("my-config-configmap", "FullyApplied", "True", "")
            .await?;
        eventually("the status lists the members", async || {
            for name in ["myapp-deployment", "my-config-configmap"] {
                let binding = self.binding(name).await?;
                let entries = binding["status"]["aggregatedStatus"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                let listed: Vec<&str> = entries
                    .iter()
                    .filter_map(|entry| entry["clusterName"].as_str())
                    .collect();
                ensure!(listed == members, "{name} lists {listed:?}");
            }
            Ok(())
        })
        .await
    }

    /// Everything that should be equal between a disturbed and an undisturbed run, masked: what is in the namespace, the
    /// namespace, the cluster-scoped objects [of the test](Self::own), and ConfigMaps in such namespaces. Secrets without
    /// their data.
    ///
    /// # Errors
    /// When a server does not answer.
    pub async fn outline(&self) -> Result<Outline> {
        let mut outline = Outline::new();
        let prefix = self.own("");
        for server in std::iter::once(&self.hub).chain(&self.members) {
            let is_hub = server.name == self.hub.name;
            let kinds = OUTLINED.iter().chain(&["Namespace"]).chain(OWN);
            let hub_only = ["ResourceBinding", "PropagationPolicy", "OverridePolicy"].iter();
            for kind in kinds.chain(hub_only).filter(|kind| is_hub || !is_ours(kind)) {
                for mut object in server.list(kind, &self.ns, "").await? {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    let given =
                        *kind == "ServiceAccount" && name == "default" || name.starts_with("default-token-");
                    let another =
                        !super::kind(kind).namespaced && name != self.ns && !name.starts_with(&prefix);
                    if given || another {
                        continue;
                    }
                    if *kind == "Secret" {
                        object["data"] = json!("left out");
                    }
                    let name = name.replace(&self.ns, "NS");
                    outline.insert(
                        format!("{} {kind}/{name}", server.name),
                        masked(&object, &self.ns),
                    );
                }
            }
        }
        for object in self.hub.list("ConfigMap", "", "").await? {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            if text("namespace").starts_with(&prefix) {
                let at = format!("{}/{}", text("namespace"), text("name")).replace(&self.ns, "NS");
                outline.insert(format!("hub ConfigMap/{at}"), masked(&object, &self.ns));
            }
        }
        Ok(outline)
    }
}
