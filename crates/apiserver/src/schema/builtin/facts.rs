//! The facts about fields that the generated types lack, read from `facts.txt`.

use std::{collections::BTreeMap, sync::LazyLock};

type Fields = BTreeMap<&'static str, Vec<&'static str>>;

static FACTS: LazyLock<BTreeMap<String, Fields>> = LazyLock::new(|| {
    let mut facts: BTreeMap<String, Fields> = BTreeMap::new();
    for line in include_str!("facts.txt").lines() {
        let mut words = line.split_whitespace();
        let Some(owner) = words.next().filter(|word| *word != "#") else {
            continue;
        };
        let fields = facts.entry(full(owner)).or_default();
        for word in words {
            let (field, flags) = word.split_once('=').unwrap_or((word, ""));
            // A default is one flag, whatever it holds.
            let flags = if flags.starts_with('=') {
                vec![flags]
            } else {
                flags.split('/').collect()
            };
            fields.entry(field).or_default().extend(flags);
        }
    }
    facts
});

/// The facts about a field of a definition; `.` is the definition itself.
pub(super) fn of(owner: &str, field: &str) -> &'static [&'static str] {
    FACTS
        .get(owner)
        .and_then(|fields| fields.get(field))
        .map_or(&[], Vec::as_slice)
}

/// Every definition and field that the table names.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FACTS
        .iter()
        .flat_map(|(owner, fields)| fields.keys().map(move |field| (owner.as_str(), *field)))
}

/// The full name of a definition: `core.v1.Pod` is `io.k8s.api.core.v1.Pod`.
fn full(short: &str) -> String {
    let prefix = match short.split('.').next() {
        Some("meta") => "io.k8s.apimachinery.pkg.apis",
        Some("apiextensions") => "io.k8s.apiextensions-apiserver.pkg.apis",
        Some("apiregistration") => "io.k8s.kube-aggregator.pkg.apis",
        _ => "io.k8s.api",
    };
    format!("{prefix}.{short}")
}
