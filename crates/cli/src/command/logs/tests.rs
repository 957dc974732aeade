//! Logs of a workload on members of which one is down.

use bytes::Bytes;
use clap::Parser as _;
use futures::TryStreamExt as _;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use super::*;
use crate::{
    command::{Cli, Command},
    mock::scripted,
};

const PROXY: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/";

fn args(line: &str) -> LogsArgs {
    let line = format!("entourage logs {line}");
    match Cli::try_parse_from(line.split(' ')).unwrap().command {
        Command::Logs(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn list(kind: &str, items: &[Value]) -> (u16, String) {
    (
        200,
        json!({"kind": kind, "metadata": {}, "items": items}).to_string(),
    )
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "app"}]}})
}

/// A hub with the Deployment web on m1 and m2, of which m2 is down; m3 has nothing.
fn hub() -> Client {
    scripted(|asked| {
        let resources = |group: &str, name: &str, kind: &str, namespaced: bool| {
            let resource = json!({"name": name, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": ["get", "list"]});
            (
                200,
                json!({"kind": "APIResourceList", "groupVersion": group, "resources": [resource]})
                    .to_string(),
            )
        };
        let apps = json!({"groupVersion": "apps/v1", "version": "v1"});
        let path = asked.strip_prefix("GET ").unwrap_or_default();
        if let Some(rest) = path.strip_prefix(PROXY) {
            let Some(rest) = rest.strip_prefix("m1/proxy/") else {
                let message = "cluster m2 did not respond";
                return (503, json!({"kind": "Status", "code": 503, "reason": "ServiceUnavailable", "message": message}).to_string());
            };
            return match rest {
                "apis/apps/v1/namespaces/shop/deployments/web" => {
                    let selector = json!({"matchLabels": {"app": "web"}});
                    (200, json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"selector": selector}}).to_string())
                }
                pods if pods.starts_with("api/v1/namespaces/shop/pods?") && pods.contains("labelSelector=app%3Dweb") => {
                    list("PodList", &[pod("web-2"), pod("web-1")])
                }
                "api/v1/namespaces/shop/pods/web-1" => (200, pod("web-1").to_string()),
                log if log.starts_with("api/v1/namespaces/shop/pods/web-1/log?") => (200, format!("{log}\nlast")),
                log if log.starts_with("api/v1/namespaces/shop/pods/web-2/log?") => (400, json!({"kind": "Status", "code": 400, "message": "container is waiting"}).to_string()),
                _ => (404, json!({"kind": "Status", "code": 404, "message": format!("pods \"x\" not found: {rest}")}).to_string()),
            };
        }
        match path.split('?').next().unwrap_or_default() {
            "/api/v1" => resources("v1", "configmaps", "ConfigMap", true),
            "/apis" => (200, json!({"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [apps], "preferredVersion": apps}]}).to_string()),
            "/apis/apps/v1" => resources("apps/v1", "deployments", "Deployment", true),
            "/apis/work.karmada.io/v1alpha2" => resources("work.karmada.io/v1alpha2", "resourcebindings", "ResourceBinding", true),
            "/apis/cluster.karmada.io/v1alpha1" => resources("cluster.karmada.io/v1alpha1", "clusters", "Cluster", false),
            "/apis/cluster.karmada.io/v1alpha1/clusters" => {
                let all = ["m1", "m2"].map(|name| json!({"metadata": {"name": name}, "spec": {"syncMode": "Push"}}));
                list("ClusterList", &all)
            }
            "/apis/work.karmada.io/v1alpha2/namespaces/shop/resourcebindings" => {
                let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"});
                let clusters = json!([{"name": "m1"}, {"name": "m2"}]);
                list("ResourceBindingList", &[json!({"metadata": {"name": "web-deployment"}, "spec": {"resource": resource, "clusters": clusters}})])
            }
            _ => (404, json!({"kind": "Status", "code": 404, "message": format!("{asked} not found")}).to_string()),
        }
    })
}

async fn shown(line: &str) -> (Result<()>, String, String) {
    shown_by(&hub(), line).await
}

async fn shown_by(hub: &Client, line: &str) -> (Result<()>, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let done = logs(&args(line), hub, ("shop", false), (&mut out, &mut err)).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done, text(out), text(err))
}

#[tokio::test]
async fn a_workload_is_read_on_all_its_clusters_and_what_cannot_be_read_is_told() {
    for follow in ["", " -f"] {
        let (done, out, err) = shown(&format!(
            "deployment/web --tail 3 --since 1500ms --timestamps{follow}"
        ))
        .await;
        assert_eq!(
            done.unwrap_err().to_string(),
            "2 logs or members were not read completely"
        );
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), 2, "{out}");
        let query = lines[0]
            .strip_prefix("[m1/web-1] api/v1/namespaces/shop/pods/web-1/log?")
            .unwrap();
        for part in [
            "container=app",
            "tailLines=3",
            "sinceSeconds=2",
            "timestamps=true",
        ] {
            assert!(query.contains(part), "{part}: {query}");
        }
        assert_eq!(query.contains("follow=true"), !follow.is_empty(), "{query}");
        assert_eq!(lines[1], "[m1/web-1] last");
        assert!(out.ends_with('\n'), "a line that has no end gets one: {out:?}");
        assert!(err.contains("note: m2: cluster m2 did not respond"), "{err}");
        assert!(err.contains("note: m1/web-2/app: container is waiting"), "{err}");
    }
}

/// The hub, but each log has lines for longer than a response may take, and the response to a request for one is not there at once.
fn slow_hub() -> Client {
    let hub = hub();
    let service = service_fn(move |request: Request<Body>| {
        let hub = hub.clone();
        async move {
            if !request.uri().path().ends_with("/log") {
                let response = hub.send(request).await?;
                return Ok::<_, kube::Error>(response.map(|body| body.map_err(Into::into).boxed_unsync()));
            }
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            let lines = stream::unfold(0, |line| async move {
                tokio::time::sleep(Duration::from_secs(20)).await;
                let frame = Frame::data(Bytes::from(format!("{line}\n")));
                (line < 9).then_some((Ok::<_, BoxError>(frame), line + 1))
            });
            Ok(Response::new(StreamBody::new(lines).boxed_unsync()))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_log_is_read_however_long_the_one_before_takes() {
    let (done, out, err) = shown_by(&slow_hub(), "deployment/web").await;
    assert_eq!(
        done.unwrap_err().to_string(),
        "1 log or member was not read completely"
    );
    for pod in ["web-1", "web-2"] {
        let lines = out.lines().filter(|line| line.contains(pod)).count();
        assert_eq!(lines, 9, "{pod}: {out}");
    }
    assert_eq!(err, "note: m2: cluster m2 did not respond\n");
}

#[tokio::test]
async fn a_pod_is_read_as_it_is() {
    let (done, out, err) = shown("web-1 -C m1 --previous").await;
    done.unwrap();
    assert!(
        out.starts_with("api/v1/namespaces/shop/pods/web-1/log?") && out.ends_with("\nlast"),
        "{out:?}"
    );
    assert!(out.contains("previous=true"), "{out}");
    assert_eq!(err, "");
}

#[tokio::test]
async fn what_is_not_found_and_what_is_too_much_to_follow_is_told() {
    for (line, says) in [
        ("gone -C m1", "no pods found in namespace shop"),
        ("deployment/gone", "has no binding on the hub"),
        (
            "deployment/web -f --max-log-requests 1",
            "2 logs to follow, and --max-log-requests is 1",
        ),
        ("spaceship/web", "the hub serves no kind \"spaceship\""),
    ] {
        let (done, out, _) = shown(line).await;
        let error = format!("{:#}", done.unwrap_err());
        assert!(error.contains(says), "{line}: {error}");
        assert_eq!(out, "", "{line}");
    }
}

#[test]
fn labels_show_the_last_lines_of_each_log() {
    for (line, tail) in [
        ("web-1", None),
        ("-l app=web", Some(10)),
        ("-l app=web --tail -1", None),
        ("-l app=web --tail 0", Some(0)),
        ("deployment/web --tail 5", Some(5)),
    ] {
        assert_eq!(params(&args(line)).tail_lines, tail, "{line}");
    }
}

#[tokio::test]
async fn the_line_in_which_a_log_breaks_off_is_shown() {
    let broken = std::io::Error::other("member restarts");
    let pieces = [Ok("one\nhalf a "), Ok("line"), Err(broken)];
    let items: Vec<_> = lines(stream::iter(pieces).into_async_read()).collect().await;
    let texts: Vec<String> = items
        .into_iter()
        .map(|item| match item {
            Ok(line) => String::from_utf8(line).unwrap(),
            Err(error) => format!("{error:#}"),
        })
        .collect();
    assert_eq!(
        texts,
        ["one\n", "half a line", "the log broke off: member restarts"]
    );
}
