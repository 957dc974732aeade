//! The Jobs of a CronJob, and its status. Source: the CronJob controller of kube-controller-manager.

use std::time::Duration;

use jiff::{
    SignedDuration, Timestamp,
    tz::{Offset, TimeZone},
};
use serde_json::{Value, json};

use super::{
    Action,
    parts::{self, Counts, is_leaving, owned_by, part, remove_of, text},
    zones,
};
use crate::{
    kinds::batch::schedule,
    object::{Object, holds},
};

/// The time of a Job's schedule.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

const GROUP_VERSION: &str = "apis/batch/v1";

/// A CronJob has a Job for the last time that has come, and as many finished ones as its limits say. That a time has its Job is
/// noted when the Job is there: one that was refused is created later.
pub(super) fn cron_job(cron: &Object, jobs: &[Object], now: Timestamp) -> (Vec<Action>, Option<Duration>) {
    if is_leaving(cron) {
        return (Vec::new(), None);
    }
    let spec = &cron["spec"];
    let active: Vec<&Object> = jobs
        .iter()
        .filter(|job| !holds(job, "Complete") && !holds(job, "Failed"))
        .collect();
    let mut actions = Vec::new();
    for (condition, limit, default) in [
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ] {
        let kept = spec[limit].as_u64().unwrap_or(default);
        let finished = jobs
            .iter()
            .filter(|job| holds(job, condition) && !is_leaving(job));
        for job in outdated(finished.collect(), usize::try_from(kept).unwrap_or(usize::MAX)) {
            actions.push(remove_of(GROUP_VERSION, "jobs", job));
        }
    }
    let done = last_done(cron, jobs, now);
    let (due, next) = times(cron, done, now);
    let policy = text(&spec["concurrencyPolicy"]);
    let waits = policy == "Forbid" && !active.is_empty();
    if let Some(due) = due
        && spec["suspend"] != true
        && !waits
    {
        if policy == "Replace" {
            let live = active.iter().filter(|job| !is_leaving(job));
            actions.extend(live.map(|job| remove_of(GROUP_VERSION, "jobs", job)));
        }
        actions.push(create(cron, due));
    }
    actions.extend(status(cron, jobs, &active, done));
    let again = next.and_then(|next| Duration::try_from(next.duration_since(now)).ok());
    (actions, again)
}

/// The last time that had its Job, by the status or by a Job that is there.
fn last_done(cron: &Object, jobs: &[Object], now: Timestamp) -> Option<Timestamp> {
    let time = |value: &Value| text(value).parse::<Timestamp>().ok();
    let noted = time(&part(cron, "status")["lastScheduleTime"]);
    let scheduled = jobs
        .iter()
        .filter_map(|job| time(&job["metadata"]["annotations"][SCHEDULED]))
        .filter(|time| *time <= now);
    noted.into_iter().chain(scheduled).max()
}

/// The last time that has come and has no Job yet, and the next one.
fn times(cron: &Object, done: Option<Timestamp>, now: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
    let spec = &cron["spec"];
    let Ok(schedule) = schedule::parse(text(&spec["schedule"])) else {
        return (None, None);
    };
    let Some(zone) = zones::find(text(&spec["timeZone"])) else {
        return (None, None);
    };
    let created = || text(&cron["metadata"]["creationTimestamp"]).parse().ok();
    let begin = done.or_else(created).unwrap_or(now);
    let deadline = spec["startingDeadlineSeconds"].as_i64();
    let earliest = deadline.and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok());
    let after = earliest.map_or(begin, |earliest| begin.max(earliest));
    let due = schedule.last(after, now, &zone);
    (due, schedule.next(due.unwrap_or(after).max(begin), &zone))
}

/// The Job of a time: its name is that of the minute, so that there is one.
fn create(cron: &Object, due: Timestamp) -> Action {
    let (meta, template) = (&cron["metadata"], &cron["spec"]["jobTemplate"]);
    let mut metadata = template["metadata"].as_object().cloned().unwrap_or_default();
    metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations"));
    let name = format!("{}-{}", text(&meta["name"]), due.as_second() / 60);
    metadata.insert("name".to_owned(), name.into());
    metadata.insert(
        "ownerReferences".to_owned(),
        owned_by("batch/v1", "CronJob", meta),
    );
    if let Some(annotations) = metadata
        .entry("annotations")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        let zone = zones::find(text(&cron["spec"]["timeZone"])).unwrap_or(TimeZone::UTC);
        let time = match zone.to_offset(due) {
            Offset::UTC => due.to_string(),
            offset => due.display_with_offset(offset).to_string(),
        };
        annotations.insert(SCHEDULED.to_owned(), time.into());
    }
    let job =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]});
    parts::create(GROUP_VERSION, "jobs", cron, job)
}

/// The oldest of finished Jobs, all but so many.
fn outdated(mut finished: Vec<&Object>, kept: usize) -> Vec<&Object> {
    let word = |job: &Object, key: &str| text(&job["metadata"][key]).to_owned();
    finished.sort_by_key(|job| (word(job, "creationTimestamp"), word(job, "name")));
    let number = finished.len().saturating_sub(kept);
    finished.truncate(number);
    finished
}

/// The patch of the status, unless it is the same already.
fn status(cron: &Object, jobs: &[Object], active: &[&Object], done: Option<Timestamp>) -> Option<Action> {
    let references: Vec<Value> = active
        .iter()
        .map(|job| {
            let meta = &job["metadata"];
            json!({"apiVersion": "batch/v1", "kind": "Job", "namespace": meta["namespace"], "name": meta["name"],
                "uid": meta["uid"]})
        })
        .collect();
    let mut status = Counts::default();
    status.set("active", (!references.is_empty()).then_some(references));
    if let Some(done) = done {
        status.set("lastScheduleTime", done.to_string());
    }
    let completed = jobs
        .iter()
        .filter(|job| holds(job, "Complete"))
        .filter_map(|job| job["status"]["completionTime"].as_str())
        .max();
    let old = part(cron, "status");
    if let Some(completed) = completed.filter(|time| *time > text(&old["lastSuccessfulTime"])) {
        status.set("lastSuccessfulTime", completed);
    }
    status.patch(GROUP_VERSION, "cronjobs", cron)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:07:30Z";

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        }
    }

    fn cron(mut spec: Value, status: &Value) -> Object {
        spec["schedule"] = "*/5 * * * *".into();
        spec["jobTemplate"] = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"parallelism": 1}});
        object(
            json!({"metadata": {"namespace": "n", "name": "c", "uid": "1", "creationTimestamp": "2026-01-01T00:01:00Z"},
            "spec": spec, "status": status}),
        )
    }

    fn job(name: &str, condition: &str) -> Object {
        object(
            json!({"metadata": {"namespace": "n", "name": name, "uid": name, "creationTimestamp": name},
            "status": {"conditions": [{"type": condition, "status": "True"}]}}),
        )
    }

    fn decided(cron: &Object, jobs: &[Object]) -> (Vec<Action>, Option<Duration>) {
        cron_job(cron, jobs, NOW.parse().expect("a time"))
    }

    fn created(actions: &[Action]) -> Vec<&Value> {
        let objects = actions.iter().filter_map(|action| match action {
            Action::Create { object, .. } => Some(object),
            _ => None,
        });
        objects.collect()
    }

    #[test]
    fn a_time_that_has_come_has_a_job() {
        let (actions, again) = decided(&cron(json!({}), &Value::Null), &[]);
        let jobs = created(&actions);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0]["metadata"]["name"], "c-29453765");
        assert_eq!(jobs[0]["metadata"]["labels"]["a"], "b");
        assert_eq!(jobs[0]["spec"]["parallelism"], 1);
        assert_eq!(again, Some(Duration::from_secs(150)));
        assert_eq!(actions.len(), 1, "the time is noted when the Job is there");
    }

    #[test]
    fn a_time_with_a_job_is_noted_and_has_no_other() {
        for policy in ["Allow", "Forbid", "Replace"] {
            let mut started = job("c-29453765", "Running");
            started["metadata"]["annotations"] = json!({SCHEDULED: "2026-01-01T00:05:00Z"});
            let (actions, again) = decided(
                &cron(json!({"concurrencyPolicy": policy}), &Value::Null),
                &[started],
            );
            let active = json!([{"apiVersion": "batch/v1", "kind": "Job", "namespace": "n", "name": "c-29453765",
                "uid": "c-29453765"}]);
            let patched = json!({"status": {"active": active, "lastScheduleTime": "2026-01-01T00:05:00Z"}});
            let expected = Action::Patch {
                path: "/apis/batch/v1/namespaces/n/cronjobs/c/status".to_owned(),
                patch: patched,
            };
            assert_eq!(
                (actions, again),
                (vec![expected], Some(Duration::from_secs(150))),
                "{policy}"
            );
        }
    }

    #[test]
    fn of_many_missed_times_the_last_has_a_job() {
        let mut cron = cron(json!({}), &Value::Null);
        cron["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z".into();
        for schedule in ["* * * * *", "0 0 * * *", "@every 1m"] {
            cron["spec"]["schedule"] = schedule.into();
            let (actions, again) = decided(&cron, &[]);
            let jobs = created(&actions);
            assert_eq!(jobs.len(), 1, "{schedule}");
            let time: Timestamp = text(&jobs[0]["metadata"]["annotations"][SCHEDULED])
                .parse()
                .expect("a time");
            let now: Timestamp = NOW.parse().expect("a time");
            assert!(
                time <= now && again.is_some_and(|again| !again.is_zero()),
                "{schedule}"
            );
            let seconds = now.duration_since(time).as_secs();
            assert!(
                seconds < if schedule == "0 0 * * *" { 86_400 } else { 60 },
                "{schedule}"
            );
        }
    }

    #[test]
    fn times_are_those_of_the_zone() {
        for (zone, time) in [
            ("Asia/Kolkata", "2026-01-01T02:00:00+05:30"),
            ("Europe/London", "2025-12-31T20:30:00Z"),
        ] {
            let mut cron = cron(json!({"timeZone": zone}), &Value::Null);
            cron["spec"]["schedule"] = if zone == "Asia/Kolkata" {
                "0 2 * * *"
            } else {
                "30 20 * * *"
            }
            .into();
            cron["metadata"]["creationTimestamp"] = "2025-12-31T00:00:00Z".into();
            let (actions, _) = decided(&cron, &[]);
            let jobs = created(&actions);
            assert_eq!(jobs[0]["metadata"]["annotations"][SCHEDULED], time);
            let mut started = job("c", "Running");
            started["metadata"]["annotations"] = json!({SCHEDULED: time});
            let (actions, _) = decided(&cron, &[started]);
            let [Action::Patch { patch, .. }] = &actions[..] else {
                panic!("{actions:?}")
            };
            assert_eq!(patch["status"]["lastScheduleTime"], "2025-12-31T20:30:00Z");
        }
    }

    #[test]
    fn another_running_job_is_replaced() {
        let (actions, _) = decided(
            &cron(json!({"concurrencyPolicy": "Replace"}), &Value::Null),
            &[job("r", "Running")],
        );
        assert_eq!(created(&actions).len(), 1);
        let deleted =
            |action: &Action| matches!(action, Action::Delete { path, .. } if path.ends_with("/jobs/r"));
        assert!(actions.iter().any(deleted));
    }

    #[test]
    fn a_cron_job_may_have_reasons_to_wait() {
        let done = json!({"lastScheduleTime": "2026-01-01T00:05:00Z"});
        let running = [job("r", "Running")];
        let (none, running): (&[Object], &[Object]) = (&[], &running);
        let cases = [
            ("nothing", cron(json!({}), &done), none, 0),
            ("suspended", cron(json!({"suspend": true}), &Value::Null), none, 0),
            (
                "another runs",
                cron(json!({"concurrencyPolicy": "Forbid"}), &Value::Null),
                running,
                0,
            ),
            (
                "too late",
                cron(json!({"startingDeadlineSeconds": 60}), &Value::Null),
                none,
                0,
            ),
            (
                "not too late",
                cron(json!({"startingDeadlineSeconds": 200}), &Value::Null),
                none,
                1,
            ),
            (
                "side by side",
                cron(json!({"concurrencyPolicy": "Allow"}), &Value::Null),
                running,
                1,
            ),
        ];
        for (why, cron, jobs, number) in cases {
            let (actions, again) = decided(&cron, jobs);
            assert_eq!(created(&actions).len(), number, "{why}");
            assert!(again.is_some(), "{why}");
        }
    }

    #[test]
    fn old_finished_jobs_are_deleted() {
        let done = json!({"lastScheduleTime": "2026-01-01T00:05:00Z"});
        let jobs = [
            job("1", "Failed"),
            job("3", "Failed"),
            job("2", "Failed"),
            job("4", "Complete"),
        ];
        let (actions, _) = decided(&cron(json!({}), &done), &jobs);
        let deleted: Vec<&str> = actions
            .iter()
            .filter_map(|action| match action {
                Action::Delete { path, .. } => path.rsplit('/').next(),
                _ => None,
            })
            .collect();
        assert_eq!(deleted, ["1", "2"]);
    }
}
