//! The messages of the tasks to the control loop.

use std::sync::Arc;

use entourage_core::{
    object::{Gvk, Str},
    observation::{Observation, Probe, Server},
};

use crate::{client::served::Served, member::Member};

/// What the brain is told.
pub enum Message {
    /// An answer to a request.
    Seen(Box<Observation>),
    /// What one run of a watch saw; `initial` while it lists.
    Watched {
        /// Which run.
        run: u64,
        /// What it saw, in order.
        seen: Vec<Observation>,
        /// Whether this is from a list.
        initial: bool,
    },
    /// What a server serves of kinds that wait for that.
    Looked {
        /// The server.
        server: Server,
        /// By which run of its scout.
        run: u64,
        /// What was found.
        found: Vec<(Gvk, Option<Served>)>,
    },
    /// A member was probed.
    Probed {
        /// The member.
        name: Str,
        /// By which run of its task.
        run: u64,
        /// What was found.
        probe: Probe,
    },
    /// A member has a new client, or none.
    Member {
        /// The member.
        name: Str,
        /// From which run of its task.
        run: u64,
        /// Its connection.
        member: Option<Arc<Member>>,
    },
}

/// How many messages may wait for the brain; who sends more waits.
pub const INBOX: usize = 1024;
