//! Command lines of the Deployments in `config/` and of those that the chart renders: this binary takes each of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use clap::Parser as _;
use entourage::command::Cli;
use serde_json::Value;

#[test]
fn this_binary_takes_the_arguments_of_every_deployment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = files(&root.join("config"));
    files.extend(self::files(&root.join("charts/testdata")));
    let mut components = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for deployment in text
            .split("---\n")
            .filter(|text| text.contains("kind: Deployment\n"))
        {
            for args in arguments(deployment) {
                let line = std::iter::once("entourage").chain(args.iter().map(String::as_str));
                Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                components.insert((file.starts_with(root.join("config")), args[0].clone()));
            }
        }
    }
    let of_config = ["agent", "controllers", "webhook"].map(|name| (true, name.to_owned()));
    let of_chart = ["agent", "controllers", "proxy", "webhook"].map(|name| (false, name.to_owned()));
    assert_eq!(components, of_config.into_iter().chain(of_chart).collect());
}

/// The arguments of each container of a Deployment that runs this project's image.
fn arguments(deployment: &str) -> Vec<Vec<String>> {
    // As Helm reads it: `defaultMode: 0440` is octal.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let deployment: Value = serde_saphyr::from_str_with_options(deployment, options).unwrap();
    let containers = deployment["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap();
    let ours = containers
        .iter()
        .filter(|container| container["image"].as_str().unwrap().contains("entourage"));
    ours.map(|container| {
        let args = container["args"].as_array().unwrap();
        args.iter().map(|arg| arg.as_str().unwrap().to_owned()).collect()
    })
    .collect()
}

/// The YAML files under a folder, without the samples: those are workloads of users.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("samples") {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "yaml") {
            found.push(path);
        }
    }
    found
}
