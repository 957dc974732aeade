//! The allocations of cluster IPs and node ports: an index of the store that follows its events.
//!
//! Nothing is reserved: the writer of a Service holds the index while it writes (`Rules::hold`) and checks once more.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use serde_json::{Value, json};

use super::{HEADLESS, given, is_headless, needs_health_port, needs_ip, needs_node_ports};
use crate::{
    object::{
        Object,
        tree::{Errors, below, count, each, list, text},
    },
    random::random,
    resource::{Surroundings, stored::decode},
    status::FieldError,
    store::{Happened, Revision},
};

/// The network of cluster IPs, 10.96.0.0/16: first address, and how many there are.
const NETWORK: (u32, u32) = (0x0a60_0000, 1 << 16);

/// Node ports: the first, and how many there are.
const PORTS: (i64, i64) = (30_000, 2768);

/// Claims that are kept until the events show them.
const RECENT: usize = 64;

const TAKEN_PORT: &str = "provided port is already allocated";

/// The allocations of one Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Ip(String),
    /// Protocol and number: a number may serve several protocols of one Service.
    Port(i64),
}

/// The Service of each address and port. Cost of following: O(events of Services since the last time).
#[derive(Debug, Default)]
pub(super) struct Allocations {
    reached: Option<Revision>,
    owners: BTreeMap<Claim, String>,
    claims: BTreeMap<String, BTreeSet<Claim>>,
    /// Written by us, perhaps not yet among the events: valid as long as the store's object has it.
    recent: Vec<(Claim, String)>,
}

impl Allocations {
    /// Reads what happened since the last time; everything the first time.
    pub(super) fn catch_up(&mut self, around: &dyn Surroundings) {
        if let Some(reached) = self.reached
            && let Some((events, reached)) = around.events("services", reached)
        {
            for event in events {
                let there = event.happened != Happened::Deleted;
                let object = there.then(|| decode(&event.entry.object));
                self.change(&event.entry.key, object.as_ref());
            }
            self.reached = Some(reached);
            return;
        }
        self.owners.clear();
        self.claims.clear();
        let page = around.entries("services");
        for entry in &page.entries {
            self.change(&entry.key, Some(&decode(&entry.object)));
        }
        self.reached = Some(page.revision);
    }

    /// Gives the Service the addresses and ports it needs and has not. Problems are about those it names itself.
    pub(super) fn fill(
        &self,
        key: &str,
        spec: &mut Object,
        old: Option<&Object>,
        around: &dyn Surroundings,
    ) -> Vec<FieldError> {
        let mut errors = Errors::default();
        if needs_ip(spec) && !is_headless(spec) {
            self.fill_ip(key, spec, around, &mut errors);
        }
        if needs_node_ports(spec) || text(spec, "type") == "LoadBalancer" {
            self.fill_ports(key, spec, old.is_none(), around, &mut errors);
        }
        if needs_health_port(spec) && errors.0.is_empty() {
            match given(spec, "healthCheckNodePort") {
                Some(port) if old.and_then(|old| given(old, "healthCheckNodePort")) == Some(port) => {}
                Some(port) => self.check_port(key, port, "spec.healthCheckNodePort", around, &mut errors),
                None => match self.free_port(key, &BTreeSet::new(), around) {
                    Some(port) => {
                        spec.insert("healthCheckNodePort".to_owned(), port.into());
                    }
                    None => errors.invalid(
                        "spec.healthCheckNodePort",
                        0,
                        "failed to allocate a nodePort: range is full",
                    ),
                },
            }
        }
        errors.0
    }

    /// The errors about addresses and ports that other Services have by now; if there are none, the Service counts as written.
    pub(super) fn claim(&mut self, key: &str, spec: &Object, around: &dyn Surroundings) -> Vec<FieldError> {
        let mut errors = Errors::default();
        let claims = claims(spec);
        for claim in &claims {
            if self.is_free(key, claim, around) {
                continue;
            }
            match claim {
                Claim::Ip(ip) => taken_ip(ip, &mut errors),
                Claim::Port(port) => errors.invalid("spec.ports", *port, TAKEN_PORT),
            }
        }
        if errors.0.is_empty() {
            let excess = (self.recent.len() + claims.len()).saturating_sub(RECENT);
            self.recent.drain(..excess.min(self.recent.len()));
            self.recent
                .extend(claims.into_iter().map(|claim| (claim, key.to_owned())));
        }
        errors.0
    }

    fn change(&mut self, key: &str, service: Option<&Object>) {
        self.recent.retain(|(_, owner)| owner != key);
        for claim in self.claims.remove(key).unwrap_or_default() {
            if self.owners.get(&claim).is_some_and(|owner| owner == key) {
                self.owners.remove(&claim);
            }
        }
        let Some(service) = service else { return };
        let claims = claims(below(service, "spec"));
        for claim in &claims {
            self.owners.insert(claim.clone(), key.to_owned());
        }
        self.claims.insert(key.to_owned(), claims);
    }

    fn is_free(&self, key: &str, claim: &Claim, around: &dyn Surroundings) -> bool {
        if self.owners.get(claim).is_some_and(|owner| owner != key) {
            return false;
        }
        let has = |owner: &str| {
            let service = around.get("services", owner);
            service.is_some_and(|service| claims(below(&service, "spec")).contains(claim))
        };
        !self
            .recent
            .iter()
            .any(|(recent, owner)| recent == claim && owner != key && has(owner))
    }

    fn fill_ip(&self, key: &str, spec: &mut Object, around: &dyn Surroundings, errors: &mut Errors) {
        let named = list(spec, "clusterIPs").first().and_then(Value::as_str);
        if let Some(ip) = named.map(str::to_owned) {
            if !in_network(&ip) {
                let detail = format!(
                    "failed to allocate IP {ip}: the provided network does not match the current range"
                );
                errors.invalid("spec.clusterIPs", json!([ip]), &detail);
            } else if !self.is_free(key, &Claim::Ip(ip.clone()), around) {
                taken_ip(&ip, errors);
            }
            return;
        }
        let start = number() % (NETWORK.1 - 2);
        let ip = (0..NETWORK.1 - 2)
            // Neither the network's own address nor its broadcast address.
            .map(|step| NETWORK.0 + 1 + (start + step) % (NETWORK.1 - 2))
            .map(|address| Ipv4Addr::from_bits(address).to_string())
            .find(|ip| self.is_free(key, &Claim::Ip(ip.clone()), around));
        match ip {
            Some(ip) => {
                spec.insert("clusterIP".to_owned(), ip.clone().into());
                spec.insert("clusterIPs".to_owned(), json!([ip]));
            }
            None => errors.invalid(
                "spec.clusterIPs",
                json!([]),
                "failed to allocate a serviceIP: range is full",
            ),
        }
    }

    /// `fresh`: the Service is new.
    fn fill_ports(
        &self,
        key: &str,
        spec: &mut Object,
        fresh: bool,
        around: &dyn Surroundings,
        errors: &mut Errors,
    ) {
        let automatic = needs_node_ports(spec);
        let mut at = 0;
        let ports = || list(spec, "ports").iter().filter_map(Value::as_object);
        let asked: Vec<(i64, i64)> = ports()
            .filter_map(|port| Some((count(port, "port"), given(port, "nodePort")?)))
            .collect();
        // A port that is served in two protocols has one number.
        let mut of_port: BTreeMap<i64, i64> = BTreeMap::new();
        each(spec, "ports", |port| {
            let field = format!("spec.ports[{at}].nodePort");
            at += 1;
            let own = count(port, "port");
            let same = of_port.get(&own).copied();
            if let Some(number) = given(port, "nodePort") {
                if fresh && same != Some(number) && of_port.values().any(|taken| *taken == number) {
                    errors.invalid(field, number, TAKEN_PORT);
                } else {
                    self.check_port(key, number, &field, around, errors);
                }
                of_port.entry(own).or_insert(number);
                return;
            }
            if !automatic {
                return;
            }
            let wanted = || {
                asked
                    .iter()
                    .find(|(port, _)| *port == own)
                    .map(|(_, number)| *number)
            };
            let free = || {
                let taken = asked.iter().map(|(_, number)| number).chain(of_port.values());
                self.free_port(key, &taken.copied().collect(), around)
            };
            match same.or_else(|| wanted().filter(|_| fresh)).or_else(free) {
                Some(number) => {
                    of_port.insert(own, number);
                    port.insert("nodePort".to_owned(), number.into());
                }
                None => errors.invalid(field, 0, "failed to allocate a nodePort: range is full"),
            }
        });
    }

    fn check_port(&self, key: &str, port: i64, field: &str, around: &dyn Surroundings, errors: &mut Errors) {
        if !(PORTS.0..PORTS.0 + PORTS.1).contains(&port) {
            let detail = "provided port is not in the valid range. The range of valid ports is 30000-32767";
            errors.invalid(field, port, detail);
        } else if !self.is_free(key, &Claim::Port(port), around) {
            errors.invalid(field, port, TAKEN_PORT);
        }
    }

    fn free_port(&self, key: &str, taken: &BTreeSet<i64>, around: &dyn Surroundings) -> Option<i64> {
        let start = i64::from(number()) % PORTS.1;
        (0..PORTS.1)
            .map(|step| PORTS.0 + (start + step) % PORTS.1)
            .find(|port| !taken.contains(port) && self.is_free(key, &Claim::Port(*port), around))
    }
}

/// A dry run reserves nothing. It shows the network's own address and ports behind the range for those that were not asked for.
pub(super) fn rehearse(spec: &mut Object, asked: &Object) {
    if needs_ip(spec) && list(asked, "clusterIPs").is_empty() && text(asked, "clusterIP").is_empty() {
        let ip = Ipv4Addr::from_bits(NETWORK.0).to_string();
        spec.insert("clusterIPs".to_owned(), json!([ip]));
        spec.insert("clusterIP".to_owned(), ip.into());
    }
    let named = claims(asked);
    let ports = named.iter().filter_map(|claim| match claim {
        Claim::Port(port) => Some(*port),
        Claim::Ip(_) => None,
    });
    let mut last = ports.max().unwrap_or(PORTS.0 + PORTS.1);
    let mut shown = BTreeMap::new();
    let mut show = |object: &mut Object, field: &str| {
        if let Some(port) = given(object, field).filter(|port| !named.contains(&Claim::Port(*port))) {
            let number = *shown.entry(port).or_insert_with(|| {
                last += 1;
                last
            });
            object.insert(field.to_owned(), number.into());
        }
    };
    each(spec, "ports", |port| show(port, "nodePort"));
    show(spec, "healthCheckNodePort");
}

fn taken_ip(ip: &str, errors: &mut Errors) {
    let detail = format!("failed to allocate IP {ip}: provided IP is already allocated");
    errors.invalid("spec.clusterIPs", json!([ip]), &detail);
}

fn in_network(ip: &str) -> bool {
    ip.parse::<Ipv4Addr>()
        .is_ok_and(|ip| (NETWORK.0..NETWORK.0 + NETWORK.1).contains(&ip.to_bits()))
}

fn number() -> u32 {
    let bytes = random();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn claims(spec: &Object) -> BTreeSet<Claim> {
    let mut claims = BTreeSet::new();
    if needs_ip(spec) {
        let ips = list(spec, "clusterIPs").iter().filter_map(Value::as_str);
        claims.extend(
            ips.filter(|ip| *ip != HEADLESS)
                .map(|ip| Claim::Ip(ip.to_owned())),
        );
    }
    let ports = list(spec, "ports").iter().filter_map(Value::as_object);
    claims.extend(ports.filter_map(|port| given(port, "nodePort")).map(Claim::Port));
    claims.extend(given(spec, "healthCheckNodePort").map(Claim::Port));
    claims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{resource::stored::encode, server::tests_support::bare, store::Expect};

    fn spec(value: Value) -> Object {
        match value {
            Value::Object(spec) => spec,
            _ => Object::new(),
        }
    }

    fn node_port() -> Object {
        spec(json!({"type": "NodePort", "ports": [{"port": 80}]}))
    }

    #[test]
    fn what_a_service_has_nobody_else_gets_until_it_goes() {
        let cluster = bare();
        let mut allocations = Allocations::default();
        allocations.catch_up(&*cluster);
        let mut mine = node_port();
        assert!(allocations.fill("a/mine", &mut mine, None, &*cluster).is_empty());
        assert!(allocations.claim("a/mine", &mine, &*cluster).is_empty());
        let mut service = Object::new();
        service.insert("spec".to_owned(), Value::Object(mine.clone()));
        let written = cluster
            .store
            .put("services", "a/mine", Expect::Absent, |revision| {
                encode(service, revision)
            })
            .expect("absent");
        let mut other = mine.clone();
        // Before the events are read, and after.
        for _ in 0..2 {
            assert_eq!(allocations.fill("a/other", &mut other, None, &*cluster).len(), 2);
            assert!(
                allocations
                    .fill("a/mine", &mut mine.clone(), None, &*cluster)
                    .is_empty()
            );
            allocations.catch_up(&*cluster);
        }
        cluster
            .store
            .delete("services", "a/mine", written.revision, |_| written.object.clone())
            .expect("there");
        allocations.catch_up(&*cluster);
        assert!(
            allocations
                .fill("a/other", &mut other, None, &*cluster)
                .is_empty()
        );
    }

    #[test]
    fn a_claim_that_was_never_written_holds_nothing() {
        let cluster = bare();
        let mut allocations = Allocations::default();
        let mut mine = node_port();
        assert!(allocations.fill("a/mine", &mut mine, None, &*cluster).is_empty());
        assert!(allocations.claim("a/mine", &mine, &*cluster).is_empty());
        assert!(allocations.fill("a/other", &mut mine, None, &*cluster).is_empty());
    }

    #[test]
    fn a_dry_run_shows_what_nobody_can_have() {
        let port = |port: i64, number: Option<i64>| match number {
            Some(number) => json!({"port": port, "nodePort": number}),
            None => json!({"port": port}),
        };
        // Asked for, allocated, shown.
        let cases = [
            ([None, None], [30_001, 30_002], [32_769, 32_770]),
            ([None, None], [30_001, 30_001], [32_769, 32_769]),
            ([Some(30_007), None], [30_007, 30_008], [30_007, 30_008]),
        ];
        for (asked, given, shown) in cases {
            let ports = |numbers: [Option<i64>; 2]| json!([port(80, numbers[0]), port(81, numbers[1])]);
            let asked = spec(json!({"type": "NodePort", "ports": ports(asked)}));
            let mut service = spec(
                json!({"type": "NodePort", "clusterIP": "10.96.1.2", "clusterIPs": ["10.96.1.2"],
                "ports": ports(given.map(Some))}),
            );
            rehearse(&mut service, &asked);
            assert_eq!(service["clusterIP"], "10.96.0.0");
            assert_eq!(service["ports"], ports(shown.map(Some)));
        }
        let own = spec(json!({"clusterIP": "10.96.1.2", "clusterIPs": ["10.96.1.2"], "ports": []}));
        let mut service = own.clone();
        rehearse(&mut service, &own);
        assert_eq!(service, own);
    }

    #[test]
    fn ports_run_out_with_an_error() {
        let cluster = bare();
        let mut allocations = Allocations::default();
        for port in PORTS.0..PORTS.0 + PORTS.1 {
            allocations.owners.insert(Claim::Port(port), "a/other".to_owned());
        }
        let errors = allocations.fill("a/mine", &mut node_port(), None, &*cluster);
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["spec.ports[0].nodePort: Invalid value: 0: failed to allocate a nodePort: range is full"]
        );
    }
}
