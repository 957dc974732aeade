//! The objects of the webhook on the hub: the Secret with its certificates, which replicas share, and the two configurations
//! that point to it. Objects that are up to date are not written.

use std::collections::BTreeMap;

use entourage_admission::configuration::{self, Address, NAME};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{Namespace, Secret},
    },
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tracing::info;

use crate::{
    DEADLINE, Error, Options,
    certificates::{self, Identity, Step},
};

/// The number of attempts of a write that conflicts with other writers.
const TRIES: usize = 5;

/// Maintains these objects on the hub.
pub(crate) struct Registrar {
    client: Client,
    address: Address,
    namespace: String,
    secret: String,
}

impl Registrar {
    pub(crate) fn new(client: Client, options: &Options, address: Address) -> Self {
        Self {
            client,
            address,
            namespace: options.namespace.clone(),
            secret: options.secret.clone(),
        }
    }

    /// Returns the identity to serve with at `now`: the stored one, or a new one that is stored.
    pub(crate) async fn identity(&self, now: Timestamp) -> Result<Identity, Error> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let names = self.address.names();
        let place = format!("{}/{}", self.namespace, self.secret);
        for _ in 0..TRIES {
            let what = || format!("cannot read the Secret {place}");
            let stored = called(what, secrets.get_opt(&self.secret)).await?;
            let parts = stored.as_ref().map(parts);
            let failed = |error| Error::Certificate {
                names: names.join(", "),
                error,
            };
            let step = certificates::step(parts.as_ref(), &names, now).map_err(failed)?;
            let identity = match step {
                Step::Keep(identity) => return Ok(identity),
                Step::Store(identity) => identity,
                Step::Anew(why) => {
                    info!(secret = place, why, "creating new certificates");
                    let trusted = self.trusted().await?;
                    certificates::anew(&trusted, &names, now).map_err(failed)?
                }
            };
            let secret = self.secret(&identity, stored.as_ref());
            let what = || {
                let remedy = match &stored {
                    Some(_) => "; if this persists, delete the Secret: it is created again",
                    None => "",
                };
                format!("cannot store certificates in the Secret {place}{remedy}")
            };
            let params = PostParams::default();
            let written = match stored {
                None => called(what, secrets.create(&params, &secret)).await,
                Some(_) => called(what, secrets.replace(&self.secret, &params, &secret)).await,
            };
            match written {
                Ok(_) => {
                    info!(secret = place, "certificates created and stored");
                    return Ok(identity);
                }
                // Another replica was faster: its certificates are equivalent.
                Err(error) if code(&error) == Some(409) => {}
                Err(error) if code(&error) == Some(404) => self.make_namespace().await?,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Raced(place))
    }

    /// The authorities that the hub's API server trusts now, PEM; empty if there are none.
    async fn trusted(&self) -> Result<String, Error> {
        let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let what = || format!("cannot read the ValidatingWebhookConfiguration {NAME}");
        let live = called(what, api.get_opt(NAME)).await?;
        let first = live.and_then(|live| live.webhooks?.into_iter().next());
        let bundle = first.and_then(|hook| hook.client_config.ca_bundle);
        let bundle = bundle.map(|bundle| bundle.0).unwrap_or_default();
        Ok(String::from_utf8_lossy(&bundle).into_owned())
    }

    fn secret(&self, identity: &Identity, stored: Option<&Secret>) -> Secret {
        let data = identity.parts().iter();
        let data = data.map(|(name, part)| (name.clone(), ByteString(part.clone())));
        let metadata = match stored {
            Some(stored) => stored.metadata.clone(),
            None => ObjectMeta {
                name: Some(self.secret.clone()),
                labels: Some([("app.kubernetes.io/part-of".to_owned(), "entourage".to_owned())].into()),
                ..ObjectMeta::default()
            },
        };
        Secret {
            metadata,
            data: Some(data.collect()),
            type_: Some(
                stored
                    .and_then(|stored| stored.type_.clone())
                    .unwrap_or_else(|| "kubernetes.io/tls".to_owned()),
            ),
            ..Secret::default()
        }
    }

    async fn make_namespace(&self) -> Result<(), Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let what = || {
            format!(
                "there is no namespace {} for the webhook's certificates, and it cannot be made; make it, or name another with --namespace",
                self.namespace
            )
        };
        let params = PostParams::default();
        match called(what, namespaces.create(&params, &namespace)).await {
            Err(error) if code(&error) != Some(409) => Err(error),
            _ => Ok(()),
        }
    }

    /// Points the hub's configurations to this server.
    pub(crate) async fn register(&self, bundle: &str) -> Result<(), Error> {
        let [mutating, validating] = configuration::configurations(&self.address, bundle);
        // Validation before mutation: defaults that one sets must be valid for the other.
        self.kept::<ValidatingWebhookConfiguration>(&validating).await?;
        self.kept::<MutatingWebhookConfiguration>(&mutating).await
    }

    /// Writes a configuration if it differs from the desired one.
    async fn kept<K>(&self, wanted: &Value) -> Result<(), Error>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let kind = K::kind(&());
        let what = || format!("cannot write the {kind} {NAME}");
        for _ in 0..TRIES {
            let live = called(what, api.get_opt(NAME)).await?;
            let live = live.map(|live| serde_json::to_value(live).unwrap_or_default());
            if live.as_ref().is_some_and(|live| keeps(live, wanted)) {
                return Ok(());
            }
            let mut next = wanted.clone();
            if let Some(live) = &live {
                next["metadata"] = live["metadata"].clone();
            }
            let Ok(next) = serde_json::from_value::<K>(next) else {
                return Ok(());
            };
            let params = PostParams::default();
            let written = match live {
                None => called(what, api.create(&params, &next)).await,
                Some(_) => called(what, api.replace(NAME, &params, &next)).await,
            };
            match written {
                Ok(_) => {
                    info!(%kind, name = NAME, "written");
                    return Ok(());
                }
                Err(error) if matches!(code(&error), Some(404 | 409)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Raced(format!("{kind} {NAME}")))
    }

    /// Removes the configurations from the hub, by kind: one that stays is no reason to leave the other. The certificates are kept.
    pub(crate) async fn remove(&self) -> [(String, Result<(), Error>); 2] {
        tokio::join!(
            self.removed::<MutatingWebhookConfiguration>(),
            self.removed::<ValidatingWebhookConfiguration>(),
        )
        .into()
    }

    async fn removed<K>(&self) -> (String, Result<(), Error>)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let kind = K::kind(&());
        let what = || format!("cannot remove the {kind} {NAME}");
        let removed = match called(what, api.delete(NAME, &DeleteParams::default())).await {
            Err(error) if code(&error) != Some(404) => Err(error),
            _ => Ok(()),
        };
        (kind.to_string(), removed)
    }
}

/// The stored parts of a Secret.
fn parts(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    let data = secret.data.iter().flatten();
    data.map(|(name, part)| (name.clone(), part.0.clone())).collect()
}

/// The fields that restrict the objects of a webhook: an absent or empty field restricts nothing, and older servers do not know
/// all of them.
const NARROWING: [&str; 3] = ["namespaceSelector", "objectSelector", "matchConditions"];

/// True if a live configuration covers the desired one: no field is missing, and no other restriction is set.
fn keeps(live: &Value, wanted: &Value) -> bool {
    let hooks = |configuration: &Value| configuration["webhooks"].as_array().cloned().unwrap_or_default();
    let narrowed = |hook: &Value, by: &str| match &hook[by] {
        Value::Object(fields) if fields.is_empty() => Value::Null,
        Value::Array(items) if items.is_empty() => Value::Null,
        other => other.clone(),
    };
    says(&live["webhooks"], &wanted["webhooks"])
        && hooks(live).iter().zip(&hooks(wanted)).all(|(live, wanted)| {
            let mut all = NARROWING.iter();
            all.all(|by| narrowed(live, by) == narrowed(wanted, by))
        })
}

/// True if a value contains all fields of the desired one; a server adds defaults.
fn says(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| live.get(name).is_some_and(|live| says(live, wanted))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| says(live, wanted))
        }
        _ => live == wanted,
    }
}

/// One call to the hub, with a deadline.
async fn called<T>(
    what: impl Fn() -> String,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    let failed = |error: kube::Error| Error::Hub {
        what: what(),
        error: Box::new(error),
    };
    match tokio::time::timeout(DEADLINE, call).await {
        Ok(answer) => answer.map_err(failed),
        Err(late) => Err(failed(kube::Error::Service(Box::new(late)))),
    }
}

/// The HTTP status of an error response, or `None` if there was no response.
fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Hub { error, .. } => match &**error {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_server_adds_is_no_difference() {
        let wanted = json!([{"name": "a", "rules": [{"operations": ["DELETE"]}]}]);
        let mut live =
            json!([{"name": "a", "rules": [{"operations": ["DELETE"], "scope": "*"}], "timeoutSeconds": 10}]);
        assert!(says(&live, &wanted));
        live[0]["rules"][0]["operations"] = json!(["DELETE", "CREATE"]);
        assert!(!says(&live, &wanted));
        assert!(!says(&json!([]), &wanted));
    }

    #[test]
    fn what_somebody_adds_to_narrow_the_scope_is_a_difference() {
        let wanted = json!({"webhooks": [{"name": "a"}, {"name": "b", "objectSelector": {"matchLabels": {"x": "y"}}}]});
        let mut live = wanted.clone();
        // The form that servers default it to.
        live["webhooks"][0]["objectSelector"] = json!({});
        for hook in [0, 1] {
            live["webhooks"][hook]["namespaceSelector"] = json!({});
            live["webhooks"][hook]["matchConditions"] = json!([]);
            live["webhooks"][hook]["reinvocationPolicy"] = json!("Never");
        }
        assert!(keeps(&live, &wanted));
        for (hook, by, more) in [
            (0, "namespaceSelector", json!({"matchLabels": {"x": "y"}})),
            (
                0,
                "objectSelector",
                json!({"matchExpressions": [{"key": "x", "operator": "Exists"}]}),
            ),
            (
                1,
                "objectSelector",
                json!({"matchLabels": {"x": "y", "more": "y"}}),
            ),
            (
                1,
                "matchConditions",
                json!([{"name": "never", "expression": "false"}]),
            ),
        ] {
            let mut changed = live.clone();
            changed["webhooks"][hook][by] = more;
            assert!(!keeps(&changed, &wanted), "{changed}");
        }
    }
}
