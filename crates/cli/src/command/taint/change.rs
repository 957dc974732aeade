//! What becomes of a Cluster's taints: read from the command line, and decided for one Cluster. Nothing here asks a server.

use std::fmt;

use entourage_core::object::Time;
use serde_json::{Value, json};

use crate::args;

/// The effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Keeps away what is not there yet.
    NoSchedule,
    /// Stored, without an effect.
    PreferNoSchedule,
    /// Keeps away, and evicts what is there.
    NoExecute,
}

impl Effect {
    const ALL: [Self; 3] = [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// As it is written in a taint.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A change of one taint; what identifies a taint of a Cluster is its key together with its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The taint is there, with this value.
    Set {
        /// Its key.
        key: String,
        /// Its value; may be empty.
        value: String,
        /// Its effect.
        effect: Effect,
    },
    /// The taint is not there.
    Remove {
        /// Its key.
        key: String,
        /// Its effect; `None`: whatever the effect.
        effect: Option<Effect>,
    },
}

impl Change {
    /// The taint without a value.
    #[must_use]
    pub fn set(key: &str, effect: Effect) -> Self {
        Self::Set {
            key: key.to_owned(),
            value: String::new(),
            effect,
        }
    }

    /// No such taint.
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

    /// Whether both are about the same taint, or may be.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_same_effect = match (self.effect(), other.effect()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        self.key() == other.key() && is_same_effect
    }

    /// Whether it is about this taint of a Cluster.
    fn is_of(&self, taint: &Value) -> bool {
        let effect = self.effect();
        taint["key"] == self.key() && effect.is_none_or(|effect| taint["effect"] == effect.name())
    }

    /// The taint as kubectl names it: without its value.
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

/// Reads an argument: what contains `=` or `:` or ends in `-` is about a taint, as in kubectl, anything else names a Cluster.
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

/// Key, value and effect of `KEY[=VALUE][:EFFECT]`, each of them valid.
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

/// What counts as wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Another value of a taint that is there, and the removal of one that is not.
    Strict,
    /// The removal of a taint that is not there.
    Overwrite,
    /// Nothing: a taint that is there keeps its value.
    Idempotent,
}

/// What becomes of the taints of one Cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// All taints as they are then.
    pub taints: Vec<Value>,
    /// Keys of those that are new or have another value.
    pub set: Vec<String>,
    /// Keys of those that are gone.
    pub removed: Vec<String>,
}

impl Outcome {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    /// Whether a taint with this key is new or has another value.
    #[must_use]
    pub fn has_set(&self, key: &str) -> bool {
        self.set.iter().any(|each| each == key)
    }
}

/// Decides what becomes of the taints of the Cluster called `cluster`. Taints keep their order and fields that are not known
/// here; new ones come last. One that evicts says since when: tolerations with seconds are counted from there.
///
/// # Errors
/// Everything that is wrong, one sentence each.
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

/// Gives a taint its value, and the time if it evicts.
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
