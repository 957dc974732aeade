//! The plan of a run as one line: the faults that are injected, their rates, and the time of the crash.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail};

/// The faults of a run. Parsed from and printed as one line of `key=value` words; see [`FaultPlan::help`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The seed of every decision.
    pub seed: u64,
    /// The delay before a call is sent.
    pub latency: Option<Span>,
    /// The call is answered with an error and not sent.
    pub error_before: Rate,
    /// The call is sent and answered, and an error given in place of the answer.
    pub error_after: Rate,
    /// The errors of `error_before`; if empty, 429, 500 and 503.
    pub statuses: Vec<StatusOr>,
    /// The call is never answered: half of them never sent, half answered by the server in vain.
    pub hang: Rate,
    /// A watch ends before this frame. A client that resumes receives the frame.
    pub watch_cut: Rate,
    /// A watch answers 410 Expired in place of this frame, and ends.
    pub watch_gone: Rate,
    /// A watch stalls instead of sending this frame, and breaks. A client that resumes receives the frame.
    pub watch_stall: Rate,
    /// A frame is lost while the watch goes on. No server does that; it may cost convergence until the next list, and must
    /// not cost an object.
    pub watch_drop: Rate,
    /// A frame is sent twice.
    pub watch_repeat: Rate,
    /// After a frame, an older one of the same name is sent again.
    pub watch_stale: Rate,
    /// The delay before a frame is passed on.
    pub watch_delay: Option<Span>,
    /// The moment at which the process dies.
    pub crash: Option<Crash>,
    /// The scopes whose calls get faults and are counted for the crash; if empty, all.
    pub only: Vec<String>,
}

/// A probability in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u32);

/// From and up to, both included, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// At least.
    pub from: u64,
    /// At most.
    pub to: u64,
}

/// The errors that replace a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusOr {
    /// An HTTP status, 400 to 599, with a Kubernetes `Status` as body.
    Status(u16),
    /// The connection breaks.
    Reset,
}

/// The end of the process: all clients of the run die at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// Before or after the effect of the call.
    pub moment: Moment,
    /// The ordinal of the call, from 1, in the order of sending over all scopes that `only` names.
    pub call: u64,
    /// The calls that are counted.
    pub counts: Counts,
}

/// The moment of a crash, relative to its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The call is not sent.
    Before,
    /// The call took effect, and its response is lost.
    After,
}

/// The calls that are counted for a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Every call.
    All,
    /// Calls that change what a server stores.
    Writes,
}

/// One key of the line.
struct Key {
    name: &'static str,
    about: &'static str,
    read: fn(&mut FaultPlan, &str) -> Result<()>,
    /// Absent when the plan has nothing to say.
    show: fn(&FaultPlan) -> Option<String>,
}

/// Every key, in the order in which a plan is printed.
const KEYS: &[Key] = &[
    Key {
        name: "seed",
        about: "42: a number that every decision follows from",
        read: |plan, text| put(&mut plan.seed, text.parse()),
        show: |plan| Some(plan.seed.to_string()),
    },
    Key {
        name: "latency",
        about: "0..20ms: waited before a call is sent",
        read: |plan, text| put(&mut plan.latency, text.parse().map(Some)),
        show: |plan| plan.latency.map(|s| s.to_string()),
    },
    Key {
        name: "error-before",
        about: "2%: an error, and the call is not sent",
        read: |plan, text| put(&mut plan.error_before, text.parse()),
        show: |plan| plan.error_before.show(),
    },
    Key {
        name: "error-after",
        about: "2%: an error, although the call took effect",
        read: |plan, text| put(&mut plan.error_after, text.parse()),
        show: |plan| plan.error_after.show(),
    },
    Key {
        name: "status",
        about: "409,429,500,503,reset: what error-before answers with (409 to writes, 410 to lists and watches only)",
        read: |plan, text| put(&mut plan.statuses, list(text, StatusOr::from_str)),
        show: |plan| show_list(&plan.statuses),
    },
    Key {
        name: "hang",
        about: "0.5%: no answer, ever",
        read: |plan, text| put(&mut plan.hang, text.parse()),
        show: |plan| plan.hang.show(),
    },
    Key {
        name: "watch-cut",
        about: "5%: a watch ends before this frame",
        read: |plan, text| put(&mut plan.watch_cut, text.parse()),
        show: |plan| plan.watch_cut.show(),
    },
    Key {
        name: "watch-gone",
        about: "1%: a watch answers 410 in place of this frame",
        read: |plan, text| put(&mut plan.watch_gone, text.parse()),
        show: |plan| plan.watch_gone.show(),
    },
    Key {
        name: "watch-stall",
        about: "1%: a watch says nothing for two seconds in place of this frame, and breaks",
        read: |plan, text| put(&mut plan.watch_stall, text.parse()),
        show: |plan| plan.watch_stall.show(),
    },
    Key {
        name: "watch-drop",
        about: "1%: a frame is lost and the watch goes on (for safety only, not for convergence)",
        read: |plan, text| put(&mut plan.watch_drop, text.parse()),
        show: |plan| plan.watch_drop.show(),
    },
    Key {
        name: "watch-repeat",
        about: "5%: a frame comes twice",
        read: |plan, text| put(&mut plan.watch_repeat, text.parse()),
        show: |plan| plan.watch_repeat.show(),
    },
    Key {
        name: "watch-stale",
        about: "5%: an older frame of the same object comes after this one",
        read: |plan, text| put(&mut plan.watch_stale, text.parse()),
        show: |plan| plan.watch_stale.show(),
    },
    Key {
        name: "watch-delay",
        about: "0..50ms: waited before a frame",
        read: |plan, text| put(&mut plan.watch_delay, text.parse().map(Some)),
        show: |plan| plan.watch_delay.map(|s| s.to_string()),
    },
    Key {
        name: "crash-before",
        about: "17 or 17:writes: the process dies instead of sending the 17th call",
        read: |plan, text| plan.set_crash(Moment::Before, text),
        show: |plan| {
            plan.crash
                .filter(|c| c.moment == Moment::Before)
                .map(|c| c.to_string())
        },
    },
    Key {
        name: "crash-after",
        about: "17 or 17:writes: the process dies when the 17th call took effect, its answer lost",
        read: |plan, text| plan.set_crash(Moment::After, text),
        show: |plan| {
            plan.crash
                .filter(|c| c.moment == Moment::After)
                .map(|c| c.to_string())
        },
    },
    Key {
        name: "only",
        about: "hub,member1: the scopes that this plan strikes",
        read: |plan, text| put(&mut plan.only, list(text, scope)),
        show: |plan| show_list(&plan.only),
    },
];

impl FaultPlan {
    /// One line a key: its name, an example and what it does.
    #[must_use]
    pub fn help() -> String {
        KEYS.iter()
            .map(|key| format!("{}={}\n", key.name, key.about))
            .collect()
    }

    /// True if calls to `scope` get faults.
    #[must_use]
    pub fn strikes(&self, scope: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == scope)
    }

    fn set_crash(&mut self, moment: Moment, text: &str) -> Result<()> {
        if self.crash.is_some() {
            bail!("a process dies once: crash-before or crash-after");
        }
        let (call, counts) = match text.split_once(':') {
            None => (text, Counts::All),
            Some((call, "writes")) => (call, Counts::Writes),
            Some((_, other)) => bail!("only `writes` can be counted apart, not {other:?}"),
        };
        let call = call.parse()?;
        if call == 0 {
            bail!("calls are counted from 1");
        }
        self.crash = Some(Crash { moment, call, counts });
        Ok(())
    }
}

impl FromStr for FaultPlan {
    type Err = Error;

    /// Errors name the word that is wrong.
    fn from_str(line: &str) -> Result<Self> {
        let mut plan = Self::default();
        let mut seen = Vec::new();
        for word in line.split_whitespace() {
            let (name, text) = word
                .split_once('=')
                .with_context(|| format!("{word:?} is not key=value"))?;
            let key = KEYS.iter().find(|key| key.name == name);
            let key = key.with_context(|| format!("no key {name:?}; there are:\n{}", Self::help()))?;
            if seen.contains(&name) {
                bail!("{name} stands twice");
            }
            seen.push(name);
            (key.read)(&mut plan, text).with_context(|| format!("{word:?}"))?;
        }
        Ok(plan)
    }
}

impl fmt::Display for FaultPlan {
    /// The line that parses to the same plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = KEYS
            .iter()
            .filter_map(|key| (key.show)(self).map(|text| format!("{}={text}", key.name)));
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

impl Rate {
    /// One in one.
    pub(super) const WHOLE: u32 = 1_000_000;

    /// In millionths.
    pub(super) fn millionths(self) -> u32 {
        self.0
    }

    fn show(self) -> Option<String> {
        (self.0 > 0).then(|| self.to_string())
    }
}

impl FromStr for Rate {
    type Err = Error;

    /// `2%`, `0.5%`: at most four decimals.
    fn from_str(text: &str) -> Result<Self> {
        let number = text.strip_suffix('%').context("a rate ends in %")?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        if decimals.len() > 4 || !decimals.bytes().all(|b| b.is_ascii_digit()) || number.ends_with('.') {
            bail!("a rate is a percentage with at most four decimals");
        }
        let whole: u32 = whole.parse()?;
        let decimals: u32 = format!("{decimals:0<4}").parse()?;
        match whole
            .checked_mul(10_000)
            .and_then(|whole| whole.checked_add(decimals))
        {
            Some(millionths) if millionths <= Self::WHOLE => Ok(Self(millionths)),
            _ => bail!("a rate is at most 100%"),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:04}", self.0 / 10_000, self.0 % 10_000);
        write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let spoken = text.strip_suffix("ms").and_then(|text| text.split_once(".."));
        let (from, to) = spoken.context("a span is written 0..20ms")?;
        let span = Self {
            from: from.parse()?,
            to: to.parse()?,
        };
        if span.from > span.to {
            bail!("a span grows");
        }
        Ok(span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}ms", self.from, self.to)
    }
}

impl FromStr for StatusOr {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            _ if text == "reset" => Ok(Self::Reset),
            Ok(code @ 400..=599) => Ok(Self::Status(code)),
            _ => bail!("{text:?} is neither a status from 400 to 599 nor `reset`"),
        }
    }
}

impl fmt::Display for StatusOr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "{code}"),
            Self::Reset => f.write_str("reset"),
        }
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.counts {
            Counts::All => write!(f, "{}", self.call),
            Counts::Writes => write!(f, "{}:writes", self.call),
        }
    }
}

fn put<T, E: Into<Error>>(slot: &mut T, value: Result<T, E>) -> Result<()> {
    *slot = value.map_err(Into::into)?;
    Ok(())
}

fn scope(text: &str) -> Result<String> {
    match text {
        "" => bail!("a scope has a name"),
        name => Ok(name.to_owned()),
    }
}

fn list<T>(text: &str, one: fn(&str) -> Result<T>) -> Result<Vec<T>> {
    text.split(',').map(one).collect()
}

fn show_list<T: ToString>(items: &[T]) -> Option<String> {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    (!items.is_empty()).then(|| items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_prints_as_it_was_written() {
        for line in [
            "seed=0",
            "seed=42 latency=0..20ms error-before=2% error-after=2% status=409,429,500,503 hang=0.5% watch-cut=5% \
             watch-repeat=5% watch-stale=5% crash-after=17 only=member1",
            "seed=18446744073709551615 status=reset,599 watch-gone=0.0001% watch-drop=100% watch-delay=3..3ms \
             crash-before=1:writes only=hub,member1",
        ] {
            let plan: FaultPlan = line.parse().unwrap();
            assert_eq!(plan.to_string(), line);
            assert_eq!(plan.to_string().parse::<FaultPlan>().unwrap(), plan);
        }
    }

    #[test]
    fn words_may_stand_in_any_order() {
        let plan: FaultPlan = "only=hub  hang=1%   seed=7".parse().unwrap();
        assert_eq!(plan.to_string(), "seed=7 hang=1% only=hub");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, part) in [
            ("seed", "key=value"),
            ("sed=1", "no key \"sed\""),
            ("seed=x", "seed=x"),
            ("seed=1 seed=2", "twice"),
            ("hang=2", "ends in %"),
            ("hang=100.1%", "at most 100%"),
            ("hang=0.00001%", "four decimals"),
            ("hang=1.%", "four decimals"),
            ("latency=20ms", "0..20ms"),
            ("latency=9..2ms", "grows"),
            ("status=200", "neither"),
            ("crash-after=0", "from 1"),
            ("crash-after=3:reads", "writes"),
            ("crash-after=3 crash-before=3", "once"),
            ("only=", "name"),
        ] {
            let error = format!("{:#}", line.parse::<FaultPlan>().unwrap_err());
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn every_key_is_named_once_and_has_an_example_that_parses() {
        for (n, key) in KEYS.iter().enumerate() {
            assert!(
                KEYS[..n].iter().all(|other| other.name != key.name),
                "{}",
                key.name
            );
            let (examples, _) = key.about.split_once(": ").unwrap();
            for example in examples.split(" or ") {
                let line = format!("{}={example}", key.name);
                let plan: FaultPlan = line.parse().unwrap();
                assert!(plan.to_string().contains(&line), "{plan}");
            }
        }
    }

    #[test]
    fn a_plan_strikes_all_scopes_unless_it_names_some() {
        let plan: FaultPlan = "seed=1 only=member1,member2".parse().unwrap();
        assert!(plan.strikes("member2") && !plan.strikes("hub"));
        assert!(FaultPlan::default().strikes("hub"));
    }
}
