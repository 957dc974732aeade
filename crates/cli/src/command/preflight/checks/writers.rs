//! Checks for others that write, change or refuse objects: admission, and another control plane.

use super::{Level, Outcome, fact, fail, is_fresh, ok, unread, warn};
use crate::command::preflight::{Role, facts::Facts};

/// The deadline of the control plane for a write, in seconds.
const DEADLINE: i64 = 5;

/// Karmada's processes that write what the controllers write.
const KARMADA: &[&str] = &[
    "karmada-controller-manager",
    "karmada-scheduler",
    "karmada-descheduler",
];

/// Admission plug-ins that matter on a hub, and why.
const PLUGINS: &[(&str, Level, &str)] = &[
    ("AlwaysDeny", Level::Fail, "refuses every write"),
    (
        "AlwaysPullImages",
        Level::Warn,
        "changes imagePullPolicy of Pods that are templates",
    ),
    (
        "DefaultStorageClass",
        Level::Warn,
        "sets the hub's storage class in PersistentVolumeClaims, which members then get",
    ),
    (
        "DefaultIngressClass",
        Level::Warn,
        "sets the hub's ingress class in Ingresses, which members then get",
    ),
    ("EventRateLimit", Level::Warn, "drops Events"),
    (
        "PodNodeSelector",
        Level::Warn,
        "sets nodeSelector of Pods that are templates",
    ),
    (
        "ServiceAccount",
        Level::Warn,
        "refuses Pods whose ServiceAccount is not on the hub, and adds a volume to Pods that are templates",
    ),
];

pub(super) fn admission(facts: &Facts) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    match &facts.limit_ranges {
        Ok(0) => {}
        Ok(count) if facts.role == Role::Hub => outcomes.push(warn(
            format!("{count} LimitRanges set requests and limits of Pods that are templates"),
            "keep LimitRanges on members: propagate them, or delete them on the hub",
        )),
        Ok(_) => {}
        Err(why) => outcomes.push(unread("LimitRanges", why)),
    }
    match &facts.metrics {
        Err(why) => outcomes.push(unread("the admission plug-ins from /metrics", why)),
        Ok(metrics) if metrics.plugins.is_empty() => {
            outcomes.push(warn(
                "not checked: /metrics names no admission plug-in",
                "compare --enable-admission-plugins by hand",
            ));
        }
        Ok(metrics) => {
            for (name, level, why) in PLUGINS {
                let matters = facts.role == Role::Hub || *level == Level::Fail;
                if matters && metrics.plugins.contains(*name) {
                    outcomes.push((
                        *level,
                        format!("the plug-in {name} {why}"),
                        Some(format!(
                            "add {name} to --disable-admission-plugins of kube-apiserver"
                        )),
                    ));
                }
            }
        }
    }
    if outcomes.is_empty() {
        outcomes.push(ok(
            "no plug-in that has served a request, and no LimitRange, is in the way",
        ));
    }
    outcomes
}

pub(super) fn webhooks(facts: &Facts) -> Vec<Outcome> {
    let hooks = fact!(facts.webhooks, "webhook configurations");
    let mut outcomes = Vec::new();
    let broad = hooks
        .iter()
        .filter(|hook| hook.is_broad && hook.configuration != "entourage");
    for hook in broad {
        let name = format!("{} of {}", hook.name, hook.configuration);
        if hook.fails_closed {
            let late = if hook.timeout >= DEADLINE {
                format!(
                    ", and its timeout of {} s is not below the {DEADLINE} s of the controllers",
                    hook.timeout
                )
            } else {
                String::new()
            };
            outcomes.push(warn(
                format!("the webhook {name} blocks nearly every write when it does not respond{late}"),
                "set failurePolicy Ignore or a timeout below 5 s, or exclude the namespaces and kinds of the control plane",
            ));
        }
        if hook.mutates {
            outcomes.push(warn(
                format!(
                    "the webhook {name} may change nearly every object: drift is corrected again and again"
                ),
                "exclude objects with the label karmada.io/managed, or retain the fields that it sets",
            ));
        }
    }
    if outcomes.is_empty() {
        outcomes.push(ok(format!(
            "{} webhooks, none of them for every kind",
            hooks.len()
        )));
    }
    outcomes
}

pub(super) fn karmada(facts: &Facts) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for lease in fact!(facts.leases, "Leases") {
        let name = lease.name.rsplit('/').next().unwrap_or_default();
        if KARMADA.contains(&name) && is_fresh(lease, facts) {
            outcomes.push(fail(
                format!(
                    "{name} is running: {} holds the Lease {}",
                    lease.holder, lease.name
                ),
                "two control planes delete each other's copies: stop it before the controllers start",
            ));
        }
    }
    if let Ok(hooks) = &facts.webhooks {
        let mut configurations: Vec<&str> = hooks
            .iter()
            .filter(|hook| hook.name.ends_with(".karmada.io"))
            .map(|hook| hook.configuration.as_str())
            .collect();
        configurations.dedup();
        if !configurations.is_empty() {
            outcomes.push(warn(
                format!("Karmada's webhooks are registered: {}", configurations.join(", ")),
                "delete these configurations when Karmada's webhook is stopped: policies cannot be written without it",
            ));
        }
    }
    if outcomes.is_empty() {
        outcomes.push(ok("no controller of Karmada is running"));
    }
    outcomes
}
