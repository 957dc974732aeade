//! CSIStorageCapacities.

use serde_json::Value;

use crate::{
    kinds::{amounts::nano, kind_def::KindDef},
    names,
    object::tree::{IMMUTABLE, object, same, text},
};

pub(super) static DEF: KindDef = KindDef {
    errors: |capacity, errors| {
        if let Some(topology) = object(capacity, "nodeTopology") {
            errors.extend(names::label_selector(topology, "nodeTopology"));
        }
        let class = text(capacity, "storageClassName");
        errors.all_invalid("storageClassName", class, names::dns_subdomain(class, false));
        for key in ["capacity", "maximumVolumeSize"] {
            if let Some(amount) = capacity.get(key)
                && nano(amount).is_some_and(|amount| amount < 0)
            {
                errors.invalid(key, amount.clone(), crate::object::tree::NOT_NEGATIVE);
            }
        }
    },
    changes: Some(|new, old, errors| {
        for key in ["nodeTopology", "storageClassName"] {
            if !same(new.get(key), old.get(key)) {
                errors.invalid(key, new.get(key).cloned().unwrap_or(Value::Null), IMMUTABLE);
            }
        }
    }),
    ..KindDef::of::<k8s_openapi::api::storage::v1::CSIStorageCapacity>()
};
