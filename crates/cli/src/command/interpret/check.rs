//! Whether customizations are right: each rule is compiled, and whoever else has its operation is named.

use std::{collections::BTreeMap, io::Write, process::ExitCode};

use anyhow::Result;
use entourage_core::interpreter::{customized, operations::Operation};
use entourage_lua::Lua;

use super::Given;

/// The operations in the order that users of Karmada see them, and their names.
const OPERATIONS: [(Operation, &str); 8] = [
    (Operation::Retain, "Retain"),
    (Operation::Replicas, "InterpretReplica"),
    (Operation::Components, "InterpretComponent"),
    (Operation::Revise, "ReviseReplica"),
    (Operation::Reflect, "InterpretStatus"),
    (Operation::Aggregate, "AggregateStatus"),
    (Operation::Health, "InterpretHealth"),
    (Operation::References, "InterpretDependency"),
];

/// Says for each operation of each customization whether its rule is right; 1 when one is not.
pub(super) fn run(given: &[Given], out: &mut impl Write) -> Result<ExitCode> {
    let mut wrong = false;
    let mut holders: BTreeMap<(&str, &str, Operation), &str> = BTreeMap::new();
    for each in given {
        let target = &each.customization.spec.target;
        let name = each.customization.metadata.name.as_deref().unwrap_or_default();
        writeln!(out, "-----------------------------------")?;
        writeln!(out, "SOURCE: {}", each.origin)?;
        writeln!(out, "TARGET: {} {}", target.api_version, target.kind)?;
        writeln!(out, "RULERS:")?;
        let checked = customized::check(&each.customization, &Lua::default());
        for (operation, title) in OPERATIONS {
            let key = (&*target.api_version, &*target.kind, operation);
            let word = match checked.get(&operation) {
                None => "UNSET".to_owned(),
                Some(Err(why)) => format!("ERROR: {why}"),
                // Dependencies of several add up.
                Some(Ok(())) if operation == Operation::References => "PASS".to_owned(),
                Some(Ok(())) => match holders.insert(key, name) {
                    None => "PASS".to_owned(),
                    Some(other) => {
                        format!("ERROR: {other:?} has it for this kind, too; take it out of one of them")
                    }
                },
            };
            wrong |= word.starts_with("ERROR");
            writeln!(out, "    {:<23} {word}", format!("{title}:"))?;
        }
    }
    Ok(ExitCode::from(u8::from(wrong)))
}
