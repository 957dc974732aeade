//! The exposition is OpenMetrics text, checked by a strict [`reader`].

use entourage_core::{
    fleet::ProblemCounts,
    object::{Gvk, ResourceId, Time},
};
use serde_json::json;

use super::*;

mod reader;

use reader::read;

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
    metrics.evicted(&eviction(), 2);
    metrics.credentials_expire("hub", Some(1_800_000_000));
    metrics.leading(true);
    metrics.synced(true);
    metrics.pending(2);
    metrics
}

/// An eviction from m2.
fn eviction() -> Eviction {
    Eviction {
        from: "m2".into(),
        reason: "TaintUntolerated",
    }
}

/// One binding that is not applied on m1 and is being evicted from m2, and m1, which is not ready and has its deletions paused.
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
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
            "gracefulEvictionTasks": [{"fromCluster": "m2", "reason": "TaintUntolerated", "producer": "TaintManager"}],
        },
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
fn evictions_that_began_add_up() {
    let metrics = all();
    metrics.evicted(&eviction(), 1);
    metrics.forget("m2");
    let text = metrics.render();
    let line = r#"entourage_evictions_total{member="m2",reason="TaintUntolerated"} 3"#;
    assert!(text.lines().any(|each| each == line), "{text}");
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
        r#"entourage_bindings_evicting{member="m2"} 1"#,
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
