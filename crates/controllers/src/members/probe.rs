//! One probe of a member: whether it responds and is healthy, its version and APIs; and the interval of probes.
//!
//! A late response is distinguished from none: once a member did not respond, a probe waits longer for it. A connection proves
//! nothing by itself: behind a load balancer, or to a process that hangs, it is established without a response.

use std::time::Duration;

use entourage_api::keys::reason;
use entourage_core::{object::Gvk, observation::Probe};

use tokio::time::Instant;
use tracing::debug;

use super::{connect::Refused, discovery};
use crate::{
    client::{Api, Call, path::Path},
    error::{Class, Failure},
    metrics::Verb,
};

/// The time that a probe waits for its response.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
/// The time that a probe waits for a member that did not respond before: a response after [`DEADLINE`] is too late to be of use,
/// and means that the member is slow, not down.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
/// The time limit for version and APIs together.
const DESCRIBED: Duration = Duration::from_secs(10);

/// The consequence of a probe for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It reports to be healthy.
    Healthy,
    /// It responds, and reports not to be healthy.
    Unhealthy,
    /// It does not respond, or too late.
    Unresponsive,
    /// It refuses the credentials.
    Unauthorized,
    /// There is no client.
    Unknown,
}

/// The result of a probe, for the connection and for the core.
pub(crate) struct Probed {
    pub(crate) health: Health,
    pub(crate) found: Probe,
}

impl From<Refused> for Probed {
    fn from(refused: Refused) -> Self {
        Self::unhealthy(Health::Unknown, refused.reason, refused.message)
    }
}

impl Probed {
    fn unhealthy(health: Health, reason: &str, message: String) -> Self {
        let found = Probe {
            healthy: false,
            reason: reason.to_owned(),
            message,
            ..Probe::default()
        };
        Self { health, found }
    }
}

/// The time between two probes of a healthy member: a tenth more or less than usual, by its name. So members are not probed at
/// the same time, and a member at a constant interval.
pub(crate) fn interval(usual: Duration, cluster: &str) -> Duration {
    // FNV-1a.
    let hash = cluster.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let share = f64::from(u32::try_from(hash % 2_001).unwrap_or_default()) / 10_000.0;
    usual.mul_f64(0.9 + share)
}

/// Probes the member. `was_unresponsive`: it did not respond to the probes before.
pub(crate) async fn probe(api: &Api, was_unresponsive: bool) -> Probed {
    let began = Instant::now();
    let deadline = if was_unresponsive { PATIENCE } else { DEADLINE };
    match ready(api, deadline).await {
        Ok(()) => {}
        Err(failure) => return failed(&failure),
    }
    let took = began.elapsed();
    if took > DEADLINE {
        return Probed::unhealthy(
            Health::Unresponsive,
            reason::CLUSTER_API_SLOW,
            format!(
                "the API server responds only after {} s, which is too slow. It may be overloaded, or the network \
                 to it may lose packets",
                took.as_secs()
            ),
        );
    }
    let found = Probe {
        healthy: true,
        reason: reason::CLUSTER_READY.to_owned(),
        message: "the API server responds and is healthy".to_owned(),
        ..Probe::default()
    };
    Probed {
        health: Health::Healthy,
        found,
    }
}

/// Adds the version and the APIs to the result; those that cannot be read now are omitted.
pub(crate) async fn describe(api: &Api, found: &mut Probe) {
    let described = async {
        found.kubernetes_version = discovery::version(api).await.ok();
        found.api_enablements = discovery::apis(api).await.ok();
    };
    if tokio::time::timeout(DESCRIBED, described).await.is_err() {
        debug!(cluster = api.name(), "discovery of the member's APIs timed out");
    }
}

async fn ready(api: &Api, deadline: Duration) -> Result<(), Failure> {
    match get(api, "/readyz", deadline).await {
        // Before Kubernetes 1.16 there was only /healthz.
        Err(failure) if failure.class() == Class::Missing => get(api, "/healthz", deadline).await,
        result => result,
    }
}

async fn get(api: &Api, path: &'static str, deadline: Duration) -> Result<(), Failure> {
    let path = Path::raw(path, "readyz");
    let call = Call {
        verb: Verb::Get,
        path: &path,
        accept: "*/*",
        body: None,
        deadline: Some(deadline),
    };
    // Whichever cluster responds: its identity is checked next.
    api.exchange(call).await.map(drop)
}

/// The result for a member that responds, and whose identity cannot be read.
pub(crate) fn unidentified(failure: &Failure) -> Probed {
    match failure.class() {
        Class::Unknown | Class::Unauthorized => failed(failure),
        _ => {
            let text = failure.text(&Gvk::new("v1", "Namespace"));
            Probed::unhealthy(
                Health::Unknown,
                reason::CLUSTER_ID_UNKNOWN,
                format!(
                    "which cluster this is cannot be read: get of the namespace kube-system failed: {text}. Nothing is written \
                     there before; the joined account needs the verb get on namespaces"
                ),
            )
        }
    }
}

/// The result for another cluster than the one of the Cluster object.
pub(super) fn another(message: String) -> Probed {
    Probed::unhealthy(Health::Unknown, reason::CLUSTER_ID_CHANGED, message)
}

fn failed(failure: &Failure) -> Probed {
    let text = failure.text(&Gvk::new("v1", "Cluster"));
    match failure.class() {
        Class::Unknown => Probed::unhealthy(
            Health::Unresponsive,
            reason::CLUSTER_NOT_REACHABLE,
            format!("the API server does not respond: {text}"),
        ),
        Class::Unauthorized => Probed::unhealthy(
            Health::Unauthorized,
            reason::CREDENTIALS_REFUSED,
            "the API server refuses the token of the Cluster's Secret; put a valid one there".to_owned(),
        ),
        Class::Refused => Probed::unhealthy(
            Health::Unhealthy,
            reason::CREDENTIALS_REFUSED,
            format!(
                "the API server denies the joined account /readyz: {text}. Every account may get /readyz by default; give \
                 ours that right, or another token"
            ),
        ),
        _ => Probed::unhealthy(
            Health::Unhealthy,
            reason::CLUSTER_NOT_READY,
            format!("the API server reports that it is not ready: {text}"),
        ),
    }
}
