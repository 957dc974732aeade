//! Parsing of arguments, and conflicts with other writers.

use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser as _;
use serde_json::{Value, json};

use super::{
    change::{Change, Effect, word},
    *,
};
use crate::{
    command::{Cli, Command},
    mock::Server,
};

const NOW: Time = Time(1_767_229_200_000);

fn path(name: &str) -> String {
    format!("/apis/cluster.karmada.io/v1alpha1/clusters/{name}")
}

fn cluster(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version}, "spec": {}})
}

async fn tainted(line: &str, hub: &Server) -> (Result<()>, String) {
    let line = format!("entourage taint {line}");
    let Command::Taint(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
        unreachable!()
    };
    let mut out = Vec::new();
    let done = taint(&args, hub.client(), NOW, &mut out).await;
    (done, String::from_utf8(out).unwrap())
}

#[test]
fn what_is_about_a_taint_is_distinguished_from_names_as_kubectl_does() {
    let set = |key: &str, value: &str, effect| {
        let (key, value) = (key.to_owned(), value.to_owned());
        Word::Change(Change::Set { key, value, effect })
    };
    let remove = |key: &str, effect| {
        let key = key.to_owned();
        Word::Change(Change::Remove { key, effect })
    };
    for (text, meant) in [
        ("m1", Word::Cluster("m1".to_owned())),
        ("a:NoSchedule", set("a", "", Effect::NoSchedule)),
        ("a=:NoExecute", set("a", "", Effect::NoExecute)),
        (
            "example.com/a.b_C=d-E:PreferNoSchedule",
            set("example.com/a.b_C", "d-E", Effect::PreferNoSchedule),
        ),
        ("a-", remove("a", None)),
        ("a:NoExecute-", remove("a", Some(Effect::NoExecute))),
        ("a=b:NoSchedule-", remove("a", Some(Effect::NoSchedule))),
    ] {
        assert_eq!(word(text), Ok(meant), "{text}");
    }
}

#[test]
fn what_a_server_would_not_store_is_refused_before_anything_is_sent() {
    for (text, why) in [
        ("M1", "a cluster's name has lower-case letters"),
        ("a=b", "it has no effect; write a=b:NoSchedule or another effect"),
        (
            "a:Evict",
            r#""Evict" is not an effect; the effects are NoSchedule, PreferNoSchedule, NoExecute"#,
        ),
        ("a:noexecute", r#""noexecute" is not an effect"#),
        ("a:", r#""" is not an effect"#),
        (
            "a:NoSchedule:NoExecute",
            r#""NoSchedule:NoExecute" is not an effect"#,
        ),
        ("a:Evict-", r#""Evict" is not an effect"#),
        ("=b:NoSchedule", r#""" is not a label key"#),
        (":NoSchedule", r#""" is not a label key"#),
        ("-", r#""" is not a label key"#),
        ("a--", r#""a-" is not a label key"#),
        ("a b:NoSchedule", r#""a b" is not a label key"#),
        ("Up/a:NoSchedule", "the part before / must be a DNS name"),
        ("a/b/c-", r#""a/b/c" is not a label key"#),
        ("a=b=c:NoSchedule", r#""b=c" is not a label value"#),
        ("a=-b:NoSchedule", r#""-b" is not a label value"#),
    ] {
        let error = word(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
    let long = |count| format!("{}=v:NoSchedule", "x".repeat(count));
    assert!(word(&long(63)).is_ok() && word(&long(64)).is_err());
}

#[tokio::test]
async fn what_somebody_else_writes_meanwhile_is_kept() {
    // The other writer changes m2 after the command has read both and written m1.
    let hub = Server::new("hub-id").reacting(|method, written, objects| {
        if method == "PATCH" && written == path("m1") {
            let mut theirs = cluster("m2", "7");
            theirs["spec"]["taints"] = json!([{"key": "theirs", "effect": "NoSchedule"}]);
            objects.insert(path("m2"), theirs);
        }
    });
    hub.put(&path("m1"), cluster("m1", "1"));
    hub.put(&path("m2"), cluster("m2", "1"));
    let (done, out) = tainted("m1 m2 ours:NoSchedule", &hub).await;
    done.unwrap();
    assert_eq!(out, "cluster/m1 tainted\ncluster/m2 tainted\n");
    assert_eq!(
        hub.object(&path("m2")).unwrap()["spec"]["taints"],
        json!([{"key": "theirs", "effect": "NoSchedule"}, {"key": "ours", "effect": "NoSchedule"}])
    );
}

#[tokio::test]
async fn what_somebody_else_did_meanwhile_is_not_done_again() {
    let hub = Server::new("hub-id").reacting(|method, written, objects| {
        if method == "PATCH" && written == path("m1") {
            let mut theirs = cluster("m2", "7");
            theirs["spec"]["taints"] = json!([{"key": "ours", "effect": "NoSchedule", "value": "else"}]);
            objects.insert(path("m2"), theirs);
        }
    });
    hub.put(&path("m1"), cluster("m1", "1"));
    hub.put(&path("m2"), cluster("m2", "1"));
    let (done, out) = tainted("m1 m2 ours:NoSchedule", &hub).await;
    let error = done.unwrap_err().to_string();
    assert!(
        error.contains("\"m2\" already has the taint ours:NoSchedule"),
        "{error}"
    );
    assert_eq!(out, "cluster/m1 tainted\n");
}

#[tokio::test]
async fn a_cluster_that_never_stops_changing_is_an_error_after_some_attempts() {
    // The other writer changes it after each read.
    let versions = AtomicUsize::new(2);
    let hub = Server::new("hub-id").reacting(move |method, _, objects| {
        let version = versions.fetch_add(1, Ordering::Relaxed).to_string();
        if method == "GET" {
            objects.insert(path("m1"), cluster("m1", &version));
        }
    });
    hub.put(&path("m1"), cluster("m1", "1"));
    let (done, out) = tainted("m1 ours:NoSchedule", &hub).await;
    let error = done.unwrap_err().to_string();
    assert!(
        error.contains("cluster m1: another client changed it 5 times") && error.contains("run this again"),
        "{error}"
    );
    assert_eq!((hub.take_writes().len(), out.as_str()), (5, ""));
}

#[tokio::test]
async fn a_hub_without_the_kind_is_distinguished_from_a_hub_without_the_cluster() {
    let hub = Server::new("hub-id").without("/apis/cluster.karmada.io");
    let (done, _) = tainted("m1 a:NoSchedule", &hub).await;
    let error = done.unwrap_err().to_string();
    assert!(error.contains("does not serve the kind Cluster"), "{error}");
}
