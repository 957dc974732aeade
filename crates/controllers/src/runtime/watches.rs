//! Which list-and-watches run: those that the core demands, on servers that have a client.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use entourage_core::{
    object::Str,
    observation::{Observation, Server, Watch},
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::Message;
use crate::{client::Api, supervise::supervise, taught::Taught, watch::Watcher};

/// The running watches. Dropping it ends them.
pub(super) struct Watches {
    hub: Str,
    taught: Taught,
    brain: mpsc::Sender<Message>,
    demanded: BTreeSet<Watch>,
    /// How often the demand had changed when it was last taken in.
    changes: Option<u64>,
    running: BTreeMap<Watch, (u64, AbortOnDropHandle<()>)>,
    runs: HashSet<u64>,
    next: u64,
}

impl Watches {
    /// None yet; `hub` is our hub's id.
    pub(super) fn new(hub: Str, taught: Taught, brain: mpsc::Sender<Message>) -> Self {
        let (running, runs) = (BTreeMap::new(), HashSet::new());
        Self {
            hub,
            taught,
            brain,
            demanded: BTreeSet::new(),
            changes: None,
            running,
            runs,
            next: 0,
        }
    }

    /// Whether a message is from a watch that still counts, and not the last words of one that was ended.
    pub(super) fn is_current(&self, run: u64) -> bool {
        self.runs.contains(&run)
    }

    /// Whether the demand may be another one than the one that was taken in: it has changed this often.
    pub(super) fn is_outdated(&self, changes: u64) -> bool {
        self.changes != Some(changes)
    }

    /// Starts what is newly demanded and has a client, and ends what is not demanded any more; the demand has changed this
    /// often. Cost: O(watches).
    pub(super) fn demand(
        &mut self,
        changes: u64,
        demand: &BTreeSet<Watch>,
        api: impl Fn(&Server) -> Option<Api>,
    ) {
        self.changes = Some(changes);
        self.demanded.clone_from(demand);
        let ended: Vec<Watch> = self
            .running
            .keys()
            .filter(|each| !demand.contains(each))
            .cloned()
            .collect();
        for watch in ended {
            self.end(&watch);
        }
        for watch in demand {
            if !self.running.contains_key(watch)
                && let Some(api) = api(&watch.server())
            {
                self.start(watch.clone(), api);
            }
        }
    }

    /// A member has a new client, or none: its watches are started anew, or ended. What is to be observed because of it
    /// is returned.
    pub(super) fn reconnect(&mut self, member: &Str, api: Option<&Api>) -> Vec<Observation> {
        let server = Server::Member(member.clone());
        let of_it: Vec<Watch> = self
            .demanded
            .iter()
            .filter(|each| each.server() == server)
            .cloned()
            .collect();
        let mut lost = Vec::new();
        for watch in of_it {
            if self.end(&watch) {
                let why = "the connection to the member was lost".to_owned();
                lost.push(Observation::Lost {
                    watch: watch.clone(),
                    why,
                });
            }
            if let Some(api) = api {
                self.start(watch, api.clone());
            }
        }
        lost
    }

    fn start(&mut self, watch: Watch, api: Api) {
        let run = self.next;
        self.next += 1;
        self.runs.insert(run);
        // As it is now: whoever changes it starts the watch again.
        let (taught, interpretation) = (self.taught.clone(), self.taught.to(&watch));
        let (hub, brain, kept) = (self.hub.clone(), self.brain.clone(), watch.clone());
        let task = async move {
            let make = || {
                Watcher::new(api.clone(), kept.clone(), run, &hub, brain.clone())
                    .taught(taught.clone(), interpretation.clone())
                    .run()
            };
            let told = || async {
                let lost = Observation::Lost {
                    watch: kept.clone(),
                    why: "the watch ended unexpectedly".to_owned(),
                };
                let (seen, initial) = (vec![lost], true);
                // A failure means that the process ends.
                let _ = brain.send(Message::Watched { run, seen, initial }).await;
            };
            supervise("watch", make, told).await;
        };
        self.running
            .insert(watch, (run, AbortOnDropHandle::new(tokio::spawn(task))));
    }

    /// Ends a watch; whether it ran is answered.
    pub(super) fn end(&mut self, watch: &Watch) -> bool {
        let Some((run, _)) = self.running.remove(watch) else {
            return false;
        };
        self.runs.remove(&run);
        true
    }
}
