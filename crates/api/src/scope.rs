//! The cluster-scoped counterpart of a namespaced kind: the same fields under another name, without a namespace.
//!
//! A counterpart has no fields of its own. Its definition is made from that of the namespaced kind, so the two cannot diverge.
//! The planners hold either of them as the namespaced type; a counterpart has no namespace.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::{CustomResourceExt, Resource};
use serde::de::DeserializeOwned;
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};

/// A namespaced kind that has a cluster-scoped counterpart.
pub trait ClusterCounterpart:
    Resource<DynamicType = ()> + CustomResourceExt + Serialize + DeserializeOwned
{
    /// The counterpart's kind.
    const KIND: &'static str;
    /// The counterpart's plural name.
    const PLURAL: &'static str;
    /// The name of the counterpart's definition: plural and group.
    const CRD_NAME: &'static str;
    /// The short names of the counterpart on the command line.
    const SHORT_NAMES: &'static [&'static str];
    /// The description of the counterpart, for users.
    const DOC: &'static str;
}

/// The cluster-scoped counterpart of `T`. It deserializes as `T` and is serialized under its own kind.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(transparent)]
pub struct ClusterScoped<T>(pub T);

impl<T> Deref for ClusterScoped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for ClusterScoped<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ClusterCounterpart> Serialize for ClusterScoped<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serde_json::to_value(&self.0).map_err(S::Error::custom)?;
        object["kind"] = T::KIND.into();
        object.serialize(serializer)
    }
}

impl<T: ClusterCounterpart> Resource for ClusterScoped<T> {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        T::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        T::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        T::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        T::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

impl<T: ClusterCounterpart> CustomResourceExt for ClusterScoped<T> {
    fn crd() -> CustomResourceDefinition {
        let mut crd = T::crd();
        crd.metadata.name = Some(T::CRD_NAME.into());
        crd.spec.scope = "Cluster".into();
        let names = &mut crd.spec.names;
        names.kind = T::KIND.into();
        names.plural = T::PLURAL.into();
        names.singular = Some(T::KIND.to_lowercase());
        names.short_names = Some(T::SHORT_NAMES.iter().map(|name| (*name).into()).collect());
        for version in &mut crd.spec.versions {
            let root = version
                .schema
                .as_mut()
                .and_then(|s| s.open_api_v3_schema.as_mut());
            if let Some(root) = root {
                root.description = Some(T::DOC.into());
            }
        }
        crd
    }

    fn crd_name() -> &'static str {
        T::CRD_NAME
    }

    fn api_resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn shortnames() -> &'static [&'static str] {
        T::SHORT_NAMES
    }
}

#[cfg(test)]
mod tests;
