//! The chain of rules that puts an object on its clusters, or keeps it away: the decisions of the planners, asked again one by one.
//!
//! Nothing is decided here: every step is the answer of the function that the planners themselves call.

mod clusters;
mod distributions;
mod policies;
mod referrers;
mod scheduling;

use std::sync::Arc;

pub(super) use distributions::{presence_of, words};

use entourage_api::{
    keys::label,
    policy::{FailoverBehavior, Placement},
    work::{ResourceBinding, TargetCluster},
};

use super::explanation::{
    Effect::{Against, For},
    Explanation, Presence, Step, rule,
};
use crate::{
    cache::{Binding, ResourceState},
    failover::inspected::{Asking, Inspected, inspect},
    fleet::{Fleet, claims::best},
    object::{ResourceId, Str, Time},
    observation::Template,
    reserved::is_skipped_kind,
    scheduling::{Own, own_part},
};

/// The most objects of one sort that are named.
pub(super) const LISTED: usize = 20;

/// Explains where an object is, and why; `exists` is true if the hub has it. Templates of kinds that nothing demands are not watched, so a
/// fleet need not know them.
///
/// Cost: that of scheduling it, and O(clusters × entries of the placement + policies + referrers × their clusters + distributions).
#[must_use]
pub fn why(fleet: &Fleet, id: &ResourceId, exists: bool, now: Time) -> Explanation {
    let id = &watched(fleet, id);
    let subject = Subject::of(fleet, id, exists, now);
    let inspected = subject.inspect();
    let mut steps = vec![subject.template_step()];
    steps.extend(policies::steps(&subject));
    steps.extend(referrers::steps(&subject));
    steps.extend(scheduling::steps(&subject, inspected.as_ref()));
    steps.extend(distributions::steps(&subject, None));
    Explanation {
        object: id.into(),
        steps,
        clusters: clusters::explained(&subject, inspected.as_ref()),
    }
}

/// The clusters where a copy is, is wanted, or is kept away from, with the recorded message about it. Cost: O(clusters × referrers).
pub(super) fn places(fleet: &Fleet, id: &ResourceId, now: Time) -> Vec<(Str, Presence, String)> {
    let id = &watched(fleet, id);
    clusters::places(&Subject::of(fleet, id, true, now))
}

/// The object with its kind in the version that the fleet watches.
pub(super) fn watched(fleet: &Fleet, id: &ResourceId) -> ResourceId {
    ResourceId {
        gvk: fleet.watched(&id.gvk),
        ..id.clone()
    }
}

/// The request to the scheduler about a template; `None` if it has no placement. `held` is its stored binding.
pub(super) fn asking<'a>(
    fleet: &'a Fleet,
    id: &'a ResourceId,
    held: &'a ResourceBinding,
    now: Time,
) -> Option<Asking<'a>> {
    let subject = Subject::of(fleet, id, true, now);
    let (of, behaviour) = (subject.known()?, subject.placement()?);
    Some(Asking {
        id,
        of,
        behaviour,
        held,
    })
}

/// The object that is explained, and what is known of it.
struct Subject<'a> {
    fleet: &'a Fleet,
    id: &'a ResourceId,
    exists: bool,
    now: Time,
    resource: Option<&'a ResourceState>,
    template: Option<&'a Template>,
    binding: Option<&'a Binding>,
    own: Option<Own<'a>>,
    /// The stored binding; an empty one if there is none.
    held: Arc<ResourceBinding>,
}

impl<'a> Subject<'a> {
    fn of(fleet: &'a Fleet, id: &'a ResourceId, exists: bool, now: Time) -> Self {
        let resource = fleet.resource(id);
        let template = resource.and_then(ResourceState::standing);
        let binding = resource.and_then(|resource| resource.binding.as_ref());
        let own = resource
            .zip(template)
            .and_then(|of| own_part(fleet, id, of, binding));
        let held = binding.map(|binding| binding.object.clone());
        Self {
            fleet,
            id,
            exists,
            now,
            resource,
            template,
            binding,
            own,
            held: held.unwrap_or_default(),
        }
    }

    /// The state of a template that is on the hub.
    fn known(&self) -> Option<(&'a ResourceState, &'a Template)> {
        self.resource.zip(self.template)
    }

    /// The placement in force, or of the policy that is about to claim it, and the treatment of failures; `None` if it has no policy of its
    /// own, and never had one.
    fn placement(&self) -> Option<(&'a Placement, Option<&'a FailoverBehavior>)> {
        let coming = || {
            let meta = &self.template?.meta;
            let is_free = meta.label(label::CLAIMED_BY).is_none();
            best(self.fleet, self.id, meta).filter(|_| is_free)
        };
        match self
            .own
            .or_else(|| coming().map(|(name, policy)| Own::Claimed(name, policy)))?
        {
            Own::Claimed(_, policy) => {
                let spec = &policy.object.spec;
                Some((&spec.placement, spec.failover.as_ref()))
            }
            Own::Held(..) | Own::Orphaned => {
                let spec = &self.binding?.object.spec;
                Some((spec.placement.as_ref()?, spec.failover.as_ref()))
            }
        }
    }

    fn asking(&self) -> Option<Asking<'_>> {
        Some(Asking {
            id: self.id,
            of: self.known()?,
            behaviour: self.placement()?,
            held: &self.held,
        })
    }

    fn inspect(&self) -> Option<Inspected> {
        inspect(self.fleet, self.asking()?, self.now)
    }

    fn template_step(&self) -> Step {
        let against = |message: String| Step::new(rule::TEMPLATE, Against, message);
        let id = self.id;
        if is_skipped_kind(&id.gvk) {
            return against(format!(
                "{id} is of a kind of the control plane: it is never propagated"
            ));
        }
        if self.fleet.config.is_skipped(id) {
            return against(format!(
                "{id} belongs to the system or to a reserved namespace: it is never propagated"
            ));
        }
        let Some(resource) = self.resource else {
            return self.unwatched();
        };
        if resource.not_propagatable {
            return against(format!("{id} is a credential of the hub: it is never propagated"));
        }
        if let Some(unreadable) = resource.unreadable.as_ref() {
            return against(format!("{id} cannot be read on the hub: {}", unreadable.1));
        }
        match &resource.template {
            Some(template) if template.meta.deleting.is_some() => against(format!("{id} is being deleted")),
            Some(_) => Step::new(rule::TEMPLATE, For, format!("{id} exists on the hub")),
            None => self.unwatched(),
        }
    }

    /// The step of an object that the fleet does not know.
    fn unwatched(&self) -> Step {
        let id = self.id;
        if !self.exists {
            return Step::new(rule::TEMPLATE, Against, format!("{id} does not exist on the hub"));
        }
        let is_secret = id.gvk.group.is_empty() && *id.gvk.kind == *"Secret";
        if is_secret && self.fleet.is_kind_listed(&id.gvk) {
            // The list of Secrets is without them.
            let message = format!("{id} is the token of a service account: it is never propagated");
            return Step::new(rule::TEMPLATE, Against, message);
        }
        Step::new(rule::TEMPLATE, For, format!("{id} exists on the hub"))
    }
}

/// `m1 (3), m2`: clusters with their replicas; `no cluster` without any.
pub(super) fn named(clusters: &[TargetCluster]) -> String {
    if clusters.is_empty() {
        return "no cluster".to_owned();
    }
    let all = clusters.iter().map(|target| match target.replicas {
        0 => target.name.clone(),
        replicas => format!("{} ({replicas})", target.name),
    });
    let all: Vec<String> = all.collect();
    all.join(", ")
}
