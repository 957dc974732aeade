//! The operations of an OpenAPI document: names, descriptions, parameters.

/// Parameters of requests that write.
pub(super) const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
/// Parameters of requests for lists.
pub(super) const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
/// Parameters of deletions.
const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

/// An operation on objects.
pub(super) struct Operation {
    /// The verb.
    pub(super) verb: &'static str,
    /// The method of HTTP.
    pub(super) method: &'static str,
    /// `x-kubernetes-action`.
    pub(super) action: &'static str,
    /// The first word of its name.
    pub(super) id: &'static str,
    /// The description: `{of}` is a subresource, `{a}` an article, `{kind}` the kind.
    pub(super) text: &'static str,
    /// Keys of its parameters.
    pub(super) parameters: &'static [&'static str],
    /// Codes of success.
    pub(super) codes: &'static [&'static str],
}

/// All of them.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        verb: "list",
        method: "get",
        action: "list",
        id: "list",
        text: "list or watch objects of kind {kind}",
        parameters: LIST,
        codes: &["200"],
    },
    Operation {
        verb: "watchlist",
        method: "get",
        action: "watchlist",
        id: "watch",
        text: "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list operation instead.",
        parameters: LIST,
        codes: &["200"],
    },
    Operation {
        verb: "watch",
        method: "get",
        action: "watch",
        id: "watch",
        text: "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter.",
        parameters: LIST,
        codes: &["200"],
    },
    Operation {
        verb: "create",
        method: "post",
        action: "post",
        id: "create",
        text: "create {of}{a}{kind}",
        parameters: WRITE,
        codes: &["200", "201", "202"],
    },
    Operation {
        verb: "deletecollection",
        method: "delete",
        action: "deletecollection",
        id: "delete",
        text: "delete collection of {kind}",
        parameters: DELETE,
        codes: &["200"],
    },
    Operation {
        verb: "get",
        method: "get",
        action: "get",
        id: "read",
        text: "read {of}the specified {kind}",
        parameters: &[],
        codes: &["200"],
    },
    Operation {
        verb: "update",
        method: "put",
        action: "put",
        id: "replace",
        text: "replace {of}the specified {kind}",
        parameters: WRITE,
        codes: &["200", "201"],
    },
    Operation {
        verb: "patch",
        method: "patch",
        action: "patch",
        id: "patch",
        text: "partially update {of}the specified {kind}",
        parameters: &["dryRun", "patch.fieldManager", "fieldValidation", "force"],
        codes: &["200", "201"],
    },
    Operation {
        verb: "delete",
        method: "delete",
        action: "delete",
        id: "delete",
        text: "delete {of}{a}{kind}",
        parameters: DELETE,
        codes: &["200", "202"],
    },
];
