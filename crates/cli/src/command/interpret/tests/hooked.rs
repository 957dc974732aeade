//! Webhooks that are called: a real server behind TLS on the loopback.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use clap::Parser as _;
use entourage_api::work::{AggregatedStatusItem, DependentObjectReference, ReplicaRequirements};
use entourage_webhook::interpret::{self, Answered, Interpret, Interpreter, Refusal};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::run;
use crate::{
    command::{Cli, Command},
    golden::folder,
};

/// Interprets Shops in a distinguishable way, and counts its calls.
#[derive(Clone, Default)]
struct Shops(Arc<AtomicUsize>);

impl Shops {
    fn asked(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Interpret for Shops {
    fn replicas(&self, template: &Value) -> Answered<(u32, Option<ReplicaRequirements>)> {
        self.asked();
        let size = template["spec"]["size"].as_u64().unwrap_or_default();
        Ok((10 * u32::try_from(size).unwrap_or_default(), None))
    }

    fn revise_replicas(&self, mut copy: Value, replicas: i64) -> Answered<Value> {
        self.asked();
        copy["spec"]["size"] = json!(replicas);
        Ok(copy)
    }

    fn aggregate_status(&self, mut template: Value, items: &[AggregatedStatusItem]) -> Answered<Value> {
        self.asked();
        template["status"] = json!({"clusters": items.len()});
        Ok(template)
    }

    fn is_healthy(&self, _: &Value) -> Answered<bool> {
        self.asked();
        Err(Refusal::bad("spec.size is too small"))
    }

    fn dependencies(&self, template: &Value) -> Answered<Vec<DependentObjectReference>> {
        self.asked();
        let namespace = template["metadata"]["namespace"].as_str().unwrap_or_default();
        Ok(vec![DependentObjectReference {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: namespace.into(),
            name: "till".into(),
            ..Default::default()
        }])
    }
}

/// The server, and files that name it. The server ends on drop.
struct Fake {
    shops: Shops,
    port: u16,
    files: tempfile::TempDir,
    bundle: String,
    _task: AbortOnDropHandle<()>,
}

impl Fake {
    /// Starts it with a certificate for this name.
    async fn start(name: &str) -> Self {
        crate::install_tls_provider();
        let names = [name.to_owned()];
        let (tls, bundle) = interpret::self_signed(&names, jiff::Timestamp::now()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shops = Shops::default();
        let interpreter = Interpreter::new(shops.clone());
        let served = interpret::serve(listener, tls, interpreter, CancellationToken::new());
        Self {
            shops,
            port,
            files: tempfile::tempdir().unwrap(),
            bundle,
            _task: AbortOnDropHandle::new(tokio::spawn(served)),
        }
    }

    fn asked(&self) -> usize {
        self.shops.0.load(Ordering::Relaxed)
    }

    fn url(&self) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/x", self.port)})
    }

    /// A file with a webhook for all operations in Karmada's contract.
    fn interpreter(&self, client: Value) -> PathBuf {
        let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"]}]);
        self.write(
            "ResourceInterpreterWebhookConfiguration",
            client,
            json!({"interpreterContextVersions": ["v1alpha1"], "rules": rules}),
        )
    }

    /// As [`Self::interpreter`] in the contract of the proposal.
    fn explorer(&self, client: Value, policy: &str) -> PathBuf {
        let rules =
            json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
        let entry = json!({"exploreReviewVersions": ["v1alpha1"], "failurePolicy": policy, "rules": rules});
        self.write("ResourceExploringWebhookConfiguration", client, entry)
    }

    fn write(&self, kind: &str, mut client: Value, mut entry: Value) -> PathBuf {
        client["caBundle"] = json!(self.bundle);
        entry["name"] = json!("shops.example.com");
        entry["timeoutSeconds"] = json!(10);
        entry["clientConfig"] = client;
        let object = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": kind,
            "metadata": {"name": "shops"}, "webhooks": [entry]});
        let path = self.files.path().join(format!("{kind}.yaml"));
        fs::write(&path, object.to_string()).unwrap();
        path
    }
}

/// The output of a command line on standard output and standard error, or its error.
async fn printed(hooks: &Path, line: &str) -> Result<(String, String), String> {
    let words = ["entourage", "interpret", "-f", hooks.to_str().unwrap()];
    let rest = line.split_whitespace().map(|word| match word {
        file if file.ends_with(".yaml") => folder("interpret").join(file).to_str().unwrap().to_owned(),
        word => word.to_owned(),
    });
    let words = words.map(str::to_owned).into_iter().chain(rest);
    let Command::Interpret(args) = Cli::try_parse_from(words).unwrap().command else {
        panic!("not this command")
    };
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    match run(&args, &mut out, &mut notes).await {
        Ok(_) => Ok((String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap())),
        Err(error) => Err(format!("{error:#}")),
    }
}

#[tokio::test]
async fn a_hook_among_the_files_answers_in_the_words_of_either_contract() {
    let fake = Fake::start("127.0.0.1").await;
    let interpreter = (
        fake.interpreter(fake.url()),
        r#"ResourceInterpreterWebhookConfiguration "shops/shops.example.com""#,
    );
    let explorer = (
        fake.explorer(fake.url(), "Fail"),
        r#"ResourceExploringWebhookConfiguration "shops/shops.example.com""#,
    );
    let head = "apiVersion: example.com/v1\nkind: Shop\nmetadata:\n  name: corner\n  namespace: default\n";
    let table = [
        (
            "--operation InterpretReplica --desired-file shop.yaml",
            "---\n# [1/2] replica: by HOOK\n30\n---\n# [2/2] requires: by HOOK\nnull\n".to_owned(),
        ),
        (
            "--operation ReviseReplica --desired-file shop.yaml --desired-replica 5",
            format!(
                "---\n# [1/1] object: by HOOK\n{head}spec:\n  size: 5\n  uses:\n  - goods\n  - prices\nstatus:\n  ready: 2\n"
            ),
        ),
        (
            "--operation AggregateStatus --desired-file shop.yaml --status-file statuses.yaml",
            format!(
                "---\n# [1/1] object: by HOOK\n{head}spec:\n  size: 3\n  uses:\n  - goods\n  - prices\nstatus:\n  clusters: 2\n"
            ),
        ),
        (
            "--operation InterpretDependency --desired-file shop.yaml",
            "---\n# [1/1] dependencies: by HOOK\n- apiVersion: v1\n  kind: Secret\n  name: till\n  namespace: default\n"
                .to_owned(),
        ),
    ];
    for (line, wanted) in table {
        for (hooks, layer) in [&interpreter, &explorer] {
            let (out, notes) = printed(hooks, line).await.unwrap();
            assert_eq!(out, wanted.replace("HOOK", layer), "{line}");
            assert_eq!(notes, "");
        }
    }
    assert_eq!(fake.asked(), 8);
    // Neither calls a webhook.
    for line in ["--check", "--layers --desired-file shop.yaml"] {
        printed(&interpreter.0, line).await.unwrap();
    }
    assert_eq!(fake.asked(), 8);
}

#[tokio::test]
async fn a_customization_is_asked_before_a_hook_and_a_hook_before_what_is_known() {
    let fake = Fake::start("127.0.0.1").await;
    let hooks = fake.interpreter(fake.url());
    let line = "shops.yaml --operation InterpretReplica --desired-file shop.yaml";
    let (out, _) = printed(&hooks, line).await.unwrap();
    assert!(
        out.contains("by ResourceInterpreterCustomization \"shops\"\n3\n"),
        "{out}"
    );
    assert_eq!(fake.asked(), 0);
    let (out, _) = printed(&hooks, "--operation InterpretDependency --desired-file web.yaml")
        .await
        .unwrap();
    assert!(out.contains("name: till") && !out.contains("native"), "{out}");
    // A customization with Add adds its dependencies to those of the webhook.
    let line = "adding.yaml --operation InterpretDependency --desired-file web.yaml";
    let (out, _) = printed(&hooks, line).await.unwrap();
    let headings: Vec<_> = out.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# [1/2] dependencies: by ResourceInterpreterCustomization \"more\"",
            "# [2/2] dependencies: by ResourceInterpreterWebhookConfiguration \"shops/shops.example.com\"",
        ]
    );
}

#[tokio::test]
async fn a_hook_without_an_answer_is_an_error_or_where_it_may_be_ignored_a_note() {
    let fake = Fake::start("127.0.0.1").await;
    let line = "--operation InterpretHealth --observed-file copy.yaml";
    // The proposal's contract has no field for a refusal.
    for (hooks, refusal) in [
        (fake.interpreter(fake.url()), "spec.size is too small"),
        (fake.explorer(fake.url(), "Fail"), "responds with status 400"),
    ] {
        let error = printed(&hooks, line).await.unwrap_err();
        assert!(
            error.contains("Configuration \"shops/shops.example.com\": ") && error.contains(refusal),
            "{error}"
        );
    }
    let ignored = fake.explorer(fake.url(), "Ignore");
    let of_web = "--operation InterpretHealth --observed-file web.yaml";
    let (out, notes) = printed(&ignored, of_web).await.unwrap();
    assert!(
        out.starts_with("---\n# [1/1] healthy: by native rules\n"),
        "{out}"
    );
    assert!(
        notes.starts_with("note: ResourceExploringWebhookConfiguration") && notes.contains("status 400"),
        "{notes}"
    );
    assert!(
        notes.ends_with("skipped by failurePolicy Ignore: the next layer is called\n"),
        "{notes}"
    );
    let nobody = printed(&ignored, line).await.unwrap_err();
    assert!(nobody.contains("no customization, no hook"), "{nobody}");
    // A server that does not exist.
    let gone = json!({"url": "https://127.0.0.1:1/x"});
    let error = printed(&fake.interpreter(gone), line).await.unwrap_err();
    assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn a_hook_behind_a_service_is_reached_where_the_flag_says_and_trusted_as_the_service() {
    let line = |port: u16| {
        format!(
            "--operation InterpretReplica --desired-file shop.yaml --hook-url shops/shops.example.com=https://127.0.0.1:{port}"
        )
    };
    let service = json!({"service": {"namespace": "team", "name": "interpreter", "path": "/interpret"}});
    let right = Fake::start("interpreter.team.svc").await;
    let hooks = right.interpreter(service.clone());
    let (out, _) = printed(&hooks, &line(right.port)).await.unwrap();
    assert!(out.contains("\n30\n"), "{out}");
    // The server at that address needs the Service's certificate.
    let other = Fake::start("127.0.0.1").await;
    let error = printed(&other.interpreter(service), &line(other.port))
        .await
        .unwrap_err();
    assert!(error.contains("no TLS with interpreter.team.svc"), "{error}");
    assert_eq!((right.asked(), other.asked()), (1, 0));
    // A URL replaces a URL.
    let gone = other.interpreter(json!({"url": "https://127.0.0.1:1/x"}));
    printed(&gone, &line(other.port)).await.unwrap();
    assert_eq!(other.asked(), 1);
}

#[tokio::test]
async fn a_secret_is_not_shown_to_a_hook_that_is_for_everything() {
    let fake = Fake::start("127.0.0.1").await;
    let secret = fake.files.path().join("secret.json");
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
        "stringData": {"password": "c4n4ry"}});
    fs::write(&secret, object.to_string()).unwrap();
    let line = format!("--operation InterpretHealth --observed-file {}", secret.display());
    for hooks in [fake.interpreter(fake.url()), fake.explorer(fake.url(), "Fail")] {
        let error = printed(&hooks, &line).await.unwrap_err();
        assert!(error.contains("no hook") && !error.contains("c4n4ry"), "{error}");
    }
    assert_eq!(fake.asked(), 0);
}
