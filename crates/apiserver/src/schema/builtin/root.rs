//! The types from which schemas are made.

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    DeleteOptions, ListMeta, ObjectMeta, Patch, Status, WatchEvent,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::schema::Schema;

/// A type of the API: the name of its definition, and what adds it to a generator.
#[derive(Clone, Copy, Debug)]
pub struct Root {
    /// `io.k8s.api.apps.v1.Deployment`.
    pub name: fn() -> Cow<'static, str>,
    add: fn(&mut SchemaGenerator),
}

impl Root {
    /// `metadata` of every object.
    pub const METADATA: Self = Self::of::<ObjectMeta>();

    /// The body of a DELETE.
    pub const DELETE_OPTIONS: Self = Self::of::<DeleteOptions>();

    /// The types that requests of all kinds share.
    pub const SHARED: [Self; 6] = [
        Self::METADATA,
        Self::DELETE_OPTIONS,
        Self::of::<ListMeta>(),
        Self::of::<Patch>(),
        Self::of::<Status>(),
        Self::of::<WatchEvent<Value>>(),
    ];

    /// The root of a type.
    #[must_use]
    pub const fn of<T: JsonSchema>() -> Self {
        Self {
            name: T::schema_name,
            add: add::<T>,
        }
    }

    /// The schema of the type.
    #[must_use]
    pub fn schema(self) -> Arc<Schema> {
        super::definition(&(self.name)(), || vec![self])
    }
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    let _ = generator.subschema_for::<T>();
}

/// The definitions that these types are made of, themselves included.
pub(super) fn generate(roots: &[Root]) -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    for root in roots {
        (root.add)(&mut generator);
    }
    generator.take_definitions(false).into_iter().collect()
}
