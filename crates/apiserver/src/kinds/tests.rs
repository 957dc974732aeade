//! Tests of every row of the table.

use std::{collections::BTreeSet, fs, path::Path};

use super::*;
use crate::{object::Object, printer::View};

mod states;
mod updates;

/// `src/kinds/networking/ip_address.rs` for an IPAddress.
fn file_of(def: &KindDef) -> String {
    let folder = match def.group {
        "" => "core",
        "events.k8s.io" => "events",
        "rbac.authorization.k8s.io" => "rbac",
        group => group.split('.').next().unwrap_or_default(),
    };
    let mut name = String::new();
    let letters: Vec<char> = def.kind.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins = before.is_some_and(char::is_lowercase)
            || before.is_some() && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && begins {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    format!("src/kinds/{folder}/{name}.rs")
}

#[test]
fn every_kind_is_there_once() {
    let mut seen = BTreeSet::new();
    for def in all() {
        assert!(
            seen.insert((def.group, def.version, def.kind)),
            "{} {} twice: in the lists of src/kinds/*.rs",
            def.version,
            def.kind
        );
    }
    let mut names = BTreeSet::new();
    for def in served() {
        for name in [def.plural].iter().chain(def.short) {
            assert!(
                names.insert((def.group, def.version, *name)),
                "{}: {name} is the name of another kind of the group",
                file_of(def)
            );
        }
    }
}

#[test]
fn every_file_of_a_group_is_a_kind_of_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let expected: BTreeSet<String> = all().map(file_of).collect();
    for file in &expected {
        assert!(root.join(file).is_file(), "there is no {file}");
    }
    for group in fs::read_dir(root.join("src/kinds")).unwrap() {
        let folder = group.unwrap().path();
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            assert!(
                !text.contains("static DEF: KindDef") || expected.contains(&name),
                "{name} is in no list: add `mod` and `&…::DEF` to {}.rs",
                folder.strip_prefix(root).unwrap().display()
            );
        }
    }
}

#[test]
fn every_kind_has_a_cell_for_each_column() {
    let object = Object::new();
    for def in served() {
        let cells = def.printer.cells(&View {
            object: &object,
            now: 0,
        });
        let columns = def.printer.columns.len();
        assert_eq!(cells.len(), columns, "{}: cells of the printer", file_of(def));
    }
}

#[test]
fn the_fields_of_every_kind_are_known() {
    for def in all() {
        let (schema, file) = (def.root.schema(), file_of(def));
        assert!(schema.properties.contains_key("metadata"), "{file}: no fields");
        if def.subresources.contains(&"status") {
            assert!(schema.properties.contains_key("status"), "{file}: no status");
        }
    }
}

#[test]
fn pod_specs_are_where_a_kind_says() {
    for def in all() {
        let mut node = def.root.schema();
        for step in def.pod_spec {
            let found = node.properties.get(*step).cloned();
            node = found.unwrap_or_else(|| panic!("{}: pod_spec: no {step}", file_of(def)));
        }
        let expected = "io.k8s.api.core.v1.PodSpec";
        assert!(
            def.pod_spec.is_empty() || node.definition.as_deref() == Some(expected),
            "{}: pod_spec is none",
            file_of(def)
        );
    }
}
