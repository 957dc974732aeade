//! Plays the recordings against an embedded cluster and prints what differs:
//! `cargo run -p entourage-e2e --example conformance -- [SCENARIO…]` (a name may end with `*`). With `UPDATE_GOLDEN=1` and
//! no name, it writes the page and the list of differences, as the test does.

use std::path::Path;

use anyhow::Result;
use entourage_e2e::conformance::{self, RECORDINGS, report};

/// Scenarios that are played at a time.
const AT_A_TIME: usize = 16;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let all = conformance::load_all(&root)?;
    let chosen = all.iter().filter(|scenario| {
        wanted.is_empty()
            || wanted.iter().any(|name| match name.strip_suffix('*') {
                Some(start) => scenario.name.starts_with(start),
                None => *name == scenario.name,
            })
    });
    let played = conformance::play_embedded(chosen, AT_A_TIME).await;
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
    for recording in &RECORDINGS {
        let (same, all) = report::totals(report::of(recording, &played));
        println!("{}: {same} of {all} identical", recording.title);
    }
    if wanted.is_empty() && std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        let list = root.join("differences.txt");
        let text = report::differences(&std::fs::read_to_string(&list)?, &played);
        std::fs::write(list, &text)?;
        let page = report::page(&report::known(&text), &played);
        std::fs::write(root.join("../../docs/conformance.md"), page)?;
    }
    Ok(())
}
