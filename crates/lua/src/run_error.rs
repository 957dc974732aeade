//! The error of a script that failed while it ran: the limit that it reached, or what Lua says of it.

use crate::{
    budget::{Budget, Reached},
    error::{ScriptError, brief, line_of, root, shown},
};

/// The error of a call, from what the virtual machine reports.
pub(crate) fn of_run(script: &str, source: &str, budget: &Budget, error: &mlua::Error) -> ScriptError {
    let script = script.to_owned();
    let is_memory = root(error).is_some_and(|root| matches!(root, mlua::Error::MemoryError(_)));
    let reached = budget.reached().or(is_memory.then_some(Reached::Memory));
    let line = line_of(error, source);
    match reached {
        Some(Reached::Time) => ScriptError::Time {
            script,
            line: budget.line().or(line),
            after: budget.limits().time,
        },
        Some(Reached::Instructions) => ScriptError::Instructions {
            script,
            line: budget.line().or(line),
            count: budget.limits().instructions,
        },
        Some(Reached::Memory) => ScriptError::Memory {
            script,
            line: budget.line().or(line),
            bytes: budget.limits().memory,
        },
        None => ScriptError::Failed {
            script,
            line,
            what: brief(shown(error, source)),
        },
    }
}
