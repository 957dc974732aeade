//! The outcome of a question to the estimator of a member.

/// The outcome of a question to the estimator of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EstimatorAnswer {
    /// Its nodes have room for so many replicas.
    Room(i64),
    /// It did not answer, or it is left alone because it did not before.
    Failed,
    /// It was not asked: there were too many questions. That says nothing of its room.
    NotAsked,
}
