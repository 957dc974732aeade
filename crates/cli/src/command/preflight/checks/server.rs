//! Checks of the server itself, and of the controllers beside it.

use entourage_api::crds::ServerVersion;

use super::{Outcome, fact, fail, is_fresh, ok, server_now, unread, warn};
use crate::{
    command::preflight::{Role, facts::Facts},
    crds::Stored,
};

/// The difference of clocks that is noticed, in seconds: the header has whole ones.
const SKEW: i64 = 2;

/// The difference of clocks from which leadership and tokens fail, in seconds.
const TOO_MUCH_SKEW: i64 = 30;

/// The seconds after which a namespace does not end by itself any more.
const STUCK: i64 = 300;

const CONTROLLERS_REMEDY: &str = "run kube-controller-manager \
    --controllers=garbagecollector,namespace,serviceaccount,serviceaccount-token,pvc-protection,pv-protection";

pub(super) fn version(facts: &Facts) -> Vec<Outcome> {
    let (version, words) = &facts.version;
    let oldest = ServerVersion { major: 1, minor: 20 };
    let rules = ServerVersion { major: 1, minor: 31 };
    vec![match version {
        None => warn(
            format!("the version {words} is not understood"),
            "use Kubernetes 1.20 or later",
        ),
        Some(version) if *version < oldest => {
            fail(format!("Kubernetes {words}"), "use Kubernetes 1.20 or later")
        }
        Some(version) if *version < rules && facts.role == Role::Hub => ok(format!(
            "Kubernetes {words}: older than 1.31, `entourage init` leaves out fields of definitions that it would drop"
        )),
        Some(_) => ok(format!("Kubernetes {words}")),
    }]
}

pub(super) fn clock(facts: &Facts) -> Vec<Outcome> {
    let Some(server) = fact!(facts.server_time, "the time of the server") else {
        return vec![warn(
            "not checked: responses have no header Date",
            "compare the clocks by hand",
        )];
    };
    let skew = (server.as_second() - facts.now.as_second()).abs();
    let message = format!("the clock of the server differs by {skew} s from that of this machine");
    vec![match skew {
        ..SKEW => ok(message),
        SKEW..TOO_MUCH_SKEW => warn(message, "synchronise the clocks (NTP)"),
        _ => fail(
            message,
            "synchronise the clocks (NTP): Leases, tokens and certificates go by them",
        ),
    }]
}

pub(super) fn rights(facts: &Facts) -> Vec<Outcome> {
    let (count, denied) = fact!(facts.rights, "rights");
    if denied.is_empty() {
        return vec![ok(format!("{count} of {count} rights"))];
    }
    let remedy = match facts.role {
        Role::Hub => {
            "use an administrator, or `entourage init --parts controllers` for the account of the controllers"
        }
        Role::Member => "use an administrator of the member for `entourage join`",
    };
    vec![fail(format!("missing: {}", denied.join("; ")), remedy)]
}

pub(super) fn definitions(facts: &Facts) -> Vec<Outcome> {
    let all = fact!(facts.definitions, "definitions");
    let named = |state: Stored| -> Vec<&str> {
        let named = all.iter().filter(|(_, each)| *each == state);
        named.map(|(name, _)| name.as_str()).collect()
    };
    let (missing, different) = (named(Stored::Missing), named(Stored::Differs));
    let newer = named(Stored::Newer);
    let mut outcomes = Vec::new();
    if missing.len() == all.len() {
        outcomes.push(warn(
            "it is not set up as a hub: no definition is there",
            "run `entourage init`",
        ));
    } else if !missing.is_empty() {
        outcomes.push(fail(
            format!("missing: {}", missing.join(", ")),
            "run `entourage init`",
        ));
    }
    if !different.is_empty() {
        outcomes.push(warn(
            format!("not those of this version: {}", different.join(", ")),
            "run `entourage init`",
        ));
    }
    if !newer.is_empty() {
        outcomes.push(warn(
            format!("with fields that this version lacks: {}", newer.join(", ")),
            "use the version of entourage that wrote them",
        ));
    }
    if outcomes.is_empty() {
        outcomes.push(ok(format!("{} definitions are those of this version", all.len())));
    }
    outcomes
}

pub(super) fn controllers(facts: &Facts) -> Vec<Outcome> {
    match &facts.probe {
        Some(Ok(probe)) => {
            let mut outcomes = Vec::new();
            for (name, works, after) in [
                ("garbage collector", probe.collects, ""),
                (
                    "namespace controller",
                    probe.ends_namespaces,
                    ", which is Terminating until it does",
                ),
            ] {
                outcomes.push(if works {
                    ok(format!("the {name} works"))
                } else {
                    fail(
                        format!("the {name} did not act on {}{after}", probe.namespace),
                        CONTROLLERS_REMEDY,
                    )
                });
            }
            return outcomes;
        }
        Some(Err(why)) => return vec![unread("what the probe wrote", why)],
        None => {}
    }
    let leases = fact!(facts.leases, "Leases");
    let manager = leases
        .iter()
        .find(|lease| lease.name == "kube-system/kube-controller-manager");
    vec![match manager {
        Some(lease) if is_fresh(lease, facts) => {
            ok("kube-controller-manager runs; --probe tries its controllers")
        }
        _ => warn(
            "no kube-controller-manager holds its Lease: bindings would outlive their templates, and namespaces would not end",
            format!("{CONTROLLERS_REMEDY}; --probe tries them"),
        ),
    }]
}

pub(super) fn accounts(facts: &Facts) -> Vec<Outcome> {
    if let Some(Ok(probe)) = &facts.probe {
        return [
            ("ServiceAccounts", probe.makes_accounts),
            ("tokens of ServiceAccounts", probe.makes_tokens),
        ]
        .into_iter()
        .map(|(what, works)| {
            if works {
                ok(format!("the controller of {what} works"))
            } else {
                warn(
                    format!("no controller makes {what}"),
                    format!("{CONTROLLERS_REMEDY}, with --service-account-private-key-file"),
                )
            }
        })
        .collect();
    }
    vec![
        if *fact!(facts.has_default_account, "the ServiceAccount default/default") {
            ok("the controller of ServiceAccounts has run; --probe tries it")
        } else {
            warn(
                "no ServiceAccount default/default: the controller of ServiceAccounts does not run, and that of tokens may not",
                format!("{CONTROLLERS_REMEDY}, with --service-account-private-key-file"),
            )
        },
    ]
}

pub(super) fn namespaces(facts: &Facts) -> Vec<Outcome> {
    let terminating = fact!(facts.terminating, "namespaces");
    let now = server_now(facts);
    let stuck = terminating
        .iter()
        .filter(|(_, since)| since.is_none_or(|since| now - since.as_second() > STUCK));
    let stuck: Vec<&str> = stuck.map(|(name, _)| name.as_str()).collect();
    vec![if stuck.is_empty() {
        ok("no namespace is stuck")
    } else {
        warn(
            format!("terminating for more than five minutes: {}", stuck.join(", ")),
            "see status.conditions of the namespace: an APIService that does not respond, a finalizer, or no namespace controller",
        )
    }]
}

pub(super) fn nodes(facts: &Facts) -> Vec<Outcome> {
    let has_nodes = *fact!(facts.has_nodes, "Nodes");
    vec![match (facts.role, has_nodes) {
        (Role::Hub, true) => warn(
            "it has Nodes: its own workload controllers act on templates, whose status is then not written",
            "use an API server without workload controllers as the hub",
        ),
        (Role::Hub, false) => ok("it has no Nodes"),
        (Role::Member, true) => ok("it has Nodes"),
        (Role::Member, false) => warn("it has no Nodes: nothing runs there", "join Nodes"),
    }]
}

pub(super) fn store(facts: &Facts) -> Vec<Outcome> {
    let metrics = fact!(facts.metrics, "the size of the store from /metrics");
    let Some(size) = metrics.store else {
        return vec![warn(
            "not checked: /metrics has no size of the store",
            "run etcdctl endpoint status",
        )];
    };
    let share = 100.0 * size / facts.store_quota;
    let mebibytes = |bytes: f64| bytes / (1024.0 * 1024.0);
    let message = format!(
        "{:.0} MiB, {share:.0} % of a quota of {:.0} MiB",
        mebibytes(size),
        mebibytes(facts.store_quota)
    );
    let remedy =
        "compact and defragment etcd, or raise --quota-backend-bytes (and tell it with --store-quota)";
    vec![if share < 60.0 {
        ok(message)
    } else if share < 90.0 {
        warn(message, remedy)
    } else {
        fail(message, remedy)
    }]
}
