//! Leader election on a `coordination.k8s.io/v1` Lease, in client-go's protocol and with its timing, so that either side
//! understands the other's record.
//!
//! - The right to write is decided by [`decide`], which is pure. Every write has the resourceVersion that was read, so of two
//!   candidates that decide alike one gets a conflict.
//! - Clocks of different machines are never compared: another process's record is valid for its duration from when this process
//!   first observed it unchanged, on its monotonic clock.
//! - Acting stops at `renew_deadline` after the last renewal was *sent*, whether or not the server responds. A follower may take
//!   over `duration` after it observed that renewal, which is later; a call whose deadline is shorter than the difference cannot
//!   outlive leadership (architecture 2.10).
//! - A stop releases the Lease (an empty holder), so that the next leader need not wait.

use std::{
    fs,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::PoisonError,
    time::Duration,
};

use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::Namespace,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

mod leadership;

pub use leadership::Leadership;

/// The field manager of the Lease.
const FIELD_MANAGER: &str = "entourage";

/// The timing of leader election. The default is client-go's: 15 s, 10 s, 2 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time that a record which is not renewed excludes other candidates.
    pub duration: Duration,
    /// The time after the last renewal for which the leader acts. Shorter than `duration` by more than any call's deadline.
    pub renew_deadline: Duration,
    /// The pause between attempts, for a leader to renew and for a follower to read (then up to 1.2 times longer).
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// The maximum deadline of a call that must not outlive leadership.
    #[must_use]
    pub fn longest_call(&self) -> Duration {
        (self.duration.saturating_sub(self.renew_deadline)).mul_f64(0.9)
    }

    /// Checks the timing.
    ///
    /// # Errors
    /// A sentence for the user who set it.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.duration.subsec_nanos() != 0 || self.duration.is_zero() {
            return Err("--leader-elect-lease-duration takes whole seconds, at least 1s");
        }
        if self.duration < self.renew_deadline + MARGIN {
            return Err(
                "--leader-elect-lease-duration must be at least 1s longer than --leader-elect-renew-deadline: \
                 the difference bounds every request",
            );
        }
        if self.renew_deadline <= self.retry.mul_f64(1.2) || self.retry.is_zero() {
            return Err(
                "--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period",
            );
        }
        Ok(())
    }
}

/// The minimum time between the end of acting and the end of the lease.
const MARGIN: Duration = Duration::from_secs(1);

/// The Lease, and the identity of this process.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Namespace of the Lease on the hub; created if it does not exist.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// The identity of this process: unique, see [`identity`].
    pub identity: String,
    /// The timing.
    pub timing: Timing,
}

/// The content of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The holder; empty if it was released.
    pub holder: String,
    /// The time after a renewal for which it is valid.
    pub duration: Duration,
    /// The number of changes of the holder.
    pub transitions: i32,
    /// The holder's own clock at the last renewal; only ever compared for equality.
    pub renewed: Option<Timestamp>,
}

impl Record {
    /// Reads a Lease; absent fields are empty.
    #[must_use]
    pub fn of(lease: &Lease) -> Self {
        let Some(spec) = &lease.spec else {
            return Self::default();
        };
        let seconds = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            duration: Duration::from_secs(seconds.unwrap_or_default()),
            transitions: spec.lease_transitions.unwrap_or_default(),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
        }
    }
}

/// The next action of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// There is no Lease: create it with this process as holder.
    Create,
    /// It was released or its holder has not renewed it for too long: take it over, with this count of transitions.
    Take {
        /// The new value of `leaseTransitions`.
        transitions: i32,
    },
    /// This process holds it: write a new renewal time.
    Renew,
    /// Another candidate holds it, for at least this long.
    Wait(Duration),
}

/// Decides by the current record, the time at which it was first observed in this state, and the current time.
#[must_use]
pub fn decide(record: Option<&Record>, observed_at: Instant, now: Instant, identity: &str) -> LeaseAction {
    let Some(record) = record else {
        return LeaseAction::Create;
    };
    if record.holder == identity {
        return LeaseAction::Renew;
    }
    let left = (observed_at + record.duration).saturating_duration_since(now);
    if record.holder.is_empty() || left.is_zero() {
        return LeaseAction::Take {
            transitions: record.transitions.saturating_add(1),
        };
    }
    LeaseAction::Wait(left)
}

/// Campaigns until `stop`, then releases the Lease.
///
/// The first returned value says whether this process may act now. It turns false when renewing fails for `renew_deadline`, or
/// at `stop`; after a loss the campaign continues and it may turn true again. Cancel `stop` only when nothing is in flight any
/// more: another process may act from then on. The future must be polled (spawned) all the time.
pub fn elect(
    client: Client,
    options: LeaseOptions,
    stop: CancellationToken,
) -> (Leadership, impl Future<Output = ()> + Send) {
    let (leading, receiver) = watch::channel(false);
    let shared = leadership::Until::default();
    let leadership = Leadership::new(receiver, shared.clone());
    let candidate = Candidate {
        api: Api::namespaced(client.clone(), &options.namespace),
        client,
        options,
        seen: None,
        observed_at: Instant::now(),
        until: None,
        shared,
        leading,
    };
    (leadership, candidate.campaign(stop))
}

/// Returns the holder of the Lease, if it is being renewed: for a process that would act without one. A record that is not
/// renewed is watched for its whole duration, on this process's clock.
///
/// # Errors
/// The Lease cannot be read.
pub async fn holder(client: Client, options: &LeaseOptions) -> kube::Result<Option<String>> {
    let api: Api<Lease> = Api::namespaced(client, &options.namespace);
    let mut first: Option<(Record, Instant)> = None;
    loop {
        let answer = timeout(options.timing.longest_call(), api.get_opt(&options.name)).await;
        let unresponsive = |_| kube::Error::Service("no response in time".into());
        let record = answer.map_err(unresponsive)??.as_ref().map(Record::of);
        let Some(record) = record.filter(|record| !record.holder.is_empty()) else {
            return Ok(None);
        };
        match &first {
            Some((held, _)) if *held != record => return Ok(Some(record.holder)),
            Some((held, since)) if since.elapsed() >= held.duration => return Ok(None),
            Some(_) => {}
            None => {
                info!(
                    lease = options.name,
                    holder = record.holder,
                    "the lease is held; waiting until it is renewed or expires"
                );
                first = Some((record, Instant::now()));
            }
        }
        sleep(options.timing.retry / 4).await;
    }
}

/// A unique identity: the host's name and a random id.
#[must_use]
pub fn identity() -> String {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let host = std::env::var("HOSTNAME")
        .ok()
        .filter(|name| !name.is_empty())
        .or_else(|| read("/proc/sys/kernel/hostname"))
        .unwrap_or_else(|| "entourage".to_owned());
    let id = read("/proc/sys/kernel/random/uuid")
        .unwrap_or_else(|| format!("{}-{:016x}", std::process::id(), arbitrary()));
    format!("{host}_{id}")
}

struct Candidate {
    client: Client,
    api: Api<Lease>,
    options: LeaseOptions,
    /// The Lease as last read or written; `None` when it must be read before anything is written.
    seen: Option<Lease>,
    /// The time at which the record was last observed to change, whatever happened to `seen`.
    observed_at: Instant,
    /// The time until which this process may act.
    until: Option<Instant>,
    /// The time last published while this process led, for [`Leadership`].
    shared: leadership::Until,
    leading: watch::Sender<bool>,
}

impl Candidate {
    async fn campaign(mut self, stop: CancellationToken) {
        let timing = self.options.timing;
        let mut known = Record::default();
        let mut failing = false;
        loop {
            let call = Instant::now() + timing.duration.saturating_sub(timing.renew_deadline);
            let limit = self.until.map_or(call, |until| until.min(call));
            let outcome = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                outcome = timeout_at(limit, self.attempt(&mut known)) => outcome,
            };
            let problem = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no response in time".to_owned()),
            };
            if let Some(error) = &problem {
                // The outcome of a write is unknown: read before the next one.
                self.seen = None;
                if !failing {
                    warn!(lease = self.options.name, %error, "cannot read or write the lease; check the hub and the RBAC");
                }
            }
            failing = problem.is_some();
            self.publish();

            let pause = if self.until.is_some() {
                timing.retry
            } else {
                jittered(timing.retry)
            };
            let end = self.until;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = async { sleep_until(end.unwrap_or_else(Instant::now)).await }, if end.is_some() => {}
                () = sleep(pause) => {}
            }
            self.publish();
        }
        self.until = None;
        self.publish();
        if timeout(timing.retry, self.release()).await.is_err() {
            warn!(
                lease = self.options.name,
                "could not release the lease in time; the next leader waits until it expires"
            );
        }
    }

    /// Publishes to the receivers whether this process may act now.
    fn publish(&mut self) {
        let now = Instant::now();
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
        }
        let leads = self.until.is_some();
        let before = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            // At the end it stays as it was: without a time, the published value would remain in effect.
            let next = self.until.or(*shared);
            std::mem::replace(&mut *shared, next)
        };
        // A task that read the clock meanwhile has found it ended, and must be notified that it continues.
        let had_ended = before.is_some_and(|until| until <= now);
        let changed = self
            .leading
            .send_if_modified(|leading| std::mem::replace(leading, leads) != leads || (leads && had_ended));
        if changed {
            info!(
                lease = self.options.name,
                identity = self.options.identity,
                leading = leads,
                "leadership changed"
            );
        }
    }

    /// One round: read unless the Lease in memory is the one last written, decide, write.
    async fn attempt(&mut self, known: &mut Record) -> kube::Result<()> {
        let held = self.seen.take();
        let lease = match held {
            Some(lease) if self.until.is_some() => Some(lease),
            _ => self.api.get_opt(&self.options.name).await?,
        };
        let record = lease.as_ref().map(Record::of);
        if let Some(record) = &record
            && record != known
        {
            *known = record.clone();
            self.observed_at = Instant::now();
        }
        let sent = Instant::now();
        let written = match decide(record.as_ref(), self.observed_at, sent, &self.options.identity) {
            LeaseAction::Wait(_) => {
                self.until = None;
                return Ok(());
            }
            LeaseAction::Create => self.create().await,
            LeaseAction::Take { transitions } => {
                self.write(lease.unwrap_or_default(), Some(transitions)).await
            }
            LeaseAction::Renew => self.write(lease.unwrap_or_default(), None).await,
        };
        match written {
            Ok(lease) => {
                self.seen = Some(lease);
                self.until = Some(sent + self.options.timing.renew_deadline);
                Ok(())
            }
            // Another candidate was faster, or the Lease was changed: read it again next time.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> kube::Result<Lease> {
        let now = MicroTime(Timestamp::now());
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.options.name.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                acquire_time: Some(now.clone()),
                ..self.spec(now, 0)
            }),
        };
        match self.api.create(&post(), &lease).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                self.make_namespace().await?;
                self.api.create(&post(), &lease).await
            }
            answer => answer,
        }
    }

    async fn make_namespace(&self) -> kube::Result<()> {
        let metadata = ObjectMeta {
            name: Some(self.options.namespace.clone()),
            ..ObjectMeta::default()
        };
        let namespace = Namespace {
            metadata,
            ..Namespace::default()
        };
        match Api::<Namespace>::all(self.client.clone())
            .create(&post(), &namespace)
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Replaces the Lease at its resourceVersion. With `transitions` this process becomes its holder.
    async fn write(&self, mut lease: Lease, transitions: Option<i32>) -> kube::Result<Lease> {
        let now = MicroTime(Timestamp::now());
        let old = lease.spec.take().unwrap_or_default();
        let count = transitions.unwrap_or_else(|| old.lease_transitions.unwrap_or_default());
        let acquired = if transitions.is_some() {
            Some(now.clone())
        } else {
            old.acquire_time.clone()
        };
        lease.spec = Some(LeaseSpec {
            acquire_time: acquired,
            ..self.spec(now, count)
        });
        self.api.replace(&self.options.name, &post(), &lease).await
    }

    fn spec(&self, now: MicroTime, transitions: i32) -> LeaseSpec {
        let seconds = self.options.timing.duration.as_secs();
        LeaseSpec {
            holder_identity: Some(self.options.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(seconds).unwrap_or(i32::MAX)),
            lease_transitions: Some(transitions),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }
    }

    /// Writes an empty holder if this process is the holder. It reads first: the last write may have been cut off.
    async fn release(&self) {
        let released = async {
            let Some(mut lease) = self.api.get_opt(&self.options.name).await? else {
                return Ok(());
            };
            if Record::of(&lease).holder != self.options.identity {
                return Ok(());
            }
            let now = MicroTime(Timestamp::now());
            if let Some(spec) = &mut lease.spec {
                // client-go does the same: no holder, and a duration of one second, since zero is invalid.
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = Some(1);
                (spec.renew_time, spec.acquire_time) = (Some(now.clone()), Some(now));
            }
            self.api
                .replace(&self.options.name, &post(), &lease)
                .await
                .map(drop)
        };
        if let Err(error) = released.await {
            let error: kube::Error = error;
            warn!(lease = self.options.name, %error, "could not release the lease; the next leader waits until it expires");
        }
    }
}

fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// A time between `pause` and 1.2 times `pause`, so that followers do not read at the same time.
fn jittered(pause: Duration) -> Duration {
    let fraction = u32::try_from(arbitrary() % 1000).unwrap_or_default();
    pause + pause * fraction / 5000
}

/// An arbitrary number; good enough to spread timers, not for secrets.
fn arbitrary() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
