//! The recorded exchanges of a real kube-apiserver, played against an embedded cluster, and against a real server to prove
//! that who plays them is right.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use entourage_e2e::{
    conformance::{self, Scenario, report, transport::Transport},
    harness::{Lane, Scene, Test},
    servers::{Assets, RealCluster},
};
use futures::StreamExt as _;
use libtest_mimic::{Failed, Trial};

/// Set to `1`, the page and the list of differences are written instead of compared.
const UPDATE: &str = "UPDATE_GOLDEN";

/// Scenarios that are played at a time: some wait for seconds on purpose.
const AT_A_TIME: usize = 24;

/// The same on the real server, which all tests share.
const AT_A_TIME_REAL: usize = 6;

pub(crate) fn tests() -> Vec<Test> {
    let path =
        "e2e::conformance::a_real_server_answers_as_recorded_where_its_release_is_like_that_of_the_recording";
    vec![
        Test::new(path, |scene| Box::pin(real(scene)))
            .only(&[Lane::Real])
            .plain(),
    ]
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test(
        "conformance::every_exchange_is_as_recorded_or_known_to_differ",
        || embedded().map_err(|error| Failed::from(format!("{error:#}"))),
    )]
}

fn embedded() -> anyhow::Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let scenarios = conformance::load_all(&root.join("conformance"))?;
    let list = root.join("conformance/differences.txt");
    let mut text = std::fs::read_to_string(&list)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut played = runtime.block_on(conformance::play_embedded(&scenarios, AT_A_TIME));
    // Some watches of the recording last three seconds: what a busy machine delays is played once more, alone.
    let known = report::known(&text);
    let differ = |each: &&mut (&Scenario, _)| !report::is_as_known(&known, each);
    for each in played.iter_mut().filter(differ) {
        println!("{} is played once more", each.0.name);
        let again = runtime.block_on(conformance::play_embedded([each.0], 1));
        *each = again.into_iter().next().context("it was played")?;
    }
    if update() {
        text = report::differences(&text, &played);
        std::fs::write(&list, &text)?;
    }
    let known = report::known(&text);
    let mut complaints = report::against(&known, &played);
    complaints.extend(report::below(&played));
    let page = report::page(&known, &played);
    let path = root.join("../docs/conformance.md");
    anyhow::ensure!(
        complaints.is_empty(),
        "{} differences from what conformance/differences.txt says:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
    if update() {
        std::fs::write(&path, page)?;
    } else {
        anyhow::ensure!(
            is_current(&path, &page),
            "docs/conformance.md is stale: {UPDATE}=1 writes it anew"
        );
    }
    Ok(())
}

fn update() -> bool {
    std::env::var_os(UPDATE).is_some_and(|value| value == "1")
}

fn is_current(path: &Path, page: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text == page)
}

/// Differences of another release are allowed; a step that it once answered as recorded, it must answer so again. There is a
/// list for each release, `scenario: steps`, written by `UPDATE_GOLDEN=1`. A scenario that fails on a busy machine is played
/// once more, alone on a fresh server.
async fn real(scene: &mut Scene) -> anyhow::Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let scenarios = conformance::load(&root, &conformance::FIRST)?;
    let assets = Assets::from_env().context("KUBEBUILDER_ASSETS names real API servers")?;
    let dir = scene.bed.dir();
    let all: Vec<&Scenario> = scenarios.iter().collect();
    // Some at a time: each waits for what a server of another release does not tell.
    let same = play_real(&all, AT_A_TIME_REAL, &assets, &dir.join("conformance")).await?;
    let version = assets.version()?;
    let list = root.join(format!("identical-{}.{}.txt", version.major, version.minor));
    let count: usize = same.values().map(Vec::len).sum();
    println!("{count} exchanges are as recorded on {version}");
    if update() {
        let lines = same.iter().filter(|(_, steps)| !steps.is_empty());
        let text: String = lines
            .map(|(name, steps)| format!("{name}: {}\n", steps.join(" ")))
            .collect();
        return std::fs::write(&list, text).with_context(|| format!("{}", list.display()));
    }
    let text = std::fs::read_to_string(&list)
        .with_context(|| format!("{}: {UPDATE}=1 writes it for a new release", list.display()))?;
    let mut lost = lost(&text, &same);
    if !lost.is_empty() {
        println!("played once more: {lost:?}");
        let again: Vec<&Scenario> = scenarios
            .iter()
            .filter(|scenario| lost.iter().any(|(name, _)| *name == scenario.name))
            .collect();
        let same = play_real(&again, 1, &assets, &dir.join("conformance-again")).await?;
        lost.retain(|(name, step)| !same.get(name).is_some_and(|steps| steps.contains(step)));
    }
    anyhow::ensure!(lost.is_empty(), "no longer as recorded on {version}:\n{lost:#?}");
    Ok(())
}

/// Plays scenarios on a real server of their own. Returns the steps of each that are as recorded.
async fn play_real<'a>(
    scenarios: &[&'a Scenario],
    at_a_time: usize,
    assets: &Assets,
    dir: &Path,
) -> anyhow::Result<BTreeMap<&'a str, Vec<&'a str>>> {
    let server = RealCluster::start(assets, "conformance", dir).await?;
    let mut anonymous = server.config();
    anonymous.auth_info = kube::config::AuthInfo::default();
    let transport = Transport::remote(&kube::Client::try_from(anonymous)?, server.token());
    let same = futures::stream::iter(scenarios.iter().copied())
        .map(|scenario| {
            let transport = &transport;
            async move {
                let outcome = conformance::play(scenario, transport).await;
                let steps = scenario
                    .steps()
                    .filter(|step| !outcome.differences.contains_key(*step));
                (scenario.name.as_str(), steps.collect())
            }
        })
        .buffer_unordered(at_a_time)
        .collect()
        .await;
    server.shutdown();
    Ok(same)
}

/// The steps, by scenario, that the list of a release has and that were not played as recorded.
fn lost<'a>(list: &'a str, same: &BTreeMap<&str, Vec<&str>>) -> Vec<(&'a str, &'a str)> {
    let listed = list.lines().filter_map(|line| line.split_once(": "));
    let steps = listed.flat_map(|(name, steps)| steps.split(' ').map(move |step| (name, step)));
    let is_lost = |(name, step): &(&str, &str)| !same.get(name).is_some_and(|now| now.contains(step));
    steps.filter(is_lost).collect()
}
