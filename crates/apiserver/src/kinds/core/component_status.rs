//! ComponentStatuses: nothing of them is stored.

use crate::{
    kinds::kind_def::KindDef,
    printer::{NAME, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    short: &["cs"],
    verbs: &["get", "list"],
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    printer: Printer::new(
        &[
            NAME,
            words("Status", "Status of the component conditions"),
            words("Message", "Message of the component conditions"),
            words("Error", "Error of the component conditions"),
        ],
        |component| {
            let conditions = component.list("conditions");
            let healthy = conditions.iter().find(|one| one["type"] == "Healthy");
            let word = |name: &str| healthy.and_then(|one| one[name].as_str()).unwrap_or_default();
            let status = match word("status") {
                "" => "Unknown",
                "True" => "Healthy",
                _ => "Unhealthy",
            };
            vec![
                component.name(),
                status.into(),
                word("message").into(),
                word("error").into(),
            ]
        },
    ),
    ..KindDef::of::<k8s_openapi::api::core::v1::ComponentStatus>()
};
