//! The container, input and output of a command.

use clap::Parser as _;
use futures::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::{WebSocketStream, tungstenite::protocol::Role};

use super::*;
use crate::{
    command::{Cli, Command},
    mock::scripted,
};

/// An output that was closed.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn exited(code: &str) -> Box<Status> {
    let status = json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code}]}});
    serde_json::from_value(status).unwrap()
}

#[test]
fn the_exit_code_counts_also_if_nobody_reads_the_output() {
    for (ended, wanted) in [
        (Ended::Report(exited("0")), ExitCode::SUCCESS),
        (Ended::Report(exited("3")), ExitCode::from(3)),
        (Ended::Report(exited("256")), ExitCode::FAILURE),
        (Ended::OutputClosed, ExitCode::FAILURE),
    ] {
        let what = format!("{ended:?}");
        assert_eq!(code(ended, false, &mut Closed).unwrap(), wanted, "{what}");
    }
    let error = code(Ended::Lost(None), true, &mut Closed).unwrap_err();
    assert!(error.to_string().contains("v4.channel.k8s.io"), "{error}");
}

/// A command that writes to both outputs and ends with code 3.
async fn running() -> Channels {
    let (client, server) = tokio::io::duplex(4096);
    let client = WebSocketStream::from_raw_socket(client, Role::Client, None).await;
    let mut server = WebSocketStream::from_raw_socket(server, Role::Server, None).await;
    let status = serde_json::to_vec(&exited("3")).unwrap();
    for message in [
        b"\x01out".to_vec(),
        b"\x02err".to_vec(),
        [&[3][..], &status].concat(),
    ] {
        server.send(message.into()).await.unwrap();
    }
    let inputs = Inputs {
        stdin: None,
        sizes: None,
    };
    Channels::open(client, true, inputs, None)
}

#[tokio::test]
async fn outputs_are_passed_on_until_the_command_ends_or_one_is_closed() {
    let signals = || Signals::new(false).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = attach(running().await, signals(), (&mut out, &mut err)).await;
    assert_eq!(ended.unwrap(), Ended::Report(exited("3")));
    assert_eq!((&*out, &*err), (&b"out"[..], &b"err"[..]));

    let ended = attach(running().await, signals(), (&mut Vec::new(), &mut Closed)).await;
    assert_eq!(ended.unwrap(), Ended::OutputClosed);
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
                (
                    404,
                    json!({"kind": "Status", "code": 404, "message": message}).to_string(),
                )
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
