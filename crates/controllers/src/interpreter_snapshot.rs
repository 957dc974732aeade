//! The interpreter as the core last put it together, for all that read objects.
//!
//! What hooks say of an object is heard here, before the core reads it; an object of a kind without hooks costs nothing more.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use entourage_core::{
    interpreter::{
        Interpretation, Interpreter,
        hook::{Policy, Subject},
        layers::{HookResponses, HookResult},
        operations::Operation,
        question::{InterpretError, Question},
    },
    object::{Gvk, ResourceId, Str},
    observation::{self, Copy, ObjectRef, Template, Use, Used, Uses, Watch},
};
use futures::future::join_all;
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    client::path,
    hooks::{Hooks, Options},
};

/// Shared by everything that reads objects. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct InterpreterSnapshot {
    interpreter: Arc<RwLock<Arc<Interpreter>>>,
    /// Which answers about templates are used.
    uses: Arc<RwLock<Uses>>,
    /// The templates that are to be read again, because an answer is used now that was not asked for.
    unasked: Arc<Unasked>,
    hooks: Hooks,
}

#[derive(Debug, Default)]
struct Unasked {
    templates: Mutex<BTreeSet<ResourceId>>,
    more: Notify,
}

impl Default for InterpreterSnapshot {
    fn default() -> Self {
        Self::new(Hooks::new(Options::default()))
    }
}

impl InterpreterSnapshot {
    /// Nothing yet; `hooks` is how hooks are asked.
    #[must_use]
    pub fn new(hooks: Hooks) -> Self {
        Self {
            interpreter: Arc::default(),
            uses: Arc::default(),
            unasked: Arc::default(),
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

    /// Somebody uses other answers now, as the core says.
    pub fn used(&self, change: Use) {
        let again = self
            .uses
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take(change);
        if let Some(id) = again {
            self.unasked().insert(id);
            self.unasked.more.notify_waiters();
        }
    }

    /// These are used from now on.
    #[cfg(test)]
    pub(crate) fn used_by(&self, uses: Uses) {
        *self.uses.write().unwrap_or_else(PoisonError::into_inner) = uses;
    }

    /// The templates of a kind that are to be read again, because an answer that is used now was not asked for. Waits until
    /// there are some; dropping the future loses none.
    pub async fn unasked_of(&self, gvk: &Gvk) -> BTreeSet<ResourceId> {
        loop {
            let mut more = std::pin::pin!(self.unasked.more.notified());
            more.as_mut().enable();
            let of_it: BTreeSet<ResourceId> = self.unasked().extract_if(.., |id| id.gvk == *gvk).collect();
            if !of_it.is_empty() {
                return of_it;
            }
            more.await;
        }
    }

    fn unasked(&self) -> MutexGuard<'_, BTreeSet<ResourceId>> {
        self.unasked
            .templates
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A template, read by what is taught of its kind.
    pub async fn template(
        &self,
        interpretation: &Interpretation,
        id: &ResourceId,
        object: &Value,
    ) -> Template {
        let watch = Watch::Templates(id.gvk.clone());
        observation::template(&self.heard(interpretation, &watch, object).await.0, id, object)
    }

    /// A copy, read by what is taught of its kind.
    pub async fn copy(
        &self,
        interpretation: &Interpretation,
        cluster: &Str,
        gvk: &Gvk,
        object: &Value,
    ) -> Copy {
        if !interpretation.is_hooked() {
            return observation::copy(interpretation, gvk, object);
        }
        let watch = Watch::Copies(cluster.clone(), gvk.clone());
        observation::copy(&self.heard(interpretation, &watch, object).await.0, gvk, object)
    }

    /// What is taught, with what hooks say of an object that a watch served; and whether one of them has no answer.
    ///
    /// Asked is only for answers that are used. Takes as long as the slowest hook does, which are asked at a time, and once
    /// more where there may be components because there are no replicas.
    pub async fn heard(
        &self,
        interpretation: &Interpretation,
        watch: &Watch,
        object: &Value,
    ) -> (Interpretation, bool) {
        let (Watch::Templates(gvk) | Watch::Copies(_, gvk)) = watch else {
            return (interpretation.kept(), false);
        };
        if !interpretation.is_hooked() {
            return (interpretation.kept(), false);
        }
        let used = match observation::which(watch, object) {
            Some(ObjectRef::Template(id)) => {
                let uses = self.uses.read().unwrap_or_else(PoisonError::into_inner);
                uses.of(&id, object)
            }
            _ => Used::default(),
        };
        let mut heard = HookResponses::default();
        loop {
            let questions = observation::questions(watch, interpretation, object, used, &heard);
            if questions.is_empty() {
                break;
            }
            let asked = questions.into_iter().map(|question| async move {
                let said = self.said(interpretation, gvk, question).await;
                (question.operation(), said)
            });
            for (operation, said) in join_all(asked).await {
                heard = heard.and(operation, said);
            }
        }
        let heard = observation::heard(watch, interpretation, object, heard);
        let lacks = heard.lacks();
        (interpretation.with(heard), lacks)
    }

    /// What the hook for a question says.
    pub async fn said(
        &self,
        interpretation: &Interpretation,
        gvk: &Gvk,
        question: Question<'_>,
    ) -> HookResult {
        let plural = path::plural(gvk);
        let namespace = question.object()["metadata"]["namespace"].as_str();
        let subject = subject(gvk, &plural, namespace.unwrap_or_default());
        match interpretation.hook(&subject, question.operation()) {
            Some(hook) => HookResult::by(hook.policy(), self.hooks.ask(hook, &subject, question).await),
            None => HookResult::Nobody,
        }
    }

    /// Whether the hook for an operation on an object is not left alone, so that it is worth reading the object for it.
    ///
    /// # Errors
    /// Who is left alone, and why.
    pub fn reach(
        &self,
        interpretation: &Interpretation,
        id: &ResourceId,
        operation: Operation,
    ) -> Result<(), InterpretError> {
        let plural = path::plural(&id.gvk);
        let subject = subject(&id.gvk, &plural, &id.namespace);
        match interpretation.hook(&subject, operation) {
            Some(hook) if interpretation.asks(operation) && hook.policy() == Policy::Fail => {
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
