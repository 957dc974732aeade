//! The admission webhook of a hub: its defaults, its refusals, and the operation of the hub without it.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use entourage::manifests::{apply, read};
use entourage_admission::{Settings, configuration::Address};
use entourage_e2e::{
    harness::{PATIENCE, Scene, Server, eventually, manifests, status_code},
    tests,
};
use entourage_webhook::Options;
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

tests![
    a_policy_is_filled_in_or_refused_in_words,
    what_is_protected_from_deletion_stays_until_its_label_is_gone,
    without_the_webhook_new_policies_wait_and_everything_else_goes_on,
    a_webhook_that_hangs_delays_no_workload_and_keeps_no_policy_from_going,
    a_webhook_on_loopback_takes_its_configurations_along,
    the_rights_of_its_account_are_enough_and_no_more_than_it_needs,
    a_distribution_reaches_no_further_than_its_author,
    the_policies_of_a_namespace_name_no_more_kinds_than_they_may,
];

const PROTECTED: &str = "resourcetemplate.karmada.io/deletion-protected";

pub(super) const CONFIGURATIONS: [&str; 2] =
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

pub(super) fn configuration(plural: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{plural}/entourage")
}

/// One `entourage webhook`, in a runtime of its own so that it can be killed as a process can.
pub(super) struct Webhook {
    runtime: Option<Runtime>,
    stop: CancellationToken,
    reported: oneshot::Receiver<SocketAddr>,
    is_registered: bool,
    ended: oneshot::Receiver<Result<(), entourage_webhook::Error>>,
}

impl Webhook {
    /// Starts it as the hub's admin and waits until it is registered.
    async fn start(scene: &Scene, options: Options) -> Result<Self> {
        Self::start_as(scene, scene.hub.client.clone(), options).await
    }

    /// The same, as the user of a client.
    async fn start_as(scene: &Scene, client: kube::Client, options: Options) -> Result<Self> {
        let mut webhook = Self::launch(scene, client, options)?;
        webhook.until_registered().await?;
        Ok(webhook)
    }

    /// Starts it as the user of a client.
    pub(super) fn launch(scene: &Scene, client: kube::Client, options: Options) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(scene.bed.log.thread())
            .enable_all()
            .build()?;
        let options = Options {
            bind: ([127, 0, 0, 1], 0).into(),
            linger: Duration::from_millis(100),
            ..options
        };
        let stop = CancellationToken::new();
        let ((tell, reported), (end, ended)) = (oneshot::channel(), oneshot::channel());
        let until = stop.clone();
        let clock = Arc::new(jiff::Timestamp::now);
        runtime.spawn(async move {
            let _ = end.send(entourage_webhook::run(options, client, clock, Some(tell), until).await);
        });
        Ok(Self {
            runtime: Some(runtime),
            stop,
            reported,
            is_registered: false,
            ended,
        })
    }

    /// Waits until the hub has its configurations.
    pub(super) async fn until_registered(&mut self) -> Result<()> {
        if !self.is_registered {
            let reported = tokio::time::timeout(PATIENCE, &mut self.reported).await;
            reported
                .context("it was not registered")?
                .context("the webhook did not start")?;
            self.is_registered = true;
        }
        Ok(())
    }

    /// True if the hub has its configurations.
    pub(super) fn is_registered(&mut self) -> bool {
        self.is_registered |= self.reported.try_recv().is_ok();
        self.is_registered
    }

    /// Ends it in an orderly way.
    pub(super) async fn end(mut self) -> Result<()> {
        self.stop.cancel();
        Ok((&mut self.ended).await??)
    }
}

/// Kills it.
impl Drop for Webhook {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a test with a webhook, and removes its configurations from the hub in any case: other tests share it.
pub(super) async fn with_webhook(
    scene: &mut Scene,
    test: impl AsyncFnOnce(&mut Scene, Webhook) -> Result<()>,
) -> Result<()> {
    let webhook = Webhook::start(scene, Options::default()).await;
    let result = match webhook {
        Ok(webhook) => test(scene, webhook).await,
        Err(error) => Err(error),
    };
    for plural in CONFIGURATIONS {
        match scene.hub.call("DELETE", &configuration(plural), None).await {
            Err(error) if status_code(&error) == 404 => {}
            gone => drop(gone?),
        }
    }
    // The hub's API server observes the configuration in a moment.
    eventually("the webhook is no longer called", async || {
        scene.apply(misplaced()).await.map(drop)
    })
    .await?;
    scene.delete("PropagationPolicy", "misplaced").await?;
    result
}

/// A policy that reaches into another namespace: nothing but the webhook refuses it when it is written.
fn misplaced() -> Value {
    let mut policy = manifests::policy_for("misplaced", "ConfigMap", "none", &["member1"]);
    policy["spec"]["resourceSelectors"][0]["namespace"] = json!("elsewhere");
    policy
}

/// Waits until the hub's API server asks the webhook.
pub(super) async fn until_denied(scene: &Scene) -> Result<String> {
    let refused = eventually("the webhook is called", async || {
        match scene.apply(misplaced()).await {
            Err(error) if status_code(&error) == 422 => Ok(format!("{error:#}")),
            Err(error) => Err(error),
            Ok(_) => {
                scene.delete("PropagationPolicy", "misplaced").await?;
                bail!("it was taken")
            }
        }
    })
    .await?;
    Ok(refused)
}

async fn a_policy_is_filled_in_or_refused_in_words(scene: &mut Scene) -> Result<()> {
    with_webhook(scene, async |scene, _webhook| {
        let refused = until_denied(scene).await?;
        let words = format!(
            "admission webhook \"policies.webhook.entourage.dev\" denied the request: \
             spec.resourceSelectors[0].namespace: \"elsewhere\" is not the namespace of this policy, \"{}\"; \
             leave it out, or use a policy in that namespace or a cluster-scoped one",
            scene.ns
        );
        ensure!(refused.contains(&words), "{refused}");
        let mut policy = manifests::policy_for("filled", "Secret", "none", &["member1"]);
        policy["spec"]["resourceSelectors"][0]
            .as_object_mut()
            .context("a selector")?
            .remove("namespace");
        policy["spec"]["placement"]["spreadConstraints"] = json!([{}]);
        policy["spec"]["placement"]["replicaScheduling"] = json!({"replicaSchedulingType": "Divided"});
        // A server learns of the two configurations one after the other.
        let trial = format!(
            "/apis/policy.karmada.io/v1alpha1/namespaces/{}/propagationpolicies?dryRun=All",
            scene.ns
        );
        eventually("policies are filled in", async || {
            let made = scene.hub.call("POST", &trial, Some(&policy)).await?;
            let selector = &made["spec"]["resourceSelectors"][0];
            ensure!(selector["namespace"] == *scene.ns, "{selector}");
            Ok(())
        })
        .await?;
        let made = scene.apply(policy).await?;
        let spec = &made["spec"];
        ensure!(spec["resourceSelectors"][0]["namespace"] == *scene.ns, "{spec}");
        let placement = &spec["placement"];
        ensure!(
            placement["spreadConstraints"] == json!([{"spreadByField": "cluster", "minGroups": 1}]),
            "{placement}"
        );
        ensure!(
            placement["replicaScheduling"]["replicaDivisionPreference"] == "Weighted",
            "{placement}"
        );
        // With all validation enabled, the example is still delivered.
        scene.example().await
    })
    .await
}

async fn what_is_protected_from_deletion_stays_until_its_label_is_gone(scene: &mut Scene) -> Result<()> {
    let other = scene.another_space().await?.ns;
    with_webhook(scene, async |scene, _webhook| {
        until_denied(scene).await?;
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kept", "labels": {PROTECTED: "Always"}}, "data": {"a": "b"}});
        scene.apply(config).await?;
        let label =
            |value: Value| move |live: &mut Value| live["metadata"]["labels"][PROTECTED] = value.clone();
        scene
            .hub
            .edit("Namespace", "", &other, label(json!("Always")))
            .await?;
        let (ns, hub) = (scene.ns.clone(), scene.hub.clone());
        for (kind, ns, name) in [
            ("ConfigMap", ns.as_str(), "kept"),
            ("Namespace", "", other.as_str()),
        ] {
            let Err(error) = hub.delete(kind, ns, name).await else {
                bail!("{kind} {name} was deleted")
            };
            let words = "This resource is protected, please make sure to remove the label: \
                         resourcetemplate.karmada.io/deletion-protected";
            ensure!(
                status_code(&error) == 403 && format!("{error:#}").contains(words),
                "{error:#}"
            );
            hub.edit(kind, ns, name, label(Value::Null)).await?;
        }
        scene.delete("ConfigMap", "kept").await
    })
    .await
}

/// The caBundle that the hub's API server trusts.
async fn bundle(scene: &Scene) -> Result<Value> {
    let path = configuration(CONFIGURATIONS[1]);
    let live = scene.hub.call("GET", &path, None).await?;
    Ok(live["webhooks"][0]["clientConfig"]["caBundle"].clone())
}

/// A policy that selects nothing, and that no controller has seen yet.
fn unseen() -> Value {
    manifests::policy_for("unseen", "ConfigMap", "none", &["member1"])
}

/// While the webhook is down, new policies are refused, and everything else works: stored policies are used, workloads are
/// propagated, and deleted policies are removed.
async fn goes_on(scene: &mut Scene) -> Result<()> {
    scene.start().await?;
    // A workload with what it needs, by a policy that is taken up only now.
    let [deployment, _, config] = manifests::example();
    for object in [config, deployment] {
        scene.apply(object).await?;
    }
    scene.until_settled(&["member1", "member2"]).await?;
    for name in ["unseen", "myapp-propagation"] {
        eventually("the controllers have taken the policy up", async || {
            let live = scene.hub.get("PropagationPolicy", &scene.ns, name).await?;
            let live = live.context("it is not there")?;
            ensure!(live["metadata"]["finalizers"].is_array(), "{}", live["metadata"]);
            Ok(())
        })
        .await?;
    }
    for name in ["unseen", "myapp-propagation"] {
        scene.delete("PropagationPolicy", name).await?;
        eventually("the policy is gone", async || {
            let live = scene.hub.get("PropagationPolicy", &scene.ns, name).await?;
            ensure!(live.is_none(), "{live:?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn without_the_webhook_new_policies_wait_and_everything_else_goes_on(scene: &mut Scene) -> Result<()> {
    with_webhook(scene, async |scene, webhook| {
        until_denied(scene).await?;
        let [_, policy, _] = manifests::example();
        for policy in [policy, unseen()] {
            scene.apply(policy).await?;
        }
        let trusted = bundle(scene).await?;
        drop(webhook);
        goes_on(scene).await?;
        let Err(error) = scene.apply(misplaced()).await else {
            bail!("a policy was accepted without validation")
        };
        let reported = format!("{error:#}");
        ensure!(
            status_code(&error) == 500
                && reported.contains("failed calling webhook \"defaults.webhook.entourage.dev\""),
            "{reported}"
        );
        let webhook = Webhook::start(scene, Options::default()).await?;
        ensure!(
            bundle(scene).await? == trusted,
            "the authority is the one from before"
        );
        until_denied(scene).await?;
        webhook.end().await
    })
    .await
}

async fn a_webhook_that_hangs_delays_no_workload_and_keeps_no_policy_from_going(
    scene: &mut Scene,
) -> Result<()> {
    with_webhook(scene, async |scene, webhook| {
        until_denied(scene).await?;
        let [_, policy, _] = manifests::example();
        for policy in [policy, unseen()] {
            scene.apply(policy).await?;
        }
        webhook.end().await?;
        // Clients that connect here wait.
        let hole = TcpListener::bind("127.0.0.1:0")?;
        let options = Options {
            address: Some(Address::Url(format!("https://{}", hole.local_addr()?))),
            ..Options::default()
        };
        Webhook::start(scene, options).await?.end().await?;
        eventually("nobody answers", async || match scene.apply(misplaced()).await {
            Err(error) if status_code(&error) == 500 => Ok(()),
            Err(error) => Err(error),
            Ok(_) => {
                scene.delete("PropagationPolicy", "misplaced").await?;
                bail!("it was taken")
            }
        })
        .await?;
        goes_on(scene).await
    })
    .await
}

async fn a_webhook_on_loopback_takes_its_configurations_along(scene: &mut Scene) -> Result<()> {
    with_webhook(scene, async |scene, webhook| {
        webhook.end().await?;
        let there = scene
            .hub
            .call("GET", &configuration(CONFIGURATIONS[0]), None)
            .await;
        ensure!(there.is_ok(), "it stays unless it is asked to go");
        let options = Options {
            remove_on_exit: true,
            ..Options::default()
        };
        Webhook::start(scene, options).await?.end().await?;
        for plural in CONFIGURATIONS {
            let Err(error) = scene.hub.call("GET", &configuration(plural), None).await else {
                bail!("{plural} are there")
            };
            ensure!(status_code(&error) == 404, "{error:#}");
        }
        Ok(())
    })
    .await
}

async fn the_rights_of_its_account_are_enough_and_no_more_than_it_needs(scene: &mut Scene) -> Result<()> {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config");
    let files = [
        "namespaces/namespaces.yaml",
        "webhook/hub/service_account.yaml",
        "webhook/hub/role.yaml",
        "webhook/hub/role_binding.yaml",
    ];
    let rights = read(&files.map(|file| config.join(file)))?;
    for manifest in &rights {
        apply(&scene.hub.client, manifest).await?;
    }
    let mut account = scene.bed.fleet.hub.config();
    let auth = &mut account.auth_info;
    auth.impersonate = Some("system:serviceaccount:karmada-system:entourage-webhook".to_owned());
    let account = kube::Client::try_from(account)?;
    with_webhook(scene, async |scene, webhook| {
        webhook.end().await?;
        // Its Secret is made, read and renewed, its configurations written, changed and removed.
        let secret = "/api/v1/namespaces/karmada-system/secrets/entourage-webhook";
        scene.hub.call("DELETE", secret, None).await?;
        for plural in CONFIGURATIONS {
            scene.hub.call("DELETE", &configuration(plural), None).await?;
        }
        for address in ["https://localhost:1", "https://127.0.0.1:1"] {
            let options = Options {
                address: Some(Address::Url(address.to_owned())),
                ..Options::default()
            };
            Webhook::start_as(scene, account.clone(), options).await?.end().await?;
        }
        let options = Options {
            remove_on_exit: true,
            ..Options::default()
        };
        let webhook = Webhook::start_as(scene, account.clone(), options).await?;
        until_denied(scene).await?;
        let customization = |name: &str| {
            json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
                "metadata": {"name": name}, "spec": {"target": {"apiVersion": "e2e.entourage.dev/v1", "kind": "Widget"},
                "customizations": {"retention": {"luaScript": "x"}}}})
        };
        let path = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations";
        scene.hub.call("POST", path, Some(&customization("one"))).await?;
        let second = scene.hub.call("POST", path, Some(&customization("two"))).await;
        scene.hub.call("DELETE", &format!("{path}/one"), None).await?;
        let Err(error) = second else {
            bail!("two customizations of one operation")
        };
        ensure!(format!("{error:#}").contains("\"one\" already implements it"), "{error:#}");
        // The other policies of a namespace are looked at.
        scene.apply(naming("kinds", &["Dream"])).await?;
        scene.delete("PropagationPolicy", "kinds").await?;
        // It checks the rights of authors, and tries the distributed object.
        let name = format!("{}-rights", scene.ns);
        let made = scene.hub.call("POST", DISTRIBUTIONS, Some(&distribution(&name, &scene.ns))).await;
        let tls = {
            let mut object = distribution(&format!("{name}-tls"), &scene.ns);
            object["spec"]["resource"]["type"] = json!("kubernetes.io/tls");
            scene.hub.call("POST", DISTRIBUTIONS, Some(&object)).await
        };
        if made.is_ok() {
            scene.hub.call("DELETE", &format!("{DISTRIBUTIONS}/{name}"), None).await?;
        }
        made?;
        let Err(error) = tls else {
            bail!("a certificate without one was taken")
        };
        let reported = format!("{error:#}");
        ensure!(reported.contains("spec.resource.data[tls.crt]: a server refuses it: FieldValueRequired"), "{reported}");
        webhook.end().await?;
        let left = scene.hub.call("GET", &configuration(CONFIGURATIONS[0]), None).await;
        ensure!(left.is_err_and(|error| status_code(&error) == 404), "it may remove them");
        Ok(())
    })
    .await
}

/// A policy that names kinds that no server serves.
pub(super) fn naming(name: &str, kinds: &[&str]) -> Value {
    let mut policy = manifests::policy_for(name, "ConfigMap", "none", &["member1"]);
    let selectors = kinds
        .iter()
        .map(|kind| json!({"apiVersion": "example.com/v1", "kind": kind}));
    policy["spec"]["resourceSelectors"] = selectors.collect();
    policy
}

async fn the_policies_of_a_namespace_name_no_more_kinds_than_they_may(scene: &mut Scene) -> Result<()> {
    let other = scene.another_space().await?;
    with_webhook(scene, async |scene, webhook| {
        webhook.end().await?;
        let settings = Settings {
            kinds_per_namespace: Some(2),
            selectors_per_policy: Some(3),
            ..Settings::default()
        };
        let _webhook = Webhook::start(
            scene,
            Options {
                settings,
                ..Options::default()
            },
        )
        .await?;
        until_denied(scene).await?;
        scene.apply(naming("first", &["Dream", "Shop"])).await?;
        scene.apply(naming("second", &["Shop"])).await?;
        other.apply(naming("first", &["Stall"])).await?;
        let words = format!(
            "with example.com/v1 Stall the policies of namespace {} name 3 custom kinds, and they may name 2 \
             (--kinds-per-namespace)",
            scene.ns
        );
        for (policy, words) in [
            (naming("third", &["Stall"]), words.as_str()),
            (naming("second", &["Shop", "Stall"]), words.as_str()),
            (
                naming("fourth", &["Shop", "Shop", "Shop", "Shop"]),
                "may have 3 selectors (--selectors-per-policy), and this one has 4",
            ),
        ] {
            let Err(error) = scene.apply(policy).await else {
                bail!("it was taken")
            };
            ensure!(
                status_code(&error) == 422 && format!("{error:#}").contains(words),
                "{error:#}"
            );
        }
        for name in ["first", "second"] {
            scene.delete("PropagationPolicy", name).await?;
        }
        other.delete("PropagationPolicy", "first").await
    })
    .await
}

pub(super) const DISTRIBUTIONS: &str = "/apis/apps.kruise.io/v1alpha1/resourcedistributions";

/// A Secret for one namespace.
pub(super) fn distribution(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": {"name": name},
        "spec": {"targets": {"includedNamespaces": {"list": [{"name": namespace}]}},
            "resource": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry"}, "data": {"token": "YQ=="}}}})
}

/// The error of a refused write.
fn refused(code: u16, words: &str, result: Result<Value>) -> Result<()> {
    let Err(error) = result else {
        bail!("it was taken; wanted: {code} {words}")
    };
    let reported = format!("{error:#}");
    ensure!(
        status_code(&error) == code && reported.contains(words),
        "wanted {code} {words}: {reported}"
    );
    Ok(())
}

async fn a_distribution_reaches_no_further_than_its_author(scene: &mut Scene) -> Result<()> {
    let mut author = scene.bed.fleet.hub.config();
    author.auth_info.impersonate = Some(format!("jane-{}", scene.ns));
    let jane = Server {
        name: "hub".to_owned(),
        client: kube::Client::try_from(author)?,
    };
    let (name, ns) = (format!("{}-author", scene.ns), scene.ns.clone());
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let role = |kind: &str, group: &str, resource: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "rules": [{"apiGroups": [group], "resources": [resource], "verbs": ["create", "get", "update"]}]})
    };
    let binding = |kind: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("jane-{ns}")}]})
    };
    with_webhook(scene, async |scene, _webhook| {
        until_denied(scene).await?;
        let hub = scene.hub.clone();
        let all = [
            (
                "clusterroles",
                role("ClusterRole", "apps.kruise.io", "resourcedistributions"),
            ),
            ("clusterrolebindings", binding("ClusterRole")),
        ];
        for (plural, object) in &all {
            hub.call("POST", &format!("{RBAC}/{plural}"), Some(object))
                .await?;
        }
        let path = format!("{DISTRIBUTIONS}/{name}");
        let tested = async {
            let object = distribution(&name, &ns);
            eventually("the author may distribute, but not write there", async || {
                let words = format!("may not create secrets in namespace \"{ns}\"");
                refused(403, &words, jane.call("POST", DISTRIBUTIONS, Some(&object)).await)
            })
            .await?;
            let own = format!("{RBAC}/namespaces/{ns}");
            hub.call(
                "POST",
                &format!("{own}/roles"),
                Some(&role("Role", "", "secrets")),
            )
            .await?;
            hub.call("POST", &format!("{own}/rolebindings"), Some(&binding("Role")))
                .await?;
            eventually("the author may write there", async || {
                jane.call("POST", DISTRIBUTIONS, Some(&object)).await.map(drop)
            })
            .await?;
            let mut wider = jane.call("GET", &path, None).await?;
            wider["spec"]["targets"] = json!({"allNamespaces": true});
            // A change is let through when the webhook takes more than a second: nothing is stored then, and it is tried again.
            let trial = format!("{path}?dryRun=All");
            eventually("the author may not write everywhere", async || {
                let result = jane.call("PUT", &trial, Some(&wider)).await;
                refused(403, "may not create secrets in all namespaces", result)
            })
            .await?;
            hub.call("PUT", &path, Some(&wider)).await?;
            // Writes of the control plane are not checked, whoever the author is.
            let mut held = jane.call("GET", &path, None).await?;
            held["metadata"]["labels"] = json!({"a": "b"});
            let held = jane.call("PUT", &path, Some(&held)).await?;
            let mut renamed = held.clone();
            renamed["spec"]["resource"]["metadata"]["name"] = json!("other");
            eventually("the name is immutable", async || {
                refused(422, "is immutable", hub.call("PUT", &trial, Some(&renamed)).await)
            })
            .await?;
            let mut emptied = held;
            emptied["spec"]["targets"] = json!({});
            eventually("the targets may not be emptied", async || {
                let result = hub.call("PUT", &trial, Some(&emptied)).await;
                refused(422, "every copy would be deleted", result)
            })
            .await
        }
        .await;
        for path in [
            path,
            format!("{RBAC}/clusterroles/{name}"),
            format!("{RBAC}/clusterrolebindings/{name}"),
        ] {
            match hub.call("DELETE", &path, None).await {
                Err(error) if status_code(&error) == 404 => {}
                gone => drop(gone?),
            }
        }
        tested
    })
    .await
}
