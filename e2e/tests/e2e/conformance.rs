//! The recorded exchanges of a real kube-apiserver, played against an embedded cluster.

use std::path::{Path, PathBuf};

use entourage_apiserver::{Cluster, Options};
use entourage_e2e::conformance::{self, Outcome, Scenario, report, transport::Transport};
use futures::StreamExt as _;
use libtest_mimic::{Failed, Trial};

/// Set to `1`, the page is written instead of compared.
const UPDATE: &str = "UPDATE_GOLDEN";

/// Scenarios that are played at a time: some wait for seconds on purpose.
const AT_A_TIME: usize = 24;

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test(
        "conformance::every_exchange_is_as_recorded_or_known_to_differ",
        || embedded().map_err(|error| Failed::from(format!("{error:#}"))),
    )]
}

fn embedded() -> anyhow::Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let scenarios = conformance::load(&root.join("conformance/corpus"))?;
    let known = report::known(&std::fs::read_to_string(
        root.join("conformance/differences.txt"),
    )?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let played = runtime.block_on(play(&scenarios));
    let complaints = report::against(&known, &played);
    let page = report::page(&known, &played);
    let path = root.join("../docs/conformance.md");
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        std::fs::write(&path, page)?;
    } else {
        anyhow::ensure!(
            complaints.is_empty(),
            "{} differences from what conformance/differences.txt says:\n{}",
            complaints.len(),
            complaints.join("\n")
        );
        anyhow::ensure!(
            is_current(&path, &page),
            "docs/conformance.md is stale: {UPDATE}=1 writes it anew"
        );
    }
    Ok(())
}

fn is_current(path: &Path, page: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| text == page)
}

async fn play(scenarios: &[Scenario]) -> Vec<(&Scenario, Outcome)> {
    let mut played: Vec<(&Scenario, Outcome)> = futures::stream::iter(scenarios)
        .map(|scenario| async move {
            let cluster = Cluster::new(Options {
                admin_token: conformance::TOKEN.to_owned(),
                ..Options::default()
            });
            let server = Transport::embedded(&cluster, conformance::TOKEN);
            (scenario, conformance::play(scenario, &server).await)
        })
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    played.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    played
}
