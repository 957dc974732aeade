//! From a bootstrap token to a user with a certificate: authentication, requests, approval and signing.

mod common;

use std::{net::Ipv4Addr, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use common::{ask, ask_as};
use entourage_apiserver::{
    Cluster, Options, User,
    listener::{self, Authority},
};
use rcgen::{CertificateParams, DnType, DnValue, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

const ADMIN: &str = "the-admin";
const JANE: &str = "jane-token";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// A cluster in which jane may do everything with CertificateSigningRequests, and these verbs with these signers.
async fn cluster(authority: &Authority, verbs: &[&str], signers: &[&str]) -> Cluster {
    let mut jane = User::new("jane", &["devs"]);
    jane.uid = "7".to_owned();
    jane.extra.insert("scope".to_owned(), vec!["all".to_owned()]);
    let cluster = Cluster::new(Options {
        admin_token: ADMIN.to_owned(),
        tokens: vec![(JANE.to_owned(), jane)],
        authority: Some(authority.clone()),
        ..Options::default()
    });
    let group = "certificates.k8s.io";
    let requests = [
        "certificatesigningrequests",
        "certificatesigningrequests/approval",
        "certificatesigningrequests/status",
    ];
    let mut rules = vec![json!({"apiGroups": [group], "resources": requests, "verbs": ["*"]})];
    if !verbs.is_empty() {
        rules.push(
            json!({"apiGroups": [group], "resources": ["signers"], "resourceNames": signers, "verbs": verbs}),
        );
    }
    grant(
        &cluster,
        "jane",
        &json!({"kind": "User", "name": "jane"}),
        &json!(rules),
    )
    .await;
    cluster
}

async fn grant(cluster: &Cluster, name: &str, subject: &Value, rules: &Value) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut subject = subject.clone();
    subject["apiGroup"] = "rbac.authorization.k8s.io".into();
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({"metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let (code, made) = ask(cluster, ADMIN, "POST", &format!("{rbac}/{plural}"), &object).await;
        assert_eq!(code, 201, "{made}");
    }
}

/// A key in PEM, and the request for a certificate of this user with it.
fn wanted(user: &str, group: impl Into<DnValue>) -> (String, String) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    let key = KeyPair::generate().expect("a key");
    let request = params.serialize_request(&key).expect("a request");
    (key.serialize_pem(), request.pem().expect("PEM"))
}

/// A CertificateSigningRequest.
fn signing_request(name: &str, pem: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"request": BASE64_STANDARD.encode(pem), "signerName": SIGNER,
        "usages": ["digital signature", "client auth"]}})
}

/// One that is stored.
async fn asked_for(cluster: &Cluster, name: &str) -> Value {
    let (_, pem) = wanted("agent", "agents");
    let (code, made) = ask(cluster, ADMIN, "POST", REQUESTS, &signing_request(name, &pem)).await;
    assert_eq!(code, 201, "{made}");
    made
}

/// The condition that `kubectl certificate approve` and `deny` add.
fn decided(request: &Value, kind: &str) -> Value {
    let mut request = request.clone();
    let condition = json!({"type": kind, "status": "True", "reason": "KubectlDecision", "message": "by hand",
        "lastUpdateTime": "2026-11-27T12:00:00Z"});
    match request["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => request["status"]["conditions"] = json!([condition]),
    }
    request
}

/// Sends a request to one of its subresources.
async fn put(cluster: &Cluster, token: &str, subresource: &str, request: &Value) -> (u16, Value) {
    let name = request["metadata"]["name"].as_str().unwrap_or_default();
    ask(
        cluster,
        token,
        "PUT",
        &format!("{REQUESTS}/{name}/{subresource}"),
        request,
    )
    .await
}

/// The request once this holds for its status.
async fn until(cluster: &Cluster, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let (_, request) = ask(cluster, ADMIN, "GET", &format!("{REQUESTS}/{name}"), &Value::Null).await;
        if holds(&request["status"]) {
            return request;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_has_a_bootstrap_token_becomes_a_user_by_a_certificate() {
    let authority = Authority::new().expect("an authority");
    let cluster = cluster(&authority, &[], &[]).await;
    let secret = json!({"type": "bootstrap.kubernetes.io/token", "metadata": {"name": "bootstrap-token-abcdef"},
        "stringData": {"token-id": "abcdef", "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:agents"}});
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    assert_eq!(ask(&cluster, ADMIN, "POST", secrets, &secret).await.0, 201);
    let subject = json!({"kind": "Group", "name": "system:bootstrappers:agents"});
    let rules = json!([{"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
        "verbs": ["create", "get"]}]);
    grant(&cluster, "bootstrappers", &subject, &rules).await;

    let token = "abcdef.0123456789abcdef";
    let (key, pem) = wanted("agent-1", "agents");
    let (code, made) = ask(
        &cluster,
        token,
        "POST",
        REQUESTS,
        &signing_request("agent-1", &pem),
    )
    .await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["spec"]["username"], "system:bootstrap:abcdef");
    let groups = json!([
        "system:bootstrappers",
        "system:bootstrappers:agents",
        "system:authenticated"
    ]);
    assert_eq!(made["spec"]["groups"], groups);
    assert_eq!(
        put(&cluster, ADMIN, "approval", &decided(&made, "Approved"))
            .await
            .0,
        200
    );
    let signed = until(&cluster, "agent-1", |status| status["certificate"].is_string()).await;
    let certificate = signed["status"]["certificate"].as_str().unwrap_or_default();
    let certificate = BASE64_STANDARD.decode(certificate).expect("base64");

    let stop = CancellationToken::new();
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let address = listener::listen(cluster.clone(), &authority, any, stop.clone()).await;
    let stream = TcpStream::connect(address.expect("a port"))
        .await
        .expect("connected");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.certificate.as_bytes()).expect("PEM");
    roots.add(root).expect("a certificate");
    let chain = vec![CertificateDer::from_pem_slice(&certificate).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .expect("a pair");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .expect("a handshake");
    let text = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\
        Content-Type: application/json\r\nConnection: close\r\n\r\n{}";
    stream.write_all(text.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    // A close without a TLS goodbye is a close, too.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    for part in [
        r#""username":"agent-1""#,
        r#""groups":["agents","system:authenticated"]"#,
    ] {
        assert!(answer.contains(part), "{answer}");
    }
    stop.cancel();
}

#[tokio::test]
async fn a_bootstrap_token_that_is_none_is_refused_and_never_shown() {
    let authority = Authority::new().expect("an authority");
    let cluster = cluster(&authority, &[], &[]).await;
    let data = json!({"token-id": "abcdef", "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true"});
    let secret = json!({"type": "bootstrap.kubernetes.io/token", "metadata": {"name": "bootstrap-token-abcdef"},
        "stringData": data});
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    assert_eq!(ask(&cluster, ADMIN, "POST", secrets, &secret).await.0, 201);
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = "/apis/authentication.k8s.io/v1/tokenreviews";
    for (token, is_good) in [
        ("abcdef.0123456789abcdef", true),
        ("abcdef.0123456789abcdeg", false),
        ("abcdeg.0123456789abcdef", false),
        ("abcdef.", false),
    ] {
        let (code, answer) = ask(&cluster, token, "POST", who, &json!({})).await;
        assert_eq!(code, if is_good { 201 } else { 401 }, "{token}");
        assert!(is_good || !answer.to_string().contains("0123"), "{answer}");
        let (_, answer) = ask(
            &cluster,
            ADMIN,
            "POST",
            review,
            &json!({"spec": {"token": token}}),
        )
        .await;
        assert_eq!(answer["status"]["authenticated"] == true, is_good, "{token}");
    }
    // It ends with its Secret, also by its time.
    let expired = json!({"stringData": {"expiration": "2020-01-01T00:00:00Z"}});
    let path = format!("{secrets}/bootstrap-token-abcdef");
    let merge = "application/merge-patch+json";
    assert_eq!(
        ask_as(&cluster, ADMIN, "PATCH", &path, merge, &expired).await.0,
        200
    );
    assert_eq!(
        ask(&cluster, "abcdef.0123456789abcdef", "POST", who, &json!({}))
            .await
            .0,
        401
    );
    while ask(&cluster, ADMIN, "GET", &path, &Value::Null).await.0 != 404 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_asked_is_written_down_whatever_the_request_says() {
    let authority = Authority::new().expect("an authority");
    let cluster = cluster(&authority, &[], &[]).await;
    let (_, pem) = wanted("agent", "agents");
    let mut request = signing_request("Any:name", &pem);
    for (field, value) in [
        ("username", json!("root")),
        ("uid", json!("0")),
        ("groups", json!(["system:masters"])),
        ("extra", json!({"scope": ["none"], "more": ["x"]})),
    ] {
        request["spec"][field] = value;
    }
    request["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
    let (code, made) = ask(&cluster, JANE, "POST", REQUESTS, &request).await;
    assert_eq!(code, 201, "{made}");
    let spec = &made["spec"];
    assert_eq!(spec["username"], "jane");
    assert_eq!(spec["uid"], "7");
    assert_eq!(spec["groups"], json!(["devs", "system:authenticated"]));
    assert_eq!(spec["extra"], json!({"scope": ["all"]}));
    assert_eq!(made["status"], json!({}));
    request["spec"]["username"] = "other".into();
    request["metadata"]["labels"] = json!({"a": "b"});
    let path = format!("{REQUESTS}/Any:name");
    let (code, changed) = ask(&cluster, JANE, "PUT", &path, &request).await;
    assert_eq!(code, 200, "{changed}");
    assert_eq!(changed["spec"], made["spec"], "a request never changes");
    assert_eq!(changed["metadata"]["labels"]["a"], "b");
    assert_eq!(changed["status"], json!({}));
}

#[tokio::test]
async fn a_decision_is_stored_with_its_times_and_stays() {
    let authority = Authority::new().expect("an authority");
    let cluster = cluster(&authority, &[], &[]).await;
    let made = asked_for(&cluster, "a").await;
    let (code, denied) = put(&cluster, ADMIN, "approval", &decided(&made, "Denied")).await;
    assert_eq!(code, 200, "{denied}");
    let condition = &denied["status"]["conditions"][0];
    assert_eq!(condition["type"], "Denied");
    assert_eq!(condition["lastUpdateTime"], "2026-11-27T12:00:00Z");
    assert!(condition["lastTransitionTime"].is_string());
    let (_, stored) = ask(&cluster, ADMIN, "GET", &format!("{REQUESTS}/a"), &Value::Null).await;
    assert_eq!(stored, denied);

    let mut undecided = denied.clone();
    undecided["status"] = json!({});
    let mut false_one = made.clone();
    false_one["status"] = json!({"conditions": [{"type": "Denied", "status": "False"}]});
    let add = r#"status.conditions: Forbidden: updates may not add a condition of type "Approved""#;
    let remove = r#"status.conditions: Forbidden: updates may not remove a condition of type "Denied""#;
    let both = "Approved and Denied conditions are mutually exclusive";
    let twice = r#"status.conditions[1].type: Duplicate value: "Denied""#;
    let not_true = r#"status.conditions[0].status: Unsupported value: "False": supported values: "True""#;
    let mut certified = denied.clone();
    certified["status"]["certificate"] = BASE64_STANDARD.encode("nonsense").into();
    let no_pem = "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block";
    for (subresource, request, why) in [
        ("approval", &decided(&denied, "Approved"), both),
        ("approval", &decided(&denied, "Denied"), twice),
        ("approval", &undecided, remove),
        ("approval", &false_one, not_true),
        ("status", &decided(&denied, "Approved"), add),
        ("status", &undecided, remove),
        ("status", &certified, no_pem),
    ] {
        let mut request = request.clone();
        if let Some(metadata) = request["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let (code, answer) = put(&cluster, ADMIN, subresource, &request).await;
        assert_eq!(code, 422, "{why}: {answer}");
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{message}");
    }

    // By a patch as well.
    asked_for(&cluster, "b").await;
    let patch = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]}});
    let path = format!("{REQUESTS}/b/approval");
    let merge = "application/merge-patch+json";
    let (code, approved) = ask_as(&cluster, ADMIN, "PATCH", &path, merge, &patch).await;
    assert_eq!(code, 200, "{approved}");
    assert!(approved["status"]["conditions"][0]["lastUpdateTime"].is_string());
    until(&cluster, "b", |status| status["certificate"].is_string()).await;
}

#[tokio::test]
async fn who_approves_or_signs_needs_the_verb_for_the_signer() {
    let authority = Authority::new().expect("an authority");
    let root = BASE64_STANDARD.encode(&authority.certificate);
    for (verbs, signers, may_approve, may_sign) in [
        (&[][..], &[][..], false, false),
        (&["approve"], &[SIGNER], true, false),
        (&["approve", "sign"], &["kubernetes.io/*"], true, true),
        (&["sign"], &[SIGNER], false, true),
        (&["approve", "sign"], &["example.com/*"], false, false),
    ] {
        let cluster = cluster(&authority, verbs, signers).await;
        let made = asked_for(&cluster, "a").await;
        let mut signed = made.clone();
        signed["status"]["certificate"] = root.clone().into();
        let mut failed = made.clone();
        failed["status"]["conditions"] = json!([{"type": "Failed", "status": "True"}]);
        for (verb, subresource, request, may) in [
            ("approve", "approval", decided(&made, "Denied"), may_approve),
            ("sign", "status", signed, may_sign),
            ("sign", "status", failed, may_sign),
        ] {
            let path = format!("{REQUESTS}/a/{subresource}?dryRun=All");
            let (code, answer) = ask(&cluster, JANE, "PUT", &path, &request).await;
            assert_eq!(
                code,
                if may { 200 } else { 403 },
                "{verb} {verbs:?} {signers:?}: {answer}"
            );
            let why = format!(
                "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to {verb} requests with signerName \"{SIGNER}\""
            );
            assert!(may || answer["message"] == why, "{answer}");
        }
        let (code, answer) = put(&cluster, JANE, "status", &made).await;
        assert_eq!(code, 200, "what decides nothing needs no verb: {answer}");
    }
}

#[tokio::test]
async fn a_request_is_checked_before_it_is_stored() {
    let authority = Authority::new().expect("an authority");
    let cluster = cluster(&authority, &[], &[]).await;
    let (_, pem) = wanted("root", "system:masters");
    let (code, answer) = ask(&cluster, ADMIN, "POST", REQUESTS, &signing_request("a", &pem)).await;
    assert_eq!(code, 403, "{answer}");
    let why = format!(
        "certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: use of {SIGNER} signer with system:masters group is not allowed"
    );
    assert_eq!(answer["message"], why);
    let mut other = signing_request("b", &pem);
    other["spec"]["signerName"] = "example.com/signer".into();
    assert_eq!(ask(&cluster, ADMIN, "POST", REQUESTS, &other).await.0, 201);

    let (_, pem) = wanted("agent", "agents");
    let good = signing_request("c", &pem);
    for (field, value, why) in [
        (
            "request",
            json!(BASE64_STANDARD.encode("nonsense")),
            "spec.request: Invalid value: \"bm9uc2Vuc2U=\": PEM block type must be CERTIFICATE REQUEST",
        ),
        ("usages", json!([]), "spec.usages: Required value"),
        (
            "usages",
            json!(["client auth", "client auth"]),
            "spec.usages[1]: Duplicate value: \"client auth\"",
        ),
        (
            "usages",
            json!(["to fly"]),
            "spec.usages[0]: Unsupported value: \"to fly\": supported values: \"any\", ",
        ),
        (
            "signerName",
            json!("kubernetes.io/legacy-unknown"),
            "the legacy signerName is not allowed via this API version",
        ),
    ] {
        let mut request = good.clone();
        request["spec"][field] = value;
        let (code, answer) = ask(&cluster, ADMIN, "POST", REQUESTS, &request).await;
        assert_eq!(code, 422, "{answer}");
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn only_the_requests_of_clients_are_signed_and_others_fail_or_wait() {
    let authority = Authority::new().expect("an authority");
    let cluster = cluster(&authority, &[], &[]).await;
    let (_, pem) = wanted("agent", "agents");
    for (name, signer, usage) in [
        ("server", SIGNER, "server auth"),
        ("nothing", SIGNER, "digital signature"),
        ("other", "example.com/signer", "client auth"),
        ("good", SIGNER, "client auth"),
    ] {
        let mut request = signing_request(name, &pem);
        request["spec"]["signerName"] = signer.into();
        request["spec"]["usages"] = json!([usage]);
        request["spec"]["expirationSeconds"] = 3600.into();
        let (code, made) = ask(&cluster, ADMIN, "POST", REQUESTS, &request).await;
        assert_eq!(code, 201, "{made}");
        let (code, answer) = put(&cluster, ADMIN, "approval", &decided(&made, "Approved")).await;
        assert_eq!(code, 200, "{answer}");
    }
    for (name, why) in [
        ("server", "invalid usage for client certificate: server auth"),
        (
            "nothing",
            "missing required usage for client certificate: client auth",
        ),
    ] {
        let failed = until(&cluster, name, |status| status["conditions"][1].is_object()).await;
        let condition = &failed["status"]["conditions"][1];
        assert_eq!(condition["type"], "Failed");
        assert_eq!(condition["reason"], "SignerValidationFailure");
        assert_eq!(condition["message"], why);
        assert!(failed["status"]["certificate"].is_null());
    }
    let signed = until(&cluster, "good", |status| status["certificate"].is_string()).await;
    // A certificate stays.
    let mut changed = signed.clone();
    changed["status"]["certificate"] = BASE64_STANDARD.encode(&authority.certificate).into();
    let (code, answer) = put(&cluster, ADMIN, "status", &changed).await;
    assert_eq!(code, 422, "{answer}");
    let (_, other) = ask(&cluster, ADMIN, "GET", &format!("{REQUESTS}/other"), &Value::Null).await;
    assert!(other["status"]["certificate"].is_null());
    assert_eq!(other["status"]["conditions"].as_array().map(Vec::len), Some(1));
}
