//! Asks a hub for the client certificate of an agent, by a CertificateSigningRequest.

use std::time::Duration;

use anyhow::{Context as _, Result};
use entourage_api::names;
use entourage_core::registration::SIGNER;
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{
        CertificateSigningRequest, CertificateSigningRequestSpec, CertificateSigningRequestStatus,
    },
};
use kube::{Api, Client, api::ObjectMeta};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use secrecy::SecretString;
use tokio::time::{Instant, sleep};

use crate::{
    apply::post,
    connect::{explain, is_not_found, within},
};

/// The pause between two looks at the request: its sender may read it by name alone, and not watch.
const PAUSE: Duration = Duration::from_millis(500);

/// A certificate and its key, as PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: SecretString,
}

/// A request that was sent, and the key that its certificate is for.
pub struct Pending {
    /// The name of the CertificateSigningRequest.
    pub name: String,
    key: KeyPair,
}

/// Asks for a certificate that is valid for about `seconds`. The key leaves this process with the result only.
///
/// # Errors
/// The hub refuses the request.
pub async fn request(hub: &Client, cluster: &str, seconds: i32) -> Result<Pending> {
    let key = KeyPair::generate().context("cannot make a key")?;
    let request = pkcs10(cluster, &key)?;
    let object = CertificateSigningRequest {
        metadata: ObjectMeta {
            generate_name: Some(format!("entourage-agent-{cluster}-")),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(request.into_bytes()),
            signer_name: SIGNER.to_owned(),
            usages: Some(["digital signature", "client auth"].map(str::to_owned).to_vec()),
            expiration_seconds: Some(seconds),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    };
    let requests: Api<CertificateSigningRequest> = Api::all(hub.clone());
    let created = within(requests.create(&post(), &object))
        .await
        .map_err(explain)
        .context("cannot create a CertificateSigningRequest on the hub")?;
    let name = created.metadata.name.unwrap_or_default();
    Ok(Pending { name, key })
}

/// The end of a wait.
pub enum Answer {
    /// The certificate.
    Issued(Issued),
    /// It is not there in time; and why, with what to do. The request stands, and may be waited for again.
    Late(String),
    /// There will be none; and why.
    Refused(String),
}

/// Waits until the certificate is there, for at most `limit`.
///
/// # Errors
/// The request cannot be read, all the time.
pub async fn wait(hub: &Client, pending: &Pending, limit: Duration) -> Result<Answer> {
    let requests: Api<CertificateSigningRequest> = Api::all(hub.clone());
    let name = &pending.name;
    let began = Instant::now();
    loop {
        let is_late = began.elapsed() >= limit;
        let state = match within(requests.get(name)).await {
            Ok(request) => state(request.status.as_ref()),
            Err(error) if is_not_found(&error) => {
                State::Refused("it was deleted before it was approved and signed".to_owned())
            }
            // It may pass, as every read may.
            Err(_) if !is_late => State::Pending,
            Err(error) => {
                return Err(explain(error))
                    .with_context(|| format!("cannot read the CertificateSigningRequest {name} on the hub"));
            }
        };
        match state {
            State::Issued(certificate) => {
                let key = SecretString::from(pending.key.serialize_pem());
                return Ok(Answer::Issued(Issued { certificate, key }));
            }
            State::Refused(why) => {
                return Ok(Answer::Refused(format!(
                    "the CertificateSigningRequest {name} of the hub: {why}"
                )));
            }
            State::Approved | State::Pending if !is_late => sleep(PAUSE).await,
            State::Approved => {
                return Ok(Answer::Late(format!(
                    "the CertificateSigningRequest {name} is approved, but not signed after {} s; the hub needs a controller manager \
                     with the controller csrsigning and the key of its client certificate authority",
                    limit.as_secs()
                )));
            }
            State::Pending => {
                return Ok(Answer::Late(format!(
                    "the CertificateSigningRequest {name} is not approved after {} s; the hub's controllers approve it with \
                     --controllers=*,agentcsrapproving and the rights of config/rbac-registration, an administrator with: kubectl \
                     certificate approve {name}",
                    limit.as_secs()
                )));
            }
        }
    }
}

/// The PKCS#10 request of an agent, as PEM.
fn pkcs10(cluster: &str, key: &KeyPair) -> Result<String> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, names::agent_user(cluster));
    params
        .distinguished_name
        .push(DnType::OrganizationName, names::AGENTS);
    let request = params
        .serialize_request(key)
        .context("cannot make a certificate request")?;
    request.pem().context("cannot encode a certificate request")
}

/// The state of a request.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Pending,
    Approved,
    /// Denied or failed, and why.
    Refused(String),
    /// The certificate, as PEM.
    Issued(String),
}

fn state(status: Option<&CertificateSigningRequestStatus>) -> State {
    let Some(status) = status else {
        return State::Pending;
    };
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let condition = |wanted: &str| conditions.iter().find(|each| each.type_ == wanted);
    if let Some(refused) = condition("Denied").or_else(|| condition("Failed")) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        return State::Refused(format!("{}: {}", text(&refused.reason), text(&refused.message)));
    }
    let certificate = status.certificate.as_ref().map(|bytes| bytes.0.clone());
    match certificate.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(pem) if !pem.is_empty() => State::Issued(pem),
        _ if condition("Approved").is_some() => State::Approved,
        _ => State::Pending,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use x509_parser::{certification_request::X509CertificationRequest, pem::Pem, prelude::FromDer as _};

    use super::*;

    #[test]
    fn the_request_is_for_the_user_and_the_group_of_the_agent_and_for_nothing_else() {
        let text = pkcs10("edge1", &KeyPair::generate().unwrap()).unwrap();
        let (pem, _) = Pem::read(std::io::Cursor::new(text)).unwrap();
        let (_, request) = X509CertificationRequest::from_der(&pem.contents).unwrap();
        let info = &request.certification_request_info;
        assert!(info.attributes().is_empty());
        assert_eq!(
            info.subject.to_string(),
            "CN=system:karmada:agent:edge1, O=system:karmada:agents"
        );
    }

    #[test]
    fn the_state_of_a_request_is_read_from_its_status() {
        let condition = |type_: &str| json!({"conditions": [{"type": type_, "status": "True", "reason": "R", "message": "m"}]});
        // "cert" in base64.
        let signed =
            json!({"certificate": "Y2VydA==", "conditions": [{"type": "Approved", "status": "True"}]});
        for (status, expected) in [
            (json!({}), State::Pending),
            (condition("Approved"), State::Approved),
            (condition("Denied"), State::Refused("R: m".into())),
            (condition("Failed"), State::Refused("R: m".into())),
            (signed, State::Issued("cert".into())),
        ] {
            let read: CertificateSigningRequestStatus = serde_json::from_value(status.clone()).unwrap();
            assert_eq!(state(Some(&read)), expected, "{status}");
        }
        assert_eq!(state(None), State::Pending);
    }
}
