//! Checks that what is installed from, the chart and `config/`, names things that exist, and that pages list what it has. What the chart
//! renders is checked with helm: `hack/chart.sh`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::tree;

const ALERTS: &str = "config/monitoring/alerts.yaml";
const DASHBOARD: &str = "config/monitoring/dashboard.json";
const CHART: &str = "charts/entourage";
const FLAGS: &str = "docs/reference/flags.md";
const METRICS: &str = "docs/reference/metrics.md";
const RUNBOOKS: &str = "docs/runbooks.md";

/// The text of one file of the checkout.
fn read(path: &str) -> String {
    fs::read_to_string(tree::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words of a text that are made of such characters.
fn words(text: &str, of: fn(char) -> bool) -> impl Iterator<Item = &str> {
    text.split(move |c: char| !of(c)).filter(|word| !word.is_empty())
}

/// The names of the alerts, in their order.
fn alerts(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix("- alert: "))
        .collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_that_exist() {
    let page = read(METRICS);
    for path in [ALERTS, DASHBOARD] {
        let text = read(path);
        let metrics: BTreeSet<&str> = words(&text, |c| c.is_ascii_alphanumeric() || c == '_')
            .filter(|word| word.starts_with("entourage_") || word.starts_with("process_"))
            .map(|word| word.strip_suffix("_bucket").unwrap_or(word))
            .collect();
        assert!(metrics.len() > 9, "{path}: only {metrics:?} are found");
        for metric in metrics {
            assert!(
                page.lines()
                    .any(|line| line.starts_with(&format!("| `{metric}` |"))),
                "{path}: {METRICS} has no metric {metric}"
            );
        }
    }
}

#[test]
fn each_alert_has_its_runbook_and_each_runbook_its_alert() {
    let (text, page) = (read(ALERTS), read(RUNBOOKS));
    let alerts = alerts(&text);
    let sections: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .filter(|title| title.starts_with("Entourage"))
        .collect();
    assert_eq!(
        alerts, sections,
        "the alerts of {ALERTS}, the sections of {RUNBOOKS}"
    );
    for alert in alerts {
        let link = format!("runbook_url: {RUNBOOKS}#{}\n", alert.to_lowercase());
        assert!(text.contains(&link), "{ALERTS}: {alert} has no line {link:?}");
        assert!(
            page.contains(&format!("](#{})", alert.to_lowercase())),
            "{RUNBOOKS}: the list at the top has no link to {alert}"
        );
    }
}

/// The paths of the values, `a.b.c`; a list, a map without entries and anything else that is not a map ends one.
fn paths(value: &Value, path: &str, found: &mut Vec<String>) {
    match value.as_object().filter(|map| !map.is_empty()) {
        Some(map) => {
            for (key, inner) in map {
                let dot = if path.is_empty() { "" } else { "." };
                paths(inner, &format!("{path}{dot}{key}"), found);
            }
        }
        None => found.push(path.to_owned()),
    }
}

/// A row of a path covers what is below it. What each component has is in one table, under `COMPONENT`.
#[test]
fn every_value_of_the_chart_is_listed() {
    let page = read(&format!("{CHART}/README.md"));
    let values: Value = serde_saphyr::from_str(&read(&format!("{CHART}/values.yaml"))).unwrap();
    let mut found = Vec::new();
    paths(&values, "", &mut found);
    assert!(found.len() > 60, "only {} values are found", found.len());
    for path in found {
        let common = path.split_once('.').map(|(_, rest)| format!("COMPONENT.{rest}"));
        let listed = [Some(path.clone()), common].into_iter().flatten().any(|path| {
            let mut ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
            ends.any(|end| page.contains(&format!("| `{}` |", &path[..end])))
        });
        assert!(listed, "{CHART}/README.md: add a row for `{path}`");
    }
}

#[test]
fn deployments_use_flags_that_exist() {
    let page = read(FLAGS);
    let files = tree::files(&tree::root()).unwrap();
    let is_deployment = |path: &&String| {
        let of_config =
            path.starts_with("config/") && path.ends_with("/deployment.yaml") && !path.contains("/samples/");
        let of_chart = path.starts_with(&format!("{CHART}/templates/")) && path.ends_with(".yaml");
        of_config || of_chart
    };
    let mut found = BTreeSet::new();
    for path in files.iter().filter(is_deployment) {
        let text = read(path);
        for word in words(&text, |c| c.is_ascii_lowercase() || c == '-') {
            let is_name = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
            let Some(flag) = word.strip_prefix("--").filter(is_name) else {
                continue;
            };
            assert!(
                page.contains(&format!("`--{flag}`")),
                "{path}: {FLAGS} has no flag --{flag}"
            );
            found.insert(flag.to_owned());
        }
    }
    assert!(found.len() > 9, "only {found:?} are found");
}

/// A kustomization lists every file beside it, and what it lists exists.
#[test]
fn every_kustomization_is_complete() {
    let root = tree::root();
    let files = tree::files(&root).unwrap();
    let mut found = 0;
    for path in files.iter().filter(|path| path.starts_with("config/")) {
        let Some(folder) = path.strip_suffix("/kustomization.yaml") else {
            continue;
        };
        let list: Value = serde_saphyr::from_str(&read(path)).unwrap();
        let resources: Vec<&str> = list["resources"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for resource in &resources {
            let target = root.join(folder).join(resource);
            let lists = ["kustomization.yaml", "Kustomization"];
            let exists = target.is_file() || lists.iter().any(|name| target.join(name).is_file());
            assert!(exists, "{path}: {resource} does not exist");
        }
        let beside = files
            .iter()
            .filter_map(|file| file.strip_prefix(folder)?.strip_prefix('/'));
        for file in beside.filter(|file| file.ends_with(".yaml") && !file.contains('/')) {
            assert!(
                file == "kustomization.yaml" || resources.contains(&file),
                "{path}: {file} is not listed"
            );
        }
        found += 1;
    }
    assert!(found > 15, "only {found} kustomizations are found");
}
