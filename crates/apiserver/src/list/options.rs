//! The parameters of lists and watches, read and checked as the server does: syntax, then what goes together, then fields.

use crate::{
    call::Call,
    selector::Selection,
    status::{About, FieldError, Result, Status},
    store::Revision,
};

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Matching {
    /// Not given.
    #[default]
    Unset,
    /// The state of that revision.
    Exact,
    /// The list at the revision or a later one.
    NotOlderThan,
}

/// The parameters of a list or watch.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) selection: Selection,
    /// Objects of a page, 0: all.
    pub(crate) limit: usize,
    /// `timeoutSeconds`.
    pub(crate) timeout: Option<i64>,
    /// `resourceVersion` as sent.
    pub(crate) revision: String,
    pub(crate) matching: Matching,
    /// `continue` as sent.
    pub(crate) token: String,
    /// `sendInitialEvents`.
    pub(crate) initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub(crate) bookmarks: bool,
}

impl Options {
    /// Reads the parameters of a list, or of a watch.
    pub(crate) fn of(call: &Call, watch: bool) -> Result<Self> {
        let query = &call.query;
        let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
        let timeout = query.get("timeoutSeconds").map(whole).transpose()?;
        let limit = query.get("limit").map(whole).transpose()?.unwrap_or_default();
        let selection = Selection::read(query.get("labelSelector"), query.get("fieldSelector"))?;
        let initial_events = query
            .get("sendInitialEvents")
            .map(|_| query.flag("sendInitialEvents"));
        let options = Self {
            selection: Selection::default(),
            limit: usize::try_from(limit).unwrap_or_default(),
            timeout,
            revision: text("resourceVersion"),
            matching: match query.get("resourceVersionMatch") {
                Some("Exact") => Matching::Exact,
                Some("NotOlderThan") => Matching::NotOlderThan,
                _ => Matching::Unset,
            },
            token: text("continue"),
            initial_events,
            bookmarks: query.flag("allowWatchBookmarks"),
        };
        let matching = query.get("resourceVersionMatch").unwrap_or_default();
        let errors = if watch {
            options.wrong_for_watch(matching)
        } else {
            options.wrong_for_list(matching)
        };
        if !errors.is_empty() {
            let about = About {
                group: "meta.k8s.io",
                resource: "ListOptions",
                name: "",
            };
            return Err(Status::invalid(about, &errors));
        }
        Ok(Self {
            selection: selection.known_to(&call.resource)?,
            ..options
        })
    }

    fn wrong_for_list(&self, matching: &str) -> Vec<FieldError> {
        let exact_zero = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        let mut errors = Vec::new();
        if !matching.is_empty() {
            if self.revision.is_empty() {
                errors.push(forbidden(
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.token.is_empty() {
                errors.push(forbidden(WITH_CONTINUE));
            }
            if self.matching == Matching::Unset {
                let possible = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported(MATCH, matching, &possible));
            }
            if self.matching == Matching::Exact && self.revision == "0" {
                errors.push(forbidden(exact_zero));
            }
        }
        if self.initial_events.is_some() {
            let why = "sendInitialEvents is forbidden for list";
            errors.push(FieldError::forbidden("sendInitialEvents", why));
        }
        errors
    }

    fn wrong_for_watch(&self, matching: &str) -> Vec<FieldError> {
        let newer = self.matching == Matching::NotOlderThan;
        let mut errors = Vec::new();
        if self.initial_events.is_some() && !newer {
            errors.push(forbidden(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if !matching.is_empty() {
            if self.initial_events.is_none() {
                errors.push(forbidden(
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if !newer {
                errors.push(FieldError::not_supported(MATCH, matching, &["NotOlderThan"]));
            }
            if !self.token.is_empty() {
                errors.push(forbidden(WITH_CONTINUE));
            }
        }
        errors
    }
}

const MATCH: &str = "resourceVersionMatch";
const WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

fn forbidden(why: &str) -> FieldError {
    FieldError::forbidden(MATCH, why)
}

/// A whole number, or the 400 with the reason.
fn whole(text: &str) -> Result<i64> {
    text.parse()
        .map_err(|error| Status::bad_request(not_parsed("ParseInt", text, &error)))
}

/// A resourceVersion; empty is 0. The text of the error is the server's; its code differs from place to place.
pub(crate) fn revision_of(text: &str) -> std::result::Result<Revision, String> {
    if text.is_empty() {
        return Ok(0);
    }
    // Rust takes a sign, Go does not.
    let parsed = if text.starts_with('+') { "" } else { text }.parse();
    parsed.map_err(|error| {
        let why = not_parsed("ParseUint", text, &error);
        FieldError::invalid("resourceVersion", text, why).to_string()
    })
}

fn not_parsed(function: &str, text: &str, error: &std::num::ParseIntError) -> String {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    let why = match error.kind() {
        PosOverflow | NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    format!("strconv.{function}: parsing {text:?}: {why}")
}
