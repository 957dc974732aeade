//! The pods that a Job creates, and when.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use super::{FAILURES, INDEX, Run, TRACKED, drop_uncounted, failures_of, index_of};
use crate::{
    object::Object,
    workloads::{
        Action,
        owners::MOST,
        parts::{count, create, int, part, phase_of, pod, prefix, text},
    },
};

/// The first pause after a pod failed, and the longest, in seconds.
const PAUSES: (u64, u64) = (10, 600);

impl Run<'_> {
    /// The time until a pod follows one that failed.
    pub(super) fn pause(&self) -> Duration {
        let ended = |pod: &Object| {
            let states = part(pod, "status")["containerStatuses"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let times = states
                .iter()
                .map(|one| text(&one["state"]["terminated"]["finishedAt"]).to_owned());
            times.max().unwrap_or_default()
        };
        let last_success = self
            .pods
            .iter()
            .filter(|pod| phase_of(pod) == "Succeeded")
            .map(ended)
            .max();
        let failed: Vec<String> = self
            .pods
            .iter()
            .filter(|pod| phase_of(pod) == "Failed")
            .map(ended)
            .filter(|time| !time.is_empty() && last_success.as_ref().is_none_or(|last| time > last))
            .collect();
        let Some(last) = failed.iter().max() else {
            return Duration::ZERO;
        };
        let (first, longest) = PAUSES;
        let times = u32::try_from(failed.len() - 1).unwrap_or(u32::MAX);
        let seconds = first.saturating_mul(2_u64.saturating_pow(times)).min(longest);
        self.around
            .until(&json!(last), i64::try_from(seconds).unwrap_or(600))
    }

    /// Creates pods that are missing, if it `may_create` some now, and removes those that are too many.
    pub(super) fn pods_of(
        &self,
        live: &[&Object],
        terminating: usize,
        may_create: bool,
        actions: &mut Vec<Action>,
    ) {
        let parallelism = int(&self.spec["parallelism"], 1);
        let succeeded = self.succeeded_so_far();
        let active = count(live.len());
        let wanted = match self.completions {
            None if succeeded > 0 => active.min(parallelism),
            None => parallelism,
            Some(completions) => parallelism.min(completions - succeeded - count(self.failed_indexes.len())),
        };
        let excess = usize::try_from(active - wanted.max(0)).unwrap_or(0);
        actions.extend(live.iter().rev().take(excess).flat_map(|pod| drop_uncounted(pod)));
        let replaced = if self.spec["podReplacementPolicy"] == "Failed" {
            count(terminating)
        } else {
            0
        };
        let missing = usize::try_from(wanted - active - replaced).unwrap_or(0).min(MOST);
        if !may_create || missing == 0 {
            return;
        }
        if !self.indexed {
            actions.extend((0..missing).map(|_| self.create(None)));
            return;
        }
        let taken: BTreeSet<i64> = live.iter().filter_map(|pod| index_of(pod)).collect();
        let free = (0..self.completions.unwrap_or(0)).filter(|index| {
            !taken.contains(index) && !self.completed.contains(index) && !self.failed_indexes.contains(index)
        });
        actions.extend(free.take(missing).map(|index| self.create(Some(index))));
    }

    fn create(&self, index: Option<i64>) -> Action {
        let mut name = prefix(self.job);
        let mut template = self.spec["template"].clone();
        let number = index.unwrap_or(0).to_string();
        let mut labels = vec![("job-name", text(&self.job["metadata"]["name"]))];
        if let Some(index) = index {
            labels.push((INDEX, &number));
            template["metadata"]["annotations"][INDEX] = json!(number);
            if self.spec["backoffLimitPerIndex"].is_i64() {
                let before = self.pods.iter().filter(|pod| index_of(pod) == Some(index));
                let failures = before.map(|pod| failures_of(pod) + 1).max().unwrap_or(0);
                template["metadata"]["annotations"][FAILURES] = json!(failures.to_string());
            }
            template["spec"]["hostname"] = json!(format!("{name}{index}"));
            name += &format!("{index}-");
            let from = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
                {"apiVersion": "v1", "fieldPath": format!("metadata.labels['{INDEX}']")}}});
            for kind in ["containers", "initContainers"] {
                for container in template["spec"][kind].as_array_mut().into_iter().flatten() {
                    let mut env = container["env"].as_array().cloned().unwrap_or_default();
                    if !env.iter().any(|one| one["name"] == from["name"]) {
                        env.push(from.clone());
                    }
                    container["env"] = json!(env);
                }
            }
            if template["spec"]["initContainers"].is_null()
                && let Value::Object(spec) = &mut template["spec"]
            {
                spec.remove("initContainers");
            }
        }
        let owner = ("batch/v1", "Job");
        let mut made = pod(self.job, owner, &name, &template, &labels, &self.around.node);
        let mut all = made["metadata"]["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.push(json!(TRACKED));
        made["metadata"]["finalizers"] = json!(all);
        create("api/v1", "pods", self.job, made)
    }
}
