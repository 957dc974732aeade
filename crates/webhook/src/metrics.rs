//! The metrics of the webhook, and their OpenMetrics text. One counter and one histogram: no library is needed for that.
//!
//! The labels are bounded: two webhooks, and the codes of our own responses. Nothing of an object is in them.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The media type of [`Metrics::render`].
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const REQUESTS_NAME: &str = "entourage_webhook_requests";
const DURATION_NAME: &str = "entourage_webhook_request_duration_seconds";

/// Upper bounds of the buckets in seconds. A rule takes less than a millisecond; lists of the hub and dry runs take up to two seconds.
const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 0.7, 1.0, 2.5];

/// The metrics of this process. Cheap to clone; clones share the state.
#[derive(Clone, Default)]
pub(crate) struct Metrics(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    /// By webhook and code.
    requests: BTreeMap<(&'static str, u16), u64>,
    durations: BTreeMap<&'static str, Durations>,
}

#[derive(Default)]
struct Durations {
    /// The number of requests in each bucket alone; those above all bounds are in none.
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

impl Metrics {
    /// Counts a request to a webhook: the code of the response, or of the decision if the write is denied.
    pub(crate) fn request(&self, webhook: &'static str, code: u16, took: Duration) {
        let mut counts = self.counts();
        *counts.requests.entry((webhook, code)).or_default() += 1;
        let durations = counts.durations.entry(webhook).or_default();
        let bucket = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound);
        if let Some(count) = bucket.and_then(|at| durations.buckets.get_mut(at)) {
            *count += 1;
        }
        durations.count += 1;
        durations.sum += took;
    }

    /// All metrics as OpenMetrics text, followed by these families.
    pub(crate) fn render(&self, families: &str) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        let _ = render(&self.counts(), &mut out);
        out.push_str(families);
        out.push_str("# EOF\n");
        out
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn render(counts: &Counts, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "# HELP {REQUESTS_NAME} Requests of API servers, by webhook and code."
    )?;
    writeln!(out, "# TYPE {REQUESTS_NAME} counter")?;
    for ((webhook, code), count) in &counts.requests {
        writeln!(
            out,
            "{REQUESTS_NAME}_total{{webhook=\"{webhook}\",code=\"{code}\"}} {count}"
        )?;
    }
    writeln!(
        out,
        "# HELP {DURATION_NAME} Time from the head of a request to its response."
    )?;
    writeln!(out, "# TYPE {DURATION_NAME} histogram")?;
    for (webhook, durations) in &counts.durations {
        let (sum, count) = (durations.sum.as_secs_f64(), durations.count);
        writeln!(out, "{DURATION_NAME}_sum{{webhook=\"{webhook}\"}} {sum}")?;
        writeln!(out, "{DURATION_NAME}_count{{webhook=\"{webhook}\"}} {count}")?;
        let mut below = 0;
        // As OpenMetrics has floats: 1.0, not 1.
        for (bound, count) in BOUNDS.iter().zip(durations.buckets) {
            below += count;
            writeln!(
                out,
                "{DURATION_NAME}_bucket{{webhook=\"{webhook}\",le=\"{bound:?}\"}} {below}"
            )?;
        }
        writeln!(
            out,
            "{DURATION_NAME}_bucket{{webhook=\"{webhook}\",le=\"+Inf\"}} {count}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "../../controllers/src/metrics/openmetrics/reader.rs"]
mod reader;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_requests_there_are_no_samples() {
        let text = Metrics::default().render("");
        assert_eq!(reader::read(&text), Ok(Vec::new()), "{text}");
        assert!(text.lines().all(|line| line.starts_with('#')), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn requests_are_counted_by_webhook_and_code_and_buckets_add_up() {
        let metrics = Metrics::default();
        for (webhook, code, millis) in [
            ("validate", 200, 1),
            ("validate", 200, 2),
            ("validate", 422, 20),
            ("validate", 503, 5000),
            ("mutate", 200, 1),
        ] {
            metrics.request(webhook, code, Duration::from_millis(millis));
        }
        let text = metrics.render("");
        reader::read(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        for line in [
            r#"entourage_webhook_requests_total{webhook="mutate",code="200"} 1"#,
            r#"entourage_webhook_requests_total{webhook="validate",code="200"} 2"#,
            r#"entourage_webhook_requests_total{webhook="validate",code="422"} 1"#,
            r#"entourage_webhook_requests_total{webhook="validate",code="503"} 1"#,
            r#"entourage_webhook_request_duration_seconds_sum{webhook="validate"} 5.023"#,
            r#"entourage_webhook_request_duration_seconds_count{webhook="validate"} 4"#,
            r#"entourage_webhook_request_duration_seconds_bucket{webhook="validate",le="0.001"} 1"#,
            r#"entourage_webhook_request_duration_seconds_bucket{webhook="validate",le="0.0025"} 2"#,
            r#"entourage_webhook_request_duration_seconds_bucket{webhook="validate",le="0.01"} 2"#,
            r#"entourage_webhook_request_duration_seconds_bucket{webhook="validate",le="0.025"} 3"#,
            r#"entourage_webhook_request_duration_seconds_bucket{webhook="validate",le="1.0"} 3"#,
            r#"entourage_webhook_request_duration_seconds_bucket{webhook="validate",le="2.5"} 3"#,
            r#"entourage_webhook_request_duration_seconds_bucket{webhook="validate",le="+Inf"} 4"#,
        ] {
            let found = text.lines().filter(|each| *each == line).count();
            assert_eq!(found, 1, "{line}\n{text}");
        }
        let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        assert_eq!(families.len(), 2, "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn families_of_the_process_follow_and_are_read_as_one_exposition() {
        const PROCESS: &str =
            "# HELP process_open_fds Files.\n# TYPE process_open_fds gauge\nprocess_open_fds 9\n";
        let metrics = Metrics::default();
        metrics.request("validate", 200, Duration::from_millis(1));
        let text = metrics.render(PROCESS);
        let samples = reader::read(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let last = samples.last().map(|(name, _, value)| (name.as_str(), *value));
        assert_eq!(last, Some(("process_open_fds", 9.0)), "{text}");
    }
}
