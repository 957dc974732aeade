//! The target namespaces of a distribution.
//!
//! ```text
//! A  allNamespaces: true              every namespace
//! B  all                              every namespace but its exceptions; the field applies also as []
//! C  includedNamespaces, namespaces   these, whether they exist or not
//! D  namespaceLabelSelector           those with such labels; also as namespaceSelector
//! E  workloadLabelSelector            those that contain such a workload
//!
//! targets = (A ∪ B ∪ C ∪ D ∪ E) − excludedNamespaces
//! ```
//!
//! Beside A, C adds nothing: a namespace that is named and does not exist is not counted then, as in OpenKruise. A selector
//! without a requirement selects nothing, unlike elsewhere in Kubernetes, and as in OpenKruise. Source: ResourceDistribution
//! reference 3.3, 6.3 and 6.4; rules 8 to 10 of its section 2.

use std::collections::BTreeSet;

use entourage_api::kruise::{DistributionTargets, FlatSelector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use entourage_model::{
    object::{Str, StrMap},
    problem::Problem,
    selector,
};

mod candidates;
#[cfg(test)]
mod tests;

pub use candidates::Candidates;

/// The remedy for an invalid namespace name.
const NAME_ONE: &str = "give a name of at most 63 lower-case letters, digits and '-' that begins and ends with a letter or digit";

/// Targets, compiled and valid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Targets {
    /// A.
    everything: bool,
    /// B, with its exceptions.
    all_but: Option<BTreeSet<Str>>,
    /// C, without the excluded namespaces.
    named: BTreeSet<Str>,
    /// D; a selector that selects nothing is left out.
    labels: Option<LabelSelector>,
    /// E; likewise.
    workloads: Option<LabelSelector>,
    excluded: BTreeSet<Str>,
}

impl Targets {
    /// Compiles targets. `targets.clusters` is ignored: it names the servers, not the namespaces. Cost: O(size).
    ///
    /// # Errors
    /// All errors in the targets.
    pub fn compile(targets: &DistributionTargets) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let all_but = targets.all.as_ref().map(|all| {
            let names = all.iter().map(|each| each.exception.as_str());
            names_of(names, |at| format!("all[{at}].exception"), &mut problems)
        });
        let mut listed = |list: &str, names: &mut dyn Iterator<Item = &str>| {
            names_of(names, |at| format!("{list}[{at}].name"), &mut problems)
        };
        let mut named = listed(
            "includedNamespaces.list",
            &mut targets.included_namespaces.names(),
        );
        named.extend(listed(
            "namespaces",
            &mut targets.namespaces.iter().map(|each| each.name.as_str()),
        ));
        let excluded = listed(
            "excludedNamespaces.list",
            &mut targets.excluded_namespaces.names(),
        );
        for name in named.intersection(&excluded) {
            problems.push(problem(
                "excludedNamespaces.list",
                format!("{name:?} is both named and excluded"),
                "remove it from one of the two",
            ));
        }
        if targets.selector().is_err() {
            problems.push(problem(
                "namespaceSelector",
                "it is another name of namespaceLabelSelector, and the two differ",
                "give one of them",
            ));
        }
        // Both are compiled, even if they differ: each may have an error of its own.
        let one = compiled(
            "namespaceLabelSelector",
            targets.namespace_label_selector.as_ref(),
            &mut problems,
        );
        let other = compiled(
            "namespaceSelector",
            targets.namespace_selector.as_ref(),
            &mut problems,
        );
        let workloads = compiled(
            "workloadLabelSelector",
            targets.workload_label_selector.as_ref(),
            &mut problems,
        );
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            everything: targets.all_namespaces,
            all_but,
            named: named.difference(&excluded).cloned().collect(),
            labels: one.or(other),
            workloads,
            excluded,
        })
    }

    /// True if a namespace is a target, given its labels and whether it contains a selected workload. System namespaces are
    /// excluded by the caller. Cost: O(requirements of the selector · log labels).
    #[must_use]
    pub fn means(&self, namespace: &str, labels: &StrMap, has_workload: bool) -> bool {
        let is_selected = || {
            let selected = self.labels.as_ref();
            selected.is_some_and(|selector| selector::matches(selector, labels))
        };
        !self.excluded.contains(namespace)
            && (self.everything
                || self.named.contains(namespace)
                || self.is_all_but_exceptions(namespace)
                || has_workload && self.workloads.is_some()
                || is_selected())
    }

    fn is_all_but_exceptions(&self, namespace: &str) -> bool {
        let exceptions = self.all_but.as_ref();
        exceptions.is_some_and(|exceptions| !exceptions.contains(namespace))
    }

    /// The namespaces that are targets by name, whether they exist or not; sorted, without those that are excluded.
    #[must_use]
    pub fn named(&self) -> &BTreeSet<Str> {
        &self.named
    }

    /// True if a namespace that does not exist is a target, and so counts as failed.
    #[must_use]
    pub fn mean_missing(&self, namespace: &str) -> bool {
        !self.everything && self.named.contains(namespace)
    }

    /// The selector of workloads, or `None` if it has no requirement, and so selects nothing.
    #[must_use]
    pub fn workloads(&self) -> Option<&LabelSelector> {
        self.workloads.as_ref()
    }

    /// True if no namespace can be a target, whatever exists: nothing names, selects or includes all. Selectors that contradict
    /// themselves are not detected.
    #[must_use]
    pub fn mean_nothing(&self) -> bool {
        !self.mean_more_than_names() && self.named.is_empty()
    }

    /// True if namespaces may be targets that are not named.
    #[must_use]
    pub fn mean_more_than_names(&self) -> bool {
        self.everything || self.all_but.is_some() || self.labels.is_some() || self.workloads.is_some()
    }
}

/// The names in a list; errors in them are added to the problems. A duplicate is harmless.
fn names_of<'a>(
    names: impl Iterator<Item = &'a str>,
    path: impl Fn(usize) -> String,
    problems: &mut Vec<Problem>,
) -> BTreeSet<Str> {
    let mut found = BTreeSet::new();
    for (at, name) in names.enumerate() {
        if is_dns_label(name) {
            found.insert(name.into());
        } else {
            let cause = if name.is_empty() {
                "the name is empty".to_owned()
            } else {
                format!("{name:?} cannot be the name of a namespace")
            };
            problems.push(problem(&path(at), cause, NAME_ONE));
        }
    }
    found
}

/// A selector, or `None` if there is none or it selects nothing; errors in it are added to the problems.
fn compiled(
    field: &str,
    selector: Option<&FlatSelector>,
    problems: &mut Vec<Problem>,
) -> Option<LabelSelector> {
    let read = selector?.to_selector().map_err(|cause| {
        let remedy = "give labels and their values as texts, under matchLabels or beside it, each once";
        problem(field, cause, remedy)
    });
    let checked = read.and_then(|selector| match selector::check(&selector) {
        Ok(()) => Ok(selector),
        Err(cause) => Err(problem(
            field,
            cause,
            "write keys, operators and values as Kubernetes has them in label selectors",
        )),
    });
    match checked {
        Ok(selector) => {
            let is_empty = selector.match_labels.is_none() && selector.match_expressions.is_none();
            (!is_empty).then_some(selector)
        }
        Err(problem) => {
            problems.push(problem);
            None
        }
    }
}

fn problem(field: &str, cause: impl Into<String>, remedy: &str) -> Problem {
    Problem::new(format!("spec.targets.{field}"), cause, remedy)
}

/// True if a text is a valid namespace name: a label of RFC 1123.
pub fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.len() <= 63
        && bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
}
