//! The URL names and scopes of kinds: from a server's discovery, or from the kinds that are known.

use std::collections::BTreeMap;

use entourage_core::{
    adoption::Preferred,
    interpreter::shipped::{self, Shipped},
    object::{Gvk, Str},
    rights::propagated_kind,
};
use kube::{
    Client,
    api::ApiResource,
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde_json::Value;

use crate::connect::{explain, is_not_found, within};

/// Kubernetes' own kinds without a namespace that are not native: group and kind.
const CLUSTER_SCOPED: &[(&str, &str)] = &[
    ("", "Node"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    // The control plane's own.
    ("apps.karmada.io", "WorkloadRebalancer"),
    ("cluster.karmada.io", "Cluster"),
    ("config.karmada.io", "ResourceInterpreterCustomization"),
    ("config.karmada.io", "ResourceInterpreterWebhookConfiguration"),
    ("config.karmada.io", "ResourceExploringWebhookConfiguration"),
    ("policy.karmada.io", "ClusterOverridePolicy"),
    ("policy.karmada.io", "ClusterPropagationPolicy"),
    ("policy.karmada.io", "ClusterTaintPolicy"),
    ("work.karmada.io", "ClusterResourceBinding"),
];

/// Kinds that the files themselves define: group and kind, and whether they lie in namespaces.
#[must_use]
pub fn defined(objects: &[Value]) -> BTreeMap<(String, String), bool> {
    let definitions = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition");
    definitions
        .map(|object| {
            let spec = &object["spec"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = (text(&spec["group"]), text(&spec["names"]["kind"]));
            (key, spec["scope"] != "Cluster")
        })
        .collect()
}

/// True if a kind is namespaced, as far as is known without a server: an unknown kind is.
#[must_use]
pub fn is_namespaced(gvk: &Gvk, defined: &BTreeMap<(String, String), bool>) -> bool {
    let (group, kind) = (gvk.group.to_string(), gvk.kind.to_string());
    let mut shipped = shipped::all().iter().map(Shipped::file);
    let known = propagated_kind(&group, &kind).is_some_and(|native| !native.resource.namespaced)
        || CLUSTER_SCOPED.contains(&(group.as_str(), kind.as_str()))
        || shipped.any(|file| file.cluster_scoped && (&file.group, &file.kind) == (&group, &kind));
    defined.get(&(group, kind)).copied().unwrap_or(!known)
}

/// A kind as a server serves it.
#[derive(Clone, Debug)]
pub struct Served {
    /// Its version and plural on the server.
    pub resource: ApiResource,
    /// True if the kind is namespaced.
    pub namespaced: bool,
}

/// The kinds that a server serves, as far as they were asked for.
#[derive(Default)]
pub struct Kinds {
    /// By group, kind and version: a kind that is served in one version need not be in another.
    known: BTreeMap<(Str, Str, Str), Option<Served>>,
}

impl Kinds {
    /// Asks a server for kinds that it was not asked for yet.
    ///
    /// # Errors
    /// When the server does not answer; that it does not serve a kind is no error.
    pub async fn learn(
        &mut self,
        client: &Client,
        wanted: impl IntoIterator<Item = Gvk>,
    ) -> anyhow::Result<()> {
        for gvk in wanted {
            if self.known.contains_key(&key(&gvk)) {
                continue;
            }
            let name = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
            let served = match within(pinned_kind(client, &name)).await {
                Ok((resource, capabilities)) => Some(Served {
                    resource,
                    namespaced: capabilities.scope == Scope::Namespaced,
                }),
                Err(kube::Error::Discovery(_)) => None,
                Err(error) if is_not_found(&error) => None,
                Err(error) => return Err(explain(error)),
            };
            self.known.insert(key(&gvk), served);
        }
        Ok(())
    }

    /// The first of these versions of a kind that a server serves; `None` when it serves none.
    ///
    /// # Errors
    /// As [`Self::learn`].
    pub async fn first_served(
        &mut self,
        client: &Client,
        versions: &[Gvk],
    ) -> anyhow::Result<Option<(Gvk, Served)>> {
        for gvk in versions {
            self.learn(client, [gvk.clone()]).await?;
            if let Some(served) = self.get(gvk) {
                return Ok(Some((gvk.clone(), served.clone())));
            }
        }
        Ok(None)
    }

    /// A kind that was asked for, in its version; `None` when it is not served.
    #[must_use]
    pub fn get(&self, gvk: &Gvk) -> Option<&Served> {
        self.known.get(&key(gvk))?.as_ref()
    }

    /// A kind that was asked for, in its version or another one that was asked for and is served: every version shows the
    /// same objects.
    #[must_use]
    pub fn in_some_version(&self, gvk: &Gvk) -> Option<&Served> {
        let first = (gvk.group.clone(), gvk.kind.clone(), Str::from(""));
        let versions = self.known.range(first..);
        let mut versions =
            versions.take_while(|((group, kind, _), _)| (group, kind) == (&gvk.group, &gvk.kind));
        self.get(gvk)
            .or_else(|| versions.find_map(|(_, served)| served.as_ref()))
    }
}

/// The version of each API group that a server prefers, by group.
///
/// # Errors
/// When the server does not answer.
pub async fn preferred(client: &Client) -> anyhow::Result<Preferred> {
    let groups = within(client.list_api_groups()).await.map_err(explain)?;
    let mut all = Preferred::from([("".into(), "v1".into())]);
    for group in groups.groups {
        let first = group.versions.into_iter().next();
        if let Some(preferred) = group.preferred_version.or(first) {
            all.insert(group.name.into(), preferred.version.into());
        }
    }
    Ok(all)
}

fn key(gvk: &Gvk) -> (Str, Str, Str) {
    (gvk.group.clone(), gvk.kind.clone(), gvk.version.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_that_the_files_define_lies_where_they_say() {
        let crd = |kind: &str, scope: &str| {
            json!({"kind": "CustomResourceDefinition",
                "spec": {"group": "example.com", "scope": scope, "names": {"kind": kind}}})
        };
        let defined = defined(&[crd("Wide", "Cluster"), crd("Near", "Namespaced")]);
        let of = |api_version: &str, kind: &str| is_namespaced(&Gvk::new(api_version, kind), &defined);
        assert!(!of("example.com/v1", "Wide"));
        assert!(of("example.com/v1", "Near") && of("example.com/v1", "Unknown"));
        assert!(of("apps/v1", "Deployment") && !of("rbac.authorization.k8s.io/v1", "ClusterRole"));
        assert!(of("cert-manager.io/v1", "Issuer") && !of("cert-manager.io/v1", "ClusterIssuer"));
    }

    #[tokio::test]
    async fn each_version_of_a_kind_is_served_or_not_by_itself() {
        let list = |version: &str, resources: serde_json::Value| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources});
        let budgets = json!([{"name": "poddisruptionbudgets", "singularName": "", "namespaced": true,
            "kind": "PodDisruptionBudget", "verbs": ["get", "list"]}]);
        let scalers = json!([{"name": "horizontalpodautoscalers", "singularName": "", "namespaced": true,
            "kind": "HorizontalPodAutoscaler", "verbs": ["get", "list"]}]);
        let server = crate::mock::Server::new("hub").without("/apis/policy/v1beta1");
        server.put("/apis/policy/v1", list("policy/v1", budgets));
        for version in ["autoscaling/v1", "autoscaling/v2"] {
            server.put(&format!("/apis/{version}"), list(version, scalers.clone()));
        }
        let budget = |version: &str| Gvk::new(version, "PodDisruptionBudget");
        let scaler = |version: &str| Gvk::new(version, "HorizontalPodAutoscaler");
        let (old, new) = (budget("policy/v1beta1"), budget("policy/v1"));
        let (one, two) = (scaler("autoscaling/v1"), scaler("autoscaling/v2"));
        let mut kinds = Kinds::default();
        let wanted = [&old, &new, &one, &two].map(Clone::clone);
        kinds.learn(&server.client(), wanted).await.unwrap();
        let at = |served: Option<&Served>| served.map(|served| served.resource.api_version.clone());
        assert_eq!(at(kinds.get(&old)), None);
        assert_eq!(at(kinds.get(&new)).as_deref(), Some("policy/v1"));
        assert_eq!(at(kinds.get(&one)).as_deref(), Some("autoscaling/v1"));
        assert_eq!(at(kinds.get(&two)).as_deref(), Some("autoscaling/v2"));
        assert_eq!(at(kinds.in_some_version(&old)).as_deref(), Some("policy/v1"));
        assert_eq!(at(kinds.in_some_version(&budget("other/v1"))), None);
    }

    #[test]
    fn the_table_knows_the_scope_of_every_definition() {
        for crd in entourage_api::crds::crds(None) {
            let gvk = Gvk::new(&format!("{}/v1", crd.spec.group), &crd.spec.names.kind);
            let namespaced = crd.spec.scope == "Namespaced";
            assert_eq!(
                is_namespaced(&gvk, &BTreeMap::new()),
                namespaced,
                "{}",
                crd.spec.names.kind
            );
        }
    }
}
