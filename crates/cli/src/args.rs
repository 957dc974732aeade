//! Parsers and values of flags that several commands share.

use std::{collections::BTreeMap, io::Write, path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use entourage_api::names::LONGEST_CLUSTER_NAME;
use serde::Serialize;

/// The namespace on the hub, and on every member, for the accounts and credentials. Source: Karmada reference 1.1.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";

/// The hub's kubeconfig and context.
#[derive(Args, Clone, Debug, Default)]
pub struct HubArgs {
    /// Kubeconfig of the hub (default: $KUBECONFIG or ~/.kube/config)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig (default: current context)
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// The objects of a list, as for kubectl.
#[derive(Args, Clone, Debug, Default)]
pub struct SelectArgs {
    /// Namespace (default: that of the context, else default)
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// All namespaces, and cluster-scoped objects
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,

    /// Those of them that are shown.
    #[command(flatten)]
    pub rows: RowArgs,
}

impl SelectArgs {
    /// The namespace that is asked about, given that of the context; empty: all.
    #[must_use]
    pub fn namespace(&self, of_context: &str) -> String {
        match (self.all_namespaces, &self.namespace) {
            (true, _) => String::new(),
            (false, Some(namespace)) => namespace.clone(),
            (false, None) => of_context.to_owned(),
        }
    }
}

/// The rows of a list, as for kubectl.
#[derive(Args, Clone, Debug, Default)]
pub struct RowArgs {
    /// Only objects with these labels; of copies: of templates with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,

    /// Only rows with these fields of `-o json`: state!=Applied,cluster=member1
    #[arg(long, value_name = "FIELDS", value_parser = field_selector)]
    pub field_selector: Option<FieldSelector>,
}

/// The members of an answer.
#[derive(Args, Clone, Debug, Default)]
pub struct MemberArgs {
    /// Only this member; may be given several times (default: all)
    #[arg(short = 'C', long = "cluster", value_name = "NAME", value_parser = cluster_name)]
    pub cluster: Vec<String>,
}

impl MemberArgs {
    /// True if the member is among them; the hub itself is `None`.
    #[must_use]
    pub fn has(&self, cluster: Option<&str>) -> bool {
        self.cluster.is_empty()
            || cluster.is_some_and(|cluster| self.cluster.iter().any(|each| each == cluster))
    }

    /// Checks that the hub has each of them.
    ///
    /// # Errors
    /// It lacks one.
    pub fn check(&self, is_known: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        match self.cluster.iter().find(|cluster| !is_known(cluster)) {
            Some(cluster) => {
                anyhow::bail!("cluster {cluster:?} not found; `entourage get clusters` lists the members")
            }
            None => Ok(()),
        }
    }
}

/// Fields and the values that they must have, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldRequirement>);

/// A field and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field; a dot is before a field in it.
    pub field: String,
    /// The value.
    pub value: String,
    /// False if the field must not have it.
    pub is_equal: bool,
}

/// Reads `field=value,field!=value`.
///
/// # Errors
/// A sentence for the user that names the offending part.
pub fn field_selector(text: &str) -> Result<FieldSelector, String> {
    let requirements = text.split(',').map(|part| {
        let (field, value, is_equal) = match (part.split_once("!="), part.split_once("==")) {
            (Some((field, value)), _) => (field, value, false),
            (None, Some((field, value))) => (field, value, true),
            (None, None) => part
                .split_once('=')
                .map(|(field, value)| (field, value, true))
                .ok_or_else(|| format!("{part:?} is not FIELD=VALUE or FIELD!=VALUE"))?,
        };
        if field.trim().is_empty() {
            return Err(format!("{part:?} names no field"));
        }
        Ok(FieldRequirement {
            field: field.trim().to_owned(),
            value: value.trim().to_owned(),
            is_equal,
        })
    });
    Ok(FieldSelector(requirements.collect::<Result<_, String>>()?))
}

/// An output format for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// Writes a value in this format.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(self, value: &impl Serialize, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
        let text = match self {
            Self::Json => serde_json::to_string_pretty(value)? + "\n",
            Self::Yaml => serde_saphyr::to_string(value).context("cannot write YAML")?,
        };
        out.write_all(text.as_bytes()).context("cannot write the output")
    }
}

/// Reads a duration: a number with the unit `ms`, `s`, `m` or `h`.
///
/// # Errors
/// A sentence for the user.
pub fn duration(text: &str) -> Result<Duration, String> {
    entourage_core::object::duration(text)
        .ok_or_else(|| "give a number and a unit: 500ms, 30s, 5m, 1h".to_owned())
}

/// Reads a rate per second, such as `0.5` or `20`; returns the interval in milliseconds.
///
/// # Errors
/// A sentence for the user.
pub fn rate(text: &str) -> Result<i64, String> {
    let rate: f64 = text.parse().unwrap_or_default();
    if rate.is_finite() && (0.0001..=1_000.0).contains(&rate) {
        // From 1 to 10,000,000: no truncation.
        #[expect(clippy::cast_possible_truncation, reason = "see above")]
        Ok((1_000.0 / rate).round() as i64)
    } else {
        Err("give how many a second, from 0.0001 to 1000, such as 0.5".to_owned())
    }
}

/// Reads `key=value,key=value`. Keys and values must be valid as labels.
///
/// # Errors
/// A sentence for the user that names the offending pair.
pub fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("{pair:?} is not key=value"))?;
        label_key(key)?;
        label_value(value)?;
        if labels.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("{key:?} is given twice"));
        }
    }
    Ok(labels)
}

/// Checks a label key, which is also the format of a taint's key: a name, optionally with a DNS name and a slash before it.
///
/// # Errors
/// A sentence for the user that names the key.
pub fn label_key(key: &str) -> Result<(), String> {
    let name = match key.split_once('/') {
        Some((prefix, name)) if is_dns_name(prefix, 253) => name,
        Some(_) => return Err(format!("{key:?}: the part before / must be a DNS name")),
        None => key,
    };
    if name.is_empty() || !is_label_text(name) {
        return Err(format!(
            "{key:?} is not a label key: letters, digits, '-', '_', '.', at most 63"
        ));
    }
    Ok(())
}

/// Checks a label value, which is also the format of a taint's value.
///
/// # Errors
/// A sentence for the user that names the value.
pub fn label_value(value: &str) -> Result<(), String> {
    if !is_label_text(value) {
        return Err(format!(
            "{value:?} is not a label value: letters, digits, '-', '_', '.', at most 63"
        ));
    }
    Ok(())
}

/// Reads the name of a cluster: a DNS label of at most 48 characters.
///
/// # Errors
/// A sentence for the user.
pub fn cluster_name(text: &str) -> Result<String, String> {
    if text.len() > LONGEST_CLUSTER_NAME || text.contains('.') || !is_dns_name(text, LONGEST_CLUSTER_NAME) {
        return Err(format!(
            "a cluster's name has lower-case letters, digits and '-', starts and ends with a letter or digit, and is \
             at most {LONGEST_CLUSTER_NAME} long"
        ));
    }
    Ok(text.to_owned())
}

/// Reads a member's name and its kubeconfig: `NAME=FILE`.
///
/// # Errors
/// A sentence for the user.
pub fn member(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text
        .split_once('=')
        .ok_or("give NAME=FILE: the member's name and its kubeconfig")?;
    Ok((cluster_name(name)?, PathBuf::from(file)))
}

fn is_label_text(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63 && text.chars().all(inner) && edge(text.chars().next()) && edge(text.chars().next_back())
}

fn is_dns_name(text: &str, longest: usize) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= longest && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_as_the_pause_between_two() {
        for (text, pause) in [
            ("0.5", Some(2_000)),
            ("20", Some(50)),
            ("1000", Some(1)),
            ("0", None),
            ("-1", None),
            ("x", None),
            ("NaN", None),
        ] {
            assert_eq!(rate(text).ok(), pause, "{text}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        for wrong in ["", "5", "s", "-5s", "1.5s", "5d", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_are_read_and_checked() {
        let read = labels("env=prod, example.com/tier=a,empty=").unwrap();
        assert_eq!(read.len(), 3);
        assert_eq!(read["example.com/tier"], "a");
        assert_eq!(labels(""), Ok(BTreeMap::new()));
        for wrong in [
            "env", "=x", "a=b,a=c", "a=b c", "-a=b", "a=-b", "/a=b", "Up/a=b", "a/b/c=d",
        ] {
            assert!(labels(wrong).is_err(), "{wrong}");
        }
        assert!(labels(&format!("a={}", "x".repeat(64))).is_err());
    }

    #[test]
    fn cluster_names_fit_into_an_execution_namespace() {
        for right in ["m1", "eu-west-1", "1", &"x".repeat(48)] {
            assert_eq!(cluster_name(right), Ok(right.to_owned()));
        }
        for wrong in ["", "M1", "a.b", "-a", "a-", "a_b", &"x".repeat(49)] {
            assert!(cluster_name(wrong).is_err(), "{wrong}");
        }
    }
}
