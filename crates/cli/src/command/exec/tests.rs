//! The container, input and output of a command.

use clap::Parser as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    command::{Cli, Command},
    mock::scripted,
};

#[tokio::test]
async fn output_that_has_arrived_is_written_though_its_end_never_comes() {
    let (reader, mut writer) = tokio::io::simplex(64);
    writer.write_all(b"half a line").await.unwrap();
    let mut written = Vec::new();
    rest(&mut Some(reader), &mut [0; 4], &mut written).unwrap();
    assert_eq!(written, b"half a line");
    rest::<tokio::io::Empty>(&mut None, &mut [0; 4], &mut written).unwrap();
    assert_eq!(written, b"half a line");
}

#[tokio::test]
async fn input_is_sent_in_order_and_its_end_is_told() {
    let (sender, receiver) = mpsc::channel(4);
    let (mut reader, writer) = tokio::io::simplex(4);
    let sending = tokio::spawn(send(receiver, writer));
    for piece in ["one ", "two ", "three"] {
        sender.send(piece.as_bytes().to_vec()).await.unwrap();
    }
    drop(sender);
    let mut read = String::new();
    reader.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "one two three");
    sending.await.unwrap();
}

fn pod(name: &str, containers: &[&str], default: Option<&str>) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
    let annotations = default.map(|name| json!({"kubectl.kubernetes.io/default-container": name}));
    json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"containers": containers}})
}

/// A member m1 with three pods.
fn hub() -> Client {
    scripted(|asked| {
        let pods = "GET /apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy/api/v1/namespaces/shop/pods/";
        match asked.strip_prefix(pods) {
            Some("one") => (200, pod("one", &["app"], None).to_string()),
            Some("two") => (200, pod("two", &["app", "proxy"], None).to_string()),
            Some("named") => (200, pod("named", &["app", "proxy"], Some("proxy")).to_string()),
            other => {
                let message = format!("pods \"{}\" not found", other.unwrap_or(asked));
                (404, json!({"kind": "Status", "code": 404, "message": message}).to_string())
            }
        }
    })
}

async fn target_of(line: &str) -> Result<Target> {
    let line = format!("entourage exec {line} -C m1 -- env");
    match Cli::try_parse_from(line.split(' ')).unwrap().command {
        Command::Exec(args) => target(&args, &hub(), "shop").await,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_command_runs_in_the_default_container_or_the_first() {
    for (line, container, note) in [
        ("one", "app", None),
        ("pod/one", "app", None),
        (
            "two",
            "app",
            Some("pod two: container app of app, proxy; -c names another one"),
        ),
        ("two -c proxy", "proxy", None),
        ("named", "proxy", None),
        // The pod is not read.
        ("gone -c app", "app", None),
    ] {
        let target = target_of(line).await.unwrap();
        assert_eq!(target.container.as_deref(), Some(container), "{line}");
        assert_eq!(target.note.as_deref(), note, "{line}");
    }
    let error = target_of("gone").await.err().unwrap().to_string();
    assert_eq!(error, "pod gone not found in namespace shop on m1");
}

#[test]
fn a_pod_that_is_ready_is_taken_and_none_that_is_ending() {
    let pod = |name: &str, phase: &str, ready: &str, deleted: Option<&str>| -> Pod {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        serde_json::from_value(json!({
            "metadata": {"name": name, "deletionTimestamp": deleted},
            "status": {"phase": phase, "conditions": conditions},
        }))
        .unwrap()
    };
    let all = [
        pod("ending", "Running", "True", Some("2026-01-01T00:00:00Z")),
        pod("pending", "Pending", "False", None),
        pod("starting", "Running", "False", None),
        pod("ready", "Running", "True", None),
        pod("other", "Running", "True", None),
    ];
    let name = |pods| best(pods).and_then(|pod| pod.metadata.name.as_deref());
    assert_eq!(name(&all), Some("ready"));
    assert_eq!(name(&all[..3]), Some("starting"));
    assert_eq!(name(&all[..2]), None);
}
