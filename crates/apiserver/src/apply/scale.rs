//! An apply of a Scale: those who own the replicas of an object own them in its Scale, and the other way round.

use serde_json::{Value, json};

use super::{
    Manager, apply,
    entries::{self, Managed, Operation, Owned, Owner},
    set::FieldSet,
    write,
};
use crate::{
    object::{Object, metadata, metadata_mut},
    resource::Resource,
    status::{Result, Status},
};

/// The parent's resource and the path of its replicas, and the resource of its Scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled<'a> {
    pub(crate) parent: &'a Resource,
    pub(crate) replicas: &'a [String],
    pub(crate) scale: &'a Resource,
}

impl Scaled<'_> {
    /// The Scale after `applied` was applied to `live`, and the managedFields of `parent` then. O(managedFields).
    ///
    /// # Errors
    ///
    /// Those of [`apply()`], as if the Scale were an object of its own.
    pub(crate) fn apply(
        self,
        parent: &Object,
        mut live: Object,
        applied: &Object,
        manager: Manager<'_>,
        force: bool,
    ) -> Result<(Object, Option<Value>)> {
        let broken = || Status::unforeseen("failed to decode managed fields");
        let mut managed = entries::parse(metadata(parent).get("managedFields")).ok_or_else(broken)?;
        let in_parent = self
            .replicas
            .iter()
            .rfold(json!({}), |below, step| json!({format!("f:{step}"): below}));
        let in_parent = FieldSet::parse(&in_parent).ok_or_else(broken)?;
        let in_scale = FieldSet::parse(&json!({"f:spec": {"f:replicas": {}}})).ok_or_else(broken)?;
        let version = self.scale.api_version();
        let seen = |owner: &Owner| Owner {
            version: match owner.operation {
                Operation::Apply => String::new(),
                Operation::Update => version.clone(),
            },
            ..owner.clone()
        };
        let owns = |owned: &Owned| !owned.fields.intersection(&in_parent).is_empty();
        let of_scale: Managed = managed
            .iter()
            .filter(|(_, owned)| owns(owned))
            .map(|(owner, owned)| {
                let owned = Owned {
                    version: version.clone(),
                    time: owned.time.clone(),
                    fields: in_scale.clone(),
                };
                (seen(owner), owned)
            })
            .collect();
        write(&mut live, &of_scale);
        let mut scale = apply(self.scale, Some(&live), applied, manager, force)?;
        let books = metadata_mut(&mut scale).remove("managedFields");
        let mut left = entries::parse(books.as_ref()).ok_or_else(broken)?;
        managed.retain(|owner, owned| {
            if owns(owned) && left.remove(&seen(owner)).is_none() {
                owned.fields = owned.fields.difference(&in_parent);
            }
            !owned.fields.is_empty()
        });
        for (owner, _) in left {
            let owned = Owned {
                version: self.parent.api_version(),
                // The real server records no time either.
                time: None,
                fields: in_parent.clone(),
            };
            managed.insert(owner, owned);
        }
        Ok((scale, entries::to_value(&managed)))
    }
}
