//! The search for leaked secrets.

use anyhow::{Result, ensure};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{Capture, Scene, Server};

/// A value that only Secrets contain. It is searched for in plain text, in base64 and in hexadecimal.
pub struct Canary {
    /// The value to put into a Secret.
    pub value: String,
    needles: Vec<String>,
}

impl Canary {
    /// A different canary for each name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let value = format!("canary-{name}-9f3c1e7a5d2b4860");
        // base64 of a text inside another text has one of three alignments; the middle of each is stable.
        let aligned = (0..3).map(|shift| {
            let shifted = format!("{}{value}", "x".repeat(shift));
            let encoded = base64(shifted.as_bytes());
            encoded[4..encoded.len() - 4].to_owned()
        });
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let needles = aligned.chain([value.clone(), hex.to_uppercase(), hex]).collect();
        Self { value, needles }
    }

    /// True if a text contains the canary in any encoding.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        self.needles.iter().any(|needle| text.contains(needle.as_str()))
    }

    /// Searches everything that is visible without read access to the Secret: the log, the controllers' panics,
    /// metrics, and on the hub and the members all Events and all managed objects other than Secrets.
    ///
    /// # Errors
    /// Says where it was found, not what.
    pub async fn assert_kept(&self, scene: &Scene) -> Result<()> {
        self.assert_not_logged(&scene.bed.log)?;
        ensure!(
            !self.is_in(&scene.controllers()?.metrics().await?),
            "the metrics hold the canary"
        );
        ensure!(
            !self.is_in(&scene.writes().join("\n")),
            "a request's path holds the canary"
        );
        for server in std::iter::once(&scene.hub).chain(&scene.members) {
            self.assert_not_on(server, "Event").await?;
            for kind in ["ConfigMap", "Deployment"] {
                self.assert_not_on(server, kind).await?;
            }
        }
        for kind in ["ResourceBinding", "PropagationPolicy", "Cluster"] {
            self.assert_not_on(&scene.hub, kind).await?;
        }
        Ok(())
    }

    /// Searches a log and its panics.
    ///
    /// # Errors
    /// Says how often it was found, not what.
    pub fn assert_not_logged(&self, log: &Capture) -> Result<()> {
        for needle in &self.needles {
            let lines = log.with(needle);
            ensure!(
                lines.is_empty(),
                "{} lines of the log hold the canary",
                lines.len()
            );
        }
        ensure!(
            !log.panics().iter().any(|panic| self.is_in(panic)),
            "a panic holds the canary"
        );
        Ok(())
    }

    /// Searches a Secret outside of its data.
    ///
    /// # Errors
    /// When labels, annotations or anything else but the data hold it.
    pub fn assert_only_in_data(&self, secret: &Value) -> Result<()> {
        let mut secret = secret.clone();
        secret["data"] = json!(null);
        if let Some(meta) = secret["metadata"].as_object_mut() {
            meta.remove("managedFields");
        }
        ensure!(
            !self.is_in(&secret.to_string()),
            "a Secret's metadata holds the canary"
        );
        Ok(())
    }

    async fn assert_not_on(&self, server: &Server, kind: &str) -> Result<()> {
        for object in server.list(kind, "", "").await? {
            let name = &object["metadata"]["name"];
            ensure!(
                !self.is_in(&object.to_string()),
                "{kind} {name} on {} holds the canary",
                server.name
            );
        }
        Ok(())
    }
}

fn base64(bytes: &[u8]) -> String {
    // ByteString serialises to base64.
    json!(ByteString(bytes.to_vec()))
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canary_is_found_however_it_is_packed() {
        let canary = Canary::new("x");
        for shift in ["", "{", "{\"", "{\"k"] {
            let packed = base64(format!("{shift}{}\"}}", canary.value).as_bytes());
            assert!(canary.is_in(&packed), "{shift}");
        }
        assert!(canary.is_in(&format!("... {} ...", canary.value)));
        assert!(!canary.is_in("nothing to see"));
    }
}
