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

/// The labels that each metric is selected by: `(metric, label)` of each `metric{label="…"}`.
fn selected(text: &str) -> BTreeSet<(&str, &str)> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices('{') {
        let is_other = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let name = text[..at].rsplit(is_other).next();
        let Some(name) = name.filter(|name| name.starts_with("entourage_")) else {
            continue;
        };
        let inside = text[at + 1..].split('}').next().unwrap_or_default();
        for part in inside.split(',') {
            if let Some((label, _)) = part.split_once(['=', '!']) {
                found.insert((name.strip_suffix("_bucket").unwrap_or(name), label.trim()));
            }
        }
    }
    found
}

/// The labels of the scrape, and that of the buckets of a histogram.
const OF_THE_SCRAPE: [&str; 5] = ["cluster", "namespace", "job", "instance", "le"];

#[test]
fn alerts_and_dashboard_select_by_labels_that_exist() {
    let page = read(METRICS);
    for (path, at_least) in [(ALERTS, 10), (DASHBOARD, 3)] {
        let text = read(path);
        let of_metrics: Vec<_> = selected(&text)
            .into_iter()
            .filter(|(_, label)| !OF_THE_SCRAPE.contains(label))
            .collect();
        assert!(
            of_metrics.len() >= at_least,
            "{path}: only {of_metrics:?} are found"
        );
        for (metric, label) in of_metrics {
            let start = format!("| `{metric}` |");
            let row = page
                .lines()
                .find(|line| line.starts_with(&start))
                .unwrap_or_default();
            let labels = row.split('|').nth(3).unwrap_or_default();
            assert!(
                labels.contains(&format!("`{label}`")),
                "{path}: {METRICS} has no label {label} of {metric}"
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

/// The documents of what the chart renders, and of the Deployments of `config/` with what is beside them, by file.
fn rendered() -> Vec<(String, Vec<Value>)> {
    let files = tree::files(&tree::root()).unwrap();
    let is_golden = |path: &&String| path.starts_with("charts/testdata/") && path.ends_with(".golden.yaml");
    let mut all: Vec<(String, String)> = files
        .iter()
        .filter(is_golden)
        .map(|path| (path.clone(), read(path)))
        .collect();
    let folders = files
        .iter()
        .filter_map(|path| path.strip_prefix("config/")?.strip_suffix("/deployment.yaml"));
    for folder in folders.filter(|folder| !folder.starts_with("samples/")) {
        let folder = format!("config/{folder}/");
        let beside = files.iter().filter(|path| {
            let name = path.strip_prefix(&folder);
            name.is_some_and(|name| {
                !name.contains('/') && name.ends_with(".yaml") && name != "kustomization.yaml"
            })
        });
        let text: Vec<String> = beside.map(|path| read(path)).collect();
        all.push((folder, text.join("\n---\n")));
    }
    let documents = |text: &str| -> Vec<Value> {
        let all = text.split("\n---").filter(|text| text.contains("kind:"));
        all.map(|text| serde_saphyr::from_str(text).unwrap()).collect()
    };
    all.iter()
        .map(|(path, text)| (path.clone(), documents(text)))
        .collect()
}

/// The rules of the Pod Security Standard "restricted" that a pod template breaks. Source: Kubernetes, "Pod Security Standards".
fn unrestricted(pod: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let of_pod = &pod["securityContext"];
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if pod[field] == true {
            broken.push(field.to_owned());
        }
    }
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    for volume in volumes.flat_map(|volume| volume.as_object().into_iter().flatten()) {
        let allowed = [
            "name",
            "configMap",
            "secret",
            "emptyDir",
            "projected",
            "downwardAPI",
            "csi",
            "ephemeral",
            "persistentVolumeClaim",
        ];
        if !allowed.contains(&volume.0.as_str()) {
            broken.push(format!("volume {}", volume.0));
        }
    }
    let containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|field| pod[field].as_array().into_iter().flatten());
    for container in containers {
        let own = &container["securityContext"];
        let name = container["name"].as_str().unwrap_or_default();
        let either = |field: &str| {
            if own[field].is_null() {
                &of_pod[field]
            } else {
                &own[field]
            }
        };
        let drops = own["capabilities"]["drop"].as_array().into_iter().flatten();
        let adds = own["capabilities"]["add"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let host_port = |port: &Value| !port["hostPort"].is_null();
        let rules = [
            (
                "allowPrivilegeEscalation: false",
                own["allowPrivilegeEscalation"] == false,
            ),
            ("privileged", own["privileged"] != true),
            (
                "capabilities.drop: [ALL]",
                drops.clone().any(|each| each == "ALL") && !adds,
            ),
            ("runAsNonRoot: true", *either("runAsNonRoot") == true),
            ("runAsUser", *either("runAsUser") != 0),
            (
                "seccompProfile",
                either("seccompProfile")["type"] == "RuntimeDefault",
            ),
            // More than the standard asks for.
            (
                "readOnlyRootFilesystem: true",
                own["readOnlyRootFilesystem"] == true,
            ),
            (
                "hostPort",
                !container["ports"].as_array().into_iter().flatten().any(host_port),
            ),
        ];
        let of_it = rules.iter().filter(|(_, holds)| !holds);
        broken.extend(of_it.map(|(rule, _)| format!("{name}: {rule}")));
    }
    broken
}

fn is_deployment(document: &&Value) -> bool {
    document["kind"] == "Deployment"
}

#[test]
fn every_pod_that_is_installed_meets_the_restricted_standard() {
    let mut found = 0;
    for (path, documents) in rendered() {
        for deployment in documents.iter().filter(is_deployment) {
            let broken = unrestricted(&deployment["spec"]["template"]["spec"]);
            assert!(
                broken.is_empty(),
                "{path}: {}: {broken:?}",
                deployment["metadata"]["name"]
            );
            found += 1;
        }
    }
    assert!(found > 6, "only {found} Deployments are found");
    let root = serde_json::json!({"hostNetwork": true, "volumes": [{"name": "h", "hostPath": {}}], "containers": [{"name": "c"}]});
    assert_eq!(unrestricted(&root).len(), 7, "{:?}", unrestricted(&root));
}

#[test]
fn every_pod_that_is_installed_has_a_network_policy_for_what_connects_to_it() {
    let mut found = 0;
    for (path, documents) in rendered() {
        let policies = || {
            documents
                .iter()
                .filter(|document| document["kind"] == "NetworkPolicy")
        };
        for deployment in documents.iter().filter(is_deployment) {
            let labels = &deployment["spec"]["template"]["metadata"]["labels"];
            let selects = |policy: &&Value| {
                let wanted = policy["spec"]["podSelector"]["matchLabels"]
                    .as_object()
                    .into_iter()
                    .flatten();
                let types = policy["spec"]["policyTypes"].as_array().into_iter().flatten();
                wanted.clone().count() > 0
                    && wanted.clone().all(|(key, value)| labels[key] == *value)
                    && types.clone().any(|each| each == "Ingress")
            };
            let policy = policies().find(selects);
            let name = &deployment["metadata"]["name"];
            // A case turns one of them off.
            if policy.is_none()
                && path.contains("host-all")
                && name.as_str().is_some_and(|name| name.ends_with("webhook"))
            {
                continue;
            }
            let policy =
                policy.unwrap_or_else(|| panic!("{path}: no NetworkPolicy selects the pods of {name}"));
            let containers = deployment["spec"]["template"]["spec"]["containers"]
                .as_array()
                .into_iter()
                .flatten();
            let ports: Vec<&Value> = containers
                .flat_map(|each| each["ports"].as_array().into_iter().flatten())
                .collect();
            let rules = policy["spec"]["ingress"].as_array().into_iter().flatten();
            let allowed: Vec<&Value> = rules
                .flat_map(|rule| rule["ports"].as_array().into_iter().flatten())
                .collect();
            assert!(
                !ports.is_empty() && !allowed.is_empty(),
                "{path}: {name}: all ports are open, or none is"
            );
            for port in &ports {
                let is_it =
                    |each: &&&Value| each["port"] == port["name"] || each["port"] == port["containerPort"];
                assert!(
                    allowed.iter().any(|each| is_it(&each)),
                    "{path}: {name}: nobody may connect to {port}"
                );
            }
            assert_eq!(allowed.len(), ports.len(), "{path}: {name}: {allowed:?}");
            found += 1;
        }
    }
    assert!(found > 6, "only {found} Deployments are found");
}

#[test]
fn every_fuzz_target_is_a_program_and_the_nightly_script_is_on_the_page() {
    let manifest = read("fuzz/Cargo.toml");
    let files = tree::files(&tree::root()).unwrap();
    let mut found = 0;
    for path in files.iter().filter(|path| path.starts_with("fuzz/fuzz_targets/")) {
        if !read(path).contains("fuzz_target!(") {
            continue;
        }
        let line = format!("path = \"{}\"", path.trim_start_matches("fuzz/"));
        assert!(manifest.contains(&line), "fuzz/Cargo.toml: no [[bin]] has {line}");
        found += 1;
    }
    assert!(found >= 10, "only {found} targets are found");
    assert!(read("docs/contributing.md").contains("hack/fuzz.sh"));
}
