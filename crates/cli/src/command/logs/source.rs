//! The logs that are shown: which containers of a pod, and how their lines are told apart.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::api::core::v1::Pod;

use crate::plain::plain;

/// The annotation by which a pod names its default container. Source: Kubernetes, well-known annotations.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The colours of the clusters, in turn: cyan, green, yellow, magenta, blue.
const COLOURS: [&str; 5] = ["36", "32", "33", "35", "34"];

/// The log of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) cluster: String,
    pub(super) pod: String,
    pub(super) container: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pod, container) = (plain(&self.pod), plain(&self.container));
        write!(f, "{}/{pod}/{container}", self.cluster)
    }
}

/// The containers of a pod whose logs are shown.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::command) struct Chosen {
    pub(in crate::command) names: Vec<String>,
    /// The choice that was made for the user.
    pub(in crate::command) note: Option<String>,
}

/// The containers that were asked for; else the default one.
pub(in crate::command) fn choose(pod: &Pod, asked: Option<&str>, all: bool) -> Chosen {
    let spec = pod.spec.as_ref();
    let containers = || {
        let all = spec.into_iter().flat_map(|spec| &spec.containers);
        all.map(|each| each.name.clone())
    };
    let chosen = |names: Vec<String>| Chosen { names, note: None };
    if let Some(asked) = asked {
        return chosen(vec![asked.to_owned()]);
    }
    if all {
        let init = spec.and_then(|spec| spec.init_containers.as_ref());
        let init = init.into_iter().flatten().map(|each| each.name.clone());
        let ephemeral = spec.and_then(|spec| spec.ephemeral_containers.as_ref());
        let ephemeral = ephemeral.into_iter().flatten().map(|each| each.name.clone());
        return chosen(init.chain(containers()).chain(ephemeral).collect());
    }
    let names: Vec<String> = containers().collect();
    let default = pod
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(DEFAULT_CONTAINER))
        .filter(|default| names.contains(default));
    match (default, names.as_slice()) {
        (Some(default), _) => chosen(vec![default.clone()]),
        (None, [first, _, ..]) => Chosen {
            note: Some(plain(&format!(
                "pod {}: container {first} of {}; -c names another one",
                pod.metadata.name.as_deref().unwrap_or_default(),
                names.join(", ")
            ))),
            names: vec![first.clone()],
        },
        (None, _) => chosen(names),
    }
}

/// The beginning of the lines of each source: empty if there is one source only. With the container, if two of a pod are shown.
pub(super) fn prefixes(sources: &[Source], colours: bool) -> Vec<String> {
    if sources.len() < 2 {
        return vec![String::new(); sources.len()];
    }
    let mut pods: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for source in sources {
        *pods.entry((&source.cluster, &source.pod)).or_default() += 1;
    }
    let with_container = pods.values().any(|count| *count > 1);
    let mut clusters: Vec<&str> = sources.iter().map(|source| &*source.cluster).collect();
    clusters.dedup();
    let prefix = |source: &Source| {
        let name = if with_container {
            source.to_string()
        } else {
            format!("{}/{}", source.cluster, plain(&source.pod))
        };
        if !colours {
            return format!("[{name}] ");
        }
        let at = clusters.iter().position(|each| *each == source.cluster);
        let colour = COLOURS[at.unwrap_or_default() % COLOURS.len()];
        format!("\u{1b}[{colour}m[{name}]\u{1b}[0m ")
    };
    sources.iter().map(prefix).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: &[&str], default: Option<&str>) -> Pod {
        let all = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
        let annotations = default.map(|name| json!({DEFAULT_CONTAINER: name}));
        serde_json::from_value(json!({
            "metadata": {"name": "web-1", "annotations": annotations},
            "spec": {"containers": all(containers), "initContainers": all(&["init"])},
        }))
        .unwrap()
    }

    #[test]
    fn the_containers_are_those_asked_for_or_the_default_one() {
        let (one, two) = (&["app"][..], &["app", "proxy"][..]);
        // containers, default, asked, all, chosen, noted
        for (containers, default, asked, all, chosen, noted) in [
            (one, None, None, false, vec!["app"], false),
            (two, None, None, false, vec!["app"], true),
            (two, Some("proxy"), None, false, vec!["proxy"], false),
            (two, Some("gone"), None, false, vec!["app"], true),
            (two, None, Some("proxy"), false, vec!["proxy"], false),
            (
                two,
                Some("proxy"),
                None,
                true,
                vec!["init", "app", "proxy"],
                false,
            ),
        ] {
            let found = choose(&pod(containers, default), asked, all);
            assert_eq!(found.names, chosen, "{containers:?} {default:?} {asked:?} {all}");
            assert_eq!(
                found.note.is_some(),
                noted,
                "{containers:?} {default:?} {asked:?} {all}"
            );
        }
    }

    #[test]
    fn lines_are_told_apart_by_what_differs() {
        let source = |cluster: &str, pod: &str, container: &str| Source {
            cluster: cluster.into(),
            pod: pod.into(),
            container: container.into(),
        };
        let one = source("m1", "web-1", "app");
        assert_eq!(prefixes(std::slice::from_ref(&one), true), [""]);
        let two = [one.clone(), source("m2", "web-1", "app")];
        assert_eq!(prefixes(&two, false), ["[m1/web-1] ", "[m2/web-1] "]);
        let three = [one, source("m1", "web-1", "proxy"), source("m2", "web-2", "app")];
        assert_eq!(
            prefixes(&three, false),
            ["[m1/web-1/app] ", "[m1/web-1/proxy] ", "[m2/web-2/app] "]
        );
        let odd = [two[0].clone(), source("m2", "web\u{1b}[2J", "app")];
        assert_eq!(prefixes(&odd, false)[1], "[m2/web\\u{1b}[2J] ");
        let coloured = prefixes(&two, true);
        assert_eq!(coloured[0], "\u{1b}[36m[m1/web-1]\u{1b}[0m ");
        assert!(coloured[1].starts_with("\u{1b}[32m"), "{coloured:?}");
    }
}
