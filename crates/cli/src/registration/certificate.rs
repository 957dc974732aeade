//! Asks a hub for the client certificate of an agent, by a CertificateSigningRequest.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
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
    connect::{explain, within},
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

/// Obtains a certificate that is valid for about `seconds`, within `limit`. The key leaves this process with the result only.
///
/// # Errors
/// The hub refuses the request; it was denied, or failed, or is not approved or not signed in time: with what to do.
pub async fn obtain(hub: &Client, cluster: &str, seconds: i32, limit: Duration) -> Result<Issued> {
    let key = KeyPair::generate().context("cannot make a key")?;
    let request = pkcs10(cluster, &key)?;
    let requests: Api<CertificateSigningRequest> = Api::all(hub.clone());
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
    let created = within(requests.create(&post(), &object))
        .await
        .map_err(explain)
        .context("cannot create a CertificateSigningRequest on the hub")?;
    let name = created.metadata.name.unwrap_or_default();
    let began = Instant::now();
    loop {
        let read = within(requests.get(&name)).await;
        let state = match read {
            Ok(request) => state(request.status.as_ref()),
            // It may pass, as every read may.
            Err(_) if began.elapsed() < limit => State::Pending,
            Err(error) => {
                return Err(explain(error))
                    .with_context(|| format!("cannot read the CertificateSigningRequest {name} on the hub"));
            }
        };
        match state {
            State::Issued(certificate) => {
                let key = SecretString::from(key.serialize_pem());
                return Ok(Issued { certificate, key });
            }
            State::Refused(why) => bail!("the hub refused the CertificateSigningRequest {name}: {why}"),
            State::Approved | State::Pending if began.elapsed() < limit => sleep(PAUSE).await,
            State::Approved => bail!(
                "the CertificateSigningRequest {name} is approved, but not signed after {} s; the hub needs a controller \
                 manager with the controller csrsigning and the key of its client certificate authority",
                limit.as_secs()
            ),
            State::Pending => bail!(
                "the CertificateSigningRequest {name} is not approved after {} s; approve it (kubectl certificate approve \
                 {name}) and run this again, or run the hub's controllers with --controllers=*,agentcsrapproving and the rights \
                 of config/rbac-registration",
                limit.as_secs()
            ),
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

    use super::*;

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
