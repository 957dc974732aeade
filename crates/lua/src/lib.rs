//! Runs Karmada's interpreter scripts in a sandbox: Lua 5.1, a fresh state for each call, with limits that a script
//! can neither catch nor sit out inside a library function.
//!
//! ```text
//! Script::compile ──► Script::answer(Question) ──► Answer
//!                        │ a new state: sandbox ◄── prelude.lua, pattern, kube
//!                        │ JSON ──► tables: json
//!                        │ the script's function, watched by: budget
//!                        └ tables ──► JSON: json, repair ──► typed: shape
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`script`] | a script, compiled once, and what it answers |
//! | [`limits`] | what a call may use up |
//! | [`quarantine`] | which object a script is not tried on again |
//! | [`error`] | what went wrong, without anything of the object |

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
