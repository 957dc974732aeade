//! The running list-and-watches: those that the core demands, on servers that have a client, of kinds that the server serves.
//!
//! A kind that not every API server serves waits ([`Waiting`]) until its server is found to serve it, and waits again when it no
//! longer does: see [`super::scout`].

use std::collections::{BTreeMap, BTreeSet, HashSet};

use entourage_core::{
    object::{Gvk, Str},
    observation::{Observation, Server, Watch},
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Message,
    scout::{Found, Scout},
};
use crate::{
    client::{Api, path, served::Served},
    error::Failure,
    interpreter_snapshot::InterpreterSnapshot,
    supervise::supervise,
    watch::{Scope, Watcher},
};

/// The running watches. Dropping it ends them.
pub(crate) struct Watches {
    scope: Scope,
    interpreters: InterpreterSnapshot,
    brain: mpsc::Sender<Message>,
    demanded: BTreeSet<Watch>,
    /// The number of changes of the demand when it was last applied.
    changes: Option<u64>,
    running: BTreeMap<Watch, (u64, AbortOnDropHandle<()>)>,
    waiting: BTreeMap<Server, Waiting>,
    runs: HashSet<u64>,
    next: u64,
}

/// The kinds of a server that are not known to be served.
struct Waiting {
    api: Api,
    scout: Scout,
    /// The last message about each watch.
    watches: BTreeMap<Watch, Option<Report>>,
}

/// The message about a kind that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Report {
    /// The discovery result for it.
    Served(Served),
    /// The result is unknown.
    Unknown,
}

impl Watches {
    /// Creates an empty set; `scope` says whose objects are watched.
    pub(crate) fn new(scope: Scope, interpreters: InterpreterSnapshot, brain: mpsc::Sender<Message>) -> Self {
        let (running, waiting, runs) = (BTreeMap::new(), BTreeMap::new(), HashSet::new());
        Self {
            scope,
            interpreters,
            brain,
            demanded: BTreeSet::new(),
            changes: None,
            running,
            waiting,
            runs,
            next: 0,
        }
    }

    /// True if a message is from a current watch, and not a late one of an ended watch.
    pub(crate) fn is_current(&self, run: u64) -> bool {
        self.runs.contains(&run)
    }

    /// True if the demand may differ from the one that was applied: its number of changes differs.
    pub(crate) fn is_outdated(&self, changes: u64) -> bool {
        self.changes != Some(changes)
    }

    /// Starts newly demanded watches that have a client, and ends those no longer demanded; `changes` is the number of changes
    /// of the demand. Cost: O(watches).
    pub(crate) fn demand(
        &mut self,
        changes: u64,
        demand: &BTreeSet<Watch>,
        api: impl Fn(&Server) -> Option<Api>,
    ) {
        self.changes = Some(changes);
        self.demanded.clone_from(demand);
        let waiting = self.waiting.values().flat_map(|each| each.watches.keys());
        let ended: Vec<Watch> = self
            .running
            .keys()
            .chain(waiting)
            .filter(|each| !demand.contains(each))
            .cloned()
            .collect();
        for watch in ended {
            self.end(&watch);
        }
        for watch in demand {
            if !self.running.contains_key(watch)
                && !self.is_waiting(watch)
                && let Some(api) = api(&watch.server())
            {
                self.start(watch.clone(), api);
            }
        }
        self.look();
    }

    /// The demand as last applied.
    pub(crate) const fn demanded(&self) -> &BTreeSet<Watch> {
        &self.demanded
    }

    /// Applies the discovery results for waiting kinds. Returns the resulting observations. Cost: O(these kinds).
    pub(crate) fn looked(&mut self, server: &Server, run: u64, found: Found) -> Vec<Observation> {
        let Some(waiting) = self.waiting.get_mut(server).filter(|each| each.scout.run == run) else {
            return Vec::new();
        };
        let (mut served, mut seen) = (Vec::new(), Vec::new());
        for (gvk, served_there) in found {
            let watch = match server {
                Server::Hub => Watch::Templates(gvk.clone()),
                Server::Member(name) => Watch::Copies(name.clone(), gvk.clone()),
            };
            let Some(reported) = waiting.watches.get_mut(&watch) else {
                continue;
            };
            if matches!(&served_there, Some(Served::In(version)) if *version == gvk.version) {
                served.push((watch, waiting.api.clone()));
                continue;
            }
            let report = served_there.map_or(Report::Unknown, Report::Served);
            if reported.as_ref() != Some(&report) {
                seen.push(observation(watch, &gvk, &report, &waiting.api));
                *reported = Some(report);
            }
        }
        for (watch, api) in served {
            self.end(&watch);
            self.launch(watch, api);
        }
        self.look();
        seen
    }

    /// The server reported that it does not serve the kind of a watch: the watch ends, and waits until it does.
    pub(crate) fn unserved(&mut self, watch: &Watch, other: Option<&Str>, api: Option<Api>) {
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = watch else {
            return;
        };
        if !waits(watch) || self.is_waiting(watch) || !self.demanded.contains(watch) {
            return;
        }
        let Some(api) = api.filter(|_| self.end(watch)) else {
            return;
        };
        let served = match other {
            None => Served::Nowhere,
            Some(version) if *version == gvk.version => Served::Withheld,
            Some(version) => Served::In(version.clone()),
        };
        self.wait(watch.clone(), api, Some(Report::Served(served)));
        self.look();
    }

    fn is_waiting(&self, watch: &Watch) -> bool {
        let of_server = self.waiting.get(&watch.server());
        of_server.is_some_and(|each| each.watches.contains_key(watch))
    }

    fn wait(&mut self, watch: Watch, api: Api, reported: Option<Report>) {
        let server = watch.server();
        let run = self.next;
        let brain = &self.brain;
        let waiting = self.waiting.entry(server.clone()).or_insert_with(|| Waiting {
            scout: Scout::new(server, api.clone(), run, brain.clone()),
            api,
            watches: BTreeMap::new(),
        });
        self.next += 1;
        waiting.watches.insert(watch, reported);
    }

    /// Passes the waiting kinds to the scouts. Cost: O(waiting kinds).
    fn look(&self) {
        for waiting in self.waiting.values() {
            let kinds = waiting.watches.keys().filter_map(|watch| match watch {
                Watch::Templates(gvk) | Watch::Copies(_, gvk) => Some(gvk.clone()),
                _ => None,
            });
            waiting.scout.want(&kinds.collect());
        }
    }

    /// Applies a new client of a member, or its absence: its watches are restarted, or ended. Returns the resulting
    /// observations.
    pub(super) fn reconnect(&mut self, member: &Str, api: Option<&Api>) -> Vec<Observation> {
        let server = Server::Member(member.clone());
        let of_it: Vec<Watch> = self
            .demanded
            .iter()
            .filter(|each| each.server() == server)
            .cloned()
            .collect();
        let mut lost = Vec::new();
        let mut waited = self
            .waiting
            .remove(&server)
            .map(|each| each.watches)
            .unwrap_or_default();
        for watch in of_it {
            if self.end(&watch) || waited.remove(&watch).is_some() {
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
        self.look();
        lost
    }

    fn start(&mut self, watch: Watch, api: Api) {
        if waits(&watch) {
            self.wait(watch, api, None);
        } else {
            self.launch(watch, api);
        }
    }

    fn launch(&mut self, watch: Watch, api: Api) {
        let run = self.next;
        self.next += 1;
        self.runs.insert(run);
        // The current interpretation: a change of it restarts the watch.
        let (interpreters, interpretation) = (self.interpreters.clone(), self.interpreters.to(&watch));
        let (scope, brain, kept) = (self.scope.clone(), self.brain.clone(), watch.clone());
        let task = async move {
            let make = || {
                Watcher::new(api.clone(), kept.clone(), run, &scope, brain.clone())
                    .interpreting(interpreters.clone(), interpretation.clone())
                    .run()
            };
            let reported = || async {
                let lost = Observation::Lost {
                    watch: kept.clone(),
                    why: "the watch ended unexpectedly".to_owned(),
                };
                let (seen, initial) = (vec![lost], true);
                // A failure means that the process ends.
                let _ = brain.send(Message::Watched { run, seen, initial }).await;
            };
            supervise("watch", make, reported).await;
        };
        self.running
            .insert(watch, (run, AbortOnDropHandle::new(tokio::spawn(task))));
    }

    /// Ends watches, which may be demanded again at once: they begin anew then. Cost: O(waiting kinds) if there are any.
    pub(super) fn end_those(&mut self, watches: BTreeSet<Watch>) {
        if watches.is_empty() {
            return;
        }
        for watch in watches {
            self.end(&watch);
        }
        // A scout answers for a kind again only if it was not wanted in between.
        self.look();
    }

    /// Ends a watch; returns true if it ran or waited.
    pub(super) fn end(&mut self, watch: &Watch) -> bool {
        let waiting = self.waiting.get_mut(&watch.server());
        if waiting.is_some_and(|each| each.watches.remove(watch).is_some()) {
            return true;
        }
        let Some((run, _)) = self.running.remove(watch) else {
            return false;
        };
        self.runs.remove(&run);
        true
    }
}

/// True if a watch begins only when its server is found to serve the kind.
fn waits(watch: &Watch) -> bool {
    match watch {
        Watch::Templates(gvk) | Watch::Copies(_, gvk) => !path::is_built_in(gvk),
        _ => false,
    }
}

fn observation(watch: Watch, gvk: &Gvk, report: &Report, api: &Api) -> Observation {
    let (other, failure) = match report {
        Report::Served(Served::In(version)) => (Some(version.clone()), Failure::served_in(gvk, version)),
        Report::Served(Served::Withheld) => (Some(gvk.version.clone()), api.withheld(gvk)),
        Report::Served(Served::Nowhere) => (None, Failure::not_served(gvk)),
        Report::Unknown => {
            let why = format!(
                "whether {} {} is served is not known: discovery of its group fails",
                gvk.api_version(),
                gvk.kind
            );
            return Observation::Lost { watch, why };
        }
    };
    let why = failure.text(gvk);
    Observation::Unserved { watch, other, why }
}

#[cfg(test)]
mod tests;
