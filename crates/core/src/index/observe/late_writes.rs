//! Writes that land late: what a former leader sent to a member may be carried out after this process has listed it.
//!
//! Invariant: a first copy is sent only where the stored binding accounts for it, and a binding does not cease to while one may be
//! under way. So after a start or a takeover such writes can be under way only for copies that a binding accounts for and that
//! were not listed. Each of these counts as unanswered: that nothing is there is believed when the member is asked some time later.

use super::Index;
use crate::{
    index::{CopyState, Entity},
    object::{Gvk, Id, Str, Time},
    observation::Watch,
    plan::{Key, Plan},
};

impl Index {
    /// Copies that a former leader may have sent count as unanswered: on all members, or those of one kind on one. Only where the
    /// copies were listed: until then each may be there anyway. Cost: O(copies that are accounted for), once after a start or
    /// takeover.
    pub(super) fn expect_late_writes(&mut self, of: Option<(&Str, &Gvk)>, now: Time) {
        if !self.leading {
            return;
        }
        let (kinds, listed) = (&self.kinds, &self.listed);
        let is_listed = |id: &Id, cluster: &Str| {
            let gvk = kinds.get(&id.gvk).unwrap_or(&id.gvk).clone();
            listed.contains(&Watch::Copies(cluster.clone(), gvk))
        };
        let first = of.map_or_else(
            || Id::new(Gvk::new("", ""), "", ""),
            |(_, gvk)| super::lists::first(gvk),
        );
        for (id, entity) in self.entities.range_mut(first..) {
            if of.is_some_and(|(_, gvk)| id.gvk != *gvk) {
                break;
            }
            for cluster in unseen(entity) {
                let is_asked = of.is_none_or(|(of, _)| *of == cluster);
                if is_asked
                    && is_listed(id, &cluster)
                    && let Some(state) = entity.copies.get_mut(&cluster)
                {
                    state.is_unanswered(now);
                }
            }
        }
    }

    /// Takes in which places the plan for a binding gives up: no first copy is sent there while that is written. A plan that does not
    /// give up a place any more has it planned again. Cost: O(its copies).
    pub(crate) fn note_leaving(&mut self, id: &Id, plan: &Plan) {
        let Some(entity) = self.entities.get_mut(id) else {
            return;
        };
        for (cluster, state) in &mut entity.copies {
            let leaving = plan.leaving.contains(cluster);
            let was_leaving = std::mem::replace(&mut state.leaving, leaving);
            if was_leaving && !leaving {
                self.raised.push(Key::Copy(id.clone(), cluster.clone()));
            }
        }
    }
}

/// The clusters that a binding accounts for and where no copy was seen.
fn unseen(entity: &Entity) -> Vec<Str> {
    let Some(binding) = entity.last_binding() else {
        return Vec::new();
    };
    let is_unseen = |state: &CopyState| state.is_absent() && state.copied.is_none();
    let absent = entity.copies.iter().filter(|(_, state)| is_unseen(state));
    let accounted = absent.filter(|(cluster, _)| binding.may_have_left(cluster));
    accounted.map(|(cluster, _)| cluster.clone()).collect()
}
