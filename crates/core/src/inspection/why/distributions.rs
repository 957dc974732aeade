//! The steps about ResourceDistributions that distribute an object, or have one of its name.

use super::Subject;
use crate::{
    inspection::{
        distributions,
        explanation::{
            Effect::{Against, For, Note},
            Presence, Step, rule,
        },
    },
    places::{Place, TargetStatus},
};

/// The distributions that distribute the object, and those that have one of its name on a cluster, or on the hub if it is `None`.
pub(super) fn steps(subject: &Subject<'_>, cluster: Option<&str>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, view) in distributions(subject.fleet) {
        let source = view.spec().and_then(|spec| spec.source.as_ref());
        if cluster.is_none() && source == Some(subject.id) {
            let message = format!("ResourceDistribution {name} distributes it");
            steps.push(Step::new(rule::DISTRIBUTION, Note, message));
        }
        let place = place(subject, cluster);
        let Some(status) = status(subject, name, &place) else {
            continue;
        };
        let failure = view.failure_message(&place);
        let failure = failure.map_or_else(String::new, |failure| format!(": {failure}"));
        let effect = match presence_of(status) {
            Presence::KeptAway => Against,
            Presence::Leaving | Presence::Pending => Note,
            _ => For,
        };
        let here = if cluster.is_none() {
            "in this namespace of the hub"
        } else {
            "here"
        };
        let message = format!(
            "it is a target of ResourceDistribution {name} {here}: {}{failure}",
            words(status)
        );
        steps.push(Step::new(rule::DISTRIBUTION, effect, message));
    }
    steps
}

/// The state of the copy of a distribution on a cluster; `None` if there is no such distribution.
pub(super) fn presence(subject: &Subject<'_>, cluster: &str) -> Option<Presence> {
    let place = place(subject, Some(cluster));
    let all = distributions(subject.fleet).filter_map(|(name, _)| status(subject, name, &place));
    all.map(presence_of).min()
}

fn place(subject: &Subject<'_>, cluster: Option<&str>) -> Place {
    Place {
        cluster: cluster.map(Into::into),
        namespace: subject.id.namespace.clone(),
    }
}

fn status(subject: &Subject<'_>, name: &crate::object::Str, place: &Place) -> Option<TargetStatus> {
    let view = super::super::distribution(subject.fleet, name)?;
    let spec = view.spec()?;
    if spec.gvk != subject.id.gvk || spec.name != subject.id.name {
        return None;
    }
    subject.fleet.target_status(name, place, subject.now)
}

pub(in crate::inspection) const fn presence_of(status: TargetStatus) -> Presence {
    match status {
        TargetStatus::Done => Presence::Present,
        TargetStatus::Pending => Presence::Pending,
        TargetStatus::Leaving | TargetStatus::Kept => Presence::Leaving,
        TargetStatus::Blocked
        | TargetStatus::NoNamespace
        | TargetStatus::Conflict
        | TargetStatus::Failed(_) => Presence::KeptAway,
    }
}

/// The status of a target, for people.
pub(in crate::inspection) const fn words(status: TargetStatus) -> &'static str {
    match status {
        TargetStatus::Done => "the copy is there",
        TargetStatus::Pending => "whether the copy is current was not read (see entourage get distributions)",
        TargetStatus::Blocked => "not written, because of a conflict in another target (writePolicy strict)",
        TargetStatus::Leaving => "no longer a target, and being deleted",
        TargetStatus::Kept => "no longer a target, and kept until a user confirms its deletion",
        TargetStatus::NoNamespace => "the namespace does not exist, or is being deleted",
        TargetStatus::Conflict => "an object of this name already exists and is not managed",
        TargetStatus::Failed(_) => "the last attempt failed",
    }
}
