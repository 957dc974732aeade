//! HTTPS: `POST /mutate`, `POST /validate`, `GET /healthz`, `GET /readyz`, `GET /metrics`.
//!
//! All resources are limited: those that the listener limits, the size of a body, and the time for lists of other objects.

use std::time::Duration;

use bytes::Bytes;
use entourage_admission::Settings;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    distributions::{Denial, Distributions},
    listener::{self, Current, text},
    metrics::{Metrics, OPENMETRICS},
    options::Observer,
    review::{Others, Question, Review},
};

/// The largest accepted review, in bytes: two objects of the largest size that an API server stores, and their metadata.
pub const LARGEST: usize = 8 << 20;

/// The deadline for requests to the hub: less than the API server's timeout for a create. On an update its timeout is a second,
/// after which it admits the object.
const LOOK: Duration = Duration::from_secs(2);

/// The deadline for requests about rights and dry runs on an update: less than the API server's timeout of a second, since it
/// admits an update without a response.
const LOOK_AT_CHANGE: Duration = Duration::from_millis(700);

/// The state that all connections share.
#[derive(Clone)]
pub(crate) struct Server {
    client: kube::Client,
    settings: Settings,
    distributions: Distributions,
    tls: watch::Receiver<Current>,
    ready: watch::Receiver<bool>,
    metrics: Metrics,
    observer: Observer,
    process: Option<fn() -> String>,
}

impl Server {
    pub(crate) fn new(
        client: kube::Client,
        settings: Settings,
        distributions: Distributions,
        tls: watch::Receiver<Current>,
        ready: watch::Receiver<bool>,
    ) -> Self {
        Self {
            client,
            settings,
            distributions,
            tls,
            ready,
            metrics: Metrics::default(),
            observer: Observer::default(),
            process: None,
        }
    }

    /// Calls the observer after each review.
    pub(crate) fn observed(self, observer: Observer) -> Self {
        Self { observer, ..self }
    }

    /// Serves these families beside its own metrics.
    pub(crate) fn measured(self, process: Option<fn() -> String>) -> Self {
        Self { process, ..self }
    }

    /// Serves until `stop`; requests in progress are finished, within a limit.
    pub(crate) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let tls = self.tls.clone();
        listener::serve(listener, tls, listener::FOR_API_SERVER, stop, move |request| {
            let server = self.clone();
            async move { server.answer(request).await }
        })
        .await;
    }

    /// Responds to one request.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = request.uri().path();
        let Some(question) = Question::at(path) else {
            let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
            return match path {
                "/healthz" | "/livez" | "/readyz" | "/metrics" if !is_get => {
                    text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n")
                }
                "/healthz" | "/livez" => text(StatusCode::OK, "ok\n"),
                "/readyz" if *self.ready.borrow() => text(StatusCode::OK, "ok\n"),
                "/readyz" => text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "not ready: the hub's configurations do not point here yet, or the end has come\n",
                ),
                "/metrics" => {
                    let families = self.process.map(|families| families()).unwrap_or_default();
                    let mut response = text(StatusCode::OK, self.metrics.render(&families));
                    let kind = HeaderValue::from_static(OPENMETRICS);
                    response.headers_mut().insert(header::CONTENT_TYPE, kind);
                    response
                }
                _ => text(
                    StatusCode::NOT_FOUND,
                    "served here: /mutate, /validate, /healthz, /readyz, /metrics\n",
                ),
            };
        };
        let began = Instant::now();
        let parent = self.observer.parent(request.headers());
        let (response, code) = self.respond(request, question).await;
        let webhook = match question {
            Question::Mutate => "mutate",
            Question::Validate => "validate",
        };
        let took = began.elapsed();
        self.metrics.request(webhook, code, took);
        self.observer.observe(webhook, code, took, parent.as_deref());
        response
    }

    /// The response to a review, and the code that is counted: 200 if the write is allowed, that of the decision if it is denied.
    async fn respond<B>(&self, request: Request<B>, question: Question) -> (Response<Full<Bytes>>, u16)
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let with_code = |response: Response<Full<Bytes>>| {
            let code = response.status().as_u16();
            (response, code)
        };
        let body = match listener::posted(request, "an AdmissionReview", LARGEST).await {
            Ok(body) => body,
            Err(response) => return with_code(response),
        };
        match Review::read(&body) {
            Err(why) => with_code(text(StatusCode::BAD_REQUEST, format!("{why}\n"))),
            Ok(review) => {
                let answer = self.reviewed(&review, question).await;
                (listener::json(&answer), decided(&answer))
            }
        }
    }

    async fn reviewed(&self, review: &Review, question: Question) -> Value {
        let others = match review.looks_around() {
            Some(others) if question == Question::Validate => match self.others(others).await {
                Ok(others) => others,
                Err(why) => return review.unanswerable(&why),
            },
            _ => Vec::new(),
        };
        let answer = review.answered(question, &others, self.settings);
        if question != Question::Validate || answer["response"]["allowed"] != true {
            return answer;
        }
        let Some((inquiry, author, is_change)) = review.inquiry() else {
            return answer;
        };
        let timeout = if is_change { LOOK_AT_CHANGE } else { LOOK };
        match self.distributions.validated(&inquiry, author, timeout).await {
            Ok(warnings) => review.allowed(&warnings),
            Err(Denial::Refused(refusal)) => review.denied(&refusal),
            Err(Denial::Unknown(why)) => review.unanswerable(&why),
        }
    }

    /// Lists the objects that a write is compared with.
    async fn others(&self, others: Others<'_>) -> Result<Vec<Value>, String> {
        let kind = others.kind;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(others.group, others.version, kind));
        let api: Api<DynamicObject> = match others.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let failed = |why: String| {
            format!(
                "cannot see the other objects of {kind}, which this one is compared with: {why}; try again"
            )
        };
        match tokio::time::timeout(LOOK, api.list(&ListParams::default())).await {
            Err(_) => Err(failed("the hub does not respond".to_owned())),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Ok(Ok(list)) => {
                let values = list
                    .items
                    .iter()
                    .map(|item| serde_json::to_value(item).unwrap_or_default());
                Ok(values.collect())
            }
        }
    }
}

/// The code of a decision: 200 if the write is allowed.
fn decided(answer: &Value) -> u16 {
    let response = &answer["response"];
    if response["allowed"] == true {
        return StatusCode::OK.as_u16();
    }
    let code = response["status"]["code"].as_u64();
    let code = code.and_then(|code| u16::try_from(code).ok());
    code.unwrap_or(StatusCode::FORBIDDEN.as_u16())
}
