//! The numbers of objects in the fleet, for metrics.

use super::Fleet;
use crate::{cache::ResourceState, memory::problem_counts::ProblemCounts};

/// Sizes, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Templates seen on the hub.
    pub templates: usize,
    /// Bindings.
    pub bindings: usize,
    /// Copies seen on members.
    pub copies: usize,
    /// Clusters.
    pub clusters: usize,
    /// Policies.
    pub policies: usize,
    /// Copies on members whose template has no binding: they are reported here and left alone.
    pub unaccounted: usize,
    /// Other objects on members that carry our metadata and are not managed: they are reported here and left alone.
    pub copied: usize,
    /// Templates of which some copy is not of the wanted version.
    pub outdated: usize,
}

impl Fleet {
    /// The problems that stored conditions report. Cost: O(1).
    #[must_use]
    pub const fn problem_counts(&self) -> &ProblemCounts {
        &self.memory.problem_counts
    }

    /// Sizes. Cost: O(resources); for metrics only.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let live = |each: &ResourceState| each.copies.values().filter(|copy| copy.live.is_some()).count();
        let lacks_binding = |each: &&ResourceState| each.binding.is_none();
        let left = |each: &ResourceState| {
            let places = each.copies.iter();
            let of_here = places.filter(|(cluster, state)| {
                let copied = state.copied.as_ref();
                copied.is_some_and(|copied| copied.meta.names_cluster(cluster))
            });
            of_here.count()
        };
        let all = || self.resources().map(|(_, resource)| resource);
        let left: usize = all().filter(lacks_binding).map(left).sum();
        let copied: usize = self.cache.copied.values().map(|each| each.objects.len()).sum();
        Stats {
            templates: all().filter(|each| each.template.is_some()).count(),
            bindings: self.graph.by_binding.len(),
            copies: all().map(live).sum(),
            clusters: self.cache.members.len(),
            policies: self.cache.policies.len(),
            unaccounted: left + all().filter(lacks_binding).map(live).sum::<usize>(),
            copied: copied.saturating_sub(left),
            outdated: self.memory.propagations.count(),
        }
    }
}
