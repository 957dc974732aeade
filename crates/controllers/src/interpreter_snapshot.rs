//! The current interpretations of kinds, as the core last compiled them: for the tasks that read objects.
//!
//! The hooks of an object are called here, before the core projects it; an object of a kind without hooks costs nothing more.

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

/// Shared by all tasks that read objects. Cheap to clone; clones share the state.
#[derive(Clone, Debug)]
pub struct InterpreterSnapshot {
    interpreter: Arc<RwLock<Arc<Interpreter>>>,
    /// The results about templates that are in use.
    uses: Arc<RwLock<Uses>>,
    /// The templates to read again, because a result is in use now that was not requested.
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
    /// Creates an empty snapshot; `hooks` is the client of hooks.
    #[must_use]
    pub fn new(hooks: Hooks) -> Self {
        Self {
            interpreter: Arc::default(),
            uses: Arc::default(),
            unasked: Arc::default(),
            hooks,
        }
    }

    /// The current interpretation of a kind. Cost: O(log kinds with an interpretation).
    #[must_use]
    pub fn of(&self, gvk: &Gvk) -> Interpretation {
        self.interpreter
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .of(gvk)
    }

    /// The interpretation of the kind that a watch reads.
    #[must_use]
    pub fn to(&self, watch: &Watch) -> Interpretation {
        match watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) => self.of(gvk),
            _ => Interpretation::default(),
        }
    }

    /// Stores a new interpreter of the core. To be called before the watches that it concerns are restarted.
    pub fn tell(&self, interpreter: Interpreter) {
        self.hooks.keep(interpreter.hooks().iter().map(|hook| &**hook));
        *self.interpreter.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(interpreter);
    }

    /// Applies a change of the results in use.
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

    /// Replaces the results in use.
    #[cfg(test)]
    pub(crate) fn used_by(&self, uses: Uses) {
        *self.uses.write().unwrap_or_else(PoisonError::into_inner) = uses;
    }

    /// Returns the templates of a kind to read again, because a result is in use now that was not requested. Waits until there
    /// are some; dropping the future loses none.
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

    /// Projects a template by the interpretation of its kind.
    pub async fn template(
        &self,
        interpretation: &Interpretation,
        id: &ResourceId,
        object: &Value,
    ) -> Template {
        let watch = Watch::Templates(id.gvk.clone());
        observation::template(
            &self.responses(interpretation, &watch, object).await.0,
            id,
            object,
        )
    }

    /// Projects a copy by the interpretation of its kind.
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
        observation::copy(
            &self.responses(interpretation, &watch, object).await.0,
            gvk,
            object,
        )
    }

    /// Returns the interpretation with the responses of hooks about an object that a watch served; and true if one of them
    /// failed.
    ///
    /// Only results in use are requested. Takes as long as the slowest hook, since they are called concurrently, and once more
    /// if there may be components because there are no replicas.
    pub async fn responses(
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
        let mut responses = HookResponses::default();
        loop {
            let questions = observation::questions(watch, interpretation, object, used, &responses);
            if questions.is_empty() {
                break;
            }
            let asked = questions.into_iter().map(|question| async move {
                let reported = self.response(interpretation, gvk, question).await;
                (question.operation(), reported)
            });
            for (operation, reported) in join_all(asked).await {
                responses = responses.and(operation, reported);
            }
        }
        let responses = observation::with_unused(watch, interpretation, object, responses);
        let lacks = responses.lacks();
        (interpretation.with(responses), lacks)
    }

    /// Returns the response of the hook for a question.
    pub async fn response(
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

    /// Checks that the hook for an operation on an object is not in back-off, so that reading the object for it is worthwhile.
    ///
    /// # Errors
    /// The hook in back-off, and the reason.
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
