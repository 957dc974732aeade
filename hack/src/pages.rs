//! What the pages of the documentation name must exist, and what users meet must be named there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::tree;

/// The pages, and README and CHANGELOG.
fn pages() -> Vec<(String, String)> {
    let root = tree::root();
    let all = tree::files(&root).unwrap();
    let is_page = |path: &String| path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'));
    let read = |path: String| {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        (path, text)
    };
    all.into_iter().filter(is_page).map(read).collect()
}

/// What stands in `[text](target)`, addresses of the web left out.
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
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    // Names of tests are sentences: nothing else on that page has so many words.
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
    assert!(found > 20, "only {found} tests are named");
}

#[test]
fn every_string_that_users_meet_is_explained() {
    use entourage_api::keys::{annotation, condition, event, finalizer, label, reason};
    let root = tree::root();
    let code: String = tree::files(&root)
        .unwrap()
        .into_iter()
        .filter(|path| path.starts_with("crates/") && path.ends_with(".rs"))
        .filter(|path| !path.ends_with("/keys.rs") && !path.contains("tests"))
        .map(|path| fs::read_to_string(root.join(path)).unwrap())
        .collect();
    let page = fs::read_to_string(root.join("docs/concepts.md")).unwrap();
    let tables = [
        ("annotation", annotation::ALL),
        ("condition", condition::ALL),
        ("event", event::ALL),
        ("finalizer", finalizer::ALL),
        ("label", label::ALL),
        ("reason", reason::ALL),
    ];
    for (table, all) in tables {
        for (constant, string) in all {
            let name = string.rsplit('/').next().unwrap_or(string);
            let is_used = code.contains(&format!("{table}::{constant}"));
            assert!(
                !is_used || page.contains(name),
                "docs/concepts.md says nothing of {string}"
            );
        }
    }
}
