//! The objects that events are about.

use crate::{cache::Binding, object::ResourceId, observation::Template, plan::Regarding, scope};

pub(crate) fn on_binding(stored: &Binding) -> Regarding {
    Regarding {
        api_version: scope::BINDING_API.into(),
        kind: scope::binding(&stored.name.namespace).kind.into(),
        namespace: stored.name.namespace.clone(),
        name: stored.name.name.clone(),
        uid: stored.meta.uid.clone(),
    }
}

pub(crate) fn on_template(id: &ResourceId, template: &Template) -> Regarding {
    Regarding {
        api_version: id.gvk.api_version(),
        kind: id.gvk.kind.to_string(),
        namespace: id.namespace.clone(),
        name: id.name.clone(),
        uid: template.meta.uid.clone(),
    }
}
