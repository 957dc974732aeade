//! Rules of ResourceDistribution. Their messages name only the kind and the name of the distributed object, none of its content.
//!
//! Whether a server would accept the copies, and whether the author may write them, cannot be decided from the object:
//! [`inquiry`](super::inquiry). Source: ResourceDistribution reference 2.

use entourage_api::{
    keys::{TRUE, annotation},
    kruise::DistributionTargets,
};
use entourage_model::problem::{Problem, is_subdomain};
use entourage_render::distributed::{
    targets::{Targets, is_dns_label},
    template,
};
use serde::Deserialize as _;
use serde_json::Value;

use crate::request::text;

/// The kinds that can be distributed, and the only version of either.
const KINDS: [&str; 2] = ["ConfigMap", "Secret"];
const VERSION: &str = "v1";

/// The name is valid for an object of the API; copies record it.
pub(super) fn name(object: &Value, problems: &mut Vec<Problem>) {
    let name = text(&object["metadata"]["name"]);
    // A server generates a name from generateName.
    if !name.is_empty() && !is_subdomain(name) {
        problems.push(Problem::new(
            "metadata.name",
            format!("{name:?} is not a DNS name"),
            "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
        ));
    }
}

/// The source is given exactly once, and can be found.
pub(super) fn source(object: &Value, problems: &mut Vec<Problem>) {
    let spec = &object["spec"];
    let remedy = "give one of the two";
    match (is_given(&spec["resource"]), is_given(&spec["resourceFrom"])) {
        (true, true) => problems.push(Problem::new(
            "spec.resourceFrom",
            "resource and resourceFrom are mutually exclusive",
            remedy,
        )),
        (false, false) => problems.push(Problem::new(
            "spec.resource",
            "neither resource nor resourceFrom is set",
            remedy,
        )),
        (false, true) => found(&spec["resourceFrom"], problems),
        (true, false) => {}
    }
}

fn found(from: &Value, problems: &mut Vec<Problem>) {
    let mut wrong = |field: &str, cause: &str, remedy: &str| {
        problems.push(Problem::new(format!("spec.resourceFrom.{field}"), cause, remedy));
    };
    if !KINDS.contains(&text(&from["kind"])) {
        wrong(
            "kind",
            "this kind cannot be distributed",
            "give ConfigMap or Secret",
        );
    }
    if !is_dns_label(text(&from["namespace"])) {
        wrong(
            "namespace",
            "it cannot be the name of a namespace",
            "give the namespace of the object",
        );
    }
    if !is_subdomain(text(&from["name"])) {
        wrong(
            "name",
            "it cannot be the name of an object",
            "give the name of the ConfigMap or Secret",
        );
    }
}

/// The source can be distributed.
pub(super) fn resource(object: &Value, problems: &mut Vec<Problem>) {
    let resource = &object["spec"]["resource"];
    if is_given(resource)
        && let Err(wrong) = template::read(resource)
    {
        problems.extend(wrong);
    }
}

/// Targets are valid, and do not contradict each other.
pub(super) fn targets(object: &Value, problems: &mut Vec<Problem>) {
    match read_targets(object).map(|targets| Targets::compile(&targets)) {
        Some(Ok(_)) => {}
        Some(Err(wrong)) => problems.extend(wrong),
        None => problems.push(Problem::new(
            "spec.targets",
            "targets are missing or malformed",
            "see kubectl explain resourcedistribution.spec.targets; {} selects no namespace",
        )),
    }
}

/// The identity of the distributed object does not change: the earlier copies would be orphaned. An invalid source has no
/// copies, and may be replaced.
pub(super) fn same_identity(object: &Value, old: &Value, problems: &mut Vec<Problem>) {
    let (Some(new), Some(old)) = (identity(object), identity(old)) else {
        return;
    };
    if old.api_version != VERSION || !KINDS.contains(&old.kind) || old.name.is_empty() {
        return;
    }
    for (field, is, was) in [
        (new.paths[0], new.api_version, old.api_version),
        (new.paths[1], new.kind, old.kind),
        (new.paths[2], new.name, old.name),
    ] {
        if is != was {
            problems.push(Problem::new(
                field,
                format!("it was {was:?} and is immutable: the copies are identified by it"),
                "keep it, and make another ResourceDistribution for another object",
            ));
        }
    }
}

/// Targets that match namespaces must continue to match some, unless the removal of the copies is confirmed.
pub(super) fn not_emptied(object: &Value, old: &Value, problems: &mut Vec<Problem>) {
    let means_nothing = |object| compiled_targets(object).map(|targets| targets.mean_nothing());
    if means_nothing(old) != Some(false) || means_nothing(object) != Some(true) {
        return;
    }
    let confirmed = &object["metadata"]["annotations"][annotation::ALLOW_EMPTY_TARGETS];
    if *confirmed != TRUE {
        problems.push(Problem::new(
            "spec.targets",
            "no namespace is selected any more: every copy would be deleted",
            format!(
                "select at least one, or confirm it with the annotation {}: \"{TRUE}\"",
                annotation::ALLOW_EMPTY_TARGETS
            ),
        ));
    }
}

/// The identity of the distributed object, with the paths of its fields.
pub(super) struct Identity<'a> {
    /// The paths of the API version, of the kind, and of the name.
    paths: [&'static str; 3],
    api_version: &'a str,
    /// Its kind.
    pub(super) kind: &'a str,
    /// Its name, which is also the name of the copies.
    pub(super) name: &'a str,
}

/// The identity, or `None` if the source is not given exactly once.
pub(super) fn identity(object: &Value) -> Option<Identity<'_>> {
    let (resource, from) = (&object["spec"]["resource"], &object["spec"]["resourceFrom"]);
    match (is_given(resource), is_given(from)) {
        (true, false) => Some(Identity {
            paths: [
                "spec.resource.apiVersion",
                "spec.resource.kind",
                "spec.resource.metadata.name",
            ],
            api_version: text(&resource["apiVersion"]),
            kind: text(&resource["kind"]),
            name: text(&resource["metadata"]["name"]),
        }),
        (false, true) => Some(Identity {
            paths: [
                "spec.resourceFrom",
                "spec.resourceFrom.kind",
                "spec.resourceFrom.name",
            ],
            api_version: VERSION,
            kind: text(&from["kind"]),
            name: text(&from["name"]),
        }),
        _ => None,
    }
}

/// Its targets, or `None` if they are invalid.
pub(super) fn compiled_targets(object: &Value) -> Option<Targets> {
    Targets::compile(&read_targets(object)?).ok()
}

/// Its targets as written, or `None` if they cannot be read.
pub(super) fn read_targets(object: &Value) -> Option<DistributionTargets> {
    DistributionTargets::deserialize(&object["spec"]["targets"]).ok()
}

/// True if a field is given; servers store null as absent.
pub(super) fn is_given(value: &Value) -> bool {
    !value.is_null()
}
