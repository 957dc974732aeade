//! RBAC rules that grant more than others: an account that is joined again keeps its earlier rights.

use serde_json::{Value, json};

/// `wanted` with the further grants of `held`, as rules; and these grants in words, empty if there are none.
#[must_use]
pub fn merged(wanted: &Value, held: &Value) -> (Value, Vec<String>) {
    let mut rules = wanted.as_array().cloned().unwrap_or_default();
    let mut words: Vec<String> = Vec::new();
    for rule in held.as_array().into_iter().flatten() {
        let Some((beyond, named)) = beyond(rule, &rules) else {
            continue;
        };
        words.extend(named);
        rules.push(beyond);
    }
    words.sort();
    words.dedup();
    (Value::Array(rules), words)
}

/// The part of a rule that others do not grant: its resources, or paths, that are not covered, with all of its verbs.
fn beyond(rule: &Value, others: &[Value]) -> Option<(Value, Vec<String>)> {
    let (names, verbs) = (strings(rule, "resourceNames"), strings(rule, "verbs"));
    let lacks = |grant: &dyn Fn(&str) -> Grant| verbs.iter().any(|verb| !is_granted(&grant(verb), others));
    let paths: Vec<String> = strings(rule, "nonResourceURLs")
        .into_iter()
        .filter(|path| lacks(&|verb| Grant::Path(path.clone(), verb.to_owned())))
        .collect();
    if !paths.is_empty() {
        return Some((json!({"nonResourceURLs": paths, "verbs": verbs}), paths));
    }
    let (groups, resources) = (strings(rule, "apiGroups"), strings(rule, "resources"));
    let group_lacks = |group: &str, resource: &str| {
        lacks(&|verb| Grant::Resource {
            group: group.to_owned(),
            resource: resource.to_owned(),
            names: names.clone(),
            verb: verb.to_owned(),
        })
    };
    let left: Vec<String> = resources
        .into_iter()
        .filter(|resource| groups.iter().any(|group| group_lacks(group, resource)))
        .collect();
    if left.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    for group in &groups {
        for resource in left.iter().filter(|resource| group_lacks(group, resource)) {
            words.push(match (group.as_str(), resource.as_str()) {
                ("*", "*") => "everything".to_owned(),
                ("", resource) => resource.to_owned(),
                (group, resource) => format!("{group}/{resource}"),
            });
        }
    }
    let mut rule = json!({"apiGroups": groups, "resources": left, "verbs": verbs});
    if !names.is_empty() {
        rule["resourceNames"] = json!(names);
    }
    Some((rule, words))
}

/// One verb on one resource or path.
enum Grant {
    Resource {
        group: String,
        resource: String,
        /// Empty for all objects.
        names: Vec<String>,
        verb: String,
    },
    Path(String, String),
}

fn is_granted(grant: &Grant, rules: &[Value]) -> bool {
    rules.iter().any(|rule| match grant {
        Grant::Resource {
            group,
            resource,
            names,
            verb,
        } => {
            let of = strings(rule, "resourceNames");
            let for_names = of.is_empty() || !names.is_empty() && names.iter().all(|name| of.contains(name));
            for_names
                && has(rule, "apiGroups", group)
                && has(rule, "resources", resource)
                && has(rule, "verbs", verb)
        }
        Grant::Path(path, verb) => {
            let covers = |url: &String| {
                url == path || url.strip_suffix('*').is_some_and(|start| path.starts_with(start))
            };
            strings(rule, "nonResourceURLs").iter().any(covers) && has(rule, "verbs", verb)
        }
    })
}

fn has(rule: &Value, field: &str, wanted: &str) -> bool {
    strings(rule, field)
        .iter()
        .any(|each| each == wanted || each == "*")
}

fn strings(rule: &Value, field: &str) -> Vec<String> {
    let items = rule[field].as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::rights, *};

    fn of(text: &str) -> Value {
        let extras: Vec<_> = text
            .split(',')
            .filter(|each| !each.is_empty())
            .map(|each| rights::extra(each).unwrap())
            .collect();
        rights::rules(&extras)
    }

    #[test]
    fn what_was_given_before_stays_and_is_named_and_a_further_join_finds_it_as_it_is() {
        let cases = [
            ("", "", vec![]),
            ("namespaces", "", vec!["namespaces"]),
            ("", "namespaces", vec![]),
            (
                "namespaces,networking.k8s.io/networkpolicies",
                "networking.k8s.io/networkpolicies",
                vec!["namespaces"],
            ),
            ("x.io/a", "y.io/b", vec!["x.io/a"]),
        ];
        for (before, now, kept) in cases {
            let (rules, words) = merged(&of(now), &of(before));
            assert_eq!(words, kept, "{before:?} then {now:?}");
            // No grant is lost, and the next run adds none.
            assert_eq!(merged(&rules, &of(before)).1, [""; 0]);
            assert_eq!(merged(&rules, &of(now)).1, [""; 0]);
            assert_eq!(
                merged(&of(now), &rules),
                (rules.clone(), words),
                "{before:?} then {now:?} twice"
            );
        }
    }

    #[test]
    fn an_administrator_stays_one_and_other_rules_by_hand_stay_as_they_are() {
        let (rules, words) = merged(&of(""), &rights::everything());
        assert_eq!(words, ["*", "everything"]);
        assert_eq!(merged(&rights::everything(), &rules).1, [""; 0]);
        let own = json!([
            {"apiGroups": [""], "resources": ["nodes", "pods"], "resourceNames": ["n"], "verbs": ["get"]},
            {"nonResourceURLs": ["/metrics", "/api/x"], "verbs": ["get"]},
        ]);
        let (rules, words) = merged(&of(""), &own);
        assert_eq!(words, ["/metrics", "nodes"]);
        let all = rules.as_array().unwrap();
        assert_eq!(
            all[all.len() - 2],
            json!({"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["n"], "verbs": ["get"]})
        );
        assert_eq!(
            all[all.len() - 1],
            json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})
        );
    }

    #[test]
    fn nothing_held_is_what_is_wanted() {
        assert_eq!(merged(&of(""), &Value::Null), (of(""), vec![]));
    }
}
