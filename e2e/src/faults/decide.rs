//! The fault of a call and of a frame: pure functions of the plan, the call's key and its ordinal.

use std::time::Duration;

use super::call::{Call, Verb};
use super::plan::{FaultPlan, Rate, Span, StatusOr};

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallDecision {
    pub(super) latency: Duration,
    pub(super) fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    ErrorBefore(StatusOr),
    ErrorAfter(StatusOr),
    HangBefore,
    HangAfter,
}

/// The fault of a frame of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameDecision {
    pub(super) delay: Duration,
    pub(super) fate: FrameFate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameFate {
    Cut,
    Gone,
    Stall,
    Drop,
    /// Handed on; `stale` is drawn for the choice among the older frames.
    Deliver {
        twice: bool,
        stale: Option<u64>,
    },
}

/// Responses of `error-before` if the plan names none. All are consistent with the stored state.
const STATUSES: &[StatusOr] = &[
    StatusOr::Status(429),
    StatusOr::Status(500),
    StatusOr::Status(503),
];

/// Responses of `error-after`: the outcome of the call is unknown to the client.
const UNKNOWN_OUTCOME: &[StatusOr] = &[StatusOr::Status(500), StatusOr::Status(504), StatusOr::Reset];

/// The fault of the `ordinal`-th call (from 0) with the key of `call`.
pub(super) fn call(plan: &FaultPlan, call: &Call, ordinal: u64) -> CallDecision {
    if !plan.strikes(&call.scope) {
        return CallDecision {
            latency: Duration::ZERO,
            fate: Fate::Pass,
        };
    }
    let dice = Dice {
        seed: plan.seed,
        key: &call.key,
        ordinal,
    };
    let fate = if dice.strikes("hang", plan.hang) {
        match dice.roll("hang-moment") % 2 {
            0 => Fate::HangBefore,
            _ => Fate::HangAfter,
        }
    } else if let Some(status) = before(plan, call, &dice) {
        Fate::ErrorBefore(status)
    } else if dice.strikes("error-after", plan.error_after) {
        Fate::ErrorAfter(dice.choose("unknown-outcome", UNKNOWN_OUTCOME))
    } else {
        Fate::Pass
    };
    CallDecision {
        latency: dice.span("latency", plan.latency),
        fate,
    }
}

/// The decision on the `ordinal`-th frame (from 0) of the object that `key` names, scope and watch included.
pub(super) fn frame(plan: &FaultPlan, key: &str, ordinal: u64) -> FrameDecision {
    let dice = Dice {
        seed: plan.seed,
        key,
        ordinal,
    };
    let fate = if dice.strikes("watch-cut", plan.watch_cut) {
        FrameFate::Cut
    } else if dice.strikes("watch-gone", plan.watch_gone) {
        FrameFate::Gone
    } else if dice.strikes("watch-stall", plan.watch_stall) {
        FrameFate::Stall
    } else if dice.strikes("watch-drop", plan.watch_drop) {
        FrameFate::Drop
    } else {
        FrameFate::Deliver {
            twice: dice.strikes("watch-repeat", plan.watch_repeat),
            stale: dice
                .strikes("watch-stale", plan.watch_stale)
                .then(|| dice.roll("watch-stale-which")),
        }
    };
    FrameDecision {
        delay: dice.span("watch-delay", plan.watch_delay),
        fate,
    }
}

/// The error that a call gets in place of an answer, if any. A call that none of the plan's statuses fits is passed on.
fn before(plan: &FaultPlan, call: &Call, dice: &Dice<'_>) -> Option<StatusOr> {
    let fitting = fitting(plan, call);
    let strikes = dice.strikes("error-before", plan.error_before) && !fitting.is_empty();
    strikes.then(|| dice.choose("status", &fitting))
}

/// The plan's statuses without what no server gives: a 409 to a read, a 410 to anything but a list or a watch.
fn fitting(plan: &FaultPlan, call: &Call) -> Vec<StatusOr> {
    let statuses = if plan.statuses.is_empty() {
        STATUSES
    } else {
        &plan.statuses
    };
    statuses
        .iter()
        .copied()
        .filter(|status| match status {
            StatusOr::Status(409) => call.is_write(),
            StatusOr::Status(410) => matches!(call.verb, Verb::List | Verb::Watch),
            _ => true,
        })
        .collect()
}

/// A die for each question: the answer to one does not depend on whether another was asked, so taking a word out of a plan
/// leaves the rest of the run as it was.
struct Dice<'a> {
    seed: u64,
    key: &'a str,
    ordinal: u64,
}

impl Dice<'_> {
    fn roll(&self, question: &str) -> u64 {
        // FNV-1a over what is asked, each part ended by a byte that is in no UTF-8 text, then one splitmix64 step for
        // every number mixed in: neighbours come out far apart.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for byte in self.key.bytes().chain([0xff]).chain(question.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        splitmix64(splitmix64(splitmix64(hash) ^ self.seed) ^ self.ordinal)
    }

    fn strikes(&self, question: &str, rate: Rate) -> bool {
        self.roll(question) % u64::from(Rate::WHOLE) < u64::from(rate.millionths())
    }

    fn span(&self, question: &str, span: Option<Span>) -> Duration {
        let millis = span.map_or(0, |s| {
            s.from + self.roll(question) % (s.to - s.from).saturating_add(1)
        });
        Duration::from_millis(millis)
    }

    /// `from` is not empty.
    fn choose(&self, question: &str, from: &[StatusOr]) -> StatusOr {
        from[(self.roll(question) % from.len() as u64) as usize]
    }
}

fn splitmix64(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn plan(line: &str) -> FaultPlan {
        line.parse().unwrap()
    }

    fn request(method: &str, uri: &str) -> Call {
        Call::read(
            "hub",
            &Request::builder().method(method).uri(uri).body(()).unwrap(),
        )
    }

    fn fates(line: &str, of: &Call, count: u64) -> Vec<Fate> {
        (0..count).map(|n| call(&plan(line), of, n).fate).collect()
    }

    #[test]
    fn the_same_line_decides_the_same_and_another_seed_does_not() {
        let get = request("GET", "/api/v1/namespaces/ns/configmaps/a");
        let line = "seed=42 error-before=30% error-after=30% hang=10%";
        assert_eq!(fates(line, &get, 100), fates(line, &get, 100));
        assert_ne!(
            fates(line, &get, 100),
            fates(&line.replace("42", "43"), &get, 100)
        );
    }

    #[test]
    fn requests_are_decided_independently_of_each_other() {
        let line = "seed=42 error-before=50%";
        let a = fates(line, &request("GET", "/api/v1/namespaces/ns/configmaps/a"), 100);
        let b = fates(line, &request("GET", "/api/v1/namespaces/ns/configmaps/b"), 100);
        assert_ne!(a, b);
    }

    #[test]
    fn a_word_taken_out_leaves_the_other_decisions_alone() {
        let put = request("PUT", "/api/v1/namespaces/ns/configmaps/a");
        let with = fates("seed=42 error-before=20% error-after=20%", &put, 200);
        let without = fates("seed=42 error-after=20%", &put, 200);
        for (with, without) in with.iter().zip(without) {
            assert!(matches!(with, Fate::ErrorBefore(_)) || *with == without);
        }
    }

    #[test]
    fn rates_are_met_roughly_and_exactly_at_the_ends() {
        let put = request("PUT", "/api/v1/namespaces/ns/configmaps/a");
        let struck = |line: &str| {
            fates(line, &put, 10_000)
                .into_iter()
                .filter(|f| *f != Fate::Pass)
                .count()
        };
        assert_eq!(struck("seed=1"), 0);
        assert_eq!(struck("seed=1 error-after=100%"), 10_000);
        let five = struck("seed=1 error-before=5%");
        assert!((400..600).contains(&five), "{five}");
    }

    #[test]
    fn a_read_is_never_answered_with_a_conflict() {
        let get = request("GET", "/api/v1/namespaces/ns/configmaps/a");
        let put = request("PUT", "/api/v1/namespaces/ns/configmaps/a");
        let conflict = Fate::ErrorBefore(StatusOr::Status(409));
        for line in [
            "seed=1 error-before=100% status=409",
            "seed=1 error-before=100% status=409,500",
        ] {
            assert!(!fates(line, &get, 50).contains(&conflict));
            assert!(fates(line, &put, 50).contains(&conflict));
        }
        let passed = fates("seed=1 error-before=100% status=409", &get, 50);
        assert_eq!(passed, [Fate::Pass; 50]);
    }

    #[test]
    fn only_what_a_list_or_a_watch_asks_for_is_not_kept_any_more() {
        let gone = Fate::ErrorBefore(StatusOr::Status(410));
        let line = "seed=1 error-before=100% status=410,500";
        for (method, uri, is_reported) in [
            ("GET", "/api/v1/configmaps?limit=500", true),
            ("GET", "/api/v1/configmaps?watch=true", true),
            ("GET", "/api/v1/namespaces/ns/configmaps/a", false),
            ("PUT", "/api/v1/namespaces/ns/configmaps/a", false),
        ] {
            let reported = fates(line, &request(method, uri), 50).contains(&gone);
            assert_eq!(reported, is_reported, "{method} {uri}");
        }
    }

    #[test]
    fn hangs_come_before_and_after_the_effect() {
        let put = request("PUT", "/api/v1/namespaces/ns/configmaps/a");
        let fates = fates("seed=1 hang=100%", &put, 50);
        assert!(fates.contains(&Fate::HangBefore) && fates.contains(&Fate::HangAfter));
    }

    #[test]
    fn latency_stays_in_its_span_and_moves() {
        let get = request("GET", "/version");
        let plan = plan("seed=1 latency=3..9ms");
        let latencies: Vec<u128> = (0..200)
            .map(|n| call(&plan, &get, n).latency.as_millis())
            .collect();
        assert_eq!(
            (latencies.iter().min(), latencies.iter().max()),
            (Some(&3), Some(&9))
        );
    }

    #[test]
    fn a_scope_that_the_plan_does_not_name_is_left_alone() {
        let get = request("GET", "/version");
        let plan = plan("seed=1 latency=5..5ms error-before=100% only=member1");
        assert_eq!(
            call(&plan, &get, 0),
            CallDecision {
                latency: Duration::ZERO,
                fate: Fate::Pass
            }
        );
    }
}
