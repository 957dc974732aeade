//! `cargo +nightly fuzz run distribution`: what may not happen to copies, whatever a ResourceDistribution says and whatever
//! stands in a namespace.
//!
//! The embedded server knows nothing of distributions, so this target is not one of the library's. Its laws hold on stable as
//! properties of `entourage-core`, too.

#![no_main]

use arbitrary::{Result, Unstructured};
use entourage_core::distribution::{
    hash::resource_hash,
    render::{Mark, DistributionRenderSpec, Standing, difference, must_be_recreated, release, render, standing},
    template::{read, sanitised},
};
use entourage_fuzz::{Case, make, patch};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fuzz_target!(|input: &[u8]| -> Corpus {
    match entourage_fuzz::read::<Distribution>(input) {
        Some(case) => {
            case.check();
            Corpus::Keep
        }
        None => Corpus::Reject,
    }
});

/// The distributed object, and the object on the server.
#[derive(Debug, Serialize, Deserialize)]
struct Distribution {
    resource: Value,
    live: Value,
    on_member: bool,
}

impl Case for Distribution {
    fn make(u: &mut Unstructured<'_>) -> Result<Self> {
        let resource = object(u)?;
        let on_member = u.arbitrary()?;
        let live = if u.arbitrary()? {
            let mut live = render(&render_spec(on_member), &resource, None).object().clone();
            make::tweak(u, &mut live)?;
            live
        } else {
            object(u)?
        };
        Ok(Self {
            resource,
            live,
            on_member,
        })
    }

    fn check(&self) {
        let render_spec = render_spec(self.on_member);
        let _ = resource_hash(&self.resource);
        let once = sanitised(&self.resource);
        assert_eq!(sanitised(&once), once, "sanitised twice is sanitised no more");
        if let Ok(subject) = read(&self.resource) {
            let again = read(&once).expect("what is sanitised can be distributed, too");
            assert_eq!((subject.gvk, subject.name), (again.gvk, again.name));
        }
        let copy = render(&render_spec, &self.resource, Some(&self.live));
        let _ = difference(&copy, &self.live);
        let _ = must_be_recreated(&copy, &self.live);
        if standing(&render_spec, &self.live) == Standing::Ours {
            let released = release(&render_spec, &self.live).expect("what is ours can be released");
            assert_ne!(standing(&render_spec, &released), Standing::Ours, "released");
        }
        let again = render(&render_spec, &self.resource, Some(copy.object()));
        assert_eq!(copy.object(), again.object(), "rendered on itself it stays");
        assert_eq!(difference(&again, copy.object()), None);
        assert_eq!(must_be_recreated(&again, copy.object()), None);
        assert_eq!(standing(&render_spec, copy.object()), Standing::Ours);
    }
}

fn render_spec(on_member: bool) -> DistributionRenderSpec {
    DistributionRenderSpec {
        distribution: "dist".into(),
        uid: "uid-of-dist".into(),
        namespace: "ns-1".into(),
        mark: if on_member {
            Mark::Member {
                hub: "hub".into(),
                cluster: "m1".into(),
            }
        } else {
            Mark::Owner
        },
        take_over: false,
    }
}

/// A ConfigMap or Secret, more or less.
fn object(u: &mut Unstructured<'_>) -> Result<Value> {
    let (kind, plural) = *u.choose(&[("ConfigMap", "configmaps"), ("Secret", "secrets")])?;
    let resource = patch::resource(plural).ok_or(arbitrary::Error::IncorrectFormat)?;
    let mut object = make::of(u, resource.schema.get(), 6)?;
    if let Value::Object(fields) = &mut object {
        fields.insert("apiVersion".to_owned(), json!("v1"));
        fields.insert("kind".to_owned(), json!(kind));
    }
    make::tweak(u, &mut object)?;
    Ok(object)
}
