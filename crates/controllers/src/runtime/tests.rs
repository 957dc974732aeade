//! The control loop with scripted decisions: the plans, their times, and their execution.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use entourage_api::cluster::Cluster;
use entourage_core::{
    fleet::Stats,
    object::{Gvk, NamespacedName, ResourceId},
    observation::{Probe, Template, Watch},
    plan::{Change, Event, HubObject, Plan, Verb},
};
use serde_json::json;

use super::*;
use crate::{
    client::{
        Api,
        capacity::Capacity,
        tests::{self, Asked, Log, Reply, always, api, client, status},
    },
    execute::events,
    limiter::Bounds,
    members::MembersOptions,
    source::Sources,
};

/// The events, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

type Plans = Box<dyn FnMut(&Key, Time) -> Plan + Send>;

/// Scripted decisions: an observation about a binding or a template dirties its key; plans come from a function. The template
/// [`CHANGED`] changes the demand, and so does [`ENDED`], which ends the watches of ConfigMaps too.
struct Script {
    diary: Diary,
    plans: Plans,
    synced: bool,
    changes: u64,
    ended: BTreeSet<Watch>,
}

/// The members with a task.
const MEMBERS: [&str; 3] = ["m1", "m2", "m3"];

const CHANGED: &str = "changed";
const ENDED: &str = "ended";

/// The script, the demand, and the number of reads of the demand.
struct Shared(Mutex<Script>, BTreeSet<Watch>, Arc<AtomicUsize>);

impl Decide for Shared {
    fn observe(&mut self, seen: Observation, _: Time) -> Vec<Key> {
        let mut script = self.0.lock().unwrap();
        let (text, dirty) = match seen {
            Observation::Listing { .. } | Observation::Reached { .. } => return vec![],
            Observation::Seen(Subject::Template(id, _)) => {
                script.changes += u64::from([CHANGED, ENDED].contains(&&*id.name));
                if &*id.name == ENDED {
                    script.ended.insert(Watch::Templates(id.gvk.clone()));
                }
                (format!("seen {}", id.name), vec![Key::Template(id)])
            }
            Observation::Seen(Subject::Binding(binding)) => {
                let name = binding.metadata.name.clone().unwrap_or_default();
                (format!("written {name}"), vec![Key::Binding(id(&name))])
            }
            Observation::Gone { .. } => ("gone".into(), vec![]),
            Observation::Listed { .. } => {
                script.synced = true;
                ("listed".into(), vec![])
            }
            Observation::Lost { .. } => ("lost".into(), vec![]),
            Observation::Leads(true) => (
                "leads".into(),
                vec![Key::Template(id("a")), Key::Template(id("b"))],
            ),
            Observation::Leads(false) => ("stands by".into(), vec![]),
            Observation::Probed(name, _) => ("probed".into(), vec![Key::Cluster(name)]),
            Observation::NamespaceEnded(cluster, name) => {
                ("ended".into(), vec![Key::Namespace(name, cluster)])
            }
            _ => ("other".into(), vec![]),
        };
        script.diary.note(text);
        dirty
    }

    fn plan(&mut self, key: &Key, now: Time) -> Plan {
        let mut script = self.0.lock().unwrap();
        let diary = script.diary.clone();
        let plan = (script.plans)(key, now);
        diary.note(format!("plan {}", name(key)));
        plan
    }

    fn demand(&self) -> &BTreeSet<Watch> {
        self.2.fetch_add(1, Ordering::Relaxed);
        &self.1
    }

    fn demand_changes(&self) -> u64 {
        self.0.lock().unwrap().changes
    }

    fn take_ended(&mut self) -> BTreeSet<Watch> {
        std::mem::take(&mut self.0.lock().unwrap().ended)
    }

    fn cluster(&self, _: &str) -> Option<Arc<Cluster>> {
        None
    }

    fn is_synced(&self) -> bool {
        self.0.lock().unwrap().synced
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn refused(&self, key: &Key, words: &str) -> Option<Event> {
        self.0
            .lock()
            .unwrap()
            .diary
            .note(format!("refused {}: {words}", name(key)));
        None
    }
}

fn id(name: &str) -> ResourceId {
    ResourceId::new(Gvk::new("v1", "ConfigMap"), "ns", name)
}

fn name(key: &Key) -> &str {
    match key {
        Key::Template(id) | Key::Binding(id) | Key::BindingStatus(id) => &id.name,
        Key::Cluster(name) | Key::Namespace(_, name) => name,
        _ => "?",
    }
}

/// A running control loop.
struct Bench {
    diary: Diary,
    demanded: Arc<AtomicUsize>,
    hub: Log,
    brain: mpsc::Sender<Message>,
    leading: watch::Sender<bool>,
    synced: watch::Receiver<bool>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<bool>,
}

fn start(
    demand: &[Watch],
    plans: impl FnMut(&Key, Time) -> Plan + Send + 'static,
    reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Bench {
    let diary = Diary::default();
    let (hub_api, hub): (Api, Log) = api(Server::Hub, reply);
    let (brain, inbox) = mpsc::channel(INBOX);
    let (events, _) = events::recorder(hub_api.clone(), Default::default(), Metrics::new());
    let mut members = Members::new(MembersOptions {
        hub: hub_api.clone(),
        clients: Arc::new(|_, _| Ok(client(|_| Reply::Broken).0)),
        cluster_namespace: "karmada-cluster".into(),
        deadline: Duration::from_secs(10),
        probe_interval: crate::members::PROBE_INTERVAL,
        bounds: Bounds::default(),
        pulled: Capacity::shared(Bounds::default()),
        metrics: Metrics::new(),
        may_write: always(),
        brain: brain.clone(),
    });
    for name in MEMBERS {
        members.pretend(name, 1);
    }
    let sources = Sources::new(hub_api.clone());
    let hands = Executor {
        hub: hub_api,
        hub_id: "hub".into(),
        sources,
        interpreters: Default::default(),
        estimators: None,
        events,
        brain: brain.clone(),
    };
    let demand: BTreeSet<Watch> = demand.iter().cloned().collect();
    let script = Script {
        diary: diary.clone(),
        plans: Box::new(plans),
        synced: false,
        changes: 0,
        ended: BTreeSet::new(),
    };
    let demanded = Arc::new(AtomicUsize::new(0));
    let decider = Shared(Mutex::new(script), demand, demanded.clone());
    let (leading, leads) = watch::channel(true);
    let (synced, is_synced) = watch::channel(false);
    let options = BrainOptions {
        decider,
        hands,
        members,
        hub: "hub".into(),
        inbox,
        leading: leads.into(),
        synced,
        metrics: Metrics::new(),
    };
    let stop = CancellationToken::new();
    let task = tokio::spawn(run(options, stop.clone()));
    Bench {
        diary,
        demanded,
        hub,
        brain,
        leading,
        synced: is_synced,
        stop,
        task,
    }
}

impl Bench {
    async fn see(&self, name: &str) {
        let seen = Observation::Seen(Subject::Template(id(name), Template::default()));
        self.brain.send(Message::Seen(Box::new(seen))).await.ok();
    }

    /// Waits until the diary has at least this many entries.
    async fn wait(&self, entries: usize) -> Vec<String> {
        while self.diary.all().len() < entries {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.diary.all()
    }
}

fn create(name: &str) -> Plan {
    create_in("ns", name)
}

fn create_in(namespace: &str, name: &str) -> Plan {
    let object = HubObject::Binding(NamespacedName::new(namespace, name));
    Plan::one(
        entourage_core::plan::Change::Hub {
            object,
            verb: Verb::Create(json!({"name": name})),
        },
        "",
    )
}

fn binding(name: &str) -> Reply {
    Reply::Json(
        201,
        json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": name}}}),
    )
}

/// The name in the body of a create.
fn named(asked: &Asked) -> String {
    asked.body["name"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_observation_is_planned_carried_out_and_its_answer_observed() {
    let plans = |key: &Key, _| match key {
        Key::Template(id) => create(&id.name),
        _ => Plan::nothing(),
    };
    let bench = start(&[], plans, |asked| binding(&named(asked)));
    bench.see("a").await;
    assert_eq!(bench.wait(4).await, ["seen a", "plan a", "written a", "plan a"]);
    assert_eq!(bench.hub.lines().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_dirtied_again_before_their_turn_are_planned_once() {
    let bench = start(&[], |_, _| Plan::nothing(), |_| Reply::Broken);
    for _ in 0..10 {
        bench.see("a").await;
    }
    bench.see("b").await;
    let diary = bench.wait(13).await;
    assert_eq!(diary[11..], ["plan a", "plan b"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_demanded_is_looked_at_when_it_changed_and_not_with_every_event() {
    let bench = start(&[], |_, _| Plan::nothing(), |_| Reply::Broken);
    for n in 0..10 {
        bench.see("a").await;
        bench.wait(2 * n + 2).await;
    }
    assert_eq!(bench.demanded.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_planned_without_leadership_and_everything_after() {
    let bench = start(&[], |_, _| Plan::nothing(), |_| Reply::Broken);
    bench.leading.send_replace(false);
    bench.see("c").await;
    assert_eq!(bench.wait(2).await, ["stands by", "seen c"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.diary.all(), ["stands by", "seen c"]);
    bench.leading.send_replace(true);
    // The core returns the keys to plan: keys from before the takeover are not kept.
    let diary = bench.wait(5).await;
    assert_eq!(diary[2..], ["leads", "plan a", "plan b"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.diary.all().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_plan_may_ask_to_be_made_again_later() {
    let mut first = true;
    let plans = move |_: &Key, now: Time| {
        if std::mem::take(&mut first) {
            Plan::wait_until(now.plus(5_000), "later")
        } else {
            Plan::nothing()
        }
    };
    let bench = start(&[], plans, |_| Reply::Broken);
    bench.see("a").await;
    bench.wait(2).await;
    let began = Instant::now();
    assert_eq!(bench.wait(3).await, ["seen a", "plan a", "plan a"]);
    assert!(
        began.elapsed() >= Duration::from_millis(4_990),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn an_unresponsive_hub_is_asked_less_and_less_and_its_first_answer_frees_all_keys() {
    let unresponsive = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (is_unresponsive, answers) = (unresponsive.clone(), std::sync::atomic::Ordering::SeqCst);
    let plans = |key: &Key, _| match key {
        Key::Template(id) => create(&id.name),
        _ => Plan::nothing(),
    };
    let bench = start(&[], plans, move |asked| {
        if is_unresponsive.load(answers) {
            Reply::Broken
        } else {
            binding(&named(asked))
        }
    });
    for each in ["a", "b", "c"] {
        bench.see(each).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let calls = bench.hub.lines().len();
    assert!(calls < 45, "{calls}");
    unresponsive.store(false, answers);
    let written = |diary: &[String]| diary.iter().filter(|each| each.starts_with("written")).count();
    while written(&bench.diary.all()) < 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(written(&bench.diary.all()) >= 3, "{:?}", bench.diary.all());
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_not_repeated_at_once_although_its_refusal_dirties_the_key() {
    let bench = start(&[], |_, _| create("a"), |_| status(422, "Invalid"));
    bench.see("a").await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(bench.hub.lines().len(), 1);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let calls = bench.hub.lines().len();
    assert!((2..=4).contains(&calls), "{calls}");
    let reported = bench.diary.all();
    let reported: Vec<_> = reported
        .iter()
        .filter(|each| each.starts_with("refused"))
        .collect();
    assert_eq!(reported, ["refused a: Invalid it is"], "the first time only");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decided_is_reported_once_and_planned_anew_as_soon_as_something_changes() {
    let refused = |_: &Key, _| Plan::one(entourage_core::plan::Change::Refuse("a bad rule".into()), "");
    let bench = start(&[], refused, |_| status(422, "Invalid"));
    for _ in 0..5 {
        bench.see("a").await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let planned = || {
        let all = bench.diary.all();
        all.iter().filter(|each| *each == "plan a").count()
    };
    assert_eq!(planned(), 5, "{:?}", bench.diary.all());
    // No request was sent, so a retry has no effect.
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(planned(), 5, "{:?}", bench.diary.all());
    assert!(bench.hub.lines().is_empty());
    let reported = bench.diary.all();
    let reported = reported.iter().filter(|each| each.starts_with("refused")).count();
    assert_eq!(reported, 1);
}

#[tokio::test(start_paused = true)]
async fn a_path_that_asks_to_be_left_alone_is_not_asked_until_then_and_the_server_is() {
    let busy = json!({"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 7}});
    let plans = |key: &Key, _| match key {
        Key::Template(id) if &*id.name == "elsewhere" => create_in("other", &id.name),
        Key::Template(id) => create(&id.name),
        _ => Plan::nothing(),
    };
    let bench = start(&[], plans, move |asked| match named(asked).as_str() {
        "elsewhere" => binding("elsewhere"),
        _ => Reply::Json(429, busy.clone()),
    });
    bench.see("a").await;
    bench.wait(2).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    bench.see("b").await;
    bench.see("elsewhere").await;
    tokio::time::sleep(Duration::from_millis(6_900)).await;
    let lines = bench.hub.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].contains("/namespaces/other/"), "{lines:?}");
    tokio::time::sleep(Duration::from_millis(5_000)).await;
    assert!(bench.hub.lines().len() > 2);
}

#[tokio::test(start_paused = true)]
async fn the_members_plans_do_not_wait_for_a_hub_that_hangs() {
    let plans = |key: &Key, _| match key {
        Key::Template(id) => create(&id.name),
        _ => Plan::nothing(),
    };
    let bench = start(&[], plans, |_| Reply::Silence);
    for number in 0..100 {
        bench.see(&format!("t{number}")).await;
    }
    bench.wait(116).await;
    let probed = Message::Probed {
        name: "m1".into(),
        run: 1,
        probe: Probe::default(),
    };
    bench.brain.send(probed).await.ok();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(bench.hub.lines().len(), 16, "no more than the limit at a time");
    assert!(
        bench.diary.all().contains(&"probed".to_owned()),
        "the brain goes on"
    );
}

/// Connects all members with one capacity of four requests, and makes a key for each of eight namespaces of each. Returns the
/// requests of all.
async fn share(bench: &Bench, reply: fn(&Asked) -> Reply) -> Log {
    let bounds = Bounds {
        least: 4,
        start: 4,
        most: 4,
    };
    let (client, log) = client(reply);
    let capacity = Capacity::shared(bounds);
    for name in MEMBERS.map(Str::from) {
        let options = crate::client::ApiOptions {
            capacity: capacity.clone(),
            ..tests::options(Server::Member(name.clone()))
        };
        let member = Some(Arc::new(Member::new(Api::new(client.clone(), options))));
        let (run, name) = (1, name);
        bench.brain.send(Message::Member { name, run, member }).await.ok();
    }
    for name in MEMBERS.map(Str::from) {
        for number in 0..8 {
            let namespace = format!("{name}-{number}").as_str().into();
            let seen = Observation::NamespaceEnded(name.clone(), namespace);
            bench.brain.send(Message::Seen(Box::new(seen))).await.ok();
        }
    }
    log
}

fn write_namespace(key: &Key, _: Time) -> Plan {
    let Key::Namespace(name, cluster) = key else {
        return Plan::nothing();
    };
    let change = Change::Namespace {
        cluster: cluster.clone(),
        name: name.clone(),
        labels: Default::default(),
        annotations: Default::default(),
    };
    Plan::one(change, "a test")
}

#[tokio::test(start_paused = true)]
async fn members_that_share_a_capacity_have_no_more_of_it_together_than_one() {
    let bench = start(&[], write_namespace, |_| Reply::Silence);
    let log = share(&bench, |_| Reply::Silence).await;
    bench.wait(24 + 4).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(log.lines().len(), 4, "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn members_that_share_a_capacity_take_turns() {
    let bench = start(&[], write_namespace, |_| Reply::Silence);
    let found = |_: &Asked| Reply::Json(200, json!({"metadata": {"name": "a", "uid": "u"}}));
    let log = share(&bench, found).await;
    // Each is dirtied, planned, and observed.
    let all = bench.wait(3 * 24).await;
    let planned: Vec<&String> = all.iter().filter(|entry| entry.starts_with("plan")).collect();
    assert_eq!((planned.len(), log.lines().len()), (24, 24));
    for name in MEMBERS {
        let first = planned.iter().position(|entry| entry.ends_with(name));
        assert!(first.is_some_and(|first| first <= 8), "{planned:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_demanded_is_watched_and_makes_the_brain_synced() {
    let list = json!({"metadata": {"resourceVersion": "5"},
        "items": [{"metadata": {"namespace": "ns", "name": "a", "resourceVersion": "4"}}]});
    let replies = Mutex::new(VecDeque::from([Reply::Json(200, list)]));
    let watch = Watch::Templates(Gvk::new("v1", "ConfigMap"));
    let mut bench = start(
        &[watch],
        |_, _| Plan::nothing(),
        move |_| replies.lock().unwrap().pop_front().unwrap_or(Reply::Silence),
    );
    bench.synced.wait_for(|synced| *synced).await.ok();
    assert_eq!(bench.wait(3).await, ["seen a", "listed", "plan a"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_to_end_although_it_is_demanded_lists_afresh_and_no_other_does() {
    let watches = ["ConfigMap", "Secret"].map(|kind| Watch::Templates(Gvk::new("v1", kind)));
    let bench = start(
        &watches,
        |_, _| Plan::nothing(),
        |asked| {
            if asked.line.contains("watch=true") {
                Reply::Lines(vec![], true)
            } else {
                Reply::Json(200, json!({"metadata": {"resourceVersion": "5"}, "items": []}))
            }
        },
    );
    let lists = || {
        let lines = bench.hub.lines();
        let of = |plural: &str| {
            let mut lists = lines.iter().filter(|line| !line.contains("watch=true"));
            lists.by_ref().filter(|line| line.contains(plural)).count()
        };
        [of("/configmaps"), of("/secrets")]
    };
    bench.wait(2).await;
    assert_eq!(lists(), [1, 1]);
    bench.see(CHANGED).await;
    bench.wait(4).await;
    assert_eq!(lists(), [1, 1]);
    bench.see(ENDED).await;
    let listed = |diary: &[String]| diary.iter().filter(|each| *each == "listed").count();
    let again = async {
        while listed(&bench.diary.all()) < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let again = tokio::time::timeout(Duration::from_secs(60), again).await;
    assert!(again.is_ok(), "{:?}", bench.diary.all());
    assert_eq!(lists(), [2, 1]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(lists(), [2, 1], "it ended once");
    assert!(!bench.diary.all().contains(&"lost".to_owned()), "it was not lost");
}

#[tokio::test(start_paused = true)]
async fn copies_are_watched_only_while_their_member_has_a_client() {
    let watch = Watch::Copies("m1".into(), Gvk::new("v1", "ConfigMap"));
    let bench = start(&[watch], |_, _| Plan::nothing(), |_| Reply::Broken);
    let (member, log) = api(Server::Member("m1".into()), |asked| {
        if asked.line.contains("watch=true") {
            Reply::Silence
        } else {
            Reply::Json(200, json!({"metadata": {"resourceVersion": "5"}, "items": []}))
        }
    });
    let lend = |member: Option<Arc<Member>>| Message::Member {
        name: "m1".into(),
        run: 1,
        member,
    };
    let stale = Message::Member {
        name: "m1".into(),
        run: 0,
        member: Some(Arc::new(Member::new(member.clone()))),
    };
    bench.brain.send(stale).await.ok();
    bench.see("a").await;
    bench.wait(2).await;
    assert!(
        log.lines().is_empty(),
        "a client of an earlier Cluster of that name"
    );
    bench
        .brain
        .send(lend(Some(Arc::new(Member::new(member)))))
        .await
        .ok();
    assert_eq!(bench.wait(3).await[2], "listed");
    bench.brain.send(lend(None)).await.ok();
    assert_eq!(bench.wait(4).await[3], "lost");
    let calls = log.lines().len();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(log.lines().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_an_ended_watch_are_not_believed() {
    let watch = Watch::Copies("m1".into(), Gvk::new("v1", "ConfigMap"));
    let bench = start(
        std::slice::from_ref(&watch),
        |_, _| Plan::nothing(),
        |_| Reply::Broken,
    );
    let listed = Observation::Listed {
        watch,
        present: BTreeSet::new(),
        revision: 0,
    };
    bench
        .brain
        .send(Message::Watched {
            run: 77,
            seen: vec![listed],
            initial: true,
        })
        .await
        .ok();
    bench.see("a").await;
    assert_eq!(bench.wait(1).await[0], "seen a");
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_what_is_under_way_but_not_for_ever() {
    let plans = |_: &Key, _| create("a");
    let bench = start(&[], plans, |_| Reply::Silence);
    bench.see("a").await;
    bench.wait(2).await;
    let began = Instant::now();
    bench.stop.cancel();
    assert!(
        !bench.task.await.unwrap(),
        "the outcome of the request is unknown"
    );
    assert_eq!(began.elapsed(), LAST_WORDS);
}
