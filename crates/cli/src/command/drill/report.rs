//! The results of a drill: as lines, and as one JSON object.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anyhow::Result;
use serde::Serialize;

use crate::command::failover::{Forecast, Stays};

/// The results of a drill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The member that was cut off.
    pub cluster: String,
    /// The number of members.
    pub members: usize,
    /// The prediction of `entourage failover --dry-run`.
    pub forecast: Forecast,
    /// The time from the cut until the hub reported the member as not ready.
    pub not_ready_after_ms: Option<u64>,
    /// Evicted workloads.
    pub moved: Vec<Moved>,
    /// Workloads that have no other cluster.
    pub blocked: Vec<Stays>,
    /// Workloads that tolerate the taint.
    pub tolerate: Vec<String>,
    /// Claims whose data remains on it.
    pub data: Vec<String>,
    /// The differences from the prediction.
    pub differences: Vec<String>,
    /// The result after the member was reconnected.
    pub healed: Option<Healed>,
    /// The number of observed changes of copies.
    pub changes: usize,
    /// Failed checks: copies without their dependencies, workloads that were not evicted or settled in time, orphaned copies.
    pub problems: Vec<String>,
}

/// An evicted workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moved {
    /// `Deployment shop/web`.
    pub object: String,
    /// The member that was cut off.
    pub from: String,
    /// Its new clusters, each with its replicas.
    pub to: BTreeMap<String, i64>,
    /// Its dependencies.
    pub dependencies: Vec<String>,
    /// The time from the cut until the last of these was on all of them; 0: they were there before.
    pub dependencies_after_ms: u64,
    /// The time from the cut until the workload was on all of them; 0: it was there before.
    pub replacement_after_ms: u64,
    /// The time with fewer replicas on reachable members than before; `None`: until the member was reconnected.
    pub gap_ms: Option<u64>,
}

/// The result after the member was reconnected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Healed {
    /// The time until the hub reported it as ready.
    pub ready_after_ms: u64,
    /// The removed copies.
    pub cleaned: Vec<Cleaned>,
    /// The time until nothing was left to do.
    pub settled_after_ms: u64,
}

/// A removed copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cleaned {
    /// `Deployment shop/web`.
    pub object: String,
    /// `deleted`, or `released`: it is kept and not managed any more.
    pub how: &'static str,
    /// The time since the member was reconnected.
    pub after_ms: u64,
}

/// Converts to whole milliseconds, rounded down.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Report {
    /// Compares the result with the prediction.
    pub(super) fn compare(&mut self) {
        let (predicted, mut found) = (self.forecast.clone(), Vec::new());
        for each in &predicted.moves {
            let moved = self.moved.iter().find(|moved| moved.object == each.object);
            let Some(moved) = moved else {
                found.push(format!("{} was predicted to move, and did not", each.object));
                continue;
            };
            let to: BTreeMap<&str, i64> = each
                .to
                .iter()
                .map(|(name, count)| (name.as_str(), *count))
                .collect();
            let other = moved
                .to
                .iter()
                .find(|(name, count)| to.get(name.as_str()) != Some(count));
            if let Some((name, count)) = other {
                let want: Vec<String> = each.to.iter().map(|(name, count)| placed(name, *count)).collect();
                found.push(format!(
                    "{} moved to {}; predicted was {}",
                    each.object,
                    placed(name, *count),
                    want.join(", ")
                ));
            }
        }
        let unforeseen = |object: &String| !predicted.moves.iter().any(|each| each.object == *object);
        let moved = self.moved.iter().map(|each| &each.object);
        found.extend(
            moved
                .filter(|object| unforeseen(object))
                .map(|object| format!("{object} moved, and was predicted to stay")),
        );
        let objects = |all: &[Stays]| all.iter().map(|each| each.object.clone()).collect::<Vec<_>>();
        for (what, predicted, is) in [
            (
                "to have no other cluster",
                objects(&predicted.blocked),
                objects(&self.blocked),
            ),
            (
                "to tolerate it",
                predicted.tolerate.clone(),
                self.tolerate.clone(),
            ),
            (
                "to leave its data there",
                predicted.data.clone(),
                self.data.clone(),
            ),
        ] {
            let lost = predicted.iter().filter(|each| !is.contains(each));
            found.extend(lost.map(|each| format!("{each} was predicted {what}, and was not")));
            let new = is.iter().filter(|each| !predicted.contains(each));
            found.extend(new.map(|each| format!("{each} was found {what}, which was not predicted")));
        }
        self.differences = found;
    }

    /// The events while the member was cut off.
    ///
    /// # Errors
    /// Never; the type of the formatter allows one.
    pub fn failure(&self) -> Result<String> {
        let (mut text, cluster) = (String::new(), &self.cluster);
        if let Some(after) = self.not_ready_after_ms {
            writeln!(text, "  Ready is False after {after} ms.\n")?;
        }
        if !self.moved.is_empty() {
            text.push_str(&table(&self.moved)?);
        }
        if !self.blocked.is_empty() {
            writeln!(text, "Has no other cluster, and stays on {cluster}:")?;
        }
        for each in &self.blocked {
            writeln!(text, "  {}: {}", each.object, each.why)?;
        }
        section(
            &mut text,
            &format!("Tolerates it, and stays on {cluster}:"),
            &self.tolerate,
        )?;
        section(&mut text, &format!("Data that remains on {cluster}:"), &self.data)?;
        match self.differences.as_slice() {
            [] => writeln!(text, "Everything was predicted.")?,
            all => section(&mut text, "Different from the prediction:", all)?,
        }
        Ok(text)
    }

    /// The events after the member was reconnected, and the conclusion.
    ///
    /// # Errors
    /// As [`failure`](Self::failure).
    pub fn healing(&self) -> Result<String> {
        let mut text = String::new();
        if let Some(healed) = &self.healed {
            writeln!(text, "  Ready is True after {} ms.", healed.ready_after_ms)?;
            let width = healed.cleaned.iter().map(|each| each.object.len()).max();
            let width = width.unwrap_or_default();
            for each in &healed.cleaned {
                writeln!(
                    text,
                    "  {:<8}  {:<width$}  after {} ms",
                    each.how, each.object, each.after_ms
                )?;
            }
            writeln!(
                text,
                "  Nothing is left to do after {} ms.\n",
                healed.settled_after_ms
            )?;
        }
        match self.problems.as_slice() {
            [] => writeln!(
                text,
                "Held in all {} changes of copies: no running copy lacked what it refers to, and nothing is \
                 orphaned.",
                self.changes
            )?,
            all => section(&mut text, "Did not hold:", all)?,
        }
        Ok(text)
    }
}

fn section(text: &mut String, heading: &str, lines: &[String]) -> Result<()> {
    if !lines.is_empty() {
        writeln!(text, "{heading}\n  {}", lines.join("\n  "))?;
    }
    Ok(())
}

fn placed(name: &str, replicas: i64) -> String {
    match replicas {
        0 => name.to_owned(),
        _ => format!("{name} ({replicas})"),
    }
}

/// The table of evicted workloads.
fn table(moved: &[Moved]) -> Result<String> {
    let heading = ["WORKLOAD", "FROM", "TO", "DEPENDENCIES", "REPLACEMENT", "GAP"].map(str::to_owned);
    let mut rows = vec![heading];
    for each in moved {
        let to: Vec<String> = each.to.iter().map(|(name, count)| placed(name, *count)).collect();
        let after = |ms: u64| match ms {
            0 => "was there".to_owned(),
            ms => format!("after {ms} ms"),
        };
        let dependencies = match each.dependencies.len() {
            0 => "none".to_owned(),
            count => format!("{count}, {}", after(each.dependencies_after_ms)),
        };
        rows.push([
            each.object.clone(),
            each.from.clone(),
            to.join(", "),
            dependencies,
            after(each.replacement_after_ms),
            each.gap_ms
                .map_or_else(|| "not closed".to_owned(), |ms| format!("{ms} ms")),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        writeln!(text, "{}", cells.join("  ").trim_end())?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
