//! A hook behind real TLS for the tests of its callers: it records its questions, can refuse them, and can delay them for as
//! long as a test needs.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use entourage_api::work::{AggregatedStatusItem, DependentObjectReference};
use entourage_core::{
    Engine,
    config::Config,
    interpreter::{Interpretation, hook::Contract},
    object::{Gvk, Time},
    observation::{self, Observation, Watch},
};
use entourage_webhook::interpret::{self, Answered, Interpret, Interpreter, Refusal};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Arc, Hooks, Options};
use crate::{interpreter_snapshot::InterpreterSnapshot, metrics::Metrics};

/// A hook that serves until it is dropped, and its caller.
pub(crate) struct HookClient {
    /// Calls it.
    pub(crate) interpreters: InterpreterSnapshot,
    /// The metrics of its questions.
    pub(crate) metrics: Metrics,
    clerk: Clerk,
    served: Option<(DropGuard, JoinHandle<()>)>,
}

#[derive(Clone)]
struct Clerk(Arc<(Mutex<Book>, Condvar)>);

#[derive(Default)]
struct Book {
    /// True if questions wait.
    is_held: bool,
    /// True if questions are refused.
    is_shut: bool,
    /// Each question: operation and object.
    asked: Vec<String>,
    /// The number of questions that wait now, and the maximum so far.
    waiting: (usize, usize),
}

impl HookClient {
    /// Serves a hook for `operations` on objects of a kind.
    pub(crate) async fn open(kind: &str, operations: &[&str]) -> Self {
        let clerk = Clerk(Arc::default());
        let names = ["127.0.0.1".to_owned()];
        let (tls, bundle) = interpret::self_signed(&names, jiff::Timestamp::now()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let configuration = json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": {"name": "desk", "uid": "desk", "resourceVersion": "1"},
            "webhooks": [{
                "name": "one.example.com", "interpreterContextVersions": ["v1alpha1"], "timeoutSeconds": 30,
                "clientConfig": {"url": format!("https://{}/", listener.local_addr().unwrap()), "caBundle": bundle},
                "rules": [{"operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "kinds": [kind]}],
            }],
        });
        let stop = CancellationToken::new();
        let interpreter = Interpreter::new(clerk.clone());
        let served = tokio::spawn(interpret::serve(listener, tls, interpreter, stop.clone()));
        let metrics = Metrics::new();
        let interpreters = InterpreterSnapshot::new(Hooks::new(Options {
            metrics: Some(metrics.clone()),
            ..Options::default()
        }));
        let mut engine = Engine::new(Config::new("hub"));
        let hooks = Watch::Hooks(Contract::Interpreter);
        let seen = observation::project(&hooks, &Interpretation::default(), &configuration).unwrap();
        engine.observe(Observation::Seen(seen), Time::default());
        interpreters.tell(engine.interpreter().clone());
        interpreters.used_by(observation::Uses::everything());
        Self {
            interpreters,
            metrics,
            clerk,
            served: Some((stop.drop_guard(), served)),
        }
    }

    /// The interpretation of a kind by this hook.
    pub(crate) fn of(&self, gvk: &Gvk) -> Interpretation {
        self.interpreters.of(gvk)
    }

    /// Holds all questions, or releases them.
    pub(crate) fn hold(&self, is_held: bool) {
        self.clerk.book().is_held = is_held;
        self.clerk.0.1.notify_all();
    }

    /// Ends the server. Callers get no connection.
    pub(crate) async fn leave(&mut self) {
        let (stop, served) = self.served.take().unwrap();
        drop(stop);
        served.await.unwrap();
    }

    /// Refuses all questions, or responds again.
    pub(crate) fn shut(&self, is_shut: bool) {
        self.clerk.book().is_shut = is_shut;
    }

    /// Each question so far: operation and object.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.clerk.book().asked.clone()
    }

    /// The number of held questions, and the maximum so far.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.clerk.book().waiting
    }

    /// The number of questions with this outcome, by the metrics.
    pub(crate) fn counted(&self, outcome: &str) -> usize {
        let text = self.metrics.render();
        let lines = text
            .lines()
            .filter(|line| line.starts_with("entourage_hook_questions_total{"));
        let counts = lines
            .filter(|line| line.contains(&format!("outcome=\"{outcome}\"")))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok());
        counts.sum()
    }
}

/// Threads of the hook may wait, and would block the end.
impl Drop for HookClient {
    fn drop(&mut self) {
        self.hold(false);
    }
}

impl Clerk {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take<T>(&self, word: &str, object: &Value, answer: impl FnOnce() -> T) -> Answered<T> {
        let mut book = self.book();
        let says = |field: &str| object[field].as_str().unwrap_or("?").to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or("?");
        book.asked.push(format!("{word} {} {name}", says("kind")));
        book.waiting.0 += 1;
        book.waiting.1 = book.waiting.1.max(book.waiting.0);
        while book.is_held {
            book = self.0.1.wait(book).unwrap_or_else(PoisonError::into_inner);
        }
        book.waiting.0 -= 1;
        if book.is_shut {
            return Err(Refusal::bad("shut"));
        }
        drop(book);
        Ok(answer())
    }
}

impl Interpret for Clerk {
    fn dependencies(&self, template: &Value) -> Answered<Vec<DependentObjectReference>> {
        self.take("dependencies", template, Vec::new)
    }

    fn is_healthy(&self, live: &Value) -> Answered<bool> {
        self.take("health", live, || true)
    }

    fn revise_replicas(&self, copy: Value, replicas: i64) -> Answered<Value> {
        self.take("revise", &copy.clone(), || {
            let mut copy = copy;
            copy["data"]["size"] = replicas.to_string().into();
            copy
        })
    }

    fn retain(&self, desired: Value, live: &Value) -> Answered<Value> {
        self.take("retain", &desired.clone(), || {
            let mut desired = desired;
            desired["data"]["till"] = live["data"]["till"].clone();
            desired
        })
    }

    fn aggregate_status(&self, template: Value, _: &[AggregatedStatusItem]) -> Answered<Value> {
        self.take("aggregate", &template.clone(), || template)
    }
}
