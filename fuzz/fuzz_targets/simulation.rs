//! `cargo +nightly fuzz run simulation`: whatever users do, in whatever order things are reported, and however processes end, the
//! invariants of the scenario tests hold, and the end is the one that the hub's objects ask for.
//!
//! The world and its checks are those of the chaos tests of `entourage-simulation`, which run the seeds on stable, too.

#![no_main]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "the world has more than this target needs"
)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/simulation/tests/scenarios"]
mod scenarios {
    pub mod chaos;
    pub mod given;
    pub mod world;
}

use scenarios::{
    chaos,
    given::{config_map, deployment, policy_of},
    world,
};

fuzz_target!(|choices: &[u8]| chaos::fuzz(choices));
