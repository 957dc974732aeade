//! The first message to a page, for the hub of `testdata/get/hub.yaml`: `testdata/ui/page.json`, which the test of the page in a
//! browser serves as well (hack/ui.sh). `UPDATE_GOLDEN=1` rewrites it.

use std::collections::BTreeSet;

use super::*;
use crate::{golden, manifests};

#[test]
fn a_hub_comes_out_as_the_message_of_the_file() {
    let file = golden::folder("ui").join("page.json");
    entourage_golden::compare("ui", 1, vec![file], |file| (file.to_owned(), message()));
}

#[test]
fn every_source_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = SOURCES.iter().map(|source| source.name).collect();
    assert_eq!(names.len(), SOURCES.len());
}

fn message() -> String {
    let mut board = Board::default();
    let hub = manifests::read(&[golden::folder("get").join("hub.yaml")]).unwrap();
    for mut object in hub.iter().map(|each| each.value().unwrap()) {
        let source = SOURCES.iter().find(|source| object["kind"] == source.kind);
        if let Some(source) = source {
            let summary = source.summary(&mut object);
            source.show(summary, &mut board);
        }
    }
    for source in SOURCES {
        board.set_source(source.name, None);
    }
    let delta = board.delta(0);
    let message: Value = serde_json::from_str(&delta.json).unwrap();
    serde_json::to_string_pretty(&message).unwrap() + "\n"
}
