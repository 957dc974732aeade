//! The objects of a member that become templates.

use anyhow::{Context as _, Result, anyhow, bail};
use entourage_api::keys::{TRUE, label};
use entourage_core::{
    object::{Gvk, ResourceId},
    promotion::{self, NotPromotable, SCALERS},
    rendered::Rendered,
};
use kube::{Client, api::ListParams};
use serde_json::Value;

use super::deps;
use crate::{
    connect::explain,
    kinds::Kinds,
    lists::{PAGE, list},
};

/// The member, and the hub that its objects are promoted to.
pub(super) struct Source {
    pub(super) client: Client,
    pub(super) cluster: String,
    pub(super) hub_id: String,
    pub(super) kinds: Kinds,
}

/// An object of the member, and the template made from it.
pub(super) struct Promoted {
    pub(super) id: ResourceId,
    pub(super) template: Rendered,
    uid: Value,
    version: Value,
}

impl Promoted {
    pub(super) fn new(id: ResourceId, live: &Value, hub_id: &str) -> Result<Self, NotPromotable> {
        let meta = &live["metadata"];
        Ok(Self {
            template: promotion::template(&id, live, hub_id)?,
            uid: meta["uid"].clone(),
            version: meta["resourceVersion"].clone(),
            id,
        })
    }

    /// Has the member keep its number of replicas if one of these autoscalers of the namespace scales the object.
    ///
    /// # Errors
    /// The autoscaler, if replicas of the kind are not kept on request.
    pub(super) fn keep_replicas(mut self, scalers: &[Value], notes: &mut Vec<String>) -> Result<Self> {
        let Some(scaler) = promotion::scaled_by(&self.id, scalers) else {
            return Ok(self);
        };
        let id = &self.id;
        self.template = promotion::retain_replicas(id, self.template).with_context(|| {
            format!(
                "{scaler} scales {id} on the member, and the hub would set its replicas again and again: replicas of the \
                 kind {} are not retained",
                id.gvk.kind
            )
        })?;
        notes.push(format!(
            "{scaler} scales {id}: its template has the label {}: \"{TRUE}\", by which the number of replicas stays the member's",
            label::RETAIN_REPLICAS
        ));
        Ok(self)
    }

    /// True if the object is still the one that the template was made from. A change of its status alone does not count.
    fn is_made_from(&self, live: &Value, hub_id: &str) -> bool {
        let meta = &live["metadata"];
        if meta["uid"] != self.uid {
            return false;
        }
        if meta["resourceVersion"] == self.version {
            return true;
        }
        let Ok(fresh) = promotion::template(&self.id, live, hub_id) else {
            return false;
        };
        let keeps = self.template.object()["metadata"]["labels"][label::RETAIN_REPLICAS] == TRUE;
        let fresh = if keeps {
            promotion::retain_replicas(&self.id, fresh)
        } else {
            Some(fresh)
        };
        fresh.is_some_and(|fresh| promotion::different(fresh.object(), self.template.object(), "").is_none())
    }
}

impl Source {
    /// Fails if an object changed on the member since its template was made.
    pub(super) async fn check(&mut self, promoted: &Promoted) -> Result<()> {
        let live = deps::get(&self.client, &mut self.kinds, &promoted.id).await?;
        let is_same = live
            .map(Rendered)
            .is_some_and(|live| promoted.is_made_from(live.object(), &self.hub_id));
        if !is_same {
            bail!(
                "{} changed on {} meanwhile, and is not promoted: run the command again",
                promoted.id,
                self.cluster
            );
        }
        Ok(())
    }

    /// The autoscalers of a namespace. Kinds that the member does not serve are left out. ScaledObjects that may not be listed are
    /// noted: KEDA makes a HorizontalPodAutoscaler for each that is active.
    ///
    /// # Errors
    /// They cannot be read: one of them may scale what is promoted, and the hub would set its replicas again and again.
    pub(super) async fn scalers(&mut self, namespace: &str, notes: &mut Vec<String>) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        if namespace.is_empty() {
            return Ok(all);
        }
        for (kind, versions) in SCALERS {
            let versions: Vec<Gvk> = versions.iter().map(|version| Gvk::new(version, kind)).collect();
            let Some((_, served)) = self.kinds.first_served(&self.client, &versions).await? else {
                continue;
            };
            let scalers = list(
                &self.client,
                &served,
                namespace,
                &ListParams::default().limit(PAGE),
            )
            .await;
            if *kind == "ScaledObject"
                && let Err(kube::Error::Api(status)) = &scalers
                && status.code == 403
            {
                notes.push(format!(
                    "{} on {} may not be listed: if one of them scales a promoted workload, give its template the label {}: \"{TRUE}\"",
                    served.resource.plural,
                    self.cluster,
                    label::RETAIN_REPLICAS
                ));
                continue;
            }
            let mut scalers = scalers.map_err(explain).with_context(|| {
                format!(
                    "cannot list {} on {}, so that one of them may scale what is promoted",
                    served.resource.plural, self.cluster
                )
            })?;
            all.append(&mut scalers);
        }
        Ok(all)
    }
}

/// The error for an object that is not promoted.
pub(super) fn refused(id: &ResourceId, cluster: &str, why: &NotPromotable) -> anyhow::Error {
    anyhow!("{id} of {cluster} cannot be promoted: {why}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mock::Server;

    #[tokio::test]
    async fn autoscalers_that_cannot_be_read_end_the_promotion() {
        const SCALERS: &str = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers";
        let serving = || {
            let server = Server::new("member").without("/apis/keda.sh/v1alpha1");
            let resource = json!({"name": "horizontalpodautoscalers", "singularName": "", "namespaced": true,
                "kind": "HorizontalPodAutoscaler", "verbs": ["list"]});
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "autoscaling/v2",
                "resources": [resource]});
            server.put("/apis/autoscaling/v2", list);
            server
        };
        for (server, is_refused) in [(serving(), false), (serving().forbidding("GET", SCALERS), true)] {
            let mut source = Source {
                client: server.client(),
                cluster: "m1".into(),
                hub_id: "hub".into(),
                kinds: Kinds::default(),
            };
            let result = source.scalers("shop", &mut Vec::new()).await;
            assert_eq!(result.is_err(), is_refused, "{result:?}");
            if let Err(why) = result {
                let why = format!("{why:#}");
                for part in [
                    "cannot list horizontalpodautoscalers on m1",
                    "\"jane\" cannot GET",
                ] {
                    assert!(why.contains(part), "{part}: {why}");
                }
            }
        }
    }

    #[tokio::test]
    async fn scaled_objects_that_may_not_be_listed_are_a_note() {
        const SCALED: &str = "/apis/keda.sh/v1alpha1/namespaces/shop/scaledobjects";
        let server = Server::new("member")
            .without("/apis/autoscaling/v2")
            .without("/apis/autoscaling/v1")
            .forbidding("GET", SCALED);
        let resource = json!({"name": "scaledobjects", "singularName": "", "namespaced": true, "kind": "ScaledObject", "verbs": ["list"]});
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "keda.sh/v1alpha1", "resources": [resource]});
        server.put("/apis/keda.sh/v1alpha1", list);
        let mut source = Source {
            client: server.client(),
            cluster: "m1".into(),
            hub_id: "hub".into(),
            kinds: Kinds::default(),
        };
        let mut notes = Vec::new();
        assert!(
            source
                .scalers("shop", &mut notes)
                .await
                .is_ok_and(|all| all.is_empty())
        );
        assert!(
            notes[0].starts_with("scaledobjects on m1 may not be listed"),
            "{notes:?}"
        );
    }

    fn deployment(meta: &Value, replicas: i32) -> Value {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": replicas}, "status": {"replicas": replicas}});
        for (key, value) in meta.as_object().into_iter().flatten() {
            object["metadata"][key] = value.clone();
        }
        object
    }

    #[test]
    fn an_object_that_changed_after_it_was_read_is_noticed() {
        let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
        let scaler = json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": "s", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        for scalers in [vec![], vec![scaler]] {
            let live = deployment(&json!({"uid": "u", "resourceVersion": "1"}), 2);
            let promoted = Promoted::new(id.clone(), &live, "hub").unwrap_or_else(|why| panic!("{why}"));
            let mut notes = Vec::new();
            let promoted = promoted.keep_replicas(&scalers, &mut notes).unwrap();
            assert_eq!(notes.len(), scalers.len());
            for (meta, replicas, expected) in [
                (json!({"uid": "u", "resourceVersion": "1"}), 2, true),
                (json!({"uid": "u", "resourceVersion": "2"}), 2, true),
                (json!({"uid": "u", "resourceVersion": "2"}), 3, false),
                (json!({"uid": "v", "resourceVersion": "1"}), 2, false),
                (
                    json!({"uid": "u", "resourceVersion": "2", "labels": {"a": "b"}}),
                    2,
                    false,
                ),
                (
                    json!({"uid": "u", "resourceVersion": "2", "labels": {"entourage.dev/hub": "x"}}),
                    2,
                    false,
                ),
            ] {
                let is_same = promoted.is_made_from(&deployment(&meta, replicas), "hub");
                assert_eq!(is_same, expected, "{meta} {replicas}");
            }
        }
    }
}
