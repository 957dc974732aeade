//! The check against escalation: a user may grant by a role or a binding only rights that it has.

use serde_json::Value;

use super::{
    User,
    rbac::{self, Index, RoleRef, Rule},
};
use crate::{
    auth::Access,
    object::Object,
    resource::Resource,
    status::{About, Result, Status},
};

/// Checks a role or binding that `user` is about to write; other kinds pass. `old`: what it replaces.
///
/// Source: the storages of RBAC in the real server; `escalate` and `bind` lift the check.
pub(crate) fn check(
    access: Access<'_>,
    user: &User,
    resource: &Resource,
    namespace: &str,
    new: &Object,
    old: Option<&Object>,
) -> Result<()> {
    if !rbac::is_rbac(&resource.group) || user.is_master() {
        return Ok(());
    }
    let field = if resource.plural.ends_with("roles") {
        "rules"
    } else {
        "roleRef"
    };
    if old.is_some_and(|old| only_collected(new, old)) {
        return Ok(());
    }
    let name = crate::object::field(new, "name");
    let index = access.rbac();
    let wanted = rbac::Wanted {
        group: &resource.group,
        resource: &resource.plural,
        name,
        namespace,
        ..rbac::Wanted::default()
    };
    let granted = if field == "rules" {
        if index
            .allows(
                user,
                &rbac::Wanted {
                    verb: "escalate",
                    ..wanted
                },
            )
            .is_some()
        {
            return Ok(());
        }
        rules(new)
    } else {
        let role = role_ref(new);
        let plural = if role.kind == "ClusterRole" {
            "clusterroles"
        } else {
            "roles"
        };
        let bind = rbac::Wanted {
            verb: "bind",
            resource: plural,
            name: &role.name,
            ..wanted
        };
        if index.allows(user, &bind).is_some() {
            return Ok(());
        }
        let Some(rules) = index.rules_of(&role, namespace) else {
            let about = About {
                group: &resource.group,
                resource: plural,
                name: &role.name,
            };
            return Err(Status::not_found(about));
        };
        rules.to_vec()
    };
    let about = About {
        group: &resource.group,
        resource: &resource.plural,
        name,
    };
    let missing = missing(&index, user, namespace, &granted);
    if missing.is_empty() {
        // A role that aggregates others may come to grant anything.
        let aggregates = aggregates(new) || old.is_some_and(aggregates);
        if aggregates && !self::missing(&index, user, "", &everything()).is_empty() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(Status::forbidden(about, why));
        }
        return Ok(());
    }
    let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        groups.join(" "),
        missing.join("\n")
    );
    Err(Status::forbidden(about, &why))
}

/// True if a change is only one of garbage collection: its author grants nothing. A change of labels is none, since other roles
/// may aggregate a role by them.
fn only_collected(new: &Object, old: &Object) -> bool {
    const OF_COLLECTION: [&str; 4] = [
        "finalizers",
        "ownerReferences",
        "managedFields",
        "resourceVersion",
    ];
    let rest = |object: &Object| {
        let mut object = object.clone();
        for field in OF_COLLECTION {
            crate::object::metadata_mut(&mut object).remove(field);
        }
        object
    };
    rest(new) == rest(old)
}

fn aggregates(role: &Object) -> bool {
    let selectors = role
        .get("aggregationRule")
        .and_then(|rule| rule.get("clusterRoleSelectors"));
    selectors
        .and_then(Value::as_array)
        .is_some_and(|all| !all.is_empty())
}

/// The rules of `cluster-admin`.
fn everything() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    let resources = Rule {
        verbs: all(),
        api_groups: all(),
        resources: all(),
        ..Rule::default()
    };
    let paths = Rule {
        verbs: all(),
        non_resource_urls: all(),
        ..Rule::default()
    };
    [resources, paths]
}

fn rules(object: &Object) -> Vec<Rule> {
    object
        .get("rules")
        .and_then(|rules| serde_json::from_value(rules.clone()).ok())
        .unwrap_or_default()
}

fn role_ref(object: &Object) -> RoleRef {
    object
        .get("roleRef")
        .and_then(|role| serde_json::from_value(role.clone()).ok())
        .unwrap_or_default()
}

/// The parts of `granted` that no rule of the user covers, put together again by group and resource, as messages list them.
fn missing(index: &Index, user: &User, namespace: &str, granted: &[Rule]) -> Vec<String> {
    let own = index.rules_for(user, namespace);
    let mut left: Vec<Rule> = Vec::new();
    for part in granted.iter().flat_map(broken_down) {
        if own.iter().any(|rule| covers(rule, &part)) {
            continue;
        }
        let same = left.iter_mut().find(|rule| {
            (
                &rule.api_groups,
                &rule.resources,
                &rule.resource_names,
                &rule.non_resource_urls,
            ) == (
                &part.api_groups,
                &part.resources,
                &part.resource_names,
                &part.non_resource_urls,
            )
        });
        match same {
            Some(rule) => rule.verbs.extend(part.verbs),
            None => left.push(part),
        }
    }
    let mut texts: Vec<String> = left.iter().map(Rule::compact).collect();
    texts.sort();
    texts
}

/// Rules with one verb, one group, one resource and one name each, or one verb and one path.
fn broken_down(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    parts.push(part);
                    continue;
                }
                parts.extend(rule.resource_names.iter().map(|name| Rule {
                    resource_names: one(name),
                    ..part.clone()
                }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        parts.extend(rule.verbs.iter().map(|verb| Rule {
            verbs: one(verb),
            non_resource_urls: one(url),
            ..Rule::default()
        }));
    }
    parts
}

/// True if a rule covers one part.
fn covers(owner: &Rule, part: &Rule) -> bool {
    let has = |list: &[String], wanted: &[String]| {
        wanted
            .iter()
            .all(|one| list.iter().any(|own| own == "*" || own == one))
    };
    let resource = |wanted: &String| {
        owner.resources.iter().any(|own| {
            own == "*"
                || own == wanted
                || own
                    .strip_prefix("*/")
                    .is_some_and(|sub| wanted.split_once('/').is_some_and(|(_, s)| s == sub))
        })
    };
    let names = owner.resource_names.is_empty()
        || (!part.resource_names.is_empty()
            && part
                .resource_names
                .iter()
                .all(|name| owner.resource_names.contains(name)));
    let url = |wanted: &String| {
        owner
            .non_resource_urls
            .iter()
            .any(|own| rbac::covers(own, wanted))
    };
    has(&owner.verbs, &part.verbs)
        && has(&owner.api_groups, &part.api_groups)
        && part.resources.iter().all(resource)
        && (part.resources.is_empty() || names)
        && part.non_resource_urls.iter().all(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(verbs: &[&str], resources: &[&str]) -> Rule {
        let list = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect();
        Rule {
            verbs: list(verbs),
            api_groups: list(&[""]),
            resources: list(resources),
            ..Rule::default()
        }
    }

    #[test]
    fn what_is_missing_is_listed_by_resource() {
        let parts = missing(
            &Index::default(),
            &User::default(),
            "n",
            &[rule(&["get", "list"], &["secrets", "configmaps"])],
        );
        assert_eq!(
            parts,
            [
                r#"{APIGroups:[""], Resources:["configmaps"], Verbs:["get" "list"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}"#,
            ]
        );
    }

    #[test]
    fn a_wider_rule_covers_a_narrower_one_and_not_the_other_way() {
        let all = rule(&["*"], &["*"]);
        let one = rule(&["get"], &["configmaps"]);
        assert!(covers(&all, &one));
        assert!(!covers(&one, &all));
        let named = Rule {
            resource_names: vec!["a".into()],
            ..one.clone()
        };
        assert!(covers(&one, &named));
        assert!(!covers(&named, &one));
    }
}
