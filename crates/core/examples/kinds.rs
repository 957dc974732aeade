//! The cost of kinds that policies name and no server serves: memory of the engine, and the time for one more kind.
//!
//! `cargo run --release -p entourage-core --example kinds` prints a table; figures are in docs/performance.md.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement reads the clock and its own memory; no decision does"
)]

use std::time::{Duration, Instant};

use entourage_core::{
    Engine,
    config::Config,
    object::{Gvk, Time},
    observation::{self, Observation, Watch},
};
use serde_json::{Value, json};

fn main() {
    println!("| Kinds | Watches demanded | Memory | One more kind |");
    println!("|---|---|---|---|");
    // What a process needs anyway is there before the first measurement.
    let (_warm, _) = measure(10);
    for kinds in [10, 100, 1_000] {
        let before = resident();
        let (engine, spent) = measure(kinds);
        let grown = resident().saturating_sub(before);
        println!(
            "| {kinds} | {} | {grown} kB | {spent:.1?} |",
            engine.demand().len()
        );
    }
}

/// Three members, and namespaces whose policies name ten kinds each; what the last one took.
fn measure(kinds: usize) -> (Engine, Duration) {
    let mut engine = Engine::new(Config::new("hub"));
    let now = Time(1_795_219_200_000);
    let tell = |engine: &mut Engine, watch: &Watch, object: &Value| {
        let subject =
            observation::project(watch, &engine.interpretation_of(watch), object).expect("an object");
        engine.observe(Observation::Seen(subject), now);
    };
    for member in ["m1", "m2", "m3"] {
        let cluster = json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": member, "uid": member, "resourceVersion": "1"}, "spec": {"syncMode": "Push"},
        });
        tell(&mut engine, &Watch::Clusters, &cluster);
    }
    let mut spent = Duration::ZERO;
    for at in 0..kinds {
        let namespace = format!("tenant{}", at / 10);
        let policy = json!({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": format!("p{at}"), "namespace": namespace, "uid": format!("p{at}"), "resourceVersion": "1"},
            "spec": {"resourceSelectors": [{"apiVersion": "invented.example.com/v1", "kind": format!("Dream{at}")}]},
        });
        let began = Instant::now();
        tell(&mut engine, &Watch::Policies, &policy);
        spent = began.elapsed();
        let gvk = Gvk::new("invented.example.com/v1", &format!("Dream{at}"));
        let copies = ["m1", "m2", "m3"].map(|member| Watch::Copies(member.into(), gvk.clone()));
        for watch in copies.into_iter().chain([Watch::Templates(gvk)]) {
            let why =
                "invented.example.com/v1 Dream is not served there: install its CustomResourceDefinition"
                    .to_owned();
            engine.observe(
                Observation::Unserved {
                    watch,
                    other: None,
                    why,
                },
                now,
            );
        }
    }
    (engine, spent)
}

/// The resident memory of this process, in kB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|each| each.parse().ok())
        .unwrap_or_default()
}
