//! What people taught us of kinds, as the core last put it together: for whoever reads objects, and how they are read.
//!
//! What hooks say of an object is heard here, before the core reads it; an object of a kind without hooks costs nothing more.

use std::sync::{Arc, PoisonError, RwLock};

use entourage_core::{
    interpreter::{
        Interpretation, Interpreter,
        hook::{Policy, Subject},
        layers::{Heard, Said},
        operations::Operation,
        question::{Question, Unanswered},
    },
    object::{Gvk, Id, Str},
    observation::{self, Copy, Template, Watch},
};
use futures::future::join_all;
use serde_json::Value;

use crate::{
    client::path,
    hooks::{Hooks, Options},
};

/// Shared by everything that reads objects. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Taught {
    interpreter: Arc<RwLock<Arc<Interpreter>>>,
    hooks: Hooks,
}

impl Default for Taught {
    fn default() -> Self {
        Self::new(Hooks::new(Options::default()))
    }
}

impl Taught {
    /// Nothing yet; `hooks` is how hooks are asked.
    #[must_use]
    pub fn new(hooks: Hooks) -> Self {
        Self {
            interpreter: Arc::default(),
            hooks,
        }
    }

    /// What is taught of a kind now. Cost: O(log kinds that something is taught of).
    #[must_use]
    pub fn of(&self, gvk: &Gvk) -> Interpretation {
        self.interpreter
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .of(gvk)
    }

    /// What is taught of the kind that a watch reads.
    #[must_use]
    pub fn to(&self, watch: &Watch) -> Interpretation {
        match watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) => self.of(gvk),
            _ => Interpretation::default(),
        }
    }

    /// The core put it together anew. To be told before the watches that it concerns are started again.
    pub fn tell(&self, interpreter: Interpreter) {
        self.hooks.keep(interpreter.hooks().iter().map(|hook| &**hook));
        *self.interpreter.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(interpreter);
    }

    /// A template, read by what is taught of its kind.
    pub async fn template(&self, taught: &Interpretation, id: &Id, object: &Value) -> Template {
        let watch = Watch::Templates(id.gvk.clone());
        observation::template(&self.heard(taught, &watch, object).await.0, id, object)
    }

    /// A copy, read by what is taught of its kind.
    pub async fn copy(&self, taught: &Interpretation, cluster: &Str, gvk: &Gvk, object: &Value) -> Copy {
        if !taught.is_hooked() {
            return observation::copy(taught, gvk, object);
        }
        let watch = Watch::Copies(cluster.clone(), gvk.clone());
        observation::copy(&self.heard(taught, &watch, object).await.0, gvk, object)
    }

    /// What is taught, with what hooks say of an object that a watch served; and whether one of them has no answer.
    ///
    /// Takes as long as the slowest hook does, which are asked at a time.
    pub async fn heard(
        &self,
        taught: &Interpretation,
        watch: &Watch,
        object: &Value,
    ) -> (Interpretation, bool) {
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = watch else {
            return (taught.kept(), false);
        };
        let questions = observation::questions(watch, taught, object);
        if questions.is_empty() {
            return (taught.kept(), false);
        }
        let asked = questions.into_iter().map(|question| async move {
            let said = self.said(taught, gvk, question).await;
            (question.operation(), said)
        });
        let heard = Heard::of(join_all(asked).await);
        let lacks = heard.lacks();
        (taught.with(heard), lacks)
    }

    /// What the hook for a question says.
    pub async fn said(&self, taught: &Interpretation, gvk: &Gvk, question: Question<'_>) -> Said {
        let plural = path::plural(gvk);
        let namespace = question.object()["metadata"]["namespace"].as_str();
        let subject = subject(gvk, &plural, namespace.unwrap_or_default());
        match taught.hook(&subject, question.operation()) {
            Some(hook) => Said::by(hook.policy(), self.hooks.ask(hook, &subject, question).await),
            None => Said::Nobody,
        }
    }

    /// Whether the hook for an operation on an object is not left alone, so that it is worth reading the object for it.
    ///
    /// # Errors
    /// Who is left alone, and why.
    pub fn reach(&self, taught: &Interpretation, id: &Id, operation: Operation) -> Result<(), Unanswered> {
        let plural = path::plural(&id.gvk);
        let subject = subject(&id.gvk, &plural, &id.namespace);
        match taught.hook(&subject, operation) {
            Some(hook) if taught.asks(operation) && hook.policy() == Policy::Fail => {
                self.hooks.reach(hook, operation)
            }
            _ => Ok(()),
        }
    }
}

fn subject<'a>(gvk: &'a Gvk, plural: &'a str, namespace: &str) -> Subject<'a> {
    Subject {
        group: &gvk.group,
        version: &gvk.version,
        kind: &gvk.kind,
        resource: plural,
        is_namespaced: !namespace.is_empty(),
    }
}
