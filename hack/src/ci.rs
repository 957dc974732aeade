//! The pipeline: the steps in order, each with its name and duration; it stops at the first failure.
//! `.ci/run` prepares the machine and calls it; a developer runs the same thing, or one step of it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{Outcome, crds, events, fences, fields_file, map, rbac, sbom, tidy, tree};

/// The one command that the README tells readers to test with; the step `test` runs it as it stands here.
const TEST_COMMAND: &[&str] = &["cargo", "test", "--workspace"];

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<Outcome>,
}

/// Cheap steps first, so that a slip costs seconds.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        about: "rustfmt has nothing to change",
        run: format,
    },
    Step {
        name: "tidy",
        about: "cargo xtask tidy",
        run: || tidy::run(&[]),
    },
    Step {
        name: "fences",
        about: "cargo xtask fences",
        run: || fences::run(&[]),
    },
    Step {
        name: "deny",
        about: "licences, sources and banned or doubled crates",
        run: deny,
    },
    Step {
        name: "sbom",
        about: "the bill of materials has every crate of the binary, with its licence",
        run: || sbom::run(&[]),
    },
    Step {
        name: "crds",
        about: "crds/ is what the types say",
        run: || crds::run(&check_flag()),
    },
    Step {
        name: "rbac",
        about: "config/rbac is what the controllers say",
        run: || rbac::run(&check_flag()),
    },
    Step {
        name: "events",
        about: "docs/reference/events.md is what the table of event reasons says",
        run: || events::run(&check_flag()),
    },
    Step {
        name: "map",
        about: "docs/map.md is what the modules say of themselves",
        run: || map::run(&check_flag()),
    },
    Step {
        name: "fields",
        about: "the list of upstream's fields is current",
        run: || fields_file::run(&check_flag()),
    },
    Step {
        name: "chart",
        about: "charts/entourage: lint, what it renders, the rights of config/, the alerts",
        run: chart,
    },
    Step {
        name: "ui",
        about: "the page of `entourage ui` with 10,000 recorded objects, in headless Chromium",
        run: ui_recorded,
    },
    Step {
        name: "pages",
        about: "what the pages must name, their links, and the checks themselves: the tests of xtask",
        run: pages,
    },
    Step {
        name: "clippy",
        about: "no warning in any target",
        run: clippy,
    },
    Step {
        name: "alone",
        about: "each crate compiles alone: its manifest names all it needs; the command also without the embedded server, and without commands",
        run: alone,
    },
    Step {
        name: "docs",
        about: "rustdoc without a warning",
        run: docs,
    },
    Step {
        name: "readme",
        about: "the README names the test command that is run here",
        run: readme,
    },
    Step {
        name: "test",
        about: "the README's test command",
        run: test,
    },
    Step {
        name: "ui-served",
        about: "the page that the binary serves for embedded clusters, in headless Chromium",
        run: ui_served,
    },
    Step {
        name: "e2e-real",
        about: "the end-to-end tests on real kube-apiservers",
        run: e2e_real,
    },
    Step {
        name: "kubectl",
        about: "the tests of kubectl, and the guides, with the kubectl that comes with real kube-apiservers, whatever the machine has",
        run: kubectl,
    },
];

/// Runs the steps that the arguments name: all, `--only NAME..` or `--from NAME`. Errors: the first step that failed.
pub(crate) fn run(args: &[String]) -> Result<Outcome> {
    if args.first().is_some_and(|a| a == "--list") {
        for step in STEPS {
            println!("{:<10} {}", step.name, step.about);
        }
        return Ok(Outcome::Done(format!("{} steps", STEPS.len())));
    }
    let steps = chosen(args)?;
    let mut times: Vec<(&str, Duration)> = Vec::new();
    let mut lacking = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        say(&format!(
            "[{}/{}] {}: {}",
            n + 1,
            steps.len(),
            step.name,
            step.about
        ));
        let start = Instant::now();
        let outcome = (step.run)();
        let took = start.elapsed();
        times.push((step.name, took));
        match outcome {
            Ok(Outcome::Done(what)) => say(&format!(
                "{}: ok in {:.1} s: {what}",
                step.name,
                took.as_secs_f64()
            )),
            Ok(Outcome::Lacks(what)) => {
                say(&format!(
                    "{}: LACKS {what} ({:.1} s)",
                    step.name,
                    took.as_secs_f64()
                ));
                lacking.push(format!("{}: {what}", step.name));
            }
            Err(error) => {
                say(&format!(
                    "{}: FAILED after {:.1} s",
                    step.name,
                    took.as_secs_f64()
                ));
                return Err(error.context(format!(
                    "step {}; again: cargo xtask ci --from {}",
                    step.name, step.name
                )));
            }
        }
    }
    say("durations");
    for (name, took) in &times {
        println!("{name:<10} {:>7.1} s", took.as_secs_f64());
    }
    for line in &lacking {
        println!("not checked: {line}");
    }
    Ok(Outcome::Done(format!(
        "{} steps passed, {} of them lack something",
        steps.len(),
        lacking.len()
    )))
}

fn chosen(args: &[String]) -> Result<Vec<&'static Step>> {
    let at = |name: &String| {
        STEPS
            .iter()
            .position(|s| s.name == name)
            .with_context(|| format!("no step {name:?}"))
    };
    match args {
        [] => Ok(STEPS.iter().collect()),
        [flag, name] if flag == "--from" => Ok(STEPS[at(name)?..].iter().collect()),
        [flag, names @ ..] if flag == "--only" && !names.is_empty() => {
            names.iter().map(|name| at(name).map(|n| &STEPS[n])).collect()
        }
        other => bail!("--list, --only NAME.. or --from NAME, not {other:?}"),
    }
}

// === the steps ===

fn format() -> Result<Outcome> {
    cargo(&["fmt", "--all", "--check"])
}

/// The exit code of a script whose tools cannot be had.
const NO_TOOL: i32 = 3;

/// Runs a script with a variable; `tools` are what it needs.
fn script(path: &str, variable: Option<&str>, tools: &str) -> Result<Outcome> {
    println!(
        "$ {}bash {path}",
        variable.map_or_else(String::new, |name| format!("{name}=off "))
    );
    std::io::stdout().flush()?;
    let mut command = Command::new("bash");
    let status = command
        .arg(path)
        .envs(variable.map(|name| (name, "off")))
        .current_dir(tree::root())
        .stdin(Stdio::null())
        .status()
        .context("cannot start bash")?;
    match status.code() {
        Some(0) => Ok(Outcome::Done(path.to_owned())),
        Some(NO_TOOL) => Ok(Outcome::Lacks(format!("{tools} ({path})"))),
        _ => bail!("bash {path}: {status}"),
    }
}

fn chart() -> Result<Outcome> {
    script(
        "hack/chart.sh",
        None,
        "helm or promtool, and a registry to have it from (hack/tools.sh)",
    )
}

/// The files of the page, with recorded rows: nothing needs to be built.
fn ui_recorded() -> Result<Outcome> {
    script("hack/ui.sh", Some("ENTOURAGE"), "chromium, or python3")
}

/// The page of the binary that the tests were run with.
fn ui_served() -> Result<Outcome> {
    script("hack/ui.sh", Some("RECORDED"), "chromium, or python3")
}

/// A part of the step `test` that takes seconds, so that a row that a page lacks is not found after a quarter of an hour.
fn pages() -> Result<Outcome> {
    cargo(&["test", "--workspace", "--bin", "xtask", "--quiet"])
}

fn clippy() -> Result<Outcome> {
    cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ])
}

fn deny() -> Result<Outcome> {
    if !has(&["deny", "--version"]) {
        return Ok(Outcome::Lacks(
            "cargo-deny (cargo install --locked cargo-deny)".to_owned(),
        ));
    }
    // An exception or a licence that nothing needs any more is an error: the lists stay as short as their reasons.
    cargo(&[
        "deny",
        "check",
        "-D",
        "unmatched-skip",
        "-D",
        "license-not-encountered",
        "bans",
        "licenses",
        "sources",
    ])
}

fn alone() -> Result<Outcome> {
    let metadata = output("cargo", &["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata without packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    for name in &names {
        let start = Instant::now();
        cargo(&["check", "--quiet", "--package", name])?;
        println!("{name}: {:.1} s", start.elapsed().as_secs_f64());
    }
    // The binary of a container, the command without the embedded server, and their tests.
    let lean = [
        "clippy",
        "--quiet",
        "--package",
        "entourage",
        "--no-default-features",
        "--all-targets",
    ];
    for features in [&[][..], &["--features", "commands"]] {
        cargo(&[&lean[..], features, &["--", "-D", "warnings"]].concat())?;
    }
    Ok(Outcome::Done(names.join(", ")))
}

fn readme() -> Result<Outcome> {
    let path = tree::root().join("README.md");
    if !path.exists() {
        return Ok(Outcome::Lacks("README.md".to_owned()));
    }
    let command = TEST_COMMAND.join(" ");
    match std::fs::read_to_string(path)?
        .lines()
        .any(|line| line.trim() == command)
    {
        true => Ok(Outcome::Done(command)),
        false => bail!("README.md has no line `{command}`, which is what the step `test` runs"),
    }
}

fn test() -> Result<Outcome> {
    // The embedded lane, whatever the caller's environment says: real API servers have a step of their own.
    let mut command = Command::new(TEST_COMMAND[0]);
    command.args(&TEST_COMMAND[1..]).env_remove("KUBEBUILDER_ASSETS");
    execute(&mut command)
}

/// The script that prepares real API servers.
const PREPARE: &str = "hack/real-apiserver.sh";

fn e2e_real() -> Result<Outcome> {
    with_assets(|assets| {
        // The tests of the servers' own behaviour; without assets they are left out of the step `test`.
        let mut servers = Command::new(TEST_COMMAND[0]);
        servers.args(&TEST_COMMAND[1..]).args(["--lib", "servers::live"]);
        execute(servers.env("KUBEBUILDER_ASSETS", assets))?;
        // The embedded lane is in the step `test`.
        execute(end_to_end("real::").env("KUBEBUILDER_ASSETS", assets))
    })
}

/// Both lanes: the steps `test` and `e2e-real` use the kubectl on PATH, if there is one, and then of whatever release.
fn kubectl() -> Result<Outcome> {
    with_assets(|assets| {
        let kubectl = Path::new(assets).join("kubectl");
        // Embedded clusters only, whatever the lane.
        execute(
            end_to_end("guides::")
                .env("ENTOURAGE_KUBECTL", &kubectl)
                .env_remove("KUBEBUILDER_ASSETS"),
        )?;
        execute(
            end_to_end("kubectl")
                .env("KUBEBUILDER_ASSETS", assets)
                .env("ENTOURAGE_KUBECTL", kubectl),
        )
    })
}

/// Not nextest: its process per test would start the servers once per test. Of the whole workspace, as the step `test`: with
/// one package alone cargo chooses other features of third-party crates, and builds those once more.
fn end_to_end(filter: &str) -> Command {
    let mut command = Command::new(TEST_COMMAND[0]);
    command.args(&TEST_COMMAND[1..]).args(["--test", "e2e", filter]);
    command
}

/// Runs a step with the folder of real API servers.
fn with_assets(run: impl FnOnce(&str) -> Result<Outcome>) -> Result<Outcome> {
    let script = Path::new(PREPARE);
    if !tree::root().join(script).exists() {
        return Ok(Outcome::Lacks(format!(
            "{PREPARE}, which prepares real API servers"
        )));
    }
    run(&prepare_assets(script)?)
}

/// Runs the script, showing what it prints. Returns its last line on stdout: the folder of the servers' binaries.
fn prepare_assets(script: &Path) -> Result<String> {
    let mut command = Command::new("bash");
    let mut child = command
        .arg(script)
        .current_dir(tree::root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start bash")?;
    let mut last = String::new();
    for line in BufReader::new(child.stdout.take().context("stdout is piped")?).lines() {
        let line = line?;
        println!("{line}");
        if !line.trim().is_empty() {
            last = line.trim().to_owned();
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{}: {status}", script.display());
    }
    match Path::new(&last).is_dir() {
        true => Ok(last),
        false => bail!("{}: its last line is not a folder: {last:?}", script.display()),
    }
}

fn docs() -> Result<Outcome> {
    let mut command = Command::new("cargo");
    command
        .args(["doc", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings");
    execute(&mut command)
}

// === helpers ===

fn check_flag() -> [String; 1] {
    ["--check".to_owned()]
}

/// True if cargo has the subcommand.
fn has(args: &[&str]) -> bool {
    let status = Command::new("cargo")
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}

fn cargo(args: &[&str]) -> Result<Outcome> {
    execute(Command::new("cargo").args(args))
}

/// Runs a command at the root of the checkout with its output shown and no input.
fn execute(command: &mut Command) -> Result<Outcome> {
    let program = command.get_program().to_string_lossy().into_owned();
    let args: Vec<String> = command
        .get_args()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let line = format!("{program} {}", args.join(" "));
    println!("$ {line}");
    std::io::stdout().flush()?;
    let status = command.current_dir(tree::root()).stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot start {program}"))?;
    match status.success() {
        true => Ok(Outcome::Done(line)),
        false => bail!("{line}: {status}"),
    }
}

fn output(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(tree::root())
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        bail!("{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn say(line: &str) {
    println!("=== {line}");
    // A pipeline's log is read while it runs.
    let _ = std::io::stdout().flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &[&str]) -> Vec<&'static str> {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        chosen(&args).unwrap().iter().map(|s| s.name).collect()
    }

    #[test]
    fn no_step_stands_twice_and_each_says_what_it_does() {
        for (n, step) in STEPS.iter().enumerate() {
            assert!(!step.about.is_empty());
            assert!(
                STEPS[..n].iter().all(|other| other.name != step.name),
                "{}",
                step.name
            );
        }
    }

    #[test]
    fn steps_are_chosen_by_name_and_from_a_name_on() {
        assert_eq!(names(&["--only", "docs", "tidy"]), ["docs", "tidy"]);
        assert_eq!(names(&["--from", "e2e-real"]), ["e2e-real", "kubectl"]);
        assert_eq!(names(&[]).len(), STEPS.len());
    }

    #[test]
    fn an_unknown_step_is_an_error_that_names_it() {
        let args = ["--from".to_owned(), "dcos".to_owned()];
        assert!(chosen(&args).err().unwrap().to_string().contains("dcos"));
    }
}
