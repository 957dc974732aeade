//! Storage classes, attachments and what CSI drivers tell of themselves.

use serde_json::Value;

use super::{
    amounts::nano,
    kind::{Kind, empty_status},
};
use crate::{
    names,
    object::{
        Object,
        tree::{Errors, IMMUTABLE, below, default, items, list, made, object, same, text},
    },
};

/// StorageClass: hardly anything of it may change.
pub(super) static STORAGE_CLASS: Kind = Kind {
    kind: "StorageClass",
    defaults: |class| {
        default(class, "reclaimPolicy", "Delete");
        default(class, "volumeBindingMode", "Immediate");
    },
    errors: storage_class,
    changes: Some(|new, old, errors| {
        for (key, detail) in [
            ("parameters", "updates to parameters are forbidden."),
            ("provisioner", "updates to provisioner are forbidden."),
            ("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
        ] {
            if !same(new.get(key), old.get(key)) {
                errors.forbidden(key, detail);
            }
        }
        if !same(new.get("volumeBindingMode"), old.get("volumeBindingMode")) {
            let mode = new.get("volumeBindingMode").cloned().unwrap_or(Value::Null);
            errors.invalid("volumeBindingMode", mode, IMMUTABLE);
        }
    }),
    ..Kind::PLAIN
};

/// VolumeAttachment.
pub(super) static ATTACHMENT: Kind = Kind {
    kind: "VolumeAttachment",
    has_status: true,
    created: |attachment| {
        empty_status(attachment);
        // Always sent.
        made(attachment, "status").insert("attached".to_owned(), false.into());
    },
    errors: |attachment, errors| {
        let spec = below(attachment, "spec");
        match text(spec, "attacher") {
            "" => errors.required("spec.attacher", ""),
            name => errors.all_invalid("spec.attacher", name, driver_name(name)),
        }
        let source = below(spec, "source");
        match (
            object(source, "inlineVolumeSpec"),
            text(source, "persistentVolumeName"),
        ) {
            (Some(_), "") => {}
            (Some(_), _) => errors.forbidden(
                "spec.source",
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ),
            (None, "") => errors.required(
                "spec.source",
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ),
            (None, _) => {}
        }
        let node = text(spec, "nodeName");
        errors.all_invalid("spec.nodeName", node, names::dns_subdomain(node, false));
    },
    changes: Some(|new, old, errors| {
        let spec = |object: &Object| object.get("spec").cloned().unwrap_or(Value::Null);
        if spec(new) != spec(old) {
            errors.invalid("spec", spec(new), IMMUTABLE);
        }
    }),
    ..Kind::PLAIN
};

/// CSIDriver.
pub(super) static CSI_DRIVER: Kind = Kind {
    kind: "CSIDriver",
    has_generation: true,
    names: |name, _| driver_name(name),
    defaults: |driver| {
        let spec = made(driver, "spec");
        for (key, value) in [
            ("attachRequired", Value::from(true)),
            ("podInfoOnMount", false.into()),
            ("storageCapacity", false.into()),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType".into()),
            ("volumeLifecycleModes", vec!["Persistent"].into()),
            ("requiresRepublish", false.into()),
            ("seLinuxMount", false.into()),
        ] {
            spec.entry(key).or_insert(value);
        }
    },
    errors: |driver, errors| {
        let spec = below(driver, "spec");
        errors.one_of(
            "spec.fsGroupPolicy",
            text(spec, "fsGroupPolicy"),
            &["File", "None", "ReadWriteOnceWithFSType"],
        );
        for mode in list(spec, "volumeLifecycleModes")
            .iter()
            .filter_map(Value::as_str)
        {
            errors.one_of("spec.volumeLifecycleModes", mode, &["Ephemeral", "Persistent"]);
        }
    },
    changes: Some(|new, old, errors| {
        let (before, after) = (below(old, "spec"), below(new, "spec"));
        for key in ["attachRequired", "volumeLifecycleModes"] {
            errors.immutable(after, before, "spec", key);
        }
    }),
    ..Kind::PLAIN
};

/// CSINode.
pub(super) static CSI_NODE: Kind = Kind {
    kind: "CSINode",
    defaults: |node| {
        let spec = made(node, "spec");
        spec.entry("drivers").or_insert(Value::Null);
    },
    errors: |node, errors| {
        let mut seen = std::collections::BTreeSet::new();
        for (path, driver) in items(below(node, "spec"), "drivers", "spec") {
            let name = text(driver, "name");
            errors.all_invalid(&format!("{path}.name"), name, driver_name(name));
            errors.needs(driver, &path, "nodeID");
            if !seen.insert(name) {
                errors.duplicate(format!("{path}.name"), name);
            }
        }
    },
    ..Kind::PLAIN
};

/// CSIStorageCapacity.
pub(super) static CAPACITY: Kind = Kind {
    kind: "CSIStorageCapacity",
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
    ..Kind::PLAIN
};

fn storage_class(class: &Object, errors: &mut Errors) {
    match text(class, "provisioner") {
        "" => errors.required("provisioner", ""),
        provisioner => {
            let problems = names::qualified_name(&provisioner.to_ascii_lowercase());
            errors.all_invalid("provisioner", provisioner, problems);
        }
    }
    errors.required_one_of(
        "volumeBindingMode",
        text(class, "volumeBindingMode"),
        &["Immediate", "WaitForFirstConsumer"],
    );
    errors.required_one_of(
        "reclaimPolicy",
        text(class, "reclaimPolicy"),
        &["Delete", "Retain"],
    );
    if below(class, "parameters").contains_key("") {
        errors.invalid("parameters", text(class, "name"), "field can not be empty.");
    }
}

fn driver_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["must not be empty".to_owned()];
    }
    let mut problems = Vec::new();
    if name.len() > names::LABEL_LENGTH {
        problems.push(format!("must be no more than {} characters", names::LABEL_LENGTH));
    }
    problems.extend(names::dns_subdomain(&name.to_ascii_lowercase(), false));
    problems
}
