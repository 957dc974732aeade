//! Webhooks and admission policies.

use super::{
    Printer,
    column::{AGE, Column, NAME, number, text},
    view::{UNSET, View},
};

const GROUP: &str = "admissionregistration.k8s.io";

const WEBHOOKS: &[Column] = &[
    NAME,
    number(
        "Webhooks",
        "Webhooks indicates the number of webhooks configured in this object",
    ),
    AGE,
];

const PARAMETERS: Column = text(
    "ParamKind",
    "ParamKind specifies the kind of resources used to parameterize this policy",
);

const BINDING: &[Column] = &[
    NAME,
    text(
        "PolicyName",
        "PolicyName indicates the policy definition which the policy binding binded to",
    ),
    text(
        "ParamRef",
        "ParamRef indicates the param resource which sets the configration param",
    ),
    AGE,
];

pub(super) const PRINTERS: &[Printer] = &[
    webhooks("MutatingWebhookConfiguration"),
    webhooks("ValidatingWebhookConfiguration"),
    Printer {
        group: GROUP,
        kind: "ValidatingAdmissionPolicy",
        columns: &[
            NAME,
            number(
                "Validations",
                "Validations indicates the number of validation rules defined in this configuration",
            ),
            PARAMETERS,
            AGE,
        ],
        cells: |policy| {
            let rules = policy.count("spec.validations");
            vec![
                policy.name(),
                rules.into(),
                parameters(policy).into(),
                policy.age(),
            ]
        },
    },
    Printer {
        group: GROUP,
        kind: "MutatingAdmissionPolicy",
        columns: &[
            NAME,
            number(
                "Mutations",
                "Mutation indicates the number of mutations rules defined in this configuration",
            ),
            PARAMETERS,
            AGE,
        ],
        cells: |policy| {
            let rules = policy.count("spec.mutations");
            vec![
                policy.name(),
                rules.into(),
                parameters(policy).into(),
                policy.age(),
            ]
        },
    },
    binding("ValidatingAdmissionPolicyBinding"),
    binding("MutatingAdmissionPolicyBinding"),
];

const fn webhooks(kind: &'static str) -> Printer {
    Printer {
        group: GROUP,
        kind,
        columns: WEBHOOKS,
        cells: |configuration| {
            let count = configuration.count("webhooks");
            vec![configuration.name(), count.into(), configuration.age()]
        },
    }
}

const fn binding(kind: &'static str) -> Printer {
    Printer {
        group: GROUP,
        kind,
        columns: BINDING,
        cells: |binding| {
            let text = |name: &str| binding.text(&format!("spec.paramRef.{name}"));
            let parameter = match (text("namespace"), text("name")) {
                _ if binding.at("spec.paramRef").is_none() => UNSET.to_owned(),
                ("", "") => binding.selector_text("spec.paramRef.selector"),
                ("", name) => format!("*/{name}"),
                (namespace, name) => format!("{namespace}/{name}"),
            };
            let policy = binding.text("spec.policyName");
            vec![binding.name(), policy.into(), parameter.into(), binding.age()]
        },
    }
}

fn parameters(policy: &View<'_>) -> String {
    match policy.at("spec.paramKind") {
        Some(_) => format!(
            "{}/{}",
            policy.text("spec.paramKind.apiVersion"),
            policy.text("spec.paramKind.kind")
        ),
        None => UNSET.to_owned(),
    }
}
