//! Keys that waited for a sync requirement, and are planned again now that it is met.

use super::Dirty;
use crate::{
    fleet::Fleet,
    object::{Str, Time},
    observation::Watch,
    plan::{Key, SyncRequirement},
};

impl Fleet {
    /// Plans again the keys that waited for a requirement that is met now. To be called after every event of a watch that may meet one.
    pub(super) fn wake(&mut self, watch: &Watch, now: Time, dirty: &mut Dirty) {
        let concerned: Vec<SyncRequirement> = match watch {
            Watch::MemberNamespaces(_)
            | Watch::Nodes(_)
            | Watch::Pods(_)
            | Watch::QuotaCopies(_)
            | Watch::Endpoints(..)
            | Watch::Leases => Vec::new(),
            Watch::Copies(cluster, gvk) => vec![SyncRequirement::Copies(cluster.clone(), gvk.clone())],
            _ => {
                let of_hub = |proof: &&SyncRequirement| !matches!(proof, SyncRequirement::Copies(..));
                self.memory
                    .waiting
                    .requirements()
                    .take_while(of_hub)
                    .cloned()
                    .collect()
            }
        };
        for proof in concerned {
            if !self.has(&proof) {
                continue;
            }
            for key in self.memory.waiting.end(&proof) {
                match &key {
                    Key::BindingStatus(id) => self.lists_came(id, now),
                    // Its delivery begins only now.
                    Key::Copy(id, _) => {
                        if let Some(resource) = self.cache.resources.get_mut(id) {
                            resource.lists_came = Some(now);
                        }
                    }
                    _ => {}
                }
                dirty.push(key);
            }
        }
    }

    /// Plans again the keys that waited for deletions on a member to be released. Cost: O(keys that waited).
    pub(super) fn wake_removals(&mut self, cluster: &Str, dirty: &mut Dirty) {
        dirty.extend(
            self.memory
                .waiting
                .end(&SyncRequirement::Removals(cluster.clone())),
        );
    }
}
