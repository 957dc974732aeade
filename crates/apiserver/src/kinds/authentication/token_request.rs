//! TokenRequests, sent to `token` of ServiceAccounts.

use k8s_openapi::api::authentication::v1::TokenRequest;

use crate::kinds::kind_def::KindDef;

/// TokenRequest.
pub(crate) static DEF: KindDef = KindDef {
    // Errors name the account.
    plural: "serviceaccounts",
    ..KindDef::of::<TokenRequest>()
};
