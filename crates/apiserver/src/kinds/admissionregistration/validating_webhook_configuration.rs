//! ValidatingWebhookConfigurations.

use super::{WEBHOOKS, webhook_defaults, webhooks};
use crate::{kinds::kind_def::KindDef, object::tree::each};

pub(super) static DEF: KindDef = KindDef {
    categories: &["api-extensions"],
    has_generation: true,
    defaults: |configuration| each(configuration, "webhooks", webhook_defaults),
    errors: |configuration, errors| webhooks::webhooks(configuration, false, errors),
    printer: WEBHOOKS,
    ..KindDef::of::<k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration>()
};
