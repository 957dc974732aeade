//! What is distributed, as it is fetched when a copy is to be brought in line.

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

/// What is distributed, as it was fetched for one order. No `Debug`: it may hold a Secret.
pub struct Content<'a> {
    resource: Resource<'a>,
    pub(super) number: u64,
}

enum Resource<'a> {
    Inside(&'a Value),
    Bare(Rendered),
}

/// What is to be fetched for an order: the distribution itself, or what it names.
#[must_use]
pub fn source(order: &Order) -> ResourceId {
    order.source.clone().unwrap_or_else(|| ResourceId {
        gvk: gvk(),
        namespace: "".into(),
        name: order.distribution.clone(),
    })
}

/// Reads what was fetched as [`source`] says: what it tells, and what copies are made of, or how the order ends without.
///
/// The order was planned for what was known then. If the distribution ends meanwhile, is another one, or names something
/// else, nothing is written: it is planned again. Cost: O(size of the object).
pub fn content<'a>(order: &Order, fetched: &'a Value) -> (Subject, Result<Content<'a>, Wrote>) {
    let failed = |message| Wrote::Failed {
        step: Step::Get,
        message,
    };
    let Some(id) = &order.source else {
        let seen = Distribution::of(fetched);
        let content = match &seen.spec {
            // Its copies may be seen to go before it is seen to end: made again, they would be collected once more.
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
    // Only what travels, so that touching the source changes no copy.
    let bare = Rendered(template::sanitised(fetched));
    let content = if !part.consents_to(&order.distribution) {
        Err(failed(format!(
            "the owner of {id} does not permit its distribution"
        )))
    } else {
        // By the same rules as what stands in a distribution: a token Secret and the like are refused.
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
