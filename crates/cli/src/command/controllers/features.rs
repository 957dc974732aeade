//! The feature gates: one table, and the parser of `--feature-gates`.

use std::{collections::BTreeMap, fmt::Write as _};

/// A behaviour that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Name on the command line; Karmada's name if it has the same gate.
    pub name: &'static str,
    /// True if it is on by default.
    pub default: bool,
    /// Its effect, in one line.
    pub summary: &'static str,
}

/// The feature gates.
pub const FEATURES: &[Feature] = &[
    Feature {
        name: PROPAGATE_DEPS,
        default: true,
        summary: "the dependencies of a workload whose policy sets propagateDeps are propagated with it",
    },
    Feature {
        name: FAILOVER,
        default: true,
        summary: "workloads are evicted from clusters with NoExecute taints, and from clusters where they stay unhealthy, as policies define",
    },
    Feature {
        name: FEDERATED_QUOTA_ENFORCEMENT,
        default: false,
        summary: "workloads are not scheduled beyond what the FederatedResourceQuotas of their namespace allow",
    },
    Feature {
        name: MULTIPLE_POD_TEMPLATES_SCHEDULING,
        default: false,
        summary: "a workload with several components that goes to one cluster goes to one with room for all of them together",
    },
    Feature {
        name: RESOURCE_DISTRIBUTION,
        default: false,
        summary: "ResourceDistributions are processed; requires the rights of config/rbac-distribution on the hub",
    },
];

/// Reconciles ResourceDistributions. OpenKruise's gate, with its default.
pub const RESOURCE_DISTRIBUTION: &str = "ResourceDistributionGate";

/// Keeps to FederatedResourceQuotas. Karmada's gate, with its default.
pub const FEDERATED_QUOTA_ENFORCEMENT: &str = "FederatedQuotaEnforcement";

/// Schedules the components of a workload as one set, by the room of the clusters. Karmada's gate, with its default.
pub const MULTIPLE_POD_TEMPLATES_SCHEDULING: &str = "MultiplePodTemplatesScheduling";

/// Evicts workloads. Karmada's gate; there it is off.
pub const FAILOVER: &str = "Failover";

/// Propagates dependencies with workloads.
pub const PROPAGATE_DEPS: &str = "PropagateDeps";

/// The values given on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<&'static str, bool>);

impl FeatureGates {
    /// The value given for a feature, or `None` if none was given.
    #[must_use]
    pub fn given(&self, name: &str) -> Option<bool> {
        self.0.get(name).copied()
    }

    /// True if a feature of [`FEATURES`] is on; an unknown name is off.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.given(name)
            .unwrap_or_else(|| find(name).is_some_and(|feature| feature.default))
    }
}

/// Reads `NAME=true,NAME=false`.
///
/// # Errors
/// A sentence for the user: an unknown name with the known ones, a value that is not a boolean, a duplicate name.
pub fn parse(text: &str) -> Result<FeatureGates, String> {
    let mut gates = BTreeMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("{pair:?} is not NAME=true or NAME=false"))?;
        let feature = find(name).ok_or_else(|| {
            let known: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
            format!("there is no feature {name:?}; known: {}", known.join(", "))
        })?;
        let value = value
            .to_lowercase()
            .parse()
            .map_err(|_| format!("{pair:?}: give true or false"))?;
        if gates.insert(feature.name, value).is_some() {
            return Err(format!("{name:?} is given twice"));
        }
    }
    Ok(FeatureGates(gates))
}

/// The table as help text.
#[must_use]
pub fn help() -> String {
    let mut text = String::from("Features to turn on or off: NAME=true,NAME=false. Known:");
    for Feature {
        name,
        default,
        summary,
    } in FEATURES
    {
        // Writing to a String cannot fail.
        write!(text, "\n  {name} (default {default}): {summary}").unwrap_or_default();
    }
    text
}

fn find(name: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|feature| feature.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_feature_is_listed_once_and_says_what_it_does() {
        let names: BTreeSet<_> = FEATURES.iter().map(|feature| feature.name).collect();
        assert_eq!(names.len(), FEATURES.len());
        for feature in FEATURES {
            assert!(
                !feature.summary.is_empty() && help().contains(feature.summary),
                "{}",
                feature.name
            );
            assert_eq!(FeatureGates::default().is_on(feature.name), feature.default);
        }
    }

    #[test]
    fn gates_are_set_by_name() {
        for (text, on) in [
            ("", true),
            ("PropagateDeps=false", false),
            (" PropagateDeps=True ,", true),
        ] {
            assert_eq!(parse(text).unwrap().is_on(PROPAGATE_DEPS), on, "{text:?}");
        }
    }

    #[test]
    fn an_unknown_gate_is_refused_with_the_known_ones() {
        let error = parse("Levitation=true").unwrap_err();
        assert!(
            error.contains("Levitation") && error.contains("PropagateDeps"),
            "{error}"
        );
        for wrong in [
            "PropagateDeps",
            "PropagateDeps=maybe",
            "PropagateDeps=true,PropagateDeps=false",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
