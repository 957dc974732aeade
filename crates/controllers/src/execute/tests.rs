//! Execution of changes against scripted servers: the requests, and the messages to the control loop.

use entourage_api::keys::label;
use entourage_core::{
    delivery::RenderSpec,
    interpreter::not_propagatable,
    object::{Gvk, NamespacedName, ResourceId},
    observation::{Delivered, Holder, ObjectRef, Removed, Server, Subject},
    plan::{HubObject, Preconditions, RemovalMode, Verb},
};
use serde_json::{Value, json};

use super::*;
use crate::{
    client::tests::{Log, Reply, api, gone, script, served_nothing, status},
    metrics::Metrics,
};

mod agent_lease;
mod distribute;
mod evidence;
mod hooked;
mod namespaces;
mod recorder;
mod traces;
mod works;

const SOURCE: &str = "GET /api/v1/namespaces/ns/configmaps/a";
const LIVE: &str = "GET /api/v1/namespaces/ns/configmaps/a";
const POST: &str = "POST /api/v1/namespaces/ns/configmaps";
const PUT: &str = "PUT /api/v1/namespaces/ns/configmaps/a";
const DELETE: &str = "DELETE /api/v1/namespaces/ns/configmaps/a";

/// A hub and a member with their scripts, and the inbox of the control loop.
struct Bench {
    hands: Executor,
    member: Arc<Member>,
    inbox: mpsc::Receiver<Message>,
    hub: Log,
    on_member: Log,
}

fn bench(hub: Vec<(&'static str, Reply)>, member: Vec<(&'static str, Reply)>) -> Bench {
    let member = script(Server::Member("m1".into()), member);
    bench_of(script(Server::Hub, hub), member)
}

fn bench_of((hub_api, hub): (Api, Log), (member_api, on_member): (Api, Log)) -> Bench {
    let (brain, inbox) = mpsc::channel(100);
    let (events, _) = events::recorder(hub_api.clone(), Default::default(), Metrics::new());
    let sources = Sources::new(hub_api.clone());
    let hands = Executor {
        hub: hub_api,
        hub_id: "hub".into(),
        sources,
        interpreters: Default::default(),
        estimators: None,
        events,
        brain,
    };
    Bench {
        hands,
        member: Arc::new(Member::new(member_api)),
        inbox,
        hub,
        on_member,
    }
}

impl Bench {
    async fn carry_out(&mut self, change: Change) -> (Outcome, Vec<Observation>) {
        let plan = Plan {
            changes: vec![change],
            ..Plan::default()
        };
        let outcome = self.hands.carry_out(plan, Some(&self.member)).await;
        let mut observed = Vec::new();
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Seen(seen) => observed.push(*seen),
                _ => panic!("only answers are reported"),
            }
        }
        (outcome, observed)
    }

    async fn deliver(&mut self, kind: &str, live: Option<Preconditions>, read_first: bool) -> Delivered {
        let (id, cluster) = (id(kind), "m1".into());
        let render_spec = render_spec();
        let (outcome, mut observed) = self
            .carry_out(Change::Deliver {
                id,
                cluster,
                render_spec,
                live,
                read_first,
            })
            .await;
        assert_eq!(outcome, Outcome::Done, "the core decides when to try again");
        match observed.pop() {
            Some(Observation::Delivered(_, _, delivered)) => delivered,
            other => panic!("{other:?}"),
        }
    }

    async fn remove(&mut self, mode: RemovalMode) -> (Outcome, Option<Observation>) {
        let change = Change::Remove {
            id: id("ConfigMap"),
            cluster: "m1".into(),
            preconditions: preconditions("7"),
            mode,
        };
        let (outcome, mut observed) = self.carry_out(change).await;
        (outcome, observed.pop())
    }
}

fn id(kind: &str) -> ResourceId {
    ResourceId::new(Gvk::new("v1", kind), "ns", "a")
}

fn render_spec() -> RenderSpec {
    RenderSpec {
        interpretation: Default::default(),
        hub: "hub".into(),
        binding: NamespacedName::new("ns", "a-configmap"),
        permanent_id: "p".into(),
        replicas: None,
        at_least: None,
        raise: None,
        keeps_replicas: false,
        completions: None,
        overrides: Default::default(),
        preserved: Default::default(),
        overwrite: false,
        written_uid: None,
    }
}

fn preconditions(version: &str) -> Preconditions {
    Preconditions {
        uid: "copy".into(),
        resource_version: version.into(),
    }
}

fn template() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
        "metadata": {"namespace": "ns", "name": "a", "uid": "t", "resourceVersion": "5"}})
}

/// A copy on the member that is managed by this hub, with this data.
fn live(version: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": data}, "metadata": {
        "namespace": "ns", "name": "a", "uid": "copy", "resourceVersion": version,
        "labels": {"entourage.dev/hub": "hub"},
        "annotations": {"work.karmada.io/namespace": "karmada-es-m1", "resourcebinding.karmada.io/namespace": "ns",
            "resourcebinding.karmada.io/name": "a-configmap"}}})
}

fn foreign() -> Value {
    json!({"data": {"k": "theirs"}, "metadata": {"name": "a", "uid": "x", "resourceVersion": "3"}})
}

fn ok(body: Value) -> Reply {
    Reply::Json(200, body)
}

/// A 404 for the object.
fn no_object() -> Reply {
    gone("configmaps")
}

fn no_namespace() -> Reply {
    Reply::Json(
        404,
        json!({"kind": "Status", "code": 404, "reason": "NotFound", "details": {"kind": "namespaces"}}),
    )
}

fn is_applied(delivered: &Delivered, version: &str) -> bool {
    matches!(delivered, Delivered::Applied { copy, source, .. }
        if &*copy.meta.resource_version == version && source.starts_with("t.v5."))
}

#[tokio::test]
async fn a_copy_that_is_not_there_is_posted_with_our_marks() {
    let mut bench = bench(
        vec![(SOURCE, ok(template()))],
        vec![(POST, Reply::Json(201, live("1", "v")))],
    );
    let delivered = bench.deliver("ConfigMap", None, false).await;
    assert!(is_applied(&delivered, "1"), "{delivered:?}");
    let asked = &bench.on_member.all()[0];
    assert_eq!(asked.body["metadata"]["labels"]["entourage.dev/hub"], "hub");
    assert_eq!(asked.body["data"], json!({"k": "v"}));
    assert!(
        asked.accept.contains("PartialObjectMetadata"),
        "no payload comes back"
    );
}

#[tokio::test]
async fn a_name_that_is_taken_by_someone_else_is_foreign_and_not_written() {
    let mut bench = bench(
        vec![(SOURCE, ok(template()))],
        vec![(POST, status(409, "AlreadyExists")), (LIVE, ok(foreign()))],
    );
    assert_eq!(
        bench.deliver("ConfigMap", None, false).await,
        Delivered::Foreign(Holder::Unknown)
    );
    assert_eq!(bench.on_member.lines(), [POST, LIVE]);
}

#[tokio::test]
async fn a_known_copy_is_replaced_without_reading_it() {
    let mut bench = bench(vec![(SOURCE, ok(template()))], vec![(PUT, ok(live("8", "v")))]);
    assert!(is_applied(
        &bench.deliver("ConfigMap", Some(preconditions("7")), false).await,
        "8"
    ));
    let body = &bench.on_member.all()[0].body;
    assert_eq!(
        (&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]),
        (&json!("copy"), &json!("7"))
    );
}

#[tokio::test]
async fn a_copy_that_changed_is_read_and_compared_before_it_is_written() {
    let mut bench = bench(
        vec![(SOURCE, ok(template()))],
        vec![
            (PUT, status(409, "Conflict")),
            (LIVE, ok(live("9", "drift"))),
            (PUT, status(409, "Conflict")),
            (LIVE, ok(live("10", "drift"))),
            (PUT, ok(live("11", "v"))),
        ],
    );
    assert!(is_applied(
        &bench.deliver("ConfigMap", Some(preconditions("7")), false).await,
        "11"
    ));
    assert_eq!(bench.on_member.all()[4].body["metadata"]["resourceVersion"], "10");
}

#[tokio::test]
async fn a_copy_that_keeps_changing_is_left_for_later() {
    let mut script = vec![(PUT, status(409, "Conflict"))];
    for version in 9..19 {
        let changed = live(&version.to_string(), "drift");
        script.extend([(LIVE, ok(changed)), (PUT, status(409, "Conflict"))]);
    }
    let mut bench = bench(vec![(SOURCE, ok(template()))], script);
    let delivered = bench.deliver("ConfigMap", Some(preconditions("7")), false).await;
    assert_eq!(
        delivered,
        Delivered::Failed("the copy keeps changing on the member".into())
    );
    assert_eq!(bench.on_member.lines().len(), 7);
}

#[tokio::test]
async fn an_equal_copy_is_not_written() {
    // The object that a first delivery writes is the existing one for the second.
    let mut first = bench(vec![(SOURCE, ok(template()))], vec![]);
    let (member, log) = api(Server::Member("m1".into()), |asked| ok(asked.body.clone()));
    first.member = Arc::new(Member::new(member));
    first.deliver("ConfigMap", None, false).await;
    let mut standing = log.all()[0].body.clone();
    standing["metadata"]["resourceVersion"] = json!("7");
    standing["metadata"]["uid"] = json!("copy");
    let mut second = bench(vec![(SOURCE, ok(template()))], vec![(LIVE, ok(standing))]);
    assert!(is_applied(
        &second.deliver("ConfigMap", Some(preconditions("7")), true).await,
        "7"
    ));
    assert_eq!(second.on_member.lines(), [LIVE]);
}

#[tokio::test]
async fn a_missing_namespace_is_made_and_the_copy_posted_again() {
    let mut bench = bench(
        vec![(SOURCE, ok(template()))],
        vec![
            (POST, no_namespace()),
            ("POST /api/v1/namespaces", Reply::Json(201, json!({}))),
            (POST, Reply::Json(201, live("1", "v"))),
        ],
    );
    assert!(is_applied(&bench.deliver("ConfigMap", None, false).await, "1"));
    let made = json!({"name": "ns", "labels": {}, "annotations": {"entourage.dev/created-by": "hub/m1"}});
    assert_eq!(bench.on_member.all()[1].body["metadata"], made);
}

#[tokio::test]
async fn a_namespace_that_cannot_be_made_is_reported_and_holds_nobody_up() {
    let forbidden =
        json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no namespaces for you"});
    let script = vec![
        (POST, no_namespace()),
        ("POST /api/v1/namespaces", Reply::Json(403, forbidden)),
    ];
    let mut bench = bench(vec![(SOURCE, ok(template()))], script);
    assert_eq!(
        bench.deliver("ConfigMap", None, false).await,
        Delivered::Rejected("namespace ns: no namespaces for you".into())
    );
    let gate = bench.member.namespaces.gate(&"ns".into());
    assert!(gate.pass().await.is_none(), "the gate is open");
}

#[tokio::test]
async fn a_member_that_refuses_a_namespace_is_quoted() {
    let forbidden =
        json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no namespaces for you"});
    let mut bench = bench(
        vec![],
        vec![
            ("GET /api/v1/namespaces/shop", status(404, "NotFound")),
            ("POST /api/v1/namespaces", Reply::Json(403, forbidden)),
        ],
    );
    let change = Change::Namespace {
        cluster: "m1".into(),
        name: "shop".into(),
        labels: Default::default(),
        annotations: Default::default(),
    };
    let (outcome, observed) = bench.carry_out(change).await;
    assert_eq!(outcome, Outcome::Refused("no namespaces for you".into()));
    assert!(observed.is_empty(), "{observed:?}");
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_not_blamed_on_the_member() {
    for (reply, failure_kind) in [
        (Reply::Broken, FailureKind::NoResponse),
        (status(503, "ServiceUnavailable"), FailureKind::Busy),
    ] {
        let mut bench = bench(vec![(SOURCE, reply)], vec![]);
        let change = Change::Deliver {
            id: id("ConfigMap"),
            cluster: "m1".into(),
            render_spec: render_spec(),
            live: None,
            read_first: false,
        };
        let (outcome, observed) = bench.carry_out(change).await;
        assert_eq!(
            outcome,
            Outcome::Failed {
                failure_kind,
                asked: None
            }
        );
        assert!(
            matches!(
                observed.as_slice(),
                [Observation::Delivered(_, _, Delivered::Abandoned)]
            ),
            "{observed:?}"
        );
    }
}

#[tokio::test]
async fn who_does_not_lead_any_more_blames_nobody() {
    let (leading, may_write) = tokio::sync::watch::channel(true);
    let (client, log) = crate::client::tests::client(|_| Reply::Json(200, json!({})));
    let options = crate::client::ApiOptions {
        is_reported: false,
        may_write: may_write.into(),
        ..crate::client::tests::options(Server::Member("m1".into()))
    };
    let mut bench = bench(vec![(SOURCE, ok(template()))], vec![]);
    bench.member = Arc::new(Member::new(Api::new(client, options)));
    leading.send_replace(false);
    assert_eq!(
        bench.deliver("ConfigMap", None, false).await,
        Delivered::Abandoned
    );
    let (outcome, observed) = bench.remove(RemovalMode::Delete).await;
    assert!(observed.is_none() && outcome != Outcome::Done, "{observed:?}");
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn a_namespace_is_made_once_however_many_deliveries_go_there() {
    let made = std::sync::atomic::AtomicBool::new(false);
    let (member, log) = api(Server::Member("m1".into()), move |asked| {
        use std::sync::atomic::Ordering::SeqCst;
        match asked.line.as_str() {
            "POST /api/v1/namespaces" => {
                made.store(true, SeqCst);
                Reply::Json(201, json!({}))
            }
            _ if made.load(SeqCst) => Reply::Json(201, live("1", "v")),
            _ => no_namespace(),
        }
    });
    let bench = bench(vec![(SOURCE, ok(template()))], vec![]);
    let member = Arc::new(Member::new(member));
    futures::future::join_all((0..20).map(|_| {
        let (id, cluster, render_spec) = (id("ConfigMap"), "m1".into(), render_spec());
        let change = Change::Deliver {
            id,
            cluster,
            render_spec,
            live: None,
            read_first: false,
        };
        bench.hands.carry_out(
            Plan {
                changes: vec![change],
                ..Plan::default()
            },
            Some(&member),
        )
    }))
    .await;
    assert_eq!(log.lines().len(), 1 + 1 + 20);
    assert_eq!(bench.hub.lines().len(), 1);
}

#[tokio::test]
async fn a_refused_secret_never_shows_its_content() {
    let refusal = json!({"kind": "Status", "code": 422, "reason": "Invalid",
        "message": "Secret is invalid: data[k]: Invalid value: \"canary\"",
        "details": {"causes": [{"field": "data[k]", "reason": "FieldValueInvalid", "message": "canary"}]}});
    for kind in ["Secret", "ConfigMap"] {
        let resource = format!("{}s", kind.to_lowercase());
        let lines: [&'static str; 2] = [
            format!("GET /api/v1/namespaces/ns/{resource}/a").leak(),
            format!("POST /api/v1/namespaces/ns/{resource}").leak(),
        ];
        let mut bench = bench(
            vec![(lines[0], ok(template()))],
            vec![(lines[1], Reply::Json(422, refusal.clone()))],
        );
        let delivered = bench.deliver(kind, None, false).await;
        assert_eq!(
            delivered,
            Delivered::Rejected("422 Invalid; data[k]: FieldValueInvalid".into())
        );
    }
}

#[tokio::test]
async fn a_template_that_is_gone_is_reported_as_absent() {
    let mut bench = bench(vec![(SOURCE, no_object())], vec![]);
    let delivered = bench.deliver("ConfigMap", None, false).await;
    assert!(matches!(delivered, Delivered::NoSource(_)), "{delivered:?}");
    assert!(bench.on_member.lines().is_empty());
}

#[tokio::test]
async fn a_404_that_names_no_object_proves_nothing_while_the_kind_may_have_objects() {
    let thing = ResourceId::new(Gvk::new("asked.example.com/v1", "Thing"), "ns", "a");
    let group = json!([{"name": "asked.example.com", "versions": [{"version": "v2"}]}]);
    let defined = json!([{"metadata": {"name": "things.asked.example.com"}}]);
    let of_v2 = json!({"kind": "APIResourceList", "resources": [{"name": "things", "kind": "Thing"}]});
    let of_v2 = ("GET /apis/asked.example.com/v2", ok(of_v2));
    let groups = |groups: Value| ("GET /apis", ok(json!({"kind": "APIGroupList", "groups": groups})));
    let definitions = |items: Value| {
        let line = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=500";
        (
            line,
            ok(json!({"metadata": {"resourceVersion": "1"}, "items": items})),
        )
    };
    let cases = [
        ("another version", vec![groups(group), of_v2], false),
        (
            "a definition",
            vec![groups(json!([])), definitions(defined)],
            false,
        ),
        ("a proxy", vec![], false),
        ("nothing", vec![groups(json!([])), definitions(json!([]))], true),
    ];
    for (what, reported, absent) in cases {
        let source = "GET /apis/asked.example.com/v1/namespaces/ns/things/a";
        let mut replies = vec![(source, status(404, "NotFound"))];
        replies.extend(reported);
        let mut bench = bench(replies, vec![]);
        let (outcome, observed) = bench.carry_out(Change::GetTemplate(thing.clone())).await;
        let reported = matches!(observed.as_slice(), [Observation::Absent(_)]);
        assert_eq!((reported, outcome == Outcome::Done), (absent, absent), "{what}");
    }
}

#[tokio::test]
async fn a_token_secret_is_never_sent() {
    let token = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "a", "uid": "t"}});
    assert!(not_propagatable(&token));
    let mut bench = bench(vec![("GET /api/v1/namespaces/ns/secrets/a", ok(token))], vec![]);
    assert!(matches!(
        bench.deliver("Secret", None, false).await,
        Delivered::NoSource(_)
    ));
    assert!(bench.on_member.lines().is_empty());
}

#[tokio::test]
async fn failures_of_the_member_are_reported_by_kind() {
    let cases = [
        (Reply::Broken, false),
        (status(503, "ServiceUnavailable"), false),
        (status(429, "TooManyRequests"), false),
        (status(401, "Unauthorized"), false),
        (status(403, "Forbidden"), true),
        (status(404, "NotFound"), true),
        (status(413, "RequestEntityTooLarge"), true),
    ];
    for (reply, rejected) in cases {
        let mut bench = bench(vec![(SOURCE, ok(template()))], vec![(POST, reply.clone())]);
        let delivered = bench.deliver("ConfigMap", None, false).await;
        let reported = match &delivered {
            Delivered::Rejected(_) => true,
            Delivered::Unreachable(_) | Delivered::Failed(_) => false,
            other => panic!("{other:?}"),
        };
        assert_eq!(reported, rejected, "{reply:?}");
    }
}

#[tokio::test]
async fn a_removal_is_over_when_its_answer_says_so() {
    let mut held = live("8", "v");
    held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    held["metadata"]["finalizers"] = json!(["x/y"]);
    let mut bench = bench(vec![], vec![(DELETE, ok(live("7", "v"))), (DELETE, ok(held))]);
    let (_, observed) = bench.remove(RemovalMode::Delete).await;
    assert!(
        matches!(observed, Some(Observation::Removed(_, _, Removed::Gone))),
        "{observed:?}"
    );
    let (change, cluster) = (id("ConfigMap"), "m1".into());
    let (outcome, observed) = bench
        .carry_out(Change::Remove {
            id: change,
            cluster,
            preconditions: preconditions("7"),
            mode: RemovalMode::Delete,
        })
        .await;
    assert_eq!(outcome, Outcome::Done);
    match observed.as_slice() {
        [
            Observation::Seen(Subject::Copy(_, _, copy)),
            Observation::Removed(_, _, Removed::Accepted),
        ] => assert!(copy.meta.deleting.is_some() && &*copy.meta.resource_version == "8"),
        other => panic!("{other:?}"),
    }
}

/// As a Pod without a node is answered: its deletion may have been observed before.
#[tokio::test]
async fn a_copy_that_nothing_holds_is_gone_although_the_answer_shows_it_leaving() {
    let leaving = json!({"kind": "Pod", "metadata": {"uid": "copy", "resourceVersion": "8",
        "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}});
    let mut bench = bench(vec![], vec![(DELETE, ok(leaving))]);
    let (_, observed) = bench.remove(RemovalMode::Delete).await;
    assert!(
        matches!(observed, Some(Observation::Removed(_, _, Removed::Gone))),
        "{observed:?}"
    );
}

#[tokio::test]
async fn a_removal_names_the_copy_exactly() {
    let mut bench = bench(vec![], vec![(DELETE, ok(json!({"kind": "Status"})))]);
    let (_, observed) = bench.remove(RemovalMode::Delete).await;
    assert!(
        matches!(observed, Some(Observation::Removed(_, _, Removed::Gone))),
        "{observed:?}"
    );
    assert_eq!(
        bench.on_member.all()[0].body["preconditions"],
        json!({"uid": "copy", "resourceVersion": "7"})
    );
}

#[tokio::test]
async fn a_copy_that_is_not_there_any_more_is_gone() {
    let mut bench = bench(vec![], vec![(DELETE, no_object())]);
    let (outcome, observed) = bench.remove(RemovalMode::Delete).await;
    assert_eq!(outcome, Outcome::Done);
    assert!(
        matches!(observed, Some(Observation::Removed(_, _, Removed::Gone))),
        "{observed:?}"
    );
}

#[tokio::test]
async fn a_copy_is_not_gone_because_its_kind_is_not_served_or_a_proxy_does_not_know_the_member() {
    for (mode, first) in [(RemovalMode::Delete, DELETE), (RemovalMode::Release, LIVE)] {
        for reply in [status(404, "NotFound"), gone("clusters")] {
            let mut bench = bench(vec![], vec![(first, reply)]);
            let (outcome, observed) = bench.remove(mode).await;
            assert_eq!(outcome, Outcome::Done);
            assert!(
                matches!(
                    observed,
                    Some(Observation::Removed(_, _, Removed::Unreachable(_)))
                ),
                "discovery gets no response: {observed:?}"
            );
        }
    }
    // The kind is no longer defined: its objects were deleted with it.
    let thing = ResourceId::new(Gvk::new("removed.example.com/v1", "Thing"), "ns", "a");
    let (member, _) = api(Server::Member("m1".into()), |asked| served_nothing(&asked.line));
    let mut bench = bench(vec![], vec![]);
    bench.member = Arc::new(Member::new(member));
    let change = Change::Remove {
        id: thing,
        cluster: "m1".into(),
        preconditions: preconditions("7"),
        mode: RemovalMode::Delete,
    };
    let (_, observed) = bench.carry_out(change).await;
    assert!(
        matches!(observed.as_slice(), [Observation::Removed(_, _, Removed::Gone)]),
        "{observed:?}"
    );
}

#[tokio::test]
async fn a_copy_that_changed_is_not_removed_but_planned_again() {
    let mut bench = bench(
        vec![],
        vec![(DELETE, status(409, "Conflict")), (LIVE, ok(live("9", "v")))],
    );
    let (outcome, observed) = bench.remove(RemovalMode::Delete).await;
    assert_eq!(
        outcome,
        Outcome::Failed {
            failure_kind: FailureKind::Conflict,
            asked: None
        }
    );
    assert!(
        matches!(observed, Some(Observation::Seen(Subject::Copy(..)))),
        "{observed:?}"
    );
}

#[tokio::test]
async fn another_object_under_the_same_name_is_left_alone() {
    for mode in [RemovalMode::Delete, RemovalMode::Release, RemovalMode::HandOver] {
        let script = match mode {
            RemovalMode::Delete => vec![(DELETE, status(409, "Conflict")), (LIVE, ok(foreign()))],
            RemovalMode::Release | RemovalMode::HandOver => vec![(LIVE, ok(foreign()))],
        };
        let mut bench = bench(vec![], script);
        let (_, observed) = bench.remove(mode).await;
        assert!(
            matches!(observed, Some(Observation::Removed(_, _, Removed::Gone))),
            "{observed:?}"
        );
    }
}

#[tokio::test]
async fn a_released_copy_loses_our_marks_and_stays() {
    let mut bench = bench(
        vec![],
        vec![
            (LIVE, ok(live("9", "v"))),
            (PUT, status(409, "Conflict")),
            (LIVE, ok(live("10", "v"))),
            (PUT, ok(foreign())),
        ],
    );
    let (_, observed) = bench.remove(RemovalMode::Release).await;
    assert!(
        matches!(observed, Some(Observation::Removed(_, _, Removed::Released))),
        "{observed:?}"
    );
    let body = &bench.on_member.all()[3].body;
    assert_eq!(body["metadata"]["resourceVersion"], "10");
    assert!(!body.to_string().contains("entourage.dev/hub"));
}

#[tokio::test]
async fn a_copy_that_another_hub_took_over_is_neither_released_nor_written() {
    let mut theirs = live("9", "v");
    theirs["metadata"]["labels"]["entourage.dev/hub"] = json!("other");
    let mut released = bench(vec![], vec![(LIVE, ok(theirs.clone()))]);
    let (_, observed) = released.remove(RemovalMode::Release).await;
    assert!(
        matches!(observed, Some(Observation::Removed(_, _, Removed::Gone))),
        "{observed:?}"
    );
    assert_eq!(released.on_member.lines(), [LIVE]);
    let mut delivered = bench(vec![(SOURCE, ok(template()))], vec![(LIVE, ok(theirs))]);
    let change = Change::Deliver {
        id: id("ConfigMap"),
        cluster: "m1".into(),
        render_spec: RenderSpec {
            written_uid: Some("copy".into()),
            ..render_spec()
        },
        live: Some(preconditions("7")),
        read_first: true,
    };
    let (_, observed) = delivered.carry_out(change).await;
    assert!(
        matches!(
            observed.as_slice(),
            [.., Observation::Delivered(_, _, Delivered::Foreign(_))]
        ),
        "{observed:?}"
    );
    assert_eq!(delivered.on_member.lines(), [LIVE]);
}

#[tokio::test]
async fn after_an_unknown_outcome_the_member_is_asked() {
    let cases = [
        (ok(live("9", "v")), "seen"),
        (ok(foreign()), "gone"),
        (no_object(), "gone"),
        // Discovery gets no response.
        (status(404, "NotFound"), "unreachable"),
        (gone("clusters"), "unreachable"),
        (ok(json!({})), "failed"),
        (Reply::Broken, "unreachable"),
    ];
    for (reply, expected) in cases {
        let mut bench = bench(vec![], vec![(LIVE, reply)]);
        let (_, observed) = bench
            .carry_out(Change::GetCopy {
                id: id("ConfigMap"),
                cluster: "m1".into(),
            })
            .await;
        let reported = match observed.as_slice() {
            [Observation::Seen(_)] => "seen",
            [Observation::Removed(_, _, Removed::Gone)] => "gone",
            [Observation::Removed(_, _, Removed::Failed(_))] => "failed",
            [Observation::Removed(_, _, Removed::Unreachable(_))] => "unreachable",
            other => panic!("{other:?}"),
        };
        assert_eq!(reported, expected);
    }
}

const BINDINGS: &str = "POST /apis/work.karmada.io/v1alpha2/namespaces/ns/resourcebindings";
const BINDING: &str = "/apis/work.karmada.io/v1alpha2/namespaces/ns/resourcebindings/b";

fn binding(version: &str) -> Value {
    json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"namespace": "ns", "name": "b", "uid": "b", "resourceVersion": version},
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "a"}}})
}

fn write(verb: Verb) -> Change {
    Change::Hub {
        object: HubObject::Binding(NamespacedName::new("ns", "b")),
        verb,
    }
}

#[tokio::test]
async fn the_answer_to_a_write_is_observed() {
    let mut bench = bench(vec![(BINDINGS, Reply::Json(201, binding("1")))], vec![]);
    let (outcome, observed) = bench.carry_out(write(Verb::Create(json!({})))).await;
    assert_eq!(outcome, Outcome::Done);
    assert!(
        matches!(observed.as_slice(), [Observation::Seen(Subject::Binding(_))]),
        "{observed:?}"
    );
}

#[tokio::test]
async fn a_conflict_on_the_hub_is_looked_at_and_ends_the_plan() {
    let put: &'static str = format!("PUT {BINDING}/status").leak();
    let get: &'static str = format!("GET {BINDING}").leak();
    for (standing, is_gone) in [(ok(binding("9")), false), (gone("resourcebindings"), true)] {
        let mut bench = bench(vec![(put, status(409, "Conflict")), (get, standing)], vec![]);
        let (outcome, observed) = bench.carry_out(write(Verb::ReplaceStatus(json!({})))).await;
        assert_eq!(
            outcome,
            Outcome::Failed {
                failure_kind: FailureKind::Conflict,
                asked: None
            }
        );
        match observed.as_slice() {
            [Observation::Seen(Subject::Binding(_))] => assert!(!is_gone),
            [
                Observation::Gone {
                    which: ObjectRef::Binding(_),
                    ..
                },
            ] => assert!(is_gone),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_binding_is_not_gone_because_somebody_answers_404_to_everything() {
    let (hub, _) = api(Server::Hub, |_| status(404, "NotFound"));
    let mut bench = bench(vec![], vec![]);
    bench.hands.hub = hub;
    let delete = Verb::Delete {
        uid: "b".into(),
        resource_version: "8".into(),
    };
    for verb in [delete, Verb::ReplaceStatus(json!({})), Verb::Replace(json!({}))] {
        let (outcome, observed) = bench.carry_out(write(verb)).await;
        assert!(observed.is_empty(), "{observed:?}");
        assert_eq!(
            outcome,
            Outcome::Failed {
                failure_kind: FailureKind::Busy,
                asked: None
            }
        );
    }
}

#[tokio::test]
async fn a_label_or_replicas_that_the_hub_forbids_are_not_reported_as_a_claim() {
    for patch in [
        json!({"spec": {"replicas": 3}}),
        json!({"metadata": {"labels": {label::RETAIN_REPLICAS: "true"}}}),
    ] {
        let write = Change::Hub {
            object: HubObject::Template(id("ConfigMap")),
            verb: Verb::Merge(patch),
        };
        let patched = "PATCH /api/v1/namespaces/ns/configmaps/a";
        let mut bench = bench(vec![(patched, status(403, "Forbidden"))], vec![]);
        let (outcome, observed) = bench.carry_out(write).await;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        assert!(observed.is_empty(), "{observed:?}");
    }
}

#[tokio::test]
async fn a_claim_and_a_look_that_the_hub_forbids_are_reported_and_those_it_refuses_otherwise_are_not() {
    for (code, reason, is_reported) in [(403, "Forbidden", true), (422, "Invalid", false)] {
        let claim = Change::Hub {
            object: HubObject::Template(id("ConfigMap")),
            verb: Verb::Merge(json!({})),
        };
        let patched = "PATCH /api/v1/namespaces/ns/configmaps/a";
        let mut claiming = bench(vec![(patched, status(code, reason))], vec![]);
        let (outcome, observed) = claiming.carry_out(claim).await;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        let reported = matches!(observed.as_slice(), [Observation::Unclaimed(..)]);
        assert_eq!(
            (reported, observed.is_empty()),
            (is_reported, !is_reported),
            "{observed:?}"
        );
        let mut looking = bench(vec![(SOURCE, status(code, reason))], vec![]);
        let (outcome, observed) = looking.carry_out(Change::GetTemplate(id("ConfigMap"))).await;
        assert!(matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
        let reported = matches!(observed.as_slice(), [Observation::Unreadable(..)]);
        assert_eq!(
            (reported, observed.is_empty()),
            (is_reported, !is_reported),
            "{observed:?}"
        );
    }
}

#[tokio::test]
async fn a_refused_write_ends_the_plan_with_the_hubs_words() {
    let mut bench = bench(vec![(BINDINGS, status(422, "Invalid"))], vec![]);
    let (outcome, observed) = bench.carry_out(write(Verb::Create(json!({})))).await;
    assert_eq!(outcome, Outcome::Refused("Invalid it is".into()));
    assert!(observed.is_empty(), "{observed:?}");
}

#[tokio::test]
async fn a_missing_collection_on_the_hub_is_no_news_about_the_object() {
    let mut bench = bench(vec![(BINDINGS, status(404, "NotFound"))], vec![]);
    let (outcome, observed) = bench.carry_out(write(Verb::Create(json!({})))).await;
    assert_eq!(
        outcome,
        Outcome::Failed {
            failure_kind: FailureKind::Busy,
            asked: None
        }
    );
    assert!(observed.is_empty() && bench.hub.lines() == [BINDINGS]);
}

#[tokio::test]
async fn a_deleted_binding_is_gone_unless_a_finalizer_holds_it() {
    let delete: &'static str = format!("DELETE {BINDING}").leak();
    let mut held = binding("9");
    held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    held["metadata"]["finalizers"] = json!(["x/y"]);
    for (answer, gone) in [
        (json!({"kind": "Status", "status": "Success"}), true),
        (held, false),
    ] {
        let mut bench = bench(vec![(delete, ok(answer))], vec![]);
        let verb = Verb::Delete {
            uid: "b".into(),
            resource_version: "8".into(),
        };
        let (_, observed) = bench.carry_out(write(verb)).await;
        assert_eq!(
            matches!(observed.as_slice(), [Observation::Gone { .. }]),
            gone,
            "{observed:?}"
        );
    }
}

#[tokio::test]
async fn a_need_is_answered_with_what_the_hub_holds() {
    let token = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "a"}});
    let cases = [
        ("Secret", ok(token), "never"),
        (
            "Secret",
            ok(json!({"type": "Opaque", "metadata": {"name": "a"}})),
            "seen",
        ),
        ("ConfigMap", ok(template()), "seen"),
        ("ConfigMap", no_object(), "absent"),
        ("ConfigMap", Reply::Broken, ""),
    ];
    for (kind, reply, expected) in cases {
        let line: &'static str = format!("GET /api/v1/namespaces/ns/{}s/a", kind.to_lowercase()).leak();
        let mut bench = bench(vec![(line, reply)], vec![]);
        let (outcome, observed) = bench.carry_out(Change::GetTemplate(id(kind))).await;
        let reported = match observed.as_slice() {
            [Observation::Found(..)] => "seen",
            [Observation::NotPropagatable(_)] => "never",
            [Observation::Absent(_)] => "absent",
            _ => "",
        };
        assert_eq!(
            (reported, outcome == Outcome::Done),
            (expected, !expected.is_empty())
        );
        let whole = bench.hub.all()[0].accept == "application/json";
        assert_eq!(whole, kind == "Secret", "only a Secret's type is no metadata");
    }
}

#[tokio::test]
async fn changes_stop_at_the_first_that_fails() {
    let mut bench = bench(vec![(BINDINGS, status(500, "InternalError"))], vec![]);
    let changes = vec![
        write(Verb::Create(json!({}))),
        Change::GetTemplate(id("ConfigMap")),
    ];
    let plan = Plan {
        changes,
        ..Plan::default()
    };
    let outcome = bench.hands.carry_out(plan, None).await;
    assert_eq!(
        outcome,
        Outcome::Failed {
            failure_kind: FailureKind::Busy,
            asked: None
        }
    );
    assert_eq!(bench.hub.lines(), [BINDINGS]);
    assert!(bench.inbox.try_recv().is_err());
}
