//! `hack/krew.yaml`: the manifest of the kubectl plugin agrees with the workspace.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::collections::BTreeMap;

use entourage::command::help;
use serde_json::Value;

/// The longest short description that krew's index accepts.
const SHORT: usize = 50;

fn manifest() -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/krew.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_manifest_is_of_this_version_and_names_an_archive_for_each_platform() {
    let manifest = manifest();
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        manifest["apiVersion"],
        "krew.googlecontainertools.github.com/v1alpha2"
    );
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(manifest["metadata"]["name"], env!("CARGO_PKG_NAME"));
    assert_eq!(manifest["spec"]["version"], *version);
    let short = manifest["spec"]["shortDescription"].as_str().unwrap();
    assert!(short.len() <= SHORT && !short.ends_with('.'), "{short}");
    let platforms = manifest["spec"]["platforms"].as_array().unwrap();
    let rust = BTreeMap::from([("amd64", "x86_64"), ("arm64", "aarch64")]);
    assert_eq!(platforms.len(), rust.len());
    for platform in platforms {
        let label = |name: &str| platform["selector"]["matchLabels"][name].as_str().unwrap();
        assert_eq!(label("os"), "linux");
        // As hack/release.sh names it.
        let archive = format!(
            "/{version}/entourage-{}-{}-unknown-linux-gnu.tar.gz",
            env!("CARGO_PKG_VERSION"),
            rust[label("arch")]
        );
        let uri = platform["uri"].as_str().unwrap();
        assert!(uri.starts_with("https://") && uri.ends_with(&archive), "{uri}");
        assert_eq!(platform["bin"], "entourage");
        let sum = platform["sha256"].as_str().unwrap();
        assert!(
            sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{sum}"
        );
    }
}

#[test]
fn the_commands_of_the_caveats_parse() {
    let manifest = manifest();
    let caveats = manifest["spec"]["caveats"].as_str().unwrap();
    let mut lines = caveats
        .lines()
        .filter_map(|line| line.strip_prefix("$ kubectl "))
        .peekable();
    assert!(lines.peek().is_some());
    for line in lines {
        help::parse(line.split(' ').map(Into::into)).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}
