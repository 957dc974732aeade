//! ComponentStatuses: there are none, the kind is only still served.

use super::kind::Kind;

/// ComponentStatus.
pub(super) static COMPONENT_STATUS: Kind = Kind {
    kind: "ComponentStatus",
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    ..Kind::PLAIN
};
