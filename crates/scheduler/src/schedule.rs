//! The rounds: one group of cluster affinities after the other, until one fits.

use std::collections::BTreeSet;

use entourage_api::{keys::reason, work::TargetCluster};
use entourage_model::object::Str;

use crate::{
    affinity,
    assign::{self, ScheduleError},
    check,
    explain::FilterResult,
    request::{Candidate, Outcome, Request, Round, Scheduled},
    room,
};

/// Schedules a template. The same request and clusters give the same outcome, whatever the order of the clusters.
///
/// `clusterAffinities` are tried in their order, from the one in use on, until one fits; an earlier one is used again only if a
/// fresh result is requested, or if neither the one in use nor any later one fits. Source: Karmada reference 1.3 (the order).
///
/// If no group fits, the present targets stay, except those that no group selects.
///
/// Cost: O(clusters × entries of the placement), per group that is tried.
#[must_use]
pub fn schedule(request: &Request<'_>, candidates: &[Candidate<'_>]) -> Outcome {
    schedule_by_estimates(request, candidates).outcome
}

/// As [`schedule`]; also names the clusters whose estimators are to be asked before the outcome is used.
#[must_use]
pub fn schedule_by_estimates(request: &Request<'_>, candidates: &[Candidate<'_>]) -> Scheduled {
    if let Err(message) = check::supported(request) {
        return failed(reason::SCHEDULER_ERROR, message, Vec::new());
    }
    let asked = request;
    let mut request = if request.fresh {
        unplaced(request)
    } else {
        *request
    };
    request.affinity = request
        .affinity
        .filter(|name| !is_outdated(&request, candidates, name))
        .or_else(|| in_use(&request, candidates))
        .or(request.affinity);
    let rounds = rounds(&request);
    let is_in_use = |round: &Round<'_>| !round.name.is_empty() && Some(round.name) == request.affinity;
    let first = rounds.iter().position(is_in_use).unwrap_or(0);
    let mut story = ScheduleTrace::default();
    let mut fits_again = None;
    for (position, round) in rounds.iter().enumerate() {
        if position < first {
            let mut passed = round.clone();
            passed.request = unplaced(&request);
            let survey = FilterResult::of(&passed, candidates);
            match assign::assign(&passed, &survey) {
                Ok(_) => {
                    story.fits_again(&survey);
                    fits_again = fits_again.or(Some(round));
                }
                Err(miss) => story.failed(&miss, &survey),
            }
            continue;
        }
        let survey = FilterResult::of(round, candidates);
        match assign::assign(round, &survey) {
            Ok(clusters) => return placed(round, &survey, clusters, story.note(&survey)),
            Err(miss) => story.failed(&miss, &survey),
        }
    }
    if let Some(round) = fits_again {
        let survey = FilterResult::of(round, candidates);
        if let Ok(clusters) = assign::assign(round, &survey) {
            return placed(round, &survey, clusters, story.returned(&survey));
        }
    }
    let unselected = unselected(asked, &rounds, candidates);
    failed(story.reason, story.messages.join("; "), unselected)
}

/// The clusters of the workload that no group selects: those that are scheduled, and those that it is being evicted from. Cost:
/// O(clusters × log of its own + its own × entries of the placement).
fn unselected(request: &Request<'_>, rounds: &[Round<'_>], candidates: &[Candidate<'_>]) -> Vec<Str> {
    let targets = request.current.iter().map(|target| target.name.as_str());
    let evicted = request.evicted.iter().map(|name| &**name);
    let own: BTreeSet<&str> = targets.chain(evicted).collect();
    let is_selected = |each: &Candidate<'_>| rounds.iter().any(|round| affinity::tier(round, each).is_some());
    let left: BTreeSet<Str> = candidates
        .iter()
        .filter(|each| own.contains(each.name) && !is_selected(each))
        .map(|each| each.name.into())
        .collect();
    left.into_iter().collect()
}

fn failed(reason: &'static str, message: String, unselected: Vec<Str>) -> Scheduled {
    Scheduled {
        outcome: Outcome::Failed {
            reason,
            message,
            unselected,
        },
        unestimated: BTreeSet::new(),
    }
}

fn placed(
    round: &Round<'_>,
    survey: &FilterResult<'_>,
    clusters: Vec<TargetCluster>,
    note: String,
) -> Scheduled {
    let unestimated = room::unestimated(round, &survey.fitting, &clusters);
    Scheduled {
        outcome: Outcome::Placed {
            clusters,
            affinity: round.name.into(),
            note,
        },
        unestimated,
    }
}

/// The messages of the rounds that are not used.
#[derive(Default)]
struct ScheduleTrace {
    /// The reason of the last round that failed.
    reason: &'static str,
    /// For the condition, if no round fits.
    messages: Vec<String>,
    /// For the note, if a later round fits.
    notes: Vec<String>,
    /// For the note, if an earlier round is used again.
    misses: Vec<String>,
}

impl ScheduleTrace {
    fn failed(&mut self, miss: &ScheduleError, survey: &FilterResult<'_>) {
        self.reason = miss.reason;
        let note = match &miss.why {
            None => {
                self.messages.push(survey.failure());
                survey.note().unwrap_or_else(|| survey.is_void())
            }
            Some(why) => {
                self.messages.push(format!("{}; {why}", survey.failure()));
                format!("{} does not fit: {why}", survey.path())
            }
        };
        self.notes.push(note.clone());
        self.misses.push(note);
    }

    fn fits_again(&mut self, survey: &FilterResult<'_>) {
        let message = format!(
            "{} fits again; set spec.rescheduleTriggeredAt to return to it",
            survey.path()
        );
        self.messages.push(message.clone());
        self.notes.push(message);
    }

    /// The note if only an earlier round fits.
    fn returned(mut self, used: &FilterResult<'_>) -> String {
        self.notes = std::mem::take(&mut self.misses);
        self.note(used)
    }

    fn note(mut self, used: &FilterResult<'_>) -> String {
        if !self.notes.is_empty() {
            self.notes.push(format!("{} is used", used.path()));
        }
        self.notes.extend(used.note());
        self.notes.join("; ")
    }
}

/// The request without present targets.
pub(crate) fn unplaced<'a>(request: &Request<'a>) -> Request<'a> {
    Request {
        current: &[],
        applied: "",
        affinity: None,
        stuck: &[],
        ..*request
    }
}

/// True if the group that is recorded as in use selects none of the present targets: they are newer than the record. If it
/// selects some of them, the group has shrunk.
fn is_outdated(request: &Request<'_>, candidates: &[Candidate<'_>], name: &str) -> bool {
    let mut terms = request.placement.cluster_affinities.iter();
    let mut present = candidates
        .iter()
        .filter(|each| request.is_current(each.name))
        .peekable();
    present.peek().is_some()
        && terms
            .find(|term| term.affinity_name == name)
            .is_some_and(|term| !present.any(|each| affinity::term_selects(term, each)))
}

/// The first group that selects all present targets: the one in use, if none was recorded since they were scheduled.
fn in_use<'a>(request: &Request<'a>, candidates: &[Candidate<'_>]) -> Option<&'a str> {
    let mut terms = request.placement.cluster_affinities.iter();
    let present = || candidates.iter().filter(|each| request.is_current(each.name));
    present().next()?;
    terms
        .find(|term| present().all(|each| affinity::term_selects(term, each)))
        .map(|term| term.affinity_name.as_str())
}

pub(crate) fn rounds<'a>(request: &Request<'a>) -> Vec<Round<'a>> {
    let placement = request.placement;
    let round = |affinity, overflow, path: String, name| Round {
        request: *request,
        affinity,
        overflow,
        path,
        name,
    };
    if placement.cluster_affinities.is_empty() {
        return vec![round(
            placement.cluster_affinity.as_ref(),
            &[],
            "clusterAffinity".into(),
            "",
        )];
    }
    let terms = placement.cluster_affinities.iter().enumerate();
    terms
        .map(|(position, term)| {
            let path = format!("clusterAffinities[{position}]");
            let overflow = term.overflow_affinities.as_slice();
            round(Some(&term.affinity), overflow, path, &term.affinity_name)
        })
        .collect()
}
