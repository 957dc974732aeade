//! The objects of a bench: a world of workloads and their dependencies, the same for the same parameters.
//!
//! N Deployments in some namespaces, each with two ConfigMaps of its own (one as a volume, one as `envFrom`), a Secret of its
//! own (a volume) and a Secret that its namespace shares (`envFrom`). Contents are about 1 KB of text that is derived from the
//! object's name.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kind::{Kind, ObjectId};

/// On every object of a bench, with the prefix as value. Copies have it too, so that members can be watched by it.
pub const LABEL: &str = "bench.entourage.dev/run";

/// An annotation that is changed together with the content: it shows a watch of metadata alone that the new content has
/// arrived.
pub const STEP: &str = "bench.entourage.dev/step";

/// Bytes of content of a ConfigMap or a Secret.
const CONTENT: usize = 1024;

/// The name of the Secret that the workloads of a namespace share, and of their policy.
const SHARED: &str = "shared";

/// The parameters of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Value of [`LABEL`].
    pub label: String,
    /// The prefix of the namespaces' names; a number follows.
    pub namespace_prefix: String,
    /// The number of Deployments.
    pub workloads: usize,
    /// The number of their namespaces.
    pub namespaces: usize,
    /// The target clusters of every policy.
    pub members: Vec<String>,
}

/// One of a workload's own dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// The ConfigMap that it mounts.
    Mounted,
    /// The ConfigMap that it reads as environment; S5 removes this reference.
    Environment,
    /// The Secret that it mounts.
    Secret,
}

impl World {
    /// The namespaces' names.
    pub fn namespaces(&self) -> impl Iterator<Item = String> {
        (0..self.namespaces).map(|number| format!("{}-{number:02}", self.namespace_prefix))
    }

    /// The namespace of a workload.
    #[must_use]
    pub fn namespace(&self, workload: usize) -> String {
        format!(
            "{}-{:02}",
            self.namespace_prefix,
            workload % self.namespaces.max(1)
        )
    }

    /// The Deployment with that number.
    #[must_use]
    pub fn deployment_id(&self, workload: usize) -> ObjectId {
        ObjectId::new(
            Kind::Deployment,
            self.namespace(workload),
            format!("app-{workload:04}"),
        )
    }

    /// A dependency of the Deployment with that number.
    #[must_use]
    pub fn own_id(&self, workload: usize, own: Own) -> ObjectId {
        let (kind, suffix) = match own {
            Own::Mounted => (Kind::ConfigMap, "files"),
            Own::Environment => (Kind::ConfigMap, "env"),
            Own::Secret => (Kind::Secret, "keys"),
        };
        ObjectId::new(
            kind,
            self.namespace(workload),
            format!("app-{workload:04}-{suffix}"),
        )
    }

    /// The Secret that the workloads of a namespace share.
    #[must_use]
    pub fn shared_id(namespace: &str) -> ObjectId {
        ObjectId::new(Kind::Secret, namespace, SHARED)
    }

    /// The policy of a namespace.
    #[must_use]
    pub fn policy_id(namespace: &str) -> ObjectId {
        ObjectId::new(Kind::Policy, namespace, SHARED)
    }

    /// A namespace.
    #[must_use]
    pub fn namespace_object(&self, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {LABEL: self.label}}})
    }

    /// The objects that are written first: a policy and the shared Secret of each namespace, then each workload's dependencies.
    #[must_use]
    pub fn first(&self) -> Vec<(ObjectId, Value)> {
        let mut all = Vec::new();
        for namespace in self.namespaces() {
            all.push((Self::policy_id(&namespace), self.policy(&namespace)));
            all.push(self.with_object(Self::shared_id(&namespace)));
        }
        for workload in 0..self.workloads {
            for own in [Own::Mounted, Own::Environment, Own::Secret] {
                all.push(self.with_object(self.own_id(workload, own)));
            }
        }
        all
    }

    /// All Deployments.
    #[must_use]
    pub fn deployments(&self) -> Vec<(ObjectId, Value)> {
        (0..self.workloads)
            .map(|workload| (self.deployment_id(workload), self.deployment(workload)))
            .collect()
    }

    /// The copies of each member when all objects are propagated.
    #[must_use]
    pub fn copies(&self) -> BTreeSet<ObjectId> {
        let first = self
            .first()
            .into_iter()
            .map(|(id, _)| id)
            .filter(|id| id.kind != Kind::Policy);
        first
            .chain((0..self.workloads).map(|workload| self.deployment_id(workload)))
            .collect()
    }

    /// A merge patch that gives a ConfigMap or a Secret new content of the same size, and the step.
    #[must_use]
    pub fn edit(&self, id: &ObjectId, step: &str) -> Value {
        let data = content(id, step);
        json!({"metadata": {"annotations": {STEP: step}}, "data": data})
    }

    /// A merge patch of a Deployment that no longer refers to [`Own::Environment`].
    #[must_use]
    pub fn without_environment(&self, workload: usize) -> Value {
        json!({"spec": {"template": {"spec": {"containers": [self.container(workload, false)]}}}})
    }

    fn policy(&self, namespace: &str) -> Value {
        json!({
            "apiVersion": Kind::Policy.api_version(),
            "kind": Kind::Policy.name(),
            "metadata": {"name": SHARED, "namespace": namespace, "labels": {LABEL: self.label}},
            "spec": {
                "propagateDeps": true,
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "placement": {
                    "clusterAffinity": {"clusterNames": self.members},
                    "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
                },
            },
        })
    }

    /// A ConfigMap or a Secret.
    fn with_object(&self, id: ObjectId) -> (ObjectId, Value) {
        let mut object = json!({
            "apiVersion": id.kind.api_version(),
            "kind": id.kind.name(),
            "metadata": {"name": id.name, "namespace": id.namespace, "labels": {LABEL: self.label}},
            "data": content(&id, ""),
        });
        if id.kind == Kind::Secret {
            object["type"] = json!("Opaque");
        }
        (id, object)
    }

    fn deployment(&self, workload: usize) -> Value {
        let id = self.deployment_id(workload);
        let app = json!({"app": id.name});
        let volumes = json!([
            {"name": "files", "configMap": {"name": self.own_id(workload, Own::Mounted).name}},
            {"name": "keys", "secret": {"secretName": self.own_id(workload, Own::Secret).name}},
        ]);
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": id.name,
                "namespace": id.namespace,
                "labels": {LABEL: self.label, "app": id.name},
            },
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": app},
                "template": {
                    "metadata": {"labels": app},
                    "spec": {"containers": [self.container(workload, true)], "volumes": volumes},
                },
            },
        })
    }

    fn container(&self, workload: usize, environment: bool) -> Value {
        let mut sources = vec![json!({"secretRef": {"name": SHARED}})];
        if environment {
            sources.push(json!({"configMapRef": {"name": self.own_id(workload, Own::Environment).name}}));
        }
        json!({
            "name": "app",
            "image": "registry.example.com/app:1.0",
            "imagePullPolicy": "IfNotPresent",
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "envFrom": sources,
            "volumeMounts": [
                {"name": "files", "mountPath": "/etc/app"},
                {"name": "keys", "mountPath": "/etc/keys", "readOnly": true},
            ],
        })
    }
}

/// The `data` of a ConfigMap or a Secret: four keys of text. The text is also valid base64, which a Secret needs.
fn content(id: &ObjectId, step: &str) -> Value {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = format!("{id} {step}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut text = || -> String {
        let letters = (0..CONTENT / 4).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(ALPHABET[usize::try_from(state >> 58).unwrap_or_default()])
        });
        letters.collect()
    };
    let keys = ["alpha", "beta", "gamma", "delta"].map(|key| (key.to_owned(), Value::String(text())));
    Value::Object(Map::from_iter(keys))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn world(workloads: usize, namespaces: usize) -> World {
        World {
            label: "bench".into(),
            namespace_prefix: "bench-r1".into(),
            workloads,
            namespaces,
            members: vec!["m1".into(), "m2".into()],
        }
    }

    #[test]
    fn the_same_parameters_give_the_same_objects() {
        assert_eq!(world(5, 2).first(), world(5, 2).first());
        assert_eq!(world(5, 2).deployments(), world(5, 2).deployments());
    }

    #[test]
    fn every_object_has_content_of_its_own_of_about_a_kilobyte() {
        let objects: Vec<_> = world(20, 3)
            .first()
            .into_iter()
            .filter(|(id, _)| id.kind != Kind::Policy)
            .collect();
        let mut contents: Vec<_> = objects
            .iter()
            .map(|(_, object)| object["data"].to_string())
            .collect();
        contents.sort();
        contents.dedup();
        assert_eq!(contents.len(), objects.len());
        assert!(contents.iter().all(|text| (1000..1200).contains(&text.len())));
    }

    #[test]
    fn a_workload_refers_to_its_own_dependencies_and_the_shared_secret() {
        let (id, object) = &world(3, 2).deployments()[1];
        let text = object.to_string();
        assert_eq!(id.to_string(), "Deployment bench-r1-01/app-0001");
        for name in ["app-0001-files", "app-0001-env", "app-0001-keys", "\"shared\""] {
            assert!(text.contains(name), "{name}");
        }
        let dropped = world(3, 2).without_environment(1).to_string();
        assert!(!dropped.contains("app-0001-env") && dropped.contains("\"shared\""));
    }

    #[test]
    fn copies_are_everything_but_the_policies() {
        let world = world(30, 10);
        assert_eq!(world.copies().len(), 30 * 4 + 10);
        assert_eq!(world.namespaces().count(), 10);
        assert!(world.copies().iter().all(|id| Kind::COPIED.contains(&id.kind)));
    }

    #[test]
    fn an_edit_changes_the_content_and_tells_so_in_the_metadata() {
        let world = world(1, 1);
        let id = world.own_id(0, Own::Secret);
        let (one, two) = (world.edit(&id, "1"), world.edit(&id, "2"));
        assert_ne!(one["data"], two["data"]);
        assert_eq!(two["metadata"]["annotations"][STEP], "2");
    }
}
