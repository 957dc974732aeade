//! The envelope of an object: the syntax of its body, its apiVersion and kind, and the errors about them.

use std::fmt;

use super::Media;
use crate::{
    read::{Node, yaml},
    resource::Resource,
    status::Status,
};

/// The line above those that name duplicates in YAML.
pub(super) const YAML_HEADING: &str = "yaml: unmarshal errors:";

/// A body, read.
pub struct Read {
    /// The value.
    pub node: Node,
    /// Duplicate fields of YAML, as one problem. Those of JSON are still in the value.
    pub problems: Vec<String>,
}

crate::hidden::without_content!(Read);

/// Reads the text of a body.
///
/// # Errors
/// The syntax error, as errors about objects without a kind report it.
pub fn read(bytes: &[u8], media: Media) -> Result<Read, String> {
    match media {
        Media::Json => match Node::parse(bytes) {
            Ok(node) => Ok(Read {
                node,
                problems: Vec::new(),
            }),
            Err(error) => Err(no_kind(&error)),
        },
        Media::Yaml => {
            let document = yaml::parse(bytes)?;
            let problems = match document.duplicates.as_slice() {
                [] => Vec::new(),
                some => vec![duplicates(some)],
            };
            Ok(Read {
                node: document.node,
                problems,
            })
        }
    }
}

/// Duplicate fields of YAML, as Go's parser reports them.
pub(super) fn duplicates(lines: &[String]) -> String {
    let mut text = YAML_HEADING.to_owned();
    for line in lines {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

fn no_kind(error: &str) -> String {
    format!("couldn't get version/kind; json parse error: {error}")
}

/// Group, version and kind in an object; empty where absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gvk {
    /// Group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl Gvk {
    /// The apiVersion and kind in an object.
    ///
    /// # Errors
    /// The error, in the server's words.
    pub fn of(node: &Node) -> Result<Self, String> {
        const TYPE: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        match node {
            Node::Null | Node::Object(_) => {}
            other => {
                let kind = other.type_name();
                return Err(no_kind(&format!(
                    "json: cannot unmarshal {kind} into Go value of type {TYPE}"
                )));
            }
        }
        let text = |name: &str| match node.get(name) {
            None | Some(Node::Null) => Ok(String::new()),
            Some(Node::String(text)) => Ok(text.clone()),
            Some(other) => Err(no_kind(&format!(
                "json: cannot unmarshal {} into Go struct field .{name} of type string",
                other.type_name()
            ))),
        };
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        let mut parts = api_version.split('/');
        let (group, version) = match (parts.next(), parts.next(), parts.next()) {
            (Some(version), None, _) => ("", version),
            (Some(group), Some(version), None) => (group, version),
            _ => return Err(format!("unexpected GroupVersion string: {api_version}")),
        };
        Ok(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind,
        })
    }

    /// The group, version and kind of a resource.
    #[must_use]
    pub fn of_resource(resource: &Resource) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
        }
    }

    /// Fills in missing fields from the resource.
    #[must_use]
    pub fn or_of(mut self, resource: &Resource) -> Self {
        if self.kind.is_empty() {
            self.kind.clone_from(&resource.kind);
        }
        if self.version.is_empty() && self.group.is_empty() {
            self.group.clone_from(&resource.group);
            self.version.clone_from(&resource.version);
        }
        self
    }

    /// `v1` or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The package of the unversioned types of a group. Both event APIs share one.
    pub(super) fn internal(&self) -> &str {
        match self.group.split('.').next() {
            Some("" | "events") | None => "core",
            Some(first) => first,
        }
    }

    /// There is no such kind.
    pub(super) fn unregistered(&self) -> String {
        format!(
            "no kind {:?} is registered for version {:?} in scheme \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\"",
            self.kind,
            self.api_version()
        )
    }
}

/// `apps/v1, Kind=Deployment`; the core group leaves the slash: `/v1, Kind=Pod`.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// 400 for a body that shows no kind; the message quotes its first bytes.
#[must_use]
pub fn unrecognized(resource: &Resource, bytes: &[u8], error: &str) -> Box<Status> {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {error} ({})",
        resource.kind,
        excerpt(bytes)
    ))
}

/// 400 for an object of a kind that cannot be read, or not be taken for the resource's.
#[must_use]
pub fn unhandled(gvk: &Gvk, resource: &Resource, error: &str) -> Box<Status> {
    Status::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: {error}",
        gvk.kind, gvk.version, resource.kind
    ))
}

/// 400 for an object in another version than that of the path.
#[must_use]
pub fn other_version(found: &str, resource: &Resource) -> Box<Status> {
    Status::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({})",
        resource.api_version()
    ))
}

/// The first bytes of a body: as text when it looks like JSON, in hexadecimal otherwise.
fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 30;
    let Some(first) = bytes.first() else {
        return "<empty>".to_owned();
    };
    let cut = &bytes[..bytes.len().min(MOST)];
    let text: String = if *first == b'{' {
        String::from_utf8_lossy(cut).into_owned()
    } else {
        cut.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if bytes.len() > MOST {
        format!("{text} ...")
    } else {
        text
    }
}
