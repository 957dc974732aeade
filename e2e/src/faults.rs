//! Faults at the API boundary, and a record of what went over it: a tower layer for any kube client.
//!
//! A [`FaultPlan`] is one line, such as `seed=42 latency=0..20ms error-before=2% error-after=2% watch-cut=5%
//! crash-after=17`; printing that line is all it takes to run a failing case again. A decision depends on the seed, the
//! scope (`hub`, a member's name), the request and how often that same request came before, never on the clock or on how
//! tasks interleave. Only the number that a crash waits for is counted over all scopes.
//!
//! ```text
//! Faults (one run: plan, counters, recorder)
//!   ├── FaultLayer "hub"     ──► kube::Client ─┐  drop every client of the generation that died,
//!   ├── FaultLayer "member1" ──► kube::Client ─┤  Faults::restart(), build new ones
//!   └── crashed().await ◄── the k-th call ─────┘
//! ```

mod answer;
mod call;
mod decide;
mod frames;
mod life;
mod plan;
mod recorder;
mod service;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::client::ClientBuilder;

pub use call::{Call, Verb};
pub use life::Crashed;
pub use plan::{Counts, Crash, FaultPlan, Moment, Rate, Span, StatusOr};
pub use recorder::{Answered, Outcome, Recorded, Recorder};
pub use service::{FaultLayer, FaultService, ResponseBody};

use frames::Event;
use life::Life;

/// One run under one plan: what all scopes and all clones share. Cloning is cheap and means the same run.
#[derive(Clone)]
pub struct Faults(Arc<Shared>);

struct Shared {
    plan: FaultPlan,
    recorder: Recorder,
    life: Life,
    counters: Mutex<Counters>,
}

#[derive(Default)]
struct Counters {
    /// Calls sent so far that the crash counts, over all scopes.
    sent: u64,
    /// The number of decisions by key, which contains the scope.
    ordinals: BTreeMap<String, u64>,
    /// The last frames of each watched object, for frames that come late. Empty unless the plan has such frames.
    history: BTreeMap<String, VecDeque<Event>>,
}

impl Faults {
    /// A new run. Nothing is counted yet.
    #[must_use]
    pub fn new(plan: FaultPlan) -> Self {
        Self(Arc::new(Shared {
            plan,
            recorder: Recorder::default(),
            life: Life::default(),
            counters: Mutex::default(),
        }))
    }

    /// No fault at all: only the recorder works.
    #[must_use]
    pub fn none() -> Self {
        Self::new(FaultPlan::default())
    }

    /// The plan; print it in the message of a failing test.
    #[must_use]
    pub fn plan(&self) -> &FaultPlan {
        &self.0.plan
    }

    /// The recorded calls, and their faults.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }

    /// Resolves when the clients made so far are dead: at once if they are, else when the plan's crash comes.
    pub async fn crashed(&self) {
        self.0.life.died(self.0.life.generation()).await;
    }

    /// True if the clients made since the last restart are dead.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.0.life.is_dead(self.0.life.generation())
    }

    /// Kills every client made so far, as `kill -9` would: calls in flight and later ones answer [`Crashed`] and send
    /// nothing. What was sent may still take effect.
    pub fn kill(&self) {
        self.0.life.kill(self.0.life.generation());
    }

    /// [`kill`](Self::kill), and clients made from now on live. Counters go on: a crash comes once, other faults stay.
    pub fn restart(&self) {
        self.0.life.restart();
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        // A panic elsewhere leaves counters that are still counters.
        self.0.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a decision on `key`. Returns the number of earlier ones.
    fn ordinal(&self, key: &str) -> u64 {
        let mut counters = self.counters();
        let ordinal = counters.ordinals.entry(key.to_owned()).or_default();
        *ordinal += 1;
        *ordinal - 1
    }

    /// Counts a call as sent. Returns true if the crash comes with this one.
    fn count_sent(&self, call: &Call) -> Option<Moment> {
        let crash = self.0.plan.crash.as_ref()?;
        if !self.0.plan.strikes(&call.scope) || (crash.counts == Counts::Writes && !call.is_write()) {
            return None;
        }
        let mut counters = self.counters();
        counters.sent += 1;
        (counters.sent == crash.call).then_some(crash.moment)
    }
}

/// The function by which the controllers make a client of a server: it takes a scope (`hub` or a member's name) and a
/// configuration, and returns the client of production under `faults`. A client belongs to the generation in which it was
/// made, so call this again after a restart.
/// Errors: those of production. Must be called inside a Tokio runtime, as kube's builder must.
pub fn client_factory(
    faults: &Faults,
) -> impl Fn(&str, kube::Config) -> kube::Result<kube::Client> + Clone + Send + Sync + use<> {
    let faults = faults.clone();
    let production = entourage_controllers::plain_clients();
    move |scope, config| {
        let namespace = config.default_namespace.clone();
        let client = production(scope, config)?;
        let service = tower::service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        let layer = FaultLayer::new(&faults, scope);
        Ok(ClientBuilder::new(service, namespace).with_layer(&layer).build())
    }
}

/// True if a client's error says that its generation is dead, so that a harness can tell the crash that it asked for from
/// a defect.
#[must_use]
pub fn is_crash(error: &kube::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<Crashed>() {
            return true;
        }
        source = error.source();
    }
    false
}

#[cfg(test)]
mod tests;
