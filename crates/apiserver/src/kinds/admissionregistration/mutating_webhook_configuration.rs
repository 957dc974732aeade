//! MutatingWebhookConfigurations.

use super::{WEBHOOKS, webhook_defaults, webhooks};
use crate::{
    kinds::kind_def::KindDef,
    object::tree::{default, each},
};

pub(super) static DEF: KindDef = KindDef {
    categories: &["api-extensions"],
    has_generation: true,
    defaults: |configuration| {
        each(configuration, "webhooks", |webhook| {
            webhook_defaults(webhook);
            default(webhook, "reinvocationPolicy", "Never");
        });
    },
    errors: |configuration, errors| webhooks::webhooks(configuration, true, errors),
    printer: WEBHOOKS,
    ..KindDef::of::<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration>()
};
