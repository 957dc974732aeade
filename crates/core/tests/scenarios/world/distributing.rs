//! Servers that answer the requests about copies of distributions, and the garbage collector that takes the copies of a
//! distribution that is gone. The order of the requests is the core's, as in the shell.

use entourage_core::{
    distribution::{
        self, Order, Place, Step,
        apply_task::{self, Answer, ApplyTask, Next, No, Request},
        render::{self, DistributionRenderSpec, Standing},
    },
    object::{ResourceId, Str},
    observation::{Observation, Subject, Wrote},
    plan::{Preconditions, RemovalMode},
};
use serde_json::{Value, json};

use super::{HUB_ID, World, id_key};

/// What a server says to a request: an object, or what its refusal means.
type Response = Result<Value, (No, String)>;

impl World {
    /// Carries out `Change::Distribute`; answers what is observed.
    pub(super) fn distribute(&mut self, order: &Order) -> Vec<Observation> {
        let mut seen = Vec::new();
        let wrote = self.bring_in_line(order, &mut seen);
        let (name, place) = (order.distribution.clone(), order.place.clone());
        seen.push(Observation::Distributed(name, place, wrote));
        seen
    }

    /// Carries out `Change::Withdraw`; answers what is observed.
    pub(super) fn withdraw(
        &mut self,
        (distribution, uid): (Str, Str),
        place: &Place,
        id: &ResourceId,
        preconditions: &Preconditions,
        mode: RemovalMode,
    ) -> Vec<Observation> {
        let mut seen = Vec::new();
        let render_spec = apply_task::recipe_to_withdraw(&distribution, &uid, place, &HUB_ID.into());
        let wrote = if self.is_down(place) {
            failed(Step::Delete, "there is no connection")
        } else {
            let apply_task = ApplyTask::withdraw(&render_spec, preconditions, mode);
            self.run(apply_task, &render_spec, place, id, &mut seen)
        };
        seen.push(Observation::Distributed(distribution, place.clone(), wrote));
        seen
    }

    fn bring_in_line(&mut self, order: &Order, seen: &mut Vec<Observation>) -> Wrote {
        if self.is_down(&order.place) || (self.mute && order.place.cluster.is_some()) {
            return failed(Step::Get, "there is no connection");
        }
        let Some(fetched) = self.hub.get(&id_key(&apply_task::source(order))).cloned() else {
            return failed(Step::Get, "what is distributed is not there");
        };
        let (subject, content) = apply_task::content(order, &fetched);
        seen.push(Observation::Seen(subject));
        match content {
            Ok(content) => {
                let apply_task = ApplyTask::bring(order, content);
                self.run(apply_task, &order.render_spec, &order.place, &order.id, seen)
            }
            Err(wrote) => wrote,
        }
    }

    fn run(
        &mut self,
        (mut apply_task, mut request): (ApplyTask<'_>, Request),
        render_spec: &DistributionRenderSpec,
        place: &Place,
        id: &ResourceId,
        seen: &mut Vec<Observation>,
    ) -> Wrote {
        loop {
            let said = self.ask(&request, render_spec, place, id);
            let turn = apply_task.answered(&match &said {
                Ok(object) => Answer::Object(object),
                Err((no, words)) => Answer::No(*no, words.clone()),
            });
            if let Some(part) = turn.seen {
                let subject = Subject::Distributed(place.cluster.clone(), id.clone(), part);
                seen.push(Observation::Seen(subject));
            }
            match turn.next {
                Next::Ask(next) => request = next,
                Next::End(wrote) => return wrote,
            }
        }
    }

    /// The server of a place. It sees to it that nothing is deleted that is not of the distribution.
    fn ask(
        &mut self,
        request: &Request,
        render_spec: &DistributionRenderSpec,
        place: &Place,
        id: &ResourceId,
    ) -> Response {
        match request {
            Request::Read | Request::Look => self.object_at(place, id).ok_or_else(missing),
            Request::Create(copy) => self.post(place, id, copy.object()),
            Request::Replace(copy) => self.replace_copy(place, id, copy.object()),
            Request::Delete(preconditions) => self.delete_exactly(render_spec, place, id, preconditions),
        }
    }

    fn delete_exactly(
        &mut self,
        render_spec: &DistributionRenderSpec,
        place: &Place,
        id: &ResourceId,
        preconditions: &Preconditions,
    ) -> Response {
        let live = self.object_at(place, id).ok_or_else(missing)?;
        let is_exactly = |field: &str, value: &Str| live["metadata"][field] == **value;
        if !is_exactly("uid", &preconditions.uid)
            || !is_exactly("resourceVersion", &preconditions.resource_version)
        {
            return Err((No::Changed, "it changed".into()));
        }
        assert!(
            render::standing(render_spec, &live) == Standing::Ours || render_spec.take_over,
            "{id} in {place} is not of {} and is deleted: {live}",
            render_spec.distribution
        );
        if self.refuses_removal {
            self.asked_to_remove += 1;
            let no = if self.refuses_as_changed {
                No::Changed
            } else {
                No::Refused
            };
            return Err((no, "denied".into()));
        }
        self.writes.push(format!("{} DELETE {id}", server(place)));
        match &place.cluster {
            None => self.delete_key(&id_key(id)),
            Some(cluster) => {
                let objects = &mut self.members.get_mut(&**cluster).expect("member").objects;
                objects.remove(&id_key(id));
                self.member_changed(cluster, &id_key(id), &live);
            }
        }
        let gone = json!({"kind": "Status", "status": "Success"});
        Ok(self.object_at(place, id).unwrap_or(gone))
    }

    fn is_down(&self, place: &Place) -> bool {
        let member = place.cluster.as_ref().map(|cluster| &self.members[&**cluster]);
        member.is_some_and(|member| member.down)
    }

    /// What stands in a place.
    pub(crate) fn object_at(&self, place: &Place, id: &ResourceId) -> Option<Value> {
        let objects = match &place.cluster {
            None => &self.hub,
            Some(cluster) => &self.members.get(&**cluster)?.objects,
        };
        objects.get(&id_key(id)).cloned()
    }

    fn post(&mut self, place: &Place, id: &ResourceId, copy: &Value) -> Response {
        if self.object_at(place, id).is_some() {
            return Err((No::Exists, "it exists".into()));
        }
        let namespace = ("Namespace".to_owned(), String::new(), place.namespace.to_string());
        let namespaces = match &place.cluster {
            None => &self.hub,
            Some(cluster) => &self.members[&**cluster].objects,
        };
        match namespaces.get(&namespace) {
            Some(held) if held["metadata"]["deletionTimestamp"].is_null() => {}
            _ => return Err(refused(&format!("namespace {} takes nothing", place.namespace))),
        }
        if self.refuses.is_some_and(|refuses| refuses(copy)) {
            return Err(refused("denied"));
        }
        let mut copy = copy.clone();
        self.stamp(&mut copy);
        self.writes.push(format!("{} POST {id}", server(place)));
        self.store(place, id, copy.clone());
        Ok(copy)
    }

    fn replace_copy(&mut self, place: &Place, id: &ResourceId, copy: &Value) -> Response {
        let live = self.object_at(place, id).ok_or_else(missing)?;
        for field in ["uid", "resourceVersion"] {
            if copy["metadata"][field] != live["metadata"][field] {
                return Err((No::Changed, "it changed".into()));
            }
        }
        let is_changed = ["data", "binaryData", "stringData", "immutable"]
            .iter()
            .any(|field| copy[field] != live[field]);
        if live["immutable"] == true && is_changed {
            return Err(refused("it is immutable"));
        }
        if self.refuses.is_some_and(|refuses| refuses(copy)) {
            return Err(refused("denied"));
        }
        let next = self.put(&live, copy.clone());
        self.writes.push(format!("{} PUT {id}", server(place)));
        self.store(place, id, next.clone());
        Ok(next)
    }

    fn store(&mut self, place: &Place, id: &ResourceId, object: Value) {
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

fn failed(step: Step, words: &str) -> Wrote {
    let message = words.into();
    Wrote::Failed { step, message }
}

fn missing() -> (No, String) {
    (No::Gone, "it is not there".into())
}

fn refused(words: &str) -> (No, String) {
    (No::Refused, words.into())
}

fn server(place: &Place) -> &str {
    place.cluster.as_deref().unwrap_or("hub")
}

/// The kind, for keys.
pub(super) fn is_distribution(object: &Value) -> bool {
    object["kind"] == distribution::KIND
}
