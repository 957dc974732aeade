//! The cost of kinds that no server serves, and the discovery of one that starts to be served.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, advance, timeout};

use super::*;
use crate::client::tests::{Asked, Log, Reply, api, status};

/// A server that serves Shops, from some time on Dreams too, and no other kind.
fn server(dreams: Arc<AtomicBool>) -> (Api, Log) {
    api(Server::Hub, move |asked: &Asked| {
        let dreams = dreams.load(Ordering::Relaxed);
        let line = asked.line.as_str();
        let resource = |name: &str, kind: &str| json!({"resource": name, "responseKind": {"kind": kind}});
        let mut resources = vec![resource("shops", "Shop")];
        resources.extend(dreams.then(|| resource("dreams", "Dream")));
        match line {
            "GET /api" => Reply::Json(200, json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => Reply::Json(
                200,
                json!({"kind": "APIGroupDiscoveryList", "items": [
                    {"metadata": {"name": "example.com"}, "versions": [{"version": "v1", "resources": resources}]}]}),
            ),
            _ if line.contains("watch=true") && line.contains("customresourcedefinitions") => {
                // The definition is created a moment after the watch begins.
                Reply::Lines(if dreams { vec![event()] } else { Vec::new() }, true)
            }
            _ if line.contains("watch=true") => Reply::Lines(Vec::new(), true),
            _ if line.contains("customresourcedefinitions?")
                || line.contains("/shops?")
                || dreams && line.contains("/dreams?") =>
            {
                Reply::Json(
                    200,
                    json!({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []}),
                )
            }
            _ => status(404, "NotFound"),
        }
    })
}

fn event() -> Value {
    json!({"type": "ADDED", "object": {"metadata": {"name": "dreams.example.com", "resourceVersion": "2"}}})
}

fn watches() -> (Watches, mpsc::Receiver<Message>) {
    let (brain, inbox) = mpsc::channel(10_000);
    (
        Watches::new("hub".into(), InterpreterSnapshot::default(), brain),
        inbox,
    )
}

fn templates(kind: &str) -> Watch {
    Watch::Templates(Gvk::new("example.com/v1", kind))
}

/// Applies the results of the scout until there are none for a while; returns the resulting observations.
async fn take_in(
    watches: &mut Watches,
    inbox: &mut mpsc::Receiver<Message>,
    pause: Duration,
) -> Vec<Observation> {
    let mut seen = Vec::new();
    while let Ok(Some(message)) = timeout(pause, inbox.recv()).await {
        match message {
            Message::Looked { server, run, found } => seen.extend(watches.looked(&server, run, found)),
            Message::Watched { seen: reported, .. } => seen.extend(reported),
            _ => {}
        }
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_thousand_kinds_that_nobody_serves_cost_one_look_a_minute_and_one_task_in_all() {
    let mut costs = Vec::new();
    for kinds in [10, 100, 1_000] {
        let (api, log) = server(Arc::default());
        let (mut watches, mut inbox) = watches();
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let mut demand: BTreeSet<Watch> = BTreeSet::new();
        // They appear one by one, as a tenant would name them.
        for kind in 0..kinds {
            demand.insert(templates(&format!("Dream{kind}")));
            watches.demand(kind, &demand, |_| Some(api.clone()));
            if kind % 50 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let seen = take_in(&mut watches, &mut inbox, Duration::from_secs(20)).await;
        let unserved = seen
            .iter()
            .filter(|each| matches!(each, Observation::Unserved { other: None, .. }));
        assert_eq!(unserved.count() as u64, kinds, "each is reported, once");
        let first = log.lines().len();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(600) {
            assert!(
                take_in(&mut watches, &mut inbox, Duration::from_secs(50))
                    .await
                    .is_empty(),
                "nothing is new"
            );
        }
        let lines = log.lines();
        let looks = lines.iter().filter(|line| *line == "GET /apis").count();
        let minutes = began.elapsed().as_secs() as usize / 60;
        costs.push((tasks() - before, looks, lines.len() - first, first));
        println!(
            "{kinds} kinds: {} requests at first, {} in {minutes} minutes, {} tasks",
            first,
            lines.len() - first,
            tasks() - before
        );
        assert!(looks <= minutes + 5, "{looks} looks in {minutes} minutes");
        assert!(lines.len() < 5 * (minutes + 6), "{lines:#?}");
        assert!(
            !lines.iter().any(|line| line.contains("dream")),
            "no request for a kind"
        );
        // No policy names them any more: no request is sent.
        watches.demand(kinds, &BTreeSet::new(), |_| Some(api.clone()));
        advance(Duration::from_secs(300)).await;
        let ended = log.lines().len();
        take_in(&mut watches, &mut inbox, Duration::from_secs(600)).await;
        drop((watches, inbox));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(log.lines().len() <= ended + 4, "nothing is asked for nobody");
    }
    let tasks: BTreeSet<_> = costs.iter().map(|(tasks, ..)| *tasks).collect();
    assert!(tasks.iter().all(|tasks| (1..=4).contains(tasks)), "{costs:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_begins_to_be_served_is_found_by_its_definition_and_one_that_ceases_waits_again() {
    let dreams = Arc::new(AtomicBool::new(false));
    let (api, log) = server(dreams.clone());
    let (mut watches, mut inbox) = watches();
    let demand = BTreeSet::from([templates("Shop"), templates("Dream")]);
    watches.demand(1, &demand, |_| Some(api.clone()));
    let seen = take_in(&mut watches, &mut inbox, Duration::from_secs(5)).await;
    let unserved = |each: &&Observation| matches!(each, Observation::Unserved { watch, other: None, .. } if *watch == templates("Dream"));
    assert_eq!(seen.iter().filter(unserved).count(), 1, "{seen:?}");
    let listed = |seen: &[Observation], kind: &str| {
        seen.iter()
            .any(|each| matches!(each, Observation::Listed { watch, .. } if *watch == templates(kind)))
    };
    assert!(listed(&seen, "Shop") && !listed(&seen, "Dream"));

    dreams.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let mut found = false;
    while !found && began.elapsed() < Duration::from_secs(70) {
        found = listed(
            &take_in(&mut watches, &mut inbox, Duration::from_secs(2)).await,
            "Dream",
        );
    }
    assert!(found, "within the minute: {:#?}", log.lines());

    dreams.store(false, Ordering::Relaxed);
    watches.unserved(&templates("Dream"), None, Some(api.clone()));
    assert!(watches.is_waiting(&templates("Dream")));
    let seen = take_in(&mut watches, &mut inbox, Duration::from_secs(50)).await;
    assert!(
        !seen.iter().any(|each| unserved(&each)),
        "it was reported: {seen:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_restarted_in_the_moment_it_is_found_to_be_served_waits_for_no_other_look() {
    let (api, _) = server(Arc::default());
    let (mut watches, mut inbox) = watches();
    let shops = templates("Shop");
    let demand = BTreeSet::from([shops.clone()]);
    watches.demand(1, &demand, |_| Some(api.clone()));
    let found = loop {
        match inbox.recv().await {
            Some(Message::Looked { server, run, found }) => break (server, run, found),
            Some(_) => {}
            None => panic!("the scout ended"),
        }
    };
    watches.looked(&found.0, found.1, found.2);
    // The interpretation of the kind changes in the same batch of messages: the scout does not run in between.
    watches.end_those(BTreeSet::from([shops.clone()]));
    watches.demand(2, &demand, |_| Some(api.clone()));
    let seen = take_in(&mut watches, &mut inbox, Duration::from_secs(2)).await;
    assert!(
        seen.iter().any(|each| matches!(each, Observation::Listed { .. })),
        "{seen:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_waits_and_is_wanted_anew_is_answered_anew() {
    let (api, _) = server(Arc::default());
    let (mut watches, mut inbox) = watches();
    let dreams = templates("Dream");
    let demand = BTreeSet::from([dreams.clone()]);
    for changes in 1..3 {
        watches.end_those(BTreeSet::from([dreams.clone()]));
        watches.demand(changes, &demand, |_| Some(api.clone()));
        let seen = take_in(&mut watches, &mut inbox, Duration::from_secs(6)).await;
        assert!(
            matches!(seen.as_slice(), [Observation::Unserved { other: None, .. }]),
            "{seen:?}"
        );
    }
}
