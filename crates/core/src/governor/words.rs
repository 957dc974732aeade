//! The messages of a Cluster about deletions that wait.

use entourage_api::keys::annotation;

use super::LEAST;
use crate::{
    memory::deletion_pauses::{Cause, Pause, pause_name},
    object::{Gvk, Str},
};

/// The maximum number of missing lists named.
const NAMED: usize = 3;

/// The lists of the hub that are missing.
pub(super) fn lacks(lacking: &[Gvk], name: &Str) -> String {
    let named: Vec<String> = lacking.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match lacking.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "No copy is deleted from {name} while {}{more} cannot be listed on the hub; this ends by itself, and there is nothing \
         to release. The log of the controllers says why they cannot be listed.",
        named.join(", ")
    )
}

pub(super) fn message(name: &Str, pause: &Pause) -> String {
    let Pause { deleted, limit, .. } = pause;
    let cause = match pause.cause {
        Cause::Unexplained => format!(
            "{deleted} copies were deleted from {name} within a minute although no edit on the hub that these controllers saw \
             explains it (at most {limit}: a tenth of the member's copies, and {LEAST} at least)"
        ),
        Cause::HubLooksEmpty => format!(
            "the hub looks empty: of the more than {LEAST} objects with copies on {name}, none exists on the hub \
             any more, and no \
             edit that these controllers saw explains it"
        ),
        Cause::HubRolledBack => format!(
            "the hub was restored to an earlier state while these controllers ran, and copies on {name} would be deleted because \
             of it"
        ),
        Cause::Budget => format!(
            "{deleted} copies were deleted from {name} within a minute, as many as --removal-budget allows ({limit})"
        ),
    };
    let waiting = match pause.waiting {
        None => "Further deletions wait".to_owned(),
        Some(1) => "1 deletion waits".to_owned(),
        Some(count) => format!("{count} deletions wait"),
    };
    let limited = match pause.cause {
        Cause::Budget => "",
        _ => " that no edit explains",
    };
    format!(
        "Deletions{limited} are paused on {name}: {cause}. {waiting}. Check that the objects of the hub are \
         complete, then release them \
         with `entourage resume {name}`, or with the annotation {}={}.",
        annotation::RESUME_REMOVALS,
        pause_name(pause.since)
    )
}
