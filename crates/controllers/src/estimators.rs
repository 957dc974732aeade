//! The client of `karmada-scheduler-estimator`, one of which may run for each member: it asks for the replicas that the nodes of a
//! member have room for, and returns the answers to the core.
//!
//! An estimator that does not answer in time gives no estimate; one that fails repeatedly is in back-off, and not waited for. Questions
//! are asked beside the plans that need them, so that no capacity of the hub is held meanwhile.
//!
//! Source: Karmada's `pkg/estimator`.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use entourage_api::work::ReplicaRequirements;
use entourage_core::{
    interpreter::hook::Breaker, object::Str, observation::Observation, plan::EstimateOrder,
};
use futures::future::join_all;
use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout_at,
};
use tracing::{debug, info, warn};

use crate::{
    clock,
    hooks::Services,
    inbox::Message,
    metrics::{Asked, Metrics},
};

mod address;
mod call;
#[cfg(test)]
mod tests;
mod trust;
mod wire;

use call::{Client, Failure};

/// The maximum number of concurrent calls; more wait, within their time-out.
const TURNS: usize = 64;
/// The time that the address of a Service is used before the Service is read again.
const LOCATED: Duration = Duration::from_secs(60);
/// The time after which what is known of an estimator that nobody asks is dropped.
const UNUSED: Duration = Duration::from_secs(600);

/// The settings of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The time that an estimator is given for an answer.
    pub timeout: Duration,
    /// The namespace of the Services of estimators.
    pub namespace: String,
    /// The name of a Service is this, a hyphen, and the name of the member.
    pub prefix: String,
    /// The port of the Services.
    pub port: u16,
    /// True if the estimators of clusters in Pull mode are asked, too.
    pub in_pull_mode: bool,
    /// `None` speaks without TLS.
    pub tls: Option<Tls>,
}

/// TLS with estimators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificates that are trusted, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The certificate to show, and its private key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// True if every certificate is trusted.
    pub skips_verification: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(3),
            namespace: "karmada-system".to_owned(),
            prefix: "karmada-scheduler-estimator".to_owned(),
            port: 10_352,
            in_pull_mode: true,
            tls: None,
        }
    }
}

impl Options {
    /// Checks that the files can be used.
    ///
    /// # Errors
    /// The file that cannot, and what to do.
    pub fn check(&self) -> Result<(), String> {
        trust::config(self.tls.as_ref()).map(drop)
    }
}

/// The client of all estimators. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Estimators(Arc<Inner>);

struct Inner {
    options: Options,
    client: Client,
    services: Arc<dyn Services>,
    metrics: Metrics,
    turns: Semaphore,
    /// What is known of the estimators that were asked, by member.
    known: Mutex<BTreeMap<Str, Known>>,
}

/// The state of an estimator.
struct Known {
    /// Its host and port, and the time when they were found.
    address: Option<(String, Instant)>,
    breaker: Breaker,
    used: Instant,
}

impl Estimators {
    /// Creates a client that has made no call yet. Files are read once.
    ///
    /// # Errors
    /// The file that cannot be used, and what to do.
    pub fn new(options: Options, services: Arc<dyn Services>, metrics: Metrics) -> Result<Self, String> {
        let client = Client::new(trust::config(options.tls.as_ref())?, options.tls.is_none());
        Ok(Self(Arc::new(Inner {
            options,
            client,
            services,
            metrics,
            turns: Semaphore::new(TURNS),
            known: Mutex::default(),
        })))
    }

    /// Asks the estimators of an order, and sends all answers together, once each of them answered or failed.
    pub fn ask(&self, order: EstimateOrder, brain: mpsc::Sender<Message>) {
        let estimators = self.clone();
        tokio::spawn(async move {
            let answers = estimators.answers(&order).await;
            let seen = Observation::Estimated(order.key, answers);
            if brain.send(Message::Seen(Box::new(seen))).await.is_err() {
                debug!("the control loop has ended");
            }
        });
    }

    async fn answers(&self, order: &EstimateOrder) -> Vec<(Str, Option<i64>)> {
        let requirements = order.requirements.as_deref();
        let each = |cluster: &Str| {
            let cluster = cluster.clone();
            async move {
                let answer = self.estimate(&cluster, requirements).await;
                (cluster, answer.map(i64::from))
            }
        };
        join_all(order.clusters.iter().map(each)).await
    }

    /// The number of replicas that the nodes of a member have room for; `None` if its estimator does not say. Takes no longer than the
    /// time-out.
    async fn estimate(&self, cluster: &Str, requirements: Option<&ReplicaRequirements>) -> Option<i32> {
        let inner = &*self.0;
        let began = Instant::now();
        let count = |outcome| inner.metrics.estimated(cluster, outcome);
        if self.with(cluster, |known| known.breaker.is_left_alone(clock::now())) {
            count(Asked::LeftAlone);
            return None;
        }
        let deadline = tokio::time::Instant::now() + inner.options.timeout;
        // The semaphore is never closed. That it has no turn in time is not the fault of the estimator.
        let Ok(_turn) = timeout_at(deadline, inner.turns.acquire()).await else {
            count(Asked::NoResponse);
            return None;
        };
        if self.with(cluster, |known| known.breaker.enter(clock::now()).is_err()) {
            count(Asked::LeftAlone);
            return None;
        }
        let exchanged = timeout_at(deadline, self.exchange(cluster, requirements)).await;
        let result = exchanged.unwrap_or_else(|_| {
            let why = format!("there is no answer within {:?}", inner.options.timeout);
            Err((why, true))
        });
        let took = began.elapsed();
        let failure = result.as_ref().err();
        self.record(cluster, failure.map(|(why, is_out)| (why.as_str(), *is_out)));
        match result {
            Ok(replicas) => {
                count(Asked::Answered);
                debug!(%cluster, replicas, ?took, "an estimator answered");
                Some(replicas)
            }
            Err((why, is_out)) => {
                count(if is_out { Asked::NoResponse } else { Asked::Wrong });
                debug!(%cluster, why, ?took, "an estimator did not answer");
                None
            }
        }
    }

    /// The answer of an estimator, or the reason why there is none, and whether the estimator as a whole fails.
    async fn exchange(
        &self,
        cluster: &Str,
        requirements: Option<&ReplicaRequirements>,
    ) -> Result<i32, (String, bool)> {
        let address = self.address(cluster).await.map_err(|why| (why, true))?;
        let message = wire::request(cluster, requirements);
        let timeout = self.0.options.timeout;
        let answer = self.0.client.call(&address, message, timeout).await;
        let answer = answer.and_then(|bytes| wire::response(&bytes).map_err(Failure::Wrong));
        answer.map_err(|failure| (failure.text(&address), failure.has_no_response()))
    }

    /// The host and port of the estimator of a member.
    async fn address(&self, cluster: &Str) -> Result<String, String> {
        let found = self.with(cluster, |known| known.address.clone());
        if let Some((address, at)) = found
            && at.elapsed() < LOCATED
        {
            return Ok(address);
        }
        let Options {
            namespace,
            prefix,
            port,
            ..
        } = &self.0.options;
        let name = format!("{prefix}-{cluster}");
        let at = |why: String| format!("Service {namespace}/{name} of the hub: {why}");
        let service = self.0.services.service(namespace, &name).await.map_err(at)?;
        let address = match service {
            Some(service) => address::of_service(&service, *port).map_err(at)?,
            None => address::by_name(namespace, &name, *port),
        };
        self.with(cluster, |known| {
            known.address = Some((address.clone(), Instant::now()))
        });
        Ok(address)
    }

    /// Records a call, and reports when an estimator begins to be in back-off, and when it answers again.
    fn record(&self, cluster: &Str, failure: Option<(&str, bool)>) {
        let is_out = failure.is_some_and(|(_, is_out)| is_out);
        let (was_open, is_open) = self.with(cluster, |known| {
            let was_open = known.breaker.is_open();
            known.breaker.record(clock::now(), !is_out);
            if is_out {
                known.address = None;
            }
            (was_open, known.breaker.is_open())
        });
        match (was_open, is_open, failure) {
            (false, true, Some((why, _))) => warn!(
                %cluster,
                why,
                "the estimator of a member does not answer; its room is estimated by its Cluster alone"
            ),
            (true, false, _) => info!(%cluster, "the estimator of a member answers again"),
            _ => {}
        }
    }

    /// What is known of the estimator of a member; forgets those that were not asked for long.
    fn with<T>(&self, cluster: &Str, then: impl FnOnce(&mut Known) -> T) -> T {
        let now = Instant::now();
        let mut all = lock(&self.0.known);
        if !all.contains_key(cluster) {
            all.retain(|_, known| now.duration_since(known.used) < UNUSED);
        }
        let known = all.entry(cluster.clone()).or_insert_with(|| Known {
            address: None,
            breaker: Breaker::default(),
            used: now,
        });
        known.used = now;
        then(known)
    }
}

/// Debug output omits addresses.
impl fmt::Debug for Estimators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Estimators")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
