//! The client of `karmada-scheduler-estimator`, one of which may run for each member: it asks for the replicas, or the sets of components,
//! that the nodes of a member have room for, and returns the answers to the core.
//!
//! An estimator that does not answer in time gives no estimate; one that fails repeatedly is in back-off, and not waited for. The time
//! begins with the turn of a question; one that gets no turn was not asked, which is no failure of the estimator. Questions are asked
//! beside the plans that need them, so that no capacity of the hub is held meanwhile.
//!
//! Source: Karmada's `pkg/estimator`.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use entourage_api::work::ReplicaRequirements;
use entourage_core::{
    object::Str,
    observation::{EstimatorAnswer, Observation},
    plan::{ComponentSet, EstimateOrder},
};
use futures::future::join_all;
use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, timeout, timeout_at},
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
mod known;
#[cfg(test)]
mod tests;
mod trust;
mod wire;

use call::{Client, Failure};
use known::{Address, Call, Kind, Known, Transition};

/// The maximum number of concurrent calls; more wait. Hundreds of estimators that hang do not take them all.
const TURNS: usize = 1_024;
/// The maximum number of questions that wait or are asked; more are not asked now.
const PLACES: usize = 10_000;
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

/// A question to an estimator.
#[derive(Clone, Copy, Debug)]
enum Question<'a> {
    /// The number of replicas with these requirements; `None` for those without any.
    Replicas(Option<&'a ReplicaRequirements>),
    /// The number of sets.
    Sets(&'a ComponentSet),
}

impl Question<'_> {
    /// The method to call, and the message to call it with.
    fn call(self, cluster: &str) -> (&'static str, Bytes) {
        match self {
            Self::Replicas(requirements) => (call::REPLICAS, wire::request(cluster, requirements)),
            Self::Sets(set) => (call::SETS, wire::request_of_sets(cluster, set)),
        }
    }
}

struct Inner {
    options: Options,
    /// A client that is never used: the one of each estimator is made from it.
    client: Client,
    services: Arc<dyn Services>,
    metrics: Metrics,
    turns: Semaphore,
    places: Arc<Semaphore>,
    /// The state of the estimators that were asked, by member.
    known: Mutex<BTreeMap<Str, Known>>,
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
            places: Arc::new(Semaphore::new(PLACES)),
            known: Mutex::default(),
        })))
    }

    /// Asks the estimators of an order, and sends all answers together, once each of them answered or failed. If too many questions wait
    /// already, none is asked.
    pub fn ask(&self, order: EstimateOrder, brain: mpsc::Sender<Message>) {
        let count = u32::try_from(order.clusters.len());
        let places = count.map(|count| self.0.places.clone().try_acquire_many_owned(count));
        let estimators = self.clone();
        tokio::spawn(async move {
            let answers = match places {
                Ok(Ok(_places)) => estimators.answers(&order).await,
                _ => estimators.not_asked(&order),
            };
            let seen = Observation::Estimated(order.key, order.asked, answers);
            if brain.send(Message::Seen(Box::new(seen))).await.is_err() {
                debug!("the control loop has ended");
            }
        });
    }

    async fn answers(&self, order: &EstimateOrder) -> Vec<(Str, EstimatorAnswer)> {
        let question = match &order.set {
            Some(set) => Question::Sets(set),
            None => Question::Replicas(order.requirements.as_deref()),
        };
        let each = |cluster: &Str| {
            let cluster = cluster.clone();
            async move {
                let answer = self.estimate(&cluster, question).await;
                (cluster, answer)
            }
        };
        join_all(order.clusters.iter().map(each)).await
    }

    fn not_asked(&self, order: &EstimateOrder) -> Vec<(Str, EstimatorAnswer)> {
        let each = |cluster: &Str| {
            self.0.metrics.estimated(cluster, Asked::NoTurn);
            (cluster.clone(), EstimatorAnswer::NotAsked)
        };
        order.clusters.iter().map(each).collect()
    }

    /// The number of replicas, or sets, that the nodes of a member have room for, if its estimator says it. Takes no longer than twice the
    /// time-out: for its turn, and for its call.
    async fn estimate(&self, cluster: &Str, question: Question<'_>) -> EstimatorAnswer {
        let inner = &*self.0;
        let count = |outcome| inner.metrics.estimated(cluster, outcome);
        let (is_left_alone, own) = self.with(cluster, |known| {
            (known.is_left_alone(clock::now()), known.turns.clone())
        });
        if is_left_alone {
            count(Asked::LeftAlone);
            return EstimatorAnswer::Failed;
        }
        // Semaphores are never closed. That there is no turn in time is not the fault of the estimator, and says nothing of its room.
        let turns = async { (own.acquire_owned().await, inner.turns.acquire().await) };
        let Ok(_turns) = timeout(inner.options.timeout, turns).await else {
            count(Asked::NoTurn);
            return EstimatorAnswer::NotAsked;
        };
        let Some(call) = self.with(cluster, |known| known.enter(clock::now())) else {
            count(Asked::LeftAlone);
            return EstimatorAnswer::Failed;
        };
        let began = Instant::now();
        let deadline = began + inner.options.timeout;
        let exchanged = timeout_at(deadline, self.exchange(cluster, question, &call.client, deadline));
        let result = exchanged.await.unwrap_or_else(|_| {
            let why = format!("there is no answer within {:?}", inner.options.timeout);
            Err((why, Kind::Late))
        });
        let took = began.elapsed();
        self.record(cluster, &call, result.as_ref().err());
        match result {
            Ok(replicas) => {
                count(Asked::Answered);
                debug!(%cluster, replicas, ?took, "an estimator answered");
                EstimatorAnswer::Room(i64::from(replicas))
            }
            Err((why, kind)) => {
                count(match kind {
                    Kind::Refuses => Asked::Wrong,
                    Kind::Absent | Kind::Out | Kind::Late => Asked::NoResponse,
                });
                debug!(%cluster, why, ?took, "an estimator did not answer");
                EstimatorAnswer::Failed
            }
        }
    }

    /// The answer of an estimator, or the reason why there is none.
    async fn exchange(
        &self,
        cluster: &Str,
        question: Question<'_>,
        client: &Client,
        deadline: Instant,
    ) -> Result<i32, (String, Kind)> {
        let Address { at, is_guessed } = self.address(cluster).await.map_err(|why| (why, Kind::Out))?;
        let answer = client.call(&at, question.call(cluster), deadline).await;
        let answer = answer.and_then(|bytes| wire::response(&bytes).map_err(Failure::Wrong));
        answer.map_err(|failure| {
            let kind = match &failure {
                Failure::Unknown if is_guessed => Kind::Absent,
                // An older one: it answers other questions.
                Failure::Refused(code, _)
                    if code == call::UNIMPLEMENTED && matches!(question, Question::Sets(_)) =>
                {
                    Kind::Refuses
                }
                other if other.has_no_response() => Kind::Out,
                _ => Kind::Refuses,
            };
            (failure.text(&at), kind)
        })
    }

    /// The host and port of the estimator of a member.
    async fn address(&self, cluster: &Str) -> Result<Address, String> {
        if let Some(address) = self.with(cluster, |known| known.address()) {
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
        let address = Address {
            is_guessed: service.is_none(),
            at: match service {
                Some(service) => address::of_service(&service, *port).map_err(at)?,
                None => address::by_name(namespace, &name, *port),
            },
        };
        self.with(cluster, |known| known.found(address.clone()));
        Ok(address)
    }

    /// Records a call, and reports when an estimator begins to be in back-off or to answer with errors, and when it answers again.
    fn record(&self, cluster: &Str, call: &Call, failure: Option<&(String, Kind)>) {
        let kind = failure.map(|(_, kind)| *kind);
        let transition = self.with(cluster, |known| known.record(call, kind, clock::now()));
        let why = failure.map_or("", |(why, _)| why.as_str());
        match transition {
            Some(Transition::Fails) => warn!(
                %cluster,
                why,
                "the estimator of a member does not answer; its room is estimated by its Cluster alone"
            ),
            Some(Transition::Refuses) => warn!(
                %cluster,
                why,
                "the estimator of a member answers with an error; while it does, its room is estimated by its Cluster alone"
            ),
            Some(Transition::Recovers) => info!(%cluster, "the estimator of a member answers again"),
            None => {}
        }
    }

    /// The state of the estimator of a member, for a closure; forgets those that were not asked for long.
    fn with<T>(&self, cluster: &Str, then: impl FnOnce(&mut Known) -> T) -> T {
        let now = Instant::now();
        let mut all = lock(&self.0.known);
        if !all.contains_key(cluster) {
            all.retain(|_, known| now.duration_since(known.used) < UNUSED);
        }
        let anew = || Known::new(self.0.client.renewed());
        let known = all.entry(cluster.clone()).or_insert_with(anew);
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
