//! The server binaries: their folder, their version and the capabilities of that version.

use std::{
    fmt,
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    sync::{Arc, OnceLock},
};

use anyhow::{Context, bail};

/// A directory with `etcd`, `kube-apiserver`, `kube-controller-manager` and, for people, `kubectl`.
#[derive(Clone, Debug)]
pub struct Assets {
    dir: PathBuf,
    version: Arc<OnceLock<Version>>,
}

impl Assets {
    /// The directory that `KUBEBUILDER_ASSETS` names, or nothing when it is unset or empty. The binaries are looked at
    /// when they are first used, so that an incomplete directory is an error and not a silently skipped test.
    pub fn from_env() -> Option<Self> {
        let dir = std::env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty())?;
        Some(Self::at(dir))
    }

    /// The binaries in `dir`; nothing is read yet.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            version: Arc::default(),
        }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of one binary. Fails with what to do when it is missing.
    pub fn binary(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(name);
        if !path.is_file() {
            bail!(
                "{name} is missing in {}: setup-envtest does not bring kube-controller-manager (download the one of the \
                 same release), and hack/real-apiserver.sh prepares a complete directory",
                self.dir.display()
            );
        }
        Ok(path)
    }

    /// The output of `kube-apiserver --version`; asked once. Fails if the binary is missing or does not run.
    pub fn version(&self) -> anyhow::Result<Version> {
        if let Some(version) = self.version.get() {
            return Ok(*version);
        }
        let binary = self.binary("kube-apiserver")?;
        let output = Command::new(&binary)
            .arg("--version")
            .output()
            .with_context(|| format!("running {} --version", binary.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).parse()?;
        Ok(*self.version.get_or_init(|| version))
    }
}

/// A Kubernetes release, ordered as releases are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number, 1 so far.
    pub major: u32,
    /// The second number, the one that features come with.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// True if a server of this version has the capability of that name as it is started here. Unknown names are a
    /// mistake in the test and answered with an error.
    pub fn has(&self, capability: &str) -> anyhow::Result<bool> {
        CAPABILITIES
            .iter()
            .find(|known| known.name == capability)
            .map(|known| {
                *self
                    >= Self {
                        major: 1,
                        minor: known.since,
                        patch: 0,
                    }
            })
            .with_context(|| format!("no capability is called {capability:?}; CAPABILITIES lists them"))
    }
}

impl FromStr for Version {
    type Err = anyhow::Error;

    /// Reads `Kubernetes v1.20.2`, `v1.36.0-rc.1+0123abc` and the like; what follows the third number is ignored.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let bare = text
            .trim()
            .rsplit(char::is_whitespace)
            .next()
            .unwrap_or_default()
            .trim_start_matches('v');
        let release = bare.split(['-', '+']).next().unwrap_or_default();
        let numbers: Vec<u32> = release
            .split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| format!("{:?} is not a Kubernetes version", text.trim()))?;
        match numbers[..] {
            [major, minor, patch] => Ok(Self { major, minor, patch }),
            _ => bail!(
                "{:?} is not a Kubernetes version: expected three numbers",
                text.trim()
            ),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Something that only newer API servers can do and that a test can ask for by name.
#[derive(Clone, Copy, Debug)]
pub struct Capability {
    /// The name tests use.
    pub name: &'static str,
    /// The minor release from which on it is there without further configuration than ours.
    pub since: u32,
    /// Its meaning, in one line.
    pub summary: &'static str,
}

/// Every capability by which supported servers (1.20 and later) differ and that behaviour of ours depends on.
pub const CAPABILITIES: &[Capability] = &[
    Capability {
        name: "cronjob_v1",
        since: 21,
        summary: "batch/v1 CronJob",
    },
    Capability {
        name: "endpointslice_v1",
        since: 21,
        summary: "discovery.k8s.io/v1 EndpointSlice",
    },
    Capability {
        name: "policy_v1",
        since: 21,
        summary: "policy/v1 PodDisruptionBudget",
    },
    Capability {
        name: "autoscaling_v2",
        since: 23,
        summary: "autoscaling/v2 HorizontalPodAutoscaler",
    },
    Capability {
        name: "tokens_on_demand",
        since: 24,
        summary: "no token Secret is made for a ServiceAccount unless one asks for it",
    },
    Capability {
        name: "cel",
        since: 25,
        summary: "x-kubernetes-validations in CustomResourceDefinitions",
    },
    Capability {
        name: "field_validation",
        since: 25,
        summary: "fieldValidation=Strict is honoured",
    },
    Capability {
        name: "aggregated_discovery",
        since: 30,
        summary: "apidiscovery.k8s.io/v2",
    },
    Capability {
        name: "validating_admission_policy",
        since: 30,
        summary: "admissionregistration.k8s.io/v1 policies",
    },
    Capability {
        name: "watchlist",
        since: 32,
        summary: "watches with sendInitialEvents",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn versions_are_read_as_binaries_print_them() {
        for (text, expected) in [
            ("Kubernetes v1.20.2\n", "v1.20.2"),
            ("v1.36.0-rc.1+0123abc", "v1.36.0"),
            ("Kubernetes v1.33.4+k3s1", "v1.33.4"),
            ("1.34.0", "v1.34.0"),
        ] {
            assert_eq!(text.parse::<Version>().unwrap().to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_a_version_is_refused() {
        for text in ["", "Kubernetes", "v1.20", "v1.20.x", "1.2.3.4"] {
            let error = text.parse::<Version>().unwrap_err().to_string();
            assert!(error.contains("not a Kubernetes version"), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_capability_begins_with_its_release() {
        let at = |text: &str| text.parse::<Version>().unwrap();
        assert!(!at("v1.20.15").has("cronjob_v1").unwrap());
        assert!(at("v1.21.0").has("cronjob_v1").unwrap());
        assert!(at("v2.0.0").has("watchlist").unwrap());
        assert!(at("v1.36.2").has("no_such_thing").is_err());
    }

    #[test]
    fn every_capability_is_listed_once_with_a_summary() {
        let mut names = BTreeSet::new();
        for capability in CAPABILITIES {
            assert!(
                names.insert(capability.name),
                "{} is listed twice",
                capability.name
            );
            assert!(
                !capability.summary.is_empty(),
                "{} lacks a summary",
                capability.name
            );
        }
    }

    #[test]
    fn a_missing_binary_says_where_to_get_one() {
        let assets = Assets::at("/nonexistent");
        let error = assets.version().unwrap_err().to_string();
        assert!(
            error.contains("kube-apiserver is missing in /nonexistent"),
            "{error}"
        );
        assert!(error.contains("hack/real-apiserver.sh"), "{error}");
    }
}
