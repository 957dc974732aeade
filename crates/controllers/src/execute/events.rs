//! Events on the hub: sent one after the other, with the lowest priority. Losing one is no error.
//!
//! Successes are sent while no other request to the hub is running, or else slowly; warnings before them and without that wait.
//! The same message about the same object within `SAME` increments the count of one Event instead of creating another.

use std::{collections::HashMap, time::Duration};

use entourage_core::{object::Time, plan::Event};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::debug;

use crate::{
    client::{Api, Form, path::Path},
    clock,
    metrics::Metrics,
};

/// The maximum number of waiting warnings; more are dropped.
pub(super) const WAITING: usize = 1000;
/// The maximum number of waiting successes; more are dropped.
pub(super) const WAITING_SUCCESSES: usize = 10_000;
/// The maximum number of series stored; beyond it the oldest is dropped.
const REMEMBERED: usize = 1000;
/// The maximum length of an object's name in the name of its Event, in characters.
const LONGEST_NAME: usize = 200;
/// The time for which an Event's count is incremented, in milliseconds.
const SAME: i64 = 600_000;
/// The maximum length of a message by API servers, in bytes.
const LONGEST: usize = 1024;
/// The minimum time between two requests: Events must not delay other requests to the hub.
const PACE: Duration = Duration::from_millis(5);

/// The maximum time that a success waits for other requests to the hub to end.
pub(super) const LONGEST_DELAY: Duration = Duration::from_millis(500);
/// The time between two looks at whether other requests are running.
const LOOK: Duration = Duration::from_millis(10);

/// The Events that are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorded {
    /// All, and the successes of a workload also on its binding.
    All,
    /// All, and each success on one object.
    #[default]
    Once,
    /// Those of the type Warning.
    Warnings,
}

/// An Event, and when it was made.
type Made = (Event, Time);

/// The queue of Events. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Events {
    warnings: mpsc::Sender<Made>,
    /// `None` if successes are not recorded.
    successes: Option<mpsc::Sender<Made>>,
    metrics: Metrics,
}

impl Events {
    /// Queues an Event; never waits.
    pub fn emit(&self, event: Event) {
        let queue = match &self.successes {
            _ if event.warning => &self.warnings,
            Some(successes) => successes,
            None => return,
        };
        if queue.try_send((event, clock::now())).is_err() {
            self.metrics.event_dropped();
            debug!("an Event was dropped: too many are waiting");
        }
    }
}

/// The queue, and the task that records its Events until the last handle is dropped.
pub fn recorder(hub: Api, recorded: Recorded, metrics: Metrics) -> (Events, impl Future<Output = ()> + Send) {
    let (warnings, of_warnings) = mpsc::channel(WAITING);
    let (successes, of_successes) = mpsc::channel(WAITING_SUCCESSES);
    let events = Events {
        warnings,
        successes: (recorded != Recorded::Warnings).then_some(successes),
        metrics,
    };
    (events, record(hub, of_warnings, of_successes))
}

/// Waits until no other request to the hub is running, at most [`LONGEST_DELAY`].
async fn until_idle(hub: &Api) {
    let quiet = async {
        while hub.is_busy() {
            tokio::time::sleep(LOOK).await;
        }
    };
    // Beyond that, it is sent all the same: the hub may never be idle.
    let _ = tokio::time::timeout(LONGEST_DELAY, quiet).await;
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Series {
    uid: String,
    reason: &'static str,
    message: String,
}

struct Sent {
    path: Path,
    count: u32,
    at: Time,
}

async fn record(hub: Api, mut warnings: mpsc::Receiver<Made>, mut successes: mpsc::Receiver<Made>) {
    let mut series: HashMap<Series, Sent> = HashMap::new();
    loop {
        let (mut event, now) = tokio::select! {
            biased;
            Some(made) = warnings.recv() => made,
            Some(made) = successes.recv() => made,
            else => break,
        };
        if !event.warning {
            until_idle(&hub).await;
        }
        event.message.truncate(cut(&event.message).len());
        let key = Series {
            uid: event.regarding.uid.to_string(),
            reason: event.reason,
            message: event.message.clone(),
        };
        let again = series
            .get_mut(&key)
            .filter(|recorded| now.0 - recorded.at.0 < SAME);
        let result = if let Some(recorded) = again {
            recorded.count += 1;
            let patch = json!({"count": recorded.count, "lastTimestamp": now.to_k8s()});
            hub.merge(&recorded.path, &patch, Form::Metadata).await
        } else {
            let (collection, name) = place(&event, now);
            let path = Path::raw(format!("{}/{name}", collection.uri), "events");
            let result = hub
                .create(&collection, &body(&event, &name, now), Form::Metadata)
                .await;
            if result.is_ok() {
                make_room(&mut series, now);
                series.insert(
                    key,
                    Sent {
                        path,
                        count: 1,
                        at: now,
                    },
                );
            }
            result
        };
        if let Err(failure) = result {
            debug!(reason = event.reason, error = ?failure, "an Event could not be recorded");
        }
        tokio::time::sleep(PACE).await;
    }
}

/// Drops the series that are over, and if that is not enough the one that began first.
fn make_room(series: &mut HashMap<Series, Sent>, now: Time) {
    if series.len() < REMEMBERED {
        return;
    }
    series.retain(|_, recorded| now.0 - recorded.at.0 < SAME);
    if series.len() < REMEMBERED {
        return;
    }
    let oldest = series.iter().min_by_key(|(_, recorded)| recorded.at);
    if let Some(key) = oldest.map(|(key, _)| key.clone()) {
        series.remove(&key);
    }
}

fn namespace(event: &Event) -> &str {
    if event.regarding.namespace.is_empty() {
        "default"
    } else {
        &event.regarding.namespace
    }
}

fn place(event: &Event, now: Time) -> (Path, String) {
    let collection = Path::raw(
        format!("/api/v1/namespaces/{}/events", namespace(event)),
        "events",
    );
    let mut name: String = event.regarding.name.chars().take(LONGEST_NAME).collect();
    if name.contains([':', '/', '%']) {
        name = name.replace([':', '/', '%'], ".");
    }
    // Each part between dots must end in a letter or digit.
    name.truncate(name.trim_end_matches(['-', '.']).len());
    // Two Events about one object within a millisecond differ in their jitter.
    let unique = (now.0 as u64) << 16 | (clock::jitter() * 65_536.0) as u64;
    (collection, format!("{name}.{unique:x}"))
}

fn body(event: &Event, name: &str, now: Time) -> Value {
    let regarding = &event.regarding;
    let mut object = json!({
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "name": &*regarding.name,
        "uid": &*regarding.uid,
    });
    if !regarding.namespace.is_empty() {
        object["namespace"] = json!(&*regarding.namespace);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace(event)},
        "involvedObject": object,
        "reason": event.reason,
        "message": cut(&event.message),
        "type": if event.warning { "Warning" } else { "Normal" },
        "count": 1,
        "firstTimestamp": now.to_k8s(),
        "lastTimestamp": now.to_k8s(),
        "source": {"component": "entourage"},
        "reportingComponent": "entourage",
        "reportingInstance": "",
    })
}

fn cut(message: &str) -> &str {
    let mut end = message.len().min(LONGEST);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

#[cfg(test)]
mod tests {
    use entourage_core::plan::Regarding;

    use super::*;

    fn event(namespace: &str, name: &str) -> Event {
        let regarding = Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: namespace.into(),
            name: name.into(),
            uid: "u".into(),
        };
        Event {
            regarding,
            warning: true,
            reason: "SyncFailed",
            message: "ä".repeat(600),
        }
    }

    #[test]
    fn an_event_on_a_cluster_scoped_object_goes_to_default() {
        let event = event("", "m:1");
        let (path, name) = place(&event, Time(1));
        assert_eq!(path.uri, "/api/v1/namespaces/default/events");
        assert!(name.starts_with("m.1."));
        assert!(
            body(&event, &name, Time(1))["involvedObject"]
                .get("namespace")
                .is_none()
        );
    }

    #[test]
    fn a_name_that_is_cut_stays_a_name() {
        let long = format!("{}-.-rest", "x".repeat(LONGEST_NAME - 2));
        let (_, name) = place(&event("ns", &long), Time(1));
        assert!(
            name.starts_with(&format!("{}.", "x".repeat(LONGEST_NAME - 2))),
            "{name}"
        );
    }

    #[test]
    fn the_series_that_began_first_makes_room() {
        let mut series = HashMap::new();
        for number in 0..=REMEMBERED {
            let now = Time(i64::try_from(number).unwrap());
            make_room(&mut series, now);
            let key = Series {
                uid: number.to_string(),
                reason: "SyncFailed",
                message: String::new(),
            };
            let (path, count) = (Path::raw("/x", "events"), 1);
            series.insert(key, Sent { path, count, at: now });
        }
        assert_eq!(series.len(), REMEMBERED);
        assert!(series.values().all(|recorded| recorded.at > Time(0)));
        make_room(&mut series, Time(SAME + 500));
        assert!(
            series.values().all(|recorded| recorded.at > Time(500)),
            "what is over goes"
        );
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        assert_eq!(cut(&event("ns", "a").message).len(), LONGEST);
        assert_eq!(cut(&format!("x{}", event("ns", "a").message)).len(), LONGEST - 1);
    }
}
