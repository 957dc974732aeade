//! Copies of distributions against scripted servers: the requests, their preconditions, and the messages to the control loop.

use entourage_core::{
    distribution::{
        Order, Place, Step, WithdrawalOrder,
        render::{DistributionRenderSpec, Mark, render},
    },
    observation::Wrote,
};

use super::*;

const RD: &str = "GET /apis/apps.kruise.io/v1alpha1/resourcedistributions/d";
const READ: &str = "GET /api/v1/namespaces/ns/secrets/a";
const POST: &str = "POST /api/v1/namespaces/ns/secrets";
const PUT: &str = "PUT /api/v1/namespaces/ns/secrets/a";
const DELETE: &str = "DELETE /api/v1/namespaces/ns/secrets/a";
/// Values that no error, no Debug output and no observation may contain, as they are and as base64.
const CANARIES: [&str; 2] = ["canary", "Y2FuYXJ5"];

fn resource() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "a"}, "data": {"k": "Y2FuYXJ5"}})
}

fn distribution() -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution",
        "metadata": {"name": "d", "uid": "rd", "resourceVersion": "5", "generation": 2},
        "spec": {"resource": resource(), "targets": {"allNamespaces": true}},
    })
}

fn order() -> Order {
    Order {
        distribution: "d".into(),
        place: Place {
            cluster: None,
            namespace: "ns".into(),
        },
        id: id("Secret"),
        render_spec: DistributionRenderSpec {
            distribution: "d".into(),
            uid: "rd".into(),
            namespace: "ns".into(),
            mark: Mark::Owner,
            take_over: false,
        },
        source: None,
        live: None,
        read_first: false,
        may_recreate: true,
        may_write: true,
    }
}

/// An order for a copy that is known to exist.
fn standing(read_first: bool) -> Order {
    Order {
        live: Some(preconditions("7")),
        read_first,
        ..order()
    }
}

/// A copy of the distribution as stored on the hub.
fn copy(version: &str) -> Value {
    let made = render(&order().render_spec, &resource(), None);
    let mut copy = made.object().clone();
    copy["metadata"]["uid"] = json!("copy");
    copy["metadata"]["resourceVersion"] = json!(version);
    copy
}

/// A copy whose data a user edited.
fn drifted(version: &str) -> Value {
    let mut copy = copy(version);
    copy["data"]["k"] = json!("ZHJpZnQ=");
    copy
}

/// A Secret that the distribution does not own, with the same data.
fn theirs() -> Value {
    let mut object = resource();
    object["metadata"] = json!({"namespace": "ns", "name": "a", "uid": "theirs", "resourceVersion": "3"});
    object
}

fn leaving(version: &str) -> Value {
    let mut copy = copy(version);
    copy["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    copy["metadata"]["finalizers"] = json!(["x/y"]);
    copy
}

fn no_secret() -> Reply {
    gone("secrets")
}

fn distributed() -> (&'static str, Reply) {
    (RD, ok(distribution()))
}

/// The requests about a copy on the hub, starting with that for the distribution.
fn hub(replies: Vec<(&'static str, Reply)>) -> Bench {
    let mut script = vec![distributed()];
    script.extend(replies);
    bench(script, vec![])
}

/// The requests to the hub, without that for the distribution.
fn asked(bench: &Bench) -> Vec<String> {
    let lines = bench.hub.lines();
    assert_eq!(lines[0], RD);
    lines[1..].to_vec()
}

async fn reported(bench: &mut Bench, change: Change) -> (Vec<Subject>, Wrote) {
    let (outcome, observed) = bench.carry_out(change).await;
    assert_eq!(outcome, Outcome::Done, "the core decides when to try again");
    let shown = format!("{observed:?}");
    assert!(!CANARIES.iter().any(|canary| shown.contains(canary)), "{shown}");
    let mut observed = observed.into_iter();
    let Some(Observation::Distributed(name, place, wrote)) = observed.next_back() else {
        panic!("the outcome comes last");
    };
    assert_eq!((&*name, &*place.namespace), ("d", "ns"));
    let seen = observed.map(|seen| match seen {
        Observation::Seen(subject) => subject,
        other => panic!("{other:?}"),
    });
    (seen.collect(), wrote)
}

/// The observations of the existing object, and the outcome.
async fn apply(bench: &mut Bench, order: Order) -> (Vec<Subject>, Wrote) {
    let (mut seen, wrote) = reported(bench, Change::Distribute(Box::new(order))).await;
    assert!(
        matches!(seen.first(), Some(Subject::Distribution(..))),
        "{seen:?}"
    );
    (seen.split_off(1), wrote)
}

async fn withdraw(bench: &mut Bench, mode: RemovalMode) -> (Vec<Subject>, Wrote) {
    let order = WithdrawalOrder {
        distribution: "d".into(),
        uid: "rd".into(),
        place: order().place,
        id: id("Secret"),
        preconditions: preconditions("7"),
        mode,
        evidence: Vec::new(),
    };
    reported(bench, Change::Withdraw(Box::new(order))).await
}

fn failed(wrote: &Wrote) -> (Step, &str) {
    match wrote {
        Wrote::Failed { step, message, .. } => (*step, message),
        other => panic!("{other:?}"),
    }
}

/// The resourceVersion of the applied copy, the difference, and whether it was created.
fn applied(wrote: &Wrote) -> (&str, Option<&str>, bool) {
    match wrote {
        Wrote::Applied {
            part,
            differed,
            created,
            ..
        } => (&part.resource_version, differed.as_deref(), *created),
        other => panic!("{other:?}"),
    }
}

fn precondition(body: &Value) -> [&str; 2] {
    ["uid", "resourceVersion"].map(|field| body["metadata"][field].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_copy_that_is_not_there_is_posted_with_the_distribution_as_its_controller() {
    let mut bench = hub(vec![(POST, Reply::Json(201, copy("1")))]);
    let (seen, wrote) = apply(&mut bench, order()).await;
    assert_eq!((seen.len(), applied(&wrote)), (0, ("1", None, true)));
    assert_eq!(asked(&bench), [POST]);
    let asked = &bench.hub.all()[1];
    assert_eq!(asked.body["metadata"]["ownerReferences"][0]["uid"], "rd");
    assert_eq!(asked.body["data"], json!({"k": "Y2FuYXJ5"}));
    assert_eq!(precondition(&asked.body), ["", ""]);
    assert!(
        asked.accept.contains("PartialObjectMetadata"),
        "no data comes back"
    );
}

#[tokio::test]
async fn a_copy_on_a_member_is_written_there_and_says_which_hub_it_is_of() {
    let mut bench = bench(vec![distributed()], vec![(POST, Reply::Json(201, copy("1")))]);
    let mut order = order();
    order.place.cluster = Some("m1".into());
    order.render_spec.mark = Mark::Member {
        hub: "hub".into(),
        cluster: "m1".into(),
    };
    let (_, wrote) = apply(&mut bench, order).await;
    assert_eq!(applied(&wrote), ("1", None, true));
    let body = &bench.on_member.all()[0].body;
    assert_eq!(body["metadata"]["labels"]["entourage.dev/distributed-by"], "hub");
    assert_eq!(body["metadata"]["ownerReferences"], Value::Null);
}

#[tokio::test]
async fn a_copy_that_was_written_last_is_replaced_exactly_without_reading_it() {
    let mut bench = hub(vec![(PUT, ok(copy("8")))]);
    let (_, wrote) = apply(&mut bench, standing(false)).await;
    assert_eq!(applied(&wrote), ("8", None, false));
    assert_eq!(asked(&bench), [PUT]);
    assert_eq!(precondition(&bench.hub.all()[1].body), ["copy", "7"]);
}

#[tokio::test]
async fn a_copy_that_changed_is_read_compared_and_replaced_as_it_was_read() {
    let mut bench = hub(vec![
        (PUT, status(409, "Conflict")),
        (READ, ok(drifted("9"))),
        (PUT, ok(copy("10"))),
    ]);
    let (_, wrote) = apply(&mut bench, standing(false)).await;
    assert_eq!(
        applied(&wrote),
        ("10", Some("data"), false),
        "a path without keys"
    );
    assert_eq!(asked(&bench), [PUT, READ, PUT]);
    assert_eq!(precondition(&bench.hub.all()[3].body), ["copy", "9"]);
}

#[tokio::test]
async fn a_copy_that_is_equal_is_read_and_not_written() {
    let mut bench = hub(vec![(READ, ok(copy("9")))]);
    let (_, wrote) = apply(&mut bench, standing(true)).await;
    assert_eq!(applied(&wrote), ("9", None, false));
    assert_eq!(asked(&bench), [READ]);
}

#[tokio::test]
async fn a_copy_that_may_not_be_written_is_only_looked_at() {
    let look = |live| Order {
        may_write: false,
        live,
        ..order()
    };
    for (reply, expected) in [
        (ok(copy("9")), "equal"),
        (ok(drifted("9")), "unequal"),
        (no_secret(), "gone"),
        (Reply::Broken, "failed"),
    ] {
        let mut bench = hub(vec![(READ, reply)]);
        let (_, wrote) = apply(&mut bench, look(Some(preconditions("7")))).await;
        let outcome = match &wrote {
            Wrote::Applied { .. } => "equal",
            Wrote::Unequal { part, .. } => {
                assert_eq!(&*part.resource_version, "9");
                "unequal"
            }
            Wrote::Gone { uid } => {
                assert_eq!(&**uid, "copy");
                "gone"
            }
            Wrote::Failed { .. } => "failed",
            Wrote::Abandoned => "abandoned",
        };
        assert_eq!(outcome, expected);
        assert_eq!(asked(&bench), [READ]);
    }
    let mut nothing = hub(vec![(READ, no_secret())]);
    assert_eq!(apply(&mut nothing, look(None)).await.1, Wrote::Abandoned);
}

#[tokio::test]
async fn a_copy_that_went_meanwhile_is_made_again() {
    for (order, first) in [(standing(false), PUT), (standing(true), READ)] {
        let mut bench = hub(vec![(first, no_secret()), (POST, Reply::Json(201, copy("1")))]);
        let (_, wrote) = apply(&mut bench, order).await;
        assert_eq!(applied(&wrote), ("1", None, true));
        assert_eq!(asked(&bench), [first, POST]);
    }
}

#[tokio::test]
async fn what_an_update_cannot_change_is_deleted_exactly_and_made_again() {
    let mut immutable = drifted("9");
    immutable["immutable"] = json!(true);
    let mut typed = copy("9");
    typed["type"] = json!("example.com/other");
    for (live, differed) in [(immutable, "data"), (typed, "type")] {
        let mut bench = hub(vec![
            (PUT, status(422, "Invalid")),
            (READ, ok(live.clone())),
            (DELETE, ok(live)),
            (POST, Reply::Json(201, copy("10"))),
        ]);
        let (_, wrote) = apply(&mut bench, standing(false)).await;
        assert_eq!(applied(&wrote), ("10", Some(differed), true));
        assert_eq!(asked(&bench), [PUT, READ, DELETE, POST]);
        assert_eq!(
            bench.hub.all()[3].body["preconditions"],
            json!({"uid": "copy", "resourceVersion": "9"})
        );
    }
}

#[tokio::test]
async fn what_may_not_be_made_again_is_left_and_the_reason_is_reported() {
    let mut immutable = drifted("9");
    immutable["immutable"] = json!(true);
    let mut bench = hub(vec![(READ, ok(immutable.clone()))]);
    let kept = Order {
        may_recreate: false,
        ..standing(true)
    };
    let (_, wrote) = apply(&mut bench, kept).await;
    let (step, words) = failed(&wrote);
    assert_eq!(step, Step::Update);
    assert!(words.starts_with("it is immutable, and"), "{words}");
    assert_eq!(asked(&bench), [READ]);
    // The server refuses its deletion: it cannot be updated.
    let mut denied = hub(vec![(READ, ok(immutable)), (DELETE, status(403, "Forbidden"))]);
    let (_, wrote) = apply(&mut denied, standing(true)).await;
    assert_eq!(failed(&wrote), (Step::Update, "403 Forbidden"));
}

#[tokio::test]
async fn a_copy_that_goes_only_after_a_while_is_reported_and_waited_for() {
    let mut immutable = drifted("9");
    immutable["immutable"] = json!(true);
    let mut bench = hub(vec![(READ, ok(immutable)), (DELETE, ok(leaving("10")))]);
    let (seen, wrote) = apply(&mut bench, standing(true)).await;
    assert_eq!(wrote, Wrote::Abandoned);
    assert!(
        matches!(&seen[..], [Subject::Distributed(None, _, part)] if part.deleting.is_some()),
        "{seen:?}"
    );
    let mut bench = hub(vec![(READ, ok(leaving("10")))]);
    let (seen, wrote) = apply(&mut bench, standing(true)).await;
    assert_eq!(
        (seen.len(), wrote),
        (1, Wrote::Abandoned),
        "nothing is written over it"
    );
}

#[tokio::test]
async fn a_name_that_is_taken_by_somebody_else_is_reported_and_not_written() {
    let mut held = theirs();
    held["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Thing", "name": "t", "uid": "t", "controller": true}]);
    for (live, take_over) in [(theirs(), false), (held.clone(), false), (held, true)] {
        let mut bench = hub(vec![(POST, status(409, "AlreadyExists")), (READ, ok(live))]);
        let mut order = order();
        order.render_spec.take_over = take_over;
        let (seen, wrote) = apply(&mut bench, order).await;
        assert_eq!(
            failed(&wrote),
            (
                Step::Create,
                "an object that is not managed by it already exists there"
            )
        );
        assert!(matches!(&seen[..], [Subject::Distributed(None, ..)]), "{seen:?}");
        assert_eq!(asked(&bench), [POST, READ]);
    }
}

#[tokio::test]
async fn what_nobody_controls_is_taken_over_as_it_was_read() {
    let mut bench = hub(vec![
        (POST, status(409, "AlreadyExists")),
        (READ, ok(theirs())),
        (PUT, ok(copy("4"))),
    ]);
    let mut order = order();
    order.render_spec.take_over = true;
    let (_, wrote) = apply(&mut bench, order).await;
    assert!(!applied(&wrote).2, "it was there before");
    assert_eq!(asked(&bench), [POST, READ, PUT]);
    let body = &bench.hub.all()[3].body;
    assert_eq!(precondition(body), ["theirs", "3"]);
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "rd");
}

#[tokio::test]
async fn a_copy_that_keeps_changing_is_left_for_later() {
    let mut script = vec![(PUT, status(409, "Conflict"))];
    for version in 9..19 {
        let changed = drifted(&version.to_string());
        script.extend([(READ, ok(changed)), (PUT, status(409, "Conflict"))]);
    }
    let mut bench = hub(script);
    let (_, wrote) = apply(&mut bench, standing(false)).await;
    assert_eq!(failed(&wrote), (Step::Update, "the object keeps changing"));
    assert_eq!(asked(&bench).len(), 7);
}

#[tokio::test(start_paused = true)]
async fn every_refusal_and_every_no_response_fails_the_step_that_it_answers() {
    let replies = [
        (status(403, "Forbidden"), "403 Forbidden"),
        (status(422, "Invalid"), "422 Invalid"),
        (status(413, "RequestEntityTooLarge"), "413 RequestEntityTooLarge"),
        (status(401, "Unauthorized"), "401 Unauthorized"),
        (status(429, "TooManyRequests"), "429 TooManyRequests"),
        (status(500, "InternalError"), "500 InternalError"),
        (status(503, "ServiceUnavailable"), "503 ServiceUnavailable"),
        // Names no object, or another: a proxy may not know the server.
        (status(404, "NotFound"), "404 NotFound"),
        (gone("clusters"), "404 NotFound"),
        (
            no_namespace(),
            "namespace ns does not exist on the server any more",
        ),
        (Reply::Broken, "connection reset"),
        (Reply::Silence, "no response within 10 s"),
    ];
    for (reply, words) in replies {
        let corrected = || vec![(READ, ok(drifted("9")))];
        for (order, mut script, last, step) in [
            (order(), vec![], POST, Step::Create),
            (standing(true), vec![], READ, Step::Get),
            (standing(true), corrected(), PUT, Step::Update),
        ] {
            script.push((last, reply.clone()));
            let requests = script.len();
            let mut bench = hub(script);
            let (_, wrote) = apply(&mut bench, order).await;
            let (failed, text) = failed(&wrote);
            assert_eq!(failed, step, "{last} {reply:?}");
            assert!(text.contains(words), "{last} {reply:?}: {text}");
            assert_eq!(
                asked(&bench).len(),
                requests,
                "{last} {reply:?}: nothing is asked after it"
            );
        }
    }
}

#[tokio::test]
async fn what_is_distributed_is_fetched_first_and_nothing_is_written_without_it() {
    for (reply, words) in [
        (status(500, "InternalError"), "500 InternalError"),
        (gone("resourcedistributions"), "404 NotFound"),
        (Reply::Broken, "connection reset"),
    ] {
        let mut bench = bench(vec![(RD, reply)], vec![]);
        let (seen, wrote) = reported(&mut bench, Change::Distribute(Box::new(order()))).await;
        let (step, text) = failed(&wrote);
        assert_eq!((step, seen.len()), (Step::Get, 0));
        assert!(text.contains(words), "{text}");
        assert_eq!(bench.hub.lines(), [RD]);
    }
}

#[tokio::test]
async fn nothing_is_written_for_a_distribution_that_ends_or_is_not_what_was_planned() {
    let mut ending = distribution();
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut another = distribution();
    another["metadata"]["uid"] = json!("rd-2");
    let mut renamed = distribution();
    renamed["spec"]["resource"]["metadata"]["name"] = json!("b");
    let mut by_reference = distribution();
    by_reference["spec"] = json!({"resourceFrom": {"kind": "Secret", "namespace": "x", "name": "a"},
        "targets": {"allNamespaces": true}});
    for changed in [ending, another, renamed, by_reference] {
        let mut bench = bench(vec![(RD, ok(changed))], vec![]);
        let (_, wrote) = apply(&mut bench, standing(false)).await;
        assert_eq!(wrote, Wrote::Abandoned);
        assert_eq!(bench.hub.lines(), [RD]);
    }
}

#[tokio::test]
async fn a_distribution_that_cannot_be_read_says_so_without_what_it_holds() {
    let mut bench = bench(
        vec![(
            RD,
            ok({
                let mut bad = distribution();
                bad["spec"]["resource"]["data"]["k"] = json!("canary!");
                bad
            }),
        )],
        vec![],
    );
    let (_, wrote) = apply(&mut bench, order()).await;
    let (step, words) = failed(&wrote);
    assert_eq!(step, Step::Get);
    assert!(words.contains("base64"), "{words}");
}

#[tokio::test]
async fn what_stands_by_itself_is_distributed_only_if_its_owner_consents_and_it_may_travel() {
    const SOURCE: &str = "GET /api/v1/namespaces/from/secrets/a";
    let source = |change: fn(&mut Value)| {
        let mut object = resource();
        object["metadata"] = json!({"namespace": "from", "name": "a", "uid": "s", "resourceVersion": "5",
            "annotations": {"entourage.dev/distribution-allowed": "d"}});
        change(&mut object);
        object
    };
    let order = || Order {
        source: Some(ResourceId::new(Gvk::new("v1", "Secret"), "from", "a")),
        ..order()
    };
    let mut fine = bench(vec![(SOURCE, ok(source(|_| {}))), (POST, ok(copy("1")))], vec![]);
    let (seen, wrote) = reported(&mut fine, Change::Distribute(Box::new(order()))).await;
    assert!(matches!(&seen[..], [Subject::Distributed(None, ..)]), "{seen:?}");
    assert_eq!(applied(&wrote), ("1", None, true));
    let body = &fine.hub.all()[1].body;
    assert!(
        !body.to_string().contains("distribution-allowed"),
        "consent does not travel"
    );
    type Edit = fn(&mut Value);
    let refused: [(Edit, &str); 2] = [
        (
            |object| object["metadata"]["annotations"] = json!({}),
            "does not permit its distribution",
        ),
        (
            |object| object["type"] = json!("kubernetes.io/service-account-token"),
            "token",
        ),
    ];
    for (change, words) in refused {
        let mut bench = bench(vec![(SOURCE, ok(source(change)))], vec![]);
        let (_, wrote) = reported(&mut bench, Change::Distribute(Box::new(order()))).await;
        let (step, text) = failed(&wrote);
        assert!(step == Step::Get && text.contains(words), "{text}");
        assert_eq!(bench.hub.lines(), [SOURCE]);
    }
}

#[tokio::test]
async fn a_refused_copy_never_shows_its_content() {
    let refusal = json!({"kind": "Status", "code": 422, "reason": "Invalid",
        "message": "Secret is invalid: data[k]: Invalid value: \"canary\"",
        "details": {"causes": [{"field": "data[k]", "reason": "FieldValueInvalid", "message": "Y2FuYXJ5"}]}});
    let mut bench = hub(vec![(POST, Reply::Json(422, refusal))]);
    let (_, wrote) = apply(&mut bench, order()).await;
    assert_eq!(
        failed(&wrote),
        (Step::Create, "422 Invalid; data[k]: FieldValueInvalid")
    );
}

#[tokio::test]
async fn a_copy_that_is_not_meant_is_deleted_exactly() {
    let mut bench = bench(vec![(DELETE, ok(json!({"kind": "Status"})))], vec![]);
    let (seen, wrote) = withdraw(&mut bench, RemovalMode::Delete).await;
    assert_eq!((seen.len(), wrote), (0, Wrote::Gone { uid: "copy".into() }));
    assert_eq!(
        bench.hub.all()[0].body["preconditions"],
        json!({"uid": "copy", "resourceVersion": "7"})
    );
}

#[tokio::test]
async fn a_removal_ends_as_the_answers_prove() {
    let gone = || Wrote::Gone { uid: "copy".into() };
    let failed = |message: &str| Wrote::Failed {
        step: Step::Delete,
        message: message.into(),
        may_exist: false,
    };
    let changed = || (DELETE, status(409, "Conflict"));
    let cases = [
        (vec![(DELETE, no_secret())], 0, gone()),
        (vec![(DELETE, ok(copy("7")))], 0, gone()),
        (vec![(DELETE, ok(leaving("8")))], 1, Wrote::Abandoned),
        (vec![changed(), (READ, ok(copy("9")))], 1, Wrote::Abandoned),
        // The existing object is the one to delete: a webhook refuses it.
        (vec![changed(), (READ, ok(copy("7")))], 0, failed("409 Conflict")),
        (vec![changed(), (READ, ok(theirs()))], 1, gone()),
        (vec![changed(), (READ, no_secret())], 0, gone()),
        (
            vec![changed(), (READ, status(500, "InternalError"))],
            0,
            failed("500 InternalError"),
        ),
        (
            vec![(DELETE, status(403, "Forbidden"))],
            0,
            failed("403 Forbidden"),
        ),
        (
            vec![(DELETE, status(429, "TooManyRequests"))],
            0,
            failed("429 TooManyRequests"),
        ),
        // Names no object: it proves nothing.
        (vec![(DELETE, status(404, "NotFound"))], 0, failed("404 NotFound")),
    ];
    for (script, reported, expected) in cases {
        let requests = script.len();
        let mut bench = bench(script, vec![]);
        let (seen, wrote) = withdraw(&mut bench, RemovalMode::Delete).await;
        assert_eq!((seen.len(), wrote), (reported, expected));
        assert_eq!(bench.hub.lines().len(), requests);
    }
}

#[tokio::test]
async fn a_copy_that_stays_when_the_distribution_goes_loses_our_marks_and_keeps_its_data() {
    let freed = json!({"metadata": {"namespace": "ns", "name": "a", "uid": "copy", "resourceVersion": "11"}});
    let mut bench = bench(
        vec![
            (READ, ok(copy("9"))),
            (PUT, status(409, "Conflict")),
            (READ, ok(copy("10"))),
            (PUT, ok(freed)),
        ],
        vec![],
    );
    let (seen, wrote) = withdraw(&mut bench, RemovalMode::Release).await;
    assert_eq!(wrote, Wrote::Abandoned);
    assert!(
        matches!(&seen[..], [Subject::Distributed(None, _, part)] if part.controller.is_none()),
        "it is reported as nobody's: {seen:?}"
    );
    let body = &bench.hub.all()[3].body;
    assert_eq!(precondition(body), ["copy", "10"]);
    assert_eq!(body["metadata"]["ownerReferences"], json!([]));
    assert_eq!(body["data"], json!({"k": "Y2FuYXJ5"}));
}

#[tokio::test]
async fn what_is_not_ours_is_not_released() {
    for (live, seen) in [
        (ok(theirs()), 0),
        (no_secret(), 0),
        (
            ok({
                let mut freed = copy("9");
                freed["metadata"]["ownerReferences"] = json!([]);
                freed
            }),
            1,
        ),
    ] {
        let mut bench = bench(vec![(READ, live)], vec![]);
        let (reported, wrote) = withdraw(&mut bench, RemovalMode::Release).await;
        assert_eq!(reported.len(), seen);
        assert!(!matches!(wrote, Wrote::Failed { .. }), "{wrote:?}");
        assert_eq!(bench.hub.lines(), [READ]);
    }
}

#[tokio::test]
async fn a_member_without_a_connection_fails_and_who_may_not_write_any_more_blames_nobody() {
    let mut bench = bench(vec![], vec![]);
    let mut order = order();
    order.place.cluster = Some("m1".into());
    let plan = Plan {
        changes: vec![Change::Distribute(Box::new(order))],
        ..Plan::default()
    };
    assert_eq!(bench.hands.carry_out(plan, None).await, Outcome::Done);
    match bench.inbox.try_recv() {
        Ok(Message::Seen(seen)) => match *seen {
            Observation::Distributed(_, _, wrote) => assert_eq!(failed(&wrote).0, Step::Get),
            other => panic!("{other:?}"),
        },
        _ => panic!("it is reported"),
    }
    let (leading, may_write) = tokio::sync::watch::channel(true);
    let (client, log) = crate::client::tests::client(|_| ok(distribution()));
    let options = crate::client::ApiOptions {
        is_reported: false,
        may_write: may_write.into(),
        ..crate::client::tests::options(Server::Hub)
    };
    bench.hands.hub = Api::new(client, options);
    bench.hands.sources = Sources::new(bench.hands.hub.clone());
    leading.send_replace(false);
    for change in [
        Change::Distribute(Box::new(self::order())),
        Change::Distribute(Box::new(standing(false))),
    ] {
        let (_, wrote) = reported(&mut bench, change).await;
        assert_eq!(wrote, Wrote::Abandoned);
    }
    assert_eq!(
        withdraw(&mut bench, RemovalMode::Delete).await.1,
        Wrote::Abandoned
    );
    assert!(log.lines().iter().all(|line| line == RD), "{:?}", log.lines());
}
