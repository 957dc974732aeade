//! The rules of admission: defaults and validation of objects on write.
//!
//! ```text
//! review ──► mutate(&request)  ──► changes as a JSON patch
//!        ──► validate(&request) ──► nothing, or the problems with their remedies
//!        ──► warnings(&request) ──► valid settings that may be mistakes
//! ```
//!
//! A webhook serves the reviews (`entourage-webhook`); nothing else depends on it. Every rule is a row of [`RULES`], over JSON
//! as it is: fields unknown to this version are ignored. A problem that existed before a change does not refuse the change, and
//! an object that is being deleted is not validated. Source: Karmada reference 6.
//!
//! Costs: O(size of the object) for each rule of its kind; O(objects) if a rule compares with others.

use serde_json::Value;

mod cluster;
pub mod configuration;
mod distribution;
mod failover;
#[cfg(test)]
mod golden;
mod hooks;
pub mod inquiry;
mod interpreter;
mod overrides;
pub mod patch;
mod placement;
mod policy;
mod protection;
mod quota;
mod readable;
mod request;
mod scripts;
mod spread;
mod stored;
pub mod table;
mod taints;
#[cfg(test)]
mod tests;
mod warnings;

pub use entourage_model::problem::Problem;
use request::is_leaving;
pub use request::{Around, Operation, Refusal, Request, SELECTORS_PER_POLICY, Settings};
pub use table::{Act, KINDS, Kind, Kinds, RULES, Rule};

/// The changes that a write needs, as operations of a JSON patch (RFC 6902) on its object; empty when it needs none.
/// Cost: O(size of the object) for each rule of its kind.
#[must_use]
pub fn mutate(request: &Request<'_>) -> Vec<Value> {
    mutate_by(RULES, request)
}

/// The object of a write with all defaults; `None` for an object that is deleted or being deleted.
/// Cost: as [`mutate`].
#[must_use]
pub fn filled(request: &Request<'_>) -> Option<Value> {
    filled_by(RULES, request)
}

/// Validates a write.
///
/// # Errors
/// All its problems at once.
pub fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    validate_by(RULES, request)
}

/// The warnings for the author of a valid write. A warning that existed before a change is not repeated: most changes are a
/// controller's. Cost: as [`validate`].
#[must_use]
pub fn warnings(request: &Request<'_>) -> Vec<Problem> {
    warnings_by(RULES, request)
}

/// The other objects of the request's kind that the rules need, or `None`.
#[must_use]
pub fn looks_around(request: &Request<'_>) -> Option<Around> {
    let rules = RULES.iter().filter(|rule| rule.is_about(request));
    let around = rules.filter_map(|rule| match rule.act {
        Act::Compare(around, _) => around(request),
        _ => None,
    });
    around.max()
}

fn mutate_by(rules: &[Rule], request: &Request<'_>) -> Vec<Value> {
    match (request.object, filled_by(rules, request)) {
        (Some(before), Some(after)) => patch::between(before, &after),
        _ => Vec::new(),
    }
}

/// The object with all defaults.
fn filled_by(rules: &[Rule], request: &Request<'_>) -> Option<Value> {
    let mut object = request.object.filter(|object| !is_leaving(object))?.clone();
    for rule in rules.iter().filter(|rule| rule.is_about(request)) {
        if let Act::Fill(fill) = rule.act {
            fill(&mut object, request);
        }
    }
    Some(object)
}

fn validate_by(rules: &[Rule], request: &Request<'_>) -> Result<(), Refusal> {
    let rules = || rules.iter().filter(|rule| rule.is_about(request));
    if request.operation == Operation::Delete {
        let mut problems = Vec::new();
        if let Some(old) = request.old {
            for rule in rules() {
                if let Act::Keep(check) = rule.act {
                    check(old, &mut problems);
                }
            }
        }
        return refusal(403, "Forbidden", problems);
    }
    let Some(object) = request.object.filter(|object| !is_leaving(object)) else {
        return Ok(());
    };
    let mut problems = wrong(rules(), object, request);
    if let Some(old) = request.old {
        // A problem that existed before does not refuse a change that does not touch it: a controller's write, or a fix of one
        // of two problems.
        let known = wrong(rules(), old, request);
        problems.retain(|problem| !known.contains(problem));
        for rule in rules() {
            if let Act::Freeze(check) = rule.act {
                check(object, old, &mut problems);
            }
        }
    }
    refusal(422, "Invalid", problems)
}

/// The problems that the rules find in a state.
fn wrong<'a>(rules: impl Iterator<Item = &'a Rule>, object: &Value, request: &Request<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for rule in rules {
        match rule.act {
            Act::Check(check) => check(object, &mut problems),
            Act::CheckIn(check) => check(object, request, &mut problems),
            Act::Compare(_, check) => check(object, request, &mut problems),
            Act::Fill(_) | Act::Freeze(_) | Act::Keep(_) | Act::Warn(_) => {}
        }
    }
    problems
}

fn warnings_by(rules: &[Rule], request: &Request<'_>) -> Vec<Problem> {
    let Some(object) = request.object.filter(|object| !is_leaving(object)) else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    for rule in rules.iter().filter(|rule| rule.is_about(request)) {
        if let Act::Warn(warn) = rule.act {
            let (mut now, mut before) = (Vec::new(), Vec::new());
            warn(object, &mut now);
            if let Some(old) = request.old {
                warn(old, &mut before);
            }
            warnings.extend(now.into_iter().filter(|doubt| !before.contains(doubt)));
        }
    }
    warnings
}

fn refusal(code: u16, reason: &'static str, problems: Vec<Problem>) -> Result<(), Refusal> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(Refusal {
        code,
        reason,
        problems,
    })
}
