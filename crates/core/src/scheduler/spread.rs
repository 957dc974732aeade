//! Spread constraints, as far as they hold without choosing among the clusters that fit.

use entourage_api::policy::{SpreadConstraint, SpreadField};

/// What the constraints say about taking every cluster that fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// They hold.
    Holds,
    /// They ask for more clusters than fit.
    TooFew(String),
    /// They ask for a choice that this version does not make.
    Unsupported(String),
}

/// Judges taking all `fitting` clusters. Only spreading by cluster is understood; a constraint with neither field nor
/// label means that too.
pub(super) fn judge(constraints: &[SpreadConstraint], fitting: usize) -> Spread {
    let fitting = i64::try_from(fitting).unwrap_or(i64::MAX);
    for (position, constraint) in constraints.iter().enumerate() {
        let path = format!("placement.spreadConstraints[{position}]");
        let is_by_cluster = matches!(constraint.spread_by_field, None | Some(SpreadField::Cluster));
        if !is_by_cluster || !constraint.spread_by_label.is_empty() {
            return Spread::Unsupported(format!(
                "{path}: only spreadByField: cluster is supported by this version: take the constraint out, and \
                 name the clusters in clusterAffinity"
            ));
        }
        if constraint.max_groups != 0 && constraint.max_groups < fitting {
            return Spread::Unsupported(format!(
                "{path}.maxGroups is {}, and {fitting} clusters fit; choosing among them is not supported by this \
                 version: raise maxGroups, or name the clusters in clusterAffinity",
                constraint.max_groups
            ));
        }
        if constraint.min_groups > fitting {
            return Spread::TooFew(format!(
                "{path}.minGroups asks for {} clusters and {fitting} fit: lower it, or let more fit",
                constraint.min_groups
            ));
        }
    }
    Spread::Holds
}
