//! The steps about the objects that refer to a template, and whether it is propagated with them.

use super::{LISTED, Subject, named};
use crate::{
    fleet::needs::is_anywhere,
    inspection::explanation::{
        Effect::{For, Note},
        Step, rule,
    },
    object::ResourceId,
};

/// A step for each referrer; those that propagate it first.
pub(super) fn steps(subject: &Subject<'_>) -> Vec<Step> {
    let all = &subject.fleet.links(subject.id).referrers;
    let mut steps: Vec<Step> = all.iter().map(|referrer| step(subject, referrer)).collect();
    steps.sort_by_key(|step| step.effect != For);
    let rest = steps.len().saturating_sub(LISTED);
    if rest > 0 {
        steps.truncate(LISTED);
        let message = format!("{rest} more objects refer to it");
        steps.push(Step::new(rule::DEPENDENCY, Note, message));
    }
    steps
}

fn step(subject: &Subject<'_>, referrer: &ResourceId) -> Step {
    let fleet = subject.fleet;
    let note = |why: &str| Step::new(rule::DEPENDENCY, Note, format!("{referrer} refers to it; {why}"));
    let state = fleet.resource(referrer);
    let Some((state, binding)) = state.and_then(|state| Some((state, state.last_binding()?))) else {
        return note("it is not propagated itself");
    };
    let spec = &binding.object.spec;
    if !fleet.config.propagate_deps {
        return note("the propagation of dependencies is turned off (feature gate PropagateDeps)");
    }
    if spec.placement.is_none() {
        return note("it is a dependency itself, and takes none of its own along");
    }
    if !spec.propagate_deps {
        return note("its policy does not set propagateDeps");
    }
    if !state.is_in_use() || !fleet.is_following(state) {
        return note("it is no longer propagated");
    }
    if !is_anywhere(binding) {
        return note("it is scheduled to no cluster");
    }
    let clusters = named(&binding.needed_on());
    let message = format!("{referrer} refers to it, and its policy propagates dependencies: to {clusters}");
    Step::new(rule::DEPENDENCY, For, message)
}
