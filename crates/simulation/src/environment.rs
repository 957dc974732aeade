//! The servers that an executor sends its requests to, and what a run adds to them: faults, hooks, checks.

use std::fmt;

use entourage_core::{
    Engine,
    delivery::{RenderSpec, render},
    distribution::render::DistributionRenderSpec,
    interpreter::{Interpretation, question::Question},
    namespaces::content::Contents,
    object::{ResourceId, Str},
    observation::{EstimatorAnswer, Observation, Server, Watch},
    plan::{EstimateOrder, Event, Key, Preconditions, RemovalMode},
};
use serde_json::Value;

use crate::{process::Process, servers::Servers, watches};

/// A request of the executor, as a fault sees it.
#[derive(Clone, Copy)]
pub enum Request<'a> {
    /// The first request of a delivery to this member.
    Deliver(&'a Str, &'a ResourceId),
    /// A write of a copy, with the live object.
    Write(&'a Server, &'a ResourceId, &'a Value, Option<&'a Value>),
    /// A deletion or release of a copy.
    Remove(&'a Str, &'a ResourceId, &'a Preconditions),
    /// A GET of a copy.
    GetCopy(&'a Str),
    /// A GET of a template.
    GetTemplate(&'a ResourceId),
    /// A GET of the Lease of this member's agent.
    GetLease(&'a Str),
    /// A POST on the hub.
    Create(&'a ResourceId),
    /// A merge into the metadata of a template.
    Claim(&'a ResourceId),
    /// The first request about the copy of a distribution on this server.
    Distribute(&'a Server),
    /// A deletion of the copy of a distribution, with the live object.
    Withdraw(&'a Server, &'a ResourceId, &'a DistributionRenderSpec, &'a Value),
    /// A write of a namespace of this member, or a look into it.
    Namespace(&'a Str),
    /// A deletion or release of a namespace of this member.
    EndNamespace(&'a Str, &'a Str, &'a Preconditions, RemovalMode),
}

impl<'a> Request<'a> {
    /// The member that it is sent to; `None` for the hub.
    #[must_use]
    pub fn member(&self) -> Option<&'a Str> {
        match *self {
            Self::Deliver(cluster, _)
            | Self::Remove(cluster, ..)
            | Self::GetCopy(cluster)
            | Self::Namespace(cluster)
            | Self::EndNamespace(cluster, ..) => Some(cluster),
            Self::Write(server, ..) | Self::Distribute(server) | Self::Withdraw(server, ..) => match server {
                Server::Member(cluster) => Some(cluster),
                Server::Hub => None,
            },
            Self::GetTemplate(_) | Self::GetLease(_) | Self::Create(_) | Self::Claim(_) => None,
        }
    }
}

/// The outcome of a request that does not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no response.
    Unreachable(String),
    /// The server responds with an error of its own.
    Failed(String),
    /// The server refuses it.
    Rejected(String),
    /// The server says that the object has changed.
    Changed,
}

/// A write that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A POST.
    Create,
    /// A PUT or PATCH.
    Change,
    /// A DELETE.
    Delete,
    /// A deletion or release of a copy of a template.
    Remove(RemovalMode),
    /// A namespace of a member was created or changed.
    Namespace,
    /// A namespace of a member was deleted or released.
    EndNamespace(RemovalMode),
}

/// The servers of a run, and the process whose plans are carried out on them. The methods with a body are those of a run without
/// faults, hooks and checks.
pub trait Environment {
    /// The servers.
    fn servers(&self) -> &Servers;

    /// As [`Self::servers`].
    fn servers_mut(&mut self) -> &mut Servers;

    /// The process.
    fn process(&self) -> &Process;

    /// As [`Self::process`].
    fn process_mut(&mut self) -> &mut Process;

    /// The engine of the process.
    fn engine(&self) -> &Engine {
        &self.process().engine
    }

    /// An object of a server.
    fn object(&self, server: &Server, id: &ResourceId) -> Option<&Value> {
        self.servers().object(server, id)
    }

    /// The outcome of a request instead of the one that its server would give.
    fn fault(&mut self, _: Request<'_>) -> Option<Fault> {
        None
    }

    /// True if a member must be given this namespace before a copy in it.
    fn lacks_namespace(&self, _cluster: &Str, _namespace: &Str) -> bool {
        false
    }

    /// True if a namespace that was created gets a record of its uid.
    fn proves_namespaces(&self) -> bool {
        true
    }

    /// The content of a namespace if it is not only what the member's objects say; `None` if it is.
    fn unlisted(&self) -> Option<Contents> {
        None
    }

    /// A namespace of a member was looked into.
    fn looked_into(&mut self, _cluster: &Str) {}

    /// True if the objects that an object owned are deleted at once with it.
    fn collects(&mut self, _owner: &Value) -> bool {
        true
    }

    /// The interpretation of an object that a watch reads, with the responses of hooks about it.
    fn observed(&self, interpretation: &Interpretation, _: &Watch, _object: &Value) -> Interpretation {
        interpretation.clone()
    }

    /// An interpretation with the response of a hook to a question.
    fn answered(&self, interpretation: &Interpretation, _: &ResourceId, _: Question<'_>) -> Interpretation {
        interpretation.clone()
    }

    /// The answers of estimators to a question, for each of its members; `None` if no answer comes, not even a failure.
    fn estimate(&mut self, order: &EstimateOrder) -> Option<Vec<(Str, EstimatorAnswer)>> {
        let fails = |cluster: &Str| (cluster.clone(), EstimatorAnswer::Failed);
        Some(order.clusters.iter().map(fails).collect())
    }

    /// Renders a copy.
    ///
    /// # Errors
    /// As [`render::render`].
    fn render(
        &self,
        render_spec: &RenderSpec,
        id: &ResourceId,
        cluster: &Str,
        template: &Value,
        live: Option<&Value>,
    ) -> Result<render::Rendered, render::Refusal> {
        render::render(render_spec, id, cluster, template, live)
    }

    /// True if a watch covers an object of its server.
    fn covers(&self, watch: &Watch, id: &ResourceId, object: &Value) -> bool {
        watches::covers(watch, &self.engine().config.hub, id, object)
    }

    /// True if the process observes an event now.
    fn observes_now(&mut self, _: &Observation) -> bool {
        true
    }

    /// A watch covers an object that cannot be read as its kind, and observes nothing of it.
    fn undecodable(&self, _: &Watch, _object: &Value) {}

    /// The process has opened a watch and observed its list, which this [`Observation::Listed`] ended.
    fn opened(&mut self, _: &Watch, _: &Observation) {}

    /// An object was stored or removed, and the process has observed it; the object before.
    fn changed(&mut self, _: &Server, _: &ResourceId, _before: Option<&Value>) {}

    /// The process queued these keys.
    fn dirtied(&mut self, _: &[Key]) {}

    /// A write succeeded.
    fn wrote(&mut self, _: &Server, _: Write, _: &ResourceId) {}

    /// A member was seen with the copy of this template: written, or found equal.
    fn seen_with(&mut self, _cluster: &Str, _: &ResourceId, _template: &Value, _replicas: Option<i32>) {}

    /// An Event was recorded.
    fn emit(&mut self, _: &Event) {}

    /// A refusal was reported.
    fn refuse(&mut self, _why: &str) {}
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Failed(why) | Self::Rejected(why) => f.write_str(why),
            Self::Changed => f.write_str("it changed"),
        }
    }
}
