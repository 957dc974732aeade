//! The checks of a ResourceDistribution that need the hub's API server: whether its author may do what it does on their behalf,
//! and whether a server would accept a copy.
//!
//! ```text
//! inquiry(&request) ──► rights, trial ──► asked by the webhook ──► what was denied, what was answered ──► refusal, warning
//! ```
//!
//! A write that does not change the spec needs no checks: the control plane never changes it. Source:
//! ResourceDistribution reference 2 (rule 7, holes 9 and 10) and 6.6.

use std::fmt;

use entourage_model::{problem::Problem, rendered::Rendered};
use entourage_render::distributed::{targets::Targets, template};
use serde_json::Value;

use crate::{
    distribution,
    distribution::{compiled_targets, identity, is_given},
    request::{Operation, Refusal, Request, is_leaving, text},
    table::DISTRIBUTION,
};

/// The maximum number of namespaces for which an author's rights are checked one by one: each costs two requests while the
/// author waits.
pub const MOST_NAMESPACES: usize = 100;

/// The maximum number of missing rights reported; the author fixes all of them in one way.
const MAX_REPORTED: usize = 5;

/// The checks of a write.
#[derive(Debug)]
pub struct Inquiry {
    /// The rights that the author must have.
    pub rights: Rights,
    /// An object for a dry-run create; it has no namespace.
    pub trial: Option<Trial>,
}

/// One right to check, with the plural of the core kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Such as `create`.
    pub verb: &'static str,
    /// `configmaps` or `secrets`.
    pub plural: &'static str,
    /// The namespace; empty for all of them.
    pub namespace: String,
    /// The name; empty if the checker cannot know it.
    pub name: String,
}

/// The rights that the author of a distribution must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// All of these.
    pub needed: Vec<Access>,
    /// In addition, the right to write copies in every namespace.
    pub everywhere: Vec<Access>,
    /// Or, instead, all of these: to write copies in the namespaces that the targets name; `None` if the targets match others,
    /// too, or more than [`MOST_NAMESPACES`].
    pub by_name: Option<Vec<Access>>,
    /// The number of target namespaces, if all are named.
    names: Option<usize>,
}

/// An object for a dry-run create.
pub struct Trial {
    /// `configmaps` or `secrets`.
    pub plural: &'static str,
    /// The object.
    pub object: Rendered,
}

/// Debug output omits the object.
impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trial")
            .field("plural", &self.plural)
            .finish_non_exhaustive()
    }
}

/// The response of a server to a trial. The fields may name keys of the data: they must not be shown as they are.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// It would accept the object, or has one with that name.
    Taken,
    /// It returned an error: HTTP code, reason, and fields with the reason of each.
    Error(u16, String, Vec<(String, String)>),
    /// No response in time, or none that can be read.
    Silence,
}

/// The checks before a valid write is accepted; `None` for a write that needs none.
/// Cost: O(size of the object).
#[must_use]
pub fn inquiry(request: &Request<'_>) -> Option<Inquiry> {
    let is_ours = request.group == DISTRIBUTION.group && request.kind == DISTRIBUTION.kind;
    if !is_ours || request.operation == Operation::Delete {
        return None;
    }
    let object = request.object.filter(|object| !is_leaving(object))?;
    if request.old.is_some_and(|old| old["spec"] == object["spec"]) {
        return None;
    }
    let rights = rights(object, &identity(object)?, &compiled_targets(object)?)?;
    Some(Inquiry {
        rights,
        trial: trial(object, request.old),
    })
}

fn rights(object: &Value, subject: &distribution::Identity<'_>, targets: &Targets) -> Option<Rights> {
    let plural = plural(subject.kind)?;
    let access = |verb, namespace: &str, name: &str| Access {
        verb,
        plural,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    // The right to create cannot be limited to a name: at that time there is none yet.
    let written = |namespace: &str| {
        [
            access("create", namespace, ""),
            access("update", namespace, subject.name),
        ]
    };
    let from = &object["spec"]["resourceFrom"];
    let needed = is_given(from).then(|| access("get", text(&from["namespace"]), subject.name));
    let mut rights = Rights {
        needed: needed.into_iter().collect(),
        ..Rights::default()
    };
    if targets.mean_nothing() {
        return Some(rights);
    }
    rights.everywhere = written("").into();
    if !targets.mean_more_than_names() {
        let names = targets.named();
        rights.names = Some(names.len());
        rights.by_name = (names.len() <= MOST_NAMESPACES)
            .then(|| names.iter().flat_map(|namespace| written(namespace)).collect());
    }
    Some(rights)
}

/// The copy for the dry run: only if it changed, and is embedded in the distribution.
fn trial(object: &Value, old: Option<&Value>) -> Option<Trial> {
    let resource = &object["spec"]["resource"];
    if !is_given(resource) || old.is_some_and(|old| old["spec"]["resource"] == *resource) {
        return None;
    }
    Some(Trial {
        plural: plural(text(&resource["kind"]))?,
        object: Rendered(template::sanitised(resource)),
    })
}

fn plural(kind: &str) -> Option<&'static str> {
    match kind {
        "ConfigMap" => Some("configmaps"),
        "Secret" => Some("secrets"),
        _ => None,
    }
}

impl Rights {
    /// True if no right is needed.
    #[must_use]
    pub const fn are_none(&self) -> bool {
        self.needed.is_empty() && self.everywhere.is_empty()
    }

    /// The refusal of an author who lacks some rights. `denied`: those of `needed`, and of [`by_name`](Self::by_name) if it is
    /// given, else of [`everywhere`](Self::everywhere).
    #[must_use]
    pub fn refusal(&self, author: &str, denied: &[Access]) -> Refusal {
        let mut problems: Vec<Problem> = denied
            .iter()
            .take(MAX_REPORTED)
            .map(|access| self.problem(author, access))
            .collect();
        if denied.len() > MAX_REPORTED {
            problems.push(Problem::new(
                "spec.targets",
                format!("{} more rights are missing", denied.len() - MAX_REPORTED),
                "grant them all in one ClusterRole, or have it written by an account that has them",
            ));
        }
        Refusal {
            code: 403,
            reason: "Forbidden",
            problems,
        }
    }

    fn problem(&self, author: &str, access: &Access) -> Problem {
        let place = if access.namespace.is_empty() {
            "in all namespaces".to_owned()
        } else {
            format!("in namespace {:?}", access.namespace)
        };
        let (verb, plural) = (access.verb, access.plural);
        let named = if access.name.is_empty() {
            String::new()
        } else {
            format!(" {:?}", access.name)
        };
        let cause =
            format!("{author:?} may not {verb} {plural}{named} {place}, and this would do it for them");
        if self.needed.contains(access) {
            let remedy = "grant it with a Role there, or distribute what the author may read";
            return Problem::new("spec.resourceFrom", cause, remedy);
        }
        let remedy = match self.names {
            _ if !access.namespace.is_empty() => {
                "grant it with a Role there, or remove the namespace from the targets".to_owned()
            }
            Some(names) if names > MOST_NAMESPACES => format!(
                "grant it with a ClusterRole, or name at most {MOST_NAMESPACES} namespaces instead of {names}: then each is checked separately"
            ),
            _ => "grant it with a ClusterRole, or name the namespaces: then each is checked separately"
                .to_owned(),
        };
        Problem::new("spec.targets", cause, remedy)
    }
}

/// The message if the rights of an author could not be checked.
#[must_use]
pub fn unknown_rights(author: &str, why: &str) -> String {
    format!(
        "spec: whether {author:?} may write the copies cannot be asked: {why}; try again, or have the webhook run with \
         --authorize-distributions=false"
    )
}

/// The consequence of a trial's response: nothing, or a warning. The server's message is not passed on, since it may quote the
/// data; nor are keys of the data, except for missing ones that a type of Secret requires.
///
/// # Errors
/// If the server finds the object invalid.
pub fn tried(answer: &Answer) -> Result<Option<String>, Refusal> {
    let why = match answer {
        Answer::Taken => return Ok(None),
        Answer::Error(code @ (400 | 422), reason, fields) => {
            let remedy = "correct it; kubectl create --dry-run=server with the object itself shows more";
            let mut problems: Vec<Problem> = fields
                .iter()
                .map(|(field, reason)| {
                    Problem::new(
                        place(field, reason),
                        format!("a server refuses it: {}", word(reason)),
                        remedy,
                    )
                })
                .collect();
            if problems.is_empty() {
                let cause = format!("a server refuses it: {code} {}", word(reason));
                problems.push(Problem::new("spec.resource", cause, remedy));
            }
            problems.sort();
            problems.dedup();
            return Err(Refusal {
                code: 422,
                reason: "Invalid",
                problems,
            });
        }
        Answer::Error(code, reason, _) => format!("{code} {}", word(reason)),
        Answer::Silence => "no response in time".to_owned(),
    };
    Ok(Some(format!(
        "spec.resource could not be checked by a dry run: {}",
        why.trim_end()
    )))
}

/// The path of the field below `spec.resource`, without keys. A missing key is required by the type, not given by the author.
fn place(field: &str, reason: &str) -> String {
    let field = if reason == "FieldValueRequired" {
        field
    } else {
        field.split('[').next().unwrap_or_default()
    };
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']');
    if field.is_empty() || field.len() > 100 || !field.chars().all(is_path) {
        return "spec.resource".to_owned();
    }
    format!("spec.resource.{field}")
}

/// A reason, if it is a single word.
fn word(reason: &str) -> &str {
    let is_word = reason.len() <= 64 && reason.chars().all(|c| c.is_ascii_alphanumeric());
    if is_word { reason } else { "" }
}

#[cfg(test)]
mod tests;
