//! What only the hub's API server can say of a ResourceDistribution: whether its author may do what it does in their stead,
//! and whether a server would take a copy.
//!
//! ```text
//! inquiry(&request) ──► rights, trial ──► asked by the webhook ──► what was denied, what was answered ──► refusal, warning
//! ```
//!
//! A write that leaves the spec alone is not asked about: nothing that the control plane writes is. Source:
//! ResourceDistribution reference 2 (rule 7, holes 9 and 10) and 6.6.

use std::fmt;

use serde_json::Value;

use super::{
    Operation, Problem, Refusal, Request, distribution,
    distribution::{compiled_targets, identity, is_given},
    is_leaving,
    table::DISTRIBUTION,
    text,
};
use crate::{
    delivery::render::Rendered,
    distribution::{targets::Targets, template},
};

/// How many namespaces an author's rights are asked about one by one: each costs two questions while the author waits.
pub const MOST_NAMESPACES: usize = 100;

/// How many refused rights are told; the author mends them all in one way.
const TOLD: usize = 5;

/// What is asked.
#[derive(Debug)]
pub struct Inquiry {
    /// What the author must be allowed to do.
    pub rights: Rights,
    /// An object that a server is asked to take, without keeping it; it has no namespace.
    pub trial: Option<Trial>,
}

/// One thing that somebody may do or not, with the core kind of a plural.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Such as `create`.
    pub verb: &'static str,
    /// `configmaps` or `secrets`.
    pub plural: &'static str,
    /// The namespace; empty for all of them.
    pub namespace: String,
    /// The name; empty where it cannot be known to whoever judges.
    pub name: String,
}

/// What the author of a distribution must be allowed to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// All of this.
    pub needed: Vec<Access>,
    /// And all of this: writing copies anywhere.
    pub everywhere: Vec<Access>,
    /// Or, instead of writing anywhere, all of this: writing them where the targets say by name; `None` if they mean other
    /// namespaces, too, or more than [`MOST_NAMESPACES`].
    pub by_name: Option<Vec<Access>>,
    /// How many namespaces are meant, if only by name.
    names: Option<usize>,
}

/// An object that a server is asked to take without keeping it.
pub struct Trial {
    /// `configmaps` or `secrets`.
    pub plural: &'static str,
    /// The object.
    pub object: Rendered,
}

/// Without the object.
impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trial")
            .field("plural", &self.plural)
            .finish_non_exhaustive()
    }
}

/// What a server answered to a trial. The fields may name keys of the data: not to be shown as they are.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// It would take the object, or has one of that name.
    Taken,
    /// It answered with an error: HTTP code, reason, and fields with the reason of each.
    Error(u16, String, Vec<(String, String)>),
    /// Nothing came in time, or nothing that can be read.
    Silence,
}

/// What is to be asked before a valid write may be; `None` for a write that nobody needs to be asked about.
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
    // Who may create cannot be limited to a name: when it is asked, there is none yet.
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

/// The copy that is tried: only of what is new, and stands in the distribution itself.
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
    /// Whether nothing needs to be asked.
    #[must_use]
    pub const fn are_none(&self) -> bool {
        self.needed.is_empty() && self.everywhere.is_empty()
    }

    /// The refusal of an author who lacks some of it. `denied`: of what is needed, and of [`by_name`](Self::by_name) where
    /// that is given, else of [`everywhere`](Self::everywhere).
    #[must_use]
    pub fn refusal(&self, author: &str, denied: &[Access]) -> Refusal {
        let mut problems: Vec<Problem> = denied
            .iter()
            .take(TOLD)
            .map(|access| self.problem(author, access))
            .collect();
        if denied.len() > TOLD {
            problems.push(Problem::new(
                "spec.targets",
                format!("{} more rights are missing", denied.len() - TOLD),
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
                "grant it with a ClusterRole, or name at most {MOST_NAMESPACES} namespaces instead of {names}: then each is \
                 asked about by itself"
            ),
            _ => "grant it with a ClusterRole, or name the namespaces: then each is asked about by itself"
                .to_owned(),
        };
        Problem::new("spec.targets", cause, remedy)
    }
}

/// The words where nobody could say what an author may do.
#[must_use]
pub fn unknown_rights(author: &str, why: &str) -> String {
    format!(
        "spec: whether {author:?} may write the copies cannot be asked: {why}; try again, or have the webhook run with \
         --authorize-distributions=false"
    )
}

/// What follows from the answer to a trial: nothing, or a warning. The server's sentence is not passed on, since it may
/// quote the data; neither are keys of the data, but for those that a type of Secret demands and that are missing.
///
/// # Errors
/// When the server finds something wrong with the object.
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

/// The path of a field below `spec.resource`, without keys. The key of what is missing is not the author's, but the type's.
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

/// A reason, if it is the one word that a reason is.
fn word(reason: &str) -> &str {
    let is_word = reason.len() <= 64 && reason.chars().all(|c| c.is_ascii_alphanumeric());
    if is_word { reason } else { "" }
}

#[cfg(test)]
mod tests;
