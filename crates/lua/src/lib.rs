//! Runs Karmada's interpreter scripts in a sandbox: Lua 5.1, a fresh environment for each call, with limits that a script can
//! neither catch nor evade inside a library function.
//!
//! ```text
//! Script::compile ──► Script::answer(Question) ──► Answer
//!                        │ environment: sandbox ◄── prelude.lua, pattern, kube
//!                        │ JSON ──► tables: json
//!                        │ the script's function, watched by: budget
//!                        └ tables ──► JSON: json, repair ──► typed: shape
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`script`] | a script, compiled once, and its answers |
//! | [`limits`] | the limits of a call |
//! | [`quarantine`] | the objects that a script is not run for again |
//! | [`error`] | the errors, without content of the object |

mod budget;
mod chunks;
pub mod engine;
pub mod error;
mod functions;
mod json;
mod kube;
pub mod limits;
mod pattern;
pub mod quarantine;
mod repair;
mod run_error;
mod sandbox;
pub mod script;
mod shape;

pub use engine::Lua;
pub use error::ScriptError;
pub use limits::Limits;
pub use quarantine::Quarantine;
pub use script::Script;
