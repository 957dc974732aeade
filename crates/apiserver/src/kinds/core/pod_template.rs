//! PodTemplates.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplate;

use crate::{
    kinds::{kind_def::KindDef, pod_spec},
    object::{Object, tree::below},
    printer::{
        Printer,
        column::{NAME, words},
    },
    resource::Rules,
    status::FieldError,
};

/// PodTemplate.
pub(super) static DEF: KindDef = KindDef {
    rules: Some(|| Arc::new(PodTemplates)),
    pod_spec: &["template", "spec"],
    printer: Printer::new(
        &[
            NAME,
            words("Containers", "Names of each container in the template."),
            words("Images", "Images referenced by each container in the template."),
            words("Pod Labels", "The labels for the pod template."),
        ],
        |template| {
            let [names, images] = template.containers("template.spec.containers");
            vec![
                template.name(),
                names,
                images,
                template.labels("template.metadata.labels"),
            ]
        },
    ),
    ..KindDef::of::<PodTemplate>()
};

/// The rules of `PodTemplates`.
#[derive(Debug)]
pub(super) struct PodTemplates;

impl Rules for PodTemplates {
    fn defaults(&self, object: &mut Object) {
        pod_spec::template_defaults(object);
    }

    fn has_generation(&self) -> bool {
        true
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        pod_spec::validate_template(below(object, "template"), "template")
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let template = |object| below(object, "template");
        if old.is_some_and(|old| template(old) == template(new)) {
            return Vec::new();
        }
        pod_spec::template_warnings(template(new), "template")
    }

    fn delete_returns_object(&self) -> bool {
        true
    }
}
