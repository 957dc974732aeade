//! The estimated cost of a rule: loop steps and characters read, at the largest values that the schema allows.
//!
//! A lower bound of a kube-apiserver's estimate, so that every rule that it accepts is accepted here too.

use std::ops::Add;

use super::types::Ty;

/// The maximum cost of one rule.
pub(crate) const RULE: u64 = 10_000_000;

/// The maximum cost of all rules of a schema together.
pub(crate) const SCHEMA: u64 = 100_000_000;

/// A number of steps; the largest stands for all beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost(pub(crate) u64);

impl Cost {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const ONE: Self = Self(1);

    pub(super) fn of(steps: u64) -> Self {
        Self(steps)
    }

    /// Returns the cost of so many repetitions.
    pub(crate) fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// The cost of a comparison beyond the call: the shorter of two texts is read.
    pub(super) fn comparing(name: &str, types: &[Ty]) -> Self {
        match (name, types) {
            ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_", [a @ Ty::String(_), b @ Ty::String(_)]) => {
                Self(a.size().min(b.size()) / 10)
            }
            ("@in", [_, list @ Ty::List(..)]) => Self(list.size()),
            _ => Self::ZERO,
        }
    }

    /// The cost of functions of texts and lists.
    pub(super) fn reading(name: &str, types: &[Ty]) -> Self {
        let size = |at: usize| types.get(at).map_or(1, Ty::size);
        match name {
            "contains" => Self((size(0) / 10).max(1).saturating_mul((size(1) / 10).max(1))),
            "startsWith" | "endsWith" => Self(size(1) / 10),
            "matches" | "find" | "findAll" => {
                Self((size(0) / 10).max(1).saturating_mul((size(1) / 4).max(1)))
            }
            "isSorted" | "sum" | "min" | "max" | "indexOf" | "lastIndexOf" => match types.first() {
                Some(Ty::List(_, most)) => Self(*most),
                _ => Self(size(0) / 10),
            },
            "lowerAscii" | "upperAscii" | "split" | "replace" | "substring" | "trim" | "join" => {
                Self(size(0) / 10)
            }
            _ => Self::ZERO,
        }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// The message about a cost beyond its limit.
pub(crate) fn exceeds(what: &str, cost: Cost, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a factor for people")]
    let factor = cost.0 as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
