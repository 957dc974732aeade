//! The bindings that remain on a drained cluster, and the messages about them. No I/O.

use std::{collections::BTreeMap, collections::BTreeSet, io::Write, time::Duration};

use anyhow::{Context as _, Result};
use entourage_api::keys::{condition, taint};
use entourage_core::failover::tolerance::tolerates_without_end;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use serde_json::Value;

/// The number of remaining bindings that a message names.
const NAMED: usize = 5;

/// A binding that is still on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remaining {
    /// The cause, in a sentence.
    pub(super) why: String,
    /// True if it tolerates the taint without a limit: then it is not evicted.
    pub(super) tolerates: bool,
}

/// `namespace/name` of a binding that is scheduled to the cluster or being evicted from it, and the cause; `None` for any
/// other. Dependencies follow their dependents and are not counted.
pub(super) fn remaining(binding: &Value, cluster: &str) -> Option<(String, Remaining)> {
    let entry = |pointer: &str, field: &str| {
        let mut all = binding.pointer(pointer)?.as_array()?.iter();
        all.find(|each| each[field] == cluster)
    };
    let task = entry("/spec/gracefulEvictionTasks", "fromCluster");
    if task.is_none() && entry("/spec/clusters", "name").is_none() {
        return None;
    }
    let tolerates = task.is_none() && tolerates(binding);
    let unscheduled = unscheduled(binding, cluster);
    let why = match task {
        Some(task) => first_of([&task["message"], &task["reason"]], "it is being evicted"),
        None if tolerates => format!("it tolerates {}:NoExecute", taint::DRAIN),
        None => first_of(
            [&unscheduled["message"], &unscheduled["reason"]],
            "it is not evicted yet",
        ),
    };
    let text = |field: &str| binding["metadata"][field].as_str().unwrap_or_default();
    let name = match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    };
    Some((name, Remaining { why, tolerates }))
}

/// The condition with the reason why it cannot be evicted from the cluster, or not be scheduled at all; null if there is none.
fn unscheduled<'a>(binding: &'a Value, cluster: &str) -> &'a Value {
    let all = binding.pointer("/status/conditions").and_then(Value::as_array);
    let mut each = all.into_iter().flatten();
    let about = format!("{cluster} (");
    let blocked = each.find(|each| {
        let message = each["message"].as_str().unwrap_or_default();
        each["type"] == condition::EVICTION_BLOCKED && each["status"] == "True" && message.contains(&about)
    });
    let mut each = all.into_iter().flatten();
    blocked
        .or_else(|| each.find(|each| each["type"] == condition::SCHEDULED && each["status"] != "True"))
        .unwrap_or(&Value::Null)
}

fn first_of(texts: [&Value; 2], otherwise: &str) -> String {
    let mut texts = texts.into_iter().filter_map(Value::as_str);
    texts
        .find(|text| !text.is_empty())
        .unwrap_or(otherwise)
        .trim_end_matches('.')
        .to_owned()
}

/// True if the placement tolerates the taint without a limit.
fn tolerates(binding: &Value) -> bool {
    let stored = binding.pointer("/spec/placement/clusterTolerations");
    let tolerations: Vec<Toleration> = stored
        .and_then(|all| serde_json::from_value(all.clone()).ok())
        .unwrap_or_default();
    let drain = Taint {
        key: taint::DRAIN.into(),
        effect: "NoExecute".into(),
        ..Taint::default()
    };
    tolerates_without_end(&tolerations, &drain)
}

/// The progress of a drain.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    cluster: &'a str,
    /// All bindings seen on the cluster.
    all: BTreeSet<String>,
    there: BTreeMap<String, Remaining>,
}

impl<'a> Progress<'a> {
    /// The progress of a drain that begins with these bindings.
    pub(super) fn new(cluster: &'a str, there: BTreeMap<String, Remaining>) -> Self {
        Self {
            cluster,
            all: there.keys().cloned().collect(),
            there,
        }
    }

    /// True if none is left.
    pub(super) fn is_done(&self) -> bool {
        self.there.is_empty()
    }

    /// Prints the number of bindings to wait for.
    pub(super) fn begin(&self, out: &mut (dyn Write + Send)) -> Result<()> {
        let cluster = self.cluster;
        match self.there.len() {
            0 => Ok(()),
            1 => writeln!(out, "waiting for 1 binding to leave {cluster}"),
            many => writeln!(out, "waiting for {many} bindings to leave {cluster}"),
        }
        .context("cannot write to the terminal")
    }

    /// Updates the remaining bindings; prints a line for each that has left.
    pub(super) fn advance(
        &mut self,
        now: BTreeMap<String, Remaining>,
        out: &mut (dyn Write + Send),
    ) -> Result<()> {
        self.all.extend(now.keys().cloned());
        let left: Vec<&String> = self
            .there
            .keys()
            .filter(|name| !now.contains_key(*name))
            .collect();
        let (all, cluster) = (self.all.len(), self.cluster);
        let before = all - now.len() - left.len();
        for (at, name) in left.into_iter().enumerate() {
            let count = before + at + 1;
            writeln!(
                out,
                "binding {name} has left; {count} of {all} bindings have left {cluster}"
            )
            .context("cannot write to the terminal")?;
        }
        self.there = now;
        Ok(())
    }

    /// The reason why further waiting is useless: all remaining bindings tolerate the taint. `None` if some do not.
    pub(super) fn stuck(&self) -> Option<String> {
        let cluster = self.cluster;
        let is_stuck = !self.is_done() && self.there.values().all(|each| each.tolerates);
        is_stuck.then(|| {
            format!(
                "{} of {} bindings stay on {cluster} because they tolerate {}:NoExecute: {}; change their policies or delete \
                 their templates. {}",
                self.there.len(),
                self.all.len(),
                taint::DRAIN,
                self.named(|name, _| name.to_owned()),
                self.remains()
            )
        })
    }

    /// The remaining bindings after the timeout, with the causes.
    pub(super) fn timed_out(&self, limit: Duration) -> String {
        let cluster = self.cluster;
        let idle = if self.there.len() == self.all.len() {
            ". None has left: check that the controllers run and evict"
        } else {
            ""
        };
        format!(
            "{} of {} bindings are still on {cluster} after {} s: {}{idle}. {}",
            self.there.len(),
            self.all.len(),
            limit.as_secs(),
            self.named(|name, why| format!("{name} ({why})")),
            self.remains()
        )
    }

    fn remains(&self) -> String {
        let cluster = self.cluster;
        format!("The taints stay: drain {cluster} again to go on waiting, or `entourage uncordon {cluster}`")
    }

    fn named(&self, words: impl Fn(&str, &str) -> String) -> String {
        let named = self.there.iter().take(NAMED);
        let named: Vec<String> = named.map(|(name, each)| words(name, &each.why)).collect();
        let more = match self.there.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{}{more}", named.join(", "))
    }
}
