//! The objects of the agent on its own cluster: those of `config/agent/member`, the Secret with the kubeconfig of the hub, and the right to
//! renew that.

use anyhow::{Context as _, Result, bail};
use kube::api::Patch;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::{base64, manifests};
use crate::{
    apply::{
        CLUSTER_ROLE, CLUSTER_ROLE_BINDING, DEPLOYMENT, Kind, ROLE, ROLE_BINDING, SECRET, SERVICE_ACCOUNT,
        Target, ensure_namespace, patch,
    },
    connect::{explain, within},
    join::made_by_us,
};

/// The name of the agent's objects.
pub const NAME: &str = "entourage-agent";

/// The container in its Deployment.
const CONTAINER: &str = "agent";

/// The Secret with the kubeconfig of the hub.
pub const SECRET_NAME: &str = "entourage-hub";
/// The key in that Secret.
pub const SECRET_KEY: &str = "kubeconfig";

/// The objects of `config/agent/member`, in the order in which they are written.
const AGENT: [&str; 4] = [
    include_str!("../../../../config/agent/member/service_account.yaml"),
    include_str!("../../../../config/agent/member/role.yaml"),
    include_str!("../../../../config/agent/member/role_binding.yaml"),
    include_str!("../../../../config/agent/member/deployment.yaml"),
];

/// The agent of a cluster.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The name of the Cluster on the hub.
    pub cluster: String,
    /// The namespace of its objects.
    pub namespace: String,
    /// The image.
    pub image: String,
}

/// Brings all of it to the cluster. Returns true if the agent was there before.
///
/// # Errors
/// As [`Target::ensure`].
pub async fn ensure(member: &mut Target<'_>, agent: &Agent, kubeconfig: &SecretString) -> Result<bool> {
    let existed = member.get(DEPLOYMENT, &agent.namespace, NAME).await?.is_some();
    ensure_namespace(member, &agent.namespace).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": SECRET_NAME, "namespace": agent.namespace, "labels": made_by_us()},
        "data": {SECRET_KEY: base64(kubeconfig.expose_secret().as_bytes())?},
    });
    member.ensure(SECRET, secret).await?;
    for (kind, object) in objects(agent)? {
        if kind == DEPLOYMENT && existed {
            update(member, agent).await?;
        } else {
            member.ensure(kind, object).await?;
        }
    }
    Ok(existed)
}

/// Gives an agent that exists the image, and leaves the rest of its Deployment as its users have it.
async fn update(member: &mut Target<'_>, agent: &Agent) -> Result<()> {
    let api = member.api(DEPLOYMENT, &agent.namespace);
    let live = member.get(DEPLOYMENT, &agent.namespace, NAME).await?;
    let containers = live
        .as_ref()
        .and_then(|live| live.data.pointer("/spec/template/spec/containers")?.as_array());
    let has_it = |container: &Value| container["name"] == CONTAINER && container["image"] == *agent.image;
    if containers.is_some_and(|all| all.iter().any(has_it)) {
        return member.say(DEPLOYMENT, NAME, "unchanged");
    }
    let body =
        json!({"spec": {"template": {"spec": {"containers": [{"name": CONTAINER, "image": agent.image}]}}}});
    within(api.patch(NAME, &patch(), &Patch::Strategic(&body)))
        .await
        .map_err(explain)
        .with_context(|| format!("cannot write deployment.apps/{NAME} on the member"))?;
    member.say(DEPLOYMENT, NAME, "configured")
}

/// The objects, without the namespace and the Secret.
fn objects(agent: &Agent) -> Result<Vec<(Kind, Value)>> {
    let mut all = vec![renewal_role(agent), renewal_binding(agent)];
    for mut object in manifests(&AGENT, &agent.cluster)? {
        let kind = match object["kind"].as_str() {
            Some("ServiceAccount") => SERVICE_ACCOUNT,
            Some("ClusterRole") => CLUSTER_ROLE,
            Some("ClusterRoleBinding") => CLUSTER_ROLE_BINDING,
            Some("Deployment") => DEPLOYMENT,
            _ => bail!("config/agent/member has an unknown kind"),
        };
        if kind.namespaced {
            object["metadata"]["namespace"] = json!(agent.namespace);
        }
        if let Some(subject) = object.pointer_mut("/subjects/0/namespace") {
            *subject = json!(agent.namespace);
        }
        if let Some(container) = object.pointer_mut("/spec/template/spec/containers/0") {
            container["image"] = json!(agent.image);
            let arguments = container["args"]
                .as_array_mut()
                .context("the agent has no arguments")?;
            let secret = format!("--hub-kubeconfig-secret={}/{SECRET_NAME}", agent.namespace);
            arguments.push(json!(secret));
        }
        all.push((kind, object));
    }
    Ok(all)
}

fn metadata(agent: &Agent) -> Value {
    json!({"name": NAME, "namespace": agent.namespace, "labels": made_by_us()})
}

/// The right to store a renewed certificate.
fn renewal_role(agent: &Agent) -> (Kind, Value) {
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET_NAME], "verbs": ["patch"]});
    let role = json!({
        "apiVersion": ROLE.api_version, "kind": "Role", "metadata": metadata(agent), "rules": [rule],
    });
    (ROLE, role)
}

fn renewal_binding(agent: &Agent) -> (Kind, Value) {
    let binding = json!({
        "apiVersion": ROLE_BINDING.api_version, "kind": "RoleBinding", "metadata": metadata(agent),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": agent.namespace}],
    });
    (ROLE_BINDING, binding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_runs_for_its_cluster_with_its_image_and_renews_its_kubeconfig() {
        let agent = Agent {
            cluster: "edge1".into(),
            namespace: "fleet".into(),
            image: "registry.example/entourage:1".into(),
        };
        let all = objects(&agent).unwrap();
        let text = serde_json::to_string(&all.iter().map(|(_, object)| object).collect::<Vec<_>>()).unwrap();
        assert!(
            !text.contains("member1") && !text.contains("karmada-system"),
            "{text}"
        );
        let (kind, deployment) = all.last().unwrap();
        assert_eq!(kind.kind, "Deployment");
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "registry.example/entourage:1");
        assert_eq!(container["name"], CONTAINER);
        let arguments = container["args"].to_string();
        for wanted in [
            "--cluster-name=edge1",
            "--hub-kubeconfig-secret=fleet/entourage-hub",
        ] {
            assert!(arguments.contains(wanted), "{arguments}");
        }
        // The volume is the Secret that is written, with the key that the flag names.
        assert!(arguments.contains(&format!("/{SECRET_KEY}\"")), "{arguments}");
        let volume = &deployment["spec"]["template"]["spec"]["volumes"][0];
        assert_eq!(volume["secret"]["secretName"], SECRET_NAME);
        // 0440 in octal, as kubectl reads it.
        assert_eq!(volume["secret"]["defaultMode"], json!(288));
    }

    #[test]
    fn the_agent_may_change_one_secret_and_read_none_by_that_right() {
        let agent = Agent {
            cluster: "edge1".into(),
            namespace: "fleet".into(),
            image: "x".into(),
        };
        let (_, role) = renewal_role(&agent);
        assert_eq!(role["rules"][0]["resourceNames"], json!([SECRET_NAME]));
        assert_eq!(role["rules"][0]["verbs"], json!(["patch"]));
    }
}
