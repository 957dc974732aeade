//! The command line of every server: one table, each flag with its reason and the releases that know it.

use std::collections::BTreeMap;

use super::assets::Version;

/// One of the three programs of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    /// The store.
    Etcd,
    /// The API server.
    Apiserver,
    /// The controllers that a hub and a member need: garbage collection, namespaces, service accounts.
    ControllerManager,
}

impl Program {
    /// The file name of its binary, and the stem of its log's.
    pub(super) fn binary(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Apiserver => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }
}

/// One flag. `text` may hold `{name}` for a value of the cluster; `since` and `until` (exclusive) are minor releases of
/// kube-apiserver.
struct Flag {
    program: Program,
    text: &'static str,
    since: u32,
    until: u32,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers and the table's test"))]
    why: &'static str,
}

/// The arguments of `program` at that release. `values` fills the `{name}`s of the table, see [`FLAGS`].
pub(super) fn arguments(program: Program, version: Version, values: &BTreeMap<&str, String>) -> Vec<String> {
    FLAGS
        .iter()
        .filter(|flag| flag.program == program && (flag.since..flag.until).contains(&version.minor))
        .map(|flag| {
            values.iter().fold(flag.text.to_owned(), |text, (name, value)| {
                text.replace(&format!("{{{name}}}"), value)
            })
        })
        .collect()
}

const ALWAYS: u32 = u32::MAX;

const fn etcd(text: &'static str, why: &'static str) -> Flag {
    Flag {
        program: Program::Etcd,
        text,
        since: 0,
        until: ALWAYS,
        why,
    }
}

const fn apiserver(text: &'static str, why: &'static str) -> Flag {
    Flag {
        program: Program::Apiserver,
        text,
        since: 0,
        until: ALWAYS,
        why,
    }
}

const fn controllers(text: &'static str, why: &'static str) -> Flag {
    Flag {
        program: Program::ControllerManager,
        text,
        since: 0,
        until: ALWAYS,
        why,
    }
}

/// `{dir}` is the cluster's directory, `{port}` the API server's port, `{etcd}` and `{peer}` those of etcd.
const FLAGS: &[Flag] = &[
    etcd("--name=default", "names this node in --initial-cluster"),
    etcd("--data-dir={dir}/etcd", "survives a restart of the API server"),
    etcd(
        "--listen-client-urls=http://127.0.0.1:{etcd}",
        "reached from this machine only",
    ),
    etcd(
        "--advertise-client-urls=http://127.0.0.1:{etcd}",
        "required beside the former",
    ),
    etcd(
        "--listen-peer-urls=http://127.0.0.1:{peer}",
        "the default port would clash between clusters",
    ),
    etcd(
        "--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        "required beside the former",
    ),
    etcd(
        "--initial-cluster=default=http://127.0.0.1:{peer}",
        "required beside the former",
    ),
    etcd(
        "--unsafe-no-fsync",
        "the data is thrown away, and every fsync would be waited for",
    ),
    etcd("--logger=zap", "the only one of later releases"),
    etcd("--log-level=warn", "a log that is read in an error message"),
    apiserver(
        "--etcd-servers=http://127.0.0.1:{etcd}",
        "each cluster has its own store",
    ),
    apiserver("--bind-address=127.0.0.1", "reached from this machine only"),
    apiserver("--secure-port={port}", "a free port, kept over restarts"),
    apiserver(
        "--advertise-address=127.0.0.1",
        "without it a machine with no default route cannot start",
    ),
    apiserver(
        "--endpoint-reconciler-type=none",
        "a loopback address is not valid in Endpoints, and nobody reads them",
    ),
    apiserver(
        "--tls-cert-file={dir}/pki/apiserver.crt",
        "made by us: two RSA keys less to generate at each start",
    ),
    apiserver(
        "--tls-private-key-file={dir}/pki/apiserver.key",
        "beside the former",
    ),
    apiserver(
        "--service-account-issuer=https://kubernetes.default.svc",
        "required for TokenRequest",
    ),
    apiserver(
        "--service-account-key-file={dir}/pki/service-account.pub",
        "checks tokens of service accounts",
    ),
    apiserver(
        "--service-account-signing-key-file={dir}/pki/service-account.key",
        "signs what TokenRequest hands out",
    ),
    apiserver(
        "--token-auth-file={dir}/pki/tokens.csv",
        "the admin whose token the kubeconfig carries",
    ),
    apiserver(
        "--client-ca-file={dir}/pki/ca.crt",
        "agents of clusters in Pull mode have client certificates",
    ),
    apiserver(
        "--enable-bootstrap-token-auth=true",
        "by which such an agent is registered",
    ),
    apiserver(
        "--authorization-mode=RBAC",
        "service accounts of a member have only the rights they were given",
    ),
    apiserver(
        "--allow-privileged=true",
        "as clusters that users have; pods with it must be deliverable",
    ),
    apiserver(
        "--service-cluster-ip-range=10.96.0.0/16",
        "room for the Services of a test with thousands of them",
    ),
    apiserver(
        "--disable-admission-plugins=ServiceAccount",
        "a Pod made before the controllers are up would be refused for want of a service account",
    ),
    apiserver(
        "--enable-priority-and-fairness=false",
        "the server is not to be the limit that a test measures",
    ),
    apiserver(
        "--max-requests-inflight=4000",
        "as above: 400 would answer 429 to a fleet-wide test",
    ),
    apiserver(
        "--max-mutating-requests-inflight=2000",
        "as above, for writes: 200",
    ),
    apiserver("--profiling=false", "not needed"),
    Flag {
        program: Program::Apiserver,
        text: "--feature-gates=WatchList=true",
        since: 32,
        until: 35,
        why: "beta and off again in 1.33: lets the lane test streaming lists",
    },
    controllers("--kubeconfig={dir}/kubeconfig", "acts as admin"),
    controllers(
        "--leader-elect=false",
        "it is alone, and a Lease written every 2 s would disturb tests of quietness",
    ),
    controllers(
        "--controllers=csrsigning,garbagecollector,namespace,serviceaccount,serviceaccount-token{more controllers}",
        "what a hub and a member run, tokens in Secrets of the type kubernetes.io/service-account-token, and certificates of agents",
    ),
    controllers(
        "--service-account-private-key-file={dir}/pki/service-account.key",
        "signs the tokens in Secrets",
    ),
    controllers(
        "--cluster-signing-cert-file={dir}/pki/ca.crt",
        "signs the certificates of agents",
    ),
    controllers("--cluster-signing-key-file={dir}/pki/ca.key", "beside the former"),
    controllers(
        "--root-ca-file={dir}/pki/ca.crt",
        "the ca.crt beside such a token",
    ),
    controllers(
        "--kube-api-qps=1000",
        "its 20 requests a second would be the speed of every removal",
    ),
    controllers("--kube-api-burst=2000", "beside the former"),
    controllers(
        "--secure-port=0",
        "nobody asks it anything, and the default port would clash between clusters",
    ),
    Flag {
        program: Program::ControllerManager,
        text: "--port=0",
        since: 0,
        until: 24,
        why: "the insecure port of old releases, with the same clash",
    },
    controllers("--profiling=false", "not needed"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn render(program: Program, version: &str) -> Vec<String> {
        let values = [
            ("dir", "/d"),
            ("port", "1"),
            ("etcd", "2"),
            ("peer", "3"),
            ("more controllers", ",pvc-protection"),
        ];
        let values = values
            .into_iter()
            .map(|(name, value)| (name, value.to_owned()))
            .collect();
        arguments(program, version.parse().unwrap(), &values)
    }

    #[test]
    fn every_flag_is_listed_once_and_has_a_reason() {
        let mut seen = BTreeSet::new();
        for flag in FLAGS {
            let name = flag.text.split('=').next().unwrap();
            assert!(seen.insert((flag.program, name)), "{name} is listed twice");
            assert!(
                flag.text.starts_with("--") && !flag.why.is_empty(),
                "{name} lacks a reason"
            );
            assert!(flag.since < flag.until, "{name} is for no release");
        }
    }

    #[test]
    fn every_placeholder_is_filled() {
        for program in [Program::Etcd, Program::Apiserver, Program::ControllerManager] {
            let arguments = render(program, "v1.33.0");
            assert!(!arguments.is_empty());
            assert!(
                !arguments.iter().any(|argument| argument.contains(['{', '}'])),
                "{arguments:?}"
            );
        }
        assert!(
            render(Program::Etcd, "v1.20.2")
                .contains(&"--initial-cluster=default=http://127.0.0.1:3".to_owned())
        );
    }

    #[test]
    fn flags_come_and_go_with_releases() {
        let insecure_port = "--port=0".to_owned();
        assert!(render(Program::ControllerManager, "v1.23.9").contains(&insecure_port));
        assert!(!render(Program::ControllerManager, "v1.24.0").contains(&insecure_port));
        let watchlist = "--feature-gates=WatchList=true".to_owned();
        assert!(!render(Program::Apiserver, "v1.20.2").contains(&watchlist));
        assert!(render(Program::Apiserver, "v1.33.1").contains(&watchlist));
    }
}
