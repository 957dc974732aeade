//! Executes the plan of one copy, request by request: each response determines the next request. The sender of the requests
//! decides nothing.
//!
//! One request if the copy has no metadata of other writers: POST if no object is known to exist, PUT of exactly the copy that
//! was written last. Else GET, compare, PUT. If an update cannot change it, it is deleted with its uid and resourceVersion as
//! preconditions, and created again. Invariants:
//!
//! - Only the object that was read last is replaced or deleted: every PUT has its uid and resourceVersion, every DELETE has both
//!   as preconditions.
//! - No object is replaced or deleted that does not belong to the distribution, except for one without a controller where the
//!   distribution adopts it.
//! - Concurrent changes cost at most a few reads, then the task ends, and the core decides when to retry.

use serde_json::{Value, json};

use super::{
    Order, Place, Step,
    observed::ObservedObject,
    render::{self, DistributionRenderSpec, Standing},
};
use crate::{
    object::{Str, is_held},
    observation::Wrote,
    plan::{Preconditions, RemovalMode},
    rendered::Rendered,
};

mod fetched;

pub use fetched::{Content, content, source};

/// The number of times that a copy under concurrent change is read before the task gives up.
const ROUNDS: usize = 4;

/// A request about the copy, to the server of its place. No `Debug`: it may contain a Secret.
pub enum Request {
    /// GET of the whole object.
    Read,
    /// GET of its metadata.
    Look,
    /// POST.
    Create(Rendered),
    /// PUT; the object has uid and resourceVersion.
    Replace(Rendered),
    /// DELETE with uid and resourceVersion as preconditions.
    Delete(Preconditions),
}

/// The response to a request.
pub enum Answer<'a> {
    /// The object, or at least its metadata; after a DELETE also a `Status`.
    Object(&'a Value),
    /// An error, or no response, with a message for a user that has no content of the object.
    No(No, String),
    /// Nothing was sent, and nothing will be.
    Abandoned,
}

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    /// 404 that names the object: any other 404 proves nothing.
    Gone,
    /// 409 because the name is taken.
    Exists,
    /// 409 because the object changed.
    Changed,
    /// Any other 4xx: only a user can fix it.
    Refused,
    /// Any other error, and no response.
    Trouble,
}

/// The consequence of a response.
pub struct Turn {
    /// The object that the response shows, to be observed first.
    pub seen: Option<ObservedObject>,
    /// The next step.
    pub next: Next,
}

/// The next step.
pub enum Next {
    /// Send this request.
    Ask(Request),
    /// The task has ended with this outcome.
    End(Wrote),
}

/// The render data by which copies of a distribution in a place are recognised when one is removed.
#[must_use]
pub fn recipe_to_withdraw(distribution: &Str, uid: &Str, place: &Place, hub: &Str) -> DistributionRenderSpec {
    DistributionRenderSpec {
        distribution: distribution.clone(),
        uid: uid.clone(),
        namespace: place.namespace.clone(),
        mark: render::mark(place, hub),
        take_over: false,
    }
}

/// The task that applies or removes one copy.
pub struct ApplyTask<'a> {
    task: Task<'a>,
    stage: Stage,
    /// The number of reads left.
    left: usize,
    /// The path at which it differed, if it was deleted to be created again.
    differed: Option<String>,
}

enum Task<'a> {
    Bring(&'a Order, Content<'a>),
    Withdraw(&'a DistributionRenderSpec, &'a Preconditions),
}

/// The last request.
enum Stage {
    /// POST.
    Creating,
    /// PUT of exactly the copy that was written last.
    Updating,
    /// GET, to compare or to release.
    Reading,
    /// PUT of the object that was compared, and differed at this path.
    Correcting(String),
    /// DELETE of exactly this object.
    Deleting(Preconditions),
    /// GET after a DELETE that got a conflict with this message: is it still the same object?
    Checking(Preconditions, String),
    /// PUT without the ownership metadata.
    Releasing,
}

impl<'a> ApplyTask<'a> {
    /// Returns a task that applies a copy, and its first request.
    #[must_use]
    pub fn bring(order: &'a Order, content: Content<'a>) -> (Self, Request) {
        let mut apply_task = Self {
            task: Task::Bring(order, content),
            stage: Stage::Reading,
            left: ROUNDS - 1,
            differed: None,
        };
        let request = match &order.live {
            None if order.may_write => apply_task.create(),
            None => Request::Read,
            Some(_) if order.read_first || !order.may_write => Request::Read,
            Some(preconditions) => apply_task.update(preconditions),
        };
        (apply_task, request)
    }

    /// Returns a task that deletes or releases a copy, and its first request.
    #[must_use]
    pub fn withdraw(
        render_spec: &'a DistributionRenderSpec,
        preconditions: &'a Preconditions,
        mode: RemovalMode,
    ) -> (Self, Request) {
        let (stage, request) = match mode {
            RemovalMode::Delete => (
                Stage::Deleting(preconditions.clone()),
                Request::Delete(preconditions.clone()),
            ),
            RemovalMode::Release | RemovalMode::HandOver => (Stage::Reading, Request::Read),
        };
        let apply_task = Self {
            task: Task::Withdraw(render_spec, preconditions),
            stage,
            left: ROUNDS - 1,
            differed: None,
        };
        (apply_task, request)
    }

    /// Returns what follows the response to the last request. Cost: O(size of the objects).
    #[must_use]
    pub fn answered(&mut self, answer: &Answer<'_>) -> Turn {
        match answer {
            Answer::Abandoned => end(Wrote::Abandoned),
            Answer::Object(object) => self.accepted(object),
            Answer::No(no, message) => self.refused(*no, message),
        }
    }

    fn accepted(&mut self, object: &Value) -> Turn {
        match std::mem::replace(&mut self.stage, Stage::Reading) {
            Stage::Creating => {
                let differed = self.differed.take();
                self.applied(object, differed, true)
            }
            Stage::Updating => self.applied(object, None, false),
            Stage::Correcting(path) => self.applied(object, Some(path), false),
            Stage::Deleting(_) if object["kind"] == "Status" || !is_held(&object["metadata"]) => {
                self.deleted(None)
            }
            Stage::Checking(preconditions, _) if object["metadata"]["uid"] != *preconditions.uid => {
                self.deleted(Some(ObservedObject::of(object)))
            }
            // Both preconditions hold: the refusal has another cause, and a retry would be refused at once.
            Stage::Checking(preconditions, message)
                if object["metadata"]["resourceVersion"] == *preconditions.resource_version =>
            {
                self.stage = Stage::Deleting(preconditions);
                let step = self.step();
                end(Wrote::Failed { step, message })
            }
            // It is being deleted, changed, or has no owner now: planned again from its new state.
            Stage::Deleting(_) | Stage::Checking(..) | Stage::Releasing => reported(object),
            Stage::Reading => match &self.task {
                Task::Bring(..) => self.compare(object),
                Task::Withdraw(render_spec, preconditions) => {
                    if object["metadata"]["uid"] != *preconditions.uid {
                        return self.deleted(None);
                    }
                    let Some(released) = render::release(render_spec, object) else {
                        return reported(object);
                    };
                    self.stage = Stage::Releasing;
                    ask(Request::Replace(Rendered(released)))
                }
            },
        }
    }

    fn refused(&mut self, no: No, message: &str) -> Turn {
        let brings = matches!(self.task, Task::Bring(..));
        match (&self.stage, no) {
            (Stage::Creating, No::Exists)
            // Refused: it may be immutable, or of another type, which only a read shows.
            | (Stage::Updating, No::Changed | No::Refused)
            | (Stage::Correcting(_) | Stage::Releasing, No::Changed) => self.look_again(|apply_task| {
                apply_task.stage = Stage::Reading;
                Request::Read
            }),
            (Stage::Updating | Stage::Reading | Stage::Correcting(_), No::Gone) if brings => {
                self.deleted(None)
            }
            (Stage::Reading | Stage::Releasing | Stage::Deleting(_) | Stage::Checking(..), No::Gone) => {
                self.deleted(None)
            }
            (Stage::Deleting(preconditions), No::Changed) => {
                self.stage = Stage::Checking(preconditions.clone(), message.to_owned());
                ask(Request::Look)
            }
            _ => end(Wrote::Failed {
                step: self.step(),
                message: message.to_owned(),
            }),
        }
    }

    /// Compares the existing object with the desired one, and replaces it if it differs.
    fn compare(&mut self, live: &Value) -> Turn {
        let Task::Bring(order, content) = &self.task else {
            return end(Wrote::Abandoned);
        };
        if !live["metadata"]["deletionTimestamp"].is_null() {
            return reported(live);
        }
        match render::standing(&order.render_spec, live) {
            Standing::Ours => {}
            Standing::Free if order.render_spec.take_over => {}
            Standing::Free | Standing::Held(_) => {
                return Turn {
                    seen: Some(ObservedObject::of(live)),
                    next: Next::End(Wrote::Failed {
                        step: Step::Create,
                        message: "an object that is not managed by it already exists there".into(),
                    }),
                };
            }
        }
        let rendered = render::render(&order.render_spec, content.resource(), Some(live));
        let Some(path) = render::difference(&rendered, live) else {
            return self.applied(live, None, false);
        };
        if !order.may_write {
            return end(Wrote::Unequal {
                part: ObservedObject::of(live),
                content: content.number,
            });
        }
        let Some(why) = render::must_be_recreated(&rendered, live) else {
            self.stage = Stage::Correcting(path);
            return ask(Request::Replace(rendered));
        };
        if !order.may_recreate {
            return end(Wrote::Failed {
                step: Step::Update,
                message: format!(
                    "{why}, and the distribution's annotation keeps it from being deleted and made again"
                ),
            });
        }
        let text = |field: &str| -> Str { live["metadata"][field].as_str().unwrap_or_default().into() };
        let preconditions = Preconditions {
            uid: text("uid"),
            resource_version: text("resourceVersion"),
        };
        self.stage = Stage::Deleting(preconditions.clone());
        self.differed = Some(path);
        ask(Request::Delete(preconditions))
    }

    fn create(&mut self) -> Request {
        self.stage = Stage::Creating;
        Request::Create(self.render(None))
    }

    fn update(&mut self, preconditions: &Preconditions) -> Request {
        self.stage = Stage::Updating;
        // No other writer's metadata is on it (else the plan sets read_first), so its preconditions are enough.
        let live = json!({"metadata": {"uid": &*preconditions.uid, "resourceVersion": &*preconditions.resource_version}});
        Request::Replace(self.render(Some(&live)))
    }

    fn render(&self, live: Option<&Value>) -> Rendered {
        match &self.task {
            Task::Bring(order, content) => render::render(&order.render_spec, content.resource(), live),
            // Only an applied copy is rendered.
            Task::Withdraw(..) => Rendered(Value::Null),
        }
    }

    /// Reads once more, unless no read is left.
    fn look_again(&mut self, look: impl FnOnce(&mut Self) -> Request) -> Turn {
        let Some(left) = self.left.checked_sub(1) else {
            return end(Wrote::Failed {
                step: self.step(),
                message: "the object keeps changing".into(),
            });
        };
        self.left = left;
        ask(look(self))
    }

    /// The object to delete is gone; another may have its name.
    fn deleted(&mut self, seen: Option<ObservedObject>) -> Turn {
        let next = match &self.task {
            Task::Bring(order, _) if order.may_write => self.look_again(Self::create).next,
            Task::Bring(order, _) => Next::End(match &order.live {
                Some(Preconditions { uid, .. }) => Wrote::Gone { uid: uid.clone() },
                None => Wrote::Abandoned,
            }),
            Task::Withdraw(_, preconditions) => Next::End(Wrote::Gone {
                uid: preconditions.uid.clone(),
            }),
        };
        Turn { seen, next }
    }

    fn applied(&self, copy: &Value, differed: Option<String>, created: bool) -> Turn {
        match &self.task {
            Task::Bring(_, content) => end(Wrote::Applied {
                part: ObservedObject::of(copy),
                content: content.number,
                differed,
                created,
            }),
            Task::Withdraw(..) => end(Wrote::Abandoned),
        }
    }

    /// The step that failed, as the conditions name it. A copy that cannot be created again counts as one that cannot be
    /// updated.
    fn step(&self) -> Step {
        match (&self.task, &self.stage) {
            (Task::Withdraw(..), _) => Step::Delete,
            (_, Stage::Creating) => Step::Create,
            (_, Stage::Reading) => Step::Get,
            _ => Step::Update,
        }
    }
}

const fn ask(request: Request) -> Turn {
    Turn {
        seen: None,
        next: Next::Ask(request),
    }
}

const fn end(wrote: Wrote) -> Turn {
    Turn {
        seen: None,
        next: Next::End(wrote),
    }
}

/// Reports the existing object; the planner decides from that.
fn reported(live: &Value) -> Turn {
    Turn {
        seen: Some(ObservedObject::of(live)),
        next: Next::End(Wrote::Abandoned),
    }
}
