//! Renews the client certificate of an agent on the hub before it ends, and stores it where the agent starts from.
//!
//! A certificate that cannot be stored is not used: after a restart the agent would have the former one, of which nobody would see that
//! it ends. A kubeconfig without a client certificate, such as one with a token, or with that of another user, is not renewed.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail};
use entourage_api::names;
use entourage_controllers::clock;
use entourage_core::{object::Time, registration::renewed_at};
use kube::{
    Client, Config,
    api::Patch,
    config::{KubeConfigOptions, Kubeconfig},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tracing::{debug, info, warn};

use crate::{
    apply::{CLUSTER, SECRET, Target, patch, without_values},
    connect::{self, Connection, within},
    registration::{
        certificate::{self, Answer, Issued, Pending},
        kubeconfig::{self, Certificate, client_certificate, write_file},
        member::SECRET_KEY,
    },
};

/// The time limit for a certificate to be approved and signed.
const LIMIT: Duration = Duration::from_secs(120);

/// The shortest time between two checks.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

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
    /// The kubeconfig file that the agent starts from.
    pub(super) file: PathBuf,
    /// The context of the kubeconfig, if it is not the current one.
    pub(super) context: Option<String>,
    pub(super) store: Store,
    /// The longest time between two checks.
    pub(super) interval: Duration,
    /// The share of the validity that is left when it is renewed.
    pub(super) remaining: f64,
}

/// A kubeconfig, and the configuration of a client with it.
pub(super) struct Hub {
    pub(super) kubeconfig: Kubeconfig,
    pub(super) config: Config,
}

/// A renewal that was begun: at most one request waits on the hub, and a certificate that was issued is stored before another is asked for.
#[derive(Default)]
struct Progress {
    pending: Option<Pending>,
    issued: Option<Issued>,
}

/// Reads a kubeconfig file.
///
/// # Errors
/// It cannot be read. Never with its content.
pub(super) fn read(file: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(file).map_err(|_| anyhow!("cannot read the kubeconfig {}", file.display()))
}

impl Renewal {
    /// Waits until there is another certificate, which was renewed and stored here, or which the file has by another hand. Never ends for
    /// a kubeconfig without a certificate of this agent. The first check is after `pause`.
    pub(super) async fn renewed(&self, hub: &Hub, mut pause: Duration) -> Hub {
        let (mut progress, mut is_failing) = (Progress::default(), false);
        loop {
            tokio::time::sleep(pause).await;
            let held = match self.held(&hub.kubeconfig) {
                Ok(held) => held,
                Err(error) => {
                    warn!(
                        error = format!("{error:#}"),
                        "the agent's certificate on the hub is not renewed"
                    );
                    None
                }
            };
            let Some(held) = held else {
                return std::future::pending().await;
            };
            if let Some(found) = self.found(&held).await {
                info!("the kubeconfig of the hub has a newer certificate; the agent starts anew with it");
                return found;
            }
            let due = renewed_at(held.start, held.end, self.remaining);
            let now = clock::now();
            pause = self
                .interval
                .min(Duration::from_millis(u64::try_from(due.0 - now.0).unwrap_or(0)));
            if self.remaining > 0.0 && now >= due {
                match self.step(hub, &held, &mut progress).await {
                    Ok(renewed) => {
                        info!("the agent's certificate is renewed; the agent starts anew with it");
                        return renewed;
                    }
                    Err(error) => {
                        let (error, end) = (format!("{error:#}"), timestamp(held.end));
                        if std::mem::replace(&mut is_failing, true) {
                            debug!(error, end, "the agent's certificate on the hub cannot be renewed");
                        } else {
                            warn!(
                                error,
                                end,
                                "the agent's certificate on the hub cannot be renewed; retrying until it ends"
                            );
                        }
                        pause = self.interval;
                    }
                }
            }
            pause = pause.max(SHORTEST_PAUSE);
        }
    }

    /// The certificate of a kubeconfig, if it is one of this agent.
    fn held(&self, kubeconfig: &Kubeconfig) -> Result<Option<Certificate>> {
        let held = client_certificate(kubeconfig, self.context.as_deref())?;
        Ok(held.filter(|held| held.user == names::agent_user(&self.cluster)))
    }

    /// The kubeconfig of the file, if its certificate is valid for longer than the present one.
    async fn found(&self, held: &Certificate) -> Option<Hub> {
        let kubeconfig = read(&self.file).ok()?;
        let other = self.held(&kubeconfig).ok()??;
        if other.end <= held.end {
            return None;
        }
        self.hub(kubeconfig).await.ok()
    }

    /// A client configuration. Errors quote nothing of the kubeconfig.
    async fn hub(&self, kubeconfig: Kubeconfig) -> Result<Hub> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options)
            .await
            .map_err(|_| anyhow!("the renewed certificate cannot be used"))?;
        Ok(Hub { kubeconfig, config })
    }

    /// Obtains a certificate, tries it, and stores it. Continues where the last attempt ended.
    async fn step(&self, hub: &Hub, held: &Certificate, progress: &mut Progress) -> Result<Hub> {
        if progress.issued.is_none() {
            progress.issued = Some(self.obtain(hub, held, &mut progress.pending).await?);
        }
        let Some(issued) = &progress.issued else {
            bail!("no certificate was issued");
        };
        let text = kubeconfig::renewed(hub.kubeconfig.clone(), self.context.as_deref(), issued)?;
        let renewed = Kubeconfig::from_yaml(text.expose_secret())
            .map_err(|_| anyhow!("the renewed kubeconfig cannot be read"))?;
        let renewed = self.hub(renewed).await?;
        if let Err(error) = self.is_accepted(&renewed).await {
            // Another one may be: the hub's certificate authority may have changed in between.
            progress.issued = None;
            return Err(error);
        }
        self.write(&text).await?;
        Ok(renewed)
    }

    async fn obtain(&self, hub: &Hub, held: &Certificate, pending: &mut Option<Pending>) -> Result<Issued> {
        let client = connect::client(Connection::from(hub.config.clone()))?;
        let asked = match pending.take() {
            Some(asked) => asked,
            None => certificate::request(&client, &self.cluster, seconds(held.start, held.end)).await?,
        };
        let answer = certificate::wait(&client, &asked, LIMIT).await;
        match answer {
            Ok(Answer::Issued(issued)) => Ok(issued),
            Ok(Answer::Refused(why)) => bail!("{why}"),
            Ok(Answer::Late(why)) => {
                *pending = Some(asked);
                bail!("{why}")
            }
            Err(error) => {
                *pending = Some(asked);
                Err(error)
            }
        }
    }

    /// Fails unless the hub takes the new certificate for that of the agent.
    async fn is_accepted(&self, hub: &Hub) -> Result<()> {
        let target = Target {
            client: connect::client(Connection::from(hub.config.clone()))?,
            place: "hub",
            dry_run: true,
            out: &mut std::io::sink(),
        };
        let found = target.get(CLUSTER, "", &self.cluster).await;
        found
            .map(drop)
            .context("the hub does not accept the certificate that it issued; its signer and its --client-ca-file may differ")
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

fn timestamp(time: Time) -> String {
    jiff::Timestamp::from_millisecond(time.0)
        .map(|time| time.to_string())
        .unwrap_or_default()
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
