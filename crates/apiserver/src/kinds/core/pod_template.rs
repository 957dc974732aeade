//! PodTemplates.

use crate::{
    kinds::{kind_def::KindDef, pod_spec},
    object::tree::below,
    printer::{NAME, Printer, words},
};

pub(super) static DEF: KindDef = KindDef {
    has_generation: true,
    returns_object: true,
    defaults: pod_spec::template_defaults,
    errors: |object, errors| {
        errors.extend(pod_spec::validate_template(below(object, "template"), "template"));
    },
    warnings: |new, old| {
        let template = |object| below(object, "template");
        if old.is_some_and(|old| template(old) == template(new)) {
            return Vec::new();
        }
        pod_spec::template_warnings(template(new), "template")
    },
    pod_spec: &["template", "spec"],
    printer: Printer::of(&[
        NAME,
        words("Containers", "Names of each container in the template.")
            .shows(|template| template.joined("template.spec.containers", "name")),
        words("Images", "Images referenced by each container in the template.")
            .shows(|template| template.joined("template.spec.containers", "image")),
        words("Pod Labels", "The labels for the pod template.")
            .shows(|template| template.labels("template.metadata.labels")),
    ]),
    ..KindDef::of::<k8s_openapi::api::core::v1::PodTemplate>()
};
