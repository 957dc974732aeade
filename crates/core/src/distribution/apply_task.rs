//! Carrying out what is planned for one copy, request by request: each answer decides what is asked next. Whoever sends the
//! requests decides nothing.
//!
//! One request where nothing of others stands on the copy: POST when nothing is known to stand there, PUT of exactly the copy
//! that was written last. Else GET, compare, PUT. Where an update cannot change it, it is deleted with its uid and
//! resourceVersion as preconditions, and made again. Invariants:
//!
//! - What was read last is what is written over or deleted: every PUT carries its uid and resourceVersion, every DELETE has
//!   both as preconditions.
//! - Nothing is written over or deleted that is not of the distribution, but for what nobody controls where it takes over.
//! - Whatever comes in between costs at most a few looks, then it ends, and the core decides when to try again.

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

/// How often a copy that changes under us is looked at before giving up for now.
const ROUNDS: usize = 4;

/// A request about the copy, to the server of its place. No `Debug`: it may hold a Secret.
pub enum Request {
    /// GET of the whole object.
    Read,
    /// GET of its metadata.
    Look,
    /// POST.
    Create(Rendered),
    /// PUT; the object carries uid and resourceVersion.
    Replace(Rendered),
    /// DELETE with uid and resourceVersion as preconditions.
    Delete(Preconditions),
}

/// The answer to a request.
pub enum Answer<'a> {
    /// The object, or at least its metadata; after a DELETE also a `Status`.
    Object(&'a Value),
    /// A refusal, or none at all, in words for a person, without any content.
    No(No, String),
    /// Nothing was sent, and nothing will be.
    Abandoned,
}

/// What a refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum No {
    /// 404 that names the object: anything else proves nothing.
    Gone,
    /// 409 because the name is taken.
    Exists,
    /// 409 because the object changed.
    Changed,
    /// Any other 4xx: only a person can change it.
    Refused,
    /// Anything else, silence too.
    Trouble,
}

/// What follows an answer.
pub struct Turn {
    /// What the answer tells of the object that stands there, to be observed first.
    pub seen: Option<ObservedObject>,
    /// What to do.
    pub next: Next,
}

/// What is done next.
pub enum Next {
    /// Ask this.
    Ask(Request),
    /// It ended so.
    End(Wrote),
}

/// How copies of a distribution in a place are recognised when one is taken away.
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

/// One copy being brought in line, or taken away.
pub struct ApplyTask<'a> {
    task: Task<'a>,
    stage: Stage,
    /// How many looks are left.
    left: usize,
    /// Where it differed, if it was deleted to be made again.
    differed: Option<String>,
}

enum Task<'a> {
    Bring(&'a Order, Content<'a>),
    Withdraw(&'a DistributionRenderSpec, &'a Preconditions),
}

/// What was asked last.
enum Stage {
    /// POST.
    Creating,
    /// PUT of exactly what was written last.
    Updating,
    /// GET, to compare or to release.
    Reading,
    /// PUT of what was compared, and differed here.
    Correcting(String),
    /// DELETE of exactly this object.
    Deleting(Preconditions),
    /// GET after a DELETE that was answered with a conflict, in these words: is it still that object?
    Checking(Preconditions, String),
    /// PUT without our marks.
    Releasing,
}

impl<'a> ApplyTask<'a> {
    /// Brings a copy in line. Begin with the request.
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

    /// Takes a copy away, or our marks off it. Begin with the request.
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

    /// What follows the answer to the last request. Cost: O(size of the objects).
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
            // Both preconditions hold: something else refuses it, and would again at once.
            Stage::Checking(preconditions, message)
                if object["metadata"]["resourceVersion"] == *preconditions.resource_version =>
            {
                self.stage = Stage::Deleting(preconditions);
                let step = self.step();
                end(Wrote::Failed { step, message })
            }
            // It goes, changed, or is nobody's now: planned again from what it is.
            Stage::Deleting(_) | Stage::Checking(..) | Stage::Releasing => told(object),
            Stage::Reading => match &self.task {
                Task::Bring(..) => self.compare(object),
                Task::Withdraw(render_spec, preconditions) => {
                    if object["metadata"]["uid"] != *preconditions.uid {
                        return self.deleted(None);
                    }
                    let Some(released) = render::release(render_spec, object) else {
                        return told(object);
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
            // Refused: it may be immutable, or of another type, which only reading it tells.
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

    /// Brings what stands there in line.
    fn compare(&mut self, live: &Value) -> Turn {
        let Task::Bring(order, content) = &self.task else {
            return end(Wrote::Abandoned);
        };
        if !live["metadata"]["deletionTimestamp"].is_null() {
            return told(live);
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
        // Nothing of others stands on it (else the plan says read_first), so its guard stands for it.
        let live = json!({"metadata": {"uid": &*preconditions.uid, "resourceVersion": &*preconditions.resource_version}});
        Request::Replace(self.render(Some(&live)))
    }

    fn render(&self, live: Option<&Value>) -> Rendered {
        match &self.task {
            Task::Bring(order, content) => render::render(&order.render_spec, content.resource(), live),
            // Only what is brought in line is rendered.
            Task::Withdraw(..) => Rendered(Value::Null),
        }
    }

    /// One look less, unless none is left.
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

    /// The object that was to go is gone; another may stand in its place.
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

    /// What did not work, as the conditions name it. A copy that cannot be made again is one that cannot be updated.
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

/// What stands there is told, and everything else follows from it.
fn told(live: &Value) -> Turn {
    Turn {
        seen: Some(ObservedObject::of(live)),
        next: Next::End(Wrote::Abandoned),
    }
}
