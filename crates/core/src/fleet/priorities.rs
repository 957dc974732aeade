//! The priorities of bindings: by the PriorityClasses that policies name, and the order in which bindings are planned.

use entourage_api::policy::PropagationSpec;

use crate::{
    fleet::{Fleet, claims::claimed_by},
    object::ResourceId,
    observation::Watch,
    plan::Key,
};

/// The priority that a policy asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// That of its PriorityClass.
    Known(i32),
    /// The PriorityClasses are not listed yet.
    Pending,
    /// There is no such PriorityClass: the priority is 0, for this reason.
    Unknown(String),
    /// The hub refuses to list PriorityClasses: the stored priority is kept, and 0 without one, for this reason.
    Unlistable(String),
}

impl Priority {
    /// The number that counts, by the stored one; `None` while it is pending and there is none.
    pub(crate) fn value(&self, stored: Option<i32>) -> Option<i32> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => Some(0),
            Self::Unlistable(_) => stored.or(Some(0)),
            Self::Pending => stored,
        }
    }

    /// The reason why it is not that of its PriorityClass; `None` if it is, or while it is pending.
    pub(crate) fn objection(&self) -> Option<&str> {
        match self {
            Self::Unknown(why) | Self::Unlistable(why) => Some(why),
            Self::Known(_) | Self::Pending => None,
        }
    }
}

impl Fleet {
    /// The priority that a policy asks for; `None` if it asks for none. Cost: O(log PriorityClasses).
    pub(crate) fn priority_by(&self, policy: &PropagationSpec) -> Option<Priority> {
        let name = policy.schedule_priority.as_ref()?.priority_class_name.as_str();
        if let Some(class) = self.cache.priority_classes.get(name) {
            return Some(Priority::Known(class.value));
        }
        let (watches, watch) = (&self.cache.watches, &Watch::PriorityClasses);
        Some(if watches.is_listed(watch) {
            Priority::Unknown(format!(
                "PriorityClass {name:?} not found, so the priority is 0; create it on the hub, or correct spec.schedulePriority of the \
                 policy"
            ))
        } else if self.are_priorities_known() {
            let why = watches.refused(watch).or_else(|| watches.unlistable(watch));
            let why = why.map_or("", String::as_str);
            Priority::Unlistable(format!(
                "PriorityClasses cannot be listed, so the priority stays what it was, and is 0 without one ({why}); grant the \
                 controllers list and watch of priorityclasses on the hub"
            ))
        } else {
            Priority::Pending
        })
    }

    /// True if PriorityClasses were listed, or the hub refuses that or does not serve them. An error that may be over soon does not
    /// count.
    pub(crate) fn are_priorities_known(&self) -> bool {
        let (watches, watch) = (&self.cache.watches, &Watch::PriorityClasses);
        watches.is_listed(watch) || watches.refused(watch).is_some() || watches.is_unserved(watch)
    }

    /// True if a policy has a priority: without one all ranks are 0. Cost: O(log watches).
    #[must_use]
    pub fn has_priorities(&self) -> bool {
        self.cache.watches.is_demanded(&Watch::PriorityClasses)
    }

    /// The rank of a key among those of bindings that are to be planned: the highest is planned first. The stored priority of the
    /// binding, or the one that its policy asks for; what others need has at least the rank of each of them; 0 without any. Cost:
    /// O((1 + referrers) × selectors of a policy); O(1) while no policy has a priority.
    #[must_use]
    pub fn rank(&self, key: &Key) -> i32 {
        match key {
            Key::Binding(id) if self.has_priorities() => {
                let referrers = self.graph.links.of(id).referrers.iter();
                let of_referrers = referrers.map(|referrer| self.own_rank(referrer).unwrap_or(0));
                let all = self.own_rank(id).into_iter().chain(of_referrers);
                all.max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The rank of a binding by itself; `None` if no policy claims its template.
    fn own_rank(&self, id: &ResourceId) -> Option<i32> {
        let resource = self.cache.resources.get(id)?;
        let binding = resource.binding.as_ref();
        let stored = binding.and_then(|binding| binding.object.spec.schedule_priority.as_ref());
        if let Some(stored) = stored {
            return Some(stored.priority);
        }
        let template = resource.template.as_ref()?;
        let (_, policy) = claimed_by(self, id, &template.meta)?;
        let asked = self.priority_by(&policy.object.spec);
        Some(asked.and_then(|asked| asked.value(None)).unwrap_or(0))
    }
}
