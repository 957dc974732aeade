//! A watch through all kinds of ends, over a scripted server.

use std::sync::atomic::{AtomicUsize, Ordering};

use entourage_core::observation::{ObjectRef, Server, Subject};
use serde_json::json;

use super::*;
use crate::client::tests::{Log, Reply, api, served_nothing, status};

mod hooked;

const GVK: (&str, &str) = ("v1", "ConfigMap");

fn item(name: &str, version: u32) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string()}})
}

fn list(version: u32, next: &str, items: &[Value]) -> Reply {
    let meta = json!({"resourceVersion": version.to_string(), "continue": next});
    Reply::Json(200, json!({"kind": "List", "metadata": meta, "items": items}))
}

fn event(kind: &str, object: &Value) -> Value {
    json!({"type": kind, "object": object})
}

/// Runs a watch over a server with these replies in order, then none; returns the messages to the control loop, in short form.
fn start(watch: Watch, replies: Vec<Reply>) -> (mpsc::Receiver<Message>, Log, tokio::task::JoinHandle<()>) {
    let next = AtomicUsize::new(0);
    let (api, log) = api(Server::Hub, move |_| {
        replies
            .get(next.fetch_add(1, Ordering::Relaxed))
            .cloned()
            .unwrap_or(Reply::Silence)
    });
    let (brain, inbox) = mpsc::channel(100);
    let watcher = Watcher::new(api, watch, 1, &"hub".into(), brain);
    (inbox, log, tokio::spawn(watcher.run()))
}

fn templates() -> Watch {
    Watch::Templates(Gvk::new(GVK.0, GVK.1))
}

/// The next `count` observations in short form.
async fn observe(inbox: &mut mpsc::Receiver<Message>, count: usize) -> Vec<String> {
    let mut observed = Vec::new();
    while observed.len() < count {
        let Some(Message::Watched {
            seen,
            initial,
            run: 1,
        }) = inbox.recv().await
        else {
            panic!("{observed:?}")
        };
        for each in seen {
            let short = match each {
                Observation::Listing { .. } | Observation::Reached { .. } => continue,
                Observation::Seen(Subject::Template(id, template)) => {
                    format!("seen {} {}", id.name, template.meta.resource_version)
                }
                Observation::Gone {
                    which: ObjectRef::Template(id),
                    uid,
                    revision,
                } => {
                    format!(
                        "gone {} {} {}",
                        id.name,
                        uid.unwrap_or_default(),
                        revision.unwrap_or_default()
                    )
                }
                Observation::Listed { present, .. } => format!("listed {}", present.len()),
                Observation::Lost { why, .. } => format!("lost: {why}"),
                Observation::Refused { why, .. } => format!("refused: {why}"),
                Observation::Unserved { other, .. } => match other {
                    None => "unserved".into(),
                    Some(version) => format!("served in {version}"),
                },
                other => format!("{other:?}"),
            };
            observed.push(if initial { short } else { format!("live {short}") });
        }
    }
    observed
}

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_followed_by_a_watch_from_its_version() {
    let changes = vec![
        event("ADDED", &item("c", 11)),
        event(
            "BOOKMARK",
            &json!({"kind": "ConfigMap", "metadata": {"resourceVersion": "15"}}),
        ),
        event("DELETED", &item("a", 16)),
    ];
    let (mut inbox, log, _task) = start(
        templates(),
        vec![
            list(10, "next page", &[item("a", 1)]),
            list(10, "", &[item("b", 2)]),
            Reply::Lines(changes, true),
        ],
    );
    let observed = observe(&mut inbox, 5).await;
    assert_eq!(
        observed,
        [
            "seen a 1",
            "seen b 2",
            "listed 2",
            "live seen c 11",
            "live gone a a 16"
        ]
    );
    assert_eq!(
        log.lines(),
        [
            "GET /api/v1/configmaps?limit=500",
            "GET /api/v1/configmaps?limit=500&continue=next%20page",
            "GET /api/v1/configmaps?watch=true&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion=10",
        ]
    );
    assert!(log.all()[0].accept.contains("as=PartialObjectMetadataList;"));
}

#[tokio::test(start_paused = true)]
async fn how_far_a_watch_has_come_is_reported_before_each_list_and_after_events_and_bookmarks() {
    let bookmark = event("BOOKMARK", &json!({"metadata": {"resourceVersion": "15"}}));
    let error = event("ERROR", &json!({"code": 410}));
    let (mut inbox, _log, _task) = start(
        templates(),
        vec![
            list(10, "next page", &[item("a", 1)]),
            list(10, "", &[item("b", 2)]),
            Reply::Lines(vec![event("ADDED", &item("c", 11)), bookmark, error], true),
            list(7, "", &[item("a", 1)]),
        ],
    );
    let mut reported = Vec::new();
    while reported.last().is_none_or(|last| last != "listed 7") {
        let Some(Message::Watched { seen, .. }) = inbox.recv().await else {
            panic!("{reported:?}")
        };
        reported.extend(seen.into_iter().filter_map(|each| match each {
            Observation::Listing { revision, .. } => Some(format!("listing {revision}")),
            Observation::Reached { revision, .. } => Some(format!("reached {revision}")),
            Observation::Listed { revision, .. } => Some(format!("listed {revision}")),
            Observation::Seen(Subject::Template(id, _)) => Some(id.name.to_string()),
            _ => None,
        }));
    }
    let text = reported.join(", ");
    assert!(text.starts_with("listing 10, a, b, listed 10, c, "), "{text}");
    assert!(text.contains("reached 15, listing 7, a, listed 7"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_end_is_resumed_from_the_last_version() {
    let bookmark = event("BOOKMARK", &json!({"metadata": {"resourceVersion": "15"}}));
    let (mut inbox, log, _task) = start(
        templates(),
        vec![
            list(10, "", &[]),
            Reply::Lines(vec![bookmark], false),
            Reply::Lines(vec![event("MODIFIED", &item("a", 16))], true),
        ],
    );
    assert_eq!(observe(&mut inbox, 2).await, ["listed 0", "live seen a 16"]);
    assert!(log.lines()[2].ends_with("resourceVersion=15"));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_answered_with_a_new_list() {
    let expired = event(
        "ERROR",
        &json!({"kind": "Status", "code": 410, "reason": "Expired"}),
    );
    for end in [status(410, "Expired"), Reply::Lines(vec![expired], true)] {
        let (mut inbox, log, _task) = start(
            templates(),
            vec![
                list(10, "", &[item("a", 1)]),
                end,
                list(20, "", &[]),
                Reply::Silence,
            ],
        );
        assert_eq!(observe(&mut inbox, 3).await, ["seen a 1", "listed 1", "listed 0"]);
        assert_eq!(log.lines()[2], "GET /api/v1/configmaps?limit=500");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_reported_once_and_ends_with_a_new_list() {
    let (mut inbox, log, _task) = start(
        templates(),
        vec![
            list(10, "", &[]),
            Reply::Broken, // the watch; tried again from the same version, if the server has come as far
            Reply::Broken,
            Reply::Broken,
            status(503, "ServiceUnavailable"),
            Reply::Lines(vec![], true), // it opens, so it can be listed again
            list(20, "", &[item("a", 1)]),
        ],
    );
    let observed = observe(&mut inbox, 4).await;
    assert!(observed[1].starts_with("lost: "), "{observed:?}");
    assert_eq!(
        (&observed[0][..], &observed[2..]),
        ("listed 0", &["seen a 1".to_owned(), "listed 1".to_owned()][..])
    );
    assert!(
        log.lines()[2].ends_with("?limit=1"),
        "one failure alone needs no new list"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_restored_while_a_watch_was_broken_is_listed_again() {
    // It accepts the version that it has not reached, and sends nothing.
    for broken in [
        Reply::Broken,
        Reply::Lines(vec![], true),
        status(503, "ServiceUnavailable"),
    ] {
        let (mut inbox, log, _task) = start(
            templates(),
            vec![
                list(10, "", &[item("a", 1), item("b", 9)]),
                broken,
                list(7, "next page", &[item("a", 1)]),
                list(7, "", &[item("a", 1)]),
                Reply::Lines(vec![], true),
            ],
        );
        let observed = observe(&mut inbox, 5).await;
        assert_eq!(observed[2..], ["listed 2", "seen a 1", "listed 1"]);
        let lines = log.lines();
        assert!(
            lines[2].ends_with("?limit=1") && lines[3].ends_with("?limit=500"),
            "{lines:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn when_one_watch_finds_a_server_restored_the_others_list_again_at_their_next_end() {
    let restored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_restored = restored.clone();
    let (api, log) = api(Server::Hub, move |asked| {
        let is_restored = is_restored.load(Ordering::Relaxed);
        match (asked.line.contains("watch=true"), asked.line.contains("secrets")) {
            // Its revision has meanwhile passed the last one that this watch observed.
            (false, true) => list(if is_restored { 7 } else { 5 }, "", &[]),
            (false, false) => list(if is_restored { 7 } else { 10 }, "", &[]),
            (true, _) if is_restored => Reply::Silence,
            (true, _) => Reply::Lines(vec![], true),
        }
    });
    let (brain, mut inbox) = mpsc::channel(100);
    let secrets = Watch::Templates(Gvk::new("v1", "Secret"));
    for watch in [templates(), secrets] {
        tokio::spawn(Watcher::new(api.clone(), watch, 1, &"hub".into(), brain.clone()).run());
    }
    assert_eq!(observe(&mut inbox, 2).await, ["listed 0", "listed 0"]);
    restored.store(true, Ordering::Relaxed);
    // Both reach the idle timeout, and check the server.
    tokio::time::sleep(IDLE * 2).await;
    for resource in ["configmaps", "secrets"] {
        let lists = log.lines().into_iter();
        let lists = lists.filter(|line| line.contains(resource) && line.contains("limit=500"));
        assert_eq!(lists.count(), 2, "{resource}: {:?}", log.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_behind_what_a_watch_reported_finds_the_server_restored() {
    let bookmark = event("BOOKMARK", &json!({"metadata": {"resourceVersion": "15"}}));
    let error = event("ERROR", &json!({"code": 410}));
    let next = AtomicUsize::new(0);
    let replies = [
        list(10, "", &[]),
        Reply::Lines(vec![bookmark, error], true),
        list(12, "", &[]),
    ];
    let (api, _log) = api(Server::Hub, move |_| {
        let reply = replies.get(next.fetch_add(1, Ordering::Relaxed));
        reply.cloned().unwrap_or(Reply::Silence)
    });
    let (brain, mut inbox) = mpsc::channel(100);
    tokio::spawn(Watcher::new(api.clone(), templates(), 1, &"hub".into(), brain).run());
    assert_eq!(observe(&mut inbox, 1).await, ["listed 0"]);
    assert_eq!(api.restores(), 0);
    assert_eq!(observe(&mut inbox, 1).await, ["listed 0"]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(api.restores(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_succeeds_ends_the_row_of_failures() {
    let busy = || status(503, "ServiceUnavailable");
    let mut replies = vec![busy(); 8];
    replies.extend([list(10, "", &[]), busy(), busy()]);
    replies.extend(vec![busy(); 6]);
    replies.extend([Reply::Lines(vec![], true), busy(), list(20, "", &[]), busy()]);
    replies.push(list(20, "", &[]));
    replies.push(Reply::Lines(vec![event("ADDED", &item("a", 21))], true));
    let (mut inbox, _log, _task) = start(templates(), replies);
    assert_eq!(observe(&mut inbox, 1).await, ["listed 0"]);
    let listed = Instant::now();
    assert!(observe(&mut inbox, 1).await[0].starts_with("lost: "));
    assert!(
        listed.elapsed() < Duration::from_millis(200),
        "{:?}",
        listed.elapsed()
    );
    observe(&mut inbox, 1).await;
    let listed = Instant::now();
    assert_eq!(observe(&mut inbox, 1).await, ["live seen a 21"]);
    assert!(
        listed.elapsed() < Duration::from_millis(200),
        "{:?}",
        listed.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn errors_right_after_a_list_do_not_make_lists_in_a_loop() {
    let expired = json!({"kind": "Status", "code": 410, "reason": "Expired"});
    let ends = [
        Reply::Lines(vec![event("ERROR", &expired)], false),
        Reply::Lines(vec![json!("no event")], false),
        status(410, "Expired"),
    ];
    for end in ends {
        let mut replies = Vec::new();
        for _ in 0..1000 {
            replies.extend([list(10, "", &[]), end.clone()]);
        }
        let (mut inbox, log, _task) = start(templates(), replies);
        let drain = tokio::spawn(async move { while inbox.recv().await.is_some() {} });
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(log.lines().len() < 40, "{end:?}: {}", log.lines().len());
        drain.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_may_be_listed_but_not_watched_is_lost_and_stays_so() {
    let mut replies = vec![list(10, "", &[])];
    replies.extend(vec![status(403, "Forbidden"); 1000]);
    let (mut inbox, log, _task) = start(templates(), replies);
    assert_eq!(observe(&mut inbox, 2).await[1], "refused: 403 Forbidden");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(inbox.try_recv().is_err());
    assert!(log.lines()[3..].iter().all(|line| line.contains("watch=true")));
    assert!(log.lines().len() < 20, "{}", log.lines().len());
}

#[tokio::test(start_paused = true)]
async fn only_what_our_account_may_not_do_is_reported_as_refused() {
    for (code, reported) in [(403, "refused: "), (401, "lost: "), (405, "lost: ")] {
        let (mut inbox, _log, _task) = start(templates(), vec![status(code, "No"); 1000]);
        let observed = observe(&mut inbox, 1).await;
        assert!(observed[0].starts_with(reported), "{code}: {observed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_at_the_start_is_no_outage_until_it_lasts() {
    let (mut inbox, _log, _task) = start(
        templates(),
        vec![status(429, "TooManyRequests"), Reply::Broken, list(10, "", &[])],
    );
    assert_eq!(observe(&mut inbox, 1).await, ["listed 0"]);
    let began = Instant::now();
    let (mut inbox, _log, _task) = start(templates(), vec![Reply::Broken; 1000]);
    assert!(observe(&mut inbox, 1).await[0].starts_with("lost: "));
    assert!(began.elapsed() >= PATIENCE && began.elapsed() < PATIENCE * 2);
}

#[tokio::test(start_paused = true)]
async fn two_kinds_of_a_server_are_listed_at_a_time() {
    let (api, log) = api(Server::Hub, |_| Reply::Silence);
    let (brain, _inbox) = mpsc::channel(100);
    for run in 0..5 {
        let watcher = Watcher::new(api.clone(), templates(), run, &"hub".into(), brain.clone());
        tokio::spawn(watcher.run());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(log.lines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_asked_for_slowly() {
    let (api, log) = api(Server::Hub, |asked| served_nothing(&asked.line));
    let (brain, mut inbox) = mpsc::channel(100);
    let gone = Watch::Templates(Gvk::new("slow.example.com/v1", "Thing"));
    tokio::spawn(Watcher::new(api, gone, 1, &"hub".into(), brain).run());
    assert_eq!(observe(&mut inbox, 1).await, ["unserved"]);
    tokio::time::sleep(Duration::from_secs(51)).await;
    // Two of them requested discovery and definitions.
    assert_eq!(log.lines().len(), 13);
}

#[tokio::test(start_paused = true)]
async fn a_hub_without_the_definition_of_taint_policies_has_none_of_them() {
    let (api, log) = api(Server::Hub, |asked| served_nothing(&asked.line));
    let (brain, mut inbox) = mpsc::channel(100);
    tokio::spawn(Watcher::new(api, Watch::TaintPolicies, 1, &"hub".into(), brain).run());
    assert_eq!(observe(&mut inbox, 1).await, ["unserved"]);
    let asked = "GET /apis/policy.karmada.io/v1alpha1/clustertaintpolicies?";
    assert!(log.lines()[0].starts_with(asked), "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_404_to_everything_is_an_outage() {
    let (mut inbox, _log, _task) = start(templates(), vec![status(404, "NotFound"); 100]);
    assert!(observe(&mut inbox, 1).await[0].starts_with("lost: "));
    let custom = Watch::Templates(Gvk::new("proxied.example.com/v1", "Thing"));
    let (mut inbox, _log, _task) = start(custom, vec![status(404, "NotFound"); 100]);
    assert!(observe(&mut inbox, 1).await[0].starts_with("lost: "));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(inbox.try_recv().is_err(), "it is reported once");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_and_served_in_no_version_keeps_its_objects() {
    let (api, log) = api(Server::Hub, |asked| {
        if asked.line.contains("customresourcedefinitions?") {
            let items = json!([{"metadata": {"name": "things.kept.example.com"}}]);
            return Reply::Json(200, json!({"metadata": {"resourceVersion": "1"}, "items": items}));
        }
        served_nothing(&asked.line)
    });
    let (brain, mut inbox) = mpsc::channel(100);
    let kept = Watch::Templates(Gvk::new("kept.example.com/v1", "Thing"));
    tokio::spawn(Watcher::new(api, kept, 1, &"hub".into(), brain).run());
    assert_eq!(
        observe(&mut inbox, 1).await,
        ["served in v1"],
        "and so nothing is gone"
    );
    tokio::time::sleep(Duration::from_secs(51)).await;
    assert!(
        inbox.try_recv().is_err() && log.lines().len() < 15,
        "{:?}",
        log.lines()
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_says_nothing_is_opened_again() {
    let bookmark = event("BOOKMARK", &json!({"metadata": {"resourceVersion": "15"}}));
    let (mut inbox, log, _task) = start(
        templates(),
        vec![
            list(10, "", &[]),
            Reply::Lines(vec![], true),
            list(12, "", &[]),
            Reply::Lines(vec![bookmark], true),
            list(15, "", &[]),
            Reply::Lines(vec![event("ADDED", &item("a", 16))], true),
        ],
    );
    let began = Instant::now();
    assert_eq!(observe(&mut inbox, 2).await.len(), 2);
    assert_eq!(log.lines().len(), 6);
    assert!(began.elapsed() < IDLE + IDLE_WITH_BOOKMARKS + Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_watches_at_once_is_not_asked_in_a_loop() {
    let mut replies = vec![list(10, "", &[])];
    replies.extend(vec![Reply::Lines(vec![], false); 1000]);
    let (mut inbox, log, _task) = start(templates(), replies);
    observe(&mut inbox, 1).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(log.lines().len() < 30, "{}", log.lines().len());
}

#[tokio::test(start_paused = true)]
async fn secrets_are_watched_without_tokens_and_copies_by_our_label() {
    let (mut inbox, log, _task) = start(Watch::Templates(Gvk::new("v1", "Secret")), vec![list(1, "", &[])]);
    observe(&mut inbox, 1).await;
    assert_eq!(
        log.lines()[0],
        "GET /api/v1/secrets?fieldSelector=type%21%3Dkubernetes.io%2Fservice-account-token&limit=500"
    );
    let copies = Watch::Copies("m1".into(), Gvk::new("apps/v1", "Deployment"));
    let (mut inbox, log, _task) = start(copies, vec![list(1, "", &[])]);
    observe(&mut inbox, 1).await;
    assert_eq!(
        log.lines()[0],
        "GET /apis/apps/v1/deployments?labelSelector=entourage.dev%2Fhub%3Dhub&limit=250"
    );
    assert_eq!(
        log.all()[0].accept,
        "application/json",
        "a workload's spec and status matter"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_does_not_stop_the_others() {
    let (mut inbox, _log, _task) = start(
        templates(),
        vec![list(10, "", &[json!({"metadata": {}}), item("a", 1)])],
    );
    assert_eq!(observe(&mut inbox, 2).await, ["seen a 1", "listed 1"]);
}

/// The discovery responses of an API server for a group and one of its versions.
fn discovery(line: &str, group: &str, version: &str, resources: &[(&str, &str)]) -> Option<Reply> {
    if line == "GET /apis" {
        let groups = json!([{"name": group, "versions": [{"version": version}]}]);
        return Some(Reply::Json(
            200,
            json!({"kind": "APIGroupList", "groups": groups}),
        ));
    }
    let all: Vec<Value> = resources
        .iter()
        .map(|(name, kind)| json!({"name": name, "kind": kind}))
        .collect();
    let all = json!({"kind": "APIResourceList", "resources": all});
    (line == format!("GET /apis/{group}/{version}")).then_some(Reply::Json(200, all))
}

#[tokio::test(start_paused = true)]
async fn what_another_watch_learnt_of_a_plural_counts() {
    let served = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_served = served.clone();
    let (api, _log) = api(Server::Member("m1".into()), move |asked| {
        if !is_served.load(Ordering::Relaxed) {
            return served_nothing(&asked.line);
        }
        if asked.line.contains("/podchaos?") && asked.line.contains("limit") {
            return list(10, "", &[]);
        }
        status(404, "NotFound")
    });
    let gvk = Gvk::new("learnt.example.com/v1", "PodChaos");
    let (brain, mut inbox) = mpsc::channel(100);
    let copies = Watch::Copies("m1".into(), gvk.clone());
    tokio::spawn(Watcher::new(api, copies, 1, &"hub".into(), brain).run());
    assert_eq!(observe(&mut inbox, 1).await, ["unserved"]);
    // The hub's watch learns the plural, and the definition is delivered to the member.
    path::learn(&gvk, "podchaos");
    served.store(true, Ordering::Relaxed);
    let observed = tokio::time::timeout(Duration::from_secs(90), observe(&mut inbox, 1)).await;
    assert!(observed.is_ok(), "it lists in the end");
}

#[tokio::test(start_paused = true)]
async fn a_definition_made_anew_may_have_another_plural() {
    let (api, _log) = api(Server::Hub, move |asked| {
        if let Some(reply) = discovery(&asked.line, "renamed.example.com", "v1", &[("news", "Thing")]) {
            return reply;
        }
        if asked.line.contains("/news?") && asked.line.contains("limit") {
            return list(10, "", &[]);
        }
        status(404, "NotFound")
    });
    let gvk = Gvk::new("renamed.example.com/v1", "Thing");
    path::learn(&gvk, "olds");
    let (brain, mut inbox) = mpsc::channel(100);
    tokio::spawn(Watcher::new(api, Watch::Templates(gvk), 1, &"hub".into(), brain).run());
    let observed = tokio::time::timeout(Duration::from_secs(90), async {
        loop {
            let observed = observe(&mut inbox, 1).await;
            if observed[0].starts_with("listed") {
                return;
            }
        }
    });
    assert!(observed.await.is_ok(), "it lists in the end");
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_turns_out_to_be_an_upgrade_is_reported_as_both() {
    let calls = AtomicUsize::new(0);
    let (api, _log) = api(Server::Hub, move |asked| {
        let broken = [Reply::Broken, Reply::Broken, Reply::Broken];
        match calls.fetch_add(1, Ordering::Relaxed) {
            0 => list(10, "", &[]),
            call @ 1..=3 => broken[call - 1].clone(),
            // The server is back, without the version; discovery fails at first.
            4..=6 if !asked.line.contains("cronjobs") => status(503, "ServiceUnavailable"),
            _ => discovery(&asked.line, "batch", "v1", &[("cronjobs", "CronJob")])
                .unwrap_or_else(|| status(404, "NotFound")),
        }
    });
    let (brain, mut inbox) = mpsc::channel(100);
    let old = Watch::Templates(Gvk::new("batch/v1beta1", "CronJob"));
    tokio::spawn(Watcher::new(api, old, 1, &"hub".into(), brain).run());
    let observed = tokio::time::timeout(Duration::from_secs(90), observe(&mut inbox, 3)).await;
    let observed = observed.expect("three words");
    assert!(observed[1].starts_with("lost: "), "{observed:?}");
    assert_eq!((&observed[0][..], &observed[2][..]), ("listed 0", "served in v1"));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_in_another_version_is_found() {
    let calls = AtomicUsize::new(0);
    let (api, log) = api(Server::Hub, move |asked| {
        if calls.fetch_add(1, Ordering::Relaxed) < 20 {
            return served_nothing(&asked.line);
        }
        discovery(&asked.line, "later.example.com", "v2", &[("gadgets", "Gadget")])
            .unwrap_or_else(|| status(404, "NotFound"))
    });
    let (brain, mut inbox) = mpsc::channel(100);
    let templates = Watch::Templates(Gvk::new("later.example.com/v1", "Gadget"));
    tokio::spawn(Watcher::new(api, templates, 1, &"hub".into(), brain).run());
    let observed = tokio::time::timeout(Duration::from_secs(300), observe(&mut inbox, 2)).await;
    assert_eq!(observed.expect("two words"), ["unserved", "served in v2"]);
    assert!(log.lines().len() < 60, "{}", log.lines().len());
}
