//! Reviews and token requests: questions about access that are answered and never stored.

use serde_json::{Map, Value, json};

use crate::{
    auth::{
        User,
        rbac::{Rule, Wanted},
        token::{self, Bound, Claims, strings},
    },
    call::{Call, Reply},
    decode,
    object::{
        self,
        tree::{self, below},
    },
    registry::{self, Context, Terms},
    resource::Resource,
    status::{About, FieldError, Result, Status},
};

/// True if the resource is a review: its create is answered and never stored.
#[must_use]
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(
        resource.group.as_str(),
        "authentication.k8s.io" | "authorization.k8s.io"
    )
}

/// POST of a review.
pub(crate) fn answer(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let terms = Terms::of(cluster, call)?;
    let decoded = decode::body(
        &call.resource,
        &call.body,
        registry::media(call)?,
        terms.validation,
    )?;
    let mut review = Review {
        call,
        terms: &terms,
        spec: decoded.object.get("spec").cloned().unwrap_or_else(|| json!({})),
        metadata: decoded
            .object
            .get("metadata")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default(),
    };
    for kept_by_server in ["managedFields", "creationTimestamp", "uid", "resourceVersion"] {
        review.metadata.remove(kept_by_server);
    }
    let value = match call.resource.kind.as_str() {
        "SelfSubjectReview" => review.who_am_i(cluster),
        "TokenReview" => review.token(cluster)?,
        "SelfSubjectRulesReview" => review.rules(cluster)?,
        kind => review.access(cluster, kind)?,
    };
    Ok(Reply::Other {
        code: 201,
        value,
        warnings: decoded.warnings,
    })
}

struct Review<'a> {
    call: &'a Call,
    terms: &'a Terms,
    spec: Value,
    metadata: Map<String, Value>,
}

impl Review<'_> {
    fn made(self, status: &Value) -> Value {
        let mut review = json!({
            "kind": self.call.resource.kind, "apiVersion": self.call.resource.api_version(),
            "metadata": self.metadata, "status": status,
        });
        if self.call.resource.kind != "SelfSubjectReview" {
            review["spec"] = self.spec;
        }
        review
    }

    /// The same with the ownership of what was sent.
    fn owned(mut self) -> Self {
        let owned = owned(&self.spec);
        if !owned.is_empty() {
            let entry = json!([{"manager": self.terms.manager, "operation": "Update",
                "apiVersion": self.call.resource.api_version(), "time": self.terms.now,
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned}}]);
            self.metadata.insert("managedFields".to_owned(), entry);
        }
        self
    }

    fn who_am_i(mut self, cluster: &dyn Context) -> Value {
        self.metadata
            .insert("creationTimestamp".to_owned(), cluster.now().into());
        let status = json!({"userInfo": shown(&self.call.user)});
        self.made(&status)
    }

    fn token(self, cluster: &dyn Context) -> Result<Value> {
        let Some(token) = self.spec["token"].as_str().filter(|token| !token.is_empty()) else {
            return Err(Status::bad_request(
                "token is required for TokenReview in authentication",
            ));
        };
        let audiences = strings(&self.spec["audiences"]);
        let status = match cluster.access().auth.of_token(
            cluster.store(),
            cluster.timestamp(),
            token,
            &audiences,
        ) {
            Ok((user, audiences)) => {
                json!({"authenticated": true, "user": shown(&user.authenticated()), "audiences": audiences})
            }
            Err(error) => json!({"user": {}, "error": error}),
        };
        Ok(self.owned().made(&status))
    }

    fn access(mut self, cluster: &dyn Context, kind: &str) -> Result<Value> {
        let mut errors = Vec::new();
        let user = if kind == "SelfSubjectAccessReview" {
            self.call.user.clone()
        } else {
            let user = reviewed(&self.spec);
            if user.name.is_empty() && user.groups.is_empty() {
                errors.push(FieldError::invalid(
                    "spec.user",
                    "",
                    "at least one of user or group must be specified",
                ));
            }
            user
        };
        let (resource, path) = (
            &self.spec["resourceAttributes"],
            &self.spec["nonResourceAttributes"],
        );
        let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        match (resource.is_object(), path.is_object()) {
            (true, true) => {
                let value = json!({"Path": text(path, "path"), "Verb": text(path, "verb")});
                let detail = "cannot be specified in combination with resourceAttributes";
                errors.push(FieldError::invalid("spec.nonResourceAttributes", value, detail));
            }
            (false, false) => {
                let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                errors.push(FieldError::invalid(
                    "spec.resourceAttributes",
                    Value::Null,
                    detail,
                ));
            }
            _ => {}
        }
        if kind == "LocalSubjectAccessReview" {
            let namespace = &self.call.namespace;
            if resource.is_object() && text(resource, "namespace") != *namespace {
                let detail = "must match metadata.namespace";
                errors.push(FieldError::invalid(
                    "spec.resourceAttributes.namespace",
                    text(resource, "namespace"),
                    detail,
                ));
            }
            self.metadata
                .insert("namespace".to_owned(), namespace.clone().into());
        }
        if !errors.is_empty() {
            let about = About {
                group: "authorization.k8s.io",
                resource: "",
                name: "",
            };
            return Err(Status::invalid(about, &errors));
        }
        let (resource, path) = (
            &self.spec["resourceAttributes"],
            &self.spec["nonResourceAttributes"],
        );
        let field = |field: &str| text(if resource.is_object() { resource } else { path }, field);
        let words = [
            "verb",
            "group",
            "resource",
            "subresource",
            "name",
            "namespace",
            "path",
        ]
        .map(field);
        let wanted = Wanted {
            verb: &words[0],
            group: &words[1],
            resource: &words[2],
            subresource: &words[3],
            name: &words[4],
            namespace: &words[5],
            path: path.is_object().then_some(words[6].as_str()),
        };
        let status = if user.is_master() {
            json!({"allowed": true})
        } else {
            match cluster.access().rbac().allows(&user, &wanted) {
                Some(reason) => json!({"allowed": true, "reason": reason}),
                None => json!({"allowed": false}),
            }
        };
        Ok(self.owned().made(&status))
    }

    fn rules(mut self, cluster: &dyn Context) -> Result<Value> {
        let namespace = self.spec["namespace"].as_str().unwrap_or_default().to_owned();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let rules = cluster.access().rbac().rules_for(&self.call.user, &namespace);
        let (paths, resources): (Vec<&Rule>, Vec<&Rule>) =
            rules.iter().partition(|rule| !rule.non_resource_urls.is_empty());
        let list = |rules: Vec<&Rule>| rules.into_iter().map(Rule::to_value).collect::<Vec<_>>();
        let status =
            json!({"resourceRules": list(resources), "nonResourceRules": list(paths), "incomplete": false});
        self.spec = json!({});
        self.metadata = Map::new();
        Ok(self.made(&status))
    }
}

/// The subject of a SubjectAccessReview.
fn reviewed(spec: &Value) -> User {
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    User {
        name: text("user"),
        uid: text("uid"),
        groups: strings(&spec["groups"]),
        ..User::default()
    }
}

/// `UserInfo`.
fn shown(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.clone().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = user.groups.clone().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// `fieldsV1` of a spec: lists are owned as a whole, objects with what is in them, what is null not at all.
fn owned(spec: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    for (key, value) in spec
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !value.is_null())
    {
        let below = match value {
            Value::Object(_) => {
                let mut below = owned(value);
                below.insert(".".to_owned(), json!({}));
                below
            }
            _ => Map::new(),
        };
        fields.insert(format!("f:{key}"), Value::Object(below));
    }
    fields
}

/// Shortest and longest life of a token, in seconds.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

/// POST of `serviceaccounts/token`.
pub(crate) fn token_request(cluster: &dyn Context, call: &Call) -> Result<Reply> {
    let terms = Terms::of(cluster, call)?;
    let resource = crate::kinds::TOKEN_REQUEST.resource();
    let decoded = decode::body(&resource, &call.body, registry::media(call)?, terms.validation)?;
    let sent = |key: &str| object::field(&decoded.object, key);
    if !sent("namespace").is_empty() && sent("namespace") != call.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let about = About {
        group: "authentication.k8s.io",
        resource: "TokenRequest",
        name: &call.name,
    };
    if !sent("name").is_empty() && sent("name") != call.name {
        let detail = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", sent("name"), detail);
        return Err(Status::invalid(about, &[error]));
    }
    let account = registry::find(cluster.store(), &call.resource, &call.namespace, &call.name)?;
    let account = crate::resource::stored::decode(&account.object);
    let uid = object::field(&account, "uid").to_owned();
    let mut spec = decoded.object.get("spec").cloned().unwrap_or_else(|| json!({}));
    let given = owned(&spec);
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(3600);
    let mut errors = Vec::new();
    if seconds < SHORTEST {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid("spec.expirationSeconds", seconds, detail));
    }
    if seconds > LONGEST {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid("spec.expirationSeconds", seconds, detail));
    }
    if !errors.is_empty() {
        let about = About {
            group: "authentication.k8s.io",
            resource: "TokenRequest",
            name: "",
        };
        return Err(Status::invalid(about, &errors));
    }
    let mut audiences = strings(&spec["audiences"]);
    if audiences.is_empty() {
        audiences.push(token::ISSUER.to_owned());
    }
    let bound = bound_object(cluster, call, &spec["boundObjectRef"])?;
    let now = cluster.timestamp();
    let claims = Claims {
        namespace: &call.namespace,
        name: &call.name,
        uid: &uid,
        audiences: &audiences,
        now: now.as_second(),
        expires_in: seconds,
        bound: &bound,
    };
    let Some(token) = token::issue(cluster.access().auth.key(cluster.store()), &claims) else {
        return Err(Status::internal("failed to generate token"));
    };
    let until = jiff::Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(now);
    let mut owned = given;
    if strings(&spec["audiences"]).is_empty() {
        owned.remove("f:audiences");
    }
    // The field is sent without a value, too: only what is in it is new.
    if let Some(Value::Object(bound)) = owned.get_mut("f:boundObjectRef") {
        bound.remove(".");
    }
    owned.insert("f:expirationSeconds".to_owned(), json!({}));
    if !spec.is_object() {
        spec = json!({});
    }
    spec["audiences"] = audiences.into();
    spec["expirationSeconds"] = seconds.into();
    if spec.get("boundObjectRef").is_none() {
        spec["boundObjectRef"] = Value::Null;
    }
    let value = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": call.name, "namespace": call.namespace, "uid": uid, "creationTimestamp": terms.now,
            "managedFields": [{"manager": terms.manager, "operation": "Update", "apiVersion": "authentication.k8s.io/v1",
                "time": terms.now, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned}, "subresource": "token"}]},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
    });
    Ok(Reply::Other {
        code: 201,
        value,
        warnings: decoded.warnings,
    })
}

/// The object that a token is to be bound to, and the node of a pod.
fn bound_object(cluster: &dyn Context, call: &Call, reference: &Value) -> Result<Vec<Bound>> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    if !reference.is_object() {
        return Ok(Vec::new());
    }
    let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (word, collection) = match (api_version, kind) {
        ("v1", "Pod") => ("pod", "pods"),
        ("v1", "Secret") => ("secret", "secrets"),
        ("v1", "Node") => ("node", "nodes"),
        _ => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Status::bad_request(message));
        }
    };
    let key = if word == "node" {
        name.to_owned()
    } else {
        format!("{}/{name}", call.namespace)
    };
    let about = |resource| About {
        group: "",
        resource,
        name,
    };
    let Some(object) = cluster.get(collection, &key) else {
        return Err(Status::not_found(about(collection)));
    };
    let spec = below(&object, "spec");
    if word == "pod" && tree::text(spec, "serviceAccountName") != call.name {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name
        )));
    }
    let uid = object::field(&object, "uid");
    let given = text("uid");
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the bound object reference ({given}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(about(kind), &why));
    }
    let mut bound = vec![Bound {
        kind: word,
        name: name.to_owned(),
        uid: uid.to_owned(),
    }];
    let node = tree::text(spec, "nodeName");
    if word == "pod" && !node.is_empty() {
        let there = cluster.get("nodes", node).unwrap_or_default();
        bound.push(Bound {
            kind: "node",
            name: node.to_owned(),
            uid: object::field(&there, "uid").to_owned(),
        });
    }
    Ok(bound)
}
