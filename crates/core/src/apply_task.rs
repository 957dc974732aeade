//! The task that applies, removes or releases one object on one server: the order of its requests.
//!
//! An [`ApplyTask`] is a state machine: each response determines the next request, and the sender decides nothing. To apply: POST
//! if no object is known to exist, PUT of exactly the known one, or GET, compare, PUT. What an update cannot change is deleted
//! and created again. To remove: DELETE, or GET and PUT without the ownership metadata. Invariants:
//!
//! - Only the object that was read last, or that the plan knows, is replaced or deleted: every PUT has its uid and
//!   resourceVersion, every DELETE has both as preconditions.
//! - Concurrent changes cost at most a few requests, then the task ends, and the core decides when to retry.
//!
//! Copies of bindings, copies of distributions and ResourceQuotas of quotas differ in what [`Applied`] says of them: see
//! `delivery::{apply_task, removal_task}`, `distribution::apply_task` and `quotas::apply_task`.

use entourage_render::copy::Refusal;
use serde_json::{Value, json};

use crate::{
    object::{Str, is_held},
    plan::{Preconditions, RemovalMode},
    rendered::{Rendered, wipe},
};

#[cfg(test)]
pub(crate) mod walk;

/// The message of a successful response that is no object.
pub(crate) const NO_OBJECT: &str = "the response is not an object";

/// The rules of one sort of object.
pub trait Applied {
    /// The outcome of a task.
    type Outcome;

    /// The number of times that an object under concurrent change is written or read before the task ends.
    const ROUNDS: usize = 4;
    /// True if an object of the same name that is not managed is observed.
    const SEES_OTHERS: bool = false;

    /// The object to send, with what is retained of the live one; `None` if the sender renders it, because webhooks take part.
    fn rendered(&self, _live: Option<&Value>) -> Option<Rendered> {
        None
    }

    /// True if it may be created.
    fn may_create(&self) -> bool {
        true
    }

    /// The outcome if this object is to be left alone, whatever is rendered.
    fn left_alone(&self, _live: &Value) -> Option<Self::Outcome> {
        None
    }

    /// The comparison of a live object, which is not left alone, with the rendered one.
    fn compared(&self, rendered: &Rendered, live: &Value) -> Compared<Self::Outcome>;

    /// The object without ownership metadata; `None` if it has none.
    fn released(&self, _live: &Value) -> Option<Value> {
        None
    }

    /// The class that an error counts as.
    fn class(&self, _stage: Stage, no: RequestError) -> RequestError {
        no
    }

    /// The outcome of an end that answers the request of this stage, and the object that is to be observed before.
    fn outcome(&self, stage: Stage, end: End) -> (Option<Fetched>, Self::Outcome);
}

/// The comparison of a live object with the rendered one.
pub enum Compared<O> {
    /// There is nothing to write.
    Equal,
    /// It is replaced: they differ at this path.
    Differs(String),
    /// It is deleted and created again: they differ at this path, and an update cannot change that.
    Immutable(String),
    /// It is not to be written.
    End(O),
}

/// A request about the object, to its server. No `Debug`: it may contain a Secret.
pub enum Request {
    /// Render the object, with what is retained of [`ApplyTask::live`].
    Render,
    /// GET of the whole object.
    Read,
    /// GET of what the cache keeps of its kind: its metadata, for most kinds.
    Look,
    /// POST.
    Create(Rendered),
    /// PUT; the object has uid and resourceVersion.
    Replace(Rendered),
    /// DELETE with uid and resourceVersion as preconditions.
    Delete(Preconditions),
}

/// The response to a request. No `Debug`: it may contain a Secret.
pub enum Answer {
    /// The object to send.
    Rendered(Result<Rendered, Refusal>),
    /// The object, or at least its metadata; after a DELETE also a `Status`.
    Object(Fetched),
    /// An error, or no response, with a message for a user that has no content of the object.
    Failed(RequestError, String),
}

/// An object as a server returned it. It may be a Secret: no `Debug`, no `Clone`, wiped on drop.
pub struct Fetched(pub Value);

impl Drop for Fetched {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// 404 that proves that the object does not exist.
    Gone,
    /// Any other 404: the kind may not be served, the namespace may not exist, or a proxy may not know the server.
    Missing,
    /// 409 because the name is taken.
    Exists,
    /// 409 because the object changed.
    Changed,
    /// Any other 4xx: only a user can fix it.
    Refused,
    /// Any other error.
    Other,
    /// No response.
    NoResponse,
    /// Nothing was sent, and nothing will be.
    Abandoned,
}

/// The last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// POST.
    Creating,
    /// PUT of exactly the known object.
    Updating,
    /// GET, to compare or to release.
    Reading,
    /// PUT of the object that was compared.
    Correcting,
    /// DELETE of exactly the known object.
    Deleting,
    /// GET after a DELETE that got a conflict: is it still the same object?
    Checking,
    /// PUT without the ownership metadata.
    Releasing,
}

/// The end of a task.
pub enum End {
    /// It was written, or found equal.
    Applied {
        /// The object as it is now.
        object: Fetched,
        /// The path at which it differed when it was read.
        differed: Option<String>,
        /// True if it was created.
        created: bool,
    },
    /// It cannot be rendered.
    NotRendered(Refusal),
    /// The object that was to be removed does not exist any more, or one that may not be created does not exist.
    Gone,
    /// The DELETE was accepted, and the object still exists for a while.
    Held(Fetched),
    /// The DELETE was refused, and this is the object now; with the refusal's message if it is the very version that was to be
    /// deleted: the cause is another then, and a retry would be refused at once.
    Kept(Fetched, Option<String>),
    /// It has no ownership metadata any more: `true` if the task removed it.
    Released(Fetched, bool),
    /// An error.
    Failed(RequestError, String),
    /// It changes faster than it can be written.
    KeepsChanging,
}

/// The consequence of a response.
pub struct Turn<O> {
    /// The object that the response shows, to be observed first.
    pub seen: Option<Fetched>,
    /// The next step.
    pub next: Next<O>,
}

/// The next step.
pub enum Next<O> {
    /// Send this request.
    Ask(Request),
    /// The task has ended with this outcome.
    End(O),
}

/// The task that applies or removes one object.
pub struct ApplyTask<A> {
    object: A,
    removes: bool,
    stage: Stage,
    /// The object that is deleted or released.
    known: Option<Preconditions>,
    /// The live object while another is rendered for it.
    live: Option<Fetched>,
    /// The path at which it differed.
    differed: Option<String>,
    /// The version whose PUT or DELETE got a conflict, and the message.
    conflict: Option<(Str, String)>,
    /// The message, if the read after the conflict showed this very version: the cause is another, such as an admission
    /// webhook that refuses with 409.
    unchanged: Option<String>,
    /// The version that the last PUT was to replace.
    replaces: Str,
    /// The number of further rounds.
    left: usize,
}

impl<A: Applied> ApplyTask<A> {
    /// Returns a task that applies an object, and its first step. `known` is the object that exists.
    pub(crate) fn apply(
        object: A,
        known: Option<&Preconditions>,
        read_first: bool,
    ) -> (Self, Next<A::Outcome>) {
        let mut task = Self::new(object, None);
        let turn = match known {
            _ if read_first => task.ask(Stage::Reading, Request::Read),
            None => task.render(Stage::Creating, None),
            Some(Preconditions {
                uid,
                resource_version,
            }) => {
                // Nothing of the live object is to be retained (else it is read first), so these are enough.
                let known = json!({"metadata": {"uid": &**uid, "resourceVersion": &**resource_version}});
                task.render(Stage::Updating, Some(Fetched(known)))
            }
        };
        (task, turn.next)
    }

    /// Returns a task that deletes or releases exactly this object, and its first step.
    pub(crate) fn remove(object: A, known: &Preconditions, mode: RemovalMode) -> (Self, Next<A::Outcome>) {
        let mut task = Self::new(object, Some(known.clone()));
        let turn = match mode {
            RemovalMode::Delete => task.ask(Stage::Deleting, Request::Delete(known.clone())),
            RemovalMode::Release | RemovalMode::HandOver => task.ask(Stage::Reading, Request::Read),
        };
        (task, turn.next)
    }

    fn new(object: A, removed: Option<Preconditions>) -> Self {
        Self {
            object,
            removes: removed.is_some(),
            stage: Stage::Reading,
            known: removed,
            live: None,
            differed: None,
            conflict: None,
            unchanged: None,
            replaces: Str::default(),
            left: A::ROUNDS - 1,
        }
    }

    /// The live object that [`Request::Render`] is about, or its metadata if nothing of it is retained; `None` if none is known
    /// to exist.
    #[must_use]
    pub fn live(&self) -> Option<&Value> {
        self.live.as_ref().map(|live| &live.0)
    }

    /// Returns what follows the response to the last request. Cost: O(size of the objects).
    #[must_use]
    pub fn answered(&mut self, answer: Answer) -> Turn<A::Outcome> {
        match answer {
            Answer::Rendered(Ok(rendered)) => self.write(rendered),
            Answer::Rendered(Err(refusal)) => self.end(End::NotRendered(refusal)),
            Answer::Object(object) => self.accepted(object),
            Answer::Failed(no, message) => self.refused(no, message),
        }
    }

    fn accepted(&mut self, object: Fetched) -> Turn<A::Outcome> {
        let is_status = self.stage == Stage::Deleting && object.0["kind"] == "Status";
        // A proxy may respond instead of the server, with an empty body for one: that proves nothing.
        if !is_status && object.0["metadata"]["uid"].as_str().is_none_or(str::is_empty) {
            return self.end(End::Failed(RequestError::Other, NO_OBJECT.to_owned()));
        }
        let refused = self.refused_version(&object);
        self.unchanged.clone_from(&refused);
        match (self.stage, refused) {
            (Stage::Creating | Stage::Updating | Stage::Correcting, _) => {
                let (differed, created) = (self.differed.take(), self.stage == Stage::Creating);
                self.end(End::Applied {
                    object,
                    differed,
                    created,
                })
            }
            (Stage::Reading, _) if self.removes => self.release(object),
            (Stage::Reading, _) => match self.object.left_alone(&object.0) {
                Some(outcome) => Turn {
                    seen: Some(object).filter(|_| A::SEES_OTHERS),
                    next: Next::End(outcome),
                },
                None => self.render(Stage::Correcting, Some(object)),
            },
            // A Status, or for some kinds the last state of the object, if it is gone; the object if it still exists.
            (Stage::Deleting, _) if is_status || !is_held(&object.0["metadata"]) => self.gone(None),
            (Stage::Deleting, _) => self.end(End::Held(object)),
            (Stage::Checking, _) if !self.is_known(&object) => self.gone(Some(object)),
            (Stage::Checking, refused) => self.end(End::Kept(object, refused)),
            (Stage::Releasing, _) => self.end(End::Released(object, true)),
        }
    }

    /// The message of the conflict about exactly this version. Cost: O(1).
    fn refused_version(&mut self, object: &Fetched) -> Option<String> {
        let (version, message) = self.conflict.take()?;
        (object.0["metadata"]["resourceVersion"] == *version).then_some(message)
    }

    fn refused(&mut self, no: RequestError, message: String) -> Turn<A::Outcome> {
        match (self.stage, self.object.class(self.stage, no)) {
            (Stage::Creating, RequestError::Exists)
            | (Stage::Updating | Stage::Correcting | Stage::Releasing, RequestError::Changed) => {
                // Only a conflict says that the version is another; any other error is compared with what is there.
                if no == RequestError::Changed {
                    self.conflict = Some((self.replaces.clone(), message));
                }
                // What is read now is compared anew.
                self.differed = None;
                self.again(|task| task.ask(Stage::Reading, Request::Read))
            }
            (Stage::Deleting, RequestError::Changed) => {
                let version = self.known.as_ref().map(|known| known.resource_version.clone());
                self.conflict = version.map(|version| (version, message));
                self.ask(Stage::Checking, Request::Look)
            }
            (stage, RequestError::Gone) if stage != Stage::Creating => self.gone(None),
            (_, no) => self.end(End::Failed(no, message)),
        }
    }

    fn render(&mut self, stage: Stage, live: Option<Fetched>) -> Turn<A::Outcome> {
        self.live = live;
        match self.object.rendered(self.live()) {
            Some(rendered) => {
                self.stage = stage;
                self.write(rendered)
            }
            None => self.ask(stage, Request::Render),
        }
    }

    fn write(&mut self, rendered: Rendered) -> Turn<A::Outcome> {
        let live = match (self.stage, self.live.take()) {
            (Stage::Correcting, Some(live)) => live,
            (Stage::Creating, _) => return self.ask(Stage::Creating, Request::Create(rendered)),
            _ => return self.replace(self.stage, rendered),
        };
        match self.object.compared(&rendered, &live.0) {
            Compared::Equal => self.end(End::Applied {
                object: live,
                differed: None,
                created: false,
            }),
            Compared::Differs(path) => {
                self.differed = Some(path);
                self.replace(Stage::Correcting, rendered)
            }
            Compared::Immutable(path) => {
                self.differed = Some(path);
                let text =
                    |field: &str| -> Str { live.0["metadata"][field].as_str().unwrap_or_default().into() };
                let known = Preconditions {
                    uid: text("uid"),
                    resource_version: text("resourceVersion"),
                };
                self.known = Some(known.clone());
                self.ask(Stage::Deleting, Request::Delete(known))
            }
            Compared::End(outcome) => Turn {
                seen: None,
                next: Next::End(outcome),
            },
        }
    }

    fn release(&mut self, live: Fetched) -> Turn<A::Outcome> {
        if !self.is_known(&live) {
            return self.gone(None);
        }
        match self.object.released(&live.0) {
            Some(released) => self.replace(Stage::Releasing, Rendered(released)),
            None => self.end(End::Released(live, false)),
        }
    }

    /// The object does not exist any more; another may have its name.
    fn gone(&mut self, other: Option<Fetched>) -> Turn<A::Outcome> {
        self.unchanged = None;
        let turn = if self.removes || !self.object.may_create() {
            self.end(End::Gone)
        } else {
            // It is new, unless it was deleted for its difference.
            if self.stage == Stage::Correcting {
                self.differed = None;
            }
            self.again(|task| task.render(Stage::Creating, None))
        };
        Turn {
            seen: other.filter(|_| A::SEES_OTHERS),
            ..turn
        }
    }

    fn is_known(&self, live: &Fetched) -> bool {
        let uid = self.known.as_ref().map(|known| &*known.uid);
        live.0["metadata"]["uid"].as_str() == uid
    }

    /// Does one round more, unless none is left.
    fn again(&mut self, step: impl FnOnce(&mut Self) -> Turn<A::Outcome>) -> Turn<A::Outcome> {
        let Some(left) = self.left.checked_sub(1) else {
            let unchanged = self.unchanged.take();
            return self.end(unchanged.map_or(End::KeepsChanging, |message| {
                End::Failed(RequestError::Refused, message)
            }));
        };
        self.left = left;
        step(self)
    }

    fn replace(&mut self, stage: Stage, rendered: Rendered) -> Turn<A::Outcome> {
        let version = rendered.object()["metadata"]["resourceVersion"].as_str();
        self.replaces = version.unwrap_or_default().into();
        self.ask(stage, Request::Replace(rendered))
    }

    fn ask(&mut self, stage: Stage, request: Request) -> Turn<A::Outcome> {
        self.stage = stage;
        Turn {
            seen: None,
            next: Next::Ask(request),
        }
    }

    fn end(&self, end: End) -> Turn<A::Outcome> {
        let (seen, outcome) = self.object.outcome(self.stage, end);
        Turn {
            seen,
            next: Next::End(outcome),
        }
    }
}
