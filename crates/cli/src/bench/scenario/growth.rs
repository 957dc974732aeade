//! S7, growth: S1 at three sizes, with a control plane that starts fresh for each if the bench starts it. The cost of one
//! Deployment should not depend on their number.

use anyhow::Result;

use super::{Scenario, cold, remove};
use crate::bench::Bench;

/// The sizes, in Deployments.
const SIZES: [usize; 3] = [100, 300, 900];

/// Runs it.
///
/// # Errors
/// As [`cold::run`].
pub async fn run(bench: &mut Bench, number: usize) -> Result<()> {
    for workloads in SIZES {
        let world = bench.world(&format!("g{number}x{workloads}"), workloads);
        let floor = bench
            .floor_then_fresh(&format!("g{number}x{workloads}"), workloads)
            .await?;
        cold::run(bench, &world, Some(&floor), Scenario::Growth).await?;
        remove(bench, &world).await?;
    }
    Ok(())
}
