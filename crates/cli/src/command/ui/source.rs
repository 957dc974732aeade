//! The kinds that are watched, and the summary of each of their objects.
//!
//! Pure. One more kind on the page is one more row here.

use entourage_core::scope;
use serde_json::{Value, json};

use super::{
    board::{Board, Row},
    journal::{self, Change},
    model::{self, Distribution, Member, Policy, Workload},
};

/// One watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The name on the page.
    pub(super) name: &'static str,
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) form: Form,
}

/// The parts of the objects that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The whole object.
    Whole,
    /// The metadata alone: nothing else is requested.
    Metadata,
    /// Events of the control plane.
    Events,
}

/// The watches.
pub(super) const SOURCES: &[Source] = &[
    Source {
        name: "clusters",
        api_version: "cluster.karmada.io/v1alpha1",
        kind: "Cluster",
        form: Form::Whole,
    },
    Source {
        name: "resourcebindings",
        api_version: scope::BINDING_API,
        kind: scope::BINDING.kind,
        form: Form::Whole,
    },
    Source {
        name: "clusterresourcebindings",
        api_version: scope::BINDING_API,
        kind: scope::CLUSTER_BINDING.kind,
        form: Form::Whole,
    },
    Source {
        name: "propagationpolicies",
        api_version: scope::POLICY_API,
        kind: scope::POLICY.kind,
        form: Form::Metadata,
    },
    Source {
        name: "clusterpropagationpolicies",
        api_version: scope::POLICY_API,
        kind: scope::CLUSTER_POLICY.kind,
        form: Form::Metadata,
    },
    Source {
        name: "resourcedistributions",
        api_version: "apps.kruise.io/v1alpha1",
        kind: "ResourceDistribution",
        form: Form::Whole,
    },
    Source {
        name: "events",
        api_version: "v1",
        kind: "Event",
        form: Form::Events,
    },
];

/// The part of an object that the page has.
pub(super) struct Summary {
    pub(super) key: String,
    row: Option<Row>,
    changes: Vec<Change>,
}

impl Source {
    /// The summary of an object, whose kind a list leaves out.
    pub(super) fn summary(&self, object: &mut Value) -> Summary {
        object["kind"] = json!(self.kind);
        let object = &*object;
        let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Summary {
            key: self.key(meta("namespace"), meta("name")),
            row: self.row(object),
            changes: self.changes(object),
        }
    }

    /// Adds a summary to the board.
    pub(super) fn show(&self, summary: Summary, board: &mut Board) {
        if let Some(row) = summary.row {
            board.observe(self.name, &summary.key, row);
        }
        board.note(summary.changes);
    }

    fn row(&self, object: &Value) -> Option<Row> {
        Some(match self.kind {
            "Cluster" => Row::Member(Member::of(object)),
            "ResourceDistribution" => Row::Distribution(Distribution::of(object)),
            "Event" => return None,
            _ if self.form == Form::Metadata => Row::Policy(Policy::of(object)),
            _ => Row::Workload(Workload::of(object)),
        })
    }

    fn changes(&self, object: &Value) -> Vec<Change> {
        match (self.form, self.kind) {
            (Form::Events, _) => journal::of_event(object).into_iter().collect(),
            (Form::Metadata, _) | (_, "ResourceDistribution") => Vec::new(),
            (Form::Whole, _) => journal::of_object(object),
        }
    }

    /// The key of the row of an object.
    pub(super) fn key(&self, namespace: &str, name: &str) -> String {
        match (self.kind, self.form) {
            ("Cluster", _) => format!("m/{name}"),
            ("ResourceDistribution", _) => format!("d/{name}"),
            ("Event", _) => format!("e/{namespace}/{name}"),
            (_, Form::Metadata) => format!("p/{namespace}/{name}"),
            _ => model::key(namespace, name),
        }
    }

    /// The field selector.
    pub(super) fn fields(&self) -> Option<&'static str> {
        (self.form == Form::Events).then_some("reportingComponent=entourage")
    }
}

#[cfg(test)]
mod golden;
