//! The order of Events, and those that are not sent.

use std::sync::Mutex;

use entourage_core::plan::{Event, Regarding};
use tokio::time::Instant;

use super::*;
use crate::{
    client::{Form, path::Path},
    execute::events::{LONGEST_DELAY, Recorded, WAITING, WAITING_SUCCESSES},
};

const SILENT: &str = "GET /api/v1/namespaces/ns/configmaps/a";

fn event(warning: bool, message: usize) -> Event {
    let regarding = Regarding {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: "ns".into(),
        name: "a".into(),
        uid: "u".into(),
    };
    Event {
        regarding,
        warning,
        reason: if warning { "SyncFailed" } else { "SyncWorkSucceed" },
        message: message.to_string(),
    }
}

/// The types of the Events that reach the hub when these are made before the first is sent, with the time of each, and the
/// metrics. With `busy`, another request to the hub is running all the time.
async fn sent(recorded: Recorded, busy: bool, made: &[bool]) -> (Vec<(String, Duration)>, String) {
    let began = Instant::now();
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = times.clone();
    let (hub, _) = api(Server::Hub, move |asked| {
        if asked.line == SILENT {
            return Reply::Silence;
        }
        let type_ = asked.body["type"].as_str().expect("an Event").to_owned();
        log.lock().unwrap().push((type_, began.elapsed()));
        Reply::Json(201, asked.body.clone())
    });
    let other = hub.clone();
    let other = busy.then(|| {
        tokio::spawn(async move {
            let path = Path::object(&id("ConfigMap"));
            other.get(&path, Form::Metadata).await.map(drop)
        })
    });
    while busy && !hub.is_busy() {
        tokio::task::yield_now().await;
    }
    let metrics = Metrics::new();
    let (events, recorder) = events::recorder(hub, recorded, metrics.clone());
    for (message, warning) in made.iter().enumerate() {
        events.emit(event(*warning, message));
    }
    // The last handle is dropped, so the recorder ends when it is done.
    drop(events);
    recorder.await;
    if let Some(other) = other {
        other.abort();
    }
    let times = times.lock().unwrap().clone();
    (times, metrics.render())
}

#[tokio::test(start_paused = true)]
async fn warnings_go_before_successes_and_alone_if_only_they_are_recorded() {
    for (recorded, wanted) in [
        (Recorded::All, &["Warning", "Warning", "Normal", "Normal"][..]),
        (Recorded::Once, &["Warning", "Warning", "Normal", "Normal"]),
        (Recorded::Warnings, &["Warning", "Warning"]),
    ] {
        let (sent, metrics) = sent(recorded, false, &[false, true, false, true]).await;
        let types: Vec<&str> = sent.iter().map(|(type_, _)| type_.as_str()).collect();
        assert_eq!(types, wanted, "{recorded:?}");
        assert!(metrics.contains("entourage_events_dropped_total 0"), "{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_gives_way_to_other_requests_for_half_a_second_and_a_warning_does_not() {
    let (idle, _) = sent(Recorded::All, false, &[true, false]).await;
    assert!(
        idle.iter().all(|(_, at)| *at < Duration::from_millis(50)),
        "{idle:?}"
    );
    let (busy, _) = sent(Recorded::All, true, &[true, false]).await;
    assert!(busy[0].1 < Duration::from_millis(50), "{busy:?}");
    assert!(
        busy[1].1 >= LONGEST_DELAY && busy[1].1 < 2 * LONGEST_DELAY,
        "{busy:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn too_many_events_are_dropped_and_counted_successes_and_warnings_apart() {
    let successes = WAITING_SUCCESSES + 2;
    let made: Vec<bool> = (0..successes + WAITING + 3).map(|at| at >= successes).collect();
    let (sent, metrics) = sent(Recorded::All, false, &made).await;
    assert_eq!(sent.len(), WAITING + WAITING_SUCCESSES);
    assert!(metrics.contains("entourage_events_dropped_total 5"), "{metrics}");
}
