//! `entourage drill` in process: what it prints, and when it fails.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fmt::Write as _;

use clap::Parser as _;
use entourage::command::{Cli, Command, drill};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

/// Runs a command line; what it printed, and how it ended.
async fn drilled(line: &[&str]) -> (String, anyhow::Result<()>) {
    entourage::install_tls_provider();
    let words = ["entourage", "drill"].iter().chain(line);
    let Command::Drill(args) = Cli::try_parse_from(words).unwrap().command else {
        panic!("{line:?} is another command");
    };
    let mut out = Vec::new();
    let ended = drill::drill(&args, &mut out).await;
    (String::from_utf8(out).unwrap(), ended)
}

/// Workloads as files, each with its policy: name, spec of the Deployment's Pods, placement.
fn file(workloads: &[(&str, Value, Value)]) -> NamedTempFile {
    let mut text = String::new();
    for (name, pod, placement) in workloads {
        let mut pod = pod.clone();
        pod["containers"] = json!([{"name": "main", "image": "nginx"}]);
        let labels = json!({"app": name});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}});
        let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": name}, "spec": {"propagateDeps": true, "placement": placement,
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}]}});
        write!(text, "---\n{deployment}\n---\n{policy}\n").unwrap();
    }
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn one_of_all() -> Value {
    json!({"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_moves_leaves_data_behind_keeps_what_has_no_place_and_is_cleaned_up() {
    let (text, ended) = drilled(&["-o", "json"]).await;
    ended.unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["cluster"], "member1", "it has the most workloads");
    for name in ["problems", "differences", "tolerate"] {
        assert_eq!(report[name], json!([]), "{name}: {report}");
    }
    let moved = report["moved"].as_array().unwrap();
    let objects: Vec<&Value> = moved.iter().map(|each| &each["object"]).collect();
    assert_eq!(objects, ["Deployment default/orders", "Deployment default/web"]);
    for each in moved {
        let ms = |field: &str| each[field].as_u64().unwrap();
        let (dependencies, replacement) = (ms("dependenciesAfterMs"), ms("replacementAfterMs"));
        // A dead member is not left before it has been unresponsive for the threshold.
        assert!(500 <= dependencies && dependencies <= replacement, "{each}");
        assert_eq!(ms("gapMs"), replacement, "{each}");
        assert_eq!(each["from"], "member1");
    }
    assert_eq!(moved[1]["to"], json!({"member3": 2}), "member2 has web already");
    let blocked = report["blocked"].as_array().unwrap();
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0]["object"], "Deployment default/pinned");
    let why = blocked[0]["why"].as_str().unwrap();
    assert!(why.contains("not selected by clusterAffinity"), "{why}");
    assert_eq!(
        report["data"],
        json!(["PersistentVolumeClaim default/orders-data"])
    );
    let cleaned = report["healed"]["cleaned"].as_array().unwrap();
    let mut cleaned: Vec<String> = cleaned
        .iter()
        .map(|each| {
            format!(
                "{} {}",
                each["how"].as_str().unwrap(),
                each["object"].as_str().unwrap()
            )
        })
        .collect();
    cleaned.sort();
    assert_eq!(
        cleaned,
        [
            "deleted ConfigMap default/web-settings",
            "deleted Deployment default/orders",
            "deleted Deployment default/web",
            "deleted Secret default/web-token",
            "released PersistentVolumeClaim default/orders-data",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_names_what_moves_where_and_the_member_can_be_chosen() {
    let file = file(&[
        ("free", json!({}), one_of_all()),
        (
            "bound",
            json!({}),
            json!({"clusterAffinity": {"clusterNames": ["member2"]}}),
        ),
        (
            "patient",
            json!({}),
            json!({"clusterAffinity": {"clusterNames": ["member2"]},
                "clusterTolerations": [{"key": "example.com/dead", "operator": "Exists", "effect": "NoExecute"}]}),
        ),
    ]);
    let path = file.path().to_str().unwrap();
    let (text, ended) = drilled(&["member2", "--members", "2", "-f", path]).await;
    ended.unwrap();
    for part in [
        "A hub and 2 members are up after",
        "member2 is cut off.\n  Ready is False after",
        "Has no other cluster, and stays on member2:\n  Deployment default/bound: 0 of 2 clusters fit:",
        "Tolerates it, and stays on member2:\n  Deployment default/patient\n",
        "Everything was predicted.",
        "member2 is back.\n  Ready is True after",
        "nothing is orphaned.\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    let (text, ended) = drilled(&["member1", "--members", "2", "-f", path]).await;
    ended.unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("Deployment default/free"));
    let cells: Vec<&str> = line.unwrap().split_whitespace().collect();
    assert_eq!(
        cells[1..7],
        ["default/free", "member1", "member2", "(2)", "none", "after"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_without_workloads_and_workloads_that_never_settle_are_named() {
    let file = file(&[("free", json!({}), one_of_all())]);
    let (_, ended) = drilled(&["member3", "-f", file.path().to_str().unwrap()]).await;
    let why = ended.unwrap_err().to_string();
    assert!(why.contains("no workload is scheduled to \"member3\""), "{why}");
    let nowhere = self::file(&[(
        "lost",
        json!({}),
        json!({"clusterAffinity": {"clusterNames": ["elsewhere"]}}),
    )]);
    let path = nowhere.path().to_str().unwrap();
    let (text, ended) = drilled(&["-f", path, "--timeout", "3s"]).await;
    let why = format!("{:#}", ended.unwrap_err());
    assert!(
        why.contains("nothing was cut off") && why.contains("Deployment default/lost"),
        "{why}"
    );
    assert!(!text.contains("is cut off."), "{text}");
}
