//! A server that cannot be listed: the consequence, the report, and the delay.

use std::time::Duration;

use entourage_core::{
    object::Gvk,
    observation::{Observation, ServicePart, Watch, kind_read_by},
    rights,
};
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::{ASK_AGAIN, FORBIDDEN, PATIENCE, Reported, Watcher};
use crate::{
    client::served::Served,
    clock,
    error::{Class, Failure},
};

pub(super) const LONGEST: Duration = Duration::from_secs(5);
const LONGEST_BUSY: Duration = Duration::from_secs(2);

impl Watcher {
    /// Reports an outage, or what the server serves instead, unless that was reported last.
    pub(super) async fn give_up(&mut self, failure: &Failure) -> Option<()> {
        let passes = matches!(failure.class(), Class::Busy | Class::Unknown);
        if passes && self.waiting.is_some_and(|since| since.elapsed() < PATIENCE) {
            debug!(cluster = self.api.name(), resource = %self.list.resource, error = ?failure, "cannot list yet");
            return Some(());
        }
        let gvk = match &self.watch {
            Watch::Templates(gvk) | Watch::Copies(_, gvk) => gvk.clone(),
            watch if may_be_undefined(watch) => kind_read_by(watch),
            _ => Gvk::new("v1", "List"),
        };
        let Some(report) = self
            .reported_after(failure, &gvk)
            .await
            .filter(|report| *report != self.reported)
        else {
            return Some(());
        };
        let why = match &report {
            Reported::Other(version) => Failure::served_in(&gvk, version).text(&gvk),
            Reported::Withheld => self.api.withheld(&gvk).text(&gvk),
            Reported::NoSuchKind => Failure::not_served(&gvk).text(&gvk),
            _ => failure.text(&gvk),
        };
        // That a member does not serve a kind is reported where it matters: on the binding that cannot be applied there.
        if failure.class() == Class::Missing && matches!(self.watch, Watch::Copies(..)) {
            debug!(cluster = self.api.name(), resource = %self.list.resource, error = why, "cannot list");
        } else if let (Reported::Refused, Watch::Templates(_)) = (&report, &self.watch) {
            let remedy = rights::remedy(&gvk.group, &gvk.kind);
            warn!(cluster = self.api.name(), resource = %self.list.resource, error = why, remedy, "cannot list");
        } else {
            warn!(cluster = self.api.name(), resource = %self.list.resource, error = why, "cannot list");
        }
        let watch = self.watch.clone();
        let seen = match &report {
            Reported::Other(version) => Observation::Unserved {
                watch,
                other: Some(version.clone()),
                why,
            },
            Reported::Withheld => Observation::Unserved {
                watch,
                other: Some(gvk.version),
                why,
            },
            Reported::NoSuchKind => Observation::Unserved {
                watch,
                other: None,
                why,
            },
            Reported::Refused => Observation::Refused { watch, why },
            _ => Observation::Lost { watch, why },
        };
        self.reported = report;
        self.tell(vec![seen], true).await
    }

    /// The state that follows from a failure; `None` if it was determined a short while ago. Runs discovery when a kind is not
    /// found.
    async fn reported_after(&mut self, failure: &Failure, gvk: &Gvk) -> Option<Reported> {
        if failure.class() != Class::Missing || !may_be_undefined(&self.watch) {
            return Some(match failure.code() {
                FORBIDDEN => Reported::Refused,
                _ => Reported::Lost,
            });
        }
        let is_found_out = matches!(
            self.reported,
            Reported::Other(_) | Reported::Withheld | Reported::NoSuchKind
        );
        if is_found_out && self.asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN) {
            return None;
        }
        self.asked = Some(Instant::now());
        Some(match self.api.served(gvk).await {
            Ok(Served::Nowhere) => Reported::NoSuchKind,
            Ok(Served::Withheld) => Reported::Withheld,
            Ok(Served::In(version)) if version != gvk.version => Reported::Other(version),
            // It is served by now, or that cannot be determined now.
            Ok(Served::In(_)) | Err(_) => Reported::Lost,
        })
    }

    pub(super) async fn rest(&mut self, failure: &Failure) {
        self.failures += 1;
        self.missing = failure.class() == Class::Missing;
        let wait = match failure.class() {
            // Not served, or forbidden: that changes rarely.
            Class::Missing | Class::Refused => LONGEST,
            // The server responds, so it is retried soon: nothing of the kind is delivered meanwhile.
            Class::Busy => pause(self.failures, LONGEST_BUSY),
            _ => pause(self.failures, LONGEST),
        };
        sleep(wait.max(failure.retry_after().unwrap_or_default())).await;
    }
}

/// 100 ms, doubled up to `longest`, and up to half of that more.
pub(super) fn pause(failures: u32, longest: Duration) -> Duration {
    let wait = Duration::from_millis(100 << failures.saturating_sub(1).min(6)).min(longest);
    wait.mul_f64(1.0 + clock::jitter() / 2.0)
}

/// True if it matters that the server does not serve the kind at all: then there are no objects of it.
const fn may_be_undefined(watch: &Watch) -> bool {
    matches!(
        watch,
        Watch::Templates(_)
            | Watch::Copies(..)
            | Watch::Customizations
            | Watch::Hooks(_)
            | Watch::TaintPolicies
            | Watch::Rebalancers
            | Watch::Quotas
            | Watch::PriorityClasses
            | Watch::Works
            | Watch::Leases
            | Watch::ServiceParts(ServicePart::Import)
    )
}
