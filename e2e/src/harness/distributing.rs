//! ResourceDistributions of a test, and the assertions about them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{
    eventually::{eventually, eventually_within},
    space::Space,
};

/// The longest time that what garbage collection does may take: a real collector looks for new kinds twice a minute, and does not know
/// them before.
const COLLECTED: Duration = Duration::from_secs(90);

/// The conditions of a distribution, in their order. Source: ResourceDistribution reference 1.
pub const FAILURES: [&str; 6] = [
    "GetResourceFailed",
    "CreateResourceFailed",
    "UpdateResourceFailed",
    "DeleteResourceFailed",
    "ConflictOccurred",
    "NamespaceNotExists",
];

/// The namespace of Events about cluster-scoped objects.
const EVENTS: &str = "default";

/// Targets that name namespaces.
#[must_use]
pub fn included(namespaces: &[&str]) -> Value {
    let list: Vec<Value> = namespaces.iter().map(|name| json!({"name": name})).collect();
    json!({"includedNamespaces": {"list": list}})
}

impl Space {
    /// Creates or replaces a distribution [of this test](Self::own).
    ///
    /// # Errors
    /// When the hub refuses.
    pub async fn distribute(&self, name: &str, resource: &Value, targets: &Value) -> Result<Value> {
        self.distribute_as(name, json!({"resource": resource, "targets": targets}))
            .await
    }

    /// The same, with everything else that it says.
    ///
    /// # Errors
    /// When the hub refuses.
    pub async fn distribute_as(&self, name: &str, spec: Value) -> Result<Value> {
        self.apply(json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
            "metadata": {"name": self.own(name)}, "spec": spec,
        }))
        .await
    }

    /// Changes a distribution.
    ///
    /// # Errors
    /// When it is not there, or the hub refuses.
    pub async fn edit_distribution(&self, name: &str, change: impl Fn(&mut Value)) -> Result<Value> {
        let name = self.own(name);
        self.hub.edit("ResourceDistribution", "", &name, change).await
    }

    /// Deletes a distribution; `how` is the propagation policy: `Background`, `Foreground` or `Orphan`.
    ///
    /// # Errors
    /// When it is not there, or the hub refuses.
    pub async fn end_distribution(&self, name: &str, how: &str) -> Result<()> {
        let path = super::kind("ResourceDistribution").path("", Some(&self.own(name)));
        let body = json!({"propagationPolicy": how});
        self.hub.call("DELETE", &path, Some(&body)).await.map(drop)
    }

    /// Waits until a distribution is deleted.
    ///
    /// # Errors
    /// Shows what holds it.
    pub async fn until_ended(&self, name: &str) -> Result<()> {
        let name = self.own(name);
        let what = format!("the distribution {name} is gone");
        eventually_within(COLLECTED, &what, async || {
            let stored = self.hub.get("ResourceDistribution", "", &name).await?;
            let meta = stored.map(|stored| stored["metadata"].clone());
            ensure!(meta.is_none(), "there with {}", meta.unwrap_or_default());
            Ok(())
        })
        .await
    }

    /// Waits until `check` accepts a distribution.
    ///
    /// # Errors
    /// What `check` reported last.
    pub async fn until_distribution(
        &self,
        name: &str,
        check: impl Fn(&Value) -> Result<()>,
    ) -> Result<Value> {
        let name = self.own(name);
        eventually(
            &format!("the distribution {name} is as it should be"),
            async || {
                let stored = self.get("ResourceDistribution", &name).await?;
                check(&stored).with_context(|| stored["status"].to_string())?;
                Ok(stored)
            },
        )
        .await
    }

    /// Waits until the status is about what a distribution says now, and counts so many namespaces: meant, with their copy,
    /// and without. The six conditions are always there.
    ///
    /// # Errors
    /// Shows the status.
    pub async fn until_counts(&self, name: &str, desired: i64, succeeded: i64, failed: i64) -> Result<Value> {
        self.until_distribution(name, |stored| {
            let status = &stored["status"];
            ensure!(
                status["observedGeneration"] == stored["metadata"]["generation"],
                "about {} of {}",
                status["observedGeneration"],
                stored["metadata"]["generation"]
            );
            let counts = ["desired", "succeeded", "failed"].map(|field| status[field].clone());
            ensure!(
                counts == [json!(desired), json!(succeeded), json!(failed)],
                "counts {counts:?}"
            );
            let types: Vec<&Value> = status["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|each| &each["type"])
                .collect();
            ensure!(types == FAILURES, "conditions {types:?}");
            Ok(())
        })
        .await
    }

    /// Waits until a kind of failure is True in exactly these namespaces, for a reason that contains `says`.
    ///
    /// # Errors
    /// Shows the status.
    pub async fn until_failure(
        &self,
        name: &str,
        type_: &str,
        says: &str,
        namespaces: &[&str],
    ) -> Result<Value> {
        let stored = self
            .until_distribution(name, |stored| {
                let found = super::condition(stored, type_);
                let reason = found["reason"].as_str().unwrap_or_default();
                ensure!(
                    found["status"] == "True" && reason.contains(says),
                    "{type_} does not say {says:?}"
                );
                let listed = found["failedNamespace"].as_array().cloned().unwrap_or_default();
                ensure!(listed == namespaces, "it lists {listed:?}");
                ensure!(
                    found["failedNamespaces"] == found["failedNamespace"],
                    "two lists differ"
                );
                Ok(())
            })
            .await?;
        Ok(super::condition(&stored, type_).clone())
    }

    /// Waits until exactly these of the namespaces `among` have an object.
    ///
    /// # Errors
    /// Names the namespaces that do.
    pub async fn until_in(&self, kind: &str, name: &str, among: &[&str], wanted: &[&str]) -> Result<()> {
        let what = format!("exactly {wanted:?} have {kind} {name}");
        eventually_within(COLLECTED, &what, async || {
            let mut found = Vec::new();
            for ns in among {
                if self.hub.get(kind, ns, name).await?.is_some() {
                    found.push(*ns);
                }
            }
            ensure!(found == wanted, "it is in {found:?}");
            Ok(())
        })
        .await
    }

    /// Waits until the garbage collector has removed the object with this uid from a namespace of the hub.
    ///
    /// # Errors
    /// When it is still there.
    pub async fn until_collected(&self, kind: &str, namespace: &str, name: &str, uid: &Value) -> Result<()> {
        let what = format!("the garbage collector takes {kind} {namespace}/{name}");
        eventually_within(COLLECTED, &what, async || {
            let live = self.hub.get(kind, namespace, name).await?;
            ensure!(
                live.is_none_or(|live| live["metadata"]["uid"] != *uid),
                "it is there"
            );
            Ok(())
        })
        .await
    }

    /// Waits until `check` accepts an object in a namespace of the hub.
    ///
    /// # Errors
    /// What `check` reported last.
    pub async fn until_there(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        check: impl Fn(&Value) -> Result<()>,
    ) -> Result<Value> {
        eventually(
            &format!("{kind} {namespace}/{name} is as it should be"),
            async || {
                let live = self.hub.get(kind, namespace, name).await?;
                let live = live.context("it is not there")?;
                check(&live)?;
                Ok(live)
            },
        )
        .await
    }

    /// Waits until a distribution has an Event of this reason, and returns its message. Its count must be 1.
    ///
    /// # Errors
    /// When there is none, or one was counted up.
    pub async fn until_reported(&self, name: &str, reason: &str) -> Result<String> {
        let name = self.own(name);
        let events = eventually(&format!("Event {reason} of {name}"), async || {
            let mut events = self.hub.list("Event", EVENTS, "").await?;
            events.retain(|event| event["reason"] == reason && event["involvedObject"]["name"] == *name);
            ensure!(!events.is_empty(), "no event");
            Ok(events)
        })
        .await?;
        ensure!(
            events.iter().all(|event| event["count"] == 1),
            "reported again: {events:#?}"
        );
        let last = events.last().context("one at least")?;
        Ok(last["message"].as_str().unwrap_or_default().to_owned())
    }
}
