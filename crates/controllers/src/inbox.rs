//! The messages from the tasks to the control loop.

use std::sync::Arc;

use entourage_core::{
    object::{Gvk, Str},
    observation::{Observation, Probe, Server},
};

use crate::{client::served::Served, member::Member};

/// A message to the control loop.
pub enum Message {
    /// The response to a request.
    Seen(Box<Observation>),
    /// The observations of one run of a watch; `initial` while it lists.
    Watched {
        /// The run.
        run: u64,
        /// The observations, in order.
        seen: Vec<Observation>,
        /// True if they are from a list.
        initial: bool,
    },
    /// The served versions of kinds that wait for discovery.
    Looked {
        /// The server.
        server: Server,
        /// The run of its scout.
        run: u64,
        /// The results.
        found: Vec<(Gvk, Option<Served>)>,
    },
    /// A member was probed.
    Probed {
        /// The member.
        name: Str,
        /// The run of its task.
        run: u64,
        /// The result.
        probe: Probe,
    },
    /// A member has a new client, or none.
    Member {
        /// The member.
        name: Str,
        /// The run of its task.
        run: u64,
        /// Its connection.
        member: Option<Arc<Member>>,
    },
}

/// The maximum number of messages that wait for the control loop; a sender waits beyond it.
pub const INBOX: usize = 1024;
