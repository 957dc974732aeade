//! Validation of customizations and webhooks: each rule is compiled, and other holders of its operation are named; for each
//! webhook its configuration is checked. No webhook is called.

use std::{collections::BTreeMap, io::Write, process::ExitCode};

use anyhow::Result;
use entourage_admission::{self as admission, Request, Settings};
use entourage_api::config::ResourceInterpreterCustomization;
use entourage_core::interpreter::{customized, hook::Hook, operations::Operation};
use entourage_lua::Lua;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

use super::given::{Configuration, Given, Read};

/// The operations in Karmada's order, with their names.
pub(super) const OPERATIONS: [(Operation, &str); 8] = [
    (Operation::Retain, "Retain"),
    (Operation::Replicas, "InterpretReplica"),
    (Operation::Components, "InterpretComponent"),
    (Operation::Revise, "ReviseReplica"),
    (Operation::Reflect, "InterpretStatus"),
    (Operation::Aggregate, "AggregateStatus"),
    (Operation::Health, "InterpretHealth"),
    (Operation::References, "InterpretDependency"),
];

/// The group of the configurations.
const GROUP: &str = "config.karmada.io";

/// Reports the result of each check. Returns 1 if one failed.
pub(super) fn run(given: &Given, out: &mut impl Write) -> Result<ExitCode> {
    let mut wrong = customizations(&given.customizations, out)?;
    for each in &given.configurations {
        wrong |= configuration(each, out)?;
    }
    Ok(ExitCode::from(u8::from(wrong)))
}

/// Reports for each operation of each customization if its rule is valid. Returns true if one is not.
fn customizations(given: &[Read<ResourceInterpreterCustomization>], out: &mut impl Write) -> Result<bool> {
    let mut wrong = false;
    let mut holders: BTreeMap<(&str, &str, Operation), &str> = BTreeMap::new();
    for each in given {
        let target = &each.object.spec.target;
        let name = each.object.metadata.name.as_deref().unwrap_or_default();
        writeln!(out, "-----------------------------------")?;
        writeln!(out, "SOURCE: {}", each.origin)?;
        writeln!(out, "TARGET: {} {}", target.api_version, target.kind)?;
        writeln!(out, "RULERS:")?;
        let checked = customized::check(&each.object, &Lua::default());
        for (operation, title) in OPERATIONS {
            let key = (&*target.api_version, &*target.kind, operation);
            let word = match checked.get(&operation) {
                None => "UNSET".to_owned(),
                Some(Err(why)) => format!("ERROR: {why}"),
                // Dependencies of several customizations are added up.
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
    Ok(wrong)
}

/// Reports for each webhook of a configuration if it can be called, with valid rules. Returns true if one cannot.
fn configuration(given: &Read<Configuration>, out: &mut impl Write) -> Result<bool> {
    let configuration = &given.object;
    let refused = refused(configuration);
    let mut wrong = false;
    for (at, hook) in configuration.hooks.iter().enumerate() {
        writeln!(out, "-----------------------------------")?;
        writeln!(out, "SOURCE: {}", given.origin)?;
        writeln!(out, "HOOK: {}", hook.layer())?;
        let entry = &configuration.value["webhooks"][at];
        let (of_it, its_name) = (format!("webhooks[{at}]."), format!("webhooks[{at}].name"));
        let (name, other): (Vec<_>, Vec<_>) = refused
            .iter()
            .filter(|problem| problem.field.starts_with(&of_it))
            .partition(|problem| problem.field == its_name);
        let first = |problems: &[&admission::Problem]| problems.first().map(ToString::to_string);
        let lines = [
            ("Name", first(&name)),
            ("Call", call(hook).or_else(|| first(&other))),
            ("Operations", operations(configuration, entry)),
        ];
        for (title, problem) in lines {
            wrong |= problem.is_some();
            let word = problem.map_or_else(|| "PASS".to_owned(), |why| format!("ERROR: {why}"));
            writeln!(out, "    {:<23} {word}", format!("{title}:"))?;
        }
    }
    Ok(wrong)
}

/// The errors for which the hub would refuse it.
fn refused(configuration: &Configuration) -> Vec<admission::Problem> {
    let request = Request {
        group: GROUP,
        kind: configuration.contract.configuration(),
        namespace: "",
        name: configuration.value["metadata"]["name"]
            .as_str()
            .unwrap_or_default(),
        operation: admission::Operation::Create,
        object: Some(&configuration.value),
        old: None,
        others: &[],
        settings: Settings {
            allow_no_execute: true,
            kinds_per_namespace: None,
            selectors_per_policy: None,
            scripts: None,
        },
    };
    admission::validate(&request)
        .err()
        .map_or_else(Vec::new, |refusal| refusal.problems)
}

fn call(hook: &Hook) -> Option<String> {
    let call = match hook.call() {
        Ok(call) => call,
        Err(wrong) => return Some(wrong.to_string()),
    };
    let bundle = call.ca_bundle.as_ref()?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
    let is_right = certificates.is_ok_and(|all| !all.is_empty());
    (!is_right).then(|| {
        "clientConfig.caBundle contains no valid certificate; give certificates in PEM, in base64".to_owned()
    })
}

/// The operation in its rules that does not exist, or the error that they name none; `None` if they are valid.
fn operations(configuration: &Configuration, entry: &serde_json::Value) -> Option<String> {
    let contract = configuration.contract;
    let rules = entry["rules"].as_array().map_or(&[][..], Vec::as_slice);
    let named = rules
        .iter()
        .flat_map(|rule| rule["operations"].as_array().into_iter().flatten());
    let mut words = named.filter_map(|word| word.as_str()).peekable();
    if words.peek().is_none() {
        return Some("no rule names an operation: the hook is never called; add one to its rules".to_owned());
    }
    let unknown = words.find(|word| *word != "*" && contract.operation(word).is_none())?;
    let all = OPERATIONS
        .iter()
        .filter_map(|(operation, _)| contract.word(*operation))
        .collect::<Vec<_>>();
    Some(format!(
        "unknown operation {unknown:?}; use {}, or *",
        all.join(", ")
    ))
}
