//! The fields of messages, from `fields.txt`: their numbers in protocol buffers, and their order in the Go types.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

/// Fields of a message by number.
pub(crate) type Numbers = BTreeMap<u64, Field>;

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Named(&'static str),
    /// The message whose fields stand in its place.
    Inlined(&'static str),
    /// A list that has a message of its own around it. Only answers have such.
    Wrapped(&'static str),
}

/// The table: a message a line, its fields in the order of their numbers; `=7` goes on at 7, `+` inlines a message, `*`
/// wraps a list.
pub(crate) static TABLE: LazyLock<HashMap<&'static str, Numbers>> =
    LazyLock::new(|| include_str!("fields.txt").lines().filter_map(line).collect());

pub(crate) const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.";
pub(crate) const AGGREGATOR: &str = "io.k8s.kube-aggregator.pkg.apis.";

/// Fields that the Go types have beside others, although their numbers are later: messages, the field before, the fields.
const BESIDE: &[(&[&str], &str, &[&str])] = &[
    (&["core.v1.PodSpec"], "volumes", &["initContainers"]),
    (&["core.v1.PodSpec"], "containers", &["ephemeralContainers"]),
    (
        &["core.v1.PodSpec"],
        "serviceAccount",
        &["automountServiceAccountToken"],
    ),
    (&["core.v1.PodSpec"], "hostIPC", &["shareProcessNamespace"]),
    (CONTAINERS, "ports", &["envFrom"]),
    (
        CONTAINERS,
        "resources",
        &["resizePolicy", "restartPolicy", "restartPolicyRules"],
    ),
    (CONTAINERS, "volumeMounts", &["volumeDevices"]),
    (CONTAINERS, "readinessProbe", &["startupProbe"]),
    (
        CONTAINERS,
        "terminationMessagePath",
        &["terminationMessagePolicy"],
    ),
];

const CONTAINERS: &[&str] = &["core.v1.Container", "core.v1.EphemeralContainerCommon"];

fn line(line: &'static str) -> Option<(&'static str, Numbers)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let mut next = 1;
    let mut numbers = Numbers::new();
    for word in words {
        if let Some(number) = word.strip_prefix('=') {
            next = number.parse().ok()?;
            continue;
        }
        let field = match (word.strip_prefix('+'), word.strip_prefix('*')) {
            (Some(message), _) => Field::Inlined(message),
            (_, Some(list)) => Field::Wrapped(list),
            _ => Field::Named(word),
        };
        numbers.insert(next, field);
        next += 1;
    }
    Some((name, numbers))
}

/// The name of a definition in the table.
fn short(definition: &str) -> Option<&str> {
    let prefixes = [
        "io.k8s.api.",
        "io.k8s.apimachinery.pkg.apis.",
        EXTENSIONS,
        AGGREGATOR,
    ];
    prefixes.iter().find_map(|prefix| definition.strip_prefix(prefix))
}

/// The numbers of a definition's fields.
pub(crate) fn numbers(definition: &str) -> Option<&'static Numbers> {
    TABLE.get(short(definition)?)
}

/// The fields of a definition in the order in which Go writes them; empty for one that is not in the table.
pub(crate) fn in_order(definition: &str) -> Vec<&'static str> {
    short(definition).map(fields).unwrap_or_default()
}

fn fields(message: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for field in TABLE.get(message).into_iter().flat_map(BTreeMap::values) {
        match field {
            Field::Named(name) | Field::Wrapped(name) => names.push(name),
            Field::Inlined(inner) => names.extend(fields(inner)),
        }
    }
    for (_, before, moved) in BESIDE.iter().filter(|(of, ..)| of.contains(&message)) {
        names.retain(|name| !moved.contains(name));
        let at = names
            .iter()
            .position(|name| name == before)
            .map_or(0, |at| at + 1);
        names.splice(at..at, moved.iter().copied());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_fields_is_that_of_the_go_types() {
        for (definition, first) in [
            (
                "io.k8s.api.core.v1.PodSpec",
                "volumes initContainers containers ephemeralContainers restartPolicy",
            ),
            (
                "io.k8s.api.core.v1.EphemeralContainer",
                "name image command args workingDir ports envFrom env resources resizePolicy",
            ),
            (
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
                "name generateName namespace selfLink uid",
            ),
            ("io.k8s.api.core.v1.Nothing", ""),
        ] {
            let order = in_order(definition).join(" ");
            assert!(order.starts_with(first), "{definition}: {order}");
        }
    }

    #[test]
    fn every_moved_field_is_one_of_its_message() {
        for (messages, before, moved) in BESIDE {
            for message in *messages {
                let names = TABLE[message].values();
                for name in moved.iter().chain([before]) {
                    assert!(
                        names.clone().any(|field| *field == Field::Named(name)),
                        "{message}.{name}"
                    );
                }
            }
        }
    }
}
