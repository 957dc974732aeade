//! The parts of a whole cluster beside an API server, as a client of a member sees them.

mod common;

use std::net::{Ipv4Addr, SocketAddr};

use common::{ask, ask_as, until};
use entourage_apiserver::{
    Cluster, Options, StandIns,
    listener::{self, Authority},
    workloads::{self, Stages},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const ADMIN: &str = "admin";
const NAMESPACES: &str = "/api/v1/namespaces";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

fn options(stand_ins: StandIns) -> Options {
    Options {
        admin_token: ADMIN.to_owned(),
        authority: Some(Authority::new().expect("an authority")),
        stand_ins,
        ..Options::default()
    }
}

fn member() -> Cluster {
    Cluster::new(options(StandIns::ALL))
}

async fn get(cluster: &Cluster, path: &str) -> (u16, Value) {
    ask(cluster, ADMIN, "GET", path, &Value::Null).await
}

async fn make(cluster: &Cluster, path: &str, object: Value) -> Value {
    let (code, made) = ask(cluster, ADMIN, "POST", path, &object).await;
    assert_eq!(code, 201, "{made}");
    made
}

async fn patch(cluster: &Cluster, path: &str, patch: Value) -> Value {
    let media = "application/merge-patch+json";
    let (code, patched) = ask_as(cluster, ADMIN, "PATCH", path, media, &patch).await;
    assert_eq!(code, 200, "{patched}");
    patched
}

async fn delete(cluster: &Cluster, path: &str) {
    let (code, answer) = ask(cluster, ADMIN, "DELETE", path, &Value::Null).await;
    assert!(matches!(code, 200 | 202), "{answer}");
}

#[tokio::test]
async fn a_namespace_has_the_authority_until_it_goes() {
    let cluster = member();
    let map = format!("{NAMESPACES}/shop/configmaps/kube-root-ca.crt");
    make(&cluster, NAMESPACES, json!({"metadata": {"name": "shop"}})).await;
    let first = until(&cluster, ADMIN, &map, |code, _| code == 200).await;
    let text = first["data"]["ca.crt"].as_str().expect("a text");
    assert!(text.contains("BEGIN CERTIFICATE"));

    let forged = json!({"data": {"ca.crt": "forged", "more": "x"}, "metadata": {"labels": {"team": "a"}}});
    patch(&cluster, &map, forged).await;
    let restored = until(&cluster, ADMIN, &map, |_, map| map["data"] == first["data"]).await;
    assert_eq!(restored["metadata"]["labels"]["team"], "a");

    delete(&cluster, &map).await;
    let again = until(&cluster, ADMIN, &map, |code, _| code == 200).await;
    assert_ne!(again["metadata"]["uid"], first["metadata"]["uid"]);

    delete(&cluster, &format!("{NAMESPACES}/shop")).await;
    until(&cluster, ADMIN, &format!("{NAMESPACES}/shop"), |code, _| {
        code == 404
    })
    .await;
    assert_eq!(get(&cluster, &map).await.0, 404);
}

#[tokio::test]
async fn the_service_kubernetes_leads_to_the_listener() {
    let options = options(StandIns::ALL);
    let authority = options.authority.clone().expect("an authority");
    let cluster = Cluster::new(options);
    let service = format!("{NAMESPACES}/default/services/kubernetes");
    until(&cluster, ADMIN, &service, |code, _| code == 200).await;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let stop = CancellationToken::new();
    let bound = listener::listen(cluster.clone(), &authority, any, stop.clone())
        .await
        .expect("an address");
    let endpoints = format!("{NAMESPACES}/default/endpoints/kubernetes");
    until(&cluster, ADMIN, &endpoints, |_, endpoints| {
        endpoints["subsets"][0]["ports"][0]["port"] == bound.port()
    })
    .await;
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let slice = until(&cluster, ADMIN, slice, |_, slice| {
        slice["ports"][0]["port"] == bound.port()
    })
    .await;
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["127.0.0.1"]));

    let before = get(&cluster, &service).await.1;
    assert_eq!(before["spec"]["clusterIP"], "10.96.0.1");
    patch(
        &cluster,
        &service,
        json!({"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    )
    .await;
    until(&cluster, ADMIN, &service, |_, service| {
        service["spec"]["ports"][0]["port"] == 443
    })
    .await;
    delete(&cluster, &service).await;
    let again = until(&cluster, ADMIN, &service, |code, _| code == 200).await;
    assert_eq!(again["spec"]["clusterIP"], "10.96.0.1");
    // The address is taken.
    let services = format!("{NAMESPACES}/default/services");
    let other =
        json!({"metadata": {"name": "other"}, "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]}});
    assert_eq!(ask(&cluster, ADMIN, "POST", &services, &other).await.0, 422);
    stop.cancel();
}

#[tokio::test]
async fn each_group_version_has_an_available_service() {
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let available = |service: &Value| service["status"]["conditions"][0]["status"] == "True";
    let cluster = member();
    for name in ["v1.", "v1.apps", "v1.apiregistration.k8s.io"] {
        let path = format!("{SERVICES}/{name}");
        until(&cluster, ADMIN, &path, |_, service| available(service)).await;
    }
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({"metadata": {"name": "cups.t.example.com"}, "spec": {"group": "t.example.com", "scope": "Namespaced",
        "names": {"plural": "cups", "kind": "Cup"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    make(&cluster, CRDS, crd).await;
    let path = format!("{SERVICES}/v1.t.example.com");
    until(&cluster, ADMIN, &path, |_, service| available(service)).await;
    delete(&cluster, &path).await;
    until(&cluster, ADMIN, &path, |_, service| available(service)).await;
    delete(&cluster, &format!("{CRDS}/cups.t.example.com")).await;
    until(&cluster, ADMIN, &path, |code, _| code == 404).await;

    let spec = json!({"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
        "service": {"namespace": "kube-system", "name": "metrics-server"}, "insecureSkipTLSVerify": true});
    let metrics = json!({"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec});
    make(&cluster, SERVICES, metrics).await;
    let path = format!("{SERVICES}/v1beta1.metrics.k8s.io");
    let service = until(&cluster, ADMIN, &path, |_, service| {
        service["status"]["conditions"][0]["status"] == "False"
    })
    .await;
    assert_eq!(service["spec"]["service"]["port"], 443);
    delete(&cluster, &path).await;
    assert_eq!(get(&cluster, &path).await.0, 404);
}

#[tokio::test]
async fn a_hub_has_nothing_of_it() {
    let cluster = Cluster::new(options(StandIns::default()));
    // The controllers have worked: this account is theirs.
    let account = format!("{NAMESPACES}/kube-public/serviceaccounts/default");
    until(&cluster, ADMIN, &account, |code, _| code == 200).await;
    for path in [
        format!("{MAPS}/kube-root-ca.crt"),
        format!("{NAMESPACES}/default/services/kubernetes"),
        SERVICES.to_owned(),
    ] {
        assert_eq!(get(&cluster, &path).await.0, 404, "{path}");
    }
}

fn quota(hard: &Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})
}

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const QUOTA: &str = "/api/v1/namespaces/default/resourcequotas/q";

#[tokio::test]
async fn a_quota_refuses_what_is_too_much_and_gets_room_again() {
    let cluster = member();
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    make(&cluster, PODS, pod("before")).await;
    make(&cluster, QUOTAS, quota(&json!({"pods": "2"}))).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"]["used"]["pods"] == "1"
    })
    .await;
    make(&cluster, PODS, pod("second")).await;
    let (code, refused) = ask(&cluster, ADMIN, "POST", PODS, &pod("third")).await;
    assert_eq!(code, 403, "{refused}");
    let message =
        "pods \"third\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2";
    assert_eq!(refused["message"], message);

    delete(&cluster, &format!("{PODS}/second?gracePeriodSeconds=0")).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"]["used"]["pods"] == "1"
    })
    .await;
    make(&cluster, PODS, pod("third")).await;

    patch(&cluster, QUOTA, json!({"spec": {"hard": {"pods": "3"}}})).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"] == json!({"hard": {"pods": "3"}, "used": {"pods": "2"}})
    })
    .await;
}

#[tokio::test]
async fn a_quota_of_devices_refuses_a_pod_that_asks_for_one_more() {
    let cluster = member();
    let pod = |name: &str| {
        let one = json!({"example.com/dongle": 1});
        let container = json!({"name": "a", "image": "a", "resources": {"requests": one, "limits": one}});
        json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
    };
    make(&cluster, PODS, pod("before")).await;
    let hard = json!({"requests.example.com/dongle": "1"});
    make(&cluster, QUOTAS, quota(&hard)).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| quota["status"]["used"] == hard).await;
    let (code, refused) = ask(&cluster, ADMIN, "POST", PODS, &pod("second")).await;
    assert_eq!(code, 403, "{refused}");
    let message = "pods \"second\" is forbidden: exceeded quota: q, requested: requests.example.com/dongle=1, used: requests.example.com/dongle=1, limited: requests.example.com/dongle=1";
    assert_eq!(refused["message"], message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn as_many_fit_into_a_quota_as_it_says_whoever_is_first() {
    let cluster = member();
    // One is there already: the authority's.
    let map = format!("{MAPS}/kube-root-ca.crt");
    until(&cluster, ADMIN, &map, |code, _| code == 200).await;
    make(&cluster, QUOTAS, quota(&json!({"configmaps": "21"}))).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"]["used"]["configmaps"] == "1"
    })
    .await;
    let writers = (0..4).map(|writer| {
        let cluster = cluster.clone();
        tokio::spawn(async move {
            let mut made = 0;
            for number in 0..40 {
                let name = format!("m{writer}-{number}");
                let map = json!({"metadata": {"name": name}});
                let (code, _) = ask(&cluster, ADMIN, "POST", MAPS, &map).await;
                assert!(matches!(code, 201 | 403), "{code}");
                made += usize::from(code == 201);
                // Changes of other objects have the quota counted meanwhile.
                let labels = json!({"metadata": {"labels": {"n": format!("{writer}-{number}")}}});
                patch(&cluster, &format!("{MAPS}/kube-root-ca.crt"), labels).await;
            }
            made
        })
    });
    let made = futures::future::join_all(writers).await;
    let made: usize = made.into_iter().map(|made| made.expect("no panic")).sum();
    assert_eq!(made, 20);
    let quota = get(&cluster, QUOTA).await.1;
    assert_eq!(quota["status"]["used"]["configmaps"], "21");
}

#[tokio::test]
async fn a_budget_lets_as_many_pods_go_as_it_allows() {
    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
    const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    let labels = json!({"app": "web"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let spec = json!({"replicas": 4, "selector": {"matchLabels": labels}, "template": template});
    make(
        &cluster,
        DEPLOYMENTS,
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let spec = json!({"maxUnavailable": "25%", "selector": {"matchLabels": labels}});
    make(
        &cluster,
        BUDGETS,
        json!({"metadata": {"name": "b"}, "spec": spec}),
    )
    .await;
    let budget = format!("{BUDGETS}/b");
    let found = until(&cluster, ADMIN, &budget, |_, budget| {
        budget["status"]["disruptionsAllowed"] == 1
    })
    .await;
    let status = &found["status"];
    assert_eq!(
        [
            &status["currentHealthy"],
            &status["desiredHealthy"],
            &status["expectedPods"]
        ],
        [&json!(4), &json!(3), &json!(4)]
    );
    let pods = get(&cluster, PODS).await.1;
    let names: Vec<&str> = pods["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|pod| pod["metadata"]["name"].as_str().expect("a name"))
        .collect();
    let mut codes = Vec::new();
    for name in &names[..2] {
        // As kubectl of 1.20 sends it.
        let eviction =
            json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": name}});
        let path = format!("{PODS}/{name}/eviction");
        codes.push(ask(&cluster, ADMIN, "POST", &path, &eviction).await.0);
    }
    assert_eq!(codes, [201, 429]);
    // Another pod takes the place of the evicted one, and the next may go.
    let again = until(&cluster, ADMIN, &budget, |_, budget| {
        let status = &budget["status"];
        status["disruptionsAllowed"] == 1 && status["disruptedPods"].is_null()
    })
    .await;
    assert_eq!(again["status"]["conditions"][0]["status"], "True");
}

#[tokio::test]
async fn a_pod_that_is_evicted_says_so_before_it_goes() {
    let cluster = member();
    let pod =
        json!({"metadata": {"name": "p", "finalizers": ["example.com/a"]}, "spec": template("p")["spec"]});
    let made = make(&cluster, PODS, pod).await;
    let path = format!("{PODS}/p");
    let evict = |options: Value| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"},
            "deleteOptions": options});
        let cluster = &cluster;
        let path = format!("{path}/eviction");
        async move { ask(cluster, ADMIN, "POST", &path, &eviction).await.0 }
    };
    let version = &made["metadata"]["resourceVersion"];
    assert_eq!(evict(json!({"dryRun": ["All"]})).await, 201);
    assert_eq!(
        evict(json!({"preconditions": {"resourceVersion": "1"}})).await,
        409
    );
    assert_eq!(get(&cluster, &path).await.1, made, "nothing is written");
    assert_eq!(
        evict(json!({"preconditions": {"resourceVersion": version}})).await,
        201
    );
    let pod = get(&cluster, &path).await.1;
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let conditions = pod["status"]["conditions"].as_array().expect("conditions");
    let of_type = |one: &&Value| one["type"] == "DisruptionTarget";
    let condition = conditions.iter().find(of_type).expect("a condition");
    assert_eq!(
        [&condition["status"], &condition["reason"], &condition["message"]],
        ["True", "EvictionByEvictionAPI", "Eviction API: evicting"]
    );
    assert_eq!(
        pod["metadata"]["managedFields"],
        made["metadata"]["managedFields"]
    );
}

#[tokio::test]
async fn a_job_that_ignores_disruptions_outlives_an_eviction() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    // The pods wait: none ends before it is evicted.
    let pod = json!({"restartPolicy": "Never", "nodeSelector": {"no": "node"}, "containers": [{"name": "a", "image": "a"}]});
    let rules = json!([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]);
    let spec = json!({"backoffLimit": 0, "podFailurePolicy": {"rules": rules}, "template": {"spec": pod}});
    make(&cluster, JOBS, json!({"metadata": {"name": "j"}, "spec": spec})).await;
    let first = until(&cluster, ADMIN, PODS, |_, pods| pods["items"][0].is_object()).await;
    let name = first["items"][0]["metadata"]["name"].as_str().expect("a name");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let path = format!("{PODS}/{name}/eviction");
    assert_eq!(ask(&cluster, ADMIN, "POST", &path, &eviction).await.0, 201);
    // Its place is taken, or the Job ends.
    let job = format!("{JOBS}/j");
    let another = until(&cluster, ADMIN, PODS, |_, pods| {
        let pods = pods["items"].as_array().into_iter().flatten();
        pods.into_iter().any(|pod| pod["metadata"]["name"] != name)
    });
    let ended = until(&cluster, ADMIN, &job, |_, job| {
        job["status"]["conditions"][0].is_object()
    });
    tokio::select! {
        _ = another => {}
        job = ended => panic!("{job}"),
    }
}

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CRONS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

/// A CronJob whose last time was long ago.
async fn cron_job(cluster: &Cluster, more: Value) {
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]});
    let mut spec = json!({"schedule": "0 0 1 1 *", "suspend": true,
        "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": pod}}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    make(cluster, CRONS, json!({"metadata": {"name": "c"}, "spec": spec})).await;
    let status = json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}});
    patch(cluster, &format!("{CRONS}/c/status"), status).await;
    patch(
        cluster,
        &format!("{CRONS}/c"),
        json!({"spec": {"suspend": false}}),
    )
    .await;
}

#[tokio::test]
async fn a_cron_job_that_missed_many_times_runs_once() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    cron_job(&cluster, json!({})).await;
    let cron = until(&cluster, ADMIN, &format!("{CRONS}/c"), |_, cron| {
        cron["status"]["lastSuccessfulTime"].is_string() && cron["status"]["active"].is_null()
    })
    .await;
    let jobs = get(&cluster, JOBS).await.1;
    let jobs = jobs["items"].as_array().expect("a list");
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    let metadata = &jobs[0]["metadata"];
    assert_eq!(metadata["labels"]["a"], "b");
    assert_eq!(metadata["ownerReferences"][0]["uid"], cron["metadata"]["uid"]);
    let scheduled = &metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(scheduled, &cron["status"]["lastScheduleTime"]);

    delete(&cluster, &format!("{CRONS}/c?propagationPolicy=Background")).await;
    until(&cluster, ADMIN, JOBS, |_, jobs| jobs["items"] == json!([])).await;
}

#[tokio::test]
async fn a_job_that_was_refused_is_created_when_there_is_room() {
    let cluster = member();
    make(&cluster, QUOTAS, quota(&json!({"count/jobs.batch": "0"}))).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"]["used"].is_object()
    })
    .await;
    workloads::start(&cluster, Stages::default());
    cron_job(&cluster, json!({"successfulJobsHistoryLimit": 0})).await;
    // The pod is there for its events alone: it is processed behind the CronJob.
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    make(&cluster, PODS, pod).await;
    until(&cluster, ADMIN, &format!("{PODS}/p"), |_, pod| {
        pod["status"]["phase"] == "Running"
    })
    .await;
    let cron = get(&cluster, &format!("{CRONS}/c")).await.1;
    assert_eq!(cron["status"]["lastScheduleTime"], "2020-01-01T00:00:00Z");
    patch(
        &cluster,
        QUOTA,
        json!({"spec": {"hard": {"count/jobs.batch": "9"}}}),
    )
    .await;
    until(&cluster, ADMIN, &format!("{CRONS}/c"), |_, cron| {
        cron["status"]["lastSuccessfulTime"].is_string()
    })
    .await;
    // None of those that ended well is kept.
    until(&cluster, ADMIN, JOBS, |_, jobs| jobs["items"] == json!([])).await;
}

#[tokio::test]
async fn a_cron_job_that_is_switched_off_has_no_job() {
    let stand_ins = StandIns {
        cron_jobs: false,
        ..StandIns::ALL
    };
    let cluster = Cluster::new(options(stand_ins));
    workloads::start(&cluster, Stages::default());
    cron_job(&cluster, json!({})).await;
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": {"spec":
        {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}});
    make(&cluster, JOBS, job).await;
    until(&cluster, ADMIN, &format!("{JOBS}/j"), |_, job| {
        job["status"]["succeeded"] == 1
    })
    .await;
    let jobs = get(&cluster, JOBS).await.1;
    assert_eq!(jobs["items"].as_array().map(Vec::len), Some(1));
}

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const NODE: &str = "/api/v1/nodes/stand-in";
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";

fn template(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "a", "image": "a"}]}})
}

fn claim(class: &Value) -> Value {
    json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A member whose claims are released when they are unused, as those of `entourage up`.
fn protecting_member() -> Cluster {
    let cluster = Cluster::new(Options {
        storage_protection: true,
        ..options(StandIns::ALL)
    });
    workloads::start(&cluster, Stages::default());
    cluster
}

#[tokio::test]
async fn a_stateful_set_with_claims_runs_and_its_claims_go_with_it_if_it_says_so() {
    let cluster = protecting_member();
    let spec = json!({"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": template("db"), "volumeClaimTemplates": [claim(&Value::Null)],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}});
    make(&cluster, SETS, json!({"metadata": {"name": "db"}, "spec": spec})).await;
    let set = format!("{SETS}/db");
    until(&cluster, ADMIN, &set, |_, set| {
        set["status"]["readyReplicas"] == 2
    })
    .await;
    let bound = get(&cluster, &format!("{CLAIMS}/data-db-1")).await.1;
    assert_eq!(bound["status"]["phase"], "Bound");
    assert_eq!(bound["spec"]["storageClassName"], "standard");
    let volume = bound["spec"]["volumeName"].as_str().expect("a volume");
    let volume = get(&cluster, &format!("/api/v1/persistentvolumes/{volume}"))
        .await
        .1;
    assert_eq!(volume["spec"]["claimRef"]["name"], "data-db-1");
    assert_eq!(volume["status"]["phase"], "Bound");
    patch(&cluster, &set, json!({"spec": {"replicas": 1}})).await;
    until(&cluster, ADMIN, &format!("{CLAIMS}/data-db-1"), |code, _| {
        code == 404
    })
    .await;
    delete(&cluster, &set).await;
    until(&cluster, ADMIN, CLAIMS, |_, claims| claims["items"] == json!([])).await;
    let volumes = "/api/v1/persistentvolumes";
    until(&cluster, ADMIN, volumes, |_, volumes| {
        volumes["items"] == json!([])
    })
    .await;
}

#[tokio::test]
async fn a_claim_that_waits_for_its_consumer_is_bound_when_a_pod_uses_it() {
    let cluster = protecting_member();
    let class = json!({"metadata": {"name": "late"}, "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer"});
    make(&cluster, "/apis/storage.k8s.io/v1/storageclasses", class).await;
    make(&cluster, CLAIMS, claim(&json!("late"))).await;
    let mut pod = json!({"metadata": {"name": "p"}, "spec": template("p")["spec"]});
    make(&cluster, PODS, pod.clone()).await;
    until(&cluster, ADMIN, &format!("{PODS}/p"), |_, pod| {
        pod["status"]["phase"] == "Running"
    })
    .await;
    assert_eq!(
        get(&cluster, &format!("{CLAIMS}/data")).await.1["status"]["phase"],
        "Pending"
    );
    pod["metadata"]["name"] = json!("q");
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    make(&cluster, PODS, pod).await;
    until(&cluster, ADMIN, &format!("{PODS}/q"), |_, pod| {
        pod["status"]["phase"] == "Running"
    })
    .await;
    assert_eq!(
        get(&cluster, &format!("{CLAIMS}/data")).await.1["status"]["phase"],
        "Bound"
    );
}

#[tokio::test]
async fn a_node_that_is_cordoned_takes_no_pods_until_it_is_not() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    until(&cluster, ADMIN, NODE, |code, _| code == 200).await;
    let other = json!({"key": "a", "effect": "PreferNoSchedule"});
    let cordoned = json!({"unschedulable": true, "taints": [other]});
    patch(&cluster, NODE, json!({"spec": cordoned})).await;
    let tainted = until(&cluster, ADMIN, NODE, |_, node| {
        node["spec"]["taints"][1].is_object()
    })
    .await;
    let taint = &tainted["spec"]["taints"][1];
    assert_eq!(
        [&taint["key"], &taint["effect"]],
        ["node.kubernetes.io/unschedulable", "NoSchedule"]
    );
    let pod = json!({"metadata": {"name": "p"}, "spec": template("p")["spec"]});
    make(&cluster, PODS, pod).await;
    let waits = until(&cluster, ADMIN, &format!("{PODS}/p"), |_, pod| {
        pod["status"]["conditions"][0]["reason"] == "Unschedulable"
    })
    .await;
    assert_eq!(waits["status"]["phase"], "Pending");
    patch(&cluster, NODE, json!({"spec": {"unschedulable": null}})).await;
    until(&cluster, ADMIN, &format!("{PODS}/p"), |_, pod| {
        pod["status"]["phase"] == "Running"
    })
    .await;
    assert_eq!(get(&cluster, NODE).await.1["spec"]["taints"], json!([other]));
}

#[tokio::test]
async fn who_asks_for_the_log_of_a_pod_reads_that_nothing_runs_here() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    let log = format!("{PODS}/p/log");
    assert_eq!(get(&cluster, &log).await.0, 404, "no pod");
    make(
        &cluster,
        PODS,
        json!({"metadata": {"name": "p"}, "spec": template("p")["spec"]}),
    )
    .await;
    until(&cluster, ADMIN, &format!("{PODS}/p"), |_, pod| {
        pod["status"]["phase"] == "Running"
    })
    .await;
    let (code, answer) = get(&cluster, &log).await;
    let said = "nothing runs on node stand-in: the pod p has no containers, and so no output";
    assert_eq!((code, answer["message"].as_str()), (500, Some(said)));
    let elsewhere = json!({"metadata": {"name": "away"}, "spec": {"nodeName": "gone", "containers": [{"name": "c", "image": "i"}]}});
    make(&cluster, PODS, elsewhere).await;
    let (code, answer) = get(&cluster, &format!("{PODS}/away/log")).await;
    assert_eq!(
        (code, answer["message"].as_str()),
        (404, Some("nodes \"gone\" not found"))
    );
}

#[tokio::test]
async fn a_service_leads_to_the_ready_pods_of_a_deployment() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    let spec =
        json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")});
    make(
        &cluster,
        DEPLOYMENTS,
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]});
    let services = "/api/v1/namespaces/default/services";
    make(
        &cluster,
        services,
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let endpoints = "/api/v1/namespaces/default/endpoints/web";
    until(&cluster, ADMIN, endpoints, |_, endpoints| {
        endpoints["subsets"][0]["addresses"]
            .as_array()
            .is_some_and(|all| all.len() == 2)
    })
    .await;
    delete(&cluster, &format!("{services}/web")).await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=web";
    until(&cluster, ADMIN, slices, |_, slices| slices["items"] == json!([])).await;
}

#[tokio::test]
async fn a_rollout_replaces_all_pods_and_a_second_deployment_adopts_what_the_first_left() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    let spec =
        json!({"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")});
    let made = json!({"metadata": {"name": "web"}, "spec": spec});
    make(&cluster, DEPLOYMENTS, made.clone()).await;
    let path = format!("{DEPLOYMENTS}/web");
    let complete = |image: &'static str| {
        move |_: u16, web: &Value| {
            web["spec"]["template"]["spec"]["containers"][0]["image"] == image
                && web["status"]["updatedReplicas"] == 3
                && web["status"]["replicas"] == 3
                && web["status"]["availableReplicas"] == 3
                && web["status"]["observedGeneration"] == web["metadata"]["generation"]
        }
    };
    until(&cluster, ADMIN, &path, complete("a")).await;
    let containers = json!([{"name": "a", "image": "b"}]);
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": {"spec": {"containers": containers}}}}),
    )
    .await;
    let done = until(&cluster, ADMIN, &path, complete("b")).await;
    assert_eq!(
        done["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
    let sets = get(&cluster, "/apis/apps/v1/namespaces/default/replicasets")
        .await
        .1;
    assert_eq!(sets["items"].as_array().map(Vec::len), Some(2));
    delete(&cluster, &format!("{path}?propagationPolicy=Orphan")).await;
    until(&cluster, ADMIN, &path, |code, _| code == 404).await;
    let mut again = made;
    again["spec"]["template"]["spec"]["containers"] = json!([{"name": "a", "image": "b"}]);
    make(&cluster, DEPLOYMENTS, again).await;
    until(&cluster, ADMIN, &path, complete("b")).await;
    let after = get(&cluster, "/apis/apps/v1/namespaces/default/replicasets")
        .await
        .1;
    let uids = |sets: &Value| -> std::collections::BTreeSet<String> {
        let sets = sets["items"].as_array().into_iter().flatten();
        sets.map(|set| set["metadata"]["uid"].to_string()).collect()
    };
    assert_eq!(uids(&after), uids(&sets), "the sets are adopted");
}

#[tokio::test]
async fn a_pod_that_its_set_releases_is_replaced_and_is_adopted_when_it_fits_again() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    let spec =
        json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")});
    make(&cluster, path, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let pods = until(&cluster, ADMIN, PODS, |_, pods| {
        pods["items"][0]["status"]["phase"] == "Running"
    })
    .await;
    let first = pods["items"][0]["metadata"]["name"].as_str().expect("a name");
    let first = format!("{PODS}/{first}");
    patch(&cluster, &first, json!({"metadata": {"labels": {"app": "lab"}}})).await;
    let two = |_: u16, pods: &Value| pods["items"].as_array().is_some_and(|all| all.len() == 2);
    until(&cluster, ADMIN, PODS, two).await;
    patch(&cluster, &first, json!({"metadata": {"labels": {"app": "web"}}})).await;
    until(&cluster, ADMIN, PODS, |_, pods| {
        pods["items"].as_array().is_some_and(|all| all.len() == 1)
    })
    .await;
}

#[tokio::test]
async fn a_set_says_why_its_pods_are_refused() {
    let cluster = member();
    make(&cluster, QUOTAS, quota(&json!({"pods": "1"}))).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"]["used"].is_object()
    })
    .await;
    workloads::start(&cluster, Stages::default());
    let path = "/api/v1/namespaces/default/replicationcontrollers";
    let spec = json!({"replicas": 2, "selector": {"app": "web"}, "template": template("web")});
    make(&cluster, path, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let path = format!("{path}/web");
    let failure = |one: &Value| one["status"]["conditions"][0]["type"] == "ReplicaFailure";
    until(&cluster, ADMIN, &path, |_, one| failure(one)).await;
    patch(&cluster, &path, json!({"spec": {"replicas": 1}})).await;
    until(&cluster, ADMIN, &path, |_, one| {
        !failure(one) && one["status"]["replicas"] == 1
    })
    .await;
}

#[tokio::test]
async fn each_controller_of_workloads_has_a_switch() {
    const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
    const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
    let off: [fn(&mut StandIns); 6] = [
        |all| all.deployments = false,
        |all| all.replica_sets = false,
        |all| all.stateful_sets = false,
        |all| all.daemon_sets = false,
        |all| all.jobs = false,
        |all| all.cron_jobs = false,
    ];
    let owners = [
        (DEPLOYMENTS, REPLICA_SETS, "Deployment"),
        (REPLICA_SETS, PODS, "ReplicaSet"),
        (SETS, PODS, "StatefulSet"),
        (DAEMON_SETS, PODS, "DaemonSet"),
        (JOBS, PODS, "Job"),
        (CRONS, JOBS, "CronJob"),
    ];
    for (switch, (_, _, without)) in off.iter().zip(owners) {
        let mut switches = StandIns::ALL;
        switch(&mut switches);
        let cluster = Cluster::new(options(switches));
        workloads::start(&cluster, Stages::default());
        for path in [DEPLOYMENTS, REPLICA_SETS, SETS, DAEMON_SETS] {
            let app = path.rsplit('/').next().expect("a resource");
            let spec = json!({"selector": {"matchLabels": {"app": app}}, "template": template(app)});
            make(&cluster, path, json!({"metadata": {"name": "web"}, "spec": spec})).await;
        }
        let mut pod = template("web");
        pod["spec"]["restartPolicy"] = json!("Never");
        make(
            &cluster,
            JOBS,
            json!({"metadata": {"name": "web"}, "spec": {"template": pod}}),
        )
        .await;
        cron_job(&cluster, json!({})).await;
        // It is processed behind the others.
        let last = json!({"metadata": {"name": "last"}, "spec": template("last")["spec"]});
        make(&cluster, PODS, last).await;
        until(&cluster, ADMIN, &format!("{PODS}/last"), |_, pod| {
            pod["status"]["phase"] == "Running"
        })
        .await;
        let is_of =
            |kind: &'static str| move |one: &Value| one["metadata"]["ownerReferences"][0]["kind"] == kind;
        for (_, children, kind) in owners.iter().filter(|(.., kind)| *kind != without) {
            until(&cluster, ADMIN, children, |_, list| {
                list["items"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(is_of(kind)))
            })
            .await;
        }
        for (_, children, kind) in owners.iter().filter(|(.., kind)| *kind == without) {
            let list = get(&cluster, children).await.1;
            let items = list["items"].as_array().expect("a list");
            assert!(!items.iter().any(is_of(kind)), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_pod_that_waits_at_a_gate_or_for_another_scheduler_runs_when_it_may() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    until(&cluster, ADMIN, NODE, |code, _| code == 200).await;
    let held = [
        ("gate", json!({"schedulingGates": [{"name": "example.com/gate"}]})),
        ("other", json!({"schedulerName": "example"})),
    ];
    for (app, more) in &held {
        let mut template = template(app);
        for (key, value) in more.as_object().into_iter().flatten() {
            template["spec"][key] = value.clone();
        }
        let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": app}}, "template": template});
        make(
            &cluster,
            DEPLOYMENTS,
            json!({"metadata": {"name": app}, "spec": spec}),
        )
        .await;
    }
    let pods = until(&cluster, ADMIN, PODS, |_, pods| {
        pods["items"].as_array().is_some_and(|all| all.len() == 2)
    })
    .await;
    // One that is made later runs: those before it were looked at.
    let spec = template("free")["spec"].clone();
    make(
        &cluster,
        PODS,
        json!({"metadata": {"name": "free"}, "spec": spec}),
    )
    .await;
    let runs = |_: u16, pod: &Value| pod["status"]["phase"] == "Running";
    until(&cluster, ADMIN, &format!("{PODS}/free"), runs).await;
    let name = |app: &str| {
        let mut all = pods["items"].as_array().into_iter().flatten();
        let found = all.find(|pod| pod["metadata"]["labels"]["app"] == app);
        let name = found.and_then(|pod| pod["metadata"]["name"].as_str());
        format!("{PODS}/{}", name.expect("a pod"))
    };
    for (app, _) in &held {
        let pod = get(&cluster, &name(app)).await.1;
        assert_eq!(pod["status"]["phase"], "Pending", "{app}");
        assert_eq!(pod["spec"]["nodeName"], Value::Null, "{app}");
    }
    patch(
        &cluster,
        &name("gate"),
        json!({"spec": {"schedulingGates": null}}),
    )
    .await;
    until(&cluster, ADMIN, &name("gate"), runs).await;
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name("other").rsplit('/').next()},
        "target": {"kind": "Node", "name": "stand-in"}});
    make(&cluster, &format!("{}/binding", name("other")), binding).await;
    until(&cluster, ADMIN, &name("other"), runs).await;
}

#[tokio::test]
async fn a_stateful_set_that_is_made_again_goes_on_with_its_revisions() {
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    let spec = json!({"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "updateStrategy": {"rollingUpdate": {"partition": 1}}, "template": template("db")});
    let set = json!({"metadata": {"name": "db"}, "spec": spec});
    let path = format!("{SETS}/db");
    make(&cluster, SETS, set.clone()).await;
    let ready = |_: u16, set: &Value| {
        set["status"]["readyReplicas"] == 2
            && set["status"]["observedGeneration"] == set["metadata"]["generation"]
    };
    let before = until(&cluster, ADMIN, &path, ready).await;
    delete(&cluster, &format!("{path}?propagationPolicy=Orphan")).await;
    until(&cluster, ADMIN, &path, |code, _| code == 404).await;
    let uid = make(&cluster, SETS, set).await["metadata"]["uid"].clone();
    until(&cluster, ADMIN, &path, ready).await;
    until(&cluster, ADMIN, revisions, |_, list| {
        list["items"][0]["metadata"]["ownerReferences"][0]["uid"] == uid
    })
    .await;
    let containers = json!([{"name": "a", "image": "b"}]);
    patch(
        &cluster,
        &path,
        json!({"spec": {"template": {"spec": {"containers": containers}}}}),
    )
    .await;
    let after = until(&cluster, ADMIN, &path, |code, set| {
        set["status"]["updatedReplicas"] == 1 && ready(code, set)
    })
    .await;
    assert_eq!(
        after["status"]["currentRevision"],
        before["status"]["currentRevision"]
    );
    let list = get(&cluster, revisions).await.1;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn an_indexed_job_ends_and_a_pod_that_is_asked_to_fail_ends_a_job_by_its_policy() {
    let cluster = member();
    workloads::start(&cluster, Stages::default());
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]});
    let spec =
        json!({"completionMode": "Indexed", "completions": 3, "parallelism": 2, "template": {"spec": pod}});
    make(&cluster, JOBS, json!({"metadata": {"name": "j"}, "spec": spec})).await;
    let ended = |kind: &'static str| {
        move |_: u16, job: &Value| {
            let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
            conditions
                .into_iter()
                .any(|one| one["type"] == kind && one["status"] == "True")
        }
    };
    let done = until(&cluster, ADMIN, &format!("{JOBS}/j"), ended("Complete")).await;
    assert_eq!(done["status"]["completedIndexes"], "0-2");
    let rules = json!([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]);
    let template = json!({"metadata": {"annotations": {"stand-in.kubelet/exit-code": "42"}}, "spec": pod});
    let spec = json!({"podFailurePolicy": {"rules": rules}, "template": template});
    make(&cluster, JOBS, json!({"metadata": {"name": "f"}, "spec": spec})).await;
    let failed = until(&cluster, ADMIN, &format!("{JOBS}/f"), ended("Failed")).await;
    assert_eq!(failed["status"]["failed"], 1);
    let conditions = failed["status"]["conditions"].as_array().expect("conditions");
    assert!(
        conditions.iter().all(|one| one["reason"] == "PodFailurePolicy"),
        "{conditions:?}"
    );
    delete(&cluster, &format!("{JOBS}/f?propagationPolicy=Background")).await;
    until(&cluster, ADMIN, PODS, |_, pods| {
        let pods = pods["items"].as_array().expect("a list");
        !pods
            .iter()
            .any(|pod| pod["metadata"]["labels"]["job-name"] == "f")
    })
    .await;
}

#[tokio::test]
async fn a_claim_that_grows_is_charged_to_the_quota() {
    let cluster = protecting_member();
    make(&cluster, QUOTAS, quota(&json!({"requests.storage": "2Gi"}))).await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"]["used"].is_object()
    })
    .await;
    make(&cluster, CLAIMS, claim(&Value::Null)).await;
    let path = format!("{CLAIMS}/data");
    until(&cluster, ADMIN, &path, |_, claim| {
        claim["status"]["phase"] == "Bound"
    })
    .await;
    let grow = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
    let media = "application/merge-patch+json";
    let (code, refused) = ask_as(&cluster, ADMIN, "PATCH", &path, media, &grow("3Gi")).await;
    assert_eq!(
        (code, refused["message"].as_str().unwrap_or_default()),
        (
            403,
            "persistentvolumeclaims \"data\" is forbidden: exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=2Gi"
        )
    );
    patch(&cluster, &path, grow("2Gi")).await;
    until(&cluster, ADMIN, &path, |_, claim| {
        claim["status"]["capacity"]["storage"] == "2Gi"
    })
    .await;
    until(&cluster, ADMIN, QUOTA, |_, quota| {
        quota["status"]["used"]["requests.storage"] == "2Gi"
    })
    .await;
}

#[tokio::test]
async fn a_pod_of_an_unknown_runtime_class_is_forbidden() {
    let cluster = member();
    let mut pod = json!({"metadata": {"name": "p"}, "spec": template("p")["spec"]});
    pod["spec"]["runtimeClassName"] = json!("gone");
    let (code, refused) = ask(&cluster, ADMIN, "POST", PODS, &pod).await;
    assert_eq!(code, 403);
    assert_eq!(
        refused["message"],
        "pods \"p\" is forbidden: pod rejected: RuntimeClass \"gone\" not found"
    );
}

#[tokio::test]
async fn flow_control_and_devices_are_stored() {
    let cluster = member();
    let spec = json!({"priorityLevelConfiguration": {"name": "exempt"}});
    let schema = json!({"metadata": {"name": "quick"}, "spec": spec});
    let made = make(
        &cluster,
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        schema,
    )
    .await;
    assert_eq!(made["spec"]["matchingPrecedence"], 1000);
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]);
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}});
    let made = make(&cluster, claims, claim).await;
    assert_eq!(made["spec"]["devices"]["requests"][0]["exactly"]["count"], 1);
    let class =
        json!({"metadata": {"name": "fast"}, "driverName": "example.com", "parameters": {"iops": "9"}});
    make(&cluster, "/apis/storage.k8s.io/v1/volumeattributesclasses", class).await;
}

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";

fn validating(resources: &Value) -> Value {
    json!({"metadata": {"name": "p.example.com"}, "spec": {"validations": [{"expression": "object.replicas > 1"}],
        "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": resources}]}}})
}

#[tokio::test]
async fn the_expressions_of_a_policy_are_checked_once_for_each_generation() {
    let cluster = member();
    make(
        &cluster,
        VALIDATING,
        validating(&json!(["replicasets", "deployments", "deployments/scale"])),
    )
    .await;
    let path = format!("{VALIDATING}/p.example.com");
    let checked = until(&cluster, ADMIN, &path, |_, policy| {
        policy["status"]["observedGeneration"] == 1
    })
    .await;
    let problem = "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n";
    let warning = format!("apps/v1, Kind=Deployment: {problem}\napps/v1, Kind=ReplicaSet: {problem}");
    assert_eq!(
        checked["status"]["typeChecking"],
        json!({"expressionWarnings": [{"fieldRef": "spec.validations[0].expression", "warning": warning}]})
    );
    let entries = checked["metadata"]["managedFields"].as_array().expect("a list");
    let of_status = entries.iter().find(|entry| entry["subresource"] == "status");
    let of_status = of_status.expect("an entry");
    assert_eq!(of_status["manager"], "validatingadmissionpolicy-status");
    assert_eq!(of_status["operation"], "Apply");

    let mended = json!({"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}});
    patch(&cluster, &path, mended).await;
    let checked = until(&cluster, ADMIN, &path, |_, policy| {
        policy["status"]["observedGeneration"] == 2
    })
    .await;
    // The apply takes out the warnings of the last one, and what is empty then.
    assert_eq!(checked["status"], json!({"observedGeneration": 2}));
}

#[tokio::test]
async fn a_wildcard_is_checked_against_no_kind() {
    let cluster = member();
    make(&cluster, VALIDATING, validating(&json!(["*"]))).await;
    let checked = until(
        &cluster,
        ADMIN,
        &format!("{VALIDATING}/p.example.com"),
        |_, policy| policy["status"]["observedGeneration"] == 1,
    )
    .await;
    assert_eq!(checked["status"]["typeChecking"], json!({}));
}
