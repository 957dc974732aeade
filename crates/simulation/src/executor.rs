//! The executor of plans: sends each change to the servers of an [`Environment`], as the shell does to real ones.

mod copies;
mod distributed;
mod hub;
mod namespaces;
mod quotas;
mod task;

use entourage_core::{
    delivery::apply_task::Order,
    interpreter::{self, question::Question},
    object::ResourceId,
    observation::{self, LEASES, Lease, LeaseAnswer, Observation, Server, Watch, kind_read_by},
    plan::{Change, HubObject},
    status,
};
pub use hub::id_of;
pub use namespaces::namespace;

use crate::environment::{Environment, Fault, Request};

/// The outcome of a change.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The responses, in order.
    pub seen: Vec<Observation>,
    /// True if it failed: the rest of the plan is dropped, and its key is planned again.
    pub failed: bool,
}

impl Outcome {
    /// It succeeded.
    #[must_use]
    pub fn done(seen: impl Into<Vec<Observation>>) -> Self {
        Self {
            seen: seen.into(),
            failed: false,
        }
    }

    /// It failed.
    #[must_use]
    pub fn failed(seen: impl Into<Vec<Observation>>) -> Self {
        Self {
            seen: seen.into(),
            failed: true,
        }
    }
}

/// Carries out a change. Cost: as on a server, O(size of the object); O(objects of the server) for a deletion on the hub and
/// for a look into a namespace.
pub fn carry_out(servers: &mut impl Environment, change: Change) -> Outcome {
    match change {
        Change::Hub { object, verb } => hub::write(servers, &object, verb),
        Change::Deliver {
            id,
            cluster,
            render_spec,
            live,
            read_first,
        } => {
            let order = Order {
                id,
                cluster,
                render_spec,
                live,
                read_first,
            };
            Outcome::done(copies::deliver(servers, &order))
        }
        Change::Remove {
            id,
            cluster,
            preconditions,
            mode,
        } => copies::remove(servers, &id, &cluster, &preconditions, mode),
        Change::Distribute(order) => Outcome::done(distributed::apply(servers, &order)),
        Change::Withdraw(order) => Outcome::done(distributed::withdraw(servers, *order)),
        Change::Namespace {
            cluster,
            name,
            labels,
            annotations,
        } => namespaces::apply(servers, &cluster, &name, &labels, &annotations),
        Change::LookInto {
            cluster,
            name,
            copies,
        } => namespaces::look_into(servers, &cluster, &name, &copies),
        Change::EndNamespace {
            cluster,
            name,
            preconditions,
            copies,
            mode,
            event,
        } => namespaces::end(servers, &cluster, &name, &preconditions, (mode, &copies), event),
        Change::AssignQuota(order) => Outcome::done(quotas::assign(servers, &order)),
        Change::UnassignQuota {
            quota,
            cluster,
            preconditions,
        } => Outcome::done(quotas::unassign(servers, quota, cluster, &preconditions)),
        Change::MirrorWork(order) => hub::mirror(servers, &order),
        Change::EndExecutionNamespace {
            name,
            preconditions,
            event,
        } => hub::end_execution_namespace(servers, name, preconditions, &event),
        Change::GetCopy { id, cluster } => copies::get(servers, id, cluster),
        Change::GetTemplate(id) => {
            if let Some(fault) = servers.fault(Request::GetTemplate(&id)) {
                return Outcome::done([Observation::Unreadable(id, fault.to_string())]);
            }
            Outcome::done([match servers.object(&Server::Hub, &id) {
                None => Observation::Absent(id),
                Some(object) if interpreter::not_propagatable(object) => Observation::NotPropagatable(id),
                Some(object) => {
                    let interpretation = servers.engine().interpretation(&id.gvk);
                    let watch = Watch::Templates(id.gvk.clone());
                    let observed = servers.observed(&interpretation, &watch, object);
                    let template = observation::template(&observed, &id, object);
                    Observation::Found(id, template)
                }
            }])
        }
        Change::GetLease(cluster) => {
            let id = ResourceId::new(kind_read_by(&Watch::Leases), LEASES, &cluster);
            let answer = match (
                servers.fault(Request::GetLease(&cluster)),
                servers.object(&Server::Hub, &id),
            ) {
                (Some(Fault::Rejected(why)), _) => LeaseAnswer::Refused(why),
                (Some(_), _) => return Outcome::failed([]),
                (None, Some(lease)) => LeaseAnswer::Found(Lease::of(lease)),
                (None, None) => LeaseAnswer::Absent,
            };
            Outcome::done([Observation::LeaseRead(cluster, answer)])
        }
        Change::Aggregate {
            id,
            interpretation,
            items,
            asked,
        } => {
            let Some(template) = servers.object(&Server::Hub, &id) else {
                return Outcome::default();
            };
            let question = Question::Aggregate {
                template,
                items: &items,
            };
            let interpretation = servers.answered(&interpretation, &id, question);
            let (mut outcome, unanswered) =
                match status::template::aggregated(template, &interpretation, &items) {
                    Ok(Some(verb)) => (hub::write(servers, &HubObject::Template(id.clone()), verb), None),
                    Ok(None) => (Outcome::default(), None),
                    Err(unanswered) => (Outcome::default(), Some(unanswered)),
                };
            if !outcome.failed {
                outcome.seen.push(Observation::Aggregated(id, asked, unanswered));
            }
            outcome
        }
        Change::Estimate(order) => {
            let (answers, asked) = (servers.estimate(&order), order.asked);
            Outcome::done(
                answers
                    .map(|answers| Observation::Estimated(order.key, asked, answers))
                    .into_iter()
                    .collect::<Vec<_>>(),
            )
        }
        Change::Refuse(why) => {
            servers.refuse(&why);
            Outcome::default()
        }
        Change::Emit(event) => {
            servers.emit(&event);
            Outcome::default()
        }
    }
}
