//! The proof that a process with a Lease does not run: nobody renews the Lease while it is watched.
//!
//! Clocks of machines are never compared: a Lease is read again and again, and the time between is that of one process.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde_json::Value;

use crate::object::Str;

/// The minimum time for which a Lease is watched: a candidate that finds it released takes it within a few seconds.
const LEAST: Duration = Duration::from_secs(5);

/// A Lease as read; the holder's own times are only ever compared for equality.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The holder; empty if it was released.
    pub holder: Str,
    /// The time after a renewal for which it is valid.
    duration: Duration,
    renewed: Str,
    transitions: i64,
}

impl LeaseRecord {
    /// Reads a Lease; absent fields are empty.
    #[must_use]
    pub fn of(lease: &Value) -> Self {
        let spec = &lease["spec"];
        let text = |field: &str| -> Str { spec[field].as_str().unwrap_or_default().into() };
        Self {
            holder: text("holderIdentity"),
            duration: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default()),
            renewed: text("renewTime"),
            transitions: spec["leaseTransitions"].as_i64().unwrap_or_default(),
        }
    }
}

/// The Lease was renewed: its holder runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The Lease.
    pub lease: Str,
    /// The holder.
    pub holder: Str,
}

impl fmt::Display for Renewed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs: it has just renewed the Lease {}",
            self.holder, self.lease
        )
    }
}

/// Leases that are watched, with the record and the time since which each was found like that.
#[derive(Clone, Debug, Default)]
pub struct LeaseWatch(BTreeMap<Str, (LeaseRecord, Duration)>);

impl LeaseWatch {
    /// Takes in a Lease as read at `now`, on a clock that never goes back. One that was released meanwhile is watched from then on.
    ///
    /// # Errors
    /// It was renewed since it was first read.
    pub fn observe(&mut self, lease: &str, record: LeaseRecord, now: Duration) -> Result<(), Renewed> {
        match self.0.get(lease) {
            Some((held, _)) if *held == record => Ok(()),
            Some(_) if !record.holder.is_empty() => Err(Renewed {
                lease: lease.into(),
                holder: record.holder,
            }),
            _ => {
                self.0.insert(lease.into(), (record, now));
                Ok(())
            }
        }
    }

    /// The time until the proof: each Lease was left alone for twice its duration. Zero: it is there.
    #[must_use]
    pub fn remaining(&self, now: Duration) -> Duration {
        let left = self.0.values().map(|(record, since)| {
            let needed = (record.duration * 2).max(LEAST);
            (*since + needed).saturating_sub(now)
        });
        left.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, renewed: &str, seconds: u64) -> LeaseRecord {
        LeaseRecord::of(&json!({"spec": {"holderIdentity": holder, "renewTime": renewed,
            "leaseDurationSeconds": seconds, "leaseTransitions": 1}}))
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_lease_that_nobody_renews_for_twice_its_duration_is_proof() {
        let mut watch = LeaseWatch::default();
        watch.observe("a", lease("x", "1", 15), seconds(10)).unwrap();
        watch.observe("b", lease("y", "1", 40), seconds(11)).unwrap();
        assert_eq!(watch.remaining(seconds(11)), seconds(80));
        for now in [20, 60, 90] {
            watch.observe("a", lease("x", "1", 15), seconds(now)).unwrap();
            watch.observe("b", lease("y", "1", 40), seconds(now)).unwrap();
        }
        assert_eq!(watch.remaining(seconds(90)), seconds(1));
        assert_eq!(watch.remaining(seconds(91)), Duration::ZERO);
        let renewed = watch.observe("b", lease("y", "2", 40), seconds(92)).unwrap_err();
        assert_eq!(renewed.to_string(), "y runs: it has just renewed the Lease b");
    }

    #[test]
    fn a_lease_that_is_released_is_watched_afresh_and_one_that_is_taken_is_no_proof() {
        let mut watch = LeaseWatch::default();
        watch.observe("a", lease("x", "1", 15), seconds(0)).unwrap();
        watch.observe("a", lease("", "2", 1), seconds(20)).unwrap();
        assert_eq!(watch.remaining(seconds(20)), LEAST);
        let taken = watch.observe("a", lease("z", "3", 15), seconds(21));
        assert_eq!(taken.map_err(|renewed| renewed.holder), Err("z".into()));
    }

    #[test]
    fn nothing_that_is_watched_needs_no_time() {
        assert_eq!(LeaseWatch::default().remaining(seconds(0)), Duration::ZERO);
    }
}
