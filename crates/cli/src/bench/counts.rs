//! The requests to an API server, from its own counter `apiserver_request_total`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::kind::Kind;

/// A kind of request, as the server counts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION, GET, LIST or WATCH.
    pub verb: String,
    /// API group, empty for the core group.
    pub group: String,
    /// Plural of the kind.
    pub resource: String,
    /// For example `status`, or empty.
    pub subresource: String,
}

/// The number of each kind of request.
pub type Counts = BTreeMap<Request, u64>;

/// The class of a request in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Write,
    Read,
    Watch,
    Event,
    Lease,
    /// Requests of API servers and their controller managers themselves, also without any control plane.
    Upkeep,
}

/// Resources that API servers and their controller managers write themselves: each new namespace gets a ServiceAccount and a
/// ConfigMap, the server refreshes its own Endpoints, and so on.
const UPKEEP: &[&str] = &[
    "apiservices.apiregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "serviceaccounts",
    "services",
];

/// Requests to some servers during some time, without the bench's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Writes of objects: their sum.
    pub writes: u64,
    /// GETs and LISTs of objects: their sum.
    pub reads: u64,
    /// Watches that ended; a server counts a watch when it ends.
    pub watches_ended: u64,
    /// Writes of Events.
    pub events: u64,
    /// Writes of Leases.
    pub leases: u64,
    /// Writes of API servers and their controller managers themselves.
    pub upkeep: u64,
    /// Writes by verb and resource, such as `PUT resourcebindings.work.karmada.io/status`.
    pub writes_by: BTreeMap<String, u64>,
    /// Reads by verb and resource.
    pub reads_by: BTreeMap<String, u64>,
}

impl Request {
    /// A request for a kind of the bench.
    #[must_use]
    pub fn of(verb: &str, kind: Kind, subresource: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            group: kind.group().to_owned(),
            resource: kind.plural().to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    fn resource_and_group(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn class(&self) -> Class {
        match (self.verb.as_str(), self.resource.as_str()) {
            ("WATCH" | "WATCHLIST" | "CONNECT", _) => Class::Watch,
            ("GET" | "LIST", _) => Class::Read,
            (_, "events") => Class::Event,
            (_, "leases") => Class::Lease,
            _ if UPKEEP.contains(&self.resource_and_group().as_str()) => Class::Upkeep,
            _ => Class::Write,
        }
    }

    fn label(&self) -> String {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        format!(
            "{} {}{slash}{}",
            self.verb,
            self.resource_and_group(),
            self.subresource
        )
    }
}

/// Reads the counter from a server's `/metrics`, summed over codes, scopes and versions. Requests without a resource
/// (health, metrics, discovery) are left out, and so are dry runs.
#[must_use]
pub fn parse(metrics: &str) -> Counts {
    let mut counts = Counts::new();
    for line in metrics.lines() {
        let Some(rest) = line.strip_prefix("apiserver_request_total{") else {
            continue;
        };
        let Some((labels, value)) = split(rest) else {
            continue;
        };
        let text = |name: &str| labels.get(name).map_or("", String::as_str).to_owned();
        let request = Request {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
        };
        if !request.resource.is_empty() && text("dry_run").is_empty() {
            *counts.entry(request).or_default() += value;
        }
    }
    counts
}

/// The requests between two readings, less those of the caller itself.
#[must_use]
pub fn between(before: &Counts, after: &Counts, own: &Counts) -> Counts {
    let less = |request: &Request, count: u64| {
        let earlier = before.get(request).copied().unwrap_or_default();
        let own = own.get(request).copied().unwrap_or_default();
        count.saturating_sub(earlier).saturating_sub(own)
    };
    let rest = after
        .iter()
        .map(|(request, count)| (request.clone(), less(request, *count)));
    rest.filter(|(_, count)| *count > 0).collect()
}

/// The number of requests that are writes of objects: no Events, Leases or upkeep.
#[must_use]
pub fn object_writes(counts: &Counts) -> u64 {
    counts
        .iter()
        .filter(|(request, _)| request.class() == Class::Write)
        .map(|(_, count)| count)
        .sum()
}

impl Requests {
    /// Adds the requests of one server.
    pub fn add(&mut self, counts: &Counts) {
        for (request, count) in counts {
            match request.class() {
                Class::Write => {
                    self.writes += count;
                    *self.writes_by.entry(request.label()).or_default() += count;
                }
                Class::Read => {
                    self.reads += count;
                    *self.reads_by.entry(request.label()).or_default() += count;
                }
                Class::Watch => self.watches_ended += count,
                Class::Event => self.events += count,
                Class::Lease => self.leases += count,
                Class::Upkeep => self.upkeep += count,
            }
        }
    }
}

/// The labels and the value of a sample, without its name and opening brace.
fn split(rest: &str) -> Option<(BTreeMap<String, String>, u64)> {
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    loop {
        if let Some(end) = rest.strip_prefix('}') {
            let value: f64 = end.split_whitespace().next()?.parse().ok()?;
            // Counters are whole and far below 2^53.
            return (value >= 0.0).then_some((labels, value as u64));
        }
        let (name, after) = rest.trim_start_matches(',').split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.insert(name.trim().to_owned(), value);
        rest = after;
    }
}

/// A label's value up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"
# HELP apiserver_request_total Counter of requests
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 3
apiserver_request_total{code="200",component="",dry_run="",group="",resource="",subresource="/readyz",verb="GET",version=""} 39
apiserver_request_duration_seconds_count{resource="configmaps",verb="POST"} 77
"#;
    const AFTER: &str = r#"
apiserver_request_total{code="201",group="",resource="configmaps",subresource="",verb="POST"} 10
apiserver_request_total{code="409",group="",resource="configmaps",subresource="",verb="POST"} 1
apiserver_request_total{code="201",dry_run="All",group="",resource="configmaps",subresource="",verb="POST"} 5
apiserver_request_total{code="200",group="work.karmada.io",resource="resourcebindings",subresource="status",verb="PUT"} 1.5e+1
apiserver_request_total{code="201",group="",resource="events",subresource="",verb="POST"} 2
apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"} 4
apiserver_request_total{code="200",group="",resource="endpoints",subresource="",verb="PUT"} 6
apiserver_request_total{code="200",group="apps",resource="deployments",subresource="",verb="GET"} 8
apiserver_request_total{code="0",group="apps",resource="deployments",subresource="",verb="WATCH"} 9
apiserver_request_total{broken
"#;

    #[test]
    fn codes_are_summed_and_requests_without_a_resource_left_out() {
        let counts = parse(BEFORE);
        assert_eq!(
            counts.into_iter().collect::<Vec<_>>(),
            [(Request::of("POST", Kind::ConfigMap, ""), 3)]
        );
        assert_eq!(parse(AFTER)[&Request::of("POST", Kind::ConfigMap, "")], 11);
    }

    #[test]
    fn what_the_bench_did_itself_is_not_counted() {
        let own = Counts::from([(Request::of("POST", Kind::ConfigMap, ""), 6)]);
        let rest = between(&parse(BEFORE), &parse(AFTER), &own);
        assert_eq!(rest[&Request::of("POST", Kind::ConfigMap, "")], 2);
        assert_eq!(object_writes(&rest), 17);
    }

    #[test]
    fn events_leases_upkeep_reads_and_watches_are_distinguished() {
        let mut requests = Requests::default();
        requests.add(&between(&parse(BEFORE), &parse(AFTER), &Counts::new()));
        let Requests {
            writes,
            reads,
            watches_ended,
            events,
            leases,
            upkeep,
            writes_by,
            reads_by,
        } = requests;
        assert_eq!(
            (writes, reads, watches_ended, events, leases, upkeep),
            (23, 8, 9, 2, 4, 6)
        );
        assert_eq!(writes_by["PUT resourcebindings.work.karmada.io/status"], 15);
        assert_eq!(reads_by["GET deployments.apps"], 8);
    }

    #[test]
    fn label_values_may_hold_quotes_and_braces() {
        let (labels, value) = split(r#"a="x\"}y",b=""} 7"#).unwrap();
        assert_eq!(
            (labels["a"].as_str(), labels["b"].as_str(), value),
            ("x\"}y", "", 7)
        );
    }
}
