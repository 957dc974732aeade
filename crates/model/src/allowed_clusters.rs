//! Allow-lists of clusters: where the Secrets of a namespace, or a single Secret, may be propagated to.
//!
//! The value of [`annotation::SECRETS_TO`] is a list with commas. Each entry is the name of a Cluster (`member1`), or labels that a
//! Cluster must have (`env=prod`, or several: `env=prod&region=eu`). A cluster that any entry describes is on the list. The empty
//! value lists no cluster.
//!
//! [`annotation::SECRETS_TO`]: entourage_api::keys::annotation::SECRETS_TO

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    object::{Str, StrMap},
    problem::is_subdomain,
    selector,
};

/// A list of clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllowedClusters {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Name(Str),
    Labels(LabelSelector),
}

impl AllowedClusters {
    /// Reads a list. Cost: O(length).
    ///
    /// # Errors
    /// The first entry that is neither a name nor labels, and the cause.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let entries = text.split(',').map(|entry| read_entry(entry.trim()));
        Ok(Self {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// True if a cluster with this name and these labels is on the list. Cost: O(entries × labels).
    #[must_use]
    pub fn allows(&self, cluster: &str, labels: &StrMap) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::Name(name) => **name == *cluster,
            Entry::Labels(wanted) => selector::matches(wanted, labels),
        })
    }

    /// True if the labels of Clusters matter.
    #[must_use]
    pub fn reads_labels(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Labels(_)))
    }
}

fn read_entry(entry: &str) -> Result<Entry, String> {
    if entry.is_empty() {
        return Err("an entry is empty: remove the comma".into());
    }
    if !entry.contains('=') {
        let name = || Entry::Name(entry.into());
        let why = || format!("{entry:?} is neither the name of a cluster nor a label like env=prod");
        return is_subdomain(entry).then(name).ok_or_else(why);
    }
    let mut labels = LabelSelector::default();
    for pair in entry.split('&') {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(format!("{pair:?} in {entry:?} is no label like env=prod"));
        };
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        let wanted = labels.match_labels.get_or_insert_default();
        if wanted.insert(key.clone(), value).is_some() {
            return Err(format!("{entry:?} has two values of the label {key:?}"));
        }
    }
    selector::check(&labels).map_err(|why| format!("{entry:?} is no label like env=prod: {why}"))?;
    Ok(Entry::Labels(labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> StrMap {
        let pair = |(key, value): &(&str, &str)| (Str::from(*key), Str::from(*value));
        pairs.iter().map(pair).collect()
    }

    /// A list, the labels of the cluster, and the result.
    type Case<'a> = (&'static str, &'a [(&'static str, &'static str)], bool);

    #[test]
    fn a_cluster_is_on_the_list_by_its_name_or_by_all_labels_of_an_entry() {
        let prod = [("env", "prod"), ("region", "eu")];
        let table: [Case<'_>; 13] = [
            ("", &prod, false),
            ("  ", &prod, false),
            ("member1", &[], true),
            (" member2 , member1 ", &[], true),
            ("member", &[], false),
            ("member11", &[], false),
            ("env=prod", &prod, true),
            ("env=prod", &[], false),
            ("env=dev", &prod, false),
            ("env=prod&region=eu", &prod, true),
            ("env=prod & region=us", &prod, false),
            ("env=prod&region=us,member1", &prod, true),
            ("env=", &[("env", "")], true),
        ];
        for (text, has, allowed) in table {
            let list = AllowedClusters::read(text).unwrap();
            assert_eq!(list.allows("member1", &labels(has)), allowed, "{text:?}");
            assert_eq!(list.reads_labels(), text.contains('='), "{text:?}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_names_its_entry() {
        let table = [
            ("*", "\"*\""),
            ("member1,", "empty"),
            (",", "empty"),
            ("member1 member2", "member1 member2"),
            ("Member1", "Member1"),
            ("env==prod", "env==prod"),
            ("env!=prod", "env!=prod"),
            ("env in (prod)", "env in (prod)"),
            ("env=prod&region", "region"),
            ("env=prod&env=dev", "two values"),
            ("=prod", "=prod"),
            ("member1,env=a b", "env=a b"),
        ];
        for (text, named) in table {
            let why = AllowedClusters::read(text).unwrap_err();
            assert!(why.contains(named), "{text:?}: {why}");
        }
    }
}
