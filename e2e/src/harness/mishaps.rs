//! The sequence of failures in a run, derived from a seed. Pure.
//!
//! | what | embedded clusters | real API servers |
//! |---|---|---|
//! | a member or the hub is killed | connections break and are refused | its kube-apiserver gets `SIGKILL` |
//! | one of them is frozen | bytes stay where they are | its kube-apiserver gets `SIGSTOP` |
//! | a member flaps | it is killed and started, three times | it is frozen, three times: one takes seconds to start |
//! | a member is drained | its Cluster has a NoExecute taint | the same |
//! | the leader is killed, stopped, partitioned | as a process | the same |
//!
//! So there is nothing that one lane cannot do, and a seed means the same on both, flapping aside.

use std::fmt;

use super::{bed::MEMBERS, pair::ENDS, pair::End};

/// The way in which an API server fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Connections break, and new ones are refused.
    Killed,
    /// It does not respond.
    Frozen,
    /// It answers, and a person has everything leave it.
    Drained,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "killed",
            Self::Frozen => "frozen",
            Self::Drained => "drained",
        })
    }
}

/// The component that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// A member.
    Member(&'static str, Way),
    /// The hub.
    Hub(Way),
    /// The leading process.
    Leader(End),
}

/// One step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It fails.
    Strike(Mishap),
    /// It is as before.
    Undo(Mishap),
    /// So many milliseconds pass.
    Pause(u64),
    /// The member is found to be down.
    Noticed(&'static str),
    /// Every workload has left the member.
    Left(&'static str),
    /// A user changes the data of every workload.
    Edit,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Strike(Mishap::Member(name, way)) => write!(f, "{name} is {way}"),
            Self::Strike(Mishap::Hub(way)) => write!(f, "the hub is {way}"),
            Self::Strike(Mishap::Leader(end)) => write!(f, "the leader is {end}"),
            Self::Undo(Mishap::Member(name, _)) => write!(f, "{name} is back"),
            Self::Undo(Mishap::Hub(_)) => f.write_str("the hub is back"),
            Self::Undo(Mishap::Leader(_)) => f.write_str("the former leader is back"),
            Self::Pause(millis) => write!(f, "{millis} ms"),
            Self::Noticed(name) => write!(f, "{name} is found down"),
            Self::Left(name) => write!(f, "{name} is left"),
            Self::Edit => f.write_str("an edit"),
        }
    }
}

/// A generator of our own (splitmix64): what a seed means must stay the same when libraries change.
pub struct Draw(u64);

impl Draw {
    /// From this seed on.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`, which is more than 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap_or_default()]
    }

    /// True if it is one of so many times.
    const fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// The possible failures, with their weights.
const TABLE: [(Kind, u64); 8] = [
    (Kind::Drained, 4),
    (Kind::KilledUntilLeft, 4),
    (Kind::Killed, 2),
    (Kind::Frozen, 3),
    (Kind::FrozenUntilNoticed, 1),
    (Kind::Flapping, 2),
    (Kind::Hub, 3),
    (Kind::Leader, 5),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A member is drained until nothing is placed there any more.
    Drained,
    /// A member is killed and comes back when nothing is placed there any more.
    KilledUntilLeft,
    /// A member is killed, and comes back soon.
    Killed,
    /// A member hangs, and goes on soon.
    Frozen,
    /// A member hangs until that is found.
    FrozenUntilNoticed,
    /// A member fails, three times, each time for a moment.
    Flapping,
    /// The hub fails for a moment.
    Hub,
    /// The leading process fails.
    Leader,
}

/// The steps of a seed: three or four mishaps, some of them at the same time. Everything is undone at the end. `flaps` is how
/// a member flaps.
#[must_use]
pub fn steps(seed: u64, flaps: Way) -> Vec<Step> {
    let mut draw = Draw::new(seed);
    let mut run = Run {
        steps: Vec::new(),
        down: Vec::new(),
        waited: false,
    };
    let count = 3 + draw.below(2);
    for _ in 0..count {
        // Another one may still last.
        while run.down.len() > 1 || (run.down.len() == 1 && draw.is_one_in(2)) {
            run.undo_first();
        }
        run.strike(&mut draw, flaps);
        if draw.is_one_in(2) {
            run.edit();
        }
        let pause = 100 + draw.below(900);
        run.steps.push(Step::Pause(pause));
    }
    while !run.down.is_empty() {
        run.undo_first();
    }
    run.steps
}

struct Run {
    steps: Vec<Step>,
    /// The failures that are not repaired yet, in order.
    down: Vec<Mishap>,
    /// True if a member was waited for: once takes long enough.
    waited: bool,
}

impl Run {
    fn undo_first(&mut self) {
        let mishap = self.down.remove(0);
        self.steps.push(Step::Undo(mishap));
    }

    fn has(&self, is: impl Fn(&Mishap) -> bool) -> bool {
        self.down.iter().any(is)
    }

    fn is_hub_down(&self) -> bool {
        self.has(|each| matches!(each, Mishap::Hub(_)))
    }

    fn fail(&mut self, mishap: Mishap) {
        self.steps.push(Step::Strike(mishap));
        self.down.push(mishap);
    }

    fn undo(&mut self, mishap: Mishap) {
        self.down.retain(|each| *each != mishap);
        self.steps.push(Step::Undo(mishap));
    }

    /// A user reaches the hub only while it answers.
    fn edit(&mut self) {
        if !self.is_hub_down() {
            self.steps.push(Step::Edit);
        }
    }

    /// True if this failure is possible now.
    fn may(&self, kind: Kind) -> bool {
        match kind {
            // Waiting for what the control plane does: once in a run, and not while it cannot act.
            Kind::KilledUntilLeft | Kind::FrozenUntilNoticed => !self.waited && self.down.is_empty(),
            Kind::Killed | Kind::Frozen | Kind::Flapping => {
                !self.has(|each| matches!(each, Mishap::Member(..)))
            }
            Kind::Drained => self.down.is_empty(),
            // Who leads is asked before it is ended.
            Kind::Hub | Kind::Leader => !self.has(|each| matches!(each, Mishap::Hub(_) | Mishap::Leader(_))),
        }
    }

    fn strike(&mut self, draw: &mut Draw, flaps: Way) {
        let kinds: Vec<Kind> = (TABLE.iter())
            .filter(|(kind, _)| self.may(*kind))
            .flat_map(|(kind, times)| (0..*times).map(|_| *kind))
            .collect();
        let (kind, member) = (draw.one(&kinds), draw.one(&MEMBERS));
        match kind {
            Kind::KilledUntilLeft => {
                self.waited = true;
                self.fail(Mishap::Member(member, Way::Killed));
                if draw.is_one_in(2) {
                    // The process that finds it is not the one that ends it.
                    let end = Mishap::Leader(draw.one(&ENDS));
                    self.steps.push(Step::Noticed(member));
                    self.fail(end);
                    self.steps.push(Step::Left(member));
                    self.undo(end);
                } else {
                    self.steps.push(Step::Left(member));
                }
            }
            Kind::Drained => {
                let drained = Mishap::Member(member, Way::Drained);
                self.fail(drained);
                self.steps.push(Step::Pause(draw.below(200)));
                if draw.is_one_in(2) {
                    self.steps.push(Step::Left(member));
                } else {
                    // In the middle of it.
                    let end = Mishap::Leader(draw.one(&ENDS));
                    self.fail(end);
                    self.steps.push(Step::Left(member));
                    self.undo(end);
                }
                self.undo(drained);
            }
            Kind::FrozenUntilNoticed => {
                self.waited = true;
                self.fail(Mishap::Member(member, Way::Frozen));
                self.steps.push(Step::Noticed(member));
            }
            Kind::Killed => self.fail(Mishap::Member(member, Way::Killed)),
            Kind::Frozen => self.fail(Mishap::Member(member, Way::Frozen)),
            Kind::Flapping => {
                for _ in 0..3 {
                    self.fail(Mishap::Member(member, flaps));
                    self.steps.push(Step::Pause(50 + draw.below(400)));
                    self.undo(Mishap::Member(member, flaps));
                    self.steps.push(Step::Pause(50 + draw.below(400)));
                }
            }
            Kind::Hub => {
                self.fail(Mishap::Hub(draw.one(&[Way::Killed, Way::Frozen])));
                // At times longer than a lease.
                let pause = 200 + draw.below(3_500);
                self.steps.push(Step::Pause(pause));
            }
            Kind::Leader => {
                self.fail(Mishap::Leader(draw.one(&ENDS)));
                let pause = draw.below(3_500);
                self.steps.push(Step::Pause(pause));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_always_means_the_same() {
        let reported: Vec<String> = steps(1, Way::Killed).iter().map(ToString::to_string).collect();
        assert_eq!(
            reported.join("; "),
            "member1 is killed; member1 is left; 348 ms; the leader is stopped; 1737 ms; an edit; 984 ms; member1 is back; \
             the former leader is back; the leader is killed; 1741 ms; an edit; 892 ms; the former leader is back; member1 \
             is drained; 76 ms; the leader is stopped; member1 is left; the former leader is back; member1 is back; 111 ms"
        );
    }

    #[test]
    fn what_fails_comes_back_and_who_is_waited_for_is_down() {
        for seed in 0..500 {
            let mut down: Vec<Mishap> = Vec::new();
            let is_member_down = |down: &[Mishap], name| {
                down.iter()
                    .any(|each| matches!(each, Mishap::Member(it, _) if *it == name))
            };
            for step in steps(seed, Way::Killed) {
                match step {
                    Step::Strike(mishap) => down.push(mishap),
                    Step::Undo(mishap) => {
                        let at = down.iter().position(|each| *each == mishap);
                        down.remove(at.unwrap_or_else(|| panic!("{seed}: {mishap:?} is not down")));
                    }
                    Step::Noticed(name) | Step::Left(name) => assert!(is_member_down(&down, name), "{seed}"),
                    Step::Edit => assert!(!down.iter().any(|each| matches!(each, Mishap::Hub(_))), "{seed}"),
                    Step::Pause(_) => {}
                }
                // Somewhere to move to, and a process that can act.
                let members = down.iter().filter(|each| matches!(each, Mishap::Member(..)));
                assert!(members.count() <= 1 && down.len() <= 2, "{seed}: {down:?}");
            }
            assert_eq!(down, [], "{seed}");
        }
    }

    #[test]
    fn everything_strikes_in_some_seed() {
        let struck: BTreeSet<String> = (0..40)
            .flat_map(|seed| steps(seed, Way::Frozen))
            .filter(|step| matches!(step, Step::Strike(_)))
            .map(|step| step.to_string())
            .collect();
        assert_eq!(struck.len(), MEMBERS.len() * 3 + 2 + ENDS.len(), "{struck:?}");
    }
}
