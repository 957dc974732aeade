//! Sightings, and the facts derived from them.

use entourage_core::object::Gvk;

use super::*;

fn id(kind: &str, name: &str) -> ResourceId {
    let group = if kind == "Deployment" { "apps/v1" } else { "v1" };
    ResourceId::new(Gvk::new(group, kind), "shop", name)
}

struct ScheduleTrace {
    killed: Instant,
    seen: Vec<Sighting>,
}

impl ScheduleTrace {
    fn new() -> Self {
        let killed = Instant::now() + Duration::from_secs(1);
        Self {
            killed,
            seen: Vec::new(),
        }
    }

    /// A copy from before the observation.
    fn held(mut self, cluster: &str, id: &ResourceId, replicas: i64) -> Self {
        self.record(cluster, id, 0, true, Some(replicas));
        self
    }

    /// A change this long after the kill.
    fn then(mut self, after: u64, cluster: &str, id: &ResourceId, replicas: Option<i64>) -> Self {
        self.record(cluster, id, after, false, replicas);
        self
    }

    fn record(&mut self, cluster: &str, id: &ResourceId, after: u64, initial: bool, replicas: Option<i64>) {
        self.seen.push(Sighting {
            cluster: cluster.to_owned(),
            id: id.clone(),
            revision: self.seen.len() as u64,
            at: self.killed + Duration::from_millis(after),
            initial,
            copy: replicas.map(|replicas| Copy {
                managed: true,
                replicas,
                bound: false,
            }),
        });
    }

    fn lacks(&self) -> Vec<String> {
        let needs = BTreeMap::from([(
            id("Deployment", "web"),
            BTreeSet::from([id("ConfigMap", "settings")]),
        )]);
        lacks(&self.seen, &needs, self.killed)
    }

    fn gap(&self) -> Option<u128> {
        let gap = gap(&self.seen, &id("Deployment", "web"), "member1", self.killed);
        gap.map(|gap| gap.as_millis())
    }
}

#[test]
fn a_workload_that_comes_before_its_dependency_or_outlives_it_is_reported_once() {
    let (web, settings) = (id("Deployment", "web"), id("ConfigMap", "settings"));
    let good = ScheduleTrace::new()
        .held("member1", &web, 1)
        .held("member1", &settings, 1)
        .then(10, "member2", &settings, Some(1))
        .then(20, "member2", &web, Some(1))
        .then(30, "member1", &web, None)
        .then(40, "member1", &settings, None);
    assert_eq!(good.lacks(), [] as [String; 0]);
    let early = ScheduleTrace::new()
        .then(10, "member2", &web, Some(1))
        .then(15, "member2", &web, Some(2))
        .then(20, "member2", &settings, Some(1));
    assert_eq!(
        early.lacks(),
        ["Deployment shop/web was on member2 without ConfigMap shop/settings (10 ms after the cut)"]
    );
    let late = ScheduleTrace::new()
        .held("member1", &settings, 1)
        .held("member1", &web, 1)
        .then(30, "member1", &settings, None)
        .then(40, "member1", &web, None);
    assert_eq!(
        late.lacks(),
        ["Deployment shop/web was on member1 without ConfigMap shop/settings (30 ms after the cut)"]
    );
}

#[test]
fn a_gap_lasts_until_the_others_hold_as_many_replicas_as_all_did() {
    let web = id("Deployment", "web");
    let two = || {
        ScheduleTrace::new()
            .held("member1", &web, 2)
            .held("member2", &web, 2)
    };
    assert_eq!(two().gap(), None, "nothing replaces it");
    assert_eq!(two().then(500, "member3", &web, Some(2)).gap(), Some(500));
    assert_eq!(
        two().then(300, "member2", &web, Some(4)).gap(),
        Some(300),
        "divided replicas go to a cluster that has some"
    );
    let flapping = two()
        .then(100, "member3", &web, Some(2))
        .then(200, "member3", &web, None)
        .then(250, "member3", &web, Some(2));
    assert_eq!(flapping.gap(), Some(150));
    let elsewhere = ScheduleTrace::new().held("member2", &web, 2);
    assert_eq!(elsewhere.gap(), Some(0), "the dead cluster held nothing of it");
}

#[test]
fn an_arrival_is_that_of_the_last_object_and_zero_for_what_was_there() {
    let (settings, token) = (id("ConfigMap", "settings"), id("Secret", "token"));
    let both = BTreeSet::from([settings.clone(), token.clone()]);
    let story = ScheduleTrace::new()
        .held("member2", &settings, 1)
        .then(40, "member2", &token, Some(1))
        .then(90, "member2", &token, Some(1))
        .then(99, "member3", &token, Some(1));
    let clusters = BTreeSet::from(["member2".to_owned()]);
    let of = |objects| arrival(&story.seen, objects, &clusters, story.killed).as_millis();
    assert_eq!(of(&both), 40);
    assert_eq!(of(&BTreeSet::from([settings])), 0);
}
