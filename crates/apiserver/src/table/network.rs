//! Services and what is behind and before them.

use serde_json::Value;

use super::{
    Printer,
    column::{AGE, NAME, text, wide},
    view::{NONE, UNSET, View, or_none, some_of},
};

/// Addresses, ports and hosts that a cell shows.
const SHOWN: usize = 3;

pub(super) const PRINTERS: &[Printer] = &[
    Printer {
        group: "",
        kind: "Service",
        columns: &[
            NAME,
            text("Type", ".spec.type"),
            text("Cluster-IP", ".spec.clusterIP"),
            text("External-IP", ".spec.externalIPs"),
            text("Port(s)", ".spec.ports"),
            AGE,
            wide("Selector", ".spec.selector"),
        ],
        cells: |service| {
            vec![
                service.name(),
                service.text("spec.type").into(),
                service.or("spec.clusterIP", NONE),
                external_ip(service).into(),
                service_ports(service),
                service.age(),
                service.labels("spec.selector"),
            ]
        },
    },
    Printer {
        group: "",
        kind: "Endpoints",
        columns: &[NAME, text("Endpoints", ".subsets"), AGE],
        cells: |object| vec![object.name(), endpoints(object).into(), object.age()],
    },
    Printer {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        columns: &[
            NAME,
            text("AddressType", ".addressType"),
            text("Ports", ".ports"),
            text("Endpoints", ".endpoints"),
            AGE,
        ],
        cells: |slice| {
            let ports: Vec<String> = slice
                .list("ports")
                .iter()
                .map(|port| {
                    port["port"]
                        .as_i64()
                        .map_or_else(|| "*".to_owned(), |port| port.to_string())
                })
                .collect();
            let addresses: Vec<String> = slice
                .list("endpoints")
                .iter()
                .flat_map(|endpoint| strings(&endpoint["addresses"]))
                .collect();
            let shown = |words: &[String]| match some_of(words, SHOWN).as_str() {
                "" => UNSET.into(),
                found => Value::from(found),
            };
            vec![
                slice.name(),
                slice.text("addressType").into(),
                shown(&ports),
                shown(&addresses),
                slice.age(),
            ]
        },
    },
    Printer {
        group: "networking.k8s.io",
        kind: "Ingress",
        columns: &[
            NAME,
            text(
                "Class",
                "The name of the IngressClass resource that should be used for additional configuration",
            ),
            text(
                "Hosts",
                "Hosts that incoming requests are matched against before the ingress rule",
            ),
            text(
                "Address",
                "Address is a list containing ingress points for the load-balancer",
            ),
            text("Ports", "Ports of TLS configurations that open"),
            AGE,
        ],
        cells: |ingress| {
            let class = match ingress.text("spec.ingressClassName") {
                "" => ingress.annotation("kubernetes.io/ingress.class"),
                class => class,
            };
            let ports = if ingress.count("spec.tls") > 0 {
                "80, 443"
            } else {
                "80"
            };
            vec![
                ingress.name(),
                or_none(class.to_owned()),
                hosts(ingress).into(),
                balancers(ingress).join(",").into(),
                ports.into(),
                ingress.age(),
            ]
        },
    },
    Printer {
        group: "networking.k8s.io",
        kind: "IngressClass",
        columns: &[
            NAME,
            text(
                "Controller",
                "Controller that is responsible for handling corresponding Ingress resources",
            ),
            text(
                "Parameters",
                "A reference to a resource with additional parameters",
            ),
            AGE,
        ],
        cells: |class| {
            let parameters = class.at("spec.parameters").map(|_| {
                let group = match class.text("spec.parameters.apiGroup") {
                    "" => String::new(),
                    group => format!(".{group}"),
                };
                format!(
                    "{}{group}/{}",
                    class.text("spec.parameters.kind"),
                    class.text("spec.parameters.name")
                )
            });
            vec![
                class.name(),
                class.text("spec.controller").into(),
                or_none(parameters.unwrap_or_default()),
                class.age(),
            ]
        },
    },
    Printer {
        group: "networking.k8s.io",
        kind: "NetworkPolicy",
        columns: &[NAME, text("Pod-Selector", ".spec.podSelector"), AGE],
        cells: |policy| vec![policy.name(), policy.selector("spec.podSelector"), policy.age()],
    },
    Printer {
        group: "networking.k8s.io",
        kind: "IPAddress",
        columns: &[NAME, text("ParentRef", ".spec.parentRef")],
        cells: |address| {
            let text = |name: &str| address.text(&format!("spec.parentRef.{name}"));
            let words = [text("group"), text("resource"), text("namespace"), text("name")];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            vec![address.name(), words.join("/").into()]
        },
    },
    Printer {
        group: "networking.k8s.io",
        kind: "ServiceCIDR",
        columns: &[NAME, text("CIDRs", ".spec.cidrs"), AGE],
        cells: |range| {
            let cidrs: Vec<&str> = range
                .list("spec.cidrs")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            vec![range.name(), cidrs.join(",").into(), range.age()]
        },
    },
];

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Addresses of load balancers, each once, sorted.
fn balancers(object: &View<'_>) -> Vec<String> {
    let mut found: Vec<String> = object
        .list("status.loadBalancer.ingress")
        .iter()
        .filter_map(|one| {
            let text = |name: &str| one[name].as_str().filter(|text| !text.is_empty());
            text("ip").or_else(|| text("hostname")).map(str::to_owned)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn external_ip(service: &View<'_>) -> String {
    let given: Vec<String> = service
        .list("spec.externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let (all, absent) = match service.text("spec.type") {
        "ClusterIP" | "NodePort" => (given, NONE),
        "LoadBalancer" => ([balancers(service), given].concat(), "<pending>"),
        "ExternalName" => return service.text("spec.externalName").to_owned(),
        _ => return super::view::UNKNOWN.to_owned(),
    };
    if all.is_empty() {
        absent.to_owned()
    } else {
        all.join(",")
    }
}

fn service_ports(service: &View<'_>) -> Value {
    let words: Vec<String> = service
        .list("spec.ports")
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or_default();
            match port["nodePort"].as_i64() {
                Some(node @ 1..) => format!("{}:{node}/{protocol}", port["port"]),
                _ => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    or_none(words.join(","))
}

/// The first endpoints: `10.0.0.1:80,[fd00::1]:80 + 2 more...`.
fn endpoints(object: &View<'_>) -> String {
    let mut words = Vec::new();
    if object.count("subsets") == 0 {
        return NONE.to_owned();
    }
    for subset in object.list("subsets") {
        let list = |name: &str| subset[name].as_array().map_or(&[][..], Vec::as_slice);
        let addresses = list("addresses").iter().filter_map(|one| one["ip"].as_str());
        if list("ports").is_empty() {
            words.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in list("ports") {
            words.extend(addresses.clone().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{}", port["port"])
                } else {
                    format!("{address}:{}", port["port"])
                }
            }));
        }
    }
    some_of(&words, SHOWN)
}

/// The first hosts; `*` when no rule names one. Rules without one count among those that are not shown.
fn hosts(ingress: &View<'_>) -> String {
    let rules = ingress.list("spec.rules");
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        if let Some(host) = rule["host"].as_str().filter(|host| !more && !host.is_empty()) {
            shown.push(host);
        }
    }
    match (shown.as_slice(), more) {
        ([], _) => "*".to_owned(),
        (shown, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN),
        (shown, false) => shown.join(","),
    }
}
