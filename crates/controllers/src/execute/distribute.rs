//! Bringing one copy of a distribution in line, or ending it: the order of the requests. What the copy looks like, whose an
//! object is, and what a copy may be updated to, are the core's functions.
//!
//! One request where nothing of others stands on the copy: POST when nothing is known to stand there, PUT of exactly the copy
//! that was written last. Else GET, compare, PUT. Where an update cannot change it, it is deleted with its uid and
//! resourceVersion as preconditions, and made again.

use std::sync::Arc;

use entourage_core::{
    delivery::render::Rendered,
    distribution::{
        self, Order, Place, Step,
        observed::{Distribution, Part},
        render::{self, Recipe, Standing},
        template,
    },
    object::{Id, Str},
    observation::{Observation, Subject, Wrote},
    plan::{Guard, How},
};
use serde_json::{Value, json};
use tracing::debug;

use super::{Hands, Outcome, deliver::Wiped, remove::is_held};
use crate::{
    client::{
        Api, Form,
        path::{Path, plural},
    },
    error::{Class, Failure},
    members::Member,
    source::Source,
};

/// How often a copy that changes under us is read again before giving up for now.
const ROUNDS: usize = 3;

/// What the next request is.
enum Next {
    Create,
    Update(Guard),
    Read,
}

/// Why an attempt ended without a copy.
enum Stop {
    Failed(Step, String),
    /// It stands as the core is told meanwhile.
    Told,
    Abandoned,
}

impl Hands {
    /// Carries out one `Change::Distribute`. Its outcome is told to the core, which decides when to try again.
    pub(super) async fn distribute(&self, order: Order, member: Option<&Arc<Member>>) -> Outcome {
        let wrote = match self.api_of(&order.place, member) {
            None => Wrote::Failed {
                step: Step::Get,
                message: "there is no connection to the member".into(),
            },
            Some(api) => match self.bring_in_line(&order, api).await {
                Ok(wrote) => wrote,
                Err(Stop::Failed(step, message)) => Wrote::Failed { step, message },
                Err(Stop::Told | Stop::Abandoned) => Wrote::Abandoned,
            },
        };
        if let Wrote::Failed { message, .. } = &wrote {
            debug!(distribution = %order.distribution, place = %order.place, error = message, "a copy could not be written");
        }
        let seen = Observation::Distributed(order.distribution, order.place, wrote);
        self.tell(seen).await;
        Outcome::Done
    }

    /// Carries out one `Change::Withdraw`.
    pub(super) async fn withdraw(
        &self,
        whose: (Str, Str),
        place: Place,
        id: Id,
        guard: Guard,
        how: How,
        member: Option<&Arc<Member>>,
    ) -> Outcome {
        let (distribution, uid) = whose;
        let wrote = match self.api_of(&place, member) {
            None => Wrote::Failed {
                step: Step::Delete,
                message: "there is no connection to the member".into(),
            },
            Some(api) => {
                let taken = match how {
                    How::Delete => self.delete_exactly(api, &place, &id, &guard).await,
                    How::Release => {
                        let recipe = Recipe {
                            distribution: distribution.clone(),
                            uid,
                            namespace: place.namespace.clone(),
                            mark: distribution::render::mark(&place, &self.hub_id),
                            take_over: false,
                        };
                        self.release_exactly(api, &recipe, &place, &id, &guard).await
                    }
                };
                match taken {
                    Ok(()) => Wrote::Gone { uid: guard.uid },
                    Err(Stop::Failed(step, message)) => Wrote::Failed { step, message },
                    Err(Stop::Told | Stop::Abandoned) => Wrote::Abandoned,
                }
            }
        };
        self.tell(Observation::Distributed(distribution, place, wrote))
            .await;
        Outcome::Done
    }

    fn api_of<'a>(&'a self, place: &Place, member: Option<&'a Arc<Member>>) -> Option<&'a Api> {
        match (&place.cluster, member) {
            (None, _) => Some(&self.hub),
            (Some(_), member) => member.map(|member| &member.api),
        }
    }

    async fn bring_in_line(&self, order: &Order, api: &Api) -> Result<Wrote, Stop> {
        let (source, content) = self.resource(order).await?;
        // Of an object that stands by itself only what travels, so that touching it changes no copy.
        let bare = order
            .source
            .is_some()
            .then(|| Wiped(template::sanitised(source.object())));
        let resource = bare
            .as_ref()
            .map_or(&source.object()["spec"]["resource"], |bare| &bare.0);
        Copying {
            hands: self,
            order,
            api,
            resource,
            content,
        }
        .run()
        .await
    }

    /// What is distributed, and its number.
    async fn resource(&self, order: &Order) -> Result<(Arc<Source>, u64), Stop> {
        let id = order.source.clone().unwrap_or_else(|| Id {
            gvk: distribution::gvk(),
            namespace: "".into(),
            name: order.distribution.clone(),
        });
        let fetched = match self.sources.fetch(&id).await {
            Ok(fetched) => fetched,
            Err(failure) => return Err(stop(Step::Get, &failure, &id)),
        };
        let object = fetched.source.object();
        if order.source.is_none() {
            let seen = Distribution::of(object);
            let content = seen.spec.as_ref().map(|spec| spec.content).map_err(Clone::clone);
            let name = order.distribution.clone();
            // Its copies may be seen to go before it is seen to end: made again, they would be collected once more.
            let is_ending = seen.meta.deleting.is_some();
            if fetched.first {
                self.tell(Observation::Seen(Subject::Distribution(name, Arc::new(seen))))
                    .await;
            }
            return match content {
                _ if is_ending => Err(Stop::Abandoned),
                Ok(content) => Ok((fetched.source, content)),
                Err(why) => Err(Stop::Failed(Step::Get, why)),
            };
        }
        let part = Part::of(object);
        let content = part.version();
        let consents = part.consents_to(&order.distribution);
        if fetched.first {
            self.tell(Observation::Seen(Subject::Distributed(None, id.clone(), part)))
                .await;
        }
        if !consents {
            return Err(Stop::Failed(
                Step::Get,
                format!("the owner of {id} does not let it be distributed"),
            ));
        }
        // By the same rules as what stands in a distribution: a token Secret and the like are refused.
        let bare = Wiped(template::sanitised(object));
        match template::read(&bare.0) {
            Ok(_) => Ok((fetched.source, content)),
            Err(problems) => {
                let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Err(Stop::Failed(Step::Get, format!("{id}: {}", words.join(". "))))
            }
        }
    }

    async fn see_part(&self, place: &Place, id: &Id, live: &Value) {
        let subject = Subject::Distributed(place.cluster.clone(), id.clone(), Part::of(live));
        self.tell(Observation::Seen(subject)).await;
    }

    async fn delete_exactly(&self, api: &Api, place: &Place, id: &Id, guard: &Guard) -> Result<(), Stop> {
        let path = Path::object(id);
        match api.delete(&path, &guard.uid, &guard.resource_version).await {
            Ok(answer) => {
                let answer = Wiped(answer);
                if answer.0["kind"] == "Status" || !is_held(&answer.0["metadata"]) {
                    return Ok(());
                }
                self.see_part(place, id, &answer.0).await;
                Err(Stop::Told)
            }
            Err(failure) if is_gone(&failure, id) => Ok(()),
            Err(failure) if failure.class() == Class::Conflict => {
                match api.get(&path, Form::Metadata).await {
                    Ok(live) => {
                        let is_other = live["metadata"]["uid"].as_str() != Some(&*guard.uid);
                        self.see_part(place, id, &live).await;
                        if is_other { Ok(()) } else { Err(Stop::Told) }
                    }
                    Err(failure) if is_gone(&failure, id) => Ok(()),
                    Err(failure) => Err(stop(Step::Delete, &failure, id)),
                }
            }
            Err(failure) => Err(stop(Step::Delete, &failure, id)),
        }
    }

    /// What was released stands there on, and is told as what it is: it may be in another distribution's way.
    async fn release_exactly(
        &self,
        api: &Api,
        recipe: &Recipe,
        place: &Place,
        id: &Id,
        guard: &Guard,
    ) -> Result<(), Stop> {
        let path = Path::object(id);
        for _ in 0..ROUNDS {
            let live = match api.get(&path, Form::Whole).await {
                Ok(live) => Wiped(live),
                Err(failure) if is_gone(&failure, id) => {
                    return Ok(());
                }
                Err(failure) => return Err(stop(Step::Delete, &failure, id)),
            };
            if live.0["metadata"]["uid"].as_str() != Some(&*guard.uid) {
                return Ok(());
            }
            let Some(released) = render::release(recipe, &live.0).map(Wiped) else {
                self.see_part(place, id, &live.0).await;
                return Err(Stop::Told);
            };
            match api.replace(&path, &released.0, Form::Metadata).await {
                Ok(answer) => {
                    self.see_part(place, id, &Wiped(answer).0).await;
                    return Err(Stop::Told);
                }
                Err(failure) if failure.class() == Class::Conflict => {}
                Err(failure) => return Err(stop(Step::Delete, &failure, id)),
            }
        }
        Err(Stop::Failed(Step::Delete, "the copy keeps changing".into()))
    }
}

/// One copy being brought in line.
struct Copying<'a> {
    hands: &'a Hands,
    order: &'a Order,
    api: &'a Api,
    resource: &'a Value,
    content: u64,
}

impl Copying<'_> {
    async fn run(&self) -> Result<Wrote, Stop> {
        let order = self.order;
        let mut next = match &order.live {
            None => Next::Create,
            Some(_) if order.read_first => Next::Read,
            Some(guard) => Next::Update(guard.clone()),
        };
        let mut last = Step::Get;
        for _ in 0..=ROUNDS {
            next = match next {
                Next::Create => {
                    last = Step::Create;
                    match self.post().await {
                        Ok(answer) => return Ok(self.applied(&answer, None, true)),
                        Err(failure) if failure.class() == Class::Exists => Next::Read,
                        Err(failure) => return Err(stop(Step::Create, &failure, &order.id)),
                    }
                }
                Next::Update(guard) => {
                    last = Step::Update;
                    match self.update(&guard).await {
                        Ok(answer) => return Ok(self.applied(&answer, None, false)),
                        Err(failure) if is_gone(&failure, &order.id) => Next::Create,
                        // Refused: it may be immutable, or of another type, which only reading it tells.
                        Err(failure) if matches!(failure.class(), Class::Conflict | Class::Refused) => {
                            Next::Read
                        }
                        Err(failure) => return Err(stop(Step::Update, &failure, &order.id)),
                    }
                }
                Next::Read => match self.api.get(&Path::object(&order.id), Form::Whole).await {
                    Ok(live) => match self.reconcile(&Wiped(live).0).await? {
                        Ok(wrote) => return Ok(wrote),
                        Err(next) => {
                            last = Step::Update;
                            next
                        }
                    },
                    Err(failure) if is_gone(&failure, &order.id) => Next::Create,
                    Err(failure) => return Err(stop(Step::Get, &failure, &order.id)),
                },
            };
        }
        Err(Stop::Failed(last, "the object keeps changing".into()))
    }

    /// Brings what stands there in line. The inner error is what to do next.
    async fn reconcile(&self, live: &Value) -> Result<Result<Wrote, Next>, Stop> {
        let order = self.order;
        if !live["metadata"]["deletionTimestamp"].is_null() {
            self.hands.see_part(&order.place, &order.id, live).await;
            return Err(Stop::Told);
        }
        match render::standing(&order.recipe, live) {
            Standing::Ours => {}
            Standing::Free if order.recipe.take_over => {}
            Standing::Free | Standing::Held(_) => {
                self.hands.see_part(&order.place, &order.id, live).await;
                let message = "an object of somebody else stands there".into();
                return Err(Stop::Failed(Step::Create, message));
            }
        }
        let rendered = render::render(&order.recipe, self.resource, Some(live));
        let Some(path) = render::difference(&rendered, live) else {
            return Ok(Ok(self.applied(live, None, false)));
        };
        if let Some(why) = render::must_be_recreated(&rendered, live) {
            if !order.may_recreate {
                return Err(Stop::Failed(
                    Step::Update,
                    format!(
                        "{why}, and the distribution's annotation keeps it from being deleted and made again"
                    ),
                ));
            }
            let text = |field: &str| -> Str { live["metadata"][field].as_str().unwrap_or_default().into() };
            let guard = Guard {
                uid: text("uid"),
                resource_version: text("resourceVersion"),
            };
            self.hands
                .delete_exactly(self.api, &order.place, &order.id, &guard)
                .await?;
            return Ok(Err(Next::Create));
        }
        match self.put(&rendered).await {
            Ok(answer) => Ok(Ok(self.applied(&answer, Some(path), false))),
            Err(failure) if failure.class() == Class::Conflict => Ok(Err(Next::Read)),
            Err(failure) if is_gone(&failure, &order.id) => Ok(Err(Next::Create)),
            Err(failure) => Err(stop(Step::Update, &failure, &order.id)),
        }
    }

    async fn post(&self) -> Result<Value, Failure> {
        let rendered = render::render(&self.order.recipe, self.resource, None);
        let path = Path::collection(&self.order.id);
        self.api.create(&path, rendered.object(), Form::Metadata).await
    }

    async fn update(&self, guard: &Guard) -> Result<Value, Failure> {
        // Nothing of others stands on it (else the plan says read_first), so its guard stands for it.
        let live = json!({"metadata": {"uid": &*guard.uid, "resourceVersion": &*guard.resource_version}});
        let rendered = render::render(&self.order.recipe, self.resource, Some(&live));
        self.put(&rendered).await
    }

    async fn put(&self, rendered: &Rendered) -> Result<Value, Failure> {
        let path = Path::object(&self.order.id);
        self.api.replace(&path, rendered.object(), Form::Metadata).await
    }

    fn applied(&self, copy: &Value, differed: Option<String>, created: bool) -> Wrote {
        Wrote::Applied {
            part: Part::of(copy),
            content: self.content,
            differed,
            created,
        }
    }
}

/// Whether a 404 names the object: anything else proves nothing.
fn is_gone(failure: &Failure, id: &Id) -> bool {
    failure.class() == Class::Missing && failure.is_about(&plural(&id.gvk))
}

fn stop(step: Step, failure: &Failure, id: &Id) -> Stop {
    match failure.class() {
        Class::Abandoned => Stop::Abandoned,
        _ if failure.is_namespace_missing() => Stop::Failed(
            step,
            format!("namespace {} does not exist on the server any more", id.namespace),
        ),
        _ => Stop::Failed(step, failure.text(&id.gvk)),
    }
}
