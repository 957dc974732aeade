//! The identity of a hub for those who have nothing but a bootstrap token: the ConfigMap `cluster-info` with its address and its
//! certificates, which everybody may read. It is signed by `entourage controllers --controllers=*,bootstrapsigner`, or by the hub's
//! kube-controller-manager.

use anyhow::{Context as _, Result, bail};
use entourage_core::cluster_info::{KUBECONFIG, NAME, NAMESPACE};
use serde_json::{Value, json};

use super::{
    base64,
    discovery::{Pin, authority_of, certificates},
    kubeconfig::Hub,
};
use crate::{
    apply::{CONFIG_MAP, ROLE, ROLE_BINDING, Target, ensure_namespace},
    join::made_by_us,
};

/// The name of the role and the binding by which everybody may read it.
const EVERYBODY: &str = "entourage-cluster-info";

const RBAC: &str = "rbac.authorization.k8s.io";

/// Makes the hub say who it is, unless it does; returns the hashes of the public keys of its authorities.
///
/// # Errors
/// The hub's certificates are not known, or those that it names are others; it cannot be written.
pub async fn ensure(hub: &mut Target<'_>, address: &Hub) -> Result<Vec<Pin>> {
    let Some(authority) = &address.authority else {
        bail!(
            "the kubeconfig of the hub has no certificate-authority-data, so that nobody could verify the hub by a hash: register the \
             cluster by a kubeconfig, without --print-register-command"
        );
    };
    let mut pins: Vec<Pin> = hashes(authority.as_bytes())?;
    let held = hub.get(CONFIG_MAP, NAMESPACE, NAME).await?;
    let text = held.and_then(|held| held.data["data"][KUBECONFIG].as_str().map(str::to_owned));
    match text.filter(|text| !text.is_empty()) {
        // Another one made it: who it is for need not be known here.
        Some(text) => {
            let named = hashes(&authority_of(&text)?)?;
            pins.retain(|pin| named.contains(pin));
            if pins.is_empty() {
                bail!(
                    "{NAMESPACE}/{NAME} of the hub has other certificates than its kubeconfig here: correct it, or delete it so that \
                     this command creates it"
                );
            }
        }
        None => {
            ensure_namespace(hub, NAMESPACE).await?;
            let text = kubeconfig(&address.server, authority)?;
            let config_map = json!({
                "apiVersion": CONFIG_MAP.api_version, "kind": CONFIG_MAP.kind,
                "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {KUBECONFIG: text},
            });
            hub.ensure(CONFIG_MAP, config_map).await?;
        }
    }
    let metadata = json!({"name": EVERYBODY, "namespace": NAMESPACE, "labels": made_by_us()});
    let role = json!({
        "apiVersion": ROLE.api_version, "kind": ROLE.kind, "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": ROLE_BINDING.api_version, "kind": ROLE_BINDING.kind, "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": EVERYBODY},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "system:anonymous"}],
    });
    hub.ensure(ROLE, role).await?;
    hub.ensure(ROLE_BINDING, binding).await?;
    Ok(pins)
}

fn hashes(bundle: &[u8]) -> Result<Vec<Pin>> {
    let all = certificates(bundle)?;
    Ok(all.into_iter().map(|(pin, _)| pin).collect())
}

/// A kubeconfig with one cluster of no name and no user, as kubeadm and Karmada write it.
pub(super) fn kubeconfig(server: &str, authority: &str) -> Result<String> {
    let authority = base64(authority.as_bytes())?;
    let authority = authority.as_str().context("certificates cannot be encoded")?;
    let server = Value::from(server);
    Ok(format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {authority}\n    server: {server}\n  name: \"\"\n\
         contexts: null\ncurrent-context: \"\"\nkind: Config\npreferences: {{}}\nusers: null\n"
    ))
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;
    use crate::mock::Server;

    const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

    fn certificate() -> String {
        let key = KeyPair::generate().unwrap();
        CertificateParams::default().self_signed(&key).unwrap().pem()
    }

    async fn ensured(hub: &Server, authority: Option<&str>) -> Result<Vec<Pin>> {
        let mut target = Target {
            client: hub.client(),
            place: "hub",
            dry_run: false,
            out: &mut std::io::sink(),
        };
        let address = Hub {
            server: "https://hub:6443".into(),
            authority: authority.map(str::to_owned),
        };
        ensure(&mut target, &address).await
    }

    #[tokio::test]
    async fn a_hub_says_who_it_is_to_everybody_once() {
        let (hub, authority) = (Server::new("hub"), certificate());
        let pins = ensured(&hub, Some(&authority)).await.unwrap();
        assert_eq!(pins, hashes(authority.as_bytes()).unwrap());
        let stored = hub.object(PATH).unwrap();
        let text = stored["data"]["kubeconfig"].as_str().unwrap();
        let read = Kubeconfig::from_yaml(text).unwrap();
        let server = read.clusters[0].cluster.as_ref().unwrap().server.clone();
        assert_eq!(
            (read.clusters.len(), server.as_deref()),
            (1, Some("https://hub:6443"))
        );
        let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/roles/entourage-cluster-info";
        assert_eq!(
            hub.object(role).unwrap()["rules"][0]["resourceNames"],
            json!(["cluster-info"])
        );
        hub.take_writes();
        ensured(&hub, Some(&authority)).await.unwrap();
        assert_eq!(hub.take_writes(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_another_one_published_is_kept_and_must_have_the_same_authority() {
        let (hub, authority) = (Server::new("hub"), certificate());
        let theirs = kubeconfig("https://10.0.0.1:6443", &authority).unwrap();
        hub.put(
            PATH,
            json!({"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"kubeconfig": theirs}}),
        );
        let both = format!("{}{authority}", certificate());
        let pins = ensured(&hub, Some(&both)).await.unwrap();
        assert_eq!(pins, hashes(authority.as_bytes()).unwrap());
        assert_eq!(hub.object(PATH).unwrap()["data"]["kubeconfig"], theirs);
        let error = ensured(&hub, Some(&certificate())).await.unwrap_err().to_string();
        assert!(error.contains("other certificates"), "{error}");
        let error = ensured(&hub, None).await.unwrap_err().to_string();
        assert!(error.contains("without --print-register-command"), "{error}");
    }
}
