//! Checks that names in the documentation exist, and that user-visible names are documented.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::tree;

/// The pages, README and CHANGELOG, and the page of the chart.
fn pages() -> Vec<(String, String)> {
    let root = tree::root();
    let all = tree::files(&root).unwrap();
    let is_page = |path: &String| {
        let folder = path.split_once('/').map_or("", |(folder, _)| folder);
        path.ends_with(".md") && ["", "docs", "charts"].contains(&folder)
    };
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        (path, text)
    };
    all.into_iter().filter(is_page).map(read).collect()
}

const ADMISSION: &str = "docs/reference/admission.md";
const ALERTS: &str = "config/monitoring/alerts.yaml";
const CONDITIONS: &str = "docs/reference/conditions.md";
const DASHBOARD: &str = "config/monitoring/dashboard.json";
const KINDS: &str = "docs/reference/kinds.md";
const MEMBERS: &str = "docs/reference/members.md";
const METADATA: &str = "docs/reference/metadata.md";
const METRICS: &str = "docs/reference/metrics.md";

/// The text of one file of the checkout.
fn read(path: &str) -> String {
    fs::read_to_string(tree::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The targets of links `[text](target)`, without URLs.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://"))
}

/// A heading as it is linked to: lower case, spaces as dashes, other marks left out.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .replace(' ', "-");
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
                .collect()
        })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        let folder = Path::new(&page).parent().unwrap_or(Path::new(""));
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => tree::root().join(&page),
                _ => tree::root().join(folder).join(file),
            };
            let known = anchor.is_empty()
                || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor));
            if !target.exists() || !known {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_test_that_a_page_points_at_exists() {
    let root = tree::root();
    let sources: Vec<(String, String)> = tree::files(&root)
        .unwrap()
        .into_iter()
        .filter(|path| path.ends_with(".rs"))
        .map(|path| {
            let text = fs::read_to_string(root.join(&path)).unwrap();
            (path, text)
        })
        .collect();
    let page: String = ["docs/architecture.md", "docs/conformance-distribution.md"]
        .map(|page| fs::read_to_string(root.join(page)).unwrap())
        .concat();
    // Names of tests are sentences: nothing else on these pages has so many words.
    let names = page.split('`').filter(|word| {
        let name = word.rsplit("::").next().unwrap_or(word);
        name.matches('_').count() >= 2
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    });
    let mut found = 0;
    for name in names {
        let (file, name) = match name.rsplit_once("::") {
            Some((module, name)) => (module.replace("e2e::", "e2e/tests/e2e/") + ".rs", name),
            None => (String::new(), name),
        };
        let exists = sources
            .iter()
            .any(|(path, text)| path.ends_with(&file) && text.contains(&format!("fn {name}(")));
        assert!(exists, "there is no test {name} in {file:?}");
        found += 1;
    }
    assert!(found > 80, "only {found} tests are named");
}

#[test]
fn every_case_of_admission_that_a_page_points_at_exists() {
    let root = tree::root();
    let page = fs::read_to_string(root.join("docs/conformance-distribution.md")).unwrap();
    let cases: Vec<&str> = page.split('`').filter(|word| word.ends_with(".yaml")).collect();
    for case in &cases {
        let file = root.join("crates/admission/testdata/admission").join(case);
        assert!(file.exists(), "there is no case {case}");
    }
    assert!(cases.len() > 20, "only {} cases are named", cases.len());
}

#[test]
fn every_string_that_users_meet_is_explained() {
    use entourage_api::keys::{annotation, condition, event, finalizer, label, reason, taint};
    let root = tree::root();
    let code: String = tree::files(&root)
        .unwrap()
        .into_iter()
        .filter(|path| path.starts_with("crates/") && path.ends_with(".rs"))
        .filter(|path| !path.ends_with("/keys.rs") && !path.contains("tests"))
        .map(|path| fs::read_to_string(root.join(path)).unwrap())
        .collect();
    let tables = [
        ("annotation", annotation::ALL, METADATA),
        ("condition", condition::ALL, CONDITIONS),
        ("event", event::ALL, "docs/reference/events.md"),
        ("finalizer", finalizer::ALL, METADATA),
        ("label", label::ALL, METADATA),
        ("reason", reason::ALL, CONDITIONS),
        ("taint", taint::ALL, MEMBERS),
    ];
    let mut missing = Vec::new();
    for (table, all, path) in tables {
        let page = read(path);
        // The texts between backticks.
        let words: BTreeSet<&str> = page
            .split('`')
            .skip(1)
            .step_by(2)
            .flat_map(str::split_whitespace)
            .collect();
        for (constant, string) in all {
            let name = string.rsplit('/').next().unwrap_or(string);
            let is_used = code.contains(&format!("{table}::{constant}"));
            // The name of a label may stand in a longer one, as its prefix does.
            let is_named = match string.contains('/') {
                true => words.iter().any(|word| word.contains(name)),
                false => words.contains(name),
            };
            if is_used && !is_named {
                missing.push(format!(
                    "{path}: add a line for `{string}` ({table}::{constant} of crates/api/src/keys.rs)"
                ));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_admission_rule_is_listed() {
    let page = read(ADMISSION);
    for rule in entourage_admission::RULES {
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", rule.name)));
        let (says, reason) = (&rule.says[1..], rule.reason);
        assert!(
            line.is_some_and(|line| line.contains(says) && line.contains(reason)),
            "{ADMISSION}: add a row for `{}` with {says:?} and {reason:?}",
            rule.name
        );
    }
}

#[test]
fn every_kind_is_listed() {
    let page = read(KINDS);
    for crd in entourage_api::crds::crds(None) {
        let names = &crd.spec.names;
        let short = names.short_names.iter().flatten();
        let short: String = short.map(|name| format!(" ({name})")).collect();
        let versions: Vec<_> = crd
            .spec
            .versions
            .iter()
            .rev()
            .map(|version| &version.name)
            .collect();
        let row = format!("| {}{short} | `{}/{}`", names.kind, crd.spec.group, versions[0]);
        assert!(page.contains(&row), "{KINDS}: add a row that begins {row:?}");
    }
}

/// A row that follows neither a row nor the line under a head is shown as text.
#[test]
fn every_row_belongs_to_a_table() {
    for (page, text) in pages() {
        let mut before = "";
        for (at, line) in text.lines().enumerate() {
            let begins = line.starts_with('|') && !before.starts_with('|');
            let head = text.lines().nth(at + 1).unwrap_or_default();
            assert!(
                !begins || head.starts_with("|-"),
                "{page}:{}: a row outside of a table: {line}",
                at + 1
            );
            before = line;
        }
    }
}

#[test]
fn every_column_is_explained() {
    let page = read(CONDITIONS);
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line[2..].split_once(" | "))
        .collect();
    for crd in entourage_api::crds::crds(None) {
        let kind = &crd.spec.names.kind;
        for column in crd
            .spec
            .versions
            .iter()
            .flat_map(|version| version.additional_printer_columns.iter().flatten())
        {
            let name = format!("`{}`", column.name);
            let is_of = |of: &str| {
                let of = of.split(" | ").next().unwrap_or_default();
                of.starts_with("all of these") || of.split(", ").any(|each| each == kind)
            };
            assert!(
                rows.iter()
                    .any(|(names, rest)| names.contains(&name) && is_of(rest)),
                "{CONDITIONS}: add a row for the column {name} of {kind}"
            );
        }
    }
}

/// Metrics are registered by name without `entourage_`, and those of the process by their whole name. Counters end in `_total` when
/// they are shown.
#[test]
fn every_metric_is_listed_and_every_listed_one_exists() {
    let page = read(METRICS);
    let named = |path: &str, before: &str| -> Vec<String> {
        let code = read(path);
        let after = code.split(before).skip(1);
        let names = after.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        names.map(str::to_owned).collect()
    };
    let mut ours = named("crates/controllers/src/metrics.rs", "ours.register(");
    ours.extend(named("crates/controllers/src/metrics/proxy.rs", "ours.register("));
    let ours: Vec<String> = ours.iter().map(|name| format!("entourage_{name}")).collect();
    let mut process = named("crates/controllers/src/metrics/process.rs", "encode_descriptor(");
    process.extend(named(
        "crates/controllers/src/metrics/problems.rs",
        "encode_descriptor(",
    ));
    process.extend(named("crates/webhook/src/metrics.rs", "_NAME: &str ="));
    assert!(
        ours.len() >= 21 && process.len() >= 9,
        "the names are not found in the source: {ours:?}, {process:?}"
    );
    // Each row begins with one name.
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let rows: BTreeSet<&str> = rows
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("entourage_") || name.starts_with("process_"))
        .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let known: BTreeSet<&str> = ours.iter().chain(&process).map(String::as_str).collect();
    for name in &known {
        let is_listed = rows.contains(name) || rows.contains(format!("{name}_total").as_str());
        assert!(is_listed, "{METRICS}: add a row for `{name}`");
    }
    for name in rows {
        let counted = name.strip_suffix("_total").unwrap_or(name);
        assert!(
            known.contains(name) || known.contains(counted),
            "{METRICS}: nothing registers `{name}`: remove its row, and what {ALERTS} and {DASHBOARD} make of it"
        );
    }
}
