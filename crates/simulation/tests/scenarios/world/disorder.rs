//! The rounds of a chaos test: users act, the process may end, and at last everything is quiet.

use super::{Random, World, setting};

/// The ways in which a process ends now and then.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// It does not.
    Never,
    /// It loses all memory and starts again.
    Crashes,
    /// As a crash; a process that stood by takes over.
    Takeovers,
}

/// The rounds of a chaos test.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) ends: Ends,
    /// In its last round a process that ends makes at most this many writes.
    pub(crate) last_writes: usize,
    /// The times of which one passes in a round, in milliseconds.
    pub(crate) patience: &'static [i64],
}

impl From<Ends> for Rounds {
    fn from(ends: Ends) -> Self {
        Self {
            ends,
            last_writes: 4,
            patience: &[0, 100, 1_000, 20_000],
        }
    }
}

impl World {
    /// Disorder begins, with so many outages of single watches.
    pub(crate) fn disturb(&mut self, random: Random, outages: usize) {
        self.chaos = Some(random);
        self.overlaps = true;
        self.outages = outages;
    }

    /// A round begins, in which the process may end.
    pub(crate) fn begin_round(&mut self, random: &mut Random, rounds: Rounds) {
        if rounds.ends == Ends::Takeovers {
            self.stand_by();
            if random.below(4) == 0 {
                self.change_places();
            }
        }
        if rounds.ends != Ends::Never && random.below(4) == 0 {
            self.crash_in = Some(1 + random.below(rounds.last_writes));
        }
    }

    /// Some of the time passes that all of it takes to settle; if the process ends there is another one.
    pub(crate) fn end_round(&mut self, random: &mut Random, rounds: Rounds) {
        let patience = rounds.patience[random.below(rounds.patience.len())];
        if !self.settle_for(patience) {
            match rounds.ends {
                Ends::Takeovers => self.take_over(),
                _ => self.restart(),
            }
        }
    }

    /// Every member is up, and no process ends any more.
    pub(crate) fn calm(&mut self) {
        self.crash_in = None;
        self.outages = 0;
        for member in self.members.keys().cloned().collect::<Vec<_>>() {
            self.set_down(&member, false);
        }
    }

    /// The writes of a restart while everything is quiet.
    pub(crate) fn writes_of_a_restart(&mut self, patience: i64) -> Vec<String> {
        let wrote = self.writes.len();
        self.restart();
        assert!(self.settle_for(patience));
        self.writes[wrote..].to_vec()
    }
}

/// The seeds of a chaos test: `CHAOS_SEED`, or as many from `CHAOS_FROM` on as `CHAOS_RUNS` says, and those that found something
/// once.
pub(crate) fn seeds(runs: u64, found: &[u64]) -> Vec<u64> {
    let number = |name: &str| setting(name).and_then(|text| text.parse().ok());
    if let Some(seed) = number("CHAOS_SEED") {
        return vec![seed];
    }
    let first = number("CHAOS_FROM").unwrap_or(1);
    let all = first..first + number("CHAOS_RUNS").unwrap_or(runs);
    all.chain(found.iter().copied()).collect()
}
