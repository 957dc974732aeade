//! The limits of one call of a script.

use std::time::Duration;

/// The limits of one call. A script that reaches one is stopped; it cannot catch that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time, including the conversion of the objects and the result. Source: Karmada reference 3.3 (1 s).
    pub time: Duration,
    /// Instructions of the virtual machine: the same on every machine, so that a script that is far too slow on one is so on
    /// all. About half a second's worth.
    pub instructions: u64,
    /// Bytes of the state: the objects, the values made of them, and garbage not yet collected.
    pub memory: usize,
    /// Bytes of one string made by a library function.
    pub string: usize,
    /// Bytes of a result, and of a table passed to a function of `kube`: its strings, and 16 for each value. Several times the
    /// limit of an API server.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self::STANDARD
    }
}

impl Limits {
    /// The limits of the control plane.
    pub const STANDARD: Self = Self {
        time: Duration::from_secs(1),
        instructions: 200_000_000,
        memory: 64 << 20,
        string: 16 << 20,
        answer: 8 << 20,
    };
}
