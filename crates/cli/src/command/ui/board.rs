//! The state of the page on the server: its rows, each with the revision of its last change, so that every open page is sent the changes
//! since the revision that it has, however slow it is.
//!
//! Pure. A row that is observed again and is the same changes nothing.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
};

use entourage_core::object::Str;
use serde::Serialize;

use super::{
    journal::{Change, Journal},
    model::{Class, Distribution, Member, Policy, Workload},
};

/// The number of removed rows that are remembered. A page that is further behind is sent all rows.
const REMOVED: usize = 10_000;

/// The rows of one message at the most: a page shows the first ones while the next are under way.
pub(super) const CHUNK: usize = 2_000;

/// A row of the page.
#[derive(Debug)]
pub(super) enum Row {
    Member(Member),
    Workload(Workload),
    Distribution(Distribution),
    Policy(Policy),
}

/// A row as it is kept: of a workload its JSON, and what counts for its members.
#[derive(Debug, PartialEq)]
enum Kept {
    Member(Box<Member>),
    Json(Box<str>, Box<[(Str, Class)]>),
}

#[derive(Debug)]
struct Slot {
    /// The watch that it is from.
    source: &'static str,
    revision: u64,
    /// `None`: removed.
    row: Option<Kept>,
}

/// The copies on a member, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tally {
    /// All that are there or are to be there.
    copies: u32,
    applied: u32,
    failing: u32,
    unhealthy: u32,
    pending: u32,
    suspended: u32,
    leaving: u32,
    evicting: u32,
}

/// The state of a watch, as the page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct SourceState {
    /// True once everything was listed.
    synced: bool,
    /// The cause if it cannot be read at present.
    error: Option<String>,
}

/// All rows.
#[derive(Debug, Default)]
pub(super) struct Board {
    revision: u64,
    slots: HashMap<String, Slot>,
    /// The keys by the revision of their last change.
    by_revision: BTreeMap<u64, String>,
    /// Removed rows, and the revision from which on they are known.
    removed: usize,
    known_from: u64,
    tallies: HashMap<Str, Tally>,
    journal: Journal,
    sources: BTreeMap<&'static str, SourceState>,
    sources_revision: u64,
}

/// The changes since a revision, as JSON, and the revision that the page then has.
#[derive(Debug)]
pub(super) struct Delta {
    pub(super) json: String,
    pub(super) revision: u64,
    /// True if nothing changed.
    pub(super) is_empty: bool,
    /// True if this is all.
    pub(super) is_complete: bool,
}

impl Board {
    /// The revision of the last change.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Takes in a row as it now is.
    pub(super) fn observe(&mut self, source: &'static str, key: &str, row: Row) {
        let kept = kept(row);
        let before = self.slots.get(key).and_then(|slot| slot.row.as_ref());
        if before == Some(&kept) {
            return;
        }
        self.replace(source, key, Some(kept));
    }

    /// Removes a row.
    pub(super) fn remove(&mut self, key: &str) {
        let held = self.slots.get(key).filter(|slot| slot.row.is_some());
        let Some(source) = held.map(|slot| slot.source) else {
            return;
        };
        self.replace(source, key, None);
        self.forget_removed();
    }

    /// Removes the rows of a watch that its list did not have.
    pub(super) fn retain(&mut self, source: &'static str, listed: &HashSet<String>) {
        let gone = |(key, slot): (&String, &Slot)| {
            (slot.source == source && slot.row.is_some() && !listed.contains(key)).then(|| key.clone())
        };
        let gone: Vec<String> = self.slots.iter().filter_map(gone).collect();
        for key in gone {
            self.remove(&key);
        }
    }

    /// Adds changes to the time line.
    pub(super) fn note(&mut self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            if self.journal.add(change, self.revision + 1) {
                self.revision += 1;
            }
        }
    }

    /// Records that a watch is synced, or the error of reading it.
    pub(super) fn set_source(&mut self, source: &'static str, error: Option<String>) {
        let state = self.sources.entry(source).or_default();
        let synced = state.synced || error.is_none();
        let now = SourceState { synced, error };
        if *state != now {
            *state = now;
            self.revision += 1;
            self.sources_revision = self.revision;
        }
    }

    /// Names a watch whose list is still to come.
    pub(super) fn expect_source(&mut self, source: &'static str) {
        self.sources.entry(source).or_default();
    }

    /// The changes after a revision: the first [`CHUNK`] of them, or as many as reach what is known of removed rows. Cost: O(changes + kept changes of the time line).
    pub(super) fn delta(&self, since: u64) -> Delta {
        let reset = since < self.known_from && since > 0;
        let since = if reset { 0 } else { since };
        // A part that ended before the first known revision would make the page begin anew with the next one, for ever.
        let unknown = match since < self.known_from {
            true => self.by_revision.range(since + 1..=self.known_from).count() + 1,
            false => 0,
        };
        let limit = CHUNK.max(unknown);
        let changed: Vec<(&u64, &String)> = self
            .by_revision
            .range(since.saturating_add(1)..)
            .take(limit + 1)
            .collect();
        let is_complete = changed.len() <= limit;
        let changed = &changed[..changed.len().min(limit)];
        let revision = match changed.last() {
            Some((last, _)) if !is_complete => **last,
            _ => self.revision,
        };
        let (mut rows, mut gone) = (Vec::new(), Vec::new());
        for (_, key) in changed {
            match self.slots.get(*key).and_then(|slot| slot.row.as_ref()) {
                Some(row) => rows.push(format!("{}:{}", quoted(key), self.json(row))),
                None if since > 0 => gone.push(quoted(key)),
                None => {}
            }
        }
        let changes: Vec<String> = self.journal.between(since, revision).map(json).collect();
        let with_sources = since == 0 || (since < self.sources_revision && self.sources_revision <= revision);
        let is_empty = revision == since;
        let mut text = String::new();
        let _ = write!(
            text,
            r#"{{"reset":{},"complete":{is_complete},"revision":{revision},"rows":{{{}}},"gone":[{}],"changes":[{}]"#,
            reset || since == 0,
            rows.join(","),
            gone.join(","),
            changes.join(",")
        );
        if with_sources {
            let _ = write!(text, r#","sources":{}"#, json(&self.sources));
        }
        text.push('}');
        Delta {
            json: text,
            revision,
            is_empty,
            is_complete,
        }
    }

    fn json(&self, row: &Kept) -> String {
        match row {
            Kept::Json(json, _) => json.to_string(),
            Kept::Member(member) => {
                let tally = self.tallies.get(&*member.name).copied().unwrap_or_default();
                format!(r#"{{"member":{},"tally":{}}}"#, json(member), json(&tally))
            }
        }
    }

    fn replace(&mut self, source: &'static str, key: &str, row: Option<Kept>) {
        let after = copies(row.as_ref()).to_vec();
        let before = self.touch(source, key, row);
        let before = copies(before.as_ref()).to_vec();
        let mut members: HashSet<&Str> = HashSet::new();
        for (each, sign) in [(&before, -1), (&after, 1)] {
            for (member, class) in each {
                self.tallies.entry(member.clone()).or_default().add(*class, sign);
                members.insert(member);
            }
        }
        if before == after {
            return;
        }
        for member in members {
            let key = format!("m/{member}");
            if self.slots.get(&key).is_some_and(|slot| slot.row.is_some()) {
                self.bump(&key);
            }
        }
    }

    /// Stores a row at a new revision. Returns the former one.
    fn touch(&mut self, source: &'static str, key: &str, row: Option<Kept>) -> Option<Kept> {
        let is_removed = row.is_none();
        let slot = self.slots.entry(key.to_owned()).or_insert(Slot {
            source,
            revision: 0,
            row: None,
        });
        let was_removed = slot.revision > 0 && slot.row.is_none();
        let before = std::mem::replace(&mut slot.row, row);
        match (was_removed, is_removed) {
            (true, false) => self.removed -= 1,
            (false, true) => self.removed += 1,
            _ => {}
        }
        self.bump(key);
        before
    }

    fn bump(&mut self, key: &str) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        self.by_revision.remove(&slot.revision);
        self.revision += 1;
        slot.revision = self.revision;
        self.by_revision.insert(self.revision, key.to_owned());
    }

    /// Forgets the oldest removed rows beyond [`REMOVED`], half of them at once.
    fn forget_removed(&mut self) {
        if self.removed <= REMOVED {
            return;
        }
        let removed = |(revision, key): (&u64, &String)| {
            let slot = self.slots.get(key)?;
            slot.row.is_none().then(|| (*revision, key.clone()))
        };
        let oldest = self.by_revision.iter().filter_map(removed);
        let oldest: Vec<(u64, String)> = oldest.take(REMOVED / 2).collect();
        for (revision, key) in oldest {
            self.by_revision.remove(&revision);
            self.slots.remove(&key);
            self.removed -= 1;
            self.known_from = revision;
        }
    }
}

impl Tally {
    fn add(&mut self, class: Class, sign: i32) {
        let count = match class {
            Class::Applied => &mut self.applied,
            Class::Failing => &mut self.failing,
            Class::Unhealthy => &mut self.unhealthy,
            Class::Pending => &mut self.pending,
            Class::Suspended => &mut self.suspended,
            Class::Leaving => &mut self.leaving,
            Class::Evicting => &mut self.evicting,
        };
        *count = count.saturating_add_signed(sign);
        self.copies = self.copies.saturating_add_signed(sign);
    }
}

fn kept(row: Row) -> Kept {
    match row {
        Row::Member(member) => Kept::Member(Box::new(member)),
        Row::Workload(workload) => {
            let copies = workload.clusters.iter();
            let copies = copies.map(|copy| (copy.cluster.clone(), copy.class)).collect();
            Kept::Json(json(&workload).into(), copies)
        }
        Row::Distribution(distribution) => Kept::Json(json(&distribution).into(), Box::default()),
        Row::Policy(policy) => Kept::Json(json(&policy).into(), Box::default()),
    }
}

fn copies(row: Option<&Kept>) -> &[(Str, Class)] {
    match row {
        Some(Kept::Json(_, copies)) => copies,
        Some(Kept::Member(_)) | None => &[],
    }
}

/// JSON of a value that has only fields and texts: it cannot fail.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn quoted(text: &str) -> String {
    json(&text)
}

#[cfg(test)]
mod tests;
