//! Finds a hub by a bootstrap token, as kubeadm and karmadactl do.
//!
//! 1. `cluster-info` is read from whoever responds. It counts if it is signed with the token.
//! 2. It must name an authority whose public key the user gave.
//! 3. It is read again, from a server that this authority vouches for, and must be the same.
//!
//! Nothing secret is sent before that. Of several authorities only those are trusted whose keys were given.

use std::{fmt, time::Duration};

use anyhow::{Context as _, Result, anyhow, bail};
use entourage_core::cluster_info::{NAME, NAMESPACE, verified};
use k8s_openapi::{ByteString, api::core::v1::ConfigMap};
use kube::{
    Api, Client,
    config::{KubeConfigOptions, Kubeconfig},
};
use ring::digest::{SHA256, digest};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use x509_parser::pem::Pem;

use super::{
    bootstrap,
    kubeconfig::{Hub, anonymous},
};
use crate::{
    connect::{self, Connection, explain, within},
    join::pem,
};

/// The pause between two looks at a ConfigMap that is not signed yet.
const PAUSE: Duration = Duration::from_secs(1);

/// The SHA-256 of the public key of an authority.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pin(String);

impl Pin {
    fn of(public_key: &[u8]) -> Self {
        let hash = digest(&SHA256, public_key);
        Self(hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// Reads `sha256:HEX`.
///
/// # Errors
/// A sentence for the user.
pub fn pin(text: &str) -> Result<Pin, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    if hex.len() != 64 || !hex.bytes().all(|c| c.is_ascii_hexdigit()) {
        return Err("a hash is sha256: and 64 hexadecimal digits".to_owned());
    }
    Ok(Pin(hex.to_lowercase()))
}

/// The certificates of a bundle, as DER, each with the hash of its public key.
///
/// # Errors
/// The bundle has none, or one cannot be read.
pub fn certificates(bundle: &[u8]) -> Result<Vec<(Pin, Vec<u8>)>> {
    let wrong = || anyhow!("the certificates of the hub cannot be read");
    let mut all = Vec::new();
    for block in Pem::iter_from_buffer(bundle) {
        let block = block.map_err(|_| wrong())?;
        let pin = block
            .parse_x509()
            .map(|certificate| Pin::of(certificate.public_key().raw))
            .map_err(|_| wrong())?;
        all.push((pin, block.contents));
    }
    if all.is_empty() {
        return Err(wrong());
    }
    Ok(all)
}

/// The hub at an address, verified by a token and the public keys of its authorities. `wait`: until it is signed with the token.
///
/// # Errors
/// The cause and the remedy.
pub async fn hub(endpoint: &str, token: &SecretString, pins: &[Pin], wait: Duration) -> Result<Hub> {
    let server = server(endpoint)?;
    let verified = verify(&server, (token, pins), wait).await;
    verified.with_context(|| format!("cannot verify the hub {server}"))
}

async fn verify(server: &str, (token, pins): (&SecretString, &[Pin]), wait: Duration) -> Result<Hub> {
    let token = bootstrap::parts(token.expose_secret())?;
    let named = |authority| Hub {
        server: server.to_owned(),
        authority,
    };
    let (kubeconfig, authority) = found(&client(&named(None)).await?, token, pins, wait).await?;
    let hub = named(Some(authority));
    confirmed(&client(&hub).await?, token, &kubeconfig, wait).await?;
    Ok(hub)
}

/// The URL of `HOST:PORT`.
fn server(endpoint: &str) -> Result<String> {
    if endpoint.starts_with("http://") {
        bail!("the hub's address {endpoint:?} is not encrypted; give HOST:PORT");
    }
    let rest = endpoint.strip_prefix("https://").unwrap_or(endpoint);
    Ok(format!("https://{}", rest.trim_end_matches('/')))
}

async fn client(hub: &Hub) -> Result<Client> {
    let text = anonymous(hub)?;
    let read =
        Kubeconfig::from_yaml(text.expose_secret()).context("the address of the hub cannot be used")?;
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let config = config.context("the address of the hub cannot be used")?;
    connect::client(Connection::from(config))
}

/// The kubeconfig of whoever responds, signed with the token, and its authorities that have one of these public keys, as PEM.
async fn found(hub: &Client, token: (&str, &str), pins: &[Pin], wait: Duration) -> Result<(String, String)> {
    let kubeconfig = signed(hub, token, wait).await?;
    let authority = pinned(&kubeconfig, pins)?;
    Ok((kubeconfig, authority))
}

/// Fails if a server that is verified says something else.
async fn confirmed(hub: &Client, token: (&str, &str), kubeconfig: &str, wait: Duration) -> Result<()> {
    if signed(hub, token, wait).await? != kubeconfig {
        bail!("{NAMESPACE}/{NAME} of the hub changed while it was read: run this again");
    }
    Ok(())
}

/// The kubeconfig of `cluster-info`, as soon as it is signed with the token.
async fn signed(hub: &Client, (id, secret): (&str, &str), wait: Duration) -> Result<String> {
    let config_maps: Api<ConfigMap> = Api::namespaced(hub.clone(), NAMESPACE);
    let end = Instant::now() + wait;
    loop {
        let found = match within(config_maps.get_opt(NAME)).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => bail!(
                "it lets nobody without credentials read {NAMESPACE}/{NAME}: have `entourage token create` with \
                 --print-register-command permit that there, and its API server accept anonymous requests; or use \
                 --bootstrap-kubeconfig"
            ),
            found => found.map_err(explain)?,
        };
        let found = found.with_context(|| {
            format!(
                "it has no ConfigMap {NAMESPACE}/{NAME}: `entourage token create` with --print-register-command creates it there; \
                 or use --bootstrap-kubeconfig"
            )
        })?;
        let found = serde_json::to_value(found)?;
        match verified(&found, id, secret) {
            Ok(kubeconfig) => return Ok(kubeconfig.to_owned()),
            Err(why) if why.is_awaited() && Instant::now() < end => sleep(PAUSE).await,
            Err(why) => bail!("{why}"),
        }
    }
}

/// The certificates of a kubeconfig, as PEM.
///
/// # Errors
/// It cannot be read, or has none.
pub fn authority_of(kubeconfig: &str) -> Result<Vec<u8>> {
    let read: Value = serde_saphyr::from_str(kubeconfig)
        .map_err(|_| anyhow!("the kubeconfig in {NAMESPACE}/{NAME} cannot be read"))?;
    let encoded = &read["clusters"][0]["cluster"]["certificate-authority-data"];
    let decoded = serde_json::from_value::<ByteString>(encoded.clone());
    let decoded = decoded.map_err(|_| anyhow!("the kubeconfig in {NAMESPACE}/{NAME} has no certificates"))?;
    Ok(decoded.0)
}

/// The certificates of a kubeconfig that have one of these public keys, as PEM.
fn pinned(kubeconfig: &str, pins: &[Pin]) -> Result<String> {
    let all = certificates(&authority_of(kubeconfig)?)?;
    let trusted = all.iter().filter(|(pin, _)| pins.contains(pin));
    let trusted = trusted.map(|(_, der)| pem(der)).collect::<Result<String>>()?;
    if trusted.is_empty() {
        bail!(
            "none of its authorities has the public key of --discovery-token-ca-cert-hash: that is of another hub, or somebody \
             between responds. Nothing secret was sent to it"
        );
    }
    Ok(trusted)
}

#[cfg(test)]
mod tests {
    use entourage_core::cluster_info::{SIGNATURE, signed as sign, token as signing};
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::json;

    use super::*;
    use crate::{mock::Server, registration::base64};

    const TOKEN: (&str, &str) = ("abcdef", "0123456789abcdef");
    const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

    /// A certificate that signs itself, as PEM.
    fn certificate() -> String {
        let key = KeyPair::generate().unwrap();
        CertificateParams::default().self_signed(&key).unwrap().pem()
    }

    fn pin_of(certificate: &str) -> Pin {
        certificates(certificate.as_bytes()).unwrap().remove(0).0
    }

    /// The ConfigMap of a hub with this authority, signed with the token with this secret part.
    fn config_map(authority: &str, secret: &str) -> Value {
        let value = |text: &str| base64(text.as_bytes()).unwrap();
        let kubeconfig = super::super::cluster_info::kubeconfig("https://10.0.0.1:6443", authority).unwrap();
        let mut stored =
            json!({"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"kubeconfig": kubeconfig}});
        let secret = json!({"type": "bootstrap.kubernetes.io/token", "metadata": {"name": "bootstrap-token-abcdef"}, "data": {
            "token-id": value("abcdef"), "token-secret": value(secret), "usage-bootstrap-signing": value("true")}});
        let tokens: Vec<_> = signing(secret, entourage_core::object::Time(0))
            .into_iter()
            .collect();
        let patch = sign(&stored, &tokens).unwrap();
        let key = format!("{SIGNATURE}abcdef");
        stored["data"][&key] = patch["data"][&key].clone();
        stored
    }

    async fn looked(hub: &Server, pins: &[Pin]) -> Result<(String, String)> {
        found(&hub.client(), TOKEN, pins, Duration::ZERO).await
    }

    #[tokio::test]
    async fn a_hub_is_trusted_by_its_signature_and_the_key_of_its_authority() {
        let (one, other) = (certificate(), certificate());
        let hub = Server::new("hub");
        hub.put(PATH, config_map(&format!("{one}{other}"), TOKEN.1));
        let (kubeconfig, authority) = looked(&hub, &[pin_of(&one)]).await.unwrap();
        // The other one of the bundle is not.
        assert_eq!(certificates(authority.as_bytes()).unwrap().len(), 1);
        assert_eq!(pin_of(&authority), pin_of(&one));
        let client = hub.client();
        confirmed(&client, TOKEN, &kubeconfig, Duration::ZERO)
            .await
            .unwrap();
        assert!(hub.take_writes().is_empty());
        // It says something else to who verifies it.
        hub.put(PATH, config_map(&one, TOKEN.1));
        let error = confirmed(&client, TOKEN, &kubeconfig, Duration::ZERO).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("changed while"), "{error}");
    }

    #[tokio::test]
    async fn what_is_not_the_hub_is_not_trusted() {
        let (authority, other) = (certificate(), certificate());
        let good = config_map(&authority, TOKEN.1);
        let mut unsigned = good.clone();
        unsigned["data"]
            .as_object_mut()
            .unwrap()
            .remove("jws-kubeconfig-abcdef");
        let forged = config_map(&authority, "fedcba9876543210");
        for (stored, pin, says) in [
            (Some(&good), pin_of(&other), "--discovery-token-ca-cert-hash"),
            (Some(&forged), pin_of(&authority), "not made with this token"),
            (Some(&unsigned), pin_of(&authority), "bootstrapsigner"),
            (None, pin_of(&authority), "has no ConfigMap"),
        ] {
            let hub = Server::new("hub");
            if let Some(stored) = stored {
                hub.put(PATH, stored.clone());
            }
            let error = format!("{:#}", looked(&hub, &[pin]).await.unwrap_err());
            assert!(error.contains(says) && !error.contains(TOKEN.1), "{error}");
        }
        let hub = Server::new("hub").forbidding("GET", PATH);
        let error = looked(&hub, &[pin_of(&authority)]).await.unwrap_err().to_string();
        assert!(error.contains("--bootstrap-kubeconfig"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_signature_is_awaited() {
        let authority = certificate();
        let signed = config_map(&authority, TOKEN.1);
        let mut unsigned = signed.clone();
        unsigned["data"]
            .as_object_mut()
            .unwrap()
            .remove("jws-kubeconfig-abcdef");
        let hub = Server::new("hub").reacting(move |_, path, objects| {
            if path == PATH {
                objects.insert(PATH.to_owned(), signed.clone());
            }
        });
        hub.put(PATH, unsigned);
        let wait = Duration::from_secs(60);
        found(&hub.client(), TOKEN, &[pin_of(&authority)], wait)
            .await
            .unwrap();
    }

    #[test]
    fn a_hash_has_the_form_of_kubeadms() {
        let text = format!("sha256:{}", "Ab".repeat(32));
        assert_eq!(pin(&text).unwrap().to_string(), text.to_lowercase());
        for wrong in [
            "",
            "sha256:",
            "md5:00",
            &"ab".repeat(32),
            &format!("sha256:{}", "xy".repeat(32)),
        ] {
            pin(wrong).unwrap_err();
        }
    }

    #[test]
    fn an_address_is_encrypted() {
        for (given, wanted) in [
            ("hub:6443", "https://hub:6443"),
            ("https://hub:6443/", "https://hub:6443"),
        ] {
            assert_eq!(server(given).unwrap(), wanted);
        }
        server("http://hub:6443").unwrap_err();
    }
}
