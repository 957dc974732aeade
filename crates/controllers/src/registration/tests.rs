//! The approver against a scripted hub.

use entourage_core::server::Server;
use k8s_openapi::ByteString;
use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;
use crate::client::tests::{Log, Reply, api, status};

/// A PKCS#10 request for these names, as PEM in base64.
fn pkcs10(common_name: &str, organizations: &[&str], alternative: &[&str]) -> Value {
    let alternative: Vec<String> = alternative.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(alternative).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    for organization in organizations {
        params
            .distinguished_name
            .push(DnType::OrganizationName, *organization);
    }
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    serde_json::to_value(ByteString(pem.into_bytes())).unwrap()
}

fn object(sender: &str, request: &Value) -> Value {
    json!({
        "metadata": {"name": "edge1-x", "uid": "u1", "resourceVersion": "5"},
        "spec": {
            "signerName": SIGNER, "usages": ["digital signature", "client auth"], "username": sender,
            "groups": ["system:bootstrappers"], "uid": "u7", "extra": {"from": ["there"]}, "request": request,
        },
    })
}

fn of_agent(sender: &str) -> Value {
    object(
        sender,
        &pkcs10("system:karmada:agent:edge1", &["system:karmada:agents"], &[]),
    )
}

const LIST: &str = "GET /apis/certificates.k8s.io/v1/certificatesigningrequests?";
const APPROVAL: &str = "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/edge1-x/approval";
const REVIEW: &str = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";

/// A hub with these requests in its list, or if `watched` in its watch, where the sender has the right with this subresource.
fn hub(requests: Vec<Value>, watched: bool, granted: &'static str) -> (Approver, Log) {
    let (hub, log) = api(Server::Hub, move |asked| {
        let line = asked.line.as_str();
        if line.starts_with(LIST) && line.contains("watch=true") {
            let events = requests.iter().filter(|_| watched);
            let events = events.map(|object| json!({"type": "ADDED", "object": object}));
            return Reply::Lines(events.collect(), false);
        }
        if line.starts_with(LIST) {
            let items: Vec<&Value> = requests.iter().filter(|_| !watched).collect();
            return Reply::Json(
                200,
                json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}),
            );
        }
        if line.starts_with(REVIEW) {
            let spec = &asked.body["spec"];
            // The sender is who the server says, with all that authorization may depend on.
            let sender = &requests[0]["spec"];
            for field in ["groups", "uid", "extra"] {
                assert_eq!(spec[field], sender[field], "{field}");
            }
            assert_eq!(spec["user"], sender["username"]);
            let asked = &spec["resourceAttributes"];
            assert_eq!(asked["name"], "edge1");
            let allowed = asked["subresource"] == granted;
            return Reply::Json(201, json!({"status": {"allowed": allowed}}));
        }
        if line.starts_with(APPROVAL) {
            return Reply::Json(200, json!({"metadata": {"name": "edge1-x"}}));
        }
        status(404, "NotFound")
    });
    let (_, leading) = cell::channel(true);
    (Approver::new(hub, leading), log)
}

/// The writes of one round.
async fn writes(mut approver: Approver, log: &Log) -> Vec<String> {
    approver.round(PAUSE).await.unwrap();
    let lines = log.lines();
    lines.into_iter().filter(|line| line.starts_with("PUT")).collect()
}

#[tokio::test]
async fn a_request_of_one_who_may_register_the_cluster_is_approved() {
    for watched in [false, true] {
        let (approver, log) = hub(vec![of_agent("system:bootstrap:abcdef")], watched, "clusteragent");
        let put = writes(approver, &log).await;
        assert_eq!(put, [APPROVAL], "{watched}");
    }
}

#[tokio::test]
async fn an_agent_renews_its_own_certificate_and_no_other() {
    let own = of_agent("system:karmada:agent:edge1");
    let (approver, log) = hub(vec![own], false, "selfclusteragent");
    assert_eq!(writes(approver, &log).await, [APPROVAL]);
    let other = of_agent("system:karmada:agent:edge2");
    let (approver, log) = hub(vec![other], false, "selfclusteragent");
    assert!(writes(approver, &log).await.is_empty(), "{:?}", log.lines());
}

#[tokio::test]
async fn a_request_whose_sender_lacks_the_right_is_left_to_an_administrator() {
    let (approver, log) = hub(vec![of_agent("jane")], false, "");
    assert!(writes(approver, &log).await.is_empty());
    assert_eq!(
        log.lines().iter().filter(|line| line.starts_with(REVIEW)).count(),
        1
    );
}

#[tokio::test]
async fn nobody_is_asked_about_a_request_that_is_not_an_agents() {
    let agents: &[&str] = &["system:karmada:agents"];
    let user = "system:karmada:agent:edge1";
    let mut settled = of_agent("jane");
    settled["status"] = json!({"conditions": [{"type": "Denied", "status": "True"}]});
    let mut garbage = of_agent("jane");
    garbage["spec"]["request"] = json!("aGVsbG8=");
    for (what, object) in [
        ("settled", settled),
        ("not PKCS#10", garbage),
        ("another path", {
            let mut named = of_agent("jane");
            named["metadata"]["name"] = json!("edge1?x");
            named
        }),
        ("no object", json!({"metadata": {"name": "x"}})),
        (
            "another user",
            object("jane", &pkcs10("system:admin", agents, &[])),
        ),
        ("masters", object("jane", &pkcs10(user, &["system:masters"], &[]))),
        (
            "alternative names",
            object("jane", &pkcs10(user, agents, &["hub.example.com"])),
        ),
    ] {
        let (mut approver, log) = hub(vec![object], false, "clusteragent");
        approver.round(PAUSE).await.unwrap();
        assert!(
            !log.lines().iter().any(|line| line.starts_with("POST")),
            "{what}: {:?}",
            log.lines()
        );
    }
}

#[tokio::test]
async fn the_condition_says_who_approved_and_keeps_the_revision() {
    let (hub, log) = api(Server::Hub, |asked| {
        let object = &asked.body;
        assert_eq!(object["metadata"]["resourceVersion"], "5");
        assert_eq!(object["kind"], "CertificateSigningRequest");
        let conditions = &object["status"]["conditions"];
        assert_eq!(conditions[0]["type"], "Approved");
        assert_eq!(conditions[0]["reason"], "AutoApproved");
        Reply::Json(200, json!({"metadata": {"name": "edge1-x"}}))
    });
    let (_, leading) = cell::channel(true);
    let approver = Approver::new(hub, leading);
    approver
        .approve("edge1-x", of_agent("jane"), Right::Registration)
        .await
        .unwrap();
    assert_eq!(log.lines(), [APPROVAL]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_holds_up_no_other_and_is_reviewed_again() {
    let failed = std::sync::atomic::AtomicBool::new(false);
    let (hub, log) = api(Server::Hub, move |asked| {
        let line = asked.line.as_str();
        if line.starts_with(LIST) && line.contains("watch=true") {
            return Reply::Lines(Vec::new(), true);
        }
        if line.starts_with(LIST) {
            let mut second = of_agent("system:bootstrap:abcdef");
            second["metadata"]["name"] = json!("edge1-y");
            let items = [of_agent("system:bootstrap:abcdef"), second];
            return Reply::Json(
                200,
                json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}),
            );
        }
        if line.starts_with(REVIEW) {
            return match failed.swap(true, std::sync::atomic::Ordering::Relaxed) {
                false => status(500, "InternalError"),
                true => Reply::Json(201, json!({"status": {"allowed": true}})),
            };
        }
        Reply::Json(200, json!({"metadata": {"name": "edge1-x"}}))
    });
    let (_leads, leading) = cell::channel(true);
    let mut approver = Approver::new(hub, leading);
    assert_eq!(approver.round(PAUSE).await.unwrap(), Reviewed::Again);
    let puts = |log: &Log| log.lines().iter().filter(|line| line.starts_with("PUT")).count();
    assert_eq!(puts(&log), 1, "{:?}", log.lines());
}

#[tokio::test]
async fn a_list_is_read_in_pages() {
    let (hub, log) = api(Server::Hub, |asked| {
        let line = asked.line.as_str();
        if line.contains("watch=true") {
            return Reply::Lines(Vec::new(), false);
        }
        let rest = if line.contains("continue=") { "" } else { "more" };
        Reply::Json(
            200,
            json!({"kind": "List", "metadata": {"resourceVersion": "7", "continue": rest}, "items": []}),
        )
    });
    let (_leads, leading) = cell::channel(true);
    let mut approver = Approver::new(hub, leading);
    assert_eq!(approver.round(PAUSE).await.unwrap(), Reviewed::Done);
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines[1].contains("limit=100") && lines[1].contains("continue=more"),
        "{lines:?}"
    );
}
