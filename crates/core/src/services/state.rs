//! The table: what becomes of the EndpointSlice of the hub for one of a member.
//!
//! | the member | the slice of the hub |
//! |---|---|
//! | leaves, or is gone | deleted |
//! | does not export the Service any more: its list of ServiceExports proves that there is none, and none is to be there | deleted |
//! | lacks the ServiceExport that is scheduled to it, or has one that is not managed | as it is, while it is ready |
//! | is ready, and its slices are synced | as on the member; deleted if there is none |
//! | is ready, and its slices are not synced | as it is |
//! | has more endpoints or exports than are collected, and the slice is left out | its endpoints are used only where no others are ready |
//! | is not ready | its endpoints are used only where no others are ready |
//! | is not ready, and the ServiceExport is not scheduled to it any more | without endpoints, until it is there again or gone |
//!
//! A member from which the hub is cut off counts as ready: that its endpoints cannot be reached from others is not known.
//! A slice is created only in the third row: in all others, what is known is old, or nothing.

use crate::{fleet::exports::Export, observation::Endpoints};

/// The known state of the export of a Service by a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The Cluster is being deleted, or is gone.
    pub(super) leaves: bool,
    /// The export of the Service.
    pub(super) export: Export,
    /// It is the cluster that its Cluster stands for, and the condition Ready is True, or not because of the hub, which is cut off.
    pub(super) is_ready: bool,
    /// The ServiceExport is not scheduled to the member any more.
    pub(super) is_withdrawn: bool,
    /// The EndpointSlices of the Service on the member are synced.
    pub(super) is_synced: bool,
    /// The content of the slice of the member is not known: it exceeds a limit of the member.
    pub(super) is_left_out: bool,
}

/// The wanted state on the hub.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wanted {
    /// No slice.
    Absent,
    /// The slice as it is, or none.
    Kept,
    /// A slice with this content.
    As(Endpoints),
}

impl State {
    /// The state in words, for the reasons of a plan.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self { leaves: true, .. } => "the Cluster leaves",
            Self {
                export: Export::No, ..
            } => "it is not exported there any more",
            Self {
                is_ready: true,
                is_left_out: true,
                ..
            } => "the cluster has more endpoints or exports than are collected",
            Self { is_ready: true, .. } => "its endpoints there differ",
            Self {
                is_withdrawn: true, ..
            } => "the cluster is not ready, and the ServiceExport has left it",
            _ => "the cluster is not ready",
        }
    }
}

/// The wanted state on the hub: `collected` is the slice of the member as last observed, `held` that of the hub. Cost: O(endpoints).
pub(super) fn wanted(state: State, collected: Option<&Endpoints>, held: Option<&Endpoints>) -> Wanted {
    if state.leaves || state.export == Export::No {
        return Wanted::Absent;
    }
    let collected = collected.filter(|_| !state.is_left_out);
    if !state.is_ready || state.is_left_out {
        let Some(held) = held else {
            return Wanted::Kept;
        };
        let last = collected.unwrap_or(held);
        return Wanted::As(match state.is_withdrawn && !state.is_ready {
            true => last.emptied(),
            false => last.unready(),
        });
    }
    match collected {
        _ if !state.is_synced || state.export == Export::Unknown => Wanted::Kept,
        Some(collected) => Wanted::As(collected.clone()),
        None => Wanted::Absent,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(address: &str) -> Endpoints {
        Endpoints {
            address_type: "IPv4".into(),
            ports: vec![json!({"name": "", "port": 80, "protocol": "TCP"})],
            endpoints: vec![json!({"addresses": [address], "conditions": {"ready": true}})],
        }
    }

    const EXPORTED: State = State {
        leaves: false,
        export: Export::Yes,
        is_ready: true,
        is_withdrawn: false,
        is_synced: true,
        is_left_out: false,
    };

    #[test]
    fn absence_needs_proof_and_a_member_that_is_not_ready_keeps_its_endpoints_in_reserve() {
        let (new, old) = (slice("10.0.0.2"), slice("10.0.0.1"));
        let lost = State {
            is_synced: false,
            ..EXPORTED
        };
        let unready = State {
            is_ready: false,
            ..EXPORTED
        };
        let evicted = State {
            is_withdrawn: true,
            ..unready
        };
        let unknown = State {
            export: Export::Unknown,
            ..lost
        };
        let left_out = State {
            is_left_out: true,
            ..EXPORTED
        };
        let both = (Some(&new), Some(&old));
        let gone = (None, Some(&old));
        let first = (Some(&new), None);
        for (case, state, (collected, held), want) in [
            ("it is there", EXPORTED, both, Wanted::As(new.clone())),
            ("it is new", EXPORTED, first, Wanted::As(new.clone())),
            ("it is gone", EXPORTED, gone, Wanted::Absent),
            ("the watch is lost", lost, both, Wanted::Kept),
            ("the watch was never synced", lost, gone, Wanted::Kept),
            ("nothing is known of the member yet", unknown, gone, Wanted::Kept),
            ("it does not respond", unready, both, Wanted::As(new.unready())),
            (
                "it does not respond since a restart",
                State {
                    is_ready: false,
                    ..unknown
                },
                gone,
                Wanted::As(old.unready()),
            ),
            (
                "what an unready member has is not new",
                unready,
                first,
                Wanted::Kept,
            ),
            (
                "it grew beyond the limit: what the hub has of it is old",
                left_out,
                both,
                Wanted::As(old.unready()),
            ),
            ("it is beyond the limit", left_out, first, Wanted::Kept),
            (
                "it is beyond the limit, and its export leaves a member that responds",
                State {
                    is_withdrawn: true,
                    ..left_out
                },
                both,
                Wanted::As(old.unready()),
            ),
            ("it was evicted", evicted, both, Wanted::As(new.emptied())),
            (
                "it was evicted before a restart",
                State {
                    is_synced: false,
                    ..evicted
                },
                gone,
                Wanted::As(old.emptied()),
            ),
            (
                "an export leaves a member that responds",
                State {
                    is_withdrawn: true,
                    ..EXPORTED
                },
                both,
                Wanted::As(new.clone()),
            ),
            (
                "its export is gone",
                State {
                    export: Export::No,
                    ..lost
                },
                both,
                Wanted::Absent,
            ),
            (
                "its export is gone from a member that stopped",
                State {
                    export: Export::No,
                    ..unready
                },
                both,
                Wanted::Absent,
            ),
            (
                "the Cluster leaves",
                State {
                    leaves: true,
                    ..evicted
                },
                both,
                Wanted::Absent,
            ),
        ] {
            assert_eq!(wanted(state, collected, held), want, "{case}");
        }
    }

    /// All states, with and without a slice on either side.
    fn all() -> impl Iterator<Item = (State, bool, bool)> {
        (0..384).map(|at: u32| {
            let bit = |place: u32| at >> place & 1 == 1;
            let state = State {
                leaves: bit(0),
                export: [Export::Yes, Export::No, Export::Unknown][(at / 128) as usize],
                is_ready: bit(1),
                is_withdrawn: bit(2),
                is_synced: bit(3),
                is_left_out: bit(6),
            };
            (state, bit(4), bit(5))
        })
    }

    #[test]
    fn in_every_state_the_result_is_stable_and_nothing_disappears_without_proof() {
        let (new, old) = (slice("10.0.0.2"), slice("10.0.0.1"));
        for (state, is_collected, is_held) in all() {
            let (collected, held) = (is_collected.then_some(&new), is_held.then_some(&old));
            let result = wanted(state, collected, held);
            let proven = state.leaves
                || state.export == Export::No
                || (state.is_ready
                    && state.is_synced
                    && !state.is_left_out
                    && state.export == Export::Yes
                    && collected.is_none());
            assert_eq!(result == Wanted::Absent, proven, "{state:?}");
            if let Wanted::As(content) = result {
                // What is written is what is wanted next.
                assert_eq!(
                    wanted(state, collected, Some(&content)),
                    Wanted::As(content),
                    "{state:?}"
                );
                assert!(state.is_ready || is_held, "{state:?}: created from what is old");
            }
        }
    }
}
