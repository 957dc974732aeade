//! The parts of the reference schemas that the CRDs must keep, and the quality of the CRDs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

use super::*;

/// Deliberate differences from the reference schema: `(part of the reference line, reason)`.
const STRICTER: &[(&str, &str)] = &[
    (
        "clusters v1alpha1 .spec.syncMode string -",
        "Karmada's API server refuses other modes in code; a schema must say so to keep every object readable",
    ),
    ("federatedresourcequotas - #names", "a short name is an addition"),
    (
        "propagationpolicies v1alpha1 #version",
        "a policy says in its status whether it propagates anything: the status subresource is an addition",
    ),
    (
        "resourcedistributions v1alpha1 #version",
        "v1alpha1 is stored, as in every release of OpenKruise",
    ),
    (
        "resourcedistributions v1beta1 #version",
        "v1alpha1 is stored, as in every release of OpenKruise",
    ),
    (
        " .spec.resource object - required",
        "what is distributed may be an object that stands somewhere: resourceFrom",
    ),
    (
        ".spec.targets.namespaceLabelSelector object -",
        "labels alone, as in the first proposal, are kept instead of being dropped in silence",
    ),
    (
        ".spec.targets.namespaceSelector object -",
        "labels alone, as in the first proposal, are kept instead of being dropped in silence",
    ),
];

/// Lists and texts with a limit that the reference schema does not have: far above any real object, it keeps the estimated cost
/// of a rule within what servers allow. Parts of reference lines.
const LIMITED: &[&str] = &[
    ".fieldSelector.matchExpressions array",
    ".targetCluster.labelSelector.matchExpressions array",
    ".spec.overrideRules array",
    ".placement.clusterAffinities array",
    ".placement.clusterAffinities[].overflowAffinities array",
    ".placement.clusterTolerations array",
    ".placement.spreadConstraints array",
    ".groupByLabelKey string",
    ".statePreservation.rules array",
    ".aliasLabelName string",
    "clustertaintpolicies v1alpha1 .spec.taints array",
    "clustertaintpolicies v1alpha1 .spec.taints[].key string",
    "clustertaintpolicies v1alpha1 .spec.taints[].effect string",
    "resourceinterpreterwebhookconfigurations v1alpha1 .webhooks",
];

fn as_json(crd: &CustomResourceDefinition) -> Value {
    serde_json::to_value(crd).unwrap()
}

fn our_facts() -> Vec<String> {
    crds(None)
        .iter()
        .flat_map(|crd| facts::facts(&as_json(crd)))
        .collect()
}

/// The facts of upstream's CRDs.
const UPSTREAM: &str = concat!(
    include_str!("../../testdata/upstream-fields.txt"),
    include_str!("../../testdata/upstream-fields-quotas.txt")
);

#[test]
fn the_table_is_sorted_without_duplicates_and_each_entry_says_what_it_is() {
    let names: Vec<_> = CRDS.iter().map(|entry| entry.name).collect();
    let distinct: BTreeSet<_> = names.iter().copied().collect();
    assert_eq!(names, distinct.into_iter().collect::<Vec<_>>());
    for entry in CRDS {
        assert!(entry.summary.ends_with('.'), "{}", entry.name);
        assert_eq!((entry.make)().metadata.name.as_deref(), Some(entry.name));
    }
}

#[test]
fn every_field_of_the_reference_schema_is_kept() {
    let ours: BTreeSet<String> = our_facts().into_iter().collect();
    let by_path: BTreeMap<String, &String> = ours.iter().map(|line| (path_of(line), line)).collect();
    let reference = UPSTREAM;
    let wrong: Vec<String> = reference
        .lines()
        .filter(|line| !ours.contains(*line))
        .filter(|line| !STRICTER.iter().any(|(part, _)| line.contains(part)))
        .filter(|line| {
            let limited = LIMITED.iter().any(|part| line.contains(part));
            let ours = by_path.get(&path_of(line)).map(|ours| without_limits(ours));
            !(limited && ours.as_deref() == Some(*line))
        })
        .map(|line| match by_path.get(&path_of(line)) {
            Some(other) => format!("reference {line}\n     ours {other}"),
            None => format!("reference {line}\n     ours lacks it"),
        })
        .collect();
    assert!(
        reference.lines().count() > 500,
        "the list of reference fields is incomplete"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let parts = LIMITED.iter().chain(STRICTER.iter().map(|(part, _)| part));
    for part in parts {
        let is_used = |line: &str| line.contains(part) && !ours.contains(line);
        assert!(reference.lines().any(is_used), "{part} excuses nothing");
    }
}

#[test]
fn what_we_add_to_the_reference_schema_is_known() {
    let reference: BTreeSet<String> = UPSTREAM.lines().map(path_of).collect();
    let added: Vec<String> = our_facts()
        .iter()
        .filter(|line| !line.contains(" #"))
        .map(|line| path_of(line))
        .filter(|path| !reference.contains(path))
        .collect();
    let known = [
        "clusterpropagationpolicies v1alpha1 .status",
        "clusterresourcebindings v1alpha2 .status.aggregatedStatus[].appliedReason",
        "clusterresourcebindings v1alpha2 .status.aggregatedStatus[].copy",
        "clusterresourcebindings v1alpha2 .status.aggregatedStatus[].unhealthySince",
        "propagationpolicies v1alpha1 .status",
        "resourcebindings v1alpha2 .status.aggregatedStatus[].appliedReason",
        "resourcebindings v1alpha2 .status.aggregatedStatus[].copy",
        "resourcebindings v1alpha2 .status.aggregatedStatus[].unhealthySince",
        "resourcedistributions v1alpha1 .spec.deletionPolicy",
        "resourcedistributions v1alpha1 .spec.resourceFrom",
        "resourcedistributions v1alpha1 .spec.targets.",
        "resourcedistributions v1alpha1 .spec.writePolicy",
        "resourcedistributions v1alpha1 .status.",
        "resourcedistributions v1beta1 .spec.deletionPolicy",
        "resourcedistributions v1beta1 .spec.resourceFrom",
        "resourcedistributions v1beta1 .spec.targets.",
        "resourcedistributions v1beta1 .spec.writePolicy",
        "resourcedistributions v1beta1 .status.",
        "resourceexploringwebhookconfigurations v1alpha1 ",
        "serviceexports v1alpha1 ",
        "serviceimports v1alpha1 ",
        "resourceinterpretercustomizations v1alpha1 .spec.declarative",
        "resourceinterpretercustomizations v1alpha1 .spec.merge",
    ];
    for path in added {
        assert!(
            known.iter().any(|start| path.starts_with(start)),
            "{path} is not in the reference schema: name it in `known` of this test (crates/api/src/crds/tests.rs) if it is meant"
        );
    }
}

#[test]
fn every_field_has_a_description() {
    fn missing(path: &str, schema: &JSONSchemaProps, found: &mut Vec<String>) {
        for (name, property) in schema.properties.iter().flatten() {
            let path = format!("{path}.{name}");
            if name == "metadata" {
                assert_eq!(property.description, None, "{path}: a server refuses this");
                continue;
            }
            if property.description.as_deref().is_none_or(str::is_empty) {
                found.push(path.clone());
            }
            missing(&path, property, found);
        }
        if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
            missing(&format!("{path}[]"), items, found);
        }
    }
    let mut found = Vec::new();
    for mut crd in crds(None) {
        for version in &mut crd.spec.versions {
            missing(&crd.spec.names.kind, root(version).unwrap(), &mut found);
        }
    }
    assert!(
        found.is_empty(),
        "write a doc comment for users, in crates/api/src, on: {}",
        found.join(", ")
    );
}

#[test]
fn no_description_shows_rust() {
    for (name, text) in files().unwrap() {
        for rust in ["[`", "::", "Option<"] {
            assert!(!text.contains(rust), "{name} contains {rust}");
        }
    }
}

#[test]
fn the_committed_files_are_what_the_types_say() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    let files = files().unwrap();
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(&dir).unwrap();
        for (name, text) in &files {
            fs::write(dir.join(name), text).unwrap();
        }
    }
    let committed: BTreeSet<PathBuf> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    let generated: BTreeSet<PathBuf> = files.keys().map(|name| dir.join(name)).collect();
    assert_eq!(committed, generated);
    for (name, text) in &files {
        let committed = fs::read_to_string(dir.join(name)).unwrap();
        assert!(committed == *text, "crds/{name}: cargo xtask crds writes it anew");
    }
}

#[test]
fn yaml_reads_back_as_the_same_definition() {
    for crd in crds(None) {
        let back: Value = serde_saphyr::from_str(&to_yaml(&crd).unwrap()).unwrap();
        assert_eq!(back, as_json(&crd));
    }
}

#[test]
fn an_old_server_gets_no_rules() {
    let has_rules = |server| {
        let all: Vec<Value> = crds(server).iter().map(as_json).collect();
        serde_json::to_string(&all)
            .unwrap()
            .contains("x-kubernetes-validations")
    };
    assert!(!has_rules(ServerVersion::parse("1", "20+")));
    assert!(!has_rules(ServerVersion::parse("1", "24")));
    assert!(has_rules(ServerVersion::parse("1", "25")));
    assert!(has_rules(None));
}

#[test]
fn server_versions_are_read_with_and_without_suffix() {
    assert_eq!(
        ServerVersion::parse("1", "33"),
        Some(ServerVersion { major: 1, minor: 33 })
    );
    assert_eq!(
        ServerVersion::parse("1", "20+"),
        Some(ServerVersion { major: 1, minor: 20 })
    );
    assert_eq!(ServerVersion::parse("", ""), None);
}

/// The part of a line that names a path, column or property of a CRD, without its attributes.
fn path_of(line: &str) -> String {
    let words = if line.contains(" #column ") { 4 } else { 3 };
    line.split(' ').take(words).collect::<Vec<_>>().join(" ")
}

/// A line without the limits of lists and texts.
fn without_limits(line: &str) -> String {
    let is_limit = |word: &str| word.starts_with("maxItems=") || word.starts_with("maxLength=");
    line.split(' ')
        .filter(|word| !is_limit(word))
        .collect::<Vec<_>>()
        .join(" ")
}
