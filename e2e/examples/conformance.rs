//! Plays the corpus against an embedded cluster and prints what differs:
//! `cargo run -p entourage-e2e --example conformance -- [SCENARIO…]` (a name may end with `*`).

use std::path::Path;

use anyhow::Result;
use entourage_apiserver::{Cluster, Options};
use entourage_e2e::conformance::{self, transport::Transport};
use futures::StreamExt as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let all = conformance::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/corpus"))?;
    let chosen = all.iter().filter(|scenario| {
        wanted.is_empty()
            || wanted.iter().any(|name| match name.strip_suffix('*') {
                Some(start) => scenario.name.starts_with(start),
                None => *name == scenario.name,
            })
    });
    let mut played: Vec<_> = futures::stream::iter(chosen)
        .map(|scenario| async move {
            let cluster = Cluster::new(Options {
                admin_token: conformance::TOKEN.to_owned(),
                ..Options::default()
            });
            let server = Transport::embedded(&cluster, conformance::TOKEN);
            (scenario, conformance::play(scenario, &server).await)
        })
        .buffer_unordered(16)
        .collect()
        .await;
    played.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    for (scenario, outcome) in &played {
        println!(
            "{} {}/{}",
            scenario.name,
            outcome.steps - outcome.differences.len(),
            outcome.steps
        );
        for (step, why) in &outcome.differences {
            println!("    {step}: {why}");
        }
    }
    let (same, all) = conformance::report::totals(&played);
    println!("{same} of {all} identical");
    Ok(())
}
