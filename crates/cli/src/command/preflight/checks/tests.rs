//! Findings from facts.

use std::collections::BTreeSet;

use entourage_api::crds::ServerVersion;
use jiff::Timestamp;

use super::*;
use crate::{
    command::preflight::{facts::Webhook, probe::Probe, scrape::Scrape},
    crds::Stored,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// A hub on which every check passes.
fn good() -> Facts {
    Facts {
        role: Role::Hub,
        version: (Some(ServerVersion { major: 1, minor: 36 }), "v1.36.2".to_owned()),
        now: at(0),
        server_time: Ok(Some(at(1))),
        definitions: Ok(vec![("a".to_owned(), Stored::Current)]),
        leases: Ok(vec![lease("kube-system/kube-controller-manager", -5)]),
        webhooks: Ok(vec![webhook("entourage", "x.webhook.entourage.dev")]),
        limit_ranges: Ok(0),
        has_nodes: Ok(false),
        terminating: Ok(Vec::new()),
        has_default_account: Ok(true),
        metrics: Ok(Scrape {
            plugins: BTreeSet::from(["NamespaceLifecycle".to_owned()]),
            store: Some(20_000_000.0),
        }),
        store_quota: 2_000_000_000.0,
        rights: Ok((12, Vec::new())),
        probe: None,
    }
}

fn lease(name: &str, renewed: i64) -> Lease {
    Lease {
        name: name.to_owned(),
        holder: "somebody".to_owned(),
        renewed: Some(at(renewed)),
        seconds: 15,
    }
}

fn webhook(configuration: &str, name: &str) -> Webhook {
    Webhook {
        configuration: configuration.to_owned(),
        name: name.to_owned(),
        mutates: false,
        fails_closed: true,
        timeout: 3,
        is_broad: true,
    }
}

/// Check, level and message of what is not OK.
fn problems(facts: &Facts) -> Vec<String> {
    let all = findings(facts).into_iter();
    let all = all.filter(|finding| finding.level != Level::Ok);
    all.map(|finding| {
        assert!(finding.remedy.is_some(), "{}: no remedy", finding.check);
        format!("{} {}: {}", finding.level.word(), finding.check, finding.message)
    })
    .collect()
}

#[test]
fn the_table_has_names_and_summaries_once() {
    let names: BTreeSet<_> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(names.len(), CHECKS.len());
    assert!(CHECKS.iter().all(|check| !check.summary.is_empty()));
}

#[test]
fn the_guide_has_every_check() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    for check in CHECKS {
        let row = format!("| `{}` |", check.name);
        assert!(page.contains(&row), "docs/commands.md: add {row}");
    }
}

#[test]
fn every_check_reports_on_a_good_hub_and_has_nothing_to_say() {
    assert_eq!(problems(&good()), Vec::<String>::new());
    let reported: BTreeSet<_> = findings(&good())
        .into_iter()
        .map(|finding| finding.check)
        .collect();
    assert_eq!(reported.len(), CHECKS.len());
}

#[test]
fn each_problem_is_found() {
    let with = |change: &dyn Fn(&mut Facts)| {
        let mut facts = good();
        change(&mut facts);
        problems(&facts)
    };
    let table: Vec<(Vec<String>, &str)> = vec![
        (
            with(&|facts| facts.version = (Some(ServerVersion { major: 1, minor: 19 }), "v1.19".to_owned())),
            "FAIL version: Kubernetes v1.19",
        ),
        (
            with(&|facts| facts.server_time = Ok(Some(at(10)))),
            "WARN clock: ",
        ),
        (
            with(&|facts| facts.server_time = Ok(Some(at(-50)))),
            "FAIL clock: ",
        ),
        (
            with(&|facts| facts.server_time = Ok(None)),
            "WARN clock: not checked",
        ),
        (
            with(&|facts| facts.rights = Ok((12, vec!["get,list pods".to_owned()]))),
            "FAIL rights: missing: get,list pods",
        ),
        (
            with(&|facts| {
                facts.definitions = Ok(vec![
                    ("a".to_owned(), Stored::Missing),
                    ("b".to_owned(), Stored::Current),
                ])
            }),
            "FAIL definitions: missing: a",
        ),
        (
            with(&|facts| facts.definitions = Ok(vec![("a".to_owned(), Stored::Missing)])),
            "WARN definitions: it is not set up as a hub",
        ),
        (
            with(&|facts| facts.definitions = Ok(vec![("a".to_owned(), Stored::Newer)])),
            "WARN definitions: with fields that this version lacks: a",
        ),
        (
            with(&|facts| facts.definitions = Ok(vec![("a".to_owned(), Stored::Differs)])),
            "WARN definitions: not those of this version: a",
        ),
        (with(&|facts| facts.leases = Ok(Vec::new())), "WARN controllers: "),
        (
            with(&|facts| facts.leases = Ok(vec![lease("kube-system/kube-controller-manager", -100)])),
            "WARN controllers: ",
        ),
        (
            with(&|facts| facts.has_default_account = Ok(false)),
            "WARN accounts: ",
        ),
        (
            with(&|facts| {
                facts.terminating = Ok(vec![
                    ("old".to_owned(), Some(at(-400))),
                    ("new".to_owned(), Some(at(0))),
                ])
            }),
            "WARN namespaces: terminating for more than five minutes: old",
        ),
        (with(&|facts| facts.has_nodes = Ok(true)), "WARN nodes: "),
        (
            with(&|facts| facts.limit_ranges = Ok(2)),
            "WARN admission: 2 LimitRanges",
        ),
        (
            with(&|facts| {
                facts.metrics = Ok(Scrape {
                    plugins: BTreeSet::from(["AlwaysDeny".to_owned()]),
                    store: Some(1.0),
                });
            }),
            "FAIL admission: the plug-in AlwaysDeny",
        ),
        (
            with(&|facts| facts.webhooks = Ok(vec![webhook("gate", "gate.example.com")])),
            "WARN webhooks: the webhook gate.example.com of gate",
        ),
        (
            with(&|facts| {
                facts
                    .leases
                    .as_mut()
                    .unwrap()
                    .push(lease("karmada-system/karmada-scheduler", -3))
            }),
            "FAIL karmada: karmada-scheduler is running",
        ),
        (
            with(&|facts| {
                let mut hook = webhook("validating-config", "policy.karmada.io");
                hook.is_broad = false;
                facts.webhooks = Ok(vec![hook]);
            }),
            "WARN karmada: Karmada's webhooks are registered: validating-config",
        ),
        (with(&|facts| facts.store_quota = 30_000_000.0), "WARN store: "),
        (with(&|facts| facts.store_quota = 21_000_000.0), "FAIL store: "),
    ];
    for (found, wanted) in table {
        assert_eq!(found.len(), 1, "{wanted}: {found:?}");
        assert!(found[0].starts_with(wanted), "{wanted}: {found:?}");
    }
}

#[test]
fn a_lease_that_karmada_left_behind_is_no_problem() {
    let mut facts = good();
    facts
        .leases
        .as_mut()
        .unwrap()
        .push(lease("karmada-system/karmada-scheduler", -3600));
    assert!(problems(&facts).is_empty());
}

#[test]
fn what_cannot_be_read_is_a_warning_with_the_reason() {
    let forbidden = || "forbidden".to_owned();
    let facts = Facts {
        server_time: Err(forbidden()),
        definitions: Err(forbidden()),
        leases: Err(forbidden()),
        webhooks: Err(forbidden()),
        limit_ranges: Err(forbidden()),
        has_nodes: Err(forbidden()),
        terminating: Err(forbidden()),
        has_default_account: Err(forbidden()),
        metrics: Err(forbidden()),
        rights: Err(forbidden()),
        probe: None,
        ..good()
    };
    let problems = problems(&facts);
    assert!(problems.len() >= CHECKS.len() - 1, "{problems:?}");
    for problem in problems {
        assert!(
            problem.starts_with("WARN") && problem.contains("forbidden"),
            "{problem}"
        );
    }
}

#[test]
fn the_probe_counts_more_than_a_lease() {
    let mut facts = good();
    facts.probe = Some(Ok(Probe {
        namespace: "entourage-preflight-1".to_owned(),
        collects: false,
        makes_accounts: true,
        makes_tokens: false,
        ends_namespaces: true,
    }));
    let problems = problems(&facts);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].starts_with("FAIL controllers: the garbage collector"),
        "{problems:?}"
    );
    assert!(
        problems[1].starts_with("WARN accounts: no controller makes tokens"),
        "{problems:?}"
    );
}

#[test]
fn a_probe_that_failed_is_a_warning() {
    let mut facts = good();
    facts.probe = Some(Err("forbidden".to_owned()));
    let problems = problems(&facts);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with("WARN controllers: not checked"),
        "{problems:?}"
    );
}

#[test]
fn a_member_is_checked_for_what_members_need() {
    let facts = Facts {
        role: Role::Member,
        has_nodes: Ok(true),
        limit_ranges: Ok(3),
        definitions: Ok(Vec::new()),
        ..good()
    };
    assert!(problems(&facts).is_empty(), "{:?}", problems(&facts));
    let checks: Vec<_> = findings(&facts)
        .into_iter()
        .map(|finding| finding.check)
        .collect();
    assert!(
        !checks.contains(&"definitions") && !checks.contains(&"karmada"),
        "{checks:?}"
    );
}
