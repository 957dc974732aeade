//! The objects on the hub for one cluster in Pull mode: its Cluster and namespaces, the rights of its agent, and the rights of who
//! registers it.

use anyhow::{Result, bail};
use entourage_api::{keys::label, names};
use entourage_core::registration::Right;
use serde_json::{Value, json};

use super::{bootstrap, manifests};
use crate::{
    apply::{
        CLUSTER, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Kind, ROLE, ROLE_BINDING, Target, ensure_namespace,
    },
    args::CLUSTER_NAMESPACE,
    join::made_by_us,
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The cluster whose agent would be the user as which `karmadactl register` grants rights (`config/karmadactl`).
const GENERATOR: &str = "rbac-generator";

/// The rights of an agent, which are those of `config/agent/hub`.
const AGENT: [&str; 2] = [
    include_str!("../../../../config/agent/hub/role.yaml"),
    include_str!("../../../../config/agent/hub/role_binding.yaml"),
];

/// The Cluster as the user wants it. Fields that are not given are not changed.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Labels, for policies to select it by.
    pub labels: std::collections::BTreeMap<String, String>,
    /// `spec.provider`.
    pub provider: Option<String>,
    /// `spec.region`.
    pub region: Option<String>,
    /// `spec.zones`.
    pub zones: Vec<String>,
}

/// Brings all of it to the hub.
///
/// # Errors
/// As [`Target::ensure`]; also if the name is reserved, or belongs to a cluster in Push mode, or to one that is being removed.
pub async fn ensure(hub: &mut Target<'_>, cluster: &Described) -> Result<()> {
    let name = cluster.name.as_str();
    if name == GENERATOR {
        bail!(
            "the name {name} is reserved: the user of its agent would be the one by which karmadactl grants rights"
        );
    }
    if let Some(live) = hub.get(CLUSTER, "", name).await? {
        if live.metadata.deletion_timestamp.is_some() {
            bail!(
                "the cluster {name} is being removed; wait until it is gone: kubectl wait --for=delete cluster/{name}"
            );
        }
        if live.data.pointer("/spec/syncMode") != Some(&json!("Pull")) {
            bail!(
                "the cluster {name} is in Push mode: the controllers connect to it, and it needs no agent. To change that, \
                 remove it first: entourage unjoin {name}"
            );
        }
    }
    ensure_namespace(hub, CLUSTER_NAMESPACE).await?;
    let labels = json!({label::SYSTEM: "true"});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": names::execution_namespace(name), "labels": labels},
    });
    hub.ensure(crate::apply::NAMESPACE, namespace).await?;
    for (kind, object) in rights(name)? {
        hub.ensure(kind, object).await?;
    }
    // Last: a Cluster that exists has all that its agent needs.
    hub.ensure(CLUSTER, object(cluster)).await.map(drop)
}

fn object(cluster: &Described) -> Value {
    let mut spec = json!({"syncMode": "Pull"});
    for (field, value) in [("provider", &cluster.provider), ("region", &cluster.region)] {
        if let Some(value) = value {
            spec[field] = json!(value);
        }
    }
    if !cluster.zones.is_empty() {
        spec["zones"] = json!(cluster.zones);
    }
    json!({
        "apiVersion": CLUSTER.api_version, "kind": CLUSTER.kind,
        "metadata": {"name": cluster.name, "labels": cluster.labels}, "spec": spec,
    })
}

/// The name of the bindings of a registered agent, and of the role to renew its certificate. An agent that was set up by hand has other
/// bindings to the same roles, and keeps them.
fn registered(cluster: &str) -> String {
    format!("entourage-registered-{cluster}")
}

/// The name of the role and the binding of who registers a cluster.
fn registers(cluster: &str) -> String {
    format!("entourage-register-{cluster}")
}

/// The roles and bindings of a cluster's agent, and of the bootstrap tokens that register it.
fn rights(cluster: &str) -> Result<Vec<(Kind, Value)>> {
    let mut all = Vec::new();
    for mut object in manifests(&AGENT, cluster)? {
        let kind = match object["kind"].as_str() {
            Some("ClusterRole") => CLUSTER_ROLE,
            Some("Role") => ROLE,
            Some("ClusterRoleBinding") => CLUSTER_ROLE_BINDING,
            Some("RoleBinding") => ROLE_BINDING,
            _ => bail!("config/agent/hub has an unknown kind"),
        };
        if object.get("subjects").is_some() {
            object["metadata"]["name"] = json!(registered(cluster));
            object["metadata"]["labels"] = json!(made_by_us());
            object["subjects"] = json!([subject("User", &names::agent_user(cluster))]);
        }
        all.push((kind, object));
    }
    // The binding to the agent's ClusterRole has the name already.
    let renews = format!("{}-certificate", registered(cluster));
    for (name, right, subject) in [
        (
            renews,
            Right::Renewal,
            subject("User", &names::agent_user(cluster)),
        ),
        (
            registers(cluster),
            Right::Registration,
            subject("Group", &bootstrap::group(cluster)),
        ),
    ] {
        let metadata = json!({"name": name, "labels": made_by_us()});
        let role = json!({
            "apiVersion": CLUSTER_ROLE.api_version, "kind": "ClusterRole", "metadata": metadata,
            "rules": certificates(right, cluster),
        });
        let binding = json!({
            "apiVersion": CLUSTER_ROLE_BINDING.api_version, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}, "subjects": [subject],
        });
        all.extend([(CLUSTER_ROLE, role), (CLUSTER_ROLE_BINDING, binding)]);
    }
    Ok(all)
}

fn subject(kind: &str, name: &str) -> Value {
    json!({"apiGroup": RBAC, "kind": kind, "name": name})
}

/// Takes the rights and the tokens of a cluster off the hub: its agent is cut off, although its certificate cannot be revoked, and who
/// has a token of it can obtain none. Objects that do not exist are not mentioned. The roles of an agent that was set up by hand stay.
///
/// # Errors
/// As [`Target::delete`]. The next run continues.
pub async fn remove(hub: &mut Target<'_>, cluster: &str) -> Result<()> {
    for token in bootstrap::list(hub, None).await? {
        if token.cluster == cluster {
            bootstrap::delete(hub, &token.id).await?;
        }
    }
    for (kind, object) in rights(cluster)?.into_iter().rev() {
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let is_for_registration = name.starts_with("entourage-regist");
        if is_for_registration && hub.get(kind, &namespace, &name).await?.is_some() {
            hub.delete(kind, &namespace, &name).await?;
        }
    }
    Ok(())
}

/// The rules by which a certificate of this cluster's agent is asked for, read, and approved.
fn certificates(right: Right, cluster: &str) -> Vec<Value> {
    let subresource = format!("certificatesigningrequests/{}", right.subresource());
    vec![
        json!({
            "apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"], "verbs": ["create", "get"],
        }),
        json!({
            "apiGroups": ["certificates.k8s.io"], "resources": [subresource], "resourceNames": [cluster],
            "verbs": ["create"],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_has_the_rights_of_config_as_a_user_and_renews_its_certificate() {
        let all = rights("edge1").unwrap();
        let text = serde_json::to_string(&all.iter().map(|(_, object)| object).collect::<Vec<_>>()).unwrap();
        assert!(
            !text.contains("member1") && text.contains("karmada-es-edge1"),
            "{text}"
        );
        let (_, role) = &all[0];
        assert_eq!(role["metadata"]["name"], "entourage-agent-edge1");
        let named = |name: &str, kind: &str| {
            let mut found = all.iter().filter(|(each, _)| each.kind == kind);
            found
                .find(|(_, object)| object["metadata"]["name"] == name)
                .map(|(_, object)| object)
                .unwrap()
        };
        let renewal = named("entourage-registered-edge1-certificate", "ClusterRole");
        let resources = json!(["certificatesigningrequests/selfclusteragent"]);
        assert_eq!(renewal["rules"][1]["resources"], resources);
        assert_eq!(renewal["rules"][1]["resourceNames"], json!(["edge1"]));
        for (kind, object) in &all {
            let subjects = object.get("subjects");
            assert_eq!(subjects.is_some(), kind.kind.ends_with("Binding"), "{object}");
            // Bindings of an agent that was set up by hand are left alone.
            assert!(
                subjects.is_none() || !object["metadata"]["name"].to_string().contains("agent"),
                "{object}"
            );
        }
        let users = all
            .iter()
            .filter(|(_, object)| object["subjects"][0]["kind"] == "User");
        assert_eq!(users.count(), 4);
    }

    #[test]
    fn who_registers_one_cluster_asks_for_certificates_of_no_other() {
        let all = rights("edge1").unwrap();
        let (_, role) = &all[all.len() - 2];
        assert_eq!(role["metadata"]["name"], "entourage-register-edge1");
        let granted: Vec<String> = role["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect();
        assert_eq!(granted.len(), 2);
        assert!(granted[1].contains(r#""resourceNames":["edge1"]"#), "{granted:?}");
        let (_, binding) = &all[all.len() - 1];
        assert_eq!(
            binding["subjects"][0]["name"],
            "system:bootstrappers:entourage:edge1"
        );
    }

    #[test]
    fn the_cluster_is_in_pull_mode_and_has_what_was_given() {
        let described = Described {
            name: "edge1".into(),
            region: Some("eu".into()),
            zones: vec!["a".into()],
            ..Described::default()
        };
        let spec = &object(&described)["spec"];
        assert_eq!(*spec, json!({"syncMode": "Pull", "region": "eu", "zones": ["a"]}));
    }
}
