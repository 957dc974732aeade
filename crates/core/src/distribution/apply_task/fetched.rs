//! The source object of a distribution, as fetched when a copy is applied.

use serde_json::Value;

use super::super::{
    Order, Step, gvk,
    observed::{Distribution, ObservedObject},
    template,
};
use crate::{
    object::ResourceId,
    observation::{Subject, Wrote},
    rendered::Rendered,
};

/// The source object, as fetched for one order. No `Debug`: it may contain a Secret.
pub struct Content<'a> {
    resource: Resource<'a>,
    pub(super) number: u64,
}

enum Resource<'a> {
    Inside(&'a Value),
    Bare(Rendered),
}

/// The object to fetch for an order: the distribution itself, or the object it names.
#[must_use]
pub fn source(order: &Order) -> ResourceId {
    order.source.clone().unwrap_or_else(|| ResourceId {
        gvk: gvk(),
        namespace: "".into(),
        name: order.distribution.clone(),
    })
}

/// Reads the object fetched by [`source`]: the observation it makes, and the content for copies, or the outcome that ends the
/// order without one.
///
/// The order was planned by the engine at that time. If the distribution is being deleted meanwhile, is another object, or names
/// another source, nothing is written: it is planned again. Cost: O(size of the object).
pub fn content<'a>(order: &Order, fetched: &'a Value) -> (Subject, Result<Content<'a>, Wrote>) {
    let failed = |message| Wrote::Failed {
        step: Step::Get,
        message,
        may_exist: false,
    };
    let Some(id) = &order.source else {
        let seen = Distribution::of(fetched);
        let content = match &seen.spec {
            // Its copies may be observed as deleted before its own deletion is: created again, they would be garbage-collected
            // once more.
            _ if seen.meta.deleting.is_some() || seen.meta.uid != order.render_spec.uid => {
                Err(Wrote::Abandoned)
            }
            Err(why) => Err(failed(why.clone())),
            Ok(spec)
                if spec.renamed.is_some()
                    || spec.source.is_some()
                    || spec.gvk != order.id.gvk
                    || spec.name != order.id.name =>
            {
                Err(Wrote::Abandoned)
            }
            Ok(spec) => Ok(Content {
                resource: Resource::Inside(&fetched["spec"]["resource"]),
                number: spec.content,
            }),
        };
        let subject = Subject::Distribution(order.distribution.clone(), seen.into());
        return (subject, content);
    };
    let part = ObservedObject::of(fetched);
    let number = part.version();
    // Only propagated fields count, so that touching the source changes no copy.
    let bare = Rendered(template::sanitised(fetched));
    let content = if !part.consents_to(&order.distribution) {
        Err(failed(format!(
            "the owner of {id} does not permit its distribution"
        )))
    } else {
        // By the same rules as for an embedded object: a token Secret and the like are refused.
        match template::read(&bare.0) {
            Ok(_) => Ok(Content {
                resource: Resource::Bare(bare),
                number,
            }),
            Err(problems) => {
                let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Err(failed(format!("{id}: {}", words.join(". "))))
            }
        }
    };
    (Subject::Distributed(None, id.clone(), part), content)
}

impl Content<'_> {
    pub(super) fn resource(&self) -> &Value {
        match &self.resource {
            Resource::Inside(resource) => resource,
            Resource::Bare(bare) => &bare.0,
        }
    }
}
