//! The exposition is OpenMetrics text, checked by a strict reader of its own: every family once and together, samples named as their
//! type demands, labels that are valid and unique, histograms that add up.

use std::collections::{BTreeMap, BTreeSet};

use entourage_core::{
    fleet::ProblemCounts,
    object::{Gvk, ResourceId, Time},
};
use serde_json::json;

use super::*;

/// A sample: its name, its labels, its value.
type Sample = (String, BTreeMap<String, String>, f64);

/// A family as it was announced.
#[derive(Default)]
struct Announced {
    name: String,
    kind: String,
    has_help: bool,
}

/// Reads an exposition.
///
/// Errors: what is wrong, with the line.
fn read(text: &str) -> Result<Vec<Sample>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end with # EOF")?;
    let (mut samples, mut seen, mut series) = (Vec::<Sample>::new(), BTreeSet::new(), BTreeSet::new());
    let mut family = Announced::default();
    for line in body.split_inclusive('\n') {
        let wrong = |what: &str| format!("{what}: {line:?}");
        let line = line
            .strip_suffix('\n')
            .ok_or_else(|| wrong("a line does not end"))?;
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (word, name, rest) = (words.next(), words.next(), words.next());
            let (Some(word), Some(name), Some(rest)) = (word, name, rest) else {
                return Err(wrong("an incomplete comment"));
            };
            if family.name != name {
                if !seen.insert(name.to_owned()) {
                    return Err(wrong("a family is not in one piece"));
                }
                family = Announced {
                    name: name.to_owned(),
                    ..Announced::default()
                };
            }
            match word {
                "TYPE" if family.kind.is_empty() => family.kind = rest.to_owned(),
                "HELP" if !family.has_help => family.has_help = true,
                _ => return Err(wrong("an unknown or repeated comment")),
            }
            continue;
        }
        let (name, labels, value) = sample(line).map_err(|what| wrong(&what))?;
        let suffix = name
            .strip_prefix(&family.name)
            .ok_or_else(|| wrong("a sample of another family"))?;
        let is_named = match family.kind.as_str() {
            "gauge" => suffix.is_empty(),
            "counter" => suffix == "_total",
            "histogram" => ["_bucket", "_count", "_sum"].contains(&suffix),
            _ => return Err(wrong("a sample without a known type")),
        };
        if !is_named || !family.has_help {
            return Err(wrong("a sample that its type does not have, or without help"));
        }
        if (suffix == "_bucket") != labels.contains_key("le") {
            return Err(wrong("le belongs to buckets"));
        }
        if family.kind != "gauge" && !(value.is_finite() && value >= 0.0) {
            return Err(wrong("a count that is none"));
        }
        if !series.insert((name.clone(), labels.clone())) {
            return Err(wrong("a repeated series"));
        }
        samples.push((name, labels, value));
    }
    histograms(&samples)?;
    Ok(samples)
}

/// Reads `name{label="value",…} number`.
fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    if !is_name(name) {
        return Err("no name of a metric".to_owned());
    }
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("a label without a value")?;
            let (value, after) = quoted(after)?;
            if !is_name(label) || label.contains(':') {
                return Err(format!("no name of a label: {label}"));
            }
            if labels.insert(label.to_owned(), value).is_some() {
                return Err(format!("the label {label} twice"));
            }
            match after.split_at_checked(1) {
                Some((",", after)) => rest = after,
                Some(("}", after)) => {
                    rest = after;
                    break;
                }
                _ => return Err("labels that do not end".to_owned()),
            }
        }
    }
    let value = rest.strip_prefix(' ').ok_or("no value")?;
    let value = value.parse().map_err(|_| format!("no number: {value}"))?;
    Ok((name.to_owned(), labels, value))
}

/// The value up to the closing quote, and what follows that.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, char @ ('\\' | '"'))) => value.push(char),
                _ => return Err("an unknown escape".to_owned()),
            },
            char => value.push(char),
        }
    }
    Err("a value that does not end".to_owned())
}

fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(is_first) && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

/// The name of a histogram and its labels without the bound.
type Series<'a> = (&'a str, BTreeMap<&'a str, &'a str>);

/// Buckets rise with their bounds, and the last one, without a bound, is the count.
fn histograms(samples: &[Sample]) -> Result<(), String> {
    let mut buckets: BTreeMap<Series<'_>, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (name, labels, value) in samples {
        let others = labels.iter().filter(|(label, _)| *label != "le");
        let others: BTreeMap<&str, &str> = others.map(|(label, value)| (&**label, &**value)).collect();
        if let Some(name) = name.strip_suffix("_bucket") {
            let bound = labels["le"].replace("+Inf", "inf");
            let bound = bound.parse().map_err(|_| format!("no bound: {bound}"))?;
            buckets.entry((name, others)).or_default().push((bound, *value));
        } else if let Some(name) = name.strip_suffix("_count") {
            counts.insert((name, others), *value);
        }
    }
    for (series, all) in &buckets {
        let rises = all
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let last = all.last().filter(|(bound, _)| bound.is_infinite());
        let count = counts.get(series);
        if !rises || last.map(|(_, value)| value) != count {
            return Err(format!(
                "buckets that do not add up: {series:?} {all:?} {count:?}"
            ));
        }
    }
    match buckets.len() == counts.len() {
        true => Ok(()),
        false => Err("a count without buckets".to_owned()),
    }
}

/// Metrics of every family.
fn all() -> Metrics {
    let metrics = Metrics::new();
    metrics.request("hub", Verb::Get, "secrets", Some(200), Duration::from_millis(3));
    metrics.request("m1", Verb::Create, "configmaps", None, Duration::from_secs(60));
    metrics.planned("delivery", Outcome::Done);
    metrics.event_dropped();
    metrics.queue("m1", 7, Duration::from_millis(1500));
    metrics.concurrency("m1", 3, 16.0);
    metrics.objects("templates", 4000);
    let report = distribution::Report {
        name: "registry".into(),
        desired: 3,
        succeeded: 2,
        failed: 1,
        conflicts: 0,
        lag: 1500,
    };
    metrics.distributions(&[report]);
    metrics.asked(
        "a/b",
        Some("Retain"),
        Asked::Answered,
        Some(Duration::from_millis(20)),
    );
    metrics.estimated("m1", Asked::NoTurn);
    metrics.problems(&problems());
    for millis in [300, 100_000_000] {
        metrics.propagated(&Propagated {
            template: ResourceId::new(Gvk::new("v1", "ConfigMap"), "shop", "settings"),
            began: Time(0),
            reached: Time(millis),
        });
    }
    metrics.credentials_expire("hub", Some(1_800_000_000));
    metrics.leading(true);
    metrics.synced(true);
    metrics.pending(2);
    metrics
}

/// One binding that is not applied on m1, and m1, which is not ready and has its deletions paused.
fn problems() -> ProblemCounts {
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({
            "type": type_, "status": status, "reason": reason, "message": "never a \"label\"",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let binding = json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "shop"},
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}},
        "status": {
            "conditions": [condition("FullyApplied", "False", "FullyAppliedFailed")],
            "aggregatedStatus": [{"clusterName": "m1", "appliedReason": "Contended"}],
        },
    });
    let cluster = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"},
        "spec": {"syncMode": "Push"},
        "status": {"conditions": [
            condition("Ready", "False", "CredentialsRefused"),
            condition("RemovalsPaused", "True", "HubLooksEmpty"),
        ]},
    });
    let id = ResourceId::new(Gvk::new("apps/v1", "Deployment"), "shop", "web");
    let mut counts = ProblemCounts::default();
    counts.binding(&id, Some(&serde_json::from_value(binding).expect("a binding")));
    counts.member(
        &"m1".into(),
        Some(&serde_json::from_value(cluster).expect("a Cluster")),
    );
    counts
}

#[test]
fn the_exposition_is_openmetrics_with_and_without_samples() {
    for metrics in [Metrics::new(), all()] {
        let text = metrics.render();
        let samples = read(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        assert!(
            samples.iter().any(|(name, ..)| name == "entourage_leading"),
            "{text}"
        );
    }
}

#[test]
fn the_metrics_of_a_proxy_are_openmetrics_and_none_of_the_controllers() {
    let metrics = ProxyMetrics::new();
    read(&metrics.render()).expect("OpenMetrics");
    metrics.request(Target::Member, 200, Duration::from_millis(3));
    metrics.request(Target::Member, 403, Duration::from_millis(3));
    metrics.request(Target::Hub, 200, Duration::from_secs(90));
    let text = metrics.render();
    read(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    for line in [
        r#"entourage_proxy_requests_total{target="member",code="200"} 1"#,
        r#"entourage_proxy_requests_total{target="member",code="403"} 1"#,
        r#"entourage_proxy_requests_total{target="hub",code="200"} 1"#,
    ] {
        assert!(text.lines().any(|each| each == line), "{line}\n{text}");
    }
    // A proxy beside the controllers would look like one that does not lead.
    assert!(!text.contains("entourage_leading"), "{text}");
}

#[test]
fn problems_are_shown_as_they_are_counted_and_end_without_a_trace() {
    let metrics = all();
    let lines = [
        r#"entourage_member_ready{member="m1"} 0"#,
        r#"entourage_member_problems{member="m1",condition="Ready",reason="CredentialsRefused"} 1"#,
        r#"entourage_member_problems{member="m1",condition="RemovalsPaused",reason="HubLooksEmpty"} 1"#,
        r#"entourage_binding_problems{condition="FullyApplied",reason="FullyAppliedFailed"} 1"#,
        r#"entourage_copies_not_applied{member="m1",reason="Contended"} 1"#,
    ];
    let text = metrics.render();
    for line in lines {
        assert!(text.lines().any(|each| each == line), "{line}\n{text}");
    }
    metrics.problems(&ProblemCounts::default());
    let text = metrics.render();
    for line in lines {
        let (name, _) = line.split_once('{').expect("labels");
        assert!(!text.contains(&format!("{name}{{")), "{line}\n{text}");
    }
    read(&text).expect("OpenMetrics");
}

#[test]
fn the_reader_refuses_what_is_no_openmetrics() {
    const HEAD: &str = "# HELP a Help.\n# TYPE a gauge\n";
    const COUNTER: &str = "# HELP a Help.\n# TYPE a counter\n";
    const BUCKETS: &str = "# HELP a Help.\n# TYPE a histogram\n";
    for (good, text) in [
        (true, format!("{HEAD}a 1\n# EOF\n")),
        (
            true,
            format!("{HEAD}a{{b=\"1\\\\\\\"\\n\"}} 1\na{{b=\"\"}} 1\n# EOF\n"),
        ),
        (true, format!("{COUNTER}a_total 1\n# EOF\n")),
        (
            true,
            format!(
                "{BUCKETS}a_sum 1.5\na_count 2\na_bucket{{le=\"1\"}} 1\na_bucket{{le=\"+Inf\"}} 2\n# EOF\n"
            ),
        ),
        (false, format!("{HEAD}a 1\n")),
        (false, format!("{HEAD}a 1\n# EOF\nb 2\n")),
        (false, "a 1\n# EOF\n".to_owned()),
        (false, "# TYPE a gauge\na 1\n# EOF\n".to_owned()),
        (false, format!("{HEAD}a 1\n{HEAD}a 2\n# EOF\n")),
        (false, format!("{HEAD}a 1\na 2\n# EOF\n")),
        (false, format!("{HEAD}b 1\n# EOF\n")),
        (false, format!("{HEAD}a one\n# EOF\n")),
        (false, format!("{HEAD}a{{1b=\"c\"}} 1\n# EOF\n")),
        (false, format!("{HEAD}a{{b=\"c\",b=\"d\"}} 1\n# EOF\n")),
        (false, format!("{HEAD}a{{b=\"\\x\"}} 1\n# EOF\n")),
        (false, format!("{HEAD}a{{b=\"c\"d=\"e\"}} 1\n# EOF\n")),
        (false, format!("{COUNTER}a 1\n# EOF\n")),
        (false, format!("{COUNTER}a_total -1\n# EOF\n")),
        (
            false,
            format!(
                "{BUCKETS}a_sum 1\na_count 2\na_bucket{{le=\"1\"}} 3\na_bucket{{le=\"+Inf\"}} 2\n# EOF\n"
            ),
        ),
        (
            false,
            format!(
                "{BUCKETS}a_sum 1\na_count 3\na_bucket{{le=\"1\"}} 1\na_bucket{{le=\"+Inf\"}} 2\n# EOF\n"
            ),
        ),
        (
            false,
            format!("{BUCKETS}a_sum 1\na_count 1\na_bucket{{le=\"1\"}} 1\n# EOF\n"),
        ),
    ] {
        assert_eq!(read(&text).is_ok(), good, "{text}");
    }
}
