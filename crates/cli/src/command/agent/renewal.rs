//! Renews the client certificate of an agent on the hub before it ends, and stores it where the agent starts from.
//!
//! A certificate that cannot be stored is not used: after a restart the agent would have the former one, of which nobody would see that
//! it ends. A kubeconfig without a client certificate, such as one with a token, is not renewed.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use entourage_core::{object::Time, registration::renewed_at};
use kube::{
    Client, Config,
    api::Patch,
    config::{KubeConfigOptions, Kubeconfig},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tracing::{info, warn};

use crate::{
    apply::{SECRET, Target, patch, without_values},
    command::register::write_file,
    connect::{self, Connection, within},
    registration::{
        certificate,
        kubeconfig::{self, validity},
        member::SECRET_KEY,
    },
};

/// The time limit for a certificate to be approved and signed.
const LIMIT: Duration = Duration::from_secs(120);

/// The place of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Reads `NAMESPACE/NAME`.
///
/// # Errors
/// A sentence for the user.
pub(super) fn secret(text: &str) -> Result<Secret, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Secret {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        }
        _ => Err("give NAMESPACE/NAME of a Secret".to_owned()),
    }
}

/// Reads a share of 1.
///
/// # Errors
/// A sentence for the user.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().unwrap_or(f64::NAN);
    (0.0..=1.0)
        .contains(&share)
        .then_some(share)
        .ok_or_else(|| "give a number from 0 to 1, such as 0.2".to_owned())
}

/// The place from which the agent starts.
pub(super) enum Store {
    /// The kubeconfig file.
    File(PathBuf),
    /// A Secret of the cluster, which is mounted as that file.
    Secret(Client, Secret),
}

/// The settings of a renewal.
pub(super) struct Renewal {
    pub(super) cluster: String,
    /// The context of the kubeconfig, if it is not the current one.
    pub(super) context: Option<String>,
    pub(super) store: Store,
    /// The time between two checks.
    pub(super) interval: Duration,
    /// The share of the validity that is left when it is renewed.
    pub(super) remaining: f64,
}

/// Reads a kubeconfig file.
///
/// # Errors
/// It cannot be read. Never with its content.
pub(super) fn read(file: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(file).map_err(|_| anyhow!("cannot read the kubeconfig {}", file.display()))
}

impl Renewal {
    /// Waits until the certificate was renewed and stored; returns the new kubeconfig and the configuration of a client. Never ends for
    /// one without a certificate. The first check is after `pause`.
    pub(super) async fn renewed(
        &self,
        kubeconfig: &Kubeconfig,
        hub: &Config,
        pause: Duration,
    ) -> (Kubeconfig, Config) {
        let mut is_failing = false;
        tokio::time::sleep(pause).await;
        loop {
            match self.step(kubeconfig, hub).await {
                Ok(Some(renewed)) => {
                    info!("the agent's certificate is renewed; the agent starts anew");
                    return renewed;
                }
                Ok(None) => is_failing = false,
                Err(error) => {
                    let error = format!("{error:#}");
                    if !std::mem::replace(&mut is_failing, true) {
                        warn!(
                            error,
                            "the agent's certificate on the hub cannot be renewed; retrying"
                        );
                    }
                }
            }
            tokio::time::sleep(self.interval).await;
        }
    }

    /// Renews the certificate if that is due.
    async fn step(&self, kubeconfig: &Kubeconfig, hub: &Config) -> Result<Option<(Kubeconfig, Config)>> {
        let Some((start, end)) = validity(kubeconfig, self.context.as_deref())? else {
            return Ok(None);
        };
        if self.remaining <= 0.0
            || entourage_controllers::clock::now() < renewed_at(start, end, self.remaining)
        {
            return Ok(None);
        }
        let client = connect::client(Connection::from(hub.clone()))?;
        let issued = certificate::obtain(&client, &self.cluster, seconds(start, end), LIMIT).await?;
        let text = kubeconfig::renewed(kubeconfig.clone(), self.context.as_deref(), &issued)?;
        let renewed = Kubeconfig::from_yaml(text.expose_secret())
            .map_err(|_| anyhow!("the renewed kubeconfig cannot be read"))?;
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(renewed.clone(), &options)
            .await
            .map_err(|_| anyhow!("the renewed certificate cannot be used"))?;
        self.write(&text).await?;
        Ok(Some((renewed, config)))
    }

    async fn write(&self, text: &SecretString) -> Result<()> {
        match &self.store {
            Store::File(file) => write_file(file, text).context(
                "the agent's kubeconfig is stored in no Secret; name that with --hub-kubeconfig-secret NAMESPACE/NAME",
            ),
            Store::Secret(client, Secret { namespace, name }) => {
                let target = Target {
                    client: client.clone(),
                    place: "member",
                    dry_run: false,
                    out: &mut std::io::sink(),
                };
                let value = k8s_openapi::ByteString(text.expose_secret().as_bytes().to_vec());
                let body = json!({"data": {SECRET_KEY: value}});
                let api = target.api(SECRET, namespace);
                let written = within(api.patch(name, &patch(), &Patch::Merge(&body))).await;
                written
                    .map(drop)
                    .map_err(without_values)
                    .with_context(|| format!("cannot store the renewed kubeconfig in secret/{name} of {namespace}"))
            }
        }
    }
}

/// The length of a validity, as the request of the next certificate takes it.
fn seconds(start: Time, end: Time) -> i32 {
    const SHORTEST: i64 = 600;
    let seconds = (end.0 - start.0) / 1000;
    i32::try_from(seconds.max(SHORTEST)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        let expected = Secret {
            namespace: "karmada-system".into(),
            name: "entourage-hub".into(),
        };
        assert_eq!(secret("karmada-system/entourage-hub"), Ok(expected));
        for wrong in ["", "name", "/name", "namespace/", "a/b/c"] {
            assert!(secret(wrong).is_err(), "{wrong}");
        }
        assert_eq!(share("0.2"), Ok(0.2));
        for wrong in ["", "-0.1", "1.1", "NaN", "inf", "20%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_next_certificate_is_valid_as_long_as_the_last() {
        for (millis, expected) in [(1_000, 600), (86_400_000, 86_400), (i64::MAX, i32::MAX)] {
            assert_eq!(seconds(Time(0), Time(millis)), expected);
        }
    }
}
