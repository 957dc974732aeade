//! Each right of the webhook on the hub that is taken away: it is named, and the work goes on when it is back.
//!
//! The rights are those of `config/webhook/hub`; each is in one of the tables.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use entourage_admission::configuration::Address;
use entourage_e2e::{
    harness::{Scene, eventually, status_code},
    tests,
};
use entourage_webhook::Options;
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use super::{
    rights::{Right, forget, grant_but, of},
    webhook::{
        CONFIGURATIONS, DISTRIBUTIONS, Webhook, configuration, distribution, naming, until_denied,
        with_webhook,
    },
};

tests![
    rights_of_a_webhook_that_are_denied_are_named_and_made_up_for,
    reviews_for_which_the_webhook_lacks_a_right_say_so,
];

type Row = (&'static str, &'static str);

const MUTATING: &str = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
const VALIDATING: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io";

/// The rights that a webhook on a new hub needs, in the order in which it asks.
const FIRST: [Row; 6] = [
    ("get", "secrets"),
    ("get", VALIDATING),
    ("create", "secrets"),
    ("create", VALIDATING),
    ("get", MUTATING),
    ("create", MUTATING),
];

/// The rights that one with another address needs besides, in this order.
const MOVED: [Row; 3] = [
    ("update", "secrets"),
    ("update", VALIDATING),
    ("update", MUTATING),
];

/// The rights that one needs that takes its configurations along.
const LAST: [Row; 2] = [("delete", MUTATING), ("delete", VALIDATING)];

/// The rights that reviews need.
const REVIEWS: [Row; 5] = [
    ("list", "resourceinterpretercustomizations.config.karmada.io"),
    ("list", "propagationpolicies.policy.karmada.io"),
    ("create", "subjectaccessreviews.authorization.k8s.io"),
    ("create", "configmaps"),
    ("create", "secrets"),
];

const SECRET: &str = "/api/v1/namespaces/karmada-system/secrets/entourage-webhook";

/// An account with some of the webhook's rights.
struct Account {
    user: String,
    all: BTreeSet<Right>,
}

impl Account {
    fn of(scene: &Scene) -> Result<Self> {
        let all = of(include_str!("../../../config/webhook/hub/role.yaml"))?;
        let named: BTreeSet<Row> = [&FIRST[..], &MOVED, &LAST, &REVIEWS]
            .concat()
            .into_iter()
            .collect();
        let granted: BTreeSet<(&str, &str)> =
            all.iter().map(|right| (&*right.verb, &*right.resource)).collect();
        ensure!(
            granted == named,
            "granted: {granted:#?}, in the tables: {named:#?}"
        );
        Ok(Self {
            user: scene.own("webhook"),
            all,
        })
    }

    async fn lacks(&self, scene: &Scene, denied: &[Row]) -> Result<()> {
        grant_but(scene, &self.user, &self.all, denied).await
    }

    /// A webhook with this account, which may not be registered yet.
    fn webhook(&self, scene: &Scene, options: Options) -> Result<Webhook> {
        let mut config = scene.bed.fleet.hub.config();
        config.auth_info.impersonate = Some(self.user.clone());
        let options = Options {
            round: Duration::from_millis(300),
            ..options
        };
        Webhook::launch(scene, kube::Client::try_from(config)?, options)
    }

    fn right(&self, row: Row) -> Result<&Right> {
        let mut all = self.all.iter();
        let found = all.find(|right| (&*right.verb, &*right.resource) == row);
        found.with_context(|| format!("{row:?}"))
    }

    /// The log names the one right that is missing next; then it is there, and so on, until the webhook is registered.
    async fn one_after_another(&self, scene: &Scene, mut webhook: Webhook, rows: &[Row]) -> Result<Webhook> {
        for (at, row) in rows.iter().enumerate() {
            let right = self.right(*row)?;
            eventually(&format!("the log names {}", right.words()), async || {
                ensure!(
                    !webhook.is_registered(),
                    "it is registered without {}",
                    right.words()
                );
                self.is_named(scene, right, "are not up to date; retrying")
            })
            .await?;
            for later in &rows[at + 1..] {
                let later = self.right(*later)?;
                ensure!(
                    self.is_named(scene, later, "").is_err(),
                    "{} does not depend on {}",
                    later.words(),
                    right.words()
                );
            }
            self.lacks(scene, &rows[at + 1..]).await?;
        }
        webhook.until_registered().await?;
        Ok(webhook)
    }

    fn is_named(&self, scene: &Scene, right: &Right, words: &str) -> Result<()> {
        let lines = scene.bed.log.with(words);
        ensure!(
            lines
                .iter()
                .any(|line| line.contains("WARN") && right.is_quoted_by(line) && line.contains(&self.user)),
            "{lines:#?}"
        );
        Ok(())
    }
}

/// True if the hub has both configurations, for this address.
async fn points_to(scene: &Scene, address: &str) -> Result<()> {
    for plural in CONFIGURATIONS {
        let live = scene.hub.call("GET", &configuration(plural), None).await?;
        let url = &live["webhooks"][0]["clientConfig"]["url"];
        let url = url.as_str().unwrap_or_default();
        ensure!(url.starts_with(address), "{plural}: {url}");
    }
    Ok(())
}

fn at(address: &str) -> Options {
    Options {
        address: Some(Address::Url(address.to_owned())),
        ..Options::default()
    }
}

async fn rights_of_a_webhook_that_are_denied_are_named_and_made_up_for(scene: &mut Scene) -> Result<()> {
    let account = Account::of(scene)?;
    let tested = with_webhook(scene, async |scene, webhook| {
        webhook.end().await?;
        scene.hub.call("DELETE", SECRET, None).await?;
        for plural in CONFIGURATIONS {
            scene.hub.call("DELETE", &configuration(plural), None).await?;
        }

        account.lacks(scene, &FIRST).await?;
        let webhook = account.webhook(scene, at("https://localhost:1"))?;
        let webhook = account.one_after_another(scene, webhook, &FIRST).await?;
        points_to(scene, "https://localhost:1").await?;
        webhook.end().await?;

        scene.bed.log.clear();
        account.lacks(scene, &MOVED).await?;
        let webhook = account.webhook(scene, at("https://127.0.0.1:1"))?;
        let webhook = account.one_after_another(scene, webhook, &MOVED).await?;
        points_to(scene, "https://127.0.0.1:1").await?;
        webhook.end().await?;

        // What it does at its end is done once: the log says what is left, and the next one does it.
        for denied in [&LAST[..], &[]] {
            account.lacks(scene, denied).await?;
            let options = Options {
                remove_on_exit: true,
                ..at("https://127.0.0.1:1")
            };
            let mut webhook = account.webhook(scene, options)?;
            webhook.until_registered().await?;
            scene.bed.log.clear();
            webhook.end().await?;
            for row in denied {
                account.is_named(scene, account.right(*row)?, "delete it, or start again")?;
            }
            if !denied.is_empty() {
                points_to(scene, "https://127.0.0.1:1").await?;
            }
        }
        for plural in CONFIGURATIONS {
            let left = scene.hub.call("GET", &configuration(plural), None).await;
            ensure!(
                left.is_err_and(|error| status_code(&error) == 404),
                "{plural}: it may remove them"
            );
        }
        let panics = scene.bed.log.panics();
        ensure!(panics.is_empty(), "{panics:?}");
        Ok(())
    })
    .await;
    forget(scene, &account.user, &account.all).await?;
    tested
}

/// Tries to create an object. Returns the code of the answer, and its warnings with its message.
async fn tried(scene: &Scene, path: &str, object: &Value) -> Result<(u16, String)> {
    let request = Request::post(format!("{path}?dryRun=All"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(object.to_string().into_bytes()))?;
    let response = scene.hub.client.send(request).await?;
    let code = response.status().as_u16();
    let warnings: Vec<String> = response
        .headers()
        .get_all("warning")
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect();
    let body: Value = serde_json::from_slice(&response.into_body().collect_bytes().await?)?;
    let message = body["message"].as_str().unwrap_or_default();
    Ok((code, format!("{} {message}", warnings.join(" "))))
}

/// A creation for each right of [`REVIEWS`] that needs it: the path, the object, and the answer without the right.
fn reviews(scene: &Scene) -> [(String, Value, u16, &'static str); 5] {
    let ns = &scene.ns;
    let customization = json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": scene.own("widgets")}, "spec": {
            "target": {"apiVersion": "e2e.entourage.dev/v1", "kind": "Widget"},
            "customizations": {"retention": {"luaScript": "function Retain(desired, observed) return desired end"}}}});
    let mut policy = naming("kinds", &["Dream"]);
    policy["metadata"]["namespace"] = json!(ns);
    let secret = distribution(&scene.own("rights"), ns);
    let mut config = secret.clone();
    config["spec"]["resource"]["kind"] = json!("ConfigMap");
    config["spec"]["resource"]["data"] = json!({"a": "b"});
    let distributions = || DISTRIBUTIONS.to_owned();
    [
        (
            "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations".to_owned(),
            customization,
            503,
            "cannot see the other objects of ResourceInterpreterCustomization",
        ),
        (
            format!("/apis/policy.karmada.io/v1alpha1/namespaces/{ns}/propagationpolicies"),
            policy,
            503,
            "cannot see the other objects of PropagationPolicy",
        ),
        (
            distributions(),
            config.clone(),
            503,
            "may write the copies cannot be asked: 403 Forbidden",
        ),
        // A copy that cannot be tried is no reason to refuse.
        (
            distributions(),
            config,
            201,
            "spec.resource could not be checked by a dry run: 403 Forbidden",
        ),
        (
            distributions(),
            secret,
            201,
            "spec.resource could not be checked by a dry run: 403 Forbidden",
        ),
    ]
}

async fn reviews_for_which_the_webhook_lacks_a_right_say_so(scene: &mut Scene) -> Result<()> {
    let account = Account::of(scene)?;
    let tested = with_webhook(scene, async |scene, webhook| {
        webhook.end().await?;
        account.lacks(scene, &[]).await?;
        let mut webhook = account.webhook(scene, Options::default())?;
        webhook.until_registered().await?;
        until_denied(scene).await?;
        account.lacks(scene, &REVIEWS).await?;
        let all = reviews(scene);
        // The right to ask for the author's comes first: without it nothing is created.
        let asked_first = 2;
        for (path, object, code, words) in &all[..=asked_first] {
            until_answered(scene, path, object, *code, words).await?;
        }
        account.lacks(scene, &[REVIEWS[3], REVIEWS[4]]).await?;
        for (path, object, code, words) in &all[asked_first + 1..] {
            until_answered(scene, path, object, *code, words).await?;
        }
        account.lacks(scene, &[]).await?;
        for (path, object, _, _) in &all {
            eventually(&format!("{} is taken", object["kind"]), async || {
                let (code, words) = tried(scene, path, object).await?;
                ensure!(code == 201 && words.trim().is_empty(), "{code} {words}");
                Ok(())
            })
            .await?;
        }
        webhook.end().await
    })
    .await;
    forget(scene, &account.user, &account.all).await?;
    tested
}

/// Waits until the creation of an object is answered with this code and these words.
async fn until_answered(scene: &Scene, path: &str, object: &Value, code: u16, words: &str) -> Result<()> {
    eventually(&format!("{}: {words}", object["kind"]), async || {
        let (answered, text) = tried(scene, path, object).await?;
        ensure!(answered == code && text.contains(words), "{answered} {text}");
        Ok(())
    })
    .await
}
