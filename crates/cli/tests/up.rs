//! `entourage up` as its user runs it: a process, its output, its files, and what kubectl would ask.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use kube::{Client, Config, config::Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples/myapp");
const REGISTRY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../config/samples/distribution/registry"
);
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const MYAPP: &str = "/apis/apps/v1/namespaces/default/deployments/myapp";
const MY_CONFIG: &str = "/api/v1/namespaces/default/configmaps/my-config";

/// A running `entourage up`, killed when the test ends.
struct Up {
    process: Child,
    /// Its output until it was ready.
    reported: String,
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entourage"));
    command
        .arg("up")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Up {
    /// Starts it and reads its output up to a line that starts so.
    fn start(args: &[&str], last: &str) -> Self {
        let mut process = command(args).spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut reported = String::new();
        loop {
            let from = reported.len();
            if out.read_line(&mut reported).unwrap() == 0 {
                let done = process.wait_with_output().unwrap();
                panic!("{reported}{}", String::from_utf8_lossy(&done.stderr));
            }
            if reported[from..].starts_with(last) {
                break;
            }
        }
        process.stdout = Some(out.into_inner());
        Self { process, reported }
    }

    fn kubeconfig(&self) -> PathBuf {
        let line = self
            .reported
            .lines()
            .find_map(|line| line.trim().strip_prefix("export KUBECONFIG="));
        line.unwrap().into()
    }

    /// Ends it as Ctrl-C does.
    fn interrupt(mut self) {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

async fn client(kubeconfig: &Path, context: &str) -> Client {
    entourage::install_tls_provider();
    let options = kube::config::KubeConfigOptions {
        context: Some(context.to_owned()),
        ..Default::default()
    };
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    Client::try_from(Config::from_custom_kubeconfig(config, &options).await.unwrap()).unwrap()
}

async fn ask(client: &Client, method: &str, path: &str, body: &Value) -> kube::Result<Value> {
    let form = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("content-type", form);
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    client.request(request.body(body).unwrap()).await
}

async fn get(client: &Client, path: &str) -> Option<Value> {
    ask(client, "GET", path, &Value::Null).await.ok()
}

/// Asks until the answer is what is wanted.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds().await {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn it_serves_until_it_is_interrupted_and_leaves_nothing() {
    let up = Up::start(&["--members", "2", "--apply", SAMPLE], "hub: propagationpolicy");
    assert!(
        up.reported.starts_with("A hub and 2 members are up after "),
        "{}",
        up.reported
    );
    let kubeconfig = up.kubeconfig();
    let directory = kubeconfig.parent().unwrap().to_owned();
    assert_eq!((mode(&directory), mode(&kubeconfig)), (0o700, 0o600));
    for name in ["hub", "member1", "member2"] {
        assert!(
            up.reported
                .contains(&format!("{}/{name}.kubeconfig", directory.display())),
            "{}",
            up.reported
        );
    }
    let hub = client(&kubeconfig, "hub").await;
    until("both members are ready", async || {
        let clusters = get(&hub, CLUSTERS).await.unwrap();
        let ready = clusters["items"].as_array().unwrap().iter().filter(|cluster| {
            let conditions = cluster["status"]["conditions"].as_array();
            conditions
                .into_iter()
                .flatten()
                .any(|one| one["type"] == "Ready" && one["status"] == "True")
        });
        ready.count() == 2
    })
    .await;
    for member in ["member1", "member2"] {
        let member = client(&kubeconfig, member).await;
        until("the workload runs and has its ConfigMap", async || {
            let myapp = get(&member, MYAPP).await.unwrap_or_default();
            myapp["status"]["readyReplicas"] == myapp["spec"]["replicas"]
                && get(&member, MY_CONFIG).await.is_some()
        })
        .await;
    }
    up.interrupt();
    assert!(!directory.exists());
}

/// The example of docs/getting-started.md, with what it says happens next.
#[tokio::test]
async fn the_sample_of_a_distribution_does_what_the_readme_says() {
    let up = Up::start(
        &["--members", "1", "--apply", REGISTRY],
        "hub: namespace shop-lab",
    );
    let kubeconfig = up.kubeconfig();
    let hub = client(&kubeconfig, "hub").await;
    let pull = |namespace: &str| format!("/api/v1/namespaces/{namespace}/secrets/pull");
    let succeeded = async || {
        let path = "/apis/apps.kruise.io/v1alpha1/resourcedistributions/registry";
        let status = get(&hub, path).await.unwrap_or_default()["status"].take();
        (status["desired"].clone(), status["succeeded"].clone())
    };
    until("the team has it", async || {
        succeeded().await == (json!(1), json!(1))
    })
    .await;
    let uid = get(&hub, &pull("shop")).await.unwrap()["metadata"]["uid"].clone();
    assert!(get(&hub, &pull("shop-lab")).await.is_none());

    let two = json!({"metadata": {"name": "shop-two", "labels": {"team": "shop"}}});
    ask(&hub, "POST", "/api/v1/namespaces", &two).await.unwrap();
    until("a namespace that comes gets it", async || {
        succeeded().await == (json!(2), json!(2))
    })
    .await;
    let all = ["get", "distributions", "registry", "--kubeconfig"];
    let got = Command::new(env!("CARGO_BIN_EXE_entourage"))
        .args(all)
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let got = String::from_utf8(got.stdout).unwrap();
    assert!(got.contains("Present in 2/2 namespaces"), "{got}");
    let got = Command::new(env!("CARGO_BIN_EXE_entourage"))
        .args(["get", "copies", "pull", "-A", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let got = String::from_utf8(got.stdout).unwrap();
    assert_eq!(
        got.matches("rendered from the current resource").count(),
        2,
        "{got}"
    );

    ask(&hub, "DELETE", &pull("shop"), &Value::Null).await.unwrap();
    until("a copy that is deleted is made again", async || {
        let pull = get(&hub, &pull("shop")).await.unwrap_or_default();
        pull["metadata"]["uid"].is_string() && pull["metadata"]["uid"] != uid
    })
    .await;
    let unlabelled = json!({"metadata": {"labels": {"team": null}}});
    ask(&hub, "PATCH", "/api/v1/namespaces/shop-two", &unlabelled)
        .await
        .unwrap();
    until("a namespace that loses the label loses it", async || {
        get(&hub, &pull("shop-two")).await.is_none()
    })
    .await;
    up.interrupt();
}

#[tokio::test]
async fn what_is_kept_survives_a_kill_and_old_kubeconfigs_go_on_working() {
    let home = TempDir::new().unwrap();
    let kept = home.path().join("kept here");
    let args = ["--members", "2", "--data-dir", kept.to_str().unwrap()];
    let mut up = Up::start(
        &[&args[..], &["--apply", SAMPLE]].concat(),
        "hub: propagationpolicy",
    );
    assert!(
        up.reported
            .contains(&format!("export KUBECONFIG='{}/kubeconfig'", kept.display())),
        "{}",
        up.reported
    );
    let kubeconfig = kept.join("kubeconfig");
    let (hub, member) = (
        client(&kubeconfig, "hub").await,
        client(&kubeconfig, "member1").await,
    );
    until("workload and ConfigMap are on member1", async || {
        get(&member, MYAPP).await.is_some() && get(&member, MY_CONFIG).await.is_some()
    })
    .await;
    let uid = get(&member, MYAPP).await.unwrap()["metadata"]["uid"].clone();
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
    ask(&hub, "POST", "/api/v1/namespaces/default/secrets", &secret)
        .await
        .unwrap();
    assert_eq!(mode(&kept), 0o700);
    for file in std::fs::read_dir(&kept).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    up.process.kill().unwrap();
    up.process.wait().unwrap();

    let again = Up::start(&args, "Ctrl-C");
    // The same clients: address, certificate and token are those of before.
    let found = get(&hub, "/api/v1/namespaces/default/secrets/s").await.unwrap();
    assert_eq!(found["data"]["k"], "dg==");
    let patch = json!({"data": {"after": "the kill"}});
    ask(&hub, "PATCH", MY_CONFIG, &patch).await.unwrap();
    until("a change arrives as ever", async || {
        get(&member, MY_CONFIG).await.unwrap_or_default()["data"]["after"] == "the kill"
    })
    .await;
    assert_eq!(get(&member, MYAPP).await.unwrap()["metadata"]["uid"], uid);

    let second = command(&args).output().unwrap();
    let error = String::from_utf8(second.stderr).unwrap();
    assert!(
        !second.status.success() && error.contains("another process has it open"),
        "{error}"
    );
    again.interrupt();
    let fewer = command(&["--members", "1", "--data-dir", kept.to_str().unwrap()])
        .output()
        .unwrap();
    let error = String::from_utf8(fewer.stderr).unwrap();
    assert!(error.contains("pass --members 2 or more"), "{error}");
}

#[test]
fn what_it_cannot_do_is_reported_with_the_way_out() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "apiVersion: v1\nkind: Secret\nstringData: {k: canary}\n").unwrap();
    let file = file.to_str().unwrap();
    let table: [(&[&str], &[&str]); 4] = [
        (&["--apply", "/no/such/file"], &["cannot read /no/such/file"]),
        (&["--apply", file], &[file, "has no metadata.name"]),
        (
            &["--data-dir", file],
            &["cannot make the directory", file, "choose another --data-dir"],
        ),
        (
            &["--log-level", "loud"],
            &["--log-level \"loud\": give error, warn"],
        ),
    ];
    for (args, wanted) in table {
        let done = command(args).output().unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success(), "{args:?}");
        for words in wanted {
            assert!(
                error.contains(words) && !error.contains("canary"),
                "{args:?}: {error}"
            );
        }
    }
}
