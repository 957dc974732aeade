//! How the shell carries out what is to be done to copies of distributions, request by request, and the garbage collector
//! that takes the copies of a distribution that is gone.

use entourage_core::{
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

use super::{HUB_ID, World, id_key};

/// How often a copy that changes is read again before giving up for now.
const ROUNDS: usize = 4;

/// What becomes of an attempt that leaves no copy as it should be.
enum Stop {
    Failed(Step, String),
    /// What stands there is told by itself.
    Told,
}

/// What is sent to a server, and its refusal where it refuses.
enum Answer {
    Object(Value),
    Exists,
    Missing,
    Conflict,
    Refused(String),
}

enum Next {
    Create,
    Update(Guard),
    Read,
}

impl World {
    /// Carries out `Change::Distribute`; answers what is observed.
    pub(super) fn distribute(&mut self, order: &Order) -> Vec<Observation> {
        let mut seen = Vec::new();
        let wrote = match self.bring_in_line(order, &mut seen) {
            Ok(wrote) => wrote,
            Err(Stop::Failed(step, message)) => Wrote::Failed { step, message },
            Err(Stop::Told) => Wrote::Abandoned,
        };
        let (name, place) = (order.distribution.clone(), order.place.clone());
        seen.push(Observation::Distributed(name, place, wrote));
        seen
    }

    /// Carries out `Change::Withdraw`; answers what is observed.
    pub(super) fn withdraw(
        &mut self,
        (distribution, uid): (Str, Str),
        place: &Place,
        id: &Id,
        guard: &Guard,
        how: How,
    ) -> Vec<Observation> {
        let mut seen = Vec::new();
        let recipe = Recipe {
            distribution: distribution.clone(),
            uid,
            namespace: place.namespace.clone(),
            mark: render::mark(place, &HUB_ID.into()),
            take_over: false,
        };
        let taken = match how {
            _ if self.is_down(place) => Err(Stop::Failed(Step::Delete, "there is no connection".into())),
            _ if self.refuses_removal => Err(Stop::Failed(Step::Delete, "denied".into())),
            How::Delete => self.delete_exactly(&recipe, place, id, guard, &mut seen),
            How::Release => self.release_exactly(&recipe, place, id, guard, &mut seen),
        };
        let wrote = match taken {
            Ok(()) => Wrote::Gone {
                uid: guard.uid.clone(),
            },
            Err(Stop::Failed(step, message)) => Wrote::Failed { step, message },
            Err(Stop::Told) => Wrote::Abandoned,
        };
        seen.push(Observation::Distributed(distribution, place.clone(), wrote));
        seen
    }

    fn bring_in_line(&mut self, order: &Order, seen: &mut Vec<Observation>) -> Result<Wrote, Stop> {
        if self.is_down(&order.place) || (self.mute && order.place.cluster.is_some()) {
            return Err(Stop::Failed(Step::Get, "there is no connection".into()));
        }
        let (resource, content) = self.resource(order, seen)?;
        let (place, id) = (&order.place, &order.id);
        let mut next = match &order.live {
            None => Next::Create,
            Some(_) if order.read_first => Next::Read,
            Some(guard) => Next::Update(guard.clone()),
        };
        for _ in 0..ROUNDS {
            next = match next {
                Next::Create => {
                    let copy = render::render(&order.recipe, &resource, None);
                    match self.post(place, id, copy.object()) {
                        Answer::Object(copy) => return Ok(applied(&copy, content, None, true)),
                        Answer::Refused(why) => return Err(Stop::Failed(Step::Create, why)),
                        _ => Next::Read,
                    }
                }
                Next::Update(guard) => {
                    let live = json!({"metadata": {"uid": &*guard.uid, "resourceVersion": &*guard.resource_version}});
                    let copy = render::render(&order.recipe, &resource, Some(&live));
                    match self.replace_copy(place, id, copy.object()) {
                        Answer::Object(copy) => return Ok(applied(&copy, content, None, false)),
                        Answer::Missing => Next::Create,
                        _ => Next::Read,
                    }
                }
                Next::Read => match self.object_at(place, id) {
                    None => Next::Create,
                    Some(live) => match self.reconcile(order, &resource, content, &live, seen)? {
                        Ok(wrote) => return Ok(wrote),
                        Err(next) => next,
                    },
                },
            };
        }
        Err(Stop::Failed(Step::Update, "the object keeps changing".into()))
    }

    /// What is distributed, and its number.
    fn resource(&self, order: &Order, seen: &mut Vec<Observation>) -> Result<(Value, u64), Stop> {
        let missing = || Stop::Failed(Step::Get, "what is distributed is not there".into());
        let Some(source) = &order.source else {
            let key = (
                "ResourceDistribution".to_owned(),
                String::new(),
                order.distribution.to_string(),
            );
            let object = self.hub.get(&key).ok_or_else(missing)?;
            let read = Distribution::of(object);
            let content = read.spec.as_ref().map(|spec| spec.content).map_err(Clone::clone);
            let subject = Subject::Distribution(order.distribution.clone(), read.into());
            seen.push(Observation::Seen(subject));
            let content = content.map_err(|why| Stop::Failed(Step::Get, why))?;
            return Ok((object["spec"]["resource"].clone(), content));
        };
        let object = self.hub.get(&id_key(source)).ok_or_else(missing)?;
        let part = Part::of(object);
        let (content, consents) = (part.version(), part.consents_to(&order.distribution));
        seen.push(Observation::Seen(Subject::Distributed(
            None,
            source.clone(),
            part,
        )));
        if !consents {
            return Err(Stop::Failed(Step::Get, "its owner does not let it".into()));
        }
        template::read(&template::sanitised(object))
            .map_err(|problems| Stop::Failed(Step::Get, format!("{} problems", problems.len())))?;
        Ok((object.clone(), content))
    }

    /// Brings what stands there in line. The inner error is what to do next.
    fn reconcile(
        &mut self,
        order: &Order,
        resource: &Value,
        content: u64,
        live: &Value,
        seen: &mut Vec<Observation>,
    ) -> Result<Result<Wrote, Next>, Stop> {
        let (place, id) = (&order.place, &order.id);
        if !live["metadata"]["deletionTimestamp"].is_null() {
            seen.push(part(place, id, live));
            return Err(Stop::Told);
        }
        match render::standing(&order.recipe, live) {
            Standing::Ours => {}
            Standing::Free if order.recipe.take_over => {}
            Standing::Free | Standing::Held(_) => {
                seen.push(part(place, id, live));
                let message = "an object of somebody else stands there".into();
                return Err(Stop::Failed(Step::Create, message));
            }
        }
        let rendered = render::render(&order.recipe, resource, Some(live));
        let Some(path) = render::difference(&rendered, live) else {
            return Ok(Ok(applied(live, content, None, false)));
        };
        if let Some(why) = render::must_be_recreated(&rendered, live) {
            if !order.may_recreate {
                return Err(Stop::Failed(Step::Update, why.into()));
            }
            let text = |field: &str| -> Str { live["metadata"][field].as_str().unwrap_or_default().into() };
            let guard = Guard {
                uid: text("uid"),
                resource_version: text("resourceVersion"),
            };
            self.delete_exactly(&order.recipe, place, id, &guard, seen)?;
            return Ok(Err(Next::Create));
        }
        match self.replace_copy(place, id, rendered.object()) {
            Answer::Object(copy) => Ok(Ok(applied(&copy, content, Some(path), false))),
            Answer::Missing => Ok(Err(Next::Create)),
            Answer::Refused(why) => Err(Stop::Failed(Step::Update, why)),
            Answer::Conflict | Answer::Exists => Ok(Err(Next::Read)),
        }
    }

    fn delete_exactly(
        &mut self,
        recipe: &Recipe,
        place: &Place,
        id: &Id,
        guard: &Guard,
        seen: &mut Vec<Observation>,
    ) -> Result<(), Stop> {
        let Some(live) = self.object_at(place, id) else {
            return Ok(());
        };
        let is_exactly = |field: &str, value: &Str| live["metadata"][field] == **value;
        if !is_exactly("uid", &guard.uid) || !is_exactly("resourceVersion", &guard.resource_version) {
            seen.push(part(place, id, &live));
            return if is_exactly("uid", &guard.uid) {
                Err(Stop::Told)
            } else {
                Ok(())
            };
        }
        assert!(
            render::standing(recipe, &live) == Standing::Ours || recipe.take_over,
            "{id} in {place} is not of {} and is deleted: {live}",
            recipe.distribution
        );
        self.writes.push(format!("{} DELETE {id}", server(place)));
        match &place.cluster {
            None => self.delete_key(&id_key(id)),
            Some(cluster) => {
                let objects = &mut self.members.get_mut(&**cluster).expect("member").objects;
                objects.remove(&id_key(id));
                self.member_changed(cluster, &id_key(id), &live);
            }
        }
        match self.object_at(place, id) {
            None => Ok(()),
            Some(held) => {
                seen.push(part(place, id, &held));
                Err(Stop::Told)
            }
        }
    }

    fn release_exactly(
        &mut self,
        recipe: &Recipe,
        place: &Place,
        id: &Id,
        guard: &Guard,
        seen: &mut Vec<Observation>,
    ) -> Result<(), Stop> {
        let Some(live) = self.object_at(place, id) else {
            return Ok(());
        };
        if live["metadata"]["uid"] != *guard.uid {
            return Ok(());
        }
        let Some(released) = render::release(recipe, &live) else {
            seen.push(part(place, id, &live));
            return Err(Stop::Told);
        };
        let answer = self.replace_copy(place, id, &released);
        let Answer::Object(freed) = answer else {
            return Err(Stop::Failed(Step::Delete, "denied".into()));
        };
        // It stands there on, and is nobody's.
        seen.push(part(place, id, &freed));
        Err(Stop::Told)
    }

    fn is_down(&self, place: &Place) -> bool {
        let member = place.cluster.as_ref().map(|cluster| &self.members[&**cluster]);
        member.is_some_and(|member| member.down)
    }

    /// What stands in a place.
    pub(crate) fn object_at(&self, place: &Place, id: &Id) -> Option<Value> {
        let objects = match &place.cluster {
            None => &self.hub,
            Some(cluster) => &self.members.get(&**cluster)?.objects,
        };
        objects.get(&id_key(id)).cloned()
    }

    fn post(&mut self, place: &Place, id: &Id, copy: &Value) -> Answer {
        if self.object_at(place, id).is_some() {
            return Answer::Exists;
        }
        let namespace = ("Namespace".to_owned(), String::new(), place.namespace.to_string());
        let namespaces = match &place.cluster {
            None => &self.hub,
            Some(cluster) => &self.members[&**cluster].objects,
        };
        match namespaces.get(&namespace) {
            Some(held) if held["metadata"]["deletionTimestamp"].is_null() => {}
            _ => return Answer::Refused(format!("namespace {} takes nothing", place.namespace)),
        }
        if self.refuses.is_some_and(|refuses| refuses(copy)) {
            return Answer::Refused("denied".into());
        }
        let mut copy = copy.clone();
        self.stamp(&mut copy);
        self.writes.push(format!("{} POST {id}", server(place)));
        self.store(place, id, copy.clone());
        Answer::Object(copy)
    }

    fn replace_copy(&mut self, place: &Place, id: &Id, copy: &Value) -> Answer {
        let Some(live) = self.object_at(place, id) else {
            return Answer::Missing;
        };
        for field in ["uid", "resourceVersion"] {
            if copy["metadata"][field] != live["metadata"][field] {
                return Answer::Conflict;
            }
        }
        let is_changed = ["data", "binaryData", "stringData", "immutable"]
            .iter()
            .any(|field| copy[field] != live[field]);
        if live["immutable"] == true && is_changed {
            return Answer::Refused("it is immutable".into());
        }
        if self.refuses.is_some_and(|refuses| refuses(copy)) {
            return Answer::Refused("denied".into());
        }
        let next = self.put(&live, copy.clone());
        self.writes.push(format!("{} PUT {id}", server(place)));
        self.store(place, id, next.clone());
        Answer::Object(next)
    }

    fn store(&mut self, place: &Place, id: &Id, object: Value) {
        let key = id_key(id);
        match &place.cluster {
            None => {
                self.hub.insert(key.clone(), object);
                self.hub_changed(&key);
            }
            Some(cluster) => {
                let objects = &mut self.members.get_mut(&**cluster).expect("member").objects;
                let before = objects.insert(key.clone(), object).unwrap_or(Value::Null);
                self.member_changed(cluster, &key, &before);
            }
        }
    }

    /// A namespace goes, with everything in it.
    pub(crate) fn end_namespace(&mut self, name: &str) {
        let inside: Vec<_> = self.hub.keys().filter(|key| key.1 == name).cloned().collect();
        for key in inside {
            self.delete_key(&key);
        }
        self.delete_at(&("Namespace".into(), String::new(), name.into()));
    }

    /// An object of the hub goes although somebody holds it back.
    pub(crate) fn force_end(&mut self, object: &Value) {
        let key = super::key_of(object);
        self.hub.insert(key.clone(), object.clone());
        self.delete_key(&key);
    }

    /// The garbage collector comes round: at once, or under chaos in its own time. Answers whether it did.
    pub(super) fn collect_garbage(&mut self, must: bool) -> bool {
        if self.garbage.is_empty() {
            return false;
        }
        if let Some(random) = self.chaos.as_mut().filter(|_| !must)
            && random.below(4) != 0
        {
            return false;
        }
        for uid in std::mem::take(&mut self.garbage) {
            self.collect(&uid);
        }
        true
    }
}

fn applied(copy: &Value, content: u64, differed: Option<String>, created: bool) -> Wrote {
    Wrote::Applied {
        part: Part::of(copy),
        content,
        differed,
        created,
    }
}

fn part(place: &Place, id: &Id, live: &Value) -> Observation {
    let part = Part::of(live);
    Observation::Seen(Subject::Distributed(place.cluster.clone(), id.clone(), part))
}

fn server(place: &Place) -> &str {
    place.cluster.as_deref().unwrap_or("hub")
}

/// The kind, for keys.
pub(super) fn is_distribution(object: &Value) -> bool {
    object["kind"] == distribution::KIND
}
