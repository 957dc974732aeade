//! The counts for metrics, against a recount.

use entourage_core::{Engine, cache::ResourceState, fleet::ProblemCounts, object::Str};

use super::World;

impl World {
    /// The problems that are counted are those of a recount over what the process, and the one that stands by, have stored; and a change
    /// that is on its way has a copy that is outdated.
    pub(super) fn assert_problems_are_counted(&self) {
        let processes = self.standby.iter().chain([&self.process]);
        for process in processes {
            let (engine, counts) = (&process.engine, process.engine.problem_counts());
            assert_eq!(counts, &recounted(engine), "counted, and recounted");
            let stats = engine.stats();
            assert_eq!(counts.members().count(), stats.clusters);
            let is_outdated = |resource: &ResourceState| {
                let mut copies = resource.copies.values();
                copies.any(|state| state.outdated_since.is_some())
            };
            let outdated = engine.resources().filter(|&(_, resource)| is_outdated(resource));
            let (changes, outdated) = (stats.outdated, outdated.count());
            assert!(
                changes <= outdated,
                "{changes} changes, {outdated} with outdated copies"
            );
        }
    }

    /// The problems that the process counts, for people.
    pub(crate) fn problems(&self) -> Vec<String> {
        let counts = self.process.engine.problem_counts();
        let bindings = counts.bindings();
        let bindings = bindings.map(|(each, count)| format!("{} {} {count}", each.condition, each.reason));
        let copies = counts.copies();
        let copies = copies.map(|(cluster, reason, count)| format!("{cluster} {reason} {count}"));
        let evicting = counts.evicting();
        let evicting = evicting.map(|(cluster, count)| format!("{cluster} evicting {count}"));
        let members = counts.members().flat_map(|(name, member)| {
            let conditions = member.conditions.iter();
            conditions.map(move |each| format!("{name} {} {}", each.condition, each.reason))
        });
        bindings.chain(copies).chain(evicting).chain(members).collect()
    }
}

fn recounted(engine: &Engine) -> ProblemCounts {
    let mut counts = ProblemCounts::default();
    for (id, resource) in engine.resources() {
        let binding = resource.binding.as_ref();
        counts.binding(id, binding.map(|binding| &*binding.object));
    }
    let clusters: Vec<Str> = engine
        .problem_counts()
        .members()
        .map(|(name, _)| name.clone())
        .collect();
    for name in clusters {
        counts.member(&name, engine.cluster(&name).as_deref());
    }
    counts
}
