//! Set-ups of in-memory hubs.

use clap::Parser as _;
use serde_json::json;

use super::*;
use crate::{command::Cli, mock::Server};

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/entourage-controllers";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

fn args() -> InitArgs {
    InitArgs {
        hub: HubArgs::default(),
        parts: DEFAULT.to_vec(),
        print: false,
        server: None,
        dry_run: false,
        take_over: false,
        allow_downgrade: false,
        webhook_service: None,
        webhook_url: None,
        webhook_ca_file: None,
    }
}

/// A hub that serves a kind as soon as its definition is there.
fn hub() -> Server {
    let server = Server::new("hub").reacting(|_, path, objects| {
        if path.starts_with(DEFINITIONS)
            && let Some(definition) = objects.get_mut(path)
        {
            definition["status"] = json!({"conditions": [{"type": "Established", "status": "True"}],
                "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []});
        }
    });
    server.put(
        "/version",
        json!({"major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}),
    );
    server
}

async fn initialised(server: &Server, args: &InitArgs) -> Result<String> {
    let mut out = Vec::new();
    init(args, server.client(), &mut out).await?;
    Ok(String::from_utf8(out)?)
}

#[tokio::test]
async fn a_second_run_changes_nothing_and_says_so() {
    let server = hub();
    let first = initialised(&server, &args()).await.unwrap();
    assert!(first.contains("hub: namespace/karmada-system created"), "{first}");
    assert!(
        first.contains("hub: clusterrole.rbac.authorization.k8s.io/entourage-controllers created"),
        "{first}"
    );
    let writes = server.take_writes();
    assert_eq!(writes[0], "APPLY /api/v1/namespaces/karmada-system");
    assert_eq!(writes.len(), objects(&args(), None).unwrap().len());

    let second = initialised(&server, &args()).await.unwrap();
    assert!(
        !second.contains("created") && !second.contains("configured"),
        "{second}"
    );
    assert!(second.ends_with("objects, no changes.\n"), "{second}");
    assert!(server.take_writes().is_empty());
}

#[tokio::test]
async fn only_what_differs_is_written() {
    let server = hub();
    initialised(&server, &args()).await.unwrap();
    server.take_writes();
    let mut role = server.object(ROLE).unwrap();
    role["rules"] = json!([]);
    server.put(ROLE, role);
    let printed = initialised(&server, &args()).await.unwrap();
    assert!(printed.contains("entourage-controllers configured"), "{printed}");
    assert_eq!(server.take_writes(), [format!("APPLY {ROLE}")]);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let server = hub();
    let dry = InitArgs {
        dry_run: true,
        ..args()
    };
    let printed = initialised(&server, &dry).await.unwrap();
    assert!(
        printed.contains("namespace/karmada-system created (dry run)"),
        "{printed}"
    );
    let count = objects(&args(), None).unwrap().len();
    assert!(
        printed.contains(&format!("{count} of {count} objects would be written")),
        "{printed}"
    );
    assert!(server.take_writes().is_empty());
}

#[tokio::test]
async fn an_object_of_somebody_else_is_refused_before_anything_is_written() {
    let server = hub();
    let foreign = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
        "metadata": {"name": "entourage-controllers", "uid": "u", "managedFields": [{"manager": "kubectl"}]}});
    server.put(ROLE, foreign.clone());
    let error = initialised(&server, &args()).await.unwrap_err().to_string();
    assert!(
        error.contains("entourage-controllers exists and is not managed"),
        "{error}"
    );
    assert!(error.contains("--take-over"), "{error}");
    assert!(server.take_writes().is_empty());
    assert_eq!(server.object(ROLE), Some(foreign));

    let taken = InitArgs {
        take_over: true,
        ..args()
    };
    let printed = initialised(&server, &taken).await.unwrap();
    assert!(printed.contains("entourage-controllers configured"), "{printed}");
    initialised(&server, &args()).await.unwrap();
}

#[tokio::test]
async fn a_namespace_of_somebody_else_is_used_as_it_is() {
    const NAMESPACE: &str = "/api/v1/namespaces/karmada-system";
    let server = hub();
    let foreign = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "karmada-system", "uid": "u", "labels": {"team": "platform"}}});
    server.put(NAMESPACE, foreign.clone());
    let printed = initialised(&server, &args()).await.unwrap();
    assert!(
        printed.contains("hub: namespace/karmada-system unchanged"),
        "{printed}"
    );
    assert_eq!(server.object(NAMESPACE), Some(foreign));
    let again = initialised(&server, &args()).await.unwrap();
    assert!(again.ends_with("objects, no changes.\n"), "{again}");

    let taken = InitArgs {
        take_over: true,
        ..args()
    };
    let printed = initialised(&server, &taken).await.unwrap();
    assert!(
        printed.contains("hub: namespace/karmada-system configured"),
        "{printed}"
    );
}

#[tokio::test]
async fn a_field_that_somebody_else_set_on_an_object_of_ours_is_refused() {
    let server = hub();
    initialised(&server, &args()).await.unwrap();
    server.take_writes();
    let mut role = server.object(ROLE).unwrap();
    role["rules"] = json!([]);
    role["metadata"]["managedFields"] = json!([{"manager": "entourage"}, {"manager": "helm"}]);
    server.put(ROLE, role);
    let error = initialised(&server, &args()).await.unwrap_err().to_string();
    assert!(error.contains("has fields that \"helm\" set"), "{error}");
    assert!(server.take_writes().is_empty());
}

#[tokio::test]
async fn what_is_printed_is_what_is_applied() {
    let mut out = Vec::new();
    let print = InitArgs {
        print: true,
        ..args()
    };
    run(print, &mut out).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    let printed = crate::manifests::documents(&text, "printed").unwrap();
    assert_eq!(printed, objects(&args(), None).unwrap());
}

#[tokio::test]
async fn a_definition_of_a_newer_version_is_not_downgraded_unless_told_to() {
    let server = hub();
    initialised(&server, &args()).await.unwrap();
    server.take_writes();
    let path = format!("{DEFINITIONS}works.work.karmada.io");
    let ours = server.object(&path).unwrap();
    let mut newer = ours.clone();
    newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["later"] =
        json!({"type": "string"});
    server.put(&path, newer.clone());
    let error = initialised(&server, &args()).await.unwrap_err().to_string();
    for part in ["works.work.karmada.io", "later", "--allow-downgrade"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("--take-over"), "{error}");
    assert!(server.take_writes().is_empty());
    assert_eq!(server.object(&path), Some(newer));

    let downgrade = InitArgs {
        allow_downgrade: true,
        ..args()
    };
    initialised(&server, &downgrade).await.unwrap();
    assert_eq!(server.object(&path).unwrap()["spec"], ours["spec"]);
}

#[tokio::test]
async fn nothing_is_written_beside_an_object_that_is_being_deleted() {
    let server = hub();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "karmada-cluster", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}});
    server.put("/api/v1/namespaces/karmada-cluster", namespace);
    let error = initialised(&server, &args()).await.unwrap_err().to_string();
    assert!(
        error.contains("namespace/karmada-cluster of the hub is being deleted"),
        "{error}"
    );
    assert!(server.take_writes().is_empty());
}

/// A run that was interrupted is continued by the next one.
#[tokio::test]
async fn a_second_run_writes_what_an_interrupted_one_did_not() {
    let server = hub().forbidding("APPLY", "/apis/rbac.authorization.k8s.io/v1/clusterroles");
    let error = initialised(&server, &args()).await.unwrap_err();
    assert!(
        format!("{error:#}").contains("cannot apply clusterrole."),
        "{error:#}"
    );
    let before = server.take_writes().len();
    let rest = hub();
    for (path, object) in server.objects() {
        rest.put(&path, object);
    }
    let printed = initialised(&rest, &args()).await.unwrap();
    let total = objects(&args(), None).unwrap().len();
    assert!(before > 0 && before < total, "{before}");
    assert_eq!(rest.take_writes().len(), total - before, "{printed}");
}

#[test]
fn webhook_configurations_name_the_address_and_the_authority() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let with = InitArgs {
        webhook_url: Some(Address::Url("https://hooks.example.com".to_owned())),
        webhook_ca_file: Some(file.path().to_owned()),
        ..args()
    };
    assert!(
        objects(&with, None)
            .unwrap_err()
            .to_string()
            .contains("no certificate")
    );
    std::fs::write(
        file.path(),
        "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let all = objects(&with, None).unwrap();
    let certificate = std::fs::read_to_string(file.path()).unwrap();
    let both = format!("{certificate}-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n");
    std::fs::write(file.path(), both).unwrap();
    let error = objects(&with, None).unwrap_err().to_string();
    assert!(error.contains("contains a private key"), "{error}");
    let written = all.iter().filter(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        kind.ends_with("WebhookConfiguration")
    });
    assert_eq!(written.clone().count(), 2);
    for configuration in written {
        let client = &configuration["webhooks"][0]["clientConfig"];
        assert!(client["caBundle"].is_string(), "{client}");
        assert!(
            client["url"].to_string().contains("hooks.example.com"),
            "{client}"
        );
    }
}

#[test]
fn flags_that_would_be_ignored_are_refused() {
    for flags in [
        "--webhook-ca-file a",
        "--webhook-url https://a",
        "--webhook-url https://a --webhook-service a/b --webhook-ca-file c",
        "--print --take-over",
        "--print --allow-downgrade",
        "--for 1.20",
    ] {
        let line = format!("entourage init {flags}");
        assert!(Cli::try_parse_from(line.split_whitespace()).is_err(), "{line}");
    }
}
