//! The state of a [`Fleet`] and its decisions, for those who show or simulate them. Nothing here changes anything.

pub mod explanation;
pub mod history;
pub mod impact;
pub mod secrets;
pub mod tree;
pub mod why;

use crate::{
    distributed::observed::Spec,
    fleet::{Fleet, render_specs, wanted},
    memory::distributions::DistributionState,
    object::{NamespacedName, ResourceId, Str},
    override_effect,
    places::{Place, TargetStatus},
    render_spec::RenderSpec,
};

/// True if the last probe of a member succeeded, and it is the cluster that it was registered as.
#[must_use]
pub fn answers(fleet: &Fleet, cluster: &str) -> bool {
    fleet.answers(cluster)
}

/// True if the copy of a template is wanted on a cluster: placed by its binding, or required by a referrer.
#[must_use]
pub fn wants(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> bool {
    let resource = fleet.resource(id);
    resource.is_some_and(|resource| wanted::wants(fleet, id, resource, cluster))
}

/// The parameters by which a copy is rendered; `None` without a template or a binding.
#[must_use]
pub fn render_spec(fleet: &Fleet, id: &ResourceId, cluster: &Str) -> Option<RenderSpec> {
    render_specs::render_spec_of(fleet, id, cluster)
}

/// The reason why an override policy changes no copy; `None` if it changes one, or does not exist.
///
/// Cost: O(members + objects that it may select × their clusters), up to the first copy that it changes.
#[must_use]
pub fn override_without_effect(fleet: &Fleet, name: &NamespacedName) -> Option<String> {
    override_effect::without(fleet, name)
}

/// One distribution of a fleet.
#[derive(Clone, Copy)]
pub struct DistributionView<'a> {
    fleet: &'a Fleet,
    held: &'a DistributionState,
}

impl<'a> DistributionView<'a> {
    /// Its spec; `None` if it is invalid.
    #[must_use]
    pub fn spec(self) -> Option<&'a Spec> {
        self.held.object.spec.as_ref().ok()
    }

    /// The places of each target status.
    pub fn places(self) -> impl Iterator<Item = (TargetStatus, impl Iterator<Item = &'a Place>)> {
        let all = self.held.by_target_status.iter();
        all.map(|(target_status, places)| (*target_status, places.iter()))
    }

    /// The number of places with this target status. Cost: O(log target statuses).
    #[must_use]
    pub fn count(self, target_status: TargetStatus) -> usize {
        self.held.count(target_status)
    }

    /// The reason why the copy in a place counts as failed, for a user.
    #[must_use]
    pub fn failure_message(self, place: &Place) -> Option<String> {
        self.held.target_states.get(place)?.failure_message()
    }

    /// True if copies stay although no namespace is selected, until a user confirms.
    #[must_use]
    pub fn is_held_back(self) -> bool {
        self.fleet.held_back(self.held) > 0
    }
}

/// All distributions, by name.
pub fn distributions(fleet: &Fleet) -> impl Iterator<Item = (&Str, DistributionView<'_>)> {
    let all = fleet.memory.distributions.held.iter();
    all.map(move |(name, held)| (name, DistributionView { fleet, held }))
}

/// The distribution of this name.
#[must_use]
pub fn distribution<'a>(fleet: &'a Fleet, name: &str) -> Option<DistributionView<'a>> {
    let held = fleet.memory.distributions.held.get(name)?;
    Some(DistributionView { fleet, held })
}
