//! Listing and removing namespaces of a member: the lists, and the deletions.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use entourage_core::{
    namespaces::content::Contents,
    plan::{Event, Regarding},
};

use super::*;
use crate::client::tests::Asked;

const CLAIMS: &str = "/api/v1/namespaces/shop/persistentvolumeclaims?";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?";
const OLD_JOBS: &str = "/apis/batch/v1beta1/namespaces/shop/cronjobs?";

fn resources(names: &[(&str, &str, &[&str])]) -> Reply {
    let all = names.iter().map(|(name, kind, verbs)| {
        let namespaced = *kind != "Node";
        json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": verbs})
    });
    ok(json!({"kind": "APIResourceList", "resources": all.collect::<Vec<_>>()}))
}

fn recorder(hub: Api) -> (Events, impl Future<Output = ()> + Send) {
    events::recorder(hub, Default::default(), Metrics::new())
}

fn items(names: &[&str]) -> Reply {
    let items = names
        .iter()
        .map(|name| json!({"metadata": {"name": name, "uid": name}}));
    let items: Vec<_> = items.collect();
    ok(json!({"kind": "List", "metadata": {"resourceVersion": "9"}, "items": items}))
}

/// A member that serves CronJobs only in the version that their group does not prefer, with an empty namespace.
fn member(line: &str) -> Reply {
    const ALL: &[&str] = &["list", "delete"];
    let path = line.split_once(' ').expect("method and path").1;
    match path {
        "/api/v1" => resources(&[
            ("persistentvolumeclaims", "PersistentVolumeClaim", ALL),
            ("serviceaccounts", "ServiceAccount", ALL),
            ("events", "Event", ALL),
            ("nodes", "Node", ALL),
            ("pods/status", "Pod", ALL),
            ("bindings", "Binding", &["create"]),
        ]),
        "/apis" => {
            let versions = json!([{"version": "v1"}, {"version": "v1beta1"}]);
            let batch = json!({"name": "batch", "versions": versions, "preferredVersion": {"version": "v1"}});
            ok(json!({"kind": "APIGroupList", "groups": [batch]}))
        }
        "/apis/batch/v1" => resources(&[("jobs", "Job", ALL)]),
        "/apis/batch/v1beta1" => resources(&[("jobs", "Job", ALL), ("cronjobs", "CronJob", ALL)]),
        path if path.starts_with("/api/v1/namespaces/shop/serviceaccounts?") => items(&["default"]),
        path if path.starts_with(DEFINITIONS) => items(&["jobs.batch"]),
        path if [CLAIMS, "/apis/batch/v1/namespaces/shop/jobs?", OLD_JOBS]
            .iter()
            .any(|each| path.starts_with(each)) =>
        {
            items(&[])
        }
        "/api/v1/namespaces/shop" => ok(namespace()),
        path => panic!("{path} is asked for"),
    }
}

fn namespace() -> Value {
    json!({"kind": "Namespace", "metadata": {"name": "shop", "uid": "copy", "resourceVersion": "8"}})
}

fn without_shop(_: &Asked) -> Reply {
    no_namespace()
}

fn bench_with(answer: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static) -> Bench {
    let on_member = api(Server::Member("m1".into()), move |asked| {
        answer(&asked.line).unwrap_or_else(|| member(&asked.line))
    });
    bench_of(api(Server::Hub, without_shop), on_member)
}

async fn looked(bench: &mut Bench) -> Contents {
    let change = Change::LookInto {
        cluster: "m1".into(),
        name: "shop".into(),
        copies: Default::default(),
    };
    match bench.carry_out(change).await {
        (Outcome::Done, observed) => match &observed[..] {
            [Observation::LookedInto(_, _, contents)] => contents.clone(),
            other => panic!("{other:?}"),
        },
        (other, _) => panic!("{other:?}"),
    }
}

async fn ended(bench: &mut Bench, mode: RemovalMode) -> (Outcome, Vec<Observation>) {
    let change = Change::EndNamespace {
        cluster: "m1".into(),
        name: "shop".into(),
        preconditions: preconditions("7"),
        copies: Default::default(),
        mode,
        event: (mode == RemovalMode::Release).then(|| Box::new(kept())),
    };
    bench.carry_out(change).await
}

fn kept() -> Event {
    Event {
        regarding: Regarding {
            api_version: "cluster.karmada.io/v1alpha1".into(),
            kind: "Cluster".into(),
            namespace: "".into(),
            name: "m1".into(),
            uid: "c".into(),
        },
        warning: true,
        reason: "NamespaceKept",
        message: "it stays".into(),
    }
}

/// The requests that are no reads.
fn writes(log: &Log) -> Vec<String> {
    let all = log.all().into_iter().map(|asked| asked.line);
    all.filter(|line| !line.starts_with("GET")).collect()
}

#[tokio::test]
async fn a_namespace_is_empty_when_every_kind_was_listed() {
    let mut bench = bench_with(|_| None);
    assert_eq!(looked(&mut bench).await, Contents::Nothing);
    let asked = bench.on_member.all();
    let lists: Vec<_> = asked.iter().filter(|each| each.line.contains("/shop/")).collect();
    assert_eq!(lists.len(), 4, "{lists:?}");
    assert!(
        lists
            .iter()
            .all(|each| each.accept.contains("PartialObjectMetadata")),
        "no payload is asked for"
    );
}

#[tokio::test]
async fn what_only_an_old_version_serves_is_found() {
    let mut bench = bench_with(|line| line.contains(OLD_JOBS).then(|| items(&["nightly"])));
    assert_eq!(looked(&mut bench).await, Contents::Held("CronJob nightly".into()));
}

#[tokio::test]
async fn what_is_on_a_later_page_is_found() {
    let mut bench = bench_with(|line| {
        let more =
            json!({"kind": "List", "metadata": {"resourceVersion": "9", "continue": "x"}, "items": []});
        line.contains(CLAIMS).then(|| {
            if line.contains("continue=x") {
                items(&["data"])
            } else {
                ok(more)
            }
        })
    });
    let held = Contents::Held("PersistentVolumeClaim data".into());
    assert_eq!(looked(&mut bench).await, held);
}

#[tokio::test]
async fn a_look_ends_when_more_was_found_than_is_named() {
    let pages = AtomicUsize::new(0);
    let mut bench = bench_with(move |line| {
        line.contains(CLAIMS).then(|| {
            let page = pages.fetch_add(1, Ordering::SeqCst);
            assert!(page < 2, "the list has no end");
            let items = ["a", "b", "c"].map(|name| json!({"metadata": {"name": name, "uid": name}}));
            let metadata = json!({"resourceVersion": "9", "continue": "x"});
            ok(json!({"kind": "List", "metadata": metadata, "items": items}))
        })
    });
    let Contents::Held(words) = looked(&mut bench).await else {
        panic!("it is full");
    };
    assert!(words.ends_with(" and more"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_listed_is_not_taken_for_empty() {
    let odd = || ok(json!({"any": "thing"}));
    type Case = (&'static str, fn() -> Reply, bool);
    let refused: fn() -> Reply = || status(403, "Forbidden");
    let broken: fn() -> Reply = || status(500, "InternalError");
    let busy: fn() -> Reply = || status(429, "TooManyRequests");
    let expired: fn() -> Reply = || status(410, "Expired");
    let unresponsive: fn() -> Reply = || Reply::Silence;
    let unavailable: fn() -> Reply = || status(503, "ServiceUnavailable");
    let missing: fn() -> Reply = || status(404, "NotFound");
    let cases: Vec<Case> = vec![
        (CLAIMS, refused, true),
        (CLAIMS, unavailable, false),
        (CLAIMS, missing, false),
        (CLAIMS, odd, false),
        (CLAIMS, broken, false),
        (CLAIMS, busy, false),
        (CLAIMS, expired, false),
        (CLAIMS, unresponsive, false),
        (DEFINITIONS, refused, true),
        (DEFINITIONS, missing, false),
        (DEFINITIONS, odd, false),
        (DEFINITIONS, broken, false),
        (DEFINITIONS, || items(&["widgets.example.com"]), false),
        ("/apis/batch/v1beta1", broken, false),
        ("/apis/batch/v1beta1", unresponsive, false),
        (
            "/apis",
            || ok(json!({"kind": "APIGroupList", "groups": []})),
            false,
        ),
        ("/apis/batch/v1beta1", refused, true),
        ("/apis/batch/v1beta1", unavailable, false),
        ("/apis/batch/v1beta1", missing, false),
        ("/apis/batch/v1beta1", odd, false),
        ("/apis", odd, false),
        ("/api/v1", odd, false),
        ("/api/v1", || resources(&[]), false),
    ];
    for (which, reply, is_refused) in cases {
        let mut bench = bench_with(move |line| {
            let path = line.split_once(' ')?.1;
            let is_it = path == which || (which.ends_with('?') && path.starts_with(which));
            let is_a_definition = path.contains("customresourcedefinitions/");
            is_it
                .then(reply)
                .or_else(|| is_a_definition.then(|| ok(json!({"spec": {"scope": "Namespaced"}}))))
        });
        let contents = looked(&mut bench).await;
        let is_as_reported = match contents {
            Contents::Unknown(_) => is_refused,
            Contents::NoResponse(_) => !is_refused,
            _ => false,
        };
        assert!(is_as_reported, "{which}: {contents:?}");
        let (outcome, observed) = ended(&mut bench, RemovalMode::Delete).await;
        assert_eq!(outcome, Outcome::Done);
        assert!(
            matches!(&observed[..], [Observation::LookedInto(..)]),
            "{which}: {observed:?}"
        );
        assert_eq!(writes(&bench.on_member), [""; 0]);
    }
}

#[tokio::test]
async fn a_kind_that_can_be_deleted_and_not_listed_may_be_there() {
    let mut bench = bench_with(|line| {
        (line == "GET /apis/batch/v1").then(|| resources(&[("jobs", "Job", &["deletecollection"])]))
    });
    assert!(matches!(looked(&mut bench).await, Contents::Unknown(_)));
}

#[tokio::test]
async fn what_is_found_is_reported_also_where_something_cannot_be_listed() {
    let mut bench = bench_with(|line| match line {
        line if line.contains(CLAIMS) => Some(items(&["data"])),
        line if line.contains(OLD_JOBS) => Some(status(403, "Forbidden")),
        _ => None,
    });
    let held = Contents::Held("PersistentVolumeClaim data".into());
    assert_eq!(looked(&mut bench).await, held);
}

#[tokio::test]
async fn nothing_is_deleted_that_the_hub_has() {
    let hub = api(Server::Hub, |_| ok(namespace()));
    let on_member = api(Server::Member("m1".into()), |_| Reply::Broken);
    let mut bench = bench_of(hub, on_member);
    assert_eq!(looked(&mut bench).await, Contents::OnHub);
    let (_, observed) = ended(&mut bench, RemovalMode::Delete).await;
    assert!(
        matches!(&observed[..], [Observation::LookedInto(_, _, Contents::OnHub)]),
        "{observed:?}"
    );
    assert_eq!(bench.on_member.all().len(), 0);
    // A 404 that is about the address proves nothing.
    let hub = api(Server::Hub, |_| status(404, "NotFound"));
    let on_member = api(Server::Member("m1".into()), |_| Reply::Broken);
    let mut bench = bench_of(hub, on_member);
    let (outcome, observed) = ended(&mut bench, RemovalMode::Delete).await;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert!(observed.is_empty() && bench.on_member.all().is_empty());
}

#[tokio::test]
async fn what_came_into_the_namespace_since_it_was_looked_into_keeps_it() {
    let came = Arc::new(AtomicBool::new(false));
    let is_there = Arc::clone(&came);
    let mut bench = bench_with(move |line| {
        (line.contains(CLAIMS) && is_there.load(Ordering::SeqCst)).then(|| items(&["data"]))
    });
    assert_eq!(looked(&mut bench).await, Contents::Nothing);
    came.store(true, Ordering::SeqCst);
    let (outcome, observed) = ended(&mut bench, RemovalMode::Delete).await;
    assert_eq!(outcome, Outcome::Done);
    let held = Contents::Held("PersistentVolumeClaim data".into());
    assert!(matches!(&observed[..], [Observation::LookedInto(_, _, contents)] if *contents == held));
    assert_eq!(writes(&bench.on_member), [""; 0]);
}

#[tokio::test]
async fn exactly_this_namespace_is_deleted_and_one_that_changed_is_reported() {
    for code in [200, 409] {
        let mut bench = bench_with(move |line| {
            line.starts_with("DELETE").then(|| match code {
                200 => ok(namespace()),
                _ => status(409, "Conflict"),
            })
        });
        let (outcome, observed) = ended(&mut bench, RemovalMode::Delete).await;
        assert_eq!(outcome, Outcome::Done);
        assert!(
            matches!(
                &observed[..],
                [Observation::Seen(_), Observation::NamespaceEnded(..)]
            ),
            "{observed:?}"
        );
        let all = bench.on_member.all();
        let sent = all.iter().find(|asked| asked.line.starts_with("DELETE"));
        assert_eq!(
            sent.expect("it is sent").body["preconditions"],
            json!({"uid": "copy", "resourceVersion": "7"})
        );
    }
}

#[tokio::test]
async fn a_response_to_the_deletion_that_shows_no_end_of_the_namespace_proves_nothing() {
    let gone = json!({"kind": "Status", "status": "Success"});
    let failed = json!({"kind": "Status", "status": "Failure"});
    for (reply, is_proof) in [(gone, true), (failed, false), (json!({}), false)] {
        let mut bench = bench_with(move |line| line.starts_with("DELETE").then(|| ok(reply.clone())));
        let (outcome, observed) = ended(&mut bench, RemovalMode::Delete).await;
        match is_proof {
            true => assert!(
                matches!(
                    &observed[..],
                    [Observation::Gone { .. }, Observation::NamespaceEnded(..)]
                ),
                "{observed:?}"
            ),
            false => assert!(observed.is_empty(), "{observed:?}"),
        }
        assert_eq!(outcome == Outcome::Done, is_proof, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_release_takes_our_records_off_and_deletes_nothing() {
    let mut bench = bench_with(|line| line.starts_with("PATCH").then(|| ok(namespace())));
    let (outcome, _) = ended(&mut bench, RemovalMode::Release).await;
    assert_eq!(outcome, Outcome::Done);
    let all = bench.on_member.all();
    assert_eq!(writes(&bench.on_member), ["PATCH /api/v1/namespaces/shop"]);
    let body = &all.last().expect("it is sent").body["metadata"];
    assert_eq!(
        (&body["uid"], &body["resourceVersion"]),
        (&json!("copy"), &json!("7"))
    );
    assert!(body["annotations"]["entourage.dev/created-by"].is_null());
}

#[tokio::test]
async fn a_definition_of_what_is_in_no_namespace_hides_nothing() {
    let mut bench = bench_with(|line| {
        if line.ends_with("customresourcedefinitions/planets.example.com") {
            return Some(ok(json!({"spec": {"scope": "Cluster"}})));
        }
        line.contains(DEFINITIONS)
            .then(|| items(&["planets.example.com"]))
    });
    assert_eq!(looked(&mut bench).await, Contents::Nothing);
}

#[tokio::test(start_paused = true)]
async fn what_is_found_is_reported_also_where_the_way_to_something_breaks() {
    for reply in [|| Reply::Broken, || status(401, "Unauthorized")] {
        let mut bench = bench_with(move |line| match line {
            line if line.contains(CLAIMS) => Some(items(&["data"])),
            line if line.contains(OLD_JOBS) => Some(reply()),
            _ => None,
        });
        let held = Contents::Held("PersistentVolumeClaim data".into());
        assert_eq!(looked(&mut bench).await, held);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_outlasts_what_the_server_keeps_is_begun_again() {
    let expired = AtomicBool::new(false);
    let mut bench = bench_with(move |line| {
        let more =
            json!({"kind": "List", "metadata": {"resourceVersion": "9", "continue": "x"}, "items": []});
        line.contains(CLAIMS).then(
            || match (line.contains("continue=x"), expired.load(Ordering::SeqCst)) {
                (false, false) => ok(more),
                (true, false) => {
                    expired.store(true, Ordering::SeqCst);
                    status(410, "Expired")
                }
                (false, true) => items(&["data"]),
                (true, true) => panic!("an expired token is used again"),
            },
        )
    });
    let held = Contents::Held("PersistentVolumeClaim data".into());
    assert_eq!(looked(&mut bench).await, held);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_now_and_then_is_asked_again_after_a_pause() {
    let asked = AtomicUsize::new(0);
    let mut bench = bench_with(move |line| {
        let fails = line.contains(CLAIMS) && asked.fetch_add(1, Ordering::SeqCst) < 4;
        fails.then(|| status(500, "InternalError"))
    });
    let began = tokio::time::Instant::now();
    assert_eq!(looked(&mut bench).await, Contents::Nothing);
    assert_eq!(began.elapsed().as_millis(), 750);
}

/// A hub that has no namespace shop until it was asked this many times.
fn hub_that_gets_it(after: usize) -> (Api, Log) {
    let asked = AtomicUsize::new(0);
    api(Server::Hub, move |_| {
        if asked.fetch_add(1, Ordering::SeqCst) < after {
            no_namespace()
        } else {
            ok(namespace())
        }
    })
}

#[tokio::test]
async fn what_the_hub_gets_while_it_is_looked_into_is_not_deleted() {
    for (mode, after) in [(RemovalMode::Delete, 1), (RemovalMode::Release, 0)] {
        let on_member = api(Server::Member("m1".into()), |asked| member(&asked.line));
        let mut bench = bench_of(hub_that_gets_it(after), on_member);
        let (outcome, observed) = ended(&mut bench, mode).await;
        assert_eq!(outcome, Outcome::Done);
        assert!(
            matches!(&observed[..], [Observation::LookedInto(_, _, Contents::OnHub)]),
            "{mode:?}: {observed:?}"
        );
        assert_eq!(writes(&bench.on_member), [""; 0], "{mode:?}");
    }
}

#[tokio::test]
async fn a_deletion_waits_for_a_delivery_that_is_under_way_and_asks_the_hub_after_it() {
    // The namespace is created on the hub while the member's is listed, and a copy is delivered.
    let on_member = api(Server::Member("m1".into()), |asked| member(&asked.line));
    let mut bench = bench_of(hub_that_gets_it(1), on_member);
    let gate = bench.member.namespaces.gate(&"shop".into());
    let delivery = gate.enter().await;
    let (hub, lists) = (bench.hub.clone(), bench.on_member.clone());
    let (_, (_, observed)) = tokio::join!(
        async {
            while lists
                .lines()
                .iter()
                .filter(|line| line.contains("/shop/"))
                .count()
                < 4
            {
                tokio::task::yield_now().await;
            }
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            assert_eq!(hub.lines().len(), 1, "it is not asked before the delivery ended");
            drop(delivery);
        },
        ended(&mut bench, RemovalMode::Delete)
    );
    assert!(
        matches!(&observed[..], [Observation::LookedInto(_, _, Contents::OnHub)]),
        "{observed:?}"
    );
}

#[tokio::test]
async fn that_a_namespace_stays_is_reported_only_when_it_was_released() {
    for (reply, is_reported) in [(200, true), (409, false), (404, false), (500, false)] {
        let mut bench = bench_with(move |line| {
            line.starts_with("PATCH").then(|| match reply {
                200 => ok(namespace()),
                404 => no_namespace(),
                code => status(code, "Odd"),
            })
        });
        let (events, recorded) = recorder(bench.hands.hub.clone());
        bench.hands.events = events;
        ended(&mut bench, RemovalMode::Release).await;
        // The last handle is dropped, so the recorder ends when it is done.
        bench.hands.events = recorder(bench.hands.hub.clone()).0;
        recorded.await;
        let lines = bench.hub.lines();
        let reported = lines
            .iter()
            .any(|line| line == "POST /api/v1/namespaces/default/events");
        assert_eq!(reported, is_reported, "{reply}: {lines:?}");
    }
}

const MADE: &str = "POST /api/v1/namespaces";
const PROVEN: &str = "PATCH /api/v1/namespaces/shop";

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_made_says_its_own_uid() {
    for busy in [false, true] {
        let mut answers = vec![
            ("GET /api/v1/namespaces/shop", status(404, "NotFound")),
            (MADE, Reply::Json(201, namespace())),
        ];
        if busy {
            answers.push((PROVEN, status(503, "ServiceUnavailable")));
        }
        answers.push((PROVEN, ok(namespace())));
        let mut bench = bench(vec![], answers);
        let change = Change::Namespace {
            cluster: "m1".into(),
            name: "shop".into(),
            labels: Default::default(),
            annotations: Default::default(),
        };
        let (outcome, observed) = bench.carry_out(change).await;
        assert_eq!(outcome, Outcome::Done);
        assert!(matches!(&observed[..], [Observation::Seen(_)]), "{observed:?}");
        let all = bench.on_member.all();
        assert_eq!(all.len(), if busy { 4 } else { 3 });
        let proof =
            json!({"metadata": {"uid": "copy", "annotations": {"entourage.dev/created-by": "hub/m1/copy"}}});
        assert_eq!(all.last().expect("it is sent").body, proof);
    }
}

#[tokio::test]
async fn a_namespace_that_a_policy_places_says_its_own_uid() {
    let shop = || json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "t", "resourceVersion": "5"}});
    let answers = vec![(MADE, Reply::Json(201, namespace())), (PROVEN, ok(namespace()))];
    let mut bench = bench(vec![("GET /api/v1/namespaces/shop", ok(shop()))], answers);
    let change = Change::Deliver {
        id: ResourceId::new(Gvk::new("v1", "Namespace"), "", "shop"),
        cluster: "m1".into(),
        render_spec: render_spec(),
        live: None,
        read_first: true,
    };
    let (_, observed) = bench.carry_out(change).await;
    assert!(
        matches!(
            observed.last(),
            Some(Observation::Delivered(_, _, Delivered::Applied { .. }))
        ),
        "{observed:?}"
    );
    assert_eq!(bench.on_member.lines(), [MADE, PROVEN]);
}
