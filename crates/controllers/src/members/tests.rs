//! Members' tasks against scripted servers.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use entourage_api::cluster::{ClusterSpec, LocalSecretReference};
use entourage_core::{
    object::Gvk,
    observation::{Observation, Probe, Server, Watch},
};
use futures::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    keeper::{DISCOVERY, LEAST},
    *,
};
use crate::{
    client::{
        capacity::LISTS,
        tests::{Asked, Log, Reply, always, api, client, status},
    },
    watch::Watcher,
};

/// The members under test, the inbox of the control loop, the hub's requests, and the number of clients built.
struct Bench {
    members: Members,
    inbox: mpsc::Receiver<Message>,
    hub: Log,
    built: Arc<AtomicU32>,
    probes: Arc<AtomicU64>,
    /// The resourceVersion of the Secret.
    version: Arc<AtomicU32>,
    /// The annotations of the Secret; as `join` writes them.
    annotations: Arc<Mutex<Value>>,
}

fn bench(member: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Bench {
    bench_probed(PROBE_INTERVAL, member)
}

fn bench_probed(probe_interval: Duration, member: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Bench {
    let (brain, inbox) = mpsc::channel(100);
    let version = Arc::new(AtomicU32::new(1));
    let annotations = Arc::new(Mutex::new(json!({
        "entourage.dev/cluster": "m1", "entourage.dev/api-endpoint": "https://m1:6443",
        "entourage.dev/insecure-skip-tls-verification": "true",
    })));
    let (stored, reported) = (version.clone(), annotations.clone());
    let (hub_api, hub) = api(Server::Hub, move |asked| {
        if !asked
            .line
            .ends_with(" /api/v1/namespaces/karmada-cluster/secrets/m1")
        {
            return status(404, "NotFound");
        }
        let version = stored.load(Ordering::SeqCst).to_string();
        let mut reported = reported.lock().unwrap();
        if asked.line.starts_with("PATCH") {
            if asked.body["metadata"]["resourceVersion"] != json!(version) {
                return status(409, "Conflict");
            }
            *reported = asked.body["metadata"]["annotations"].clone();
        }
        let metadata = json!({"resourceVersion": version, "annotations": *reported});
        Reply::Json(200, json!({"metadata": metadata, "data": {"token": "dG9rZW4="}}))
    });
    let (built, probes) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
    let (count, asked, member) = (built.clone(), probes.clone(), Arc::new(member));
    let clients: ClientFactory = Arc::new(move |scope, config| {
        assert_eq!((scope, config.default_retry), ("m1", false));
        count.fetch_add(1, Ordering::SeqCst);
        let (member, asked) = (member.clone(), asked.clone());
        Ok(client(move |request| {
            asked.fetch_add(u64::from(request.line == "GET /readyz"), Ordering::SeqCst);
            member(request)
        })
        .0)
    });
    let members = Members::new(MembersOptions {
        hub: hub_api,
        clients,
        cluster_namespace: "karmada-cluster".into(),
        deadline: Duration::from_secs(10),
        probe_interval,
        bounds: Bounds::default(),
        pulled: Capacity::shared(Bounds::default()),
        metrics: Metrics::new(),
        may_write: always(),
        brain,
    });
    Bench {
        members,
        inbox,
        hub,
        built,
        probes,
        version,
        annotations,
    }
}

impl Bench {
    fn ensure(&mut self, cluster: &Cluster) {
        assert!(!self.members.ensure(&"m1".into(), Some(cluster)));
    }

    /// The next probe, and the clients sent before it.
    async fn probe(&mut self) -> (Probe, Vec<Option<Arc<Member>>>) {
        let mut clients = Vec::new();
        loop {
            match self.inbox.recv().await {
                Some(Message::Probed { probe, .. }) => return (probe, clients),
                Some(Message::Member { member, .. }) => clients.push(member),
                _ => panic!("something else was reported"),
            }
        }
    }
}

fn cluster(namespace: &str) -> Cluster {
    let spec = ClusterSpec {
        api_endpoint: "https://m1:6443".into(),
        secret_ref: Some(LocalSecretReference {
            namespace: namespace.into(),
            name: "m1".into(),
        }),
        insecure_skip_tls_verification: true,
        ..ClusterSpec::default()
    };
    Cluster::new("m1", spec)
}

const KUBE_SYSTEM: &str = "GET /api/v1/namespaces/kube-system";

fn healthy(asked: &Asked) -> Reply {
    match asked.line.as_str() {
        "GET /readyz" => Reply::Json(200, json!("ok")),
        KUBE_SYSTEM => Reply::Json(200, json!({"metadata": {"uid": "one"}})),
        "GET /version" => Reply::Json(200, json!({"gitVersion": "v1.36.2"})),
        "GET /api" => Reply::Json(200, json!({"kind": "APIVersions", "versions": ["v1"]})),
        "GET /apis" => Reply::Json(200, json!({"kind": "APIGroupList", "groups": []})),
        "GET /api/v1" => Reply::Json(200, json!({"resources": [{"name": "secrets", "kind": "Secret"}]})),
        _ => status(404, "NotFound"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_member_is_lent_and_described() {
    let mut bench = bench(healthy);
    bench.ensure(&cluster("karmada-cluster"));
    let (probe, clients) = bench.probe().await;
    assert!(probe.healthy, "{probe:?}");
    assert_eq!(probe.kubernetes_version.as_deref(), Some("v1.36.2"));
    assert_eq!(
        probe.api_enablements,
        Some(vec![("v1".into(), vec![("secrets".into(), "Secret".into())])])
    );
    assert!(matches!(clients.as_slice(), [Some(_)]));
    let (probe, clients) = bench.probe().await;
    assert!(
        probe.healthy && probe.api_enablements.is_none() && clients.is_empty(),
        "asked and reported once"
    );
}

const DEFINITIONS: &str = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions?";

/// A healthy member that serves widgets if `serves`, with these changes of its definitions a second after each watch is opened.
fn defining(asked: &Asked, serves: bool, changes: &AtomicU32) -> Reply {
    let line = asked.line.as_str();
    if line == "GET /apis" && serves {
        let versions = json!([{"groupVersion": "example.com/v1"}]);
        return Reply::Json(
            200,
            json!({"kind": "APIGroupList", "groups": [{"versions": versions}]}),
        );
    }
    if line == "GET /apis/example.com/v1" {
        return Reply::Json(200, json!({"resources": [{"name": "widgets", "kind": "Widget"}]}));
    }
    if !line.starts_with(DEFINITIONS) {
        return healthy(asked);
    }
    assert!(
        asked.accept.contains("as=PartialObjectMetadata"),
        "{}",
        asked.accept
    );
    if !line.contains("watch=true") {
        assert!(line.contains("limit=1"), "{line}");
        return Reply::Json(200, json!({"metadata": {"resourceVersion": "7"}, "items": []}));
    }
    assert!(line.contains("resourceVersion=7"), "{line}");
    let changes = changes.swap(0, Ordering::SeqCst);
    if changes == 0 {
        return Reply::Lines(vec![], true);
    }
    let event = json!({"type": "MODIFIED", "object": {"metadata": {"name": "widgets.example.com"}}});
    let pauses = Duration::from_secs(1);
    Reply::Slowly((0..changes).map(|_| event.clone()).collect(), pauses)
}

#[tokio::test(start_paused = true)]
async fn discovery_follows_a_change_of_a_definition_within_two_seconds() {
    let began = Instant::now();
    let changes = AtomicU32::new(1);
    // The kind is served 0.9 s after the change.
    let mut bench =
        bench(move |asked| defining(asked, began.elapsed() >= Duration::from_millis(1900), &changes));
    bench.ensure(&cluster("karmada-cluster"));
    let (probe, _) = bench.probe().await;
    assert_eq!(probe.api_enablements.map(|apis| apis.len()), Some(1));
    let served = loop {
        let (probe, clients) = bench.probe().await;
        assert!(probe.healthy && clients.is_empty());
        if probe.api_enablements.is_some_and(|apis| apis.len() == 2) {
            break began.elapsed();
        }
    };
    assert!(served <= Duration::from_secs(3), "{served:?}");
}

#[tokio::test(start_paused = true)]
async fn at_rest_definitions_cost_one_watch_and_discovery_runs_as_seldom_as_before() {
    let (changes, counts) = (AtomicU32::new(0), Arc::new([const { AtomicU32::new(0) }; 3]));
    let counted = counts.clone();
    let mut bench = bench(move |asked| {
        let line = asked.line.as_str();
        let which = [
            line == "GET /apis",
            line.starts_with(DEFINITIONS),
            line.contains("watch=true"),
        ];
        for (count, is_one) in counted.iter().zip(which) {
            count.fetch_add(u32::from(is_one), Ordering::SeqCst);
        }
        defining(asked, false, &changes)
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    while began.elapsed() < DISCOVERY * 3 / 4 {
        bench.probe().await;
    }
    let counts: Vec<u32> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    assert_eq!(
        counts,
        [2, 2, 1],
        "discoveries (the second when the watch is open), requests for definitions, watches of them"
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_definitions_change_all_the_time_is_discovered_at_most_twice_a_second() {
    let (changes, discoveries) = (AtomicU32::new(1000), Arc::new(AtomicU32::new(0)));
    let counted = discoveries.clone();
    let mut bench = bench(move |asked| match defining(asked, false, &changes) {
        Reply::Slowly(lines, _) => Reply::Slowly(lines, Duration::from_millis(10)),
        reply => {
            counted.fetch_add(u32::from(asked.line == "GET /apis"), Ordering::SeqCst);
            reply
        }
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        bench.probe().await;
    }
    let discoveries = discoveries.load(Ordering::SeqCst);
    assert!((10..=22).contains(&discoveries), "{discoveries}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_forbids_its_definitions_is_described_all_the_same_and_asked_for_them_seldom() {
    let asked_for = Arc::new(AtomicU32::new(0));
    let count = asked_for.clone();
    let mut bench = bench(move |asked| {
        if !asked.line.starts_with(DEFINITIONS) {
            return healthy(asked);
        }
        count.fetch_add(1, Ordering::SeqCst);
        status(403, "Forbidden")
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    assert!(bench.probe().await.0.api_enablements.is_some());
    while began.elapsed() < DISCOVERY / 2 {
        assert!(bench.probe().await.0.healthy);
    }
    assert_eq!(asked_for.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_definitions_that_ends_is_opened_again_and_followed_by_discovery() {
    let (changes, opened) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
    let count = opened.clone();
    let mut bench = bench(move |asked| match defining(asked, false, &changes) {
        // The server restarts after two minutes.
        Reply::Lines(..) if count.fetch_add(1, Ordering::SeqCst) == 0 => Reply::Slowly(
            vec![json!({"type": "ERROR", "object": {}})],
            Duration::from_secs(120),
        ),
        reply => reply,
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    for opened in ["first", "second"] {
        assert!(bench.probe().await.0.api_enablements.is_some(), "{opened}");
    }
    while bench.probe().await.0.api_enablements.is_none() {}
    assert!(
        began.elapsed() <= Duration::from_secs(122),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn api_services_that_cannot_be_watched_once_are_watched_a_minute_later() {
    let (changes, tries) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
    let counted = tries.clone();
    let mut bench = bench(move |asked| {
        if !asked
            .line
            .starts_with("GET /apis/apiregistration.k8s.io/v1/apiservices?")
        {
            return defining(asked, false, &changes);
        }
        assert!(
            asked.accept.contains("as=PartialObjectMetadata"),
            "{}",
            asked.accept
        );
        match counted.fetch_add(1, Ordering::SeqCst) {
            0 => status(500, "InternalError"),
            1 => Reply::Json(200, json!({"metadata": {"resourceVersion": "9"}, "items": []})),
            _ => {
                assert!(asked.line.contains("resourceVersion=9"), "{}", asked.line);
                Reply::Lines(vec![], true)
            }
        }
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    for opened in ["without a watch", "definitions are watched"] {
        assert!(bench.probe().await.0.api_enablements.is_some(), "{opened}");
    }
    while bench.probe().await.0.api_enablements.is_none() {}
    assert!(
        began.elapsed() <= Duration::from_secs(75),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_secret_outside_the_clusters_namespace_is_not_even_read() {
    let mut bench = bench(healthy);
    bench.ensure(&cluster("kube-system"));
    let (probe, clients) = bench.probe().await;
    assert_eq!(
        (probe.healthy, probe.reason.as_str()),
        (false, "SecretNamespaceForbidden")
    );
    assert!(probe.message.contains("karmada-cluster") && clients.is_empty());
    assert!(bench.hub.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_read_again_and_the_client_rebuilt() {
    let answers = AtomicU32::new(0);
    let mut bench = bench(move |asked| match answers.fetch_add(1, Ordering::SeqCst) {
        0 => status(401, "Unauthorized"),
        _ => healthy(asked),
    });
    bench.ensure(&cluster("karmada-cluster"));
    let (probe, clients) = bench.probe().await;
    assert!(probe.healthy && clients.len() == 1, "{probe:?}");
    assert_eq!(
        (bench.built.load(Ordering::SeqCst), bench.hub.lines().len()),
        (2, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn credentials_that_stay_refused_are_a_reason_of_their_own() {
    let mut bench = bench(|_| status(401, "Unauthorized"));
    bench.ensure(&cluster("karmada-cluster"));
    let (probe, clients) = bench.probe().await;
    assert_eq!(
        (probe.healthy, probe.reason.as_str()),
        (false, "CredentialsRefused")
    );
    assert!(clients.is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_response_takes_the_client_away_at_the_second_time_and_an_answer_brings_it_back() {
    let answers = AtomicU32::new(0);
    let mut bench = bench(move |asked| {
        if asked.line != "GET /readyz" {
            return healthy(asked);
        }
        match answers.fetch_add(1, Ordering::SeqCst) {
            1 | 2 => Reply::Broken,
            _ => healthy(asked),
        }
    });
    bench.ensure(&cluster("karmada-cluster"));
    let mut reported = Vec::new();
    for _ in 0..4 {
        let (probe, clients) = bench.probe().await;
        reported.push((
            probe.healthy,
            clients.iter().map(Option::is_some).collect::<Vec<_>>(),
        ));
    }
    assert_eq!(
        reported,
        [
            (true, vec![true]),
            (false, vec![]),
            (false, vec![false]),
            (true, vec![true])
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_corrected_secret_ends_an_outage() {
    let mut bench = bench(|_| Reply::Broken);
    bench.ensure(&cluster("karmada-cluster"));
    for _ in 0..4 {
        assert!(!bench.probe().await.0.healthy);
    }
    assert_eq!(
        bench.built.load(Ordering::SeqCst),
        1,
        "the same Secret is the same client"
    );
    bench.version.store(2, Ordering::SeqCst);
    for _ in 0..4 {
        bench.probe().await;
    }
    assert_eq!(bench.built.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_replaced_secret_is_noticed_although_the_old_one_still_works() {
    let mut bench = bench(healthy);
    bench.ensure(&cluster("karmada-cluster"));
    bench.probe().await;
    bench.version.store(2, Ordering::SeqCst);
    let began = Instant::now();
    while bench.built.load(Ordering::SeqCst) < 2 {
        bench.probe().await;
    }
    assert!(began.elapsed() < DISCOVERY + PROBE_INTERVAL * 2);
}

#[tokio::test(start_paused = true)]
async fn a_member_is_lent_before_its_apis_are_known() {
    let mut bench = bench(|asked| match asked.line.as_str() {
        "GET /readyz" | KUBE_SYSTEM => healthy(asked),
        _ => Reply::Silence,
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    assert!(matches!(
        bench.inbox.recv().await,
        Some(Message::Member { member: Some(_), .. })
    ));
    assert!(began.elapsed() < LEAST);
    let (probe, _) = bench.probe().await;
    assert!(probe.healthy && probe.api_enablements.is_none());
    assert!(began.elapsed() < Duration::from_secs(11));
}

#[tokio::test(start_paused = true)]
async fn only_an_api_that_is_not_served_is_left_out_of_the_list() {
    for (code, known) in [(404, true), (503, true), (500, false), (403, false)] {
        let mut bench = bench(move |asked| match asked.line.as_str() {
            "GET /apis" => Reply::Json(
                200,
                json!({"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "x.io/v1"}]}]}),
            ),
            "GET /apis/x.io/v1" => status(code, "Trouble"),
            _ => healthy(asked),
        });
        bench.ensure(&cluster("karmada-cluster"));
        let (probe, _) = bench.probe().await;
        assert_eq!(probe.api_enablements.is_some(), known, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_made_again_gets_a_task_of_its_own() {
    let mut bench = bench(healthy);
    let mut cluster = cluster("karmada-cluster");
    bench.ensure(&cluster);
    bench.probe().await;
    assert!(bench.members.is_current(&"m1".into(), 1));
    cluster.metadata.uid = Some("another".into());
    assert!(
        bench.members.ensure(&"m1".into(), Some(&cluster)),
        "the old client is dropped"
    );
    assert!(!bench.members.is_current(&"m1".into(), 1) && bench.members.is_current(&"m1".into(), 2));
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_member_is_not_probed_in_a_loop() {
    let mut bench = bench(|_| Reply::Broken);
    bench.ensure(&cluster("karmada-cluster"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let probes = bench.probes.load(Ordering::SeqCst);
    assert!((8..=12).contains(&probes), "{probes}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_not_ready_yet_is_asked_again_soon() {
    let answers = AtomicU32::new(0);
    let mut bench = bench(move |asked| match asked.line.as_str() {
        "GET /readyz" if answers.fetch_add(1, Ordering::SeqCst) < 2 => status(500, "InternalError"),
        _ => healthy(asked),
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    while !bench.probe().await.0.healthy {}
    assert!(began.elapsed() <= LEAST * 4, "{:?}", began.elapsed());
    bench.probe().await;
    assert!(
        began.elapsed() >= probe::interval(PROBE_INTERVAL, "m1"),
        "a healthy one is asked as ever"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_has_the_member_probed_at_once_but_not_more_than_once_a_second() {
    let mut bench = bench(|asked| match asked.line.as_str() {
        KUBE_SYSTEM | "GET /version" | "GET /readyz" | "GET /api" | "GET /apis" | "GET /api/v1" => {
            healthy(asked)
        }
        _ => Reply::Broken,
    });
    bench.ensure(&cluster("karmada-cluster"));
    let (_, clients) = bench.probe().await;
    let Some(Some(member)) = clients.into_iter().next() else {
        panic!("no client")
    };
    let path = crate::client::path::Path::namespace(Some("x"));
    let began = Instant::now();
    for _ in 0..10 {
        assert!(member.api.get(&path, crate::client::Form::Whole).await.is_err());
    }
    bench.probe().await;
    assert!(began.elapsed() <= LEAST * 2);
    bench.probe().await;
    assert!(began.elapsed() >= probe::interval(PROBE_INTERVAL, "m1"));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_answers_too_late_is_distinguished_from_one_that_does_not_answer() {
    let slow = Arc::new(AtomicU64::new(7));
    let seconds = slow.clone();
    let mut bench = bench(move |asked| match asked.line.as_str() {
        "GET /readyz" => match seconds.load(Ordering::SeqCst) {
            0 => healthy(asked),
            late => Reply::Slowly(vec![json!("ok")], Duration::from_secs(late)),
        },
        _ => healthy(asked),
    });
    bench.ensure(&cluster("karmada-cluster"));
    let mut reported = Vec::new();
    for _ in 0..4 {
        let (found, clients) = bench.probe().await;
        assert!(
            !found.healthy && !clients.iter().any(Option::is_some),
            "{found:?}"
        );
        reported.push(found);
    }
    let reasons: Vec<&str> = reported.iter().map(|each| each.reason.as_str()).collect();
    let unresponsive = "ClusterNotReachable";
    assert_eq!(
        reasons,
        [unresponsive, unresponsive, "ClusterAPISlow", "ClusterAPISlow"]
    );
    assert!(
        reported[3].message.contains("only after 7 s"),
        "{}",
        reported[3].message
    );
    slow.store(60, Ordering::SeqCst);
    assert_eq!(bench.probe().await.0.reason, unresponsive);
    slow.store(0, Ordering::SeqCst);
    assert!(bench.probe().await.0.healthy);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_refuses_our_token_or_our_account_says_so() {
    for (code, reason, says) in [
        (401, "Unauthorized", "put a valid one there"),
        (403, "Forbidden", "denies the joined account"),
    ] {
        let mut bench = bench(move |asked| match asked.line.as_str() {
            "GET /readyz" => status(code, reason),
            _ => healthy(asked),
        });
        bench.ensure(&cluster("karmada-cluster"));
        let (found, _) = bench.probe().await;
        assert_eq!(found.reason, "CredentialsRefused", "{code}");
        assert!(
            !found.healthy && found.message.contains(says),
            "{}",
            found.message
        );
    }
}

#[test]
fn members_are_probed_at_their_own_pace_a_tenth_around_the_usual_one() {
    let names: Vec<String> = (0..200).map(|each| format!("member{each}")).collect();
    let paces: Vec<Duration> = names
        .iter()
        .map(|name| probe::interval(PROBE_INTERVAL, name))
        .collect();
    let (least, most) = (PROBE_INTERVAL.mul_f64(0.9), PROBE_INTERVAL.mul_f64(1.1));
    assert!(
        paces.iter().all(|pace| (least..=most).contains(pace)),
        "{paces:?}"
    );
    assert_eq!(
        paces,
        names
            .iter()
            .map(|name| probe::interval(PROBE_INTERVAL, name))
            .collect::<Vec<_>>()
    );
    let slower = paces.iter().filter(|pace| **pace > PROBE_INTERVAL).count();
    assert!((60..=140).contains(&slower), "{slower}");
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_member_is_probed_no_more_seldom_than_a_healthy_one() {
    let mut bench = bench_probed(Duration::from_millis(200), |_| Reply::Broken);
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    for _ in 0..6 {
        assert!(!bench.probe().await.0.healthy);
    }
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_changed_endpoint_rebuilds_the_client_and_a_changed_status_does_not() {
    let mut bench = bench(healthy);
    let mut cluster = cluster("karmada-cluster");
    bench.ensure(&cluster);
    bench.probe().await;
    cluster.status = Some(entourage_api::cluster::ClusterStatus::default());
    bench.ensure(&cluster);
    let (_, clients) = bench.probe().await;
    assert!(clients.is_empty());
    cluster.spec.api_endpoint = "https://elsewhere:6443".into();
    bench.annotations.lock().unwrap()["entourage.dev/api-endpoint"] = json!("https://elsewhere:6443");
    bench.ensure(&cluster);
    let (_, clients) = bench.probe().await;
    assert!(matches!(clients.as_slice(), [None, Some(_)]));
    assert_eq!(bench.built.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn no_token_is_sent_where_the_secret_does_not_say_so() {
    type Edit = (&'static str, fn(&mut ClusterSpec));
    let edits: [Edit; 3] = [
        ("CredentialsNotForAddress", |spec| {
            spec.api_endpoint = "https://evil:6443".into();
        }),
        ("CredentialsNotForAddress", |spec| {
            spec.proxy_url = "http://user:canary@evil:3128".into();
        }),
        ("CredentialsNotForCluster", |spec| {
            if let Some(named) = &mut spec.secret_ref {
                named.name = "m1".into();
            }
        }),
    ];
    for (reason, edit) in edits {
        let mut bench = bench(healthy);
        let mut edited = cluster("karmada-cluster");
        if reason == "CredentialsNotForCluster" {
            bench.annotations.lock().unwrap()["entourage.dev/cluster"] = json!("m0");
        } else {
            bench.ensure(&edited);
            assert!(bench.probe().await.0.healthy);
        }
        let (built, probes) = (
            bench.built.load(Ordering::SeqCst),
            bench.probes.load(Ordering::SeqCst),
        );
        edit(&mut edited.spec);
        bench.ensure(&edited);
        // Later, too, it is neither probed nor sent.
        for round in 0..3 {
            let (probe, clients) = bench.probe().await;
            assert_eq!((probe.healthy, probe.reason.as_str()), (false, reason));
            assert!(!probe.message.contains("canary"), "{}", probe.message);
            assert!(
                clients.iter().all(Option::is_none),
                "round {round}: a client was lent"
            );
        }
        assert_eq!(
            (
                bench.built.load(Ordering::SeqCst),
                bench.probes.load(Ordering::SeqCst)
            ),
            (built, probes)
        );
        // The Secret is unchanged: it is used at the next read.
        let spec = &edited.spec;
        *bench.annotations.lock().unwrap() = json!({
            "entourage.dev/cluster": "m1", "entourage.dev/api-endpoint": spec.api_endpoint,
            "entourage.dev/proxy-url": spec.proxy_url, "entourage.dev/insecure-skip-tls-verification": "true",
        });
        assert!(bench.probe().await.0.healthy);
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_by_karmadas_convention_is_bound_to_the_address_before_its_first_use() {
    let mut bench = bench(healthy);
    *bench.annotations.lock().unwrap() = json!({});
    bench.ensure(&cluster("karmada-cluster"));
    assert!(bench.probe().await.0.healthy);
    let wanted = json!({
        "entourage.dev/cluster": "m1", "entourage.dev/api-endpoint": "https://m1:6443",
        "entourage.dev/insecure-skip-tls-verification": "true",
    });
    assert_eq!(*bench.annotations.lock().unwrap(), wanted);
    let writes = |bench: &Bench| {
        let lines = bench.hub.lines();
        lines.iter().filter(|line| line.starts_with("PATCH")).count()
    };
    assert_eq!(writes(&bench), 1);
    // In a later process, too, and once only.
    let mut moved = cluster("karmada-cluster");
    moved.spec.api_endpoint = "https://evil:6443".into();
    bench.ensure(&moved);
    let (probe, _) = bench.probe().await;
    assert_eq!(probe.reason, "CredentialsNotForAddress");
    assert_eq!(writes(&bench), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_is_not_used() {
    let mut bench = bench(healthy);
    *bench.annotations.lock().unwrap() = json!({});
    let (hub, log) = api(Server::Hub, |asked| match asked.line.as_str() {
        "GET /api/v1/namespaces/karmada-cluster/secrets/m1" => {
            let metadata = json!({"name": "m1", "resourceVersion": "1"});
            Reply::Json(200, json!({"metadata": metadata, "data": {"token": "dG9rZW4="}}))
        }
        _ => status(403, "Forbidden"),
    });
    bench.members.options.hub = hub;
    bench.ensure(&cluster("karmada-cluster"));
    let (probe, clients) = bench.probe().await;
    assert_eq!(
        (probe.healthy, probe.reason.as_str()),
        (false, "CredentialsNotRecorded")
    );
    assert!(clients.is_empty() && bench.built.load(Ordering::SeqCst) == 0);
    assert!(log.lines().iter().any(|line| line.starts_with("PATCH")));
}

#[tokio::test(start_paused = true)]
async fn a_pull_cluster_is_reached_through_the_hub_once_its_agent_has_reported() {
    let mut bench = bench(healthy);
    let mut cluster = cluster("karmada-cluster");
    bench.ensure(&cluster);
    bench.probe().await;
    let (built, asked) = (bench.built.load(Ordering::SeqCst), bench.hub.lines().len());
    cluster.spec.sync_mode = SyncMode::Pull;
    cluster.spec.id = "id-m1".into();
    bench.ensure(&cluster);
    let (probe, clients) = bench.probe().await;
    assert!(
        !probe.healthy && probe.message.contains("the agent has not reported"),
        "{probe:?}"
    );
    let lent = clients.last().and_then(Option::as_ref).expect("a client");
    assert_eq!(lent.api.id().map(|id| &**id), Some("id-m1"));
    let mut status = cluster.status.clone().unwrap_or_default();
    status.kubernetes_version = "v1.33.0".into();
    cluster.status = Some(status);
    let before = Instant::now();
    bench.ensure(&cluster);
    let (probe, _) = bench.probe().await;
    assert!(probe.healthy && probe.api_enablements.is_none(), "{probe:?}");
    assert_eq!(before.elapsed(), Duration::ZERO, "at once");
    assert_eq!(
        (bench.built.load(Ordering::SeqCst), bench.hub.lines().len()),
        (built, asked)
    );
}

/// A hub that takes a while to return each list, and its watches that report nothing: the number of lists that run, and their
/// highest number.
fn slow_hub() -> (Api, Arc<Mutex<(usize, usize)>>) {
    let lists = Arc::new(Mutex::new((0, 0)));
    let counted = lists.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let counted = counted.clone();
        async move {
            if request.uri().query().unwrap_or_default().contains("watch=true") {
                return std::future::pending().await;
            }
            {
                let mut counted = counted.lock().unwrap();
                counted.0 += 1;
                counted.1 = counted.1.max(counted.0);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            counted.lock().unwrap().0 -= 1;
            let list = json!({"kind": "WorkList", "metadata": {"resourceVersion": "9"}, "items": []});
            let body = http_body_util::Full::from(list.to_string());
            Ok::<_, tower::BoxError>(http::Response::new(body))
        }
    });
    let hub = kube::Client::new(service, "default");
    (Api::new(hub, crate::client::tests::options(Server::Hub)), lists)
}

#[tokio::test(start_paused = true)]
async fn a_hundred_pull_clusters_have_the_lists_of_one_member_at_a_time() {
    const CLUSTERS: usize = 100;
    let (hub, lists) = slow_hub();
    let mut bench = bench(healthy);
    bench.members.options.hub = hub;
    let mut cluster = cluster("karmada-cluster");
    cluster.spec.sync_mode = SyncMode::Pull;
    cluster.status = Some(serde_json::from_value(json!({"kubernetesVersion": "v1.33.0"})).unwrap());
    let mut apis = Vec::new();
    for number in 0..CLUSTERS {
        let name = format!("m{number}");
        (cluster.metadata.name, cluster.spec.id) = (Some(name.clone()), name.clone());
        bench.members.ensure(&name.as_str().into(), Some(&cluster));
    }
    while apis.len() < CLUSTERS {
        match bench.inbox.recv().await {
            Some(Message::Member { name, member, .. }) => {
                apis.push((name, member.expect("a client").api.clone()))
            }
            Some(Message::Probed { .. }) => {}
            _ => panic!("something else was reported"),
        }
    }
    let (brain, mut inbox) = mpsc::channel(10_000);
    let mut watches = tokio::task::JoinSet::new();
    for (name, api) in apis {
        for kind in ["Secret", "ConfigMap"] {
            let watch = Watch::Copies(name.clone(), Gvk::new("v1", kind));
            watches.spawn(Watcher::new(api.clone(), watch, 1, &"hub".into(), brain.clone()).run());
        }
    }
    let mut listed = 0;
    while listed < 2 * CLUSTERS {
        let Some(Message::Watched { seen, .. }) = inbox.recv().await else {
            panic!("something else was reported");
        };
        let is_list = |each: &&Observation| matches!(each, Observation::Listed { .. });
        listed += seen.iter().filter(is_list).count();
        assert!(
            !seen.iter().any(|each| matches!(each, Observation::Lost { .. })),
            "{seen:?}"
        );
    }
    assert_eq!(lists.lock().unwrap().1, LISTS);
}

#[tokio::test(start_paused = true)]
async fn nobody_connects_to_a_cluster_that_left() {
    let mut bench = bench(healthy);
    bench.ensure(&cluster("karmada-cluster"));
    bench.probe().await;
    assert!(bench.members.ensure(&"m1".into(), None));
    assert!(!bench.members.ensure(&"m1".into(), None));
    assert!(bench.members.tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_gate_lets_one_through_until_it_is_open() {
    let namespaces = namespaces::Namespaces::default();
    let gate = namespaces.gate(&"ns".into());
    let first = gate.pass().await;
    assert!(first.is_some());
    let other = namespaces.gate(&"ns".into());
    assert!(other.pass().now_or_never().is_none(), "it waits");
    if let Some(turn) = first {
        turn.open();
    }
    assert!(other.pass().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn another_cluster_is_not_lent_until_its_id_is_meant() {
    let mut bench = bench(healthy);
    let mut cluster = cluster("karmada-cluster");
    cluster.spec.id = "two".into();
    bench.ensure(&cluster);
    let (probe, clients) = bench.probe().await;
    assert_eq!(
        (probe.healthy, probe.reason.as_str()),
        (false, "ClusterIDChanged")
    );
    assert!(
        probe.message.contains("join m1 --replace") && clients.is_empty(),
        "{}",
        probe.message
    );
    cluster.spec.id = "one".into();
    bench.ensure(&cluster);
    let (probe, clients) = bench.probe().await;
    assert!(
        probe.healthy && matches!(clients.as_slice(), [Some(_)]),
        "{probe:?}"
    );
    assert_eq!(
        bench.built.load(Ordering::SeqCst),
        1,
        "an id alone is no other connection"
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_tell_which_cluster_it_is_is_not_lent() {
    let mut bench = bench(|asked| match asked.line.as_str() {
        KUBE_SYSTEM => status(403, "Forbidden"),
        _ => healthy(asked),
    });
    bench.ensure(&cluster("karmada-cluster"));
    let (probe, clients) = bench.probe().await;
    assert_eq!(
        (probe.healthy, probe.reason.as_str()),
        (false, "ClusterIDUnknown")
    );
    assert!(clients.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_member_that_has_not_read_its_roles_yet_is_asked_again_soon() {
    let answers = AtomicU32::new(0);
    let mut bench = bench(move |asked| match asked.line.as_str() {
        KUBE_SYSTEM if answers.fetch_add(1, Ordering::SeqCst) < 2 => status(403, "Forbidden"),
        _ => healthy(asked),
    });
    bench.ensure(&cluster("karmada-cluster"));
    let began = Instant::now();
    while !bench.probe().await.0.healthy {}
    assert!(began.elapsed() <= LEAST * 4, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn after_a_broken_connection_nothing_goes_to_another_cluster() {
    let changed = Arc::new(AtomicU32::new(0));
    let wrote = Arc::new(AtomicU32::new(0));
    let (state, writes) = (changed.clone(), wrote.clone());
    let mut bench = bench(
        move |asked| match (asked.line.as_str(), state.load(Ordering::SeqCst)) {
            (_, 1) => Reply::Broken,
            (KUBE_SYSTEM, 2) => Reply::Json(200, json!({"metadata": {"uid": "two"}})),
            (line, _) if line.starts_with("POST") => {
                writes.fetch_add(1, Ordering::SeqCst);
                Reply::Json(201, json!({"metadata": {"uid": "x"}}))
            }
            _ => healthy(asked),
        },
    );
    let mut cluster = cluster("karmada-cluster");
    cluster.spec.id = "one".into();
    bench.ensure(&cluster);
    let (_, clients) = bench.probe().await;
    let Some(Some(member)) = clients.into_iter().next() else {
        panic!("no client")
    };
    let path = crate::client::path::Path::namespace(None);
    let body = json!({"kind": "Namespace"});
    let form = crate::client::Form::Metadata;
    assert!(member.api.create(&path, &body, form).await.is_ok());
    changed.store(1, Ordering::SeqCst);
    assert!(member.api.create(&path, &body, form).await.is_err());
    // Another cluster responds before any probe.
    changed.store(2, Ordering::SeqCst);
    assert!(member.api.create(&path, &body, form).await.is_err());
    assert_eq!(wrote.load(Ordering::SeqCst), 1);
    let mut reasons = Vec::new();
    for _ in 0..4 {
        reasons.push(bench.probe().await.0.reason);
    }
    assert!(
        reasons.iter().any(|reason| reason == "ClusterIDChanged"),
        "{reasons:?}"
    );
    // The correct one is back.
    changed.store(0, Ordering::SeqCst);
    while !bench.probe().await.0.healthy {}
}
