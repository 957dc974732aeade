//! The golden cases of `entourage get`: files in `testdata/get`, each a command line after `#`, and what comes out of
//! `testdata/get/hub.yaml`. `UPDATE_GOLDEN=1` rewrites what comes out.

use std::{fs, path::Path};

use clap::Parser as _;
use entourage_core::object::Time;

use super::{BINDINGS, GetArgs, POLICIES, Seen, What, shown};
use crate::{
    command::{Cli, Command},
    manifests,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/get");

/// 2026-01-01T01:00:00Z: an hour after the objects of the hub were made.
const NOW: Time = Time(1_767_229_200_000);

#[test]
fn every_command_line_comes_out_as_its_file_says() {
    let mut files: Vec<_> = fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{FOLDER} holds {} cases", files.len());
    let wrong: Vec<String> = files.iter().filter_map(|file| run(file)).collect();
    assert!(
        wrong.is_empty(),
        "{}\nUPDATE_GOLDEN=1 accepts what came out.",
        wrong.join("\n")
    );
}

/// What is wrong with a case.
fn run(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).unwrap();
    let (line, want) = text.split_once('\n').unwrap_or((&text, ""));
    let words = line.trim_start_matches("# ").split_whitespace();
    let Command::Get(args) = Cli::try_parse_from(words).unwrap().command else {
        panic!("{}: not a get", file.display());
    };
    let got = printed(&args);
    if want == got {
        return None;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(file, format!("{line}\n{got}")).unwrap();
        return None;
    }
    Some(format!("--- {}\n{want}+++ got\n{got}", file.display()))
}

fn printed(args: &GetArgs) -> String {
    let namespace = match (args.all_namespaces, &args.namespace) {
        (true, _) => "",
        (false, Some(namespace)) => namespace,
        (false, None) => "default",
    };
    match shown(args, namespace, &seen(args.what, namespace), NOW) {
        Ok(text) => text,
        Err(error) => format!("error: {error:#}\n"),
    }
}

/// The hub as it is read for a namespace.
fn seen(what: What, namespace: &str) -> Seen {
    let everywhere =
        namespace.is_empty() || matches!(what, What::Clusters | What::Policies | What::Distributions);
    let hub = manifests::read(&[Path::new(FOLDER).join("hub.yaml")]).unwrap();
    let mut seen = Seen::default();
    for object in hub.iter().map(|each| each.value().unwrap()) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let here = everywhere || object["metadata"]["namespace"] == namespace;
        if kind == "Cluster" {
            seen.clusters.push(object);
        } else if kind == "ResourceDistribution" {
            seen.distributions.push(object);
        } else if ["ConfigMap", "Secret"].contains(&kind) && here {
            seen.distributed.push(object);
        } else if POLICIES.contains(&kind) {
            seen.policies.push(object);
        } else if BINDINGS.contains(&kind) && here {
            seen.bindings.push(object);
        }
    }
    seen
}
