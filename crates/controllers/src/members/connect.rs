//! Builds a client from a Cluster object and its Secret.

use std::{sync::Arc, time::Duration};

use entourage_api::keys::{annotation, reason};
use entourage_core::{
    cluster::credentials::{Address, Decision, Identity, SecretFacts, evaluate},
    object::{Gvk, NamespacedName, ResourceId, Str},
    observation::Server,
};
use k8s_openapi::ByteString;
use kube::Config;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::{Member, MembersOptions, Reach};
use crate::{
    client::{Api, ApiOptions, Form, capacity::Capacity, path::Path, tunnel::Unfit},
    error::Class,
    pull::{self, Facts},
};

/// The maximum duration of a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);

/// The reason why there is no client: a CamelCase reason and a sentence for the user who must act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The fields read from a Secret. No `Debug`, on purpose.
struct Credentials {
    token: String,
    ca: Option<Vec<u8>>,
    /// The Secret's resourceVersion.
    version: Option<String>,
    /// The Cluster and address that they are for.
    facts: SecretFacts,
}

/// The current resourceVersion of a member's Secret; `None` if it cannot be read.
pub(super) async fn version(reach: &Reach, options: &MembersOptions) -> Option<String> {
    let secret = reach.secret.as_ref()?;
    if secret.namespace != options.cluster_namespace {
        return None;
    }
    let path = Path::object(&ResourceId::new(
        Gvk::new("v1", "Secret"),
        &secret.namespace,
        &secret.name,
    ));
    let object = options.hub.get(&path, Form::Metadata).await.ok()?;
    resource_version(&object)
}

/// When the token of a Secret expires, in seconds since 1970; `None` if it does not, or that is not recorded.
fn expiration(facts: &SecretFacts) -> Option<i64> {
    let text = facts.annotations.get(annotation::TOKEN_EXPIRES)?;
    let at: k8s_openapi::jiff::Timestamp = text.parse().ok()?;
    Some(at.as_second())
}

fn resource_version(object: &Value) -> Option<String> {
    object["metadata"]["resourceVersion"].as_str().map(str::to_owned)
}

/// Builds the connection to a member; also returns the resourceVersion of its Secret.
pub(super) async fn connect(
    name: &Str,
    (reach, facts): (&Reach, &watch::Receiver<Facts>),
    options: &MembersOptions,
    suspect: &Arc<Notify>,
) -> Result<(Member, Option<String>), Refused> {
    if reach.is_pull() {
        let client = pull::client(options.hub.client().clone(), name, facts.clone());
        let api = api_options(name, options.pulled.clone(), options, suspect);
        let api = ApiOptions {
            is_reported: true,
            ..api
        };
        options.metrics.credentials_expire(name, None);
        return Ok((Member::new(Api::new(client, api)), None));
    }
    let identity = Identity::Controllers;
    let mut credentials =
        credentials(name, identity, reach, &options.hub, &options.cluster_namespace).await?;
    options
        .metrics
        .credentials_expire(name, expiration(&credentials.facts));
    let mut config = config(reach, &credentials)?;
    permit(name, identity, reach, &mut credentials, Some(&options.hub)).await?;
    config.connect_timeout = Some(CONNECT);
    config.default_retry = false;
    // The error's own text could quote the proxy's URL, with its password.
    let client = (options.clients)(name, config).map_err(|_| Refused {
        reason: reason::CLIENT_NOT_BUILT,
        message: "a client cannot be built; check spec.apiEndpoint, spec.proxyURL and the key caBundle of the Secret"
            .into(),
    })?;
    let version = credentials.version.take();
    let api = api_options(name, Capacity::new(options.bounds), options, suspect);
    Ok((Member::new(Api::new(client, api)), version))
}

fn api_options(
    name: &Str,
    capacity: Capacity,
    options: &MembersOptions,
    suspect: &Arc<Notify>,
) -> ApiOptions {
    ApiOptions {
        server: Server::Member(name.clone()),
        deadline: options.deadline,
        capacity,
        metrics: options.metrics.clone(),
        suspect: suspect.clone(),
        is_reported: false,
        may_write: options.may_write.clone(),
    }
}

/// The connection settings of a member, read once: for a read-only command.
///
/// # Errors
/// A sentence for the user who must act.
pub(super) async fn config_once(
    name: &Str,
    reach: &Reach,
    hub: &Api,
    namespace: &Str,
) -> Result<Config, String> {
    let read = async {
        let identity = Identity::Controllers;
        let mut credentials = credentials(name, identity, reach, hub, namespace).await?;
        let config = config(reach, &credentials)?;
        permit(name, identity, reach, &mut credentials, None).await?;
        Ok(config)
    };
    let mut config = read.await.map_err(|refused: Refused| refused.message)?;
    config.connect_timeout = Some(CONNECT);
    config.default_retry = false;
    Ok(config)
}

/// The connection of the identity that may impersonate users: settings, and the versions of what they were read from.
pub(super) struct Impersonating {
    pub(super) config: Config,
    /// The resourceVersion of its Secret.
    pub(super) version: Option<String>,
    /// The Secret whose certificates are trusted, if that is another one, and its resourceVersion.
    pub(super) trusted: Option<(NamespacedName, Option<String>)>,
}

/// The connection settings of a member for the identity that may impersonate users: `reach.secret` is its Secret. `controllers` is
/// the Secret of the controllers, which vouches for the address and the certificates where the impersonator's does not: those that Karmada
/// writes have neither.
///
/// # Errors
/// A sentence for the user who must act.
pub(super) async fn impersonator_config(
    name: &Str,
    reach: &Reach,
    controllers: Option<&NamespacedName>,
    hub: &Api,
    namespace: &Str,
) -> Result<Impersonating, String> {
    let read = async {
        let identity = Identity::Impersonator;
        let mut credentials = credentials(name, identity, reach, hub, namespace).await?;
        let mut trusted = None;
        let is_trust_missing = credentials.ca.is_none() && !reach.insecure;
        if is_trust_missing || !credentials.facts.is_recorded() {
            let (mut held, controllers) = bound(name, reach, controllers, hub, namespace).await?;
            credentials.ca = credentials.ca.or_else(|| held.ca.take());
            trusted = Some((controllers, held.version.take()));
        }
        let mut config = config(reach, &credentials)?;
        // Nothing is recorded: an address that the Secret does not name is vouched for each time.
        permit(name, identity, reach, &mut credentials, None).await?;
        config.connect_timeout = Some(CONNECT);
        config.default_retry = false;
        Ok(Impersonating {
            config,
            version: credentials.version.take(),
            trusted,
        })
    };
    read.await.map_err(|refused: Refused| refused.message)
}

/// The Secret of the controllers, which must be recorded to be for this very address. Who may write Clusters would otherwise choose the
/// address, or the certificates to trust, at the first use of an impersonator's Secret that says nothing of them.
async fn bound(
    name: &Str,
    reach: &Reach,
    controllers: Option<&NamespacedName>,
    hub: &Api,
    namespace: &Str,
) -> Result<(Credentials, NamespacedName), Refused> {
    let reach = Reach {
        secret: controllers.cloned(),
        ..reach.clone()
    };
    let identity = Identity::Controllers;
    let held = credentials(name, identity, &reach, hub, namespace).await?;
    match (
        evaluate(name, identity, &address(&reach), &held.facts),
        reach.secret,
    ) {
        (Decision::Use, Some(secret)) => Ok((held, secret)),
        (Decision::Refuse(refusal), _) => Err(Refused {
            reason: refusal.reason,
            message: refusal.message,
        }),
        _ => Err(Refused {
            reason: reason::CREDENTIALS_NOT_RECORDED,
            message: format!(
                "the controllers have not connected to Cluster {name} yet, so its address is not recorded on its Secret, and no token \
                 of the impersonator is sent. Run `entourage controllers`, or `entourage join {name}`"
            ),
        }),
    }
}

async fn credentials(
    name: &Str,
    identity: Identity,
    reach: &Reach,
    hub: &Api,
    namespace: &Str,
) -> Result<Credentials, Refused> {
    let field = identity.field();
    let Some(NamespacedName {
        namespace: lies_in,
        name: secret,
    }) = &reach.secret
    else {
        return Err(Refused {
            reason: reason::SECRET_MISSING,
            message: format!("Cluster {name} has no {field}; name a Secret in namespace {namespace}"),
        });
    };
    // A Cluster must not be able to make this process use any Secret of the hub as credentials (architecture 2.15).
    if lies_in != namespace {
        return Err(Refused {
            reason: reason::SECRET_NAMESPACE_FORBIDDEN,
            message: format!("{field}.namespace is {lies_in}; Secrets of Clusters must lie in {namespace}"),
        });
    }
    let id = ResourceId::new(Gvk::new("v1", "Secret"), namespace, secret);
    let mut object = hub
        .get(&Path::object(&id), Form::Whole)
        .await
        .map_err(|failure| {
            let reason = if failure.class() == Class::Missing {
                reason::SECRET_MISSING
            } else {
                reason::SECRET_NOT_READ
            };
            Refused {
                reason,
                message: format!("Secret {namespace}/{secret}: {}", failure.text(&id.gvk)),
            }
        })?;
    let token = decoded(&object, "token").and_then(|bytes| String::from_utf8(bytes).ok());
    let ca = decoded(&object, "caBundle").filter(|bytes| !bytes.is_empty());
    let version = resource_version(&object);
    let facts = facts(&id, &object);
    entourage_core::delivery::render::wipe(&mut object);
    match token.map(|token| token.trim().to_owned()) {
        Some(token) if !token.is_empty() => Ok(Credentials {
            token,
            ca,
            version,
            facts,
        }),
        _ => Err(Refused {
            reason: reason::CREDENTIALS_MISSING,
            message: format!("Secret {namespace}/{secret} has no key token"),
        }),
    }
}

/// Refuses credentials that are not for this Cluster at this address. The first use is recorded on the Secret before; not by a
/// read-only command, which has no `hub` to write to.
async fn permit(
    name: &Str,
    identity: Identity,
    reach: &Reach,
    credentials: &mut Credentials,
    hub: Option<&Api>,
) -> Result<(), Refused> {
    let (annotations, hub) = match (evaluate(name, identity, &address(reach), &credentials.facts), hub) {
        (Decision::Refuse(refusal), _) => {
            return Err(Refused {
                reason: refusal.reason,
                message: refusal.message,
            });
        }
        (Decision::Use, _) | (Decision::Record(_), None) => return Ok(()),
        (Decision::Record(annotations), Some(hub)) => (annotations, hub),
    };
    let SecretFacts {
        namespace,
        name: secret,
        ..
    } = &credentials.facts;
    let id = ResourceId::new(Gvk::new("v1", "Secret"), namespace, secret);
    // With the resourceVersion: the decision is valid for the Secret as it was read.
    let patch = json!({"metadata": {"annotations": annotations, "resourceVersion": credentials.version}});
    let answer = hub.merge(&Path::object(&id), &patch, Form::Metadata).await;
    let written = answer.map_err(|failure| Refused {
        reason: reason::CREDENTIALS_NOT_RECORDED,
        message: format!(
            "the address of Cluster {name} cannot be recorded on its Secret {namespace}/{secret}, and no token is sent before: {}. Retrying; `entourage join {name}` records it, too",
            failure.text(&id.gvk)
        ),
    })?;
    credentials.version = resource_version(&written);
    Ok(())
}

/// The address that the token of a Cluster would be sent to.
fn address(reach: &Reach) -> Address<'_> {
    Address {
        endpoint: &reach.endpoint,
        proxy: &reach.proxy,
        insecure: reach.insecure,
    }
}

/// The fields of a Secret that the decision reads.
fn facts(id: &ResourceId, object: &Value) -> SecretFacts {
    let metadata = &object["metadata"];
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    SecretFacts {
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
        secret_type: object["type"].as_str().unwrap_or_default().to_owned(),
        // Others could quote the data, as kubectl's last-applied-configuration does.
        annotations: annotations
            .filter(|(key, _)| key.starts_with("entourage.dev/"))
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        owners: owners
            .filter(|owner| owner["kind"] == "Cluster")
            .filter_map(|owner| owner["name"].as_str().map(str::to_owned))
            .collect(),
    }
}

fn config(reach: &Reach, credentials: &Credentials) -> Result<Config, Refused> {
    let bad = |what: &str| Refused {
        reason: reason::INVALID_ENDPOINT,
        message: format!("{what} is not a valid URL"),
    };
    let endpoint: http::Uri = reach.endpoint.parse().map_err(|_| bad("spec.apiEndpoint"))?;
    if endpoint.scheme().is_none() || endpoint.host().is_none() {
        return Err(bad("spec.apiEndpoint"));
    }
    match endpoint.scheme_str() {
        Some("https") => {}
        Some("http") if reach.insecure => {}
        Some("http") => {
            return Err(Refused {
                reason: reason::INVALID_ENDPOINT,
                message: "spec.apiEndpoint is http://: the token would be readable on the way; use https://, or set \
                          spec.insecureSkipTLSVerification"
                    .into(),
            });
        }
        _ => return Err(bad("spec.apiEndpoint")),
    }
    let mut config = Config::new(endpoint);
    if reach.insecure {
        config.accept_invalid_certs = true;
    } else if let Some(ca) = &credentials.ca {
        config.root_cert = Some(certificates(ca).ok_or_else(|| Refused {
            reason: reason::INVALID_CA_BUNDLE,
            message: "the key caBundle of the Cluster's Secret holds no PEM certificate".into(),
        })?);
    }
    config.auth_info.token = Some(credentials.token.clone().into());
    if !reach.proxy.is_empty() {
        config.proxy_url = Some(reach.proxy.parse().map_err(|_| bad("spec.proxyURL"))?);
        reach.proxy_headers.add_to(&mut config).map_err(|Unfit| Refused {
            reason: reason::INVALID_ENDPOINT,
            message: "spec.proxyHeader has a name or a value that no HTTP header can have".into(),
        })?;
    }
    Ok(config)
}

fn decoded(secret: &Value, key: &str) -> Option<Vec<u8>> {
    let bytes: ByteString = serde_json::from_value(secret["data"].get(key)?.clone()).ok()?;
    Some(bytes.0)
}

/// The certificates of a PEM bundle as DER; `None` if there is none or one is invalid.
fn certificates(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    let text = std::str::from_utf8(pem).ok()?;
    let mut found = Vec::new();
    for part in text.split("-----BEGIN CERTIFICATE-----").skip(1) {
        let (body, _) = part.split_once("-----END CERTIFICATE-----")?;
        let packed: String = body.split_whitespace().collect();
        // k8s-openapi's ByteString is a base64 decoder.
        let bytes: ByteString = serde_json::from_value(Value::String(packed)).ok()?;
        found.push(bytes.0);
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use entourage_api::cluster::SyncMode;

    use super::*;
    use crate::client::tunnel::ProxyHeaders;

    fn reach(endpoint: &str) -> Reach {
        Reach {
            uid: "u".into(),
            id: String::new(),
            endpoint: endpoint.into(),
            secret: None,
            insecure: false,
            proxy: String::new(),
            proxy_headers: ProxyHeaders::default(),
            mode: SyncMode::Push,
            is_reported: false,
        }
    }

    fn credentials(ca: Option<&str>) -> Credentials {
        Credentials {
            token: "t".into(),
            ca: ca.map(|each| each.as_bytes().to_vec()),
            version: None,
            facts: SecretFacts::default(),
        }
    }

    #[test]
    fn the_expiration_of_a_token_is_what_its_secret_says() {
        for (recorded, wanted) in [
            (Some("2027-01-02T03:04:05Z"), Some(1_798_859_045)),
            (Some("2027-01-02T03:04:05+01:00"), Some(1_798_855_445)),
            (Some("soon"), None),
            (Some(""), None),
            (None, None),
        ] {
            let annotations =
                recorded.map(|text: &str| (annotation::TOKEN_EXPIRES.to_owned(), text.to_owned()));
            let facts = SecretFacts {
                annotations: annotations.into_iter().collect(),
                ..SecretFacts::default()
            };
            assert_eq!(expiration(&facts), wanted, "{recorded:?}");
        }
    }

    #[test]
    fn every_certificate_of_a_bundle_is_read() {
        let one = "-----BEGIN CERTIFICATE-----\nAQI=\n-----END CERTIFICATE-----\n";
        assert_eq!(
            certificates(format!("# a comment\n{one}{one}").as_bytes()),
            Some(vec![vec![1, 2], vec![1, 2]])
        );
        assert_eq!(certificates(b"nothing"), None);
        assert_eq!(certificates(b"-----BEGIN CERTIFICATE-----\nAQI=\n"), None);
    }

    #[test]
    fn an_endpoint_without_scheme_or_host_or_encryption_is_refused() {
        for endpoint in [
            "",
            "member:6443/x",
            "/path",
            "not a url",
            "ftp://m",
            "http://m:8080",
        ] {
            let refused = config(&reach(endpoint), &credentials(None)).err();
            assert_eq!(
                refused.map(|each| each.reason),
                Some("InvalidEndpoint"),
                "{endpoint}"
            );
        }
    }

    #[test]
    fn certificates_are_verified_unless_the_cluster_says_otherwise() {
        let verified = config(&reach("https://m:6443"), &credentials(None)).unwrap();
        assert!(!verified.accept_invalid_certs);
        let insecure = Reach {
            insecure: true,
            ..reach("https://m:6443")
        };
        let plain = Reach {
            insecure: true,
            ..reach("http://m:8080")
        };
        assert!(config(&plain, &credentials(None)).is_ok(), "as asked for");
        assert!(
            config(&insecure, &credentials(Some("broken")))
                .unwrap()
                .accept_invalid_certs
        );
        let refused = config(&reach("https://m:6443"), &credentials(Some("broken"))).err();
        assert_eq!(refused.map(|each| each.reason), Some("InvalidCABundle"));
    }

    #[test]
    fn headers_go_to_a_proxy_alone_and_a_bad_one_is_refused_without_its_value() {
        let headers = |name: &str, value: &str| {
            let all = std::collections::BTreeMap::from([(name.to_owned(), value.to_owned())]);
            ProxyHeaders::from(&all)
        };
        // proxy, header, value, headers in the configuration
        for (proxy, name, value, wanted) in [
            ("", "X-Team", "canary", Some(0)),
            ("", "X Team", "canary", Some(0)),
            ("http://proxy:3128", "X-Team", "canary", Some(1)),
            ("http://proxy:3128", "X Team", "canary", None),
            ("http://proxy:3128", "X-Team", "canary\nX: y", None),
        ] {
            let reach = Reach {
                proxy: proxy.into(),
                proxy_headers: headers(name, value),
                ..reach("https://m:6443")
            };
            let config = config(&reach, &credentials(None));
            assert!(!format!("{reach:?}").contains("canary"));
            match (config, wanted) {
                (Ok(config), Some(wanted)) => assert_eq!(config.headers.len(), wanted, "{proxy} {name}"),
                (Err(refused), None) => {
                    assert_eq!(refused.reason, "InvalidEndpoint");
                    assert!(
                        refused.message.contains("spec.proxyHeader"),
                        "{}",
                        refused.message
                    );
                    assert!(!refused.message.contains("canary"), "{}", refused.message);
                }
                (config, wanted) => panic!("{proxy} {name}: {wanted:?}, {}", config.is_ok()),
            }
        }
    }
}
