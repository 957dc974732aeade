//! The files as a table, and against the golden cases: every path of every rule must have an effect in one.

use std::{collections::BTreeSet, fs, path::Path};

use entourage_api::config::declarative::{DeclarativeRules, DependencyRule, PodTemplateRule};
use serde_json::{Value, json};

use super::*;
use crate::{NATIVE, golden::shipped_cases, native};
use entourage_golden::is_updating;

fn files() -> Vec<(&'static str, File)> {
    let parse = |(path, text): &(&'static str, &str)| {
        let (file, _) = read(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        (*path, file)
    };
    FILES.iter().map(parse).collect()
}

fn objects(file: &File) -> Vec<Value> {
    let cases = shipped_cases(&file.group, &file.kind);
    cases.into_iter().map(|case| case.object).collect()
}

/// The matches of rules in an object within its own namespace.
fn found(rules: &DeclarativeRules, object: &Value) -> bool {
    let rules = Declared::compile(rules).unwrap();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    !rules.references(namespace, object).is_empty()
}

#[test]
fn every_file_is_listed_once_and_named_after_its_kind() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/shipped");
    let mut on_disk = Vec::new();
    for group in fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
    {
        for file in fs::read_dir(&group).unwrap().map(|entry| entry.unwrap().path()) {
            let file = file.with_extension("");
            on_disk.push(file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
        }
    }
    on_disk.sort();
    let listed: Vec<_> = FILES.iter().map(|(path, _)| *path).collect();
    for path in &on_disk {
        let is_listed = listed.contains(&path.as_str());
        assert!(
            is_listed,
            "{path}: list it in FILES (crates/interpreter/src/shipped/table.rs)"
        );
    }
    assert_eq!(listed, on_disk, "sorted, each file once");
    for (path, file) in files() {
        assert_eq!(path, format!("{}/{}", file.group, file.kind));
        assert!(
            !file.versions.is_empty() && !file.summary.is_empty() && !file.source.is_empty(),
            "{path}"
        );
        assert!(
            file.left_out
                .iter()
                .all(|each| !each.field.is_empty() && !each.reason.is_empty()),
            "{path}"
        );
    }
}

#[test]
fn every_kind_is_found_in_each_of_its_versions_and_none_hides_a_native_one() {
    let mut seen = BTreeSet::new();
    for kind in all() {
        let gvk = kind.gvk();
        assert!(seen.insert(gvk), "{gvk:?} twice");
        assert!(NATIVE.iter().all(|native| native.gvk() != gvk), "{gvk:?}");
        let found = native(gvk.group, gvk.version, gvk.kind).expect("a shipped kind");
        assert!(found.declared().is_some(), "{gvk:?}");
        assert!(native(gvk.group, "v0", gvk.kind).is_none());
    }
}

#[test]
fn no_field_of_a_file_is_unknown() {
    for (path, text) in FILES {
        let given: Value = serde_saphyr::from_str(text).unwrap();
        let (file, _) = read(text).unwrap();
        assert_eq!(
            json!(file.rules),
            given["rules"],
            "{path}: a field that is not read, or is the default"
        );
    }
}

#[test]
fn every_path_that_names_something_is_seen_in_a_golden_case() {
    let mut unseen = Vec::new();
    for (file_path, file) in files() {
        let objects = objects(&file);
        let mut check = |what: &str, rules: &DeclarativeRules| {
            if !objects.iter().any(|object| found(rules, object)) {
                unseen.push(format!("{file_path}: {what}"));
            }
        };
        for rule in &file.rules.dependencies {
            for path in &rule.paths {
                let one = DependencyRule {
                    paths: vec![path.clone()],
                    ..rule.clone()
                };
                check(
                    path,
                    &DeclarativeRules {
                        dependencies: vec![one],
                        ..DeclarativeRules::default()
                    },
                );
            }
        }
        for rule in &file.rules.pod_templates {
            for path in &rule.paths {
                let one = PodTemplateRule {
                    paths: vec![path.clone()],
                    ..rule.clone()
                };
                check(
                    path,
                    &DeclarativeRules {
                        pod_templates: vec![one],
                        ..DeclarativeRules::default()
                    },
                );
            }
        }
        for path in &file.rules.containers {
            check(
                path,
                &DeclarativeRules {
                    containers: vec![path.clone()],
                    ..DeclarativeRules::default()
                },
            );
        }
    }
    assert!(unseen.is_empty(), "add the field to a case: {unseen:#?}");
}

#[test]
fn every_rule_about_status_and_replicas_is_seen_in_a_golden_case() {
    let mut unseen = Vec::new();
    for (path, file) in files() {
        let cases = shipped_cases(&file.group, &file.kind);
        let wants: Vec<_> = cases.into_iter().map(|case| case.want).collect();
        let rules = &file.rules;
        let has_aggregation = rules.status_aggregation.is_some();
        let has_components = Declared::compile(rules).unwrap().has_components();
        for (is_there, answer) in [
            (rules.health.is_some(), "health"),
            (rules.status_reflection.is_some(), "reflected"),
            (has_aggregation, "aggregated"),
            (!rules.retention.is_empty(), "retained"),
            (rules.replicas.is_some(), "replicas"),
            (has_components, "components"),
        ] {
            let is_shown = |want: &&Value| match &want[answer] {
                Value::Null => false,
                Value::Array(list) => !list.is_empty(),
                Value::String(health) => health != "Healthy",
                _ => true,
            };
            let may_be_shown = answer == "reflected" || (answer == "retained" && rules.replicas.is_some());
            if is_there != wants.iter().any(|want| is_shown(&want)) && (is_there || !may_be_shown) {
                unseen.push(format!("{path}: {answer}"));
            }
        }
    }
    assert!(
        unseen.is_empty(),
        "rules without a case, or cases without a rule: {unseen:#?}"
    );
}

#[test]
fn an_object_of_a_cluster_scoped_kind_takes_along_what_lies_in_a_namespace_that_it_names() {
    for (path, file) in files().into_iter().filter(|(_, file)| file.cluster_scoped) {
        for object in objects(&file) {
            assert!(object["metadata"]["namespace"].is_null(), "{path}");
            let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
            let kind = native(group, version, &file.kind).unwrap();
            let found = crate::references::references(kind, "", &object);
            assert!(found.iter().all(|each| !each.id.namespace.is_empty()), "{path}");
        }
    }
}

#[test]
fn a_kind_asks_for_as_many_replicas_as_it_was_revised_to() {
    for kind in all() {
        for object in objects(kind.file()) {
            let Some(before) = kind.replicas(&object) else {
                continue;
            };
            let mut revised = object.clone();
            kind.revise_replicas(&mut revised, before + 3);
            assert_eq!(kind.replicas(&revised), Some(before + 3), "{:?}", kind.gvk());
        }
    }
}

/// The tables in `docs/interpreter.md`, each between its two comments.
#[test]
fn the_documentation_shows_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interpreter.md");
    let mut text = fs::read_to_string(&path).unwrap();
    let before = text.clone();
    for (name, table) in [("shipped kinds", kinds_table()), ("left out", left_out_table())] {
        let begin = format!("<!-- {name}: made of crates/interpreter/src/shipped by its test -->\n");
        let end = format!("<!-- end of {name} -->");
        let (head, rest) = text
            .split_once(&begin)
            .expect("the comment that begins the table");
        let (_, tail) = rest.split_once(&end).expect("the comment that ends the table");
        text = format!("{head}{begin}{table}{end}{tail}");
    }
    if is_updating() {
        fs::write(&path, &text).unwrap();
    }
    assert!(
        before == text || is_updating(),
        "docs/interpreter.md: UPDATE_GOLDEN=1 cargo test -p entourage-interpreter writes the tables anew"
    );
}

fn kinds_table() -> String {
    let mut table =
        "\n| Kind | Group | Versions | references | replicas | components | retain | aggregate | health |\n"
            .to_owned();
    table.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for (_, file) in files() {
        let rules = Declared::compile(&file.rules).unwrap();
        let marks = [
            rules.refers(),
            file.rules.replicas.is_some(),
            rules.has_components(),
            !file.rules.retention.is_empty(),
            file.rules.status_aggregation.is_some(),
            file.rules.health.is_some(),
        ];
        let marks = marks.map(|is_there| if is_there { "•" } else { "" }).join(" | ");
        let kind = if file.cluster_scoped {
            format!("*{}*", file.kind)
        } else {
            file.kind
        };
        table.push_str(&format!(
            "| {kind} | {} | {} | {marks} |\n",
            file.group,
            file.versions.join(", ")
        ));
    }
    table.push('\n');
    table
}

fn left_out_table() -> String {
    let mut table = "\n| Kind | Group | Field | Why |\n|---|---|---|---|\n".to_owned();
    for (_, file) in files() {
        for LeftOut { field, reason } in &file.left_out {
            table.push_str(&format!(
                "| {} | {} | {field} | {reason} |\n",
                file.kind, file.group
            ));
        }
    }
    table.push('\n');
    table
}
