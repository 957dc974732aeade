//! The labels of the metrics, and the values that are limited to a few.

use prometheus_client::encoding::EncodeLabelSet;

/// The value of the label `code` of a request without a response (connection, deadline).
pub const NO_ANSWER: &str = "none";

/// The verb of a request. Its name is the value of the label `verb`, as in Kubernetes' RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object is read.
    Get,
    /// A collection is read.
    List,
    /// A watch is opened; its duration is not a latency and is not recorded.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 7] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
    ];

    /// The name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// The outcome of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// There was nothing to do.
    Empty,
    /// Every change was executed.
    Done,
    /// A change met an object that had changed; the key is planned again.
    Conflict,
    /// A change failed; the key is retried later.
    Failed,
}

impl Outcome {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Done => "done",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
        }
    }
}

/// The outcome of a question to a hook or an estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// The hook responded.
    Answered,
    /// No call was made: the response was cached.
    Known,
    /// No call was made: the hook is in back-off, because it did not respond before.
    LeftAlone,
    /// The hook did not respond.
    NoResponse,
    /// The response is invalid.
    Wrong,
    /// No call was made: there were too many others.
    NoTurn,
}

impl Asked {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Known => "known",
            Self::LeftAlone => "left_alone",
            Self::NoResponse => "no_response",
            Self::Wrong => "wrong",
            Self::NoTurn => "no_turn",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) server: String,
    pub(super) verb: &'static str,
    pub(super) resource: String,
    pub(super) code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LatencyLabels {
    pub(super) server: String,
    pub(super) verb: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PlanLabels {
    pub(super) controller: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ServerLabels {
    pub(super) server: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DistributionLabels {
    pub(super) distribution: String,
    pub(super) state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HookLabels {
    pub(super) hook: String,
    pub(super) operation: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct EstimatorLabels {
    pub(super) member: String,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct EvictionLabels {
    pub(super) member: String,
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HookName {
    pub(super) hook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct NameLabels {
    pub(super) distribution: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ProxyLabels {
    pub(super) target: &'static str,
    pub(super) code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TargetLabels {
    pub(super) target: &'static str,
}

/// The labels of a series of one server.
pub(super) fn of(server: &str) -> ServerLabels {
    ServerLabels {
        server: server.to_owned(),
    }
}
