//! The words that end-to-end tests are written with.
//!
//! A test has a hub and three members ([`Bed`]): its own on the embedded lane, on the real lane those that all tests share
//! one after the other. It starts controllers of its own
//! ([`Controllers`]) and in namespaces of its own ([`Space`]). When a [`Scene`] ends everything it made is deleted
//! through the hub, and what must be gone from the members is looked for there: that is part of every test.
//!
//! Nothing sleeps for a fixed time in the hope that something has happened: [`eventually`] asks until it has. That
//! nothing happens is checked by a bounded quiet window ([`Scene::quiet`]), which is as long as the longest delay that the
//! controllers put on purpose between an observation and a write.

mod agent;
mod bed;
mod canary;
mod capture;
mod controllers;
mod distributing;
mod estimator;
mod eventually;
mod fickle;
mod front;
mod kinds;
pub mod manifests;
mod mishaps;
mod outline;
mod pair;
mod report;
mod runner;
mod scene;
mod server;
mod short;
mod space;
mod versions;
mod witness;

pub use agent::Agent;
pub use bed::{Bed, MEMBERS};
pub use canary::Canary;
pub use capture::Capture;
pub use controllers::Controllers;
pub use distributing::{FAILURES, included};
pub use estimator::Estimator;
pub use eventually::{PATIENCE, eventually, eventually_within};
pub use fickle::{Fickle, Mood};
pub use front::Front;
pub use kinds::{DEPENDENCIES, KINDS, Kind, WORKLOADS, kind};
pub use mishaps::{Draw, Mishap, Step, Way, steps};
pub use outline::{Outline, differences};
pub use pair::{ENDS, End, Pair, SHORT_LEASE};
pub use runner::{Lane, Test, every_k, failovers, main, seed};
pub use scene::Scene;
pub use server::{Server, status_code};
pub use space::{Space, condition};
pub use versions::{QUIET, Versions, same, versions};
pub use witness::{Needs, Witness};

/// The tests of a module: the names of its functions, which take `&mut Scene` and give a `Result`. With a lane and a colon
/// before them they are of that lane only.
#[macro_export]
macro_rules! tests {
    ($lane:ident: $($name:ident),* $(,)?) => {
        /// The tests of this module, in the order in which they run.
        pub(crate) fn tests() -> Vec<$crate::harness::Test> {
            vec![$($crate::harness::Test::new(
                concat!(module_path!(), "::", stringify!($name)),
                |scene| Box::pin($name(scene)),
            )
            .only(&[$crate::harness::Lane::$lane])),*]
        }
    };
    ($($name:ident),* $(,)?) => {
        /// The tests of this module, in the order in which they run.
        pub(crate) fn tests() -> Vec<$crate::harness::Test> {
            vec![$($crate::harness::Test::new(
                concat!(module_path!(), "::", stringify!($name)),
                |scene| Box::pin($name(scene)),
            )),*]
        }
    };
}
