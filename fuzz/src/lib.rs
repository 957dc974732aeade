//! Properties of the embedded API server under bad input: one set per target, each over cases made of raw bytes.
//!
//! The fuzz targets call [`TARGETS`] on nightly; `crates/apiserver/tests/bad_input.rs` includes this file and runs the same
//! laws over the seeds, and over random bytes, on stable. A case is written as JSON (seeds are), or made of bytes that say
//! no more than which choice was taken at each turn (what a fuzzer mutates).

#![allow(
    unreachable_pub,
    reason = "the file is a library here, and a private module where it is included"
)]

use arbitrary::Unstructured;
use serde::{Serialize, de::DeserializeOwned};

pub mod apply;
pub mod make;
pub mod patch;
pub mod request;
pub mod schema;
pub mod selector;

/// One input of a target.
pub trait Case: Serialize + DeserializeOwned {
    /// Makes a case of bytes; whatever the bytes are, it is a sensible one.
    fn make(u: &mut Unstructured<'_>) -> arbitrary::Result<Self>;

    /// Panics when a law does not hold.
    fn check(&self);
}

/// A fuzz target.
pub struct Target {
    /// Name of the binary, and of the folder of its seeds.
    pub name: &'static str,
    /// Checks the laws on what the bytes mean; `false`: they mean nothing.
    pub check: fn(&[u8]) -> bool,
    /// The case that the bytes mean, as a seed is written.
    pub show: fn(&[u8]) -> Option<String>,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target::<patch::Patch>("patch"),
    target::<apply::Apply>("apply"),
    target::<selector::Selector>("selector"),
    target::<schema::Custom>("schema"),
    target::<request::Requests>("request"),
];

const fn target<C: Case>(name: &'static str) -> Target {
    Target {
        name,
        check: |bytes| read::<C>(bytes).inspect(C::check).is_some(),
        show: |bytes| serde_json::to_string_pretty(&read::<C>(bytes)?).ok(),
    }
}

/// A case from JSON, when the bytes begin as JSON does, otherwise from choices.
pub fn read<C: Case>(bytes: &[u8]) -> Option<C> {
    if bytes.first() == Some(&b'{') {
        serde_json::from_slice(bytes).ok()
    } else {
        C::make(&mut Unstructured::new(bytes)).ok()
    }
}

/// Checks one input of a target; `false`: it means nothing.
pub fn check(name: &str, input: &[u8]) -> bool {
    TARGETS
        .iter()
        .find(|target| target.name == name)
        .is_some_and(|target| (target.check)(input))
}
