//! The uses of a template's hook responses: by its own binding, and by the bindings of its referrers.

use crate::{
    cache::ResourceState,
    fleet::{Fleet, claims::claimed_by},
    object::ResourceId,
    observation::{Template, Use, Used},
    plan::Key,
};
use entourage_api::policy::PropagationSpec;

impl Fleet {
    /// The use to report to the readers of templates, now that this key is planned again; `None` if no hook is called. Every
    /// change of the use of a response has the binding planned again, or the policy.
    ///
    /// Cost: O(log kinds with an interpreter), and O(referrers) if hooks are called.
    #[must_use]
    pub fn used(&self, key: &Key) -> Option<Use> {
        match key {
            Key::Policy(name) => {
                let policy = self
                    .cache
                    .policies
                    .get(name)
                    .filter(|policy| policy.meta.deleting.is_none());
                let follows = policy.map(|policy| self.config.propagate_deps && follows(&policy.object.spec));
                Some(Use::Policy(name.clone(), follows))
            }
            Key::Binding(id)
                if !self.graph.interpreter.hooks().is_empty() && self.interpretation(&id.gvk).is_hooked() =>
            {
                let resource = self.cache.resources.get(id);
                let template = resource.and_then(|resource| resource.template.as_ref());
                let used = resource.map(|resource| self.uses(id, resource, template));
                let again = template
                    .zip(used)
                    .is_some_and(|(template, used)| template.is_to_be_asked(used));
                Some(Use::Template {
                    id: id.clone(),
                    used: used.filter(|used| template.is_some() || *used != Used::default()),
                    again,
                })
            }
            _ => None,
        }
    }

    fn uses(&self, id: &ResourceId, resource: &ResourceState, template: Option<&Template>) -> Used {
        let placed = |resource: &ResourceState| {
            resource
                .last_binding()
                .is_some_and(|binding| binding.object.spec.placement.is_some())
        };
        let claimed = template.is_some_and(|template| claimed_by(self, id, &template.meta).is_some());
        let follows = |id: &ResourceId| {
            let resource = self.cache.resources.get(id);
            resource.is_some_and(|resource| self.will_follow(id, resource))
        };
        Used {
            own: claimed || placed(resource),
            references: self.will_follow(id, resource) || self.links(id).referrers.iter().any(follows),
        }
    }

    /// True if the dependencies of a template are propagated, or will be once its binding is written according to its policy.
    /// Cost: O(log policies).
    pub(crate) fn will_follow(&self, id: &ResourceId, resource: &ResourceState) -> bool {
        let stored = || {
            resource.last_binding().is_some_and(|binding| {
                let spec = &binding.object.spec;
                spec.placement.is_some() && spec.propagate_deps
            })
        };
        let claimed = || {
            let template = resource.template.as_ref()?;
            let (_, policy) = claimed_by(self, id, &template.meta)?;
            Some(follows(&policy.object.spec))
        };
        self.config.propagate_deps && (stored() || claimed() == Some(true))
    }
}

/// True if the dependencies of a policy's templates are propagated with them. An imported service is of no use without its
/// dependencies (karmada reference 6.1, there done by the webhook alone).
pub(crate) fn follows(policy: &PropagationSpec) -> bool {
    policy.propagate_deps
        || policy.resource_selectors.iter().any(|selector| {
            selector.kind == "ServiceImport" && selector.api_version.starts_with("multicluster.x-k8s.io/")
        })
}
