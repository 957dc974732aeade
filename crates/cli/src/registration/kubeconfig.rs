//! The kubeconfigs of registration: the one with the bootstrap token, whose context has the name of the cluster, and the agent's with its
//! client certificate.

use std::{io::Write as _, path::Path};

use anyhow::{Context as _, Result, anyhow, bail};
use entourage_core::object::Time;
use kube::{Config, config::Kubeconfig};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use x509_parser::pem::Pem;

use super::{base64, certificate::Issued};
use crate::join::pem;

/// The server of a kubeconfig, and its trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// The URL.
    pub server: String,
    /// Certificates to trust, as PEM; `None` for those of the system.
    pub authority: Option<String>,
}

impl Hub {
    /// Those of a configuration, with another URL if one is given.
    ///
    /// # Errors
    /// The configuration skips the verification of certificates, or the connection is not encrypted: the credentials would be sent to
    /// whoever responds.
    pub fn of(config: &Config, server: Option<&str>) -> Result<Self> {
        let server = server.map_or_else(|| config.cluster_url.to_string(), str::to_owned);
        let server = server.trim_end_matches('/').to_owned();
        if config.accept_invalid_certs {
            bail!(
                "the kubeconfig of the hub skips the verification of certificates; give one with certificate-authority-data"
            );
        }
        if !server.starts_with("https://") {
            bail!("the hub's address {server:?} is not encrypted; give one with --server https://HOST:PORT");
        }
        let authority = config.root_cert.as_deref();
        let authority = authority.map(|all| all.iter().map(|der| pem(der)).collect::<Result<String>>());
        Ok(Self {
            server,
            authority: authority.transpose()?,
        })
    }
}

/// Writes a file that only its owner may read, at once.
///
/// # Errors
/// The directory is missing or cannot be written.
pub fn write_file(file: &Path, content: &SecretString) -> Result<()> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let failed = || format!("cannot write {}", file.display());
    // It is created with mode 0600.
    let mut temporary =
        tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new("."))).with_context(failed)?;
    temporary
        .write_all(content.expose_secret().as_bytes())
        .with_context(failed)?;
    temporary.as_file().sync_all().with_context(failed)?;
    temporary.persist(file).with_context(failed)?;
    Ok(())
}

/// The kubeconfig with a bootstrap token, as YAML.
///
/// # Errors
/// It cannot be encoded.
pub fn with_token(hub: &Hub, cluster: &str, token: &SecretString) -> Result<SecretString> {
    render(hub, cluster, &json!({"token": token.expose_secret()}))
}

/// The kubeconfig with a certificate, as YAML.
///
/// # Errors
/// It cannot be encoded.
pub fn with_certificate(hub: &Hub, cluster: &str, issued: &Issued) -> Result<SecretString> {
    let user = json!({
        "client-certificate-data": base64(issued.certificate.as_bytes())?,
        "client-key-data": base64(issued.key.expose_secret().as_bytes())?,
    });
    render(hub, cluster, &user)
}

/// The kubeconfig of nobody in particular, as YAML. Without an authority whoever responds is believed: nothing secret may be sent.
///
/// # Errors
/// It cannot be encoded.
pub fn anonymous(hub: &Hub) -> Result<SecretString> {
    let mut server = json!({"server": hub.server});
    match &hub.authority {
        Some(authority) => server["certificate-authority-data"] = base64(authority.as_bytes())?,
        None => server["insecure-skip-tls-verify"] = json!(true),
    }
    rendered(&server, "hub", &json!({}))
}

fn render(hub: &Hub, cluster: &str, user: &Value) -> Result<SecretString> {
    let mut server = json!({"server": hub.server});
    if let Some(authority) = &hub.authority {
        server["certificate-authority-data"] = base64(authority.as_bytes())?;
    }
    rendered(&server, cluster, user)
}

fn rendered(server: &Value, cluster: &str, user: &Value) -> Result<SecretString> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": cluster,
        "clusters": [{"name": "hub", "cluster": server}],
        "users": [{"name": cluster, "user": user}],
        "contexts": [{"name": cluster, "context": {"cluster": "hub", "user": cluster}}],
    });
    text(&config)
}

/// YAML of a kubeconfig. An error quotes nothing of it.
fn text(config: &impl serde::Serialize) -> Result<SecretString> {
    let text = serde_saphyr::to_string(config).map_err(|_| anyhow!("a kubeconfig cannot be encoded"))?;
    Ok(SecretString::from(text))
}

/// The same kubeconfig with another certificate for the user of a context.
///
/// # Errors
/// It has no such context or user.
pub fn renewed(mut config: Kubeconfig, context: Option<&str>, issued: &Issued) -> Result<SecretString> {
    let string = |value: Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let certificate = string(base64(issued.certificate.as_bytes())?);
    let key = string(base64(issued.key.expose_secret().as_bytes())?);
    let user = user_of(&config, context)?;
    for each in &mut config.auth_infos {
        if each.name == user
            && let Some(info) = &mut each.auth_info
        {
            info.client_certificate = None;
            info.client_key = None;
            info.client_certificate_data = Some(certificate.clone());
            info.client_key_data = Some(SecretString::from(key.clone()));
        }
    }
    text(&config)
}

/// The client certificate of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The common name: the user on the hub.
    pub user: String,
    /// The time from which it is valid.
    pub start: Time,
    /// The time until which it is valid.
    pub end: Time,
}

/// The client certificate of a context; `None` if its user has none.
///
/// # Errors
/// There is no such context; the certificate cannot be read or is not one.
pub fn client_certificate(config: &Kubeconfig, context: Option<&str>) -> Result<Option<Certificate>> {
    let user = user_of(config, context)?;
    let info = config.auth_infos.iter().find(|each| each.name == user);
    let Some(info) = info.and_then(|each| each.auth_info.as_ref()) else {
        return Ok(None);
    };
    let bytes = match (&info.client_certificate_data, &info.client_certificate) {
        (Some(data), _) => {
            let decoded: k8s_openapi::ByteString = serde_json::from_value(json!(data))
                .map_err(|_| anyhow!("the client certificate of the hub's kubeconfig is not base64"))?;
            decoded.0
        }
        (None, Some(file)) => {
            std::fs::read(file).with_context(|| format!("cannot read the client certificate {file}"))?
        }
        (None, None) => return Ok(None),
    };
    let wrong = || anyhow!("the client certificate of the hub's kubeconfig is not PEM of a certificate");
    let (pem, _) = Pem::read(std::io::Cursor::new(bytes)).map_err(|_| wrong())?;
    let certificate = pem.parse_x509().map_err(|_| wrong())?;
    let millis = |seconds: i64| Time(seconds.saturating_mul(1000));
    let valid = certificate.validity();
    let user = certificate.subject().iter_common_name().next();
    Ok(Some(Certificate {
        user: user
            .and_then(|name| name.as_str().ok())
            .unwrap_or_default()
            .to_owned(),
        start: millis(valid.not_before.timestamp()),
        end: millis(valid.not_after.timestamp()),
    }))
}

fn user_of(config: &Kubeconfig, context: Option<&str>) -> Result<String> {
    let name = context.or(config.current_context.as_deref());
    let found = config
        .contexts
        .iter()
        .find(|each| Some(each.name.as_str()) == name);
    found
        .and_then(|each| each.context.as_ref()?.user.clone())
        .context("the context of the hub's kubeconfig has no user")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn hub() -> Hub {
        Hub {
            server: "https://hub:6443".into(),
            authority: Some("PEM".into()),
        }
    }

    fn issued(until: i32) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let user = entourage_api::names::agent_user("edge1");
        params.distinguished_name.push(rcgen::DnType::CommonName, user);
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        Issued {
            certificate: params.self_signed(&key).unwrap().pem(),
            key: SecretString::from(key.serialize_pem()),
        }
    }

    #[tokio::test]
    async fn the_kubeconfig_with_a_token_leads_to_the_hub_and_names_the_cluster() {
        let text = with_token(&hub(), "edge1", &SecretString::from("abc123.secret")).unwrap();
        let read = Kubeconfig::from_yaml(text.expose_secret()).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("edge1"));
        assert_eq!(client_certificate(&read, None).unwrap(), None);
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://hub:6443"));
        // "PEM" in base64.
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("UEVN"));
    }

    #[test]
    fn a_kubeconfig_file_is_for_its_owner_alone_and_replaced_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hub.kubeconfig");
        for content in ["one", "two"] {
            write_file(&file, &SecretString::from(content)).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        }
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let missing = directory.path().join("missing/hub.kubeconfig");
        let error = write_file(&missing, &SecretString::from("canary")).unwrap_err();
        assert!(!format!("{error:#}").contains("canary"), "{error:#}");
    }

    #[test]
    fn a_renewed_kubeconfig_has_another_certificate_and_the_rest_as_before() {
        let text = with_certificate(&hub(), "edge1", &issued(2027)).unwrap();
        let before = Kubeconfig::from_yaml(text.expose_secret()).unwrap();
        let second = |time: Time| time.0 / 1000;
        let held = client_certificate(&before, None).unwrap().unwrap();
        assert_eq!(held.user, "system:karmada:agent:edge1");
        assert_eq!(
            (second(held.start), second(held.end)),
            (1_767_225_600, 1_798_761_600)
        );
        let text = renewed(before, Some("edge1"), &issued(2028)).unwrap();
        let after = Kubeconfig::from_yaml(text.expose_secret()).unwrap();
        let held = client_certificate(&after, None).unwrap().unwrap();
        assert_eq!(second(held.end), 1_830_297_600);
        assert_eq!(
            after.clusters[0].cluster.as_ref().unwrap().server.as_deref(),
            Some("https://hub:6443")
        );
    }

    #[test]
    fn what_is_no_certificate_is_not_quoted() {
        let broken = Issued {
            certificate: "canary".into(),
            key: SecretString::from("canary"),
        };
        let text = with_certificate(&hub(), "edge1", &broken).unwrap();
        let read = Kubeconfig::from_yaml(text.expose_secret()).unwrap();
        let error = client_certificate(&read, None).unwrap_err().to_string();
        assert!(error.contains("not PEM") && !error.contains("canary"), "{error}");
    }
}
