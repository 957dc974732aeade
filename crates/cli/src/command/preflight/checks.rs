//! The checks: a table of pure functions from facts to findings.

use serde::Serialize;

use super::{
    Role,
    facts::{Facts, Lease},
};

mod server;
mod writers;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// As it has to be.
    Ok,
    /// It works, with a restriction; or it could not be checked.
    Warn,
    /// It does not work.
    Fail,
}

impl Level {
    /// The word in a table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    /// The result.
    pub level: Level,
    /// The finding in words.
    pub message: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// A check.
pub struct Check {
    /// Its name in the output.
    pub name: &'static str,
    /// Its condition, in one line.
    pub summary: &'static str,
    /// True if it is also for members.
    pub of_members: bool,
    decide: fn(&Facts) -> Vec<Outcome>,
}

/// Level, message, remedy.
type Outcome = (Level, String, Option<String>);

/// Every check, in the order of the output.
pub const CHECKS: &[Check] = &[
    Check {
        name: "version",
        summary: "Kubernetes 1.20 or later",
        of_members: true,
        decide: server::version,
    },
    Check {
        name: "clock",
        summary: "the clock of the server and that of this machine differ by less than 2 s, by the header Date",
        of_members: true,
        decide: server::clock,
    },
    Check {
        name: "rights",
        summary: "the account of the kubeconfig has the rights, by SelfSubjectAccessReview",
        of_members: true,
        decide: server::rights,
    },
    Check {
        name: "definitions",
        summary: "the definitions are there, and are those of this version",
        of_members: false,
        decide: server::definitions,
    },
    Check {
        name: "controllers",
        summary: "garbage collector and namespace controller run",
        of_members: true,
        decide: server::controllers,
    },
    Check {
        name: "accounts",
        summary: "the controllers of ServiceAccounts and of their tokens run",
        of_members: true,
        decide: server::accounts,
    },
    Check {
        name: "namespaces",
        summary: "no namespace has been terminating for more than five minutes",
        of_members: true,
        decide: server::namespaces,
    },
    Check {
        name: "nodes",
        summary: "a hub has no Nodes, a member has some",
        of_members: true,
        decide: server::nodes,
    },
    Check {
        name: "admission",
        summary: "no admission plug-in or LimitRange changes templates, or refuses what is written",
        of_members: true,
        decide: writers::admission,
    },
    Check {
        name: "webhooks",
        summary: "no admission webhook can block every write, or change every object",
        of_members: true,
        decide: writers::webhooks,
    },
    Check {
        name: "karmada",
        summary: "Karmada's controllers do not run on the same hub",
        of_members: false,
        decide: writers::karmada,
    },
    Check {
        name: "store",
        summary: "the store is filled to less than 60 % of its quota",
        of_members: false,
        decide: server::store,
    },
];

/// The findings of all checks of a role.
#[must_use]
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let checks = CHECKS
        .iter()
        .filter(|check| check.of_members || facts.role == Role::Hub);
    let findings = checks.flat_map(|check| {
        let outcomes = (check.decide)(facts).into_iter();
        outcomes.map(|(level, message, remedy)| Finding {
            check: check.name,
            level,
            message,
            remedy,
        })
    });
    findings.collect()
}

/// The seconds for which a Lease that nobody renews may still be of a process that runs.
const FRESH: i64 = 60;

fn ok(message: impl Into<String>) -> Outcome {
    (Level::Ok, message.into(), None)
}

fn warn(message: impl Into<String>, remedy: impl Into<String>) -> Outcome {
    (Level::Warn, message.into(), Some(remedy.into()))
}

fn fail(message: impl Into<String>, remedy: impl Into<String>) -> Outcome {
    (Level::Fail, message.into(), Some(remedy.into()))
}

/// A fact that cannot be read is a warning: its state is unknown.
fn unread(what: &str, why: &str) -> Outcome {
    warn(
        format!("not checked: cannot read {what}: {why}"),
        "use an account that may read it",
    )
}

/// The value of a fact, or the outcome that it could not be read.
macro_rules! fact {
    ($fact:expr, $what:literal) => {
        match &$fact {
            Ok(value) => value,
            Err(why) => return vec![unread($what, why)],
        }
    };
}

use fact;

/// The time of the server if it is known: Leases are written by processes near it.
fn server_now(facts: &Facts) -> i64 {
    let server = facts.server_time.as_ref().ok().copied().flatten();
    server.unwrap_or(facts.now).as_second()
}

fn is_fresh(lease: &Lease, facts: &Facts) -> bool {
    let age = lease
        .renewed
        .map(|renewed| server_now(facts) - renewed.as_second());
    !lease.holder.is_empty() && age.is_some_and(|age| age < FRESH.max(lease.seconds))
}

#[cfg(test)]
mod tests;
