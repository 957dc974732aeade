//! Plays one scenario.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, bail};
use bytes::Bytes;
use entourage_apiserver::{Cluster, Options};
use futures::StreamExt as _;
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use super::{
    bind::Bindings,
    compare::{Comparison, canonical},
    corpus::{self, Exchange, Made, Scenario},
    transport::Transport,
    wire::{compact, plain_bookmark, read_lines, unpacked, without_ages},
};

/// The deadline of a request.
const ANSWER: Duration = Duration::from_secs(20);

/// The time that a watch is read after its last recorded event: a surplus event would have arrived by then.
const SURPLUS: Duration = Duration::from_millis(50);

/// The interval between requests of a step that is repeated until its answer comes.
const POLL: Duration = Duration::from_millis(20);

/// The result of a scenario.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Requests that were played or would have been.
    pub steps: usize,
    /// The first difference of each step that differs, by step.
    pub differences: BTreeMap<String, String>,
}

/// Plays scenarios, some at a time, each on an embedded cluster of its own. Returns them by recording and name.
pub async fn play_embedded<'a>(
    scenarios: impl IntoIterator<Item = &'a Scenario>,
    at_a_time: usize,
) -> Vec<(&'a Scenario, Outcome)> {
    let mut played: Vec<_> = futures::stream::iter(scenarios)
        .map(|scenario| async move {
            let cluster = Cluster::new(Options {
                admin_token: super::TOKEN.to_owned(),
                ..Options::default()
            });
            let server = Transport::embedded(&cluster, super::TOKEN);
            (scenario, play(scenario, &server).await)
        })
        .buffer_unordered(at_a_time)
        .collect()
        .await;
    played.sort_by_key(|(scenario, _)| (&scenario.recording, &scenario.name));
    played
}

/// Plays a scenario on a server that has not seen it before.
pub async fn play(scenario: &Scenario, server: &Transport) -> Outcome {
    let mut player = Player {
        server,
        bindings: Bindings::default(),
        watches: Vec::new(),
        outcome: Outcome {
            steps: scenario.steps().count(),
            ..Outcome::default()
        },
    };
    if let Err(error) = player.set_up(scenario).await {
        let failed = format!("setup: {error:#}");
        player.outcome.differences = scenario
            .steps()
            .map(|step| (step.to_owned(), failed.clone()))
            .collect();
        return player.outcome;
    }
    for (at, exchange) in scenario.exchanges.iter().enumerate() {
        match player.step(exchange).await {
            Ok(true) => {}
            Ok(false) => {
                // Nobody compared the rest: it counts as different.
                for exchange in scenario.exchanges[at..]
                    .iter()
                    .filter(|exchange| exchange.request.is_some())
                {
                    player.differs(&exchange.step, "the server cannot drop its history".to_owned());
                }
                break;
            }
            Err(why) if exchange.request.is_some() => player.differs(&exchange.step, why),
            // An object that is created in between is no step: the next one is reported as different.
            Err(why) => {
                let next = scenario.exchanges[at..]
                    .iter()
                    .find(|exchange| exchange.request.is_some());
                if let Some(next) = next {
                    player.differs(&next.step, format!("before it, {why}"));
                }
            }
        }
    }
    player.events_before(None).await;
    player.outcome
}

struct Player<'a> {
    server: &'a Transport,
    bindings: Bindings,
    watches: Vec<Watch<'a>>,
    outcome: Outcome,
}

/// A watch that was opened.
struct Watch<'a> {
    step: &'a str,
    recorded: &'a corpus::Response,
    /// Recorded events that were compared.
    compared: usize,
    /// Lines of the stream; closed at its end.
    lines: mpsc::UnboundedReceiver<Value>,
    reader: tokio::task::JoinHandle<()>,
    finished: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl<'a> Player<'a> {
    fn differs(&mut self, step: &str, why: String) {
        self.outcome.differences.entry(step.to_owned()).or_insert(why);
    }

    async fn set_up(&self, scenario: &Scenario) -> Result<()> {
        for name in &scenario.setup.namespaces {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let (status, answer) = self.quiet("POST", "/api/v1/namespaces", Some(&body)).await?;
            if status != 201 {
                bail!("namespace {name}: {status} {answer}");
            }
            let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
            self.until(&account, |_| true).await?;
        }
        for made in &scenario.setup.objects {
            self.make(made).await?;
        }
        Ok(())
    }

    /// Makes an object without comparing; waits for a CRD to be served.
    async fn make(&self, made: &Made) -> Result<()> {
        let body = self.bindings.value(&made.body).map_err(anyhow::Error::msg)?;
        let (status, answer) = self.quiet("POST", &made.path, Some(&body)).await?;
        if status != 201 {
            bail!("{}: {status} {answer}", made.path);
        }
        if body["kind"] == "CustomResourceDefinition" {
            let name = body["metadata"]["name"].as_str().unwrap_or_default();
            let established = |crd: &Value| {
                let conditions = crd["status"]["conditions"].as_array();
                conditions.is_some_and(|list| {
                    list.iter()
                        .any(|each| each["type"] == "Established" && each["status"] == "True")
                })
            };
            self.until(&format!("{}/{name}", made.path), established).await?;
            let (group, plural) = (&body["spec"]["group"], &body["spec"]["names"]["plural"]);
            for version in body["spec"]["versions"].as_array().into_iter().flatten() {
                if version["served"] == true {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let path = format!(
                        "/apis/{}/{}/{}",
                        text(group),
                        text(&version["name"]),
                        text(plural)
                    );
                    self.until(&path, |_| true).await?;
                }
            }
        }
        Ok(())
    }

    async fn until(&self, path: &str, good: impl Fn(&Value) -> bool) -> Result<()> {
        let end = Instant::now() + self.server.patience;
        loop {
            let (status, answer) = self.quiet("GET", path, None).await?;
            if status == 200 && good(&answer) {
                return Ok(());
            }
            if Instant::now() > end {
                bail!("waited in vain for {path}: {status} {answer}");
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn quiet(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::USER_AGENT, "conformance-setup")
            .header(header::ACCEPT, "application/json")
            .header(header::HOST, "127.0.0.1:6443")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.server.token))
            .body(body.map(|body| Bytes::from(body.to_string())).unwrap_or_default())?;
        let response = self.server.send(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// One exchange; `false` when the rest cannot be played.
    async fn step(&mut self, exchange: &'a Exchange) -> Result<bool, String> {
        match exchange.action.as_deref() {
            Some("compact") => return Ok(self.server.compact()),
            Some("sleep") => {
                sleep(Duration::from_secs_f64(exchange.seconds.unwrap_or(0.0))).await;
                return Ok(true);
            }
            _ => {}
        }
        if let Some(made) = &exchange.setup {
            self.make(made).await.map_err(|error| format!("{error:#}"))?;
            return Ok(true);
        }
        let (Some(request), Some(recorded)) = (&exchange.request, &exchange.response) else {
            return Ok(true);
        };
        self.events_before(Some(&exchange.step)).await;
        if exchange.watch {
            let response = self.send(request).await?;
            status(recorded, response.status().as_u16(), "")?;
            self.headers(recorded, response.headers())?;
            let (sender, lines) = mpsc::unbounded_channel();
            let reader = tokio::spawn(async move {
                // A stream that breaks off is a stream that ended: the events that are missing tell.
                let _ = read_lines(response.into_body(), &sender).await;
            });
            self.watches.push(Watch {
                step: &exchange.step,
                recorded,
                compared: 0,
                lines,
                reader,
                finished: false,
            });
            return Ok(true);
        }
        let end = Instant::now() + self.server.patience;
        loop {
            let saved = self.bindings.clone();
            let result = self.once(request, recorded).await;
            if result.is_ok() || !exchange.poll || Instant::now() > end {
                return result.map(|()| true);
            }
            self.bindings = saved;
            sleep(POLL).await;
        }
    }

    async fn once(&mut self, request: &corpus::Request, recorded: &corpus::Response) -> Result<(), String> {
        let response = self.send(request).await?;
        let (parts, body) = response.into_parts();
        let body = timeout(ANSWER, body.collect())
            .await
            .map_err(|_| "the body does not end".to_owned())?
            .map_err(|error| format!("the body broke off: {error:#}"))?
            .to_bytes();
        let body = unpacked(&parts.headers, body)?;
        let text = String::from_utf8_lossy(&body).into_owned();
        status(recorded, parts.status.as_u16(), &text)?;
        self.headers(recorded, &parts.headers)?;
        let how = recorded.body_kept.as_ref().map_or("", |kept| kept.how.as_str());
        if how == "shape" {
            return Ok(());
        }
        let mut comparison = Comparison {
            bindings: &mut self.bindings,
            keep_order: recorded.managed_fields_order_kept,
        };
        let parsed = || serde_json::from_slice::<Value>(&body).map_err(|_| format!("no JSON: {:.300}", text));
        match (&recorded.body, &recorded.body_text) {
            (Some(want), _) if how == "subset" => comparison.subset(want, &parsed()?, "body"),
            (Some(want @ Value::Array(_)), _) if !how.is_empty() => {
                let parsed = parsed()?;
                let items = parsed["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                let names = items.iter().map(|item| {
                    let name = item["metadata"]["name"].as_str().unwrap_or_default();
                    if how == "names" {
                        return json!(name);
                    }
                    json!(format!(
                        "{}/{name}",
                        item["metadata"]["namespace"].as_str().unwrap_or_default()
                    ))
                });
                comparison.same(want, &names.collect(), "body")
            }
            (Some(want), _) => comparison.same(want, &canonical(parsed()?), "body"),
            (None, Some(want)) => self
                .bindings
                .unify(&without_ages(want), &without_ages(&text))
                .map_err(|why| format!("body: {why}")),
            (None, None) => Ok(()),
        }
    }

    async fn send(
        &self,
        request: &corpus::Request,
    ) -> Result<http::Response<super::transport::Answer>, String> {
        let built = self.request(request)?;
        timeout(ANSWER, self.server.send(built))
            .await
            .map_err(|_| "no answer".to_owned())?
            .map_err(|error| format!("no answer: {error:#}"))
    }

    fn request(&self, request: &corpus::Request) -> Result<Request<Bytes>, String> {
        let path = self.bindings.path(&request.path)?;
        let mut builder = Request::builder()
            .method(request.method.as_str())
            .uri(path)
            .header(header::USER_AGENT, "conformance/1.0")
            .header(header::HOST, "127.0.0.1:6443");
        for (name, values) in &request.headers {
            for value in values.all() {
                builder = builder.header(name, self.bindings.text(value)?);
            }
        }
        let token = match request.auth.as_deref() {
            None => Some(self.server.token.clone()),
            Some("none") => None,
            Some(token) => Some(self.bindings.text(token)?),
        };
        if let Some(token) = token {
            builder = builder.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = match (&request.body, &request.body_text, &request.body_base64) {
            (Some(body), ..) => self.body(body.get())?.into_bytes(),
            (_, Some(text), _) => self.bindings.text(text)?.into_bytes(),
            (.., Some(text)) => {
                let bytes: Result<k8s_openapi::ByteString, _> = serde_json::from_value(json!(text));
                bytes.map_err(|error| error.to_string())?.0
            }
            _ => Vec::new(),
        };
        builder.body(Bytes::from(body)).map_err(|error| error.to_string())
    }

    /// A JSON body in the recorded order of its keys, without blanks.
    fn body(&self, text: &str) -> Result<String, String> {
        if text.contains("$repeat") || text.contains("<nodeport") {
            let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            return Ok(self.bindings.value(&value)?.to_string());
        }
        self.bindings.text(&compact(text))
    }

    fn headers(&mut self, recorded: &corpus::Response, got: &HeaderMap) -> Result<(), String> {
        for (name, values) in &recorded.headers {
            if matches!(name.as_str(), "content-length" | "date" | "transfer-encoding") {
                continue;
            }
            let found: Vec<&str> = got
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .collect();
            if found.is_empty() {
                return Err(format!("header {name}: missing, want {values:?}"));
            }
            let values = values.all();
            let found = if values.len() == 1 && name != "warning" {
                vec![found.join(", ")]
            } else {
                found.into_iter().map(str::to_owned).collect()
            };
            if found.len() != values.len() {
                return Err(format!("header {name}: want {values:?}, got {found:?}"));
            }
            for (want, found) in values.iter().zip(&found) {
                let same = self.bindings.unify(want, found);
                same.map_err(|why| format!("header {name}: {why}"))?;
            }
        }
        if !recorded.headers.contains_key("warning") && got.contains_key(header::WARNING) {
            return Err(format!("header warning: unexpected {:?}", got[header::WARNING]));
        }
        Ok(())
    }

    /// Compares the events recorded before a step (`None`: all), and ends the watches that were over by then.
    async fn events_before(&mut self, step: Option<&str>) {
        let mut watches = std::mem::take(&mut self.watches);
        for watch in watches.iter_mut().filter(|watch| !watch.finished) {
            if let Err(why) = self.events_of(watch, step).await {
                self.differs(watch.step, why);
                watch.finished = true;
            }
        }
        self.watches = watches;
    }

    async fn events_of(&mut self, watch: &mut Watch<'a>, step: Option<&str>) -> Result<(), String> {
        while let Some(recorded) = watch.recorded.events.get(watch.compared) {
            if step.is_some_and(|step| recorded.after.as_str() >= step) {
                break;
            }
            watch.compared += 1;
            let want = Value::Object(recorded.event.clone());
            let number = watch.compared;
            let got = loop {
                let what = || format!("event {number} ({} after {})", want["type"], recorded.after);
                let line = timeout(self.server.patience, watch.lines.recv()).await;
                let line = line.map_err(|_| format!("{}: it does not come", what()))?;
                let line = line.ok_or_else(|| format!("{}: the stream ended before", what()))?;
                if !plain_bookmark(&line) || want["type"] == "BOOKMARK" {
                    break line;
                }
            };
            let mut comparison = Comparison {
                bindings: &mut self.bindings,
                keep_order: watch.recorded.managed_fields_order_kept,
            };
            comparison.same(&want, &got, &format!("event {number}"))?;
        }
        let over = watch.recorded.ended_after.as_deref();
        if step.is_none_or(|step| over.is_some_and(|over| over < step)) {
            watch.finished = true;
            if watch.recorded.ended_by.as_deref() == Some("server") {
                while let Some(line) = timeout(self.server.patience, watch.lines.recv())
                    .await
                    .map_err(|_| "the server does not end the stream".to_owned())?
                {
                    if !plain_bookmark(&line) {
                        return Err(format!("unexpected event {line}"));
                    }
                }
            } else {
                while let Ok(Some(line)) = timeout(SURPLUS, watch.lines.recv()).await {
                    if !plain_bookmark(&line) {
                        return Err(format!("unexpected event {line}"));
                    }
                }
                watch.reader.abort();
            }
        }
        Ok(())
    }
}

fn status(recorded: &corpus::Response, got: u16, text: &str) -> Result<(), String> {
    if recorded.status == got {
        return Ok(());
    }
    Err(format!(
        "status: want {}, got {got} {:.400}",
        recorded.status, text
    ))
}
