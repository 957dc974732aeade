//! Compiles declarative rules.

use entourage_api::config::declarative::{
    AggregationRule, DeclarativeRules, DependencyRule, HealthRule, NumberAt, PhaseCheck, PodTemplateRule,
    When,
};

use super::{
    Declared, Place, RuleError,
    aggregate::{Aggregation, Field},
    health::{Checks, Compare, Condition, Phase},
    mentions::{Dependency, Kind, Number, Pods, Test},
    path::Path,
};

type Result<T> = std::result::Result<T, RuleError>;

/// Compiles every rule; the first invalid one is the error.
pub(super) fn compile(rules: &DeclarativeRules) -> Result<Declared> {
    let reflection = rules.status_reflection.clone().unwrap_or_default();
    let retention = all_names(&rules.retention, "retention")?;
    for (at, names) in retention.iter().enumerate() {
        content(names, &format!("retention[{at}]"))?;
    }
    Ok(Declared {
        pods: each(&rules.pod_templates, "podTemplates", pods)?,
        containers: each(&rules.containers, "containers", |text, field| path(text, field))?,
        dependencies: each(&rules.dependencies, "dependencies", dependency)?,
        replicas: rules
            .replicas
            .as_ref()
            .map(|number| place(number, "replicas"))
            .transpose()?,
        retention,
        reflection: all_names(&reflection.paths, "statusReflection.paths")?,
        reflects_generations: reflection.generations,
        aggregation: rules.status_aggregation.as_ref().map(aggregation).transpose()?,
        health: rules.health.as_ref().map(health).transpose()?,
    })
}

fn pods(rule: &PodTemplateRule, field: &str) -> Result<Pods> {
    Ok(Pods {
        paths: paths(&rule.paths, field)?,
        name: rule.name.clone(),
        name_from: beside(rule.name_from.as_deref(), field, "nameFrom")?,
        replicas: rule
            .replicas
            .as_ref()
            .map(|at| number(at, &format!("{field}.replicas")))
            .transpose()?,
        namespace_from: beside(rule.namespace_from.as_deref(), field, "namespaceFrom")?,
        own_claims: beside(rule.own_claims.as_deref(), field, "ownClaims")?,
    })
}

fn dependency(rule: &DependencyRule, field: &str) -> Result<Dependency> {
    let kind_from = beside(rule.kind_from.as_deref(), field, "kindFrom")?;
    let kind = rule.kind.clone().filter(|kind| !kind.is_empty());
    if kind.is_none() && kind_from.is_none() {
        return wrong(
            format!("{field}.kind"),
            "the kind of the named object is missing".to_owned(),
            "give kind, or kindFrom with the path of the kind",
        );
    }
    let named: Vec<_> = rule
        .api_versions
        .iter()
        .map(|(kind, version)| (kind.clone(), version.clone()))
        .collect();
    let default = rule.api_version.clone();
    for version in named.iter().map(|(_, version)| version).chain(&default) {
        if version.is_empty() || version.matches('/').count() > 1 {
            return wrong(
                format!("{field}.apiVersion"),
                format!("{version:?} is not a group and version"),
                "write it as in a manifest: v1, apps/v1",
            );
        }
    }
    let is_known = |kind: &str| CORE.contains(&kind) || named.iter().any(|(name, _)| name == kind);
    if let Some(kind) = &kind
        && default.is_none()
        && rule.api_version_from.is_none()
        && !is_known(kind)
    {
        return wrong(
            format!("{field}.apiVersion"),
            format!("{kind} is not a kind of v1"),
            "give apiVersion",
        );
    }
    Ok(Dependency {
        paths: paths(&rule.paths, field)?,
        kind: Kind {
            default_kind: kind,
            default_version: default,
            kind_from,
            version_from: beside(rule.api_version_from.as_deref(), field, "apiVersionFrom")?,
            known: named,
        },
        namespace_from: beside(rule.namespace_from.as_deref(), field, "namespaceFrom")?,
        prefix: rule.prefix.clone(),
        suffix: rule.suffix.clone(),
        is_optional: rule.optional,
        optional_from: beside(rule.optional_from.as_deref(), field, "optionalFrom")?,
        when: each(&rule.when, &format!("{field}.when"), test)?,
    })
}

/// The kinds of v1 that objects refer to.
const CORE: &[&str] = &[
    "ConfigMap",
    "PersistentVolumeClaim",
    "Secret",
    "Service",
    "ServiceAccount",
];

fn test(rule: &When, field: &str) -> Result<Test> {
    if rule.one_of.is_empty() && rule.not_in.is_empty() && rule.exists.is_none() {
        return wrong(
            field.to_owned(),
            "the condition is missing".to_owned(),
            "give in, notIn or exists",
        );
    }
    Ok(Test {
        path: path(&rule.path, &format!("{field}.path"))?,
        one_of: rule.one_of.clone(),
        not_in: rule.not_in.clone(),
        default: rule.default.clone(),
        exists: rule.exists,
    })
}

fn aggregation(rule: &AggregationRule) -> Result<Aggregation> {
    let texts: Vec<_> = rule.fields.iter().map(|field| field.path.clone()).collect();
    let all = all_names(&texts, "statusAggregation.fields")?;
    let fields = rule.fields.iter().zip(all).map(|(field, names)| Field {
        names,
        merge: field.merge,
        bad_when_true: field.bad_when_true.clone(),
    });
    Ok(Aggregation {
        fields: fields.collect(),
        observes: rule.observed_generation,
    })
}

fn health(rule: &HealthRule) -> Result<Checks> {
    let field = |list: &str, at: usize| format!("health.{list}[{at}]");
    let mut phases = Vec::new();
    for (at, check) in rule.phases.iter().enumerate() {
        phases.push(phase(check, &field("phases", at))?);
    }
    let mut comparisons = Vec::new();
    for (at, check) in rule.comparisons.iter().enumerate() {
        comparisons.push(Compare {
            number: number(&check.number, &format!("{}.number", field("comparisons", at)))?,
            at_least: number(&check.at_least, &format!("{}.atLeast", field("comparisons", at)))?,
        });
    }
    let conditions = rule.conditions.iter().map(|check| Condition {
        type_: check.type_.clone(),
        status: check.status.clone().unwrap_or_else(|| "True".to_owned()),
        may_be_absent: check.may_be_absent,
    });
    Ok(Checks {
        observes: rule.observed_generation,
        conditions: conditions.collect(),
        phases,
        comparisons,
    })
}

fn phase(check: &PhaseCheck, field: &str) -> Result<Phase> {
    if check.healthy.is_empty() && check.unhealthy.is_empty() {
        return wrong(
            field.to_owned(),
            "it does not say what is healthy".to_owned(),
            "give healthy, unhealthy or both",
        );
    }
    Ok(Phase {
        path: path(&check.path, &format!("{field}.path"))?,
        healthy: check.healthy.clone(),
        unhealthy: check.unhealthy.clone(),
        default: check.default.clone(),
    })
}

fn number(at: &NumberAt, field: &str) -> Result<Number> {
    if at.path.is_empty() && at.default.is_none() {
        return wrong(
            field.to_owned(),
            "neither path nor default is set".to_owned(),
            "give path, default or both",
        );
    }
    Ok(Number {
        path: Some(&at.path)
            .filter(|text| !text.is_empty())
            .map(|text| path(text, &format!("{field}.path")))
            .transpose()?,
        default: at.default,
    })
}

fn place(at: &NumberAt, field: &str) -> Result<Place> {
    let field = format!("{field}.path");
    let names = names(&at.path, &field)?;
    content(&names, &field)?;
    Ok(Place {
        names,
        default: at.default,
    })
}

/// Only the content of a copy is written: its identity is not, nor fields that only its server writes.
fn content(names: &[String], field: &str) -> Result<()> {
    match names {
        [first, ..] if ["apiVersion", "kind", "metadata", "status"].contains(&first.as_str()) => wrong(
            field.to_owned(),
            format!("{first} is kept as it must be without a rule"),
            "name a field of the content, such as spec.suspend",
        ),
        _ => Ok(()),
    }
}

/// Paths of values that are written: none is within another.
fn all_names(texts: &[String], field: &str) -> Result<Vec<Vec<String>>> {
    let all = each(texts, field, |text, field| names(text, field))?;
    for (at, one) in all.iter().enumerate() {
        let lies_in = |other: &&Vec<String>| one.starts_with(other) || other.starts_with(one);
        if all[..at].iter().any(|other| lies_in(&other)) {
            return wrong(
                format!("{field}[{at}]"),
                "another path leads to it, or into it, too".to_owned(),
                "keep one of the two",
            );
        }
    }
    Ok(all)
}

fn names(text: &str, field: &str) -> Result<Vec<String>> {
    let parsed = path(text, field)?;
    match parsed.names() {
        Some(names) if !names.is_empty() => Ok(names.into_iter().map(str::to_owned).collect()),
        _ => wrong(
            field.to_owned(),
            "it has to lead to one field, which is written".to_owned(),
            "use names of members only, such as spec.replicas",
        ),
    }
}

fn paths(texts: &[String], field: &str) -> Result<Vec<Path>> {
    if texts.is_empty() {
        return wrong(
            format!("{field}.paths"),
            "there is no path".to_owned(),
            "give one at least",
        );
    }
    each(texts, &format!("{field}.paths"), |text, field| path(text, field))
}

fn beside(text: Option<&str>, field: &str, name: &str) -> Result<Option<Path>> {
    text.map(|text| path(text, &format!("{field}.{name}")))
        .transpose()
}

fn path(text: &str, field: &str) -> Result<Path> {
    Path::parse(text).or_else(|error| {
        wrong(
            field.to_owned(),
            error.to_string(),
            "write a path such as spec.list[*].name",
        )
    })
}

fn each<T, U>(list: &[T], field: &str, one: impl Fn(&T, &str) -> Result<U>) -> Result<Vec<U>> {
    let numbered = list.iter().enumerate();
    numbered
        .map(|(at, rule)| one(rule, &format!("{field}[{at}]")))
        .collect()
}

fn wrong<T>(field: String, problem: String, remedy: &'static str) -> Result<T> {
    Err(RuleError {
        field,
        problem,
        remedy,
    })
}
