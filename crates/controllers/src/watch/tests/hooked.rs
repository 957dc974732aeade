//! Watches of kinds with hooks, over a scripted server and a hook that is held, shut and opened.

use super::*;
use crate::hooks::client::HookClient;
use entourage_core::observation::{Use, Used, Uses};

/// The time that a test waits for a condition.
const ENDS: Duration = Duration::from_secs(20);

/// Longer than the pause after an attempt that helped, so that another one would be noticed.
const LONGER: Duration = Duration::from_secs(4);

fn gvk() -> Gvk {
    Gvk::new(GVK.0, GVK.1)
}

/// As [`start`], with a hook for the dependencies of the objects.
fn hooked(
    hook_client: &HookClient,
    watch: Watch,
    reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
) -> (mpsc::Receiver<Message>, Log, Api) {
    let (api, log) = api(Server::Hub, move |asked| reply(&asked.line));
    let (brain, inbox) = mpsc::channel(100);
    let watcher = Watcher::new(api.clone(), watch, 1, &"hub".into(), brain);
    let watcher = watcher.interpreting(hook_client.interpreters.clone(), hook_client.of(&gvk()));
    tokio::spawn(watcher.run());
    (inbox, log, api)
}

/// Replies in order, then none.
fn in_order(replies: Vec<Reply>) -> impl Fn(&str) -> Reply + Send + Sync + 'static {
    let next = AtomicUsize::new(0);
    move |_| {
        let reply = replies.get(next.fetch_add(1, Ordering::Relaxed));
        reply.cloned().unwrap_or(Reply::Silence)
    }
}

/// The next templates, each with its name and version and whether an interpretation failed, and `listed`.
async fn observed(inbox: &mut mpsc::Receiver<Message>, count: usize) -> Vec<String> {
    let mut observed = Vec::new();
    while observed.len() < count {
        let next = tokio::time::timeout(ENDS, inbox.recv()).await;
        let Ok(Some(Message::Watched { seen, .. })) = next else {
            panic!("after {observed:?}")
        };
        for each in seen {
            match each {
                Observation::Seen(Subject::Template(id, template)) => {
                    let result = if template.failed_operations.is_empty() {
                        "complete"
                    } else {
                        "incomplete"
                    };
                    observed.push(format!("{} {} {result}", id.name, template.meta.resource_version));
                }
                Observation::Gone {
                    which: ObjectRef::Template(id),
                    ..
                } => observed.push(format!("{} gone", id.name)),
                Observation::Listed { present, .. } => observed.push(format!("listed {}", present.len())),
                Observation::Lost { .. } => observed.push("lost".to_owned()),
                _ => {}
            }
        }
    }
    observed
}

/// Waits until the hook is in this state.
async fn until(what: &str, hook_client: &HookClient, is_so: impl Fn(&HookClient) -> bool) {
    let ends = Instant::now() + ENDS;
    while !is_so(hook_client) {
        assert!(
            Instant::now() < ends,
            "waited until {what}; {:?} waited, asked {:?}",
            hook_client.waiting(),
            hook_client.asked()
        );
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_page_is_asked_about_sixteen_at_a_time_and_reported_in_its_order() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.hold(true);
    let names: Vec<String> = (0..50).map(|number| format!("c{number:02}")).collect();
    let items: Vec<Value> = names.iter().map(|name| item(name, 3)).collect();
    let (mut inbox, _log, _api) = hooked(&hook_client, templates(), in_order(vec![list(10, "", &items)]));
    until("sixteen wait", &hook_client, |hook_client| {
        hook_client.waiting().0 == 16
    })
    .await;
    assert!(
        inbox.try_recv().is_err(),
        "nothing is reported before the hook responded"
    );
    hook_client.hold(false);
    let observed = observed(&mut inbox, 51).await;
    let mut wanted: Vec<String> = names.iter().map(|name| format!("{name} 3 complete")).collect();
    wanted.push("listed 50".to_owned());
    assert_eq!(observed, wanted);
    assert_eq!(hook_client.waiting(), (0, 16), "never more at a time");
    assert_eq!(hook_client.asked().len(), 50, "each once");
    assert_eq!(
        (hook_client.counted("answered"), hook_client.counted("known")),
        (50, 0)
    );
}

#[tokio::test]
async fn a_hook_gets_the_kind_of_what_came_in_a_list_without_it() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    let mut changed = item("b", 12);
    (changed["apiVersion"], changed["kind"]) = (json!("v1"), json!("ConfigMap"));
    let replies = vec![
        list(10, "", &[item("a", 3)]),
        Reply::Lines(vec![event("ADDED", &changed)], true),
    ];
    let (mut inbox, _log, _api) = hooked(&hook_client, templates(), in_order(replies));
    observed(&mut inbox, 3).await;
    assert_eq!(
        hook_client.asked(),
        ["dependencies ConfigMap a", "dependencies ConfigMap b"]
    );
}

#[tokio::test]
async fn an_object_without_an_answer_is_reported_at_once_and_read_again_until_there_is_one() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.shut(true);
    let (mut inbox, log, _api) = hooked(&hook_client, templates(), |line| {
        if line.contains("watch=true") {
            Reply::Lines(vec![], true)
        } else if line.ends_with("/a") {
            Reply::Json(200, item("a", 3))
        } else {
            list(10, "", &[item("a", 3)])
        }
    });
    let began = Instant::now();
    assert_eq!(observed(&mut inbox, 2).await, ["a 3 incomplete", "listed 1"]);
    assert_eq!(observed(&mut inbox, 1).await, ["a 3 incomplete"]);
    assert!(began.elapsed() >= Duration::from_secs(1), "after a pause");
    hook_client.shut(false);
    while observed(&mut inbox, 1).await != ["a 3 complete"] {
        assert!(began.elapsed() < ENDS, "still incomplete");
    }
    let gets = |log: &Log| log.lines().iter().filter(|line| line.ends_with("/a")).count();
    let again = gets(&log);
    assert!(again >= 2, "{:?}", log.lines());
    let more = tokio::time::timeout(LONGER, inbox.recv()).await;
    assert!(more.is_err(), "all is complete");
    assert_eq!(gets(&log), again);
    assert_eq!(
        (hook_client.counted("answered"), hook_client.counted("wrong")),
        (1, hook_client.asked().len() - 1)
    );
}

#[tokio::test]
async fn a_hook_that_is_gone_is_left_alone_after_a_few_questions_and_the_list_is_reported() {
    let mut hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.leave().await;
    let items: Vec<Value> = (0..60).map(|number| item(&format!("c{number:02}"), 3)).collect();
    let (mut inbox, _log, _api) = hooked(&hook_client, templates(), in_order(vec![list(10, "", &items)]));
    let observed = observed(&mut inbox, 61).await;
    assert!(
        observed[..60].iter().all(|each| each.ends_with(" incomplete")),
        "{observed:?}"
    );
    assert_eq!(observed[60], "listed 60");
    let (unresponsive, alone) = (
        hook_client.counted("no_response"),
        hook_client.counted("left_alone"),
    );
    assert_eq!((unresponsive + alone, hook_client.counted("answered")), (60, 0));
    assert!(
        unresponsive >= 5 && alone >= 16,
        "{unresponsive} calls, {alone} left out"
    );
}

#[tokio::test]
async fn what_happens_while_a_hook_does_not_answer_is_reported_at_once_and_observed_later_in_the_newest_version()
 {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.shut(true);
    let (mut inbox, _log, _api) = hooked(&hook_client, templates(), |line| {
        if line.contains("watch=true") {
            let events = vec![
                event("MODIFIED", &item("a", 11)),
                event("ADDED", &item("b", 12)),
                event("DELETED", &item("b", 13)),
                event("MODIFIED", &item("a", 14)),
            ];
            Reply::Lines(events, true)
        } else if line.ends_with("/a") {
            Reply::Json(200, item("a", 14))
        } else if line.ends_with("/b") {
            status(404, "NotFound")
        } else {
            list(10, "", &[item("a", 3)])
        }
    });
    assert_eq!(
        observed(&mut inbox, 6).await,
        [
            "a 3 incomplete",
            "listed 1",
            "a 11 incomplete",
            "b 12 incomplete",
            "b gone",
            "a 14 incomplete"
        ]
    );
    hook_client.shut(false);
    let mut last = String::new();
    while last != "a 14 complete" {
        last = observed(&mut inbox, 1).await.remove(0);
        assert!(
            ["a 14 incomplete", "a 14 complete"].contains(&last.as_str()),
            "{last}"
        );
    }
}

#[tokio::test]
async fn after_an_outage_many_objects_are_observed_without_pauses_between_them() {
    const MANY: usize = 200;
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.shut(true);
    let items: Vec<Value> = (0..MANY)
        .map(|number| item(&format!("c{number:03}"), 3))
        .collect();
    let (mut inbox, _log, _api) = hooked(&hook_client, templates(), move |line| {
        if line.contains("watch=true") {
            return Reply::Lines(vec![], true);
        }
        match line.rsplit_once('/') {
            Some((_, name)) if name.starts_with('c') && name.len() == 4 => Reply::Json(200, item(name, 3)),
            _ => list(10, "", &items),
        }
    });
    observed(&mut inbox, MANY + 1).await;
    hook_client.shut(false);
    let mut all = observed(&mut inbox, 1).await;
    let began = Instant::now();
    all.extend(observed(&mut inbox, MANY - all.len()).await);
    assert!(all.iter().all(|each| each.ends_with(" complete")), "{all:?}");
    // Twelve further rounds of sixteen, and a second before each would take longer.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_gone_is_not_asked_about_again() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.shut(true);
    let (mut inbox, log, _api) = hooked(&hook_client, templates(), |line| {
        if line.contains("watch=true") {
            Reply::Lines(vec![], true)
        } else if line.ends_with("/a") {
            crate::client::tests::gone("configmaps")
        } else if line.ends_with("/b") {
            Reply::Json(200, item("b", 3))
        } else {
            list(10, "", &[item("a", 3), item("b", 3)])
        }
    });
    // The remaining objects are read again twice.
    assert_eq!(
        observed(&mut inbox, 5).await,
        [
            "a 3 incomplete",
            "b 3 incomplete",
            "listed 2",
            "b 3 incomplete",
            "b 3 incomplete"
        ],
        "the end of the other is reported by the watch"
    );
    let gets = log.lines().iter().filter(|line| line.ends_with("/a")).count();
    assert_eq!(gets, 1);
    assert_eq!(hook_client.asked().len(), 2 + 2);
}

#[tokio::test]
async fn a_slow_hook_does_not_keep_other_kinds_from_being_listed() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.hold(true);
    let (mut inbox, log, api) = hooked(&hook_client, templates(), |line| {
        match (line.contains("watch=true"), line.contains("continue=")) {
            (true, _) => Reply::Silence,
            (false, true) => list(10, "", &[item("b", 4)]),
            (false, false) if line.contains("configmaps") => list(10, "next", &[item("a", 3)]),
            _ => list(10, "", &[]),
        }
    });
    // The maximum number of concurrent lists of a server wait for the hook.
    let (brain, mut second) = mpsc::channel(100);
    let watcher = Watcher::new(api.clone(), templates(), 1, &"hub".into(), brain);
    let watcher = watcher.interpreting(hook_client.interpreters.clone(), hook_client.of(&gvk()));
    tokio::spawn(watcher.run());
    until("the hook is asked", &hook_client, |hook_client| {
        hook_client.waiting().0 == 2
    })
    .await;
    let (brain, mut others) = mpsc::channel(100);
    let services = Watch::Templates(Gvk::new("v1", "Service"));
    tokio::spawn(Watcher::new(api.clone(), services, 1, &"hub".into(), brain).run());
    assert_eq!(observed(&mut others, 1).await, ["listed 0"]);
    assert_eq!(hook_client.waiting().0, 2, "and the hook is still asked");
    assert!(!log.lines().iter().any(|line| line.contains("continue=")));
    hook_client.hold(false);
    for inbox in [&mut inbox, &mut second] {
        assert_eq!(
            observed(inbox, 3).await,
            ["a 3 complete", "b 4 complete", "listed 2"]
        );
    }
}

#[tokio::test]
async fn what_was_answered_about_a_version_is_not_asked_again_when_it_is_listed_again() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    let expired = event("ERROR", &json!({"kind": "Status", "code": 410}));
    let replies = vec![
        list(10, "", &[item("a", 3)]),
        Reply::Lines(vec![expired], true),
        list(20, "", &[item("a", 3), item("b", 15)]),
    ];
    let (mut inbox, _log, _api) = hooked(&hook_client, templates(), in_order(replies));
    assert_eq!(
        observed(&mut inbox, 5).await,
        [
            "a 3 complete",
            "listed 1",
            "a 3 complete",
            "b 15 complete",
            "listed 2"
        ]
    );
    assert_eq!(hook_client.asked().len(), 2);
    assert_eq!(
        (hook_client.counted("answered"), hook_client.counted("known")),
        (2, 1)
    );
}

#[tokio::test]
async fn copies_are_interpreted_for_their_health_and_not_for_what_templates_need() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency", "InterpretHealth"]).await;
    let copies = Watch::Copies("m1".into(), gvk());
    let (mut inbox, _log, _api) = hooked(
        &hook_client,
        copies,
        in_order(vec![list(10, "", &[item("a", 3)])]),
    );
    let Some(Message::Watched { seen, .. }) = inbox.recv().await else {
        panic!("nothing")
    };
    let health = seen.iter().find_map(|each| match each {
        Observation::Seen(Subject::Copy(_, _, copy)) => copy.health,
        _ => None,
    });
    assert_eq!(health, Some(entourage_core::interpreter::Health::Healthy));
    assert_eq!(hook_client.asked(), ["health ConfigMap a"]);
}

#[tokio::test]
async fn what_nobody_uses_is_not_asked_for_until_somebody_does_and_is_asked_for_then() {
    let hook_client = HookClient::open("ConfigMap", &["InterpretDependency"]).await;
    hook_client.interpreters.used_by(Uses::default());
    let (mut inbox, log, _api) = hooked(&hook_client, templates(), |line| {
        if line.contains("watch=true") {
            Reply::Lines(vec![], true)
        } else if line.ends_with("/a") {
            Reply::Json(200, item("a", 3))
        } else {
            list(10, "", &[item("a", 3), item("b", 3)])
        }
    });
    assert_eq!(
        observed(&mut inbox, 3).await,
        ["a 3 incomplete", "b 3 incomplete", "listed 2"]
    );
    assert_eq!(hook_client.asked(), [] as [String; 0]);
    // A policy that propagates dependencies claims one of them.
    let id = ResourceId::new(gvk(), "ns", "a");
    let change = |again| Use::Template {
        id: id.clone(),
        used: Some(Used::ALL),
        again,
    };
    hook_client.shut(true);
    hook_client.interpreters.used(change(true));
    assert_eq!(
        observed(&mut inbox, 1).await,
        ["a 3 incomplete"],
        "the hook does not answer"
    );
    hook_client.shut(false);
    assert_eq!(observed(&mut inbox, 1).await, ["a 3 complete"]);
    assert_eq!(
        hook_client.asked().last().map(String::as_str),
        Some("dependencies ? a")
    );
    let gets = log.lines().iter().filter(|line| line.ends_with("/b")).count();
    assert_eq!(gets, 0, "nothing is read for the other one");
}
