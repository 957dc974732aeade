//! The pages that are served, and their numbers.

use super::*;

fn line<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.lines().find(|line| line.starts_with(start))
}

#[test]
fn requests_are_counted_by_server_verb_resource_and_answer() {
    let metrics = Metrics::new();
    metrics.request("hub", Verb::Get, "secrets", Some(200), Duration::from_millis(3));
    metrics.request("hub", Verb::Get, "secrets", Some(200), Duration::from_millis(3));
    metrics.request("m1", Verb::Create, "configmaps", None, Duration::from_secs(10));
    let text = metrics.render();
    let hub = r#"entourage_api_requests_total{server="hub",verb="get",resource="secrets",code="200"} 2"#;
    let member =
        r#"entourage_api_requests_total{server="m1",verb="create",resource="configmaps",code="none"} 1"#;
    assert!(text.contains(hub) && text.contains(member), "{text}");
    let bucket = r#"entourage_api_request_duration_seconds_bucket{le="0.005",server="hub",verb="get"} 2"#;
    let other = r#"entourage_api_request_duration_seconds_bucket{server="hub",verb="get",le="0.005"} 2"#;
    assert!(text.contains(bucket) || text.contains(other), "{text}");
}

#[test]
fn a_watch_has_no_latency() {
    let metrics = Metrics::new();
    metrics.request("hub", Verb::Watch, "secrets", Some(200), Duration::from_secs(290));
    assert!(!metrics.render().contains("duration_seconds_bucket"));
}

#[test]
fn a_member_that_left_keeps_its_counters_only() {
    let metrics = Metrics::new();
    metrics.request("m1", Verb::Get, "secrets", Some(200), Duration::from_millis(3));
    metrics.queue("m1", 7, Duration::from_secs(3));
    metrics.concurrency("m1", 3, 16.0);
    metrics.credentials_expire("m1", Some(1_800_000_000));
    metrics.forget("m1");
    let text = metrics.render();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("m1")).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("entourage_api_requests_total"));
}

#[test]
fn the_exposition_tells_what_this_process_uses() {
    let metrics = Metrics::new();
    metrics.planned("delivery", Outcome::Done);
    metrics.objects("templates", 4000);
    metrics.leading(true);
    let text = metrics.render();
    assert_eq!(line(&text, "entourage_leading"), Some("entourage_leading 1"));
    assert_eq!(
        line(&text, "entourage_objects{"),
        Some(r#"entourage_objects{kind="templates"} 4000"#)
    );
    assert!(text.contains(r#"entourage_plans_total{controller="delivery",outcome="done"} 1"#));
    if cfg!(target_os = "linux") {
        let rss = line(&text, "process_resident_memory_bytes ").and_then(|line| line.split(' ').next_back());
        assert!(
            rss.and_then(|value| value.parse::<u64>().ok())
                .is_some_and(|bytes| bytes > 100_000),
            "{text}"
        );
        assert!(line(&text, "process_cpu_seconds_total ").is_some(), "{text}");
        let started = line(&text, "process_start_time_seconds ").and_then(|line| line.split(' ').next_back());
        let started: f64 = started.and_then(|value| value.parse().ok()).expect("a time");
        let now = std::time::SystemTime::now();
        let now = now
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970")
            .as_secs_f64();
        // This process started within the last day, and clocks of machine and process differ by seconds at most.
        assert!((now - 86_400.0..now + 60.0).contains(&started), "{started} {now}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn no_verb_is_listed_twice() {
    let mut names: Vec<_> = Verb::ALL.iter().map(|verb| verb.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Verb::ALL.len());
}
