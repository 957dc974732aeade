//! TokenRequests, sent to `token` of ServiceAccounts.

use crate::kinds::kind_def::KindDef;

pub(crate) static DEF: KindDef = KindDef {
    // Errors name the account.
    plural: "serviceaccounts",
    ..KindDef::of::<k8s_openapi::api::authentication::v1::TokenRequest>()
};
