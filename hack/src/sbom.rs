//! `cargo xtask sbom`: the software bill of materials of the binary `entourage`, CycloneDX 1.5 as JSON.
//!
//! Components are the normal dependencies of the package on the platforms that images are made for, as `cargo metadata` resolves them, with
//! the checksums of Cargo.lock. The same sources give the same bytes: there is no time and no random number in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{Outcome, tree};

/// The package whose binary is shipped.
const SHIPPED: &str = "entourage";

/// The platforms that images are made for.
const PLATFORMS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Writes the bill to the file that is named, or into the build folder, after it was checked.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    let mut resolved = Resolved::default();
    let mut target = PathBuf::new();
    for platform in PLATFORMS {
        let args = [
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            platform,
        ];
        let metadata: Value = serde_json::from_str(&cargo(&args)?).context("cargo metadata")?;
        resolved.add(&metadata)?;
        target = metadata["target_directory"].as_str().unwrap_or("target").into();
    }
    let lock = std::fs::read_to_string(tree::root().join("Cargo.lock")).context("Cargo.lock")?;
    let bill = bill(&resolved, &checksums(&lock))?;
    for platform in PLATFORMS {
        let listed = [
            "tree",
            "--locked",
            "--package",
            SHIPPED,
            "--edges",
            "normal",
            "--target",
            platform,
        ];
        let listed = cargo(
            &[
                &listed[..],
                &["--prefix", "none", "--no-dedupe", "--format", "{p}"],
            ]
            .concat(),
        )?;
        complete(&bill, &listed).with_context(|| format!("cargo tree for {platform}"))?;
    }
    let path = match args {
        [] => target.join("sbom").join(format!("{SHIPPED}.cdx.json")),
        [path] => PathBuf::from(path),
        other => bail!("one file at most, not {other:?}"),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&bill)?))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let count = bill["components"].as_array().map_or(0, Vec::len);
    Ok(Outcome::Done(format!("{count} components in {}", path.display())))
}

fn cargo(args: &[&str]) -> Result<String> {
    let done = Command::new("cargo")
        .args(args)
        .current_dir(tree::root())
        .output();
    let done = done.context("cannot start cargo")?;
    let errors = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "cargo {}: {errors}", args.join(" "));
    String::from_utf8(done.stdout).context("cargo prints no UTF-8")
}

/// Packages and their normal dependencies, by id.
#[derive(Default)]
struct Resolved {
    packages: BTreeMap<String, Value>,
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

impl Resolved {
    /// Adds what is reached from the shipped package over normal dependencies.
    fn add(&mut self, metadata: &Value) -> Result<()> {
        let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let by_id = |values: Vec<Value>| -> BTreeMap<String, Value> {
            values
                .into_iter()
                .map(|value| (id(&value["id"]), value))
                .collect()
        };
        let packages = by_id(all(&metadata["packages"]));
        let nodes = by_id(all(&metadata["resolve"]["nodes"]));
        let root = packages.iter().find(|(_, package)| package["name"] == SHIPPED);
        let mut open = vec![root.context("no package entourage")?.0.clone()];
        let mut seen = BTreeSet::new();
        while let Some(next) = open.pop() {
            if !seen.insert(next.clone()) {
                continue;
            }
            let is_normal = |dependency: &Value| {
                all(&dependency["dep_kinds"])
                    .iter()
                    .any(|kind| kind["kind"].is_null())
            };
            let normal = nodes
                .get(&next)
                .map(|node| all(&node["deps"]))
                .unwrap_or_default();
            let normal: Vec<String> = normal
                .iter()
                .filter(|each| is_normal(each))
                .map(|each| id(&each["pkg"]))
                .collect();
            open.extend(normal.iter().cloned());
            let package = packages
                .get(&next)
                .with_context(|| format!("no package {next}"))?;
            self.packages.insert(next.clone(), package.clone());
            self.dependencies.entry(next).or_default().extend(normal);
        }
        Ok(())
    }
}

/// The checksums of Cargo.lock by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |block: &str, name: &str| {
        let mut lines = block.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        value.map(|value| value.trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    let all = blocks.filter_map(|block| {
        let of = (field(block, "name")?, field(block, "version")?);
        Some((of, field(block, "checksum").unwrap_or_default()))
    });
    all.collect()
}

fn bill(resolved: &Resolved, checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let (mut components, mut dependencies, mut shipped) = (BTreeMap::new(), BTreeMap::new(), None);
    for (id, package) in &resolved.packages {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        let checksum = checksums.get(&(name.clone(), version.clone()));
        let checksum = checksum.with_context(|| format!("Cargo.lock has no {name} {version}"))?;
        let licence = text("license");
        ensure!(!licence.is_empty(), "{name} {version} names no licence");
        let is_shipped = name == SHIPPED;
        let mut component = json!({
            "type": if is_shipped { "application" } else { "library" },
            "bom-ref": reference(package),
            "name": name,
            "version": version,
            // Old manifests have a slash for "or".
            "licenses": [{"expression": licence.replace('/', " OR ").replace("  ", " ")}],
        });
        if package["source"].is_string() {
            component["purl"] = json!(reference(package));
            ensure!(
                !checksum.is_empty(),
                "Cargo.lock has no checksum of {name} {version}"
            );
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        if let Some(repository) = package["repository"].as_str() {
            component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
        }
        let needs = resolved.dependencies.get(id).into_iter().flatten();
        let needs: BTreeSet<String> = needs
            .filter_map(|id| resolved.packages.get(id))
            .map(reference)
            .collect();
        dependencies.insert(reference(package), needs);
        match is_shipped {
            true => shipped = Some(component),
            false => drop(components.insert(reference(package), component)),
        }
    }
    let dependency = |(of, needs): (String, BTreeSet<String>)| json!({"ref": of, "dependsOn": needs});
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": shipped.context("no package entourage")?,
            "tools": {"components": [{"type": "application", "name": "cargo xtask sbom"}]},
        },
        "components": components.into_values().collect::<Vec<Value>>(),
        "dependencies": dependencies.into_iter().map(dependency).collect::<Vec<Value>>(),
    }))
}

fn reference(package: &Value) -> String {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

/// Succeeds if every package that `cargo tree` lists is a component, or the shipped package itself.
fn complete(bill: &Value, listed: &str) -> Result<()> {
    let components = bill["components"].as_array().into_iter().flatten();
    let named = |component: &Value| format!("{} v{}", text(&component["name"]), text(&component["version"]));
    let mut all: BTreeSet<String> = components.map(named).collect();
    all.insert(named(&bill["metadata"]["component"]));
    let lines = listed.lines().filter(|line| !line.trim().is_empty());
    // `name v1.2.3 (path or proc-macro)`
    let lines = lines.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
    let missing: BTreeSet<String> = lines.filter(|line| !all.contains(line)).collect();
    ensure!(missing.is_empty(), "the bill lacks {missing:?}");
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"abc\"\n\n\
        [[package]]\nname = \"entourage\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n";

    fn metadata() -> Value {
        let package = |id: &str, name: &str, version: &str, source: Value| json!({"id": id, "name": name, "version": version, "source": source, "license": "MIT/Apache-2.0", "repository": null});
        let needs = |id: &str, kind: Value| json!({"name": id, "pkg": id, "dep_kinds": [{"kind": kind, "target": null}]});
        json!({
            "packages": [
                package("e", "entourage", "0.1.0", Value::Null),
                package("a", "a", "1.0.0", json!("registry")),
                package("t", "test-only", "1.0.0", json!("registry")),
            ],
            "resolve": {"nodes": [
                {"id": "e", "deps": [needs("a", Value::Null), needs("t", json!("dev"))]},
                {"id": "a", "deps": [needs("t", json!("build"))]},
                {"id": "t", "deps": []},
            ]},
        })
    }

    fn made() -> Result<Value> {
        let mut resolved = Resolved::default();
        resolved.add(&metadata())?;
        bill(&resolved, &checksums(LOCK))
    }

    #[test]
    fn a_bill_has_the_normal_dependencies_with_licence_and_checksum() {
        let bill = made().unwrap();
        assert_eq!(bill["specVersion"], "1.5");
        assert_eq!(
            bill["components"],
            json!([{
                "type": "library", "bom-ref": "pkg:cargo/a@1.0.0", "purl": "pkg:cargo/a@1.0.0", "name": "a", "version": "1.0.0",
                "licenses": [{"expression": "MIT OR Apache-2.0"}], "hashes": [{"alg": "SHA-256", "content": "abc"}],
            }])
        );
        assert_eq!(bill["metadata"]["component"]["name"], "entourage");
        let needs = json!([
            {"ref": "pkg:cargo/a@1.0.0", "dependsOn": []},
            {"ref": "pkg:cargo/entourage@0.1.0", "dependsOn": ["pkg:cargo/a@1.0.0"]},
        ]);
        assert_eq!(bill["dependencies"], needs);
        assert_eq!(bill, made().unwrap(), "the same each time");
    }

    #[test]
    fn a_bill_that_lacks_what_is_built_or_a_licence_is_refused() {
        let bill = made().unwrap();
        complete(&bill, "entourage v0.1.0 (/src/crates/cli)\na v1.0.0\n").unwrap();
        let error = complete(&bill, "a v1.0.0\nb v2.0.0 (proc-macro)\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("b v2.0.0"), "{error}");
        let mut metadata = metadata();
        metadata["packages"][1]["license"] = Value::Null;
        let mut resolved = Resolved::default();
        resolved.add(&metadata).unwrap();
        let error = super::bill(&resolved, &checksums(LOCK)).unwrap_err().to_string();
        assert!(error.contains("names no licence"), "{error}");
    }
}
