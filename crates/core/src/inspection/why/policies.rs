//! The steps about policies: the one that claims a template, and why none of the others does.

use entourage_api::{keys::label, policy::Preemption};

use super::Subject;
use crate::{
    cache::Policy,
    fleet::claims::{candidates, claimed_by, lacks_claim, missing_overrides},
    inspection::explanation::{
        Effect::{Against, For, Note},
        Step, rule,
    },
    matching::{self, Precedence, Specificity},
    object::NamespacedName,
    observation::Template,
    scheduling::Own,
    scope,
};

/// The most policies that are named because they select other objects of the kind.
const NEAR: usize = 5;

type PolicyRef<'a> = (&'a NamespacedName, &'a Policy);

/// The steps about the policies that select a template.
pub(super) fn steps(subject: &Subject<'_>) -> Vec<Step> {
    if subject.fleet.config.is_skipped(subject.id) {
        return Vec::new();
    }
    let Some(template) = subject.template else {
        return unwatched(subject).into_iter().collect();
    };
    let (fleet, id, meta) = (subject.fleet, subject.id, &template.meta);
    let mut steps = Vec::new();
    if let Some(component) = meta.label(label::CLAIMED_BY) {
        let message = format!("{component} has claimed it, so no policy does");
        steps.push(Step::new(rule::POLICY, Against, message));
        return steps;
    }
    let holder = claimed_by(fleet, id, meta);
    let coming = lacks_claim(fleet, id);
    match (holder, coming) {
        (Some(policy), _) => steps.push(chosen(subject, template, policy, "claims it")),
        (None, Some(_)) => {}
        (None, None) => steps.extend(none(subject)),
    }
    let next = coming.and_then(|name| fleet.cache.policies.get_key_value(name));
    if let Some(policy) = next {
        let what = match holder {
            Some(_) => "is about to preempt that claim",
            None => "is about to claim it",
        };
        steps.push(chosen(subject, template, policy, what));
    }
    if let Some(first) = next.or(holder) {
        let named = [next, holder].map(|policy| policy.map(|(name, _)| name));
        let others = candidates(fleet, id, meta).filter(|(name, _)| !named.contains(&Some(*name)));
        steps.extend(others.filter_map(|other| loses(subject, template, (first, holder.is_some()), other)));
    }
    steps.extend(activation(subject));
    steps
}

/// The step of a template that the fleet does not know although the hub has it: nothing demands its kind, or it was never propagated.
fn unwatched(subject: &Subject<'_>) -> Option<Step> {
    let is_known = subject
        .resource
        .is_some_and(|resource| resource.template.is_some());
    if !subject.exists || is_known || subject.fleet.is_kind_listed(&subject.id.gvk) {
        return None;
    }
    let kind = &subject.id.gvk.kind;
    let message =
        format!("no policy selects objects of kind {kind}, and nothing that is propagated refers to one");
    Some(Step::new(rule::POLICY, Against, message))
}

/// The steps of a template that no policy selects, with those policies that name its kind.
fn none(subject: &Subject<'_>) -> Vec<Step> {
    if matches!(subject.own, Some(Own::Orphaned)) {
        let message = "the policy that claimed it is gone: it stays as it was last scheduled";
        return vec![Step::new(rule::POLICY, For, message)];
    }
    let is_dependency = !subject.fleet.links(subject.id).referrers.is_empty();
    let effect = if is_dependency { Note } else { Against };
    let mut steps = vec![Step::new(rule::POLICY, effect, "no policy selects it")];
    if is_dependency {
        return steps;
    }
    let all = subject.fleet.cache.policies.iter();
    let near = all.filter(|(name, policy)| {
        let spec = &policy.object.spec;
        policy.meta.deleting.is_none() && matching::is_in_reach(spec, &name.namespace, subject.id)
    });
    let kind = &subject.id.gvk.kind;
    let step = |(name, _): PolicyRef<'_>| {
        let message = format!(
            "{} selects other objects of kind {kind} in this namespace",
            titled(name)
        );
        Step::new(rule::POLICY, Note, message)
    };
    steps.extend(near.take(NEAR).map(step));
    steps
}

fn chosen(subject: &Subject<'_>, template: &Template, (name, policy): PolicyRef<'_>, what: &str) -> Step {
    let how = how(subject, template, (name, policy));
    let priority = policy.object.spec.priority;
    let message = format!(
        "{} {what}: it selects it {how}, with priority {priority}",
        titled(name)
    );
    Step::new(rule::POLICY, For, message)
}

/// The step of a policy that selects the template and does not claim it; `None` if it does not select it. `is_held`: the winner has its
/// claim, and not only the better match.
fn loses(
    subject: &Subject<'_>,
    template: &Template,
    (winner, is_held): (PolicyRef<'_>, bool),
    (name, policy): PolicyRef<'_>,
) -> Option<Step> {
    let spec = &policy.object.spec;
    let labels = &template.meta.labels;
    matching::selects(spec, &name.namespace, subject.id, labels)?;
    let first = (winner.0, &winner.1.object.spec);
    let why = match matching::precedence(first, (name, spec), subject.id, labels) {
        Some(Precedence::Scope) => "a PropagationPolicy comes before a ClusterPropagationPolicy".to_owned(),
        Some(Precedence::Priority) => {
            format!(
                "its priority is lower, {} < {}",
                spec.priority, winner.1.object.spec.priority
            )
        }
        Some(Precedence::Specificity) => {
            let first = how(subject, template, winner);
            format!("the other one selects it more specifically, {first}")
        }
        Some(Precedence::Name) => "all else being equal, the smaller name comes first".to_owned(),
        // Nothing but preemption takes a claim away.
        None if !is_held => return None,
        None if spec.preemption == Preemption::Always => {
            "the other one claimed it first, and only a higher priority preempts a claim".to_owned()
        }
        None => "the other one claimed it first, and it does not preempt (preemption: Never)".to_owned(),
    };
    let how = how(subject, template, (name, policy));
    let message = format!(
        "{} selects it, too, {how}, and does not claim it: {why}",
        titled(name)
    );
    Some(Step::new(rule::POLICY, Note, message))
}

/// The step of a policy that claims the template, and whose spec does not count yet.
fn activation(subject: &Subject<'_>) -> Option<Step> {
    let template = subject.template?;
    let (name, policy, effect) = match subject.own {
        // The binding stays as it was before.
        Some(Own::Held(name, policy)) => (name, policy, Note),
        None => {
            let (name, policy) = claimed_by(subject.fleet, subject.id, &template.meta)?;
            (name, policy, Against)
        }
        Some(Own::Claimed(..) | Own::Orphaned) => return None,
    };
    let missing = missing_overrides(subject.fleet, name, policy);
    let message = if missing.is_empty() {
        format!(
            "{} is lazy: its current spec counts from the next change of the template on",
            titled(name)
        )
    } else {
        let missing = missing.join(", ");
        format!(
            "{} waits for the override policies of dependentOverrides: {missing}",
            titled(name)
        )
    };
    Some(Step::new(rule::ACTIVATION, effect, message))
}

/// `by its name`: the way in which a policy selects a template.
fn how(subject: &Subject<'_>, template: &Template, (name, policy): PolicyRef<'_>) -> &'static str {
    let spec = &policy.object.spec;
    match matching::selects(spec, &name.namespace, subject.id, &template.meta.labels) {
        Some(Specificity::Name) => "by its name",
        Some(Specificity::Labels) => "by its labels",
        Some(Specificity::Kind) => "by its kind",
        None => "no longer",
    }
}

/// `PropagationPolicy shop/web`.
fn titled(name: &NamespacedName) -> String {
    format!("{} {name}", scope::policy(name).kind)
}
