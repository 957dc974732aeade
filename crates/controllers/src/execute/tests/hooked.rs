//! Deliveries of kinds with hooks: each is called once for a copy, and nothing is written without its response.

use super::*;
use crate::hooks::client::HookClient;

const BOTH: [&str; 2] = ["ReviseReplica", "Retain"];

/// A bench with a hook, and the order for three replicas.
async fn hooked(operations: &[&str], member: Vec<(&'static str, Reply)>) -> (Bench, HookClient) {
    let hook_client = HookClient::open("ConfigMap", operations).await;
    let mut bench = bench(vec![(SOURCE, ok(template()))], member);
    bench.hands.interpreters = hook_client.interpreters.clone();
    (bench, hook_client)
}

async fn deliver(bench: &mut Bench, hook_client: &HookClient, live: Option<Preconditions>) -> Delivered {
    let gvk = Gvk::new("v1", "ConfigMap");
    let change = Change::Deliver {
        id: id("ConfigMap"),
        cluster: "m1".into(),
        render_spec: RenderSpec {
            interpretation: hook_client.of(&gvk),
            replicas: Some(3),
            ..render_spec()
        },
        read_first: live.is_some(),
        live,
    };
    let (outcome, mut observed) = bench.carry_out(change).await;
    assert_eq!(outcome, Outcome::Done, "the core decides when to try again");
    match observed.pop() {
        Some(Observation::Delivered(_, _, delivered)) => delivered,
        other => panic!("{other:?}"),
    }
}

/// The copy with a field that only the member sets.
fn with_till(version: &str) -> Value {
    let mut copy = live(version, "old");
    copy["data"]["till"] = json!("7");
    copy
}

#[tokio::test]
async fn a_copy_that_is_made_takes_its_replicas_from_the_hook_which_is_asked_once() {
    let (mut bench, hook_client) = hooked(&BOTH, vec![(POST, Reply::Json(201, live("1", "v")))]).await;
    let delivered = deliver(&mut bench, &hook_client, None).await;
    assert!(is_applied(&delivered, "1"), "{delivered:?}");
    assert_eq!(hook_client.asked(), ["revise ConfigMap a"]);
    let body = &bench.on_member.all()[0].body;
    assert_eq!(body["data"], json!({"k": "v", "size": "3"}));
}

#[tokio::test]
async fn a_copy_that_is_changed_keeps_what_the_hook_retains_and_each_question_is_asked_once() {
    let member = vec![(LIVE, ok(with_till("7"))), (PUT, ok(live("8", "v")))];
    let (mut bench, hook_client) = hooked(&BOTH, member).await;
    let delivered = deliver(&mut bench, &hook_client, Some(preconditions("7"))).await;
    assert!(is_applied(&delivered, "8"), "{delivered:?}");
    assert_eq!(hook_client.asked(), ["revise ConfigMap a", "retain ConfigMap a"]);
    let body = &bench.on_member.all()[1].body;
    assert_eq!(body["data"], json!({"k": "v", "size": "3", "till": "7"}));
    assert_eq!(hook_client.counted("answered"), 2);
}

#[tokio::test]
async fn a_copy_that_changed_meanwhile_is_asked_about_anew_once() {
    let mut later = with_till("9");
    later["data"]["till"] = json!("8");
    let member = vec![
        (LIVE, ok(with_till("7"))),
        (PUT, status(409, "Conflict")),
        (LIVE, ok(later)),
        (PUT, ok(live("10", "v"))),
    ];
    let (mut bench, hook_client) = hooked(&BOTH, member).await;
    let delivered = deliver(&mut bench, &hook_client, Some(preconditions("7"))).await;
    assert!(is_applied(&delivered, "10"), "{delivered:?}");
    let once = ["revise ConfigMap a", "retain ConfigMap a"];
    assert_eq!(hook_client.asked(), [once, once].concat());
    assert_eq!(bench.on_member.all()[3].body["data"]["till"], "8");
}

#[tokio::test]
async fn nothing_is_written_without_the_hooks_answer_and_the_one_without_an_answer_is_reported() {
    for (operation, live) in [("ReviseReplica", None), ("Retain", Some(preconditions("7")))] {
        let member = match live {
            Some(_) => vec![(LIVE, ok(with_till("7")))],
            None => vec![],
        };
        let (mut bench, hook_client) = hooked(&[operation], member).await;
        hook_client.shut(true);
        let Delivered::Uninterpreted(why) = deliver(&mut bench, &hook_client, live).await else {
            panic!("{operation}: it was delivered")
        };
        assert_eq!(
            why.layer,
            "ResourceInterpreterWebhookConfiguration \"desk/one.example.com\""
        );
        let lines = bench.on_member.lines();
        assert!(lines.iter().all(|line| line.starts_with("GET ")), "{lines:?}");
        assert_eq!(
            (hook_client.asked().len(), hook_client.counted("wrong")),
            (1, 1),
            "{operation}"
        );
    }
}
