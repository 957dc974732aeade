//! The pods that a Job creates, and when.

use std::{cmp::Reverse, collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use super::{FAILURES, IGNORED, INDEX, Run, TRACKED, drop_uncounted, failures_of, index_of};
use crate::{
    object::Object,
    workloads::{
        Action,
        owners::MOST,
        parts::{count, create, int, part, phase_of, pod, prefix, sooner, text},
        policies::{self, Ending},
        replicas::expendable,
    },
};

/// The first pause after a pod failed, and the longest, in seconds.
const PAUSES: (i64, i64) = (10, 600);

impl Run<'_> {
    /// The time until a pod follows those that failed.
    fn pause(&self) -> Duration {
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
        failed
            .iter()
            .max()
            .map_or(Duration::ZERO, |last| self.after(last, failed.len() - 1))
    }

    /// The time until a pod follows one that failed at `last`, after so many failures before.
    fn after(&self, last: &str, before: usize) -> Duration {
        let (first, longest) = PAUSES;
        let times = u32::try_from(before).unwrap_or(u32::MAX);
        let seconds = first.saturating_mul(2_i64.saturating_pow(times)).min(longest);
        self.around.until(&json!(last), seconds)
    }

    /// The pod of an index that failed last, and the failures of the index: those that count and those that are ignored.
    fn failures(&self, index: i64) -> Option<(&Object, [i64; 2])> {
        let failed = self
            .pods
            .iter()
            .filter(|pod| index_of(pod) == Some(index) && Self::end_of(pod) == Some(false));
        let counted = failed.map(|pod| {
            let ending = policies::ending(&self.spec["podFailurePolicy"], pod);
            let mut failures = [FAILURES, IGNORED].map(|name| failures_of(pod, name));
            failures[usize::from(ending == Ending::Ignored)] += 1;
            (pod, failures)
        });
        counted.max_by_key(|(_, failures)| failures[0] + failures[1])
    }

    /// Creates pods that are missing, and removes those that are too many. Returns the time until another may be created.
    pub(super) fn pods_of(
        &self,
        live: &[&Object],
        terminating: usize,
        actions: &mut Vec<Action>,
    ) -> Option<Duration> {
        let parallelism = int(&self.spec["parallelism"], 1);
        let succeeded = self.succeeded_so_far();
        let active = count(live.len());
        let wanted = match self.completions {
            None if succeeded > 0 => active.min(parallelism),
            None => parallelism,
            Some(completions) => parallelism.min(completions - succeeded - count(self.failed_indexes.len())),
        };
        let completions = self.completions.unwrap_or(0);
        let outside = |pod: &Object| self.indexed && index_of(pod).is_none_or(|index| index >= completions);
        let least = live.iter().filter(|pod| outside(pod)).count();
        let excess = usize::try_from(active - wanted.max(0)).unwrap_or(0).max(least);
        if excess > 0 {
            let mut order = live.to_vec();
            order.sort_by_key(|pod| Reverse((outside(pod), expendable(pod), index_of(pod))));
            actions.extend(order.iter().take(excess).flat_map(|pod| drop_uncounted(pod)));
            return None;
        }
        let replaced = if self.spec["podReplacementPolicy"] == "Failed" {
            count(terminating)
        } else {
            0
        };
        let missing = usize::try_from(wanted - active - replaced).unwrap_or(0).min(MOST);
        if missing == 0 {
            return None;
        }
        let by_index = self.spec["backoffLimitPerIndex"].is_i64();
        let pause = self.pause();
        if !by_index && !pause.is_zero() {
            return Some(pause);
        }
        if !self.indexed {
            actions.extend((0..missing).map(|_| self.create(None, None)));
            return None;
        }
        let taken: BTreeSet<i64> = live.iter().filter_map(|pod| index_of(pod)).collect();
        let free = (0..completions).filter(|index| {
            !taken.contains(index) && !self.completed.contains(index) && !self.failed_indexes.contains(index)
        });
        let mut again = None;
        for index in free.take(missing) {
            let failed = by_index.then(|| self.failures(index)).flatten();
            let pause = failed.map_or(Duration::ZERO, |(pod, [counted, ignored])| {
                let before = usize::try_from(counted + ignored - 1).unwrap_or(0);
                self.after(&ended(pod), before)
            });
            if pause.is_zero() {
                let failures = by_index.then(|| failed.map_or([0; 2], |(_, failures)| failures));
                actions.push(self.create(Some(index), failures));
            } else {
                again = sooner(again, Some(pause));
            }
        }
        again
    }

    /// The pod of an index, if it has one, with the failures of the index, if they are counted.
    fn create(&self, index: Option<i64>, failures: Option<[i64; 2]>) -> Action {
        let mut name = prefix(self.job);
        let mut template = self.spec["template"].clone();
        let number = index.unwrap_or(0).to_string();
        let mut labels = vec![("job-name", text(&self.job["metadata"]["name"]))];
        if let Some(index) = index {
            labels.push((INDEX, &number));
            template["metadata"]["annotations"][INDEX] = json!(number);
            if let Some([counted, ignored]) = failures {
                template["metadata"]["annotations"][FAILURES] = json!(counted.to_string());
                if ignored > 0 {
                    template["metadata"]["annotations"][IGNORED] = json!(ignored.to_string());
                }
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

/// The time at which the last container of a pod ended; empty when none did.
fn ended(pod: &Object) -> String {
    let states = part(pod, "status")["containerStatuses"].as_array();
    let times = states.into_iter().flatten();
    let times = times.map(|one| text(&one["state"]["terminated"]["finishedAt"]));
    times.max().unwrap_or_default().to_owned()
}
