//! Paths of an OpenAPI document that list what is served: groups, versions, resources.

use k8s_openapi::apimachinery::pkg::{apis::meta::v1 as meta, version::Info};
use serde_json::{Value, json};

use super::{
    definitions::Flavor,
    paths::{capital, content, in_camel_case},
};
use crate::schema::builtin::Root;

/// The operation that lists what is served below a path.
pub(super) struct Discovery {
    tag: String,
    description: &'static str,
    id: String,
    media: &'static [&'static str],
    /// The type of the answer.
    pub(super) answer: Root,
}

impl Discovery {
    /// The operation of a path in words: `apis`, `apps`, `v1`.
    pub(super) fn of(words: &[&str]) -> Option<Self> {
        const ALL: &[&str] = &[
            "application/json",
            "application/vnd.kubernetes.protobuf",
            "application/yaml",
        ];
        const VERSIONS: &str = "get available API versions";
        const RESOURCES: &str = "get available resources";
        let made = |tag: &str, description, id: String, answer| Self {
            tag: tag.to_owned(),
            description,
            id,
            media: ALL,
            answer,
        };
        Some(match words {
            ["api"] => made(
                "core",
                VERSIONS,
                "getCoreAPIVersions".to_owned(),
                Root::of::<meta::APIVersions>(),
            ),
            ["apis"] => made(
                "apis",
                VERSIONS,
                "getAPIVersions".to_owned(),
                Root::of::<meta::APIGroupList>(),
            ),
            ["api", version] => made(
                &format!("core_{version}"),
                RESOURCES,
                format!("getCore{}APIResources", capital(version)),
                Root::of::<meta::APIResourceList>(),
            ),
            ["apis", group] => {
                let group = in_camel_case(group);
                let id = format!("get{}APIGroup", capital(&group));
                made(
                    &group,
                    "get information of a group",
                    id,
                    Root::of::<meta::APIGroup>(),
                )
            }
            ["apis", group, version] => {
                let group = in_camel_case(group);
                let id = format!("get{}{}APIResources", capital(&group), capital(version));
                let tag = format!("{group}_{version}");
                made(&tag, RESOURCES, id, Root::of::<meta::APIResourceList>())
            }
            ["version"] => Self {
                media: &ALL[..1],
                ..made(
                    "version",
                    "get the version information for this server",
                    "getCodeVersion".to_owned(),
                    Root::of::<Info>(),
                )
            },
            _ => return None,
        })
    }

    /// The path with its operation.
    pub(super) fn item(&self) -> Value {
        let schema = Flavor::V3.reference(&(self.answer.name)());
        let content = content(self.media, &schema);
        json!({"get": {
            "tags": [self.tag], "description": self.description, "operationId": self.id,
            "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discovery_is_named_by_its_group_and_version() {
        for (words, tag, id) in [
            (&["api"][..], "core", "getCoreAPIVersions"),
            (
                &["apis", "rbac.authorization.k8s.io"],
                "rbacAuthorization",
                "getRbacAuthorizationAPIGroup",
            ),
            (&["apis", "apps", "v1"], "apps_v1", "getAppsV1APIResources"),
            (&["version"], "version", "getCodeVersion"),
        ] {
            let found = Discovery::of(words).expect(id);
            assert_eq!((found.tag.as_str(), found.id.as_str()), (tag, id));
        }
        assert!(Discovery::of(&["openid", "v1", "jwks"]).is_none());
    }
}
