//! The life of a hub in which the controllers need all their rights: what users make, change and delete.

use anyhow::{Context as _, Result, ensure};
use entourage_controllers::controllers::{CLUSTER_NAMESPACE, SYSTEM_NAMESPACE};
use entourage_e2e::harness::{Scene, Space, eventually, included, kind, manifests, status_code};
use serde_json::{Value, json};

use super::rights_kinds::{reports, templates};

/// The name of every object of a life that is in its namespace.
pub(super) const NAME: &str = "life";

/// The content of `cluster-info`, which is signed.
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\n";

/// The name of its quota: a ResourceQuota of this name is made on members.
const QUOTA: &str = "team";

/// The name of the Lease of the leader.
pub(super) const LEASE: &str = "entourage-controllers";

/// The namespace of the members' credentials, and of the Leases of agents.
pub(super) const CREDENTIALS: &str = CLUSTER_NAMESPACE;

/// A cluster in Pull mode whose agent renews nothing.
const PULLED: &str = "pulled";

/// The API group of a custom kind that is propagated, and of one that is not.
const GROUP: &str = "rights.entourage.dev";

/// The rights on the custom kind, for which users have a role of their own.
pub(super) fn rules() -> Vec<Value> {
    vec![json!({"apiGroups": [GROUP], "resources": ["things"], "verbs": ["get", "list", "patch", "watch"]})]
}

fn definition(group: &str, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{singular}s.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Makes what a hub has before its controllers start, once.
pub(super) async fn prepare(scene: &Scene) -> Result<()> {
    let hub = &scene.hub;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
    hub.apply(&namespace).await?;
    for kind in ["Thing", "Other"] {
        hub.apply(&definition(GROUP, kind)).await?;
    }
    // What `entourage token create` makes.
    hub.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cluster-info", "namespace": "kube-public"}, "data": {"kubeconfig": KUBECONFIG}}))
        .await?;
    hub.apply(&json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": "bootstrap-token-abcdef", "namespace": "kube-system"},
        "stringData": {"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"}}))
        .await?;
    hub.apply(
        &json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": PULLED},
        "spec": {"syncMode": "Pull", "id": "pulled-id"}}),
    )
    .await?;
    hub.apply(&json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": NAME}, "value": 7}))
        .await?;
    renew(scene, 0).await?;
    for member in ["member1", "member2"] {
        for name in ["serviceexports", "serviceimports"] {
            let name = format!("{name}.multicluster.x-k8s.io");
            let found = hub.get("CustomResourceDefinition", "", &name).await?;
            let found = found.context("the hub serves it")?;
            let bare = json!({"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": {"name": name},
                "spec": found["spec"]});
            scene.member(member)?.create(&bare).await?;
        }
    }
    // On members nothing is denied: that is another test's.
    let api = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": NAME},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": "system:serviceaccounts"}]});
    for member in &scene.members {
        for (plural, object) in [("clusterroles", &role), ("clusterrolebindings", &binding)] {
            let path = format!("/apis/{api}/v1/{plural}");
            member.call("POST", &path, Some(object)).await?;
        }
    }
    super::rights::forget_the_address(scene).await
}

/// The agent of the cluster in Pull mode reports, and renews its Lease once.
async fn renew(scene: &Scene, number: usize) -> Result<()> {
    let ready = json!({"kubernetesVersion": "v1.33.0", "conditions": [{"type": "Ready", "status": "True",
        "reason": "ClusterReady", "message": "it is", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    scene
        .hub
        .edit_status("Cluster", "", PULLED, |live| live["status"] = ready.clone())
        .await?;
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{CREDENTIALS}/leases");
    let mut lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": PULLED},
        "spec": {"holderIdentity": PULLED, "leaseDurationSeconds": 40,
            "renewTime": format!("2026-01-01T00:00:0{}.000000Z", number % 10)}});
    let path = format!("{leases}/{PULLED}");
    match scene.hub.call("GET", &path, None).await {
        Err(error) if status_code(&error) == 404 => scene.hub.call("POST", &leases, Some(&lease)).await?,
        held => {
            lease["metadata"] = held?["metadata"].clone();
            scene.hub.call("PUT", &path, Some(&lease)).await?
        }
    };
    Ok(())
}

/// One life, in a namespace of its own.
pub(super) struct Life {
    space: Space,
    /// A further namespace, which gets what is distributed until the end.
    other: String,
}

impl Life {
    /// Makes an object of every kind that is granted, and everything that propagates and shares them.
    pub(super) async fn begin(scene: &mut Scene, number: usize) -> Result<Self> {
        let (space, other) = (scene.another_space().await?, scene.another_space().await?.ns);
        let life = Self { space, other };
        let mut refused = Vec::new();
        for object in life.objects(number) {
            if let Err(error) = life.space.apply(object.clone()).await {
                refused.push(format!(
                    "{} {}: {error:#}",
                    object["kind"], object["metadata"]["name"]
                ));
            }
        }
        let thing = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing", "metadata": {"name": NAME}});
        let things = format!("/apis/{GROUP}/v1/namespaces/{}/things", life.space.ns);
        if let Err(error) = scene.hub.call("POST", &things, Some(&thing)).await {
            refused.push(format!("{error:#}"));
        }
        ensure!(refused.is_empty(), "the hub refuses {refused:#?}");
        life.slice("of-life", "10.1.0.1").await?;
        life.distribute("one", &[&life.space.ns, &life.other]).await?;
        let on_member = json!({"resource": manifests::config_map("there", "one"), "targets": {
            "includedNamespaces": {"list": [{"name": life.space.ns}]}, "clusters": {"clusterNames": ["member1"]}}});
        life.space.distribute_as("there", on_member).await?;
        Ok(life)
    }

    /// Its namespace.
    pub(super) fn namespace(&self) -> &str {
        &self.space.ns
    }

    /// Changes what is propagated, to where, what members report, and what is shared.
    pub(super) async fn change(&self, scene: &Scene, number: usize) -> Result<()> {
        let space = &self.space;
        let cluster = space.own(NAME);
        let replicas = |live: &mut Value| live["spec"]["replicas"] = json!(number + 1);
        self.edit("Deployment", NAME, replicas).await?;
        let data = |live: &mut Value| live["data"]["key"] = json!(number.to_string());
        self.edit("ConfigMap", NAME, data).await?;
        // It is nowhere taken away.
        let clusters: Vec<String> = (1..=number.max(1)).map(|each| format!("member{each}")).collect();
        let place = |live: &mut Value| {
            live["spec"]["placement"]["clusterAffinity"]["clusterNames"] = json!(clusters);
        };
        self.edit("PropagationPolicy", NAME, place).await?;
        space
            .hub
            .edit("ClusterPropagationPolicy", "", &cluster, place)
            .await?;
        let ports =
            |live: &mut Value| live["spec"]["ports"] = json!([{"port": 80 + number, "protocol": "TCP"}]);
        self.edit("ServiceImport", NAME, ports).await?;
        let limit = |live: &mut Value| {
            live["spec"]["overall"]["requests.storage"] = json!(format!("{}Gi", number + 100));
        };
        self.edit("FederatedResourceQuota", QUOTA, limit).await?;
        self.slice("of-life", &format!("10.1.1.{number}")).await?;
        self.slice(&format!("of-life-{number}"), "10.1.2.1").await?;
        self.distribute(&number.to_string(), &[&space.ns, &self.other])
            .await?;
        self.rebalance(number).await?;
        renew(scene, number).await?;
        let signed =
            |live: &mut Value| live["data"]["kubeconfig"] = json!(format!("{KUBECONFIG}# {number}\n"));
        space
            .hub
            .edit("ConfigMap", "kube-public", "cluster-info", signed)
            .await?;
        for (kind, status) in reports(number) {
            self.report(scene, kind, &status).await?;
        }
        Ok(())
    }

    async fn edit(&self, kind: &str, name: &str, change: impl Fn(&mut Value)) -> Result<()> {
        self.space
            .hub
            .edit(kind, &self.space.ns, name, change)
            .await
            .map(drop)
    }

    /// A member reports the status of a copy, if it has one: no controllers of workloads run there.
    async fn report(&self, scene: &Scene, kind: &str, status: &Value) -> Result<()> {
        let say = |live: &mut Value| {
            for (field, value) in status.as_object().into_iter().flatten() {
                live["status"][field] = value.clone();
            }
        };
        let member = scene.member("member1")?;
        let own = self.space.own(NAME);
        let (namespace, name) = match self::kind(kind).namespaced {
            true => (&*self.space.ns, NAME),
            false => ("", &*own),
        };
        match member.edit_status(kind, namespace, name, say).await {
            Err(error) if status_code(&error) == 404 => Ok(()),
            result => result
                .map(drop)
                .with_context(|| format!("the status of the {kind} on member1")),
        }
    }

    /// Endpoints of the exported Service on member1.
    async fn slice(&self, name: &str, address: &str) -> Result<()> {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/service-name": NAME,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            }},
            "addressType": "IPv4", "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        });
        self.space.apply_on("member1", slice).await.map(drop)
    }

    /// A ConfigMap and a Secret that the namespaces get.
    async fn distribute(&self, value: &str, namespaces: &[&str]) -> Result<()> {
        let targets = included(namespaces);
        for (name, object) in [
            ("map", manifests::config_map("shared", value)),
            ("secret", manifests::secret("shared", value)),
        ] {
            self.space.distribute(name, &object, &targets).await?;
        }
        Ok(())
    }

    async fn rebalance(&self, number: usize) -> Result<()> {
        let workload =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": self.space.ns, "name": NAME});
        let object = json!({
            "apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer",
            "metadata": {"name": self.space.own(&format!("again-{number}"))},
            "spec": {"workloads": [workload], "ttlSecondsAfterFinished": 1},
        });
        self.space.hub.apply(&object).await.map(drop)
    }

    /// Deletes everything.
    pub(super) async fn end(&self, scene: &Scene) -> Result<()> {
        let (space, cluster) = (&self.space, self.space.own(NAME));
        for object in self.objects(0) {
            let kind_name = object["kind"].as_str().unwrap_or_default();
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if ["PropagationPolicy", "ClusterPropagationPolicy", "Cluster"].contains(&kind_name) {
                continue;
            }
            let ns = if kind(kind_name).namespaced {
                &*space.ns
            } else {
                ""
            };
            gone(space.hub.delete(kind_name, ns, name).await)?;
        }
        let clusters = space.hub.list("Cluster", "", "rights=life").await?;
        for name in clusters
            .iter()
            .filter_map(|each| each["metadata"]["name"].as_str())
        {
            gone(space.hub.delete("Cluster", "", name).await)?;
        }
        gone(space.delete("PropagationPolicy", NAME).await)?;
        gone(space.hub.delete("ClusterPropagationPolicy", "", &cluster).await)?;
        self.distribute("end", &[&space.ns]).await?;
        gone(space.end_distribution("there", "Background").await)?;
        let member = scene.member("member1")?;
        for slice in member
            .list("EndpointSlice", &space.ns, "kubernetes.io/service-name=life")
            .await?
        {
            let name = slice["metadata"]["name"].as_str().unwrap_or_default();
            gone(member.delete("EndpointSlice", &space.ns, name).await)?;
        }
        Ok(())
    }

    /// Bindings that nothing needs, and the Service of no ServiceImport: of all that the controllers delete, what a garbage collector
    /// leaves to them, because it has no owner or one of a version that is not served.
    pub(super) async fn leave_loose_ends(&self) -> Result<()> {
        let owner = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha0", "kind": "ServiceImport", "name": "loose", "uid": "gone"});
        self.space
            .apply(json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "derived-loose", "ownerReferences": [owner]}, "spec": {"ports": [{"port": 80}]}}))
            .await?;
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": self.space.own("loose")}, "rules": []});
        for (kind, object) in [
            ("ClusterResourceBinding", role),
            ("ResourceBinding", manifests::config_map("loose", "one")),
        ] {
            let (name, of) = (&object["metadata"]["name"], &object["kind"]);
            let name = format!(
                "{}-{}",
                name.as_str().unwrap_or_default(),
                of.as_str().unwrap_or_default()
            );
            let mut resource = selector(&object);
            if kind == "ResourceBinding" {
                resource["namespace"] = json!(self.space.ns);
            }
            self.space.apply(object).await?;
            self.space
                .apply(json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": kind,
                    "metadata": {"name": name.to_lowercase()}, "spec": {"resource": resource}}))
                .await?;
        }
        Ok(())
    }

    /// Waits until the members have what the life says after this change.
    pub(super) async fn until_delivered(&self, number: usize, members: &[&str]) -> Result<()> {
        let data = json!({"key": number.to_string()});
        for member in members {
            for template in templates() {
                let (kind, api) = (template["kind"].as_str(), template["apiVersion"].as_str());
                // Members need not serve it.
                if api.is_some_and(|api| api.starts_with("multicluster.")) {
                    continue;
                }
                let as_wanted = |copy: &Value| match kind {
                    Some("ConfigMap") => {
                        ensure!(copy["data"] == data, "other data");
                        Ok(())
                    }
                    Some("Deployment") => {
                        ensure!(copy["spec"]["replicas"] == number + 1, "other replicas");
                        Ok(())
                    }
                    _ => Ok(()),
                };
                let kind = kind.unwrap_or_default();
                self.space.until_copy(member, kind, NAME, as_wanted).await?;
            }
            let own = self.space.own(NAME);
            self.space
                .until_copy(member, "ClusterRole", &own, |_| Ok(()))
                .await?;
        }
        Ok(())
    }

    /// Waits until no member has a copy of what was deleted.
    pub(super) async fn until_removed(&self) -> Result<()> {
        for kind in ["Deployment", "ConfigMap", "Secret", "Service"] {
            self.space.until_held(kind, NAME, &[]).await?;
        }
        self.space
            .until_held("ClusterRole", &self.space.own(NAME), &[])
            .await
    }

    /// Every object on the hub that a life begins with.
    fn objects(&self, number: usize) -> Vec<Value> {
        let templates = templates();
        let mut clustered = Vec::new();
        let own = self.space.own(NAME);
        for (api, kind, more) in [
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                json!({"rules": []}),
            ),
            ("v1", "Namespace", json!({})),
            (
                "v1",
                "PersistentVolume",
                json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/tmp/life"}}}),
            ),
            (
                "admissionregistration.k8s.io/v1",
                "MutatingWebhookConfiguration",
                json!({"webhooks": []}),
            ),
            (
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                json!({"webhooks": []}),
            ),
        ] {
            let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": own}});
            for (field, value) in more.as_object().into_iter().flatten() {
                object[field] = value.clone();
            }
            clustered.push(object);
        }
        clustered.push(definition(&format!("{own}.entourage.dev"), "Life"));
        let mut selected: Vec<Value> = templates.iter().map(selector).collect();
        selected.push(json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Thing", "name": NAME}));
        let propagates = |kind: &str, name: &str, selected: Vec<Value>| {
            json!({
                "apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": name},
                "spec": {"resourceSelectors": selected, "placement": {
                    "clusterAffinity": {"clusterNames": ["member1"]},
                    "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
                }},
            })
        };
        let clusters = clustered.iter().map(selector).collect();
        let mut policies = [
            propagates("PropagationPolicy", NAME, selected),
            propagates("ClusterPropagationPolicy", &own, clusters),
        ];
        policies[1]["spec"]["schedulePriority"] =
            json!({"priorityClassSource": "KubePriorityClass", "priorityClassName": NAME});
        let quota = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "FederatedResourceQuota", "metadata": {"name": QUOTA},
            "spec": {"overall": {"requests.storage": "100Gi"},
                "staticAssignments": [{"clusterName": "member1", "hard": {"requests.storage": "50Gi"}}]},
        });
        // Nothing is there: it is tainted, and leaves without a copy.
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": format!("away{number}"), "labels": {"rights": "life"}},
            "spec": {"syncMode": "Push", "id": format!("away{number}-id"), "apiEndpoint": "https://127.0.0.1:1",
                "secretRef": {"namespace": CREDENTIALS, "name": "away"}},
        });
        let mut all = templates;
        all.extend(clustered);
        all.extend(policies);
        all.extend([quota, cluster]);
        all
    }
}

fn selector(object: &Value) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"]})
}

fn gone(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if status_code(&error) == 404 => Ok(()),
        result => result,
    }
}

/// Takes the definition of the custom kind away, with its objects, while another one of the group stays.
pub(super) async fn undefine(scene: &Scene) -> Result<()> {
    let name = format!("things.{GROUP}");
    scene.hub.delete("CustomResourceDefinition", "", &name).await?;
    eventually("the custom kind is not served", async || {
        let things = format!("/apis/{GROUP}/v1/things");
        let answer = scene.hub.call("GET", &things, None).await;
        ensure!(answer.is_err_and(|error| status_code(&error) == 404), "it is");
        Ok(())
    })
    .await
}
