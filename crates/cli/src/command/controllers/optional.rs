//! `--controllers`: the controllers that are off by default, by the names that they have in Karmada or Kubernetes, and the parser of its
//! lists.

use std::{collections::BTreeMap, fmt::Write as _};

/// A controller that can be turned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optional {
    /// Name on the command line; Karmada's or that of kube-controller-manager.
    pub name: &'static str,
    /// Its effect, in one line.
    pub summary: &'static str,
}

/// Approves the certificates of agents.
pub const AGENT_CSR_APPROVING: &str = "agentcsrapproving";

/// Signs `cluster-info` with the bootstrap tokens, as the controller of this name of kube-controller-manager does.
pub const BOOTSTRAP_SIGNER: &str = "bootstrapsigner";

/// Labels the targets of propagated HorizontalPodAutoscalers.
pub const SCALE_TARGET_MARKER: &str = "hpaScaleTargetMarker";

/// Writes the replicas that autoscalers of members made into templates.
pub const REPLICAS_SYNCER: &str = "deploymentReplicasSyncer";

/// Karmada's controllers of Services of other clusters: one without the others has no effect there, and all of them are one here.
pub const SERVICES: [&str; 3] = ["serviceExport", "endpointSlice", "serviceImport"];

/// The controllers that are off by default.
pub const OPTIONAL: &[Optional] = &[
    Optional {
        name: AGENT_CSR_APPROVING,
        summary: "CertificateSigningRequests of agents are approved if their sender may have them; requires the rights of \
        config/rbac-registration on the hub",
    },
    Optional {
        name: BOOTSTRAP_SIGNER,
        summary: "the ConfigMap kube-public/cluster-info is signed with the bootstrap tokens, so that register finds the hub by a token; \
        for hubs whose kube-controller-manager does not do that; requires the rights of config/rbac-discovery on the hub",
    },
    Optional {
        name: SCALE_TARGET_MARKER,
        summary: "the workload that a propagated HorizontalPodAutoscaler scales is labelled, so that its replicas are left to the members",
    },
    Optional {
        name: REPLICAS_SYNCER,
        summary: "spec.replicas of a labelled workload whose replicas are divided becomes the sum of what its members have",
    },
    Optional {
        name: SERVICES[0],
        summary: "with the next two: EndpointSlices of Services that members export are collected on the hub; requires the rights of \
        config/rbac-services on the hub",
    },
    Optional {
        name: SERVICES[1],
        summary: "see serviceExport; the three are turned on together",
    },
    Optional {
        name: SERVICES[2],
        summary: "see serviceExport; each ServiceImport gets a Service on the hub, which its policy propagates with the EndpointSlices",
    },
];

/// The controllers that are turned on or off on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controllers(BTreeMap<&'static str, bool>);

impl Controllers {
    /// True if a controller of [`OPTIONAL`] is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.0.get(name).copied().unwrap_or(false)
    }

    /// True if the controllers of Services of other clusters are on.
    #[must_use]
    pub fn share_services(&self) -> bool {
        SERVICES.iter().any(|name| self.is_on(name))
    }
}

/// Reads `*,NAME,-NAME`: `*` stands for the controllers that are always on.
///
/// # Errors
/// A sentence for the user: an unknown name with the known ones, a list without `*`, a duplicate name.
pub fn parse(text: &str) -> Result<Controllers, String> {
    let (mut all, mut others) = (BTreeMap::new(), false);
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        if word == "*" {
            others = true;
            continue;
        }
        let (name, on) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
        let controller = OPTIONAL.iter().find(|each| each.name == name).ok_or_else(|| {
            let known: Vec<_> = OPTIONAL.iter().map(|each| each.name).collect();
            format!(
                "{name:?} cannot be turned on or off; these can: {}; all others are always on",
                known.join(", ")
            )
        })?;
        if all.insert(controller.name, on).is_some() {
            return Err(format!("{name:?} is given twice"));
        }
    }
    let on = SERVICES
        .iter()
        .filter(|name| all.get(*name).copied().unwrap_or(false));
    if ![0, SERVICES.len()].contains(&on.count()) {
        return Err(format!(
            "{} work together: turn on all three or none",
            SERVICES.join(", ")
        ));
    }
    if !others {
        return Err(
            "the other controllers cannot be turned off: give a list with *, such as *,hpaScaleTargetMarker"
                .into(),
        );
    }
    Ok(Controllers(all))
}

/// The table as help text.
#[must_use]
pub fn help() -> String {
    let mut text = String::from(
        "Controllers to turn on besides those that are always on (*): *,NAME,NAME. Off by default:",
    );
    for Optional { name, summary } in OPTIONAL {
        // Writing to a String cannot fail.
        write!(text, "\n  {name}: {summary}").unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_optional_controller_is_listed_once_says_what_it_does_and_is_off() {
        let names: BTreeSet<_> = OPTIONAL.iter().map(|each| each.name).collect();
        assert_eq!(names.len(), OPTIONAL.len());
        for each in OPTIONAL {
            assert!(
                help().contains(each.summary) && !each.summary.is_empty(),
                "{}",
                each.name
            );
            assert!(!Controllers::default().is_on(each.name));
        }
    }

    #[test]
    fn lists_of_karmada_are_read() {
        for (text, marks, syncs) in [
            ("*", false, false),
            ("*,hpaScaleTargetMarker,deploymentReplicasSyncer", true, true),
            (" deploymentReplicasSyncer , * ,", false, true),
            ("*,-hpaScaleTargetMarker,-deploymentReplicasSyncer", false, false),
        ] {
            let read = parse(text).expect(text);
            assert_eq!(
                (read.is_on(SCALE_TARGET_MARKER), read.is_on(REPLICAS_SYNCER)),
                (marks, syncs),
                "{text}"
            );
        }
    }

    #[test]
    fn the_controllers_of_services_are_turned_on_together() {
        for (text, on) in [
            ("*", false),
            ("*,-serviceExport,-endpointSlice,-serviceImport", false),
            ("*,serviceExport,endpointSlice,serviceImport", true),
        ] {
            assert_eq!(parse(text).expect(text).share_services(), on, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_turned_off_is_refused_with_what_can() {
        for (wrong, says) in [
            ("*,-binding", "deploymentReplicasSyncer"),
            ("hpaScaleTargetMarker", "cannot be turned off"),
            ("", "cannot be turned off"),
            ("*,hpaScaleTargetMarker,-hpaScaleTargetMarker", "twice"),
            ("*,serviceExport,serviceImport", "all three or none"),
        ] {
            let error = parse(wrong).expect_err(wrong);
            assert!(error.contains(says), "{error}");
        }
    }
}
