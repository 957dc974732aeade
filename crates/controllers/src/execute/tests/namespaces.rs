//! Looking into namespaces of a member, and ending them: what is listed, and what is deleted then.

use std::sync::atomic::{AtomicBool, Ordering};

use entourage_core::namespaces::content::Contents;

use super::*;
use crate::client::tests::Asked;

const CLAIMS: &str = "/api/v1/namespaces/shop/persistentvolumeclaims?";
const OLD_JOBS: &str = "/apis/batch/v1beta1/namespaces/shop/cronjobs?";

fn resources(names: &[(&str, &str, &[&str])]) -> Reply {
    let all = names.iter().map(|(name, kind, verbs)| {
        let namespaced = *kind != "Node";
        json!({"name": name, "kind": kind, "namespaced": namespaced, "verbs": verbs})
    });
    ok(json!({"kind": "APIResourceList", "resources": all.collect::<Vec<_>>()}))
}

fn items(names: &[&str]) -> Reply {
    let items = names
        .iter()
        .map(|name| json!({"metadata": {"name": name, "uid": name}}));
    let items: Vec<_> = items.collect();
    ok(json!({"kind": "List", "metadata": {"resourceVersion": "9"}, "items": items}))
}

/// A member that serves CronJobs only in the version that their group does not prefer, and has nothing in its namespace.
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
        (Outcome::Done, heard) => match &heard[..] {
            [Observation::LookedInto(_, _, contents)] => contents.clone(),
            other => panic!("{other:?}"),
        },
        (other, _) => panic!("{other:?}"),
    }
}

async fn ended(bench: &mut Bench, how: How) -> (Outcome, Vec<Observation>) {
    let change = Change::EndNamespace {
        cluster: "m1".into(),
        name: "shop".into(),
        guard: guard("7"),
        copies: Default::default(),
        how,
    };
    bench.carry_out(change).await
}

/// The lines that are no reads.
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
async fn what_cannot_be_listed_is_not_taken_for_empty() {
    let odd = || ok(json!({"any": "thing"}));
    type Case = (&'static str, fn() -> Reply, bool);
    let refused: fn() -> Reply = || status(403, "Forbidden");
    let unavailable: fn() -> Reply = || status(503, "ServiceUnavailable");
    let missing: fn() -> Reply = || status(404, "NotFound");
    let cases: Vec<Case> = vec![
        (CLAIMS, refused, true),
        (CLAIMS, unavailable, false),
        (CLAIMS, missing, false),
        (CLAIMS, odd, false),
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
            is_it.then(reply)
        });
        let contents = looked(&mut bench).await;
        let is_as_told = match contents {
            Contents::Unknown(_) => is_refused,
            Contents::Unanswered(_) => !is_refused,
            _ => false,
        };
        assert!(is_as_told, "{which}: {contents:?}");
        let (outcome, heard) = ended(&mut bench, How::Delete).await;
        assert_eq!(outcome, Outcome::Done);
        assert!(
            matches!(&heard[..], [Observation::LookedInto(..)]),
            "{which}: {heard:?}"
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
async fn what_is_found_is_told_also_where_something_cannot_be_listed() {
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
    let (_, heard) = ended(&mut bench, How::Delete).await;
    assert!(
        matches!(&heard[..], [Observation::LookedInto(_, _, Contents::OnHub)]),
        "{heard:?}"
    );
    assert_eq!(bench.on_member.all().len(), 0);
    // A 404 that is about the address proves nothing.
    let hub = api(Server::Hub, |_| status(404, "NotFound"));
    let on_member = api(Server::Member("m1".into()), |_| Reply::Broken);
    let mut bench = bench_of(hub, on_member);
    let (outcome, heard) = ended(&mut bench, How::Delete).await;
    assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
    assert!(heard.is_empty() && bench.on_member.all().is_empty());
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
    let (outcome, heard) = ended(&mut bench, How::Delete).await;
    assert_eq!(outcome, Outcome::Done);
    let held = Contents::Held("PersistentVolumeClaim data".into());
    assert!(matches!(&heard[..], [Observation::LookedInto(_, _, contents)] if *contents == held));
    assert_eq!(writes(&bench.on_member), [""; 0]);
}

#[tokio::test]
async fn exactly_this_namespace_is_deleted_and_one_that_changed_is_told() {
    for code in [200, 409] {
        let mut bench = bench_with(move |line| {
            line.starts_with("DELETE").then(|| match code {
                200 => ok(namespace()),
                _ => status(409, "Conflict"),
            })
        });
        let (outcome, heard) = ended(&mut bench, How::Delete).await;
        assert_eq!(outcome, Outcome::Done);
        assert!(
            matches!(
                &heard[..],
                [Observation::Seen(_), Observation::NamespaceEnded(..)]
            ),
            "{heard:?}"
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
async fn a_release_takes_our_records_off_and_deletes_nothing() {
    let mut bench = bench_with(|line| line.starts_with("PATCH").then(|| ok(namespace())));
    let (outcome, _) = ended(&mut bench, How::Release).await;
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
