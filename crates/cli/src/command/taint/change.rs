//! Changes of a Cluster's taints: parsed from the command line, and computed for one Cluster. No I/O.

use std::fmt;

use entourage_core::object::Time;
use serde_json::{Value, json};

use crate::args;

/// The effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Prevents scheduling of new bindings.
    NoSchedule,
    /// Stored, without an effect.
    PreferNoSchedule,
    /// Prevents scheduling, and evicts scheduled bindings.
    NoExecute,
}

impl Effect {
    const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// Its name in a taint.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A change of one taint; a taint of a Cluster is identified by its key and its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The taint exists, with this value.
    Set {
        /// Its key.
        key: String,
        /// Its value; may be empty.
        value: String,
        /// Its effect.
        effect: Effect,
    },
    /// The taint does not exist.
    Remove {
        /// Its key.
        key: String,
        /// Its effect; `None`: any effect.
        effect: Option<Effect>,
    },
}

impl Change {
    /// Sets the taint without a value.
    #[must_use]
    pub fn set(key: &str, effect: Effect) -> Self {
        Self::Set {
            key: key.to_owned(),
            value: String::new(),
            effect,
        }
    }

    /// Removes the taint.
    #[must_use]
    pub fn remove(key: &str, effect: Effect) -> Self {
        Self::Remove {
            key: key.to_owned(),
            effect: Some(effect),
        }
    }

    /// The key of the taint.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Set { key, .. } | Self::Remove { key, .. } => key,
        }
    }

    fn effect(&self) -> Option<Effect> {
        match self {
            Self::Set { effect, .. } => Some(*effect),
            Self::Remove { effect, .. } => *effect,
        }
    }

    /// True if both apply to the same taint, or may do so.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_same_effect = match (self.effect(), other.effect()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.key() == other.key() && is_same_effect
    }

    /// True if it applies to this taint of a Cluster.
    fn is_of(&self, taint: &Value) -> bool {
        let effect = self.effect();
        taint["key"] == self.key() && effect.is_none_or(|effect| taint["effect"] == effect.name())
    }

    /// The taint in kubectl's form: without its value.
    fn taint(&self) -> String {
        match self.effect() {
            Some(effect) => format!("{}:{}", self.key(), effect.name()),
            None => self.key().to_owned(),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { key, value, effect } if !value.is_empty() => {
                write!(f, "{key}={value}:{}", effect.name())
            }
            Self::Set { .. } => write!(f, "{}", self.taint()),
            Self::Remove { .. } => write!(f, "{}-", self.taint()),
        }
    }
}

/// An argument of `entourage taint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The name of a Cluster.
    Cluster(String),
    /// A change of a taint.
    Change(Change),
}

/// Parses an argument: a text that contains `=` or `:` or ends in `-` is a change, as in kubectl, any other is a Cluster.
///
/// # Errors
/// A sentence for the user.
pub fn word(text: &str) -> Result<Word, String> {
    let change = match text.strip_suffix('-') {
        Some(taint) => {
            let (key, _, effect) = parts(taint)?;
            let key = key.to_owned();
            Change::Remove { key, effect }
        }
        None if text.contains(['=', ':']) => {
            let (key, value, effect) = parts(text)?;
            let (key, value) = (key.to_owned(), value.to_owned());
            let effect = effect
                .ok_or_else(|| format!("it has no effect; write {text}:NoSchedule or another effect"))?;
            Change::Set { key, value, effect }
        }
        None => return args::cluster_name(text).map(Word::Cluster),
    };
    Ok(Word::Change(change))
}

/// Key, value and effect of `KEY[=VALUE][:EFFECT]`, each validated.
fn parts(text: &str) -> Result<(&str, &str, Option<Effect>), String> {
    let (left, effect) = match text.split_once(':') {
        Some((left, effect)) => (left, Some(self::effect(effect)?)),
        None => (text, None),
    };
    let (key, value) = left.split_once('=').unwrap_or((left, ""));
    args::label_key(key)?;
    args::label_value(value)?;
    Ok((key, value, effect))
}

fn effect(text: &str) -> Result<Effect, String> {
    let known = Effect::ALL.into_iter().find(|effect| effect.name() == text);
    known.ok_or_else(|| {
        let names = Effect::ALL.map(Effect::name).join(", ");
        format!("{text:?} is not an effect; the effects are {names}")
    })
}

/// The changes that count as errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Another value of an existing taint, and the removal of a taint that does not exist.
    Strict,
    /// The removal of a taint that does not exist.
    Overwrite,
    /// None: an existing taint keeps its value.
    Idempotent,
}

/// The resulting taints of one Cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// All resulting taints.
    pub taints: Vec<Value>,
    /// Keys of the new taints, and of those with another value.
    pub set: Vec<String>,
    /// Keys of the removed taints.
    pub removed: Vec<String>,
}

impl Outcome {
    /// True if there is nothing to write.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    /// True if a taint with this key is new or has another value.
    #[must_use]
    pub fn has_set(&self, key: &str) -> bool {
        self.set.iter().any(|each| each == key)
    }
}

/// Computes the taints of the Cluster called `cluster`. Taints keep their order and unknown fields; new ones come last. A
/// NoExecute taint has its time: tolerations with seconds are counted from there.
///
/// # Errors
/// All errors, one sentence each.
pub fn decide(
    cluster: &str,
    taints: &[Value],
    changes: &[Change],
    rule: Rule,
    now: Time,
) -> Result<Outcome, Vec<String>> {
    let (mut set, mut removed, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut taints = taints.to_vec();
    for change in changes {
        let known = taints.iter_mut().find(|taint| change.is_of(taint));
        match (change, known) {
            (Change::Set { key, value, effect }, None) => {
                let mut taint = json!({"key": key, "effect": effect.name()});
                give(&mut taint, value, *effect, now);
                taints.push(taint);
                set.push(key.clone());
            }
            (Change::Set { key, value, effect }, Some(taint)) => {
                if taint["value"].as_str().unwrap_or_default() == value || rule == Rule::Idempotent {
                    continue;
                }
                if rule == Rule::Strict {
                    let taint = change.taint();
                    wrong.push(format!(
                        "cluster {cluster:?} already has the taint {taint} with another value; --overwrite changes it"
                    ));
                    continue;
                }
                give(taint, value, *effect, now);
                set.push(key.clone());
            }
            (Change::Remove { .. }, None) => {
                if rule != Rule::Idempotent {
                    let taint = change.taint();
                    wrong.push(format!("taint {taint:?} not found on cluster {cluster:?}"));
                }
            }
            (Change::Remove { key, .. }, Some(_)) => {
                taints.retain(|taint| !change.is_of(taint));
                removed.push(key.clone());
            }
        }
    }
    if wrong.is_empty() {
        Ok(Outcome { taints, set, removed })
    } else {
        Err(wrong)
    }
}

/// Sets the value of a taint, and the time if it evicts.
fn give(taint: &mut Value, value: &str, effect: Effect, now: Time) {
    if let (true, Some(fields)) = (value.is_empty(), taint.as_object_mut()) {
        fields.remove("value");
    } else {
        taint["value"] = json!(value);
    }
    if effect == Effect::NoExecute {
        taint["timeAdded"] = json!(now.to_k8s());
    }
}
