//! The tables of keys: no duplicates, and only keys that servers accept.

use super::*;
use std::collections::BTreeSet;

/// The tables by their names.
const TABLES: &[(&str, &[(&str, &str)])] = &[
    ("label", label::ALL),
    ("annotation", annotation::ALL),
    ("finalizer", finalizer::ALL),
    ("event", event::ALL),
    ("condition", condition::ALL),
    ("reason", reason::ALL),
    ("taint", taint::ALL),
];

#[test]
fn no_table_holds_a_string_twice() {
    for (table, entries) in TABLES {
        let distinct: BTreeSet<_> = entries.iter().map(|(_, value)| value).collect();
        assert_eq!(distinct.len(), entries.len(), "duplicate in {table}");
    }
}

#[test]
fn labels_annotations_and_finalizers_are_qualified_names() {
    for (table, entries) in &TABLES[..3] {
        for (constant, value) in *entries {
            let (domain, name) = value
                .split_once('/')
                .unwrap_or_else(|| panic!("{table} {constant}"));
            assert!(domain.contains('.'), "{table} {constant}");
            // The rest of a key with a prefix is computed.
            let is_whole = !constant.ends_with("_PREFIX");
            assert!(
                !(is_whole && name.is_empty()) && name.len() <= 63,
                "{table} {constant}"
            );
        }
    }
}

#[test]
fn event_and_condition_reasons_are_camel_case() {
    for (table, entries) in &TABLES[3..6] {
        for (constant, value) in *entries {
            assert!(
                value.starts_with(|c: char| c.is_ascii_uppercase()),
                "{table} {constant}"
            );
            assert!(
                value.bytes().all(|b| b.is_ascii_alphanumeric()),
                "{table} {constant}"
            );
        }
    }
}
