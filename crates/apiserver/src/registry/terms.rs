//! The query parameters of a write: dry run, strictness, field manager; checked as `CreateOptions`, `UpdateOptions`,
//! `PatchOptions`.

use serde_json::Value;

use crate::{
    apply::Manager,
    call::Call,
    decode::FieldValidation,
    meta::{LONGEST_MANAGER, manager_problems, printable},
    resource::Surroundings,
    status::{About, FieldError, Result, Status},
};

/// The parameters of a write.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
    pub(crate) manager: String,
    pub(crate) now: String,
}

impl Terms {
    /// The terms of a call; all errors at once, as the server reports them.
    pub(crate) fn of(around: &dyn Surroundings, call: &Call) -> Result<Self> {
        let query = &call.query;
        let mut errors = Vec::new();
        let given = query.get("fieldManager").unwrap_or_default();
        if call.method == http::Method::PATCH {
            let applies = call.media_type() == super::patching::APPLY;
            if !applies && query.get("force").is_some() {
                errors.push(FieldError::forbidden(
                    "force",
                    "may not be specified for non-apply patch",
                ));
            } else if applies && given.is_empty() {
                errors.push(FieldError::required(
                    "fieldManager",
                    "is required for apply patch",
                ));
            }
        }
        errors.extend(manager_problems(given, "fieldManager"));
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        errors.extend(dry_run_problems(&dry_run));
        let validation = match query.get("fieldValidation") {
            None | Some("" | "Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let possible = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, &possible));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(options_invalid(call, &errors));
        }
        let manager = if given.is_empty() {
            manager_of_agent(&call.agent)
        } else {
            given.to_owned()
        };
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            validation,
            manager,
            now: around.now(),
        })
    }

    /// The writer, for the ownership of fields.
    pub(super) fn manager<'a>(&'a self, call: &'a Call) -> Manager<'a> {
        Manager {
            name: &self.manager,
            subresource: &call.subresource,
            now: &self.now,
        }
    }
}

/// The errors in the values of `dryRun`.
pub(crate) fn dry_run_problems(values: &[&str]) -> Option<FieldError> {
    if values.iter().all(|value| *value == "All") {
        return None;
    }
    let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
    Some(FieldError::not_supported("dryRun", values, &["All"]))
}

/// The field manager of a request that names none: the first word of its User-Agent.
fn manager_of_agent(agent: &str) -> String {
    let word = agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for character in word.chars().filter(|one| printable(*one)) {
        if manager.len() + character.len_utf8() > LONGEST_MANAGER {
            break;
        }
        manager.push(character);
    }
    manager
}

fn options_invalid(call: &Call, errors: &[FieldError]) -> Box<Status> {
    let kind = match call.method {
        http::Method::POST => "CreateOptions",
        http::Method::PUT => "UpdateOptions",
        _ => "PatchOptions",
    };
    Status::invalid(options(kind), errors)
}

/// The name of the options of a request, for errors.
pub(crate) fn options(kind: &str) -> About<'_> {
    About {
        group: "meta.k8s.io",
        resource: kind,
        name: "",
    }
}
