//! The permitted dependencies between crates: two tables, checked with cargo. Those between the modules of a crate are in
//! [`arrows`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{Outcome, arrows, tree};

/// The crates of the workspace that one crate may name in its manifest, in any dependency section.
struct Arrow {
    from: &'static str,
    to: &'static [&'static str],
    reason: &'static str,
}

/// Packages that must not be in the normal dependency tree of these crates, however deep.
struct Absent {
    from: &'static [&'static str],
    packages: &'static [&'static str],
    reason: &'static str,
}

/// Direction of knowledge. Source: architecture 4. A member of the workspace without a row is an error. A row stands below
/// those of the crates that it names, so that the map reads upwards.
const ARROWS: &[Arrow] = &[
    Arrow {
        from: "entourage-api",
        to: &[],
        reason: "types stand at the bottom: everyone can use them",
    },
    Arrow {
        from: "entourage-golden",
        to: &[],
        reason: "it runs cases for the tests of any crate, whatever they are about",
    },
    Arrow {
        from: "entourage-model",
        to: &["entourage-api"],
        reason: "the vocabulary is made of the types; the crates that use them are above",
    },
    Arrow {
        from: "entourage-interpreter",
        to: &["entourage-model", "entourage-api", "entourage-golden"],
        reason: "what a kind means knows nothing of clusters, policies and copies",
    },
    Arrow {
        from: "entourage-scheduler",
        to: &["entourage-model", "entourage-api", "entourage-golden"],
        reason: "a placement is the same whatever is placed",
    },
    Arrow {
        from: "entourage-render",
        to: &[
            "entourage-scheduler",
            "entourage-interpreter",
            "entourage-model",
            "entourage-api",
            "entourage-golden",
        ],
        reason: "what a copy looks like does not depend on when it is written, nor on what else is known",
    },
    Arrow {
        from: "entourage-core",
        to: &[
            "entourage-render",
            "entourage-scheduler",
            "entourage-interpreter",
            "entourage-model",
            "entourage-api",
            "entourage-golden",
        ],
        reason: "decisions know the types and nothing that acts",
    },
    Arrow {
        from: "entourage-admission",
        to: &[
            "entourage-core",
            "entourage-render",
            "entourage-interpreter",
            "entourage-model",
            "entourage-api",
            "entourage-golden",
        ],
        reason: "what users may write depends on what decisions can use, and no decision on it",
    },
    Arrow {
        from: "entourage-simulation",
        to: &["entourage-core", "entourage-api"],
        reason: "it carries out plans on servers in memory; the planners do not know on which",
    },
    Arrow {
        from: "entourage-lua",
        to: &["entourage-interpreter", "entourage-api", "entourage-golden"],
        reason: "scripts answer the interpreter's questions by its rules; nothing else comes near the C library",
    },
    Arrow {
        from: "entourage-webhook",
        to: &["entourage-admission", "entourage-core", "entourage-api"],
        reason: "reviews carry decisions over HTTPS; the controllers use it, not the reverse",
    },
    Arrow {
        from: "entourage-controllers",
        to: &[
            "entourage-webhook",
            "entourage-lua",
            "entourage-core",
            "entourage-api",
        ],
        reason: "the shell acts; it does not know the command line nor the embedded server",
    },
    Arrow {
        from: "entourage-apiserver",
        to: &[],
        reason: "an API server learns CRDs as data and is usable alone",
    },
    Arrow {
        from: "entourage",
        to: &[
            "entourage-controllers",
            "entourage-lua",
            "entourage-webhook",
            "entourage-simulation",
            "entourage-admission",
            "entourage-core",
            "entourage-api",
            "entourage-apiserver",
            "entourage-golden",
        ],
        reason: "the binary puts everything together",
    },
    Arrow {
        from: "entourage-e2e",
        to: &[
            "entourage",
            "entourage-controllers",
            "entourage-webhook",
            "entourage-simulation",
            "entourage-admission",
            "entourage-core",
            "entourage-api",
            "entourage-apiserver",
        ],
        reason: "end-to-end tests drive what the binary offers and look at the rest",
    },
    Arrow {
        from: "xtask",
        to: &[
            "entourage-admission",
            "entourage-api",
            "entourage-core",
            "entourage-controllers",
        ],
        reason: "generated files and checks of pages come from the tables of these four",
    },
];

/// The crates that decide and do nothing else, as folders of `crates/`, lowest first: what is not in their arguments does not
/// exist for them. `cargo xtask tidy` reads their sources for that, and clippy reads one configuration for all of them.
pub(crate) const PURE: &[&str] = &[
    "model",
    "interpreter",
    "scheduler",
    "render",
    "core",
    "admission",
    "simulation",
];

/// The highest of the pure crates: they depend on all the others, so that what must be absent from their trees is absent from
/// the trees of those.
const DECIDING: &[&str] = &["entourage-core", "entourage-admission", "entourage-simulation"];

/// The clippy configuration of pure crates; all but one link to it.
const PURITY: &str = "crates/core/.clippy.toml";

/// Packages that would let a crate do what it must not. Source: architecture 2 and 4.
const ABSENT: &[Absent] = &[
    Absent {
        from: DECIDING,
        packages: &[
            "tokio",
            "tokio-util",
            "async-trait",
            "futures",
            "futures-util",
            "async-std",
            "smol",
        ],
        reason: "core is synchronous",
    },
    Absent {
        from: DECIDING,
        packages: &[
            "kube-client",
            "kube-runtime",
            "hyper",
            "hyper-util",
            "reqwest",
            "tower",
            "rustls",
        ],
        reason: "core has no clients: it returns a Plan",
    },
    Absent {
        from: DECIDING,
        packages: &["rand", "rand_core", "getrandom", "fastrand", "uuid"],
        reason: "randomness is an argument",
    },
    Absent {
        from: DECIDING,
        packages: &["chrono", "time", "web-time"],
        reason: "time is an argument, and its type is jiff's, as in k8s-openapi",
    },
    Absent {
        from: DECIDING,
        packages: &["dashmap", "parking_lot", "rayon", "crossbeam-channel", "num_cpus"],
        reason: "sharing and threads live in the shell",
    },
    Absent {
        from: DECIDING,
        packages: &["tracing-subscriber", "prometheus-client", "clap"],
        reason: "what is seen from outside is the shell's: core says why in its Plan",
    },
    Absent {
        from: &["entourage-api"],
        packages: &["tokio", "kube-client", "kube-runtime", "hyper", "rand", "chrono"],
        reason: "types carry no client, so that any program can depend on them",
    },
    Absent {
        from: &["entourage-lua"],
        packages: &["tokio", "kube-client", "kube-runtime", "hyper", "rustls"],
        reason: "a script reaches nobody",
    },
    Absent {
        from: DECIDING,
        packages: &["mlua", "mlua-sys"],
        reason: "scripts run in a crate of their own",
    },
    Absent {
        from: &["entourage-webhook"],
        packages: &["kube-runtime", "openssl", "reqwest", "clap", "prometheus-client"],
        reason: "reviews in and answers out: no controllers, no second TLS, no flags",
    },
    Absent {
        from: &["entourage-apiserver"],
        // chrono comes with the CEL parser, which uses it in its own values only.
        packages: &["kube-runtime", "openssl"],
        reason: "a server needs no controller library",
    },
];

/// Checks both tables against `cargo metadata` and `cargo tree`, and the lists of `hack/arrows`. `--print` shows what the
/// modules of each crate name instead.
/// Errors: a list of every arrow and package that breaks a row, with the row's reason.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    match args {
        [] => {}
        [flag] if flag == "--print" => {
            print!("{}", arrows::print(&tree::root())?);
            return Ok(Outcome::Done("^ marks an arrow back up".to_owned()));
        }
        other => bail!("only --print is understood here, not {other:?}"),
    }
    let members = members(&cargo(&["metadata", "--no-deps", "--format-version", "1"])?)?;
    let mut broken = check_arrows(&members);
    for member in members.keys() {
        if ABSENT.iter().any(|row| row.from.contains(&member.as_str())) {
            let listing = cargo(&[
                "tree", "-p", member, "-e", "normal", "--prefix", "none", "--format", "{p}",
            ])?;
            broken.extend(check_absent(member, &packages(&listing)));
        }
    }
    broken.extend(check_purity(&tree::root())?);
    let (of_modules, modules) = arrows::check(&tree::root())?;
    broken.extend(of_modules);
    if !broken.is_empty() {
        bail!("{} broken\n  {}", broken.len(), broken.join("\n  "));
    }
    let rows = ARROWS.len() + ABSENT.len();
    let missing: Vec<_> = ARROWS
        .iter()
        .map(|row| row.from)
        .filter(|from| !members.contains_key(*from))
        .collect();
    if !missing.is_empty() {
        return Ok(Outcome::Lacks(format!(
            "the crates {missing:?}; the rows of the others hold ({rows} in all); {modules}"
        )));
    }
    Ok(Outcome::Done(format!(
        "{} crates, {rows} rows hold; {modules}",
        members.len()
    )))
}

/// Name of each member of the workspace → the names in its manifest's dependency sections.
/// The crates in the order of the arrows, each with those that it may name: folders of `crates/`, by their names.
pub(crate) fn folders() -> Vec<(String, Vec<String>)> {
    let folder = |package: &&str| match *package {
        "entourage" => "cli".to_owned(),
        package => package.trim_start_matches("entourage-").to_owned(),
    };
    let of_row = |row: &Arrow| (folder(&row.from), row.to.iter().map(folder).collect());
    ARROWS.iter().map(of_row).collect()
}

fn members(metadata: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let metadata: Value = serde_json::from_str(metadata).context("cargo metadata is not JSON")?;
    let mut members = BTreeMap::new();
    for package in metadata["packages"]
        .as_array()
        .context("cargo metadata without packages")?
    {
        let names = package["dependencies"].as_array().into_iter().flatten();
        let names = names
            .filter_map(|d| d["name"].as_str())
            .map(str::to_owned)
            .collect();
        members.insert(
            package["name"]
                .as_str()
                .context("a package without a name")?
                .to_owned(),
            names,
        );
    }
    Ok(members)
}

fn check_arrows(members: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut broken = Vec::new();
    for (member, names) in members {
        let Some(row) = ARROWS.iter().find(|row| row.from == member) else {
            broken.push(format!(
                "{member} has no row in ARROWS (hack/src/fences.rs): say what it may know, and why"
            ));
            continue;
        };
        // One of ours by the table or by the workspace: a crate named before it exists is one of ours too.
        let ours = names
            .iter()
            .filter(|n| members.contains_key(*n) || ARROWS.iter().any(|r| r.from == *n));
        for name in ours.filter(|n| !row.to.contains(&n.as_str())) {
            broken.push(format!("{member} -> {name}: {}", row.reason));
        }
    }
    broken
}

fn check_absent(member: &str, tree: &BTreeSet<String>) -> Vec<String> {
    let rows = ABSENT.iter().filter(|row| row.from.contains(&member));
    rows.flat_map(|row| {
        row.packages
            .iter()
            .filter(|p| tree.contains(**p))
            .map(|p| (*p, row.reason))
    })
    .map(|(package, reason)| {
        format!("{member} has {package} in its tree: {reason} (cargo tree -p {member} -i {package})")
    })
    .collect()
}

/// True if clippy holds every pure crate to the same.
fn check_purity(root: &Path) -> Result<Vec<String>> {
    let wanted = fs::read_to_string(root.join(PURITY)).context(PURITY)?;
    let mut broken = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/.clippy.toml");
        if fs::read_to_string(root.join(&path)).ok().as_ref() != Some(&wanted) {
            broken.push(format!("{path} is not {PURITY}: make it a link to that"));
        }
    }
    Ok(broken)
}

/// The package names of `cargo tree --prefix none --format {p}`: the first word of each line.
fn packages(listing: &str) -> BTreeSet<String> {
    listing
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn cargo(args: &[&str]) -> Result<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(args)
        .current_dir(tree::root())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("cargo's output is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(members: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
        let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        members
            .iter()
            .map(|(name, deps)| ((*name).to_owned(), set(deps)))
            .collect()
    }

    #[test]
    fn every_row_has_a_reason_and_no_crate_stands_twice() {
        let from: BTreeSet<_> = ARROWS.iter().map(|row| row.from).collect();
        assert_eq!(from.len(), ARROWS.len());
        assert!(ARROWS.iter().all(|row| !row.reason.is_empty()));
        let mut pairs = BTreeSet::new();
        for row in ABSENT {
            assert!(!row.reason.is_empty());
            for crate_ in row.from {
                assert!(from.contains(crate_), "{crate_}");
                let mut packages = row.packages.iter();
                assert!(
                    packages.all(|p| pairs.insert((*crate_, *p))),
                    "{crate_} lists one twice"
                );
            }
        }
    }

    #[test]
    fn the_arrows_make_no_circle_and_lead_to_known_crates() {
        // Taking away crates whose arrows all lead to crates already taken must leave none.
        let mut left: Vec<&Arrow> = ARROWS.iter().collect();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        while !left.is_empty() {
            let before = left.len();
            let ready: Vec<_> = left
                .iter()
                .filter(|r| r.to.iter().all(|t| taken.contains(t)))
                .map(|r| r.from)
                .collect();
            taken.extend(&ready);
            left.retain(|r| !ready.contains(&r.from));
            assert!(
                left.len() < before,
                "a circle or an unknown crate among {:?}",
                left.iter().map(|r| r.from).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn every_row_stands_below_those_of_the_crates_that_it_names() {
        for (n, row) in ARROWS.iter().enumerate() {
            for to in row.to {
                let stands_above = ARROWS[..n].iter().any(|other| other.from == *to);
                assert!(stands_above, "{} names {to}: move its row below", row.from);
            }
        }
    }

    #[test]
    fn every_pure_crate_is_in_the_tree_of_one_whose_tree_is_checked() {
        let checked = ARROWS.iter().filter(|row| DECIDING.contains(&row.from));
        let named: BTreeSet<&str> = checked.flat_map(|row| row.to.iter().copied()).collect();
        for pure in PURE.iter().map(|name| format!("entourage-{name}")) {
            assert!(DECIDING.contains(&&*pure) || named.contains(&*pure), "{pure}");
        }
    }

    #[test]
    fn clippy_holds_every_pure_crate_to_the_same() {
        assert_eq!(check_purity(&tree::root()).unwrap(), [""; 0]);
    }

    #[test]
    fn every_allowed_arrow_passes_and_every_other_is_named() {
        for row in ARROWS {
            assert_eq!(check_arrows(&workspace(&[(row.from, row.to)])), [""; 0]);
            for other in ARROWS.iter().map(|r| r.from).filter(|o| !row.to.contains(o)) {
                let broken = check_arrows(&workspace(&[(row.from, &[other])]));
                assert_eq!(broken, [format!("{} -> {other}: {}", row.from, row.reason)]);
            }
        }
    }

    #[test]
    fn a_crate_that_nobody_placed_is_an_error() {
        let broken = check_arrows(&workspace(&[("entourage-extra", &["serde"])]));
        assert!(broken[0].contains("no row"), "{broken:?}");
    }

    #[test]
    fn each_absent_package_is_found_by_its_exact_name() {
        for row in ABSENT {
            let of_each = |package| row.from.iter().map(move |crate_| (crate_, package));
            for (crate_, package) in row.packages.iter().flat_map(of_each) {
                let tree = packages(&format!(
                    "{crate_} v0.1.0 (/x)\nx-{package} v1.0.0\n{package} v1.2.3 (*)\n"
                ));
                let broken = check_absent(crate_, &tree);
                assert_eq!(broken.len(), 1, "{broken:?}");
                assert!(broken[0].contains(row.reason), "{broken:?}");
            }
        }
    }

    #[test]
    fn metadata_is_read_for_all_dependency_sections() {
        let json = r#"{"packages":[{"name":"a","dependencies":[{"name":"b","kind":null},{"name":"c","kind":"dev"}]}]}"#;
        assert_eq!(members(json).unwrap(), workspace(&[("a", &["b", "c"])]));
    }
}
