//! The requests to the hub before a ResourceDistribution is admitted: is its author allowed to write the copies, and would a
//! server accept a copy. The core defines the requests and evaluates the responses.

use std::{collections::BTreeSet, time::Duration};

use entourage_admission::{
    Refusal,
    inquiry::{self, Access, Answer, Inquiry, Trial},
};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::task::JoinSet;

use crate::review::Author;

/// The number of concurrent requests about rights.
const AT_ONCE: usize = 32;

/// The client of the hub for these requests.
#[derive(Clone)]
pub(crate) struct Distributions {
    client: Client,
    /// The namespace for the dry runs of copies: one of ours.
    namespace: String,
    /// True if the rights of authors are checked.
    authorize: bool,
}

/// The reason why a write is denied.
#[derive(Debug)]
pub(crate) enum Denial {
    /// The author lacks rights, or a server would refuse the copy.
    Refused(Refusal),
    /// The rights of the author are unknown.
    Unknown(String),
}

impl Distributions {
    pub(crate) const fn new(client: Client, namespace: String, authorize: bool) -> Self {
        Self {
            client,
            namespace,
            authorize,
        }
    }

    /// Returns warnings for the author. A server that does not respond about a copy is no reason to refuse; one that does not
    /// respond about rights is.
    ///
    /// # Errors
    /// The reason why the write is denied.
    pub(crate) async fn validated(
        &self,
        inquiry: &Inquiry,
        author: &Author,
        timeout: Duration,
    ) -> Result<Vec<String>, Denial> {
        let authorized = async {
            let late = || Err(Denial::Unknown(inquiry::unknown_rights(&author.username, LATE)));
            let asked = tokio::time::timeout(timeout, self.authorized(inquiry, author));
            asked.await.unwrap_or_else(|_| late())
        };
        let tried = async {
            let Some(trial) = &inquiry.trial else {
                return Answer::Taken;
            };
            let answer = tokio::time::timeout(timeout, self.tried(trial));
            answer.await.unwrap_or(Answer::Silence)
        };
        let (authorized, tried) = tokio::join!(authorized, tried);
        authorized?;
        let warning = inquiry::tried(&tried).map_err(Denial::Refused)?;
        Ok(warning.into_iter().collect())
    }

    async fn authorized(&self, inquiry: &Inquiry, author: &Author) -> Result<(), Denial> {
        let rights = &inquiry.rights;
        if !self.authorize || rights.are_none() {
            return Ok(());
        }
        let first: Vec<Access> = rights.needed.iter().chain(&rights.everywhere).cloned().collect();
        let mut denied = self.denied(&first, author).await?;
        if let Some(by_name) = &rights.by_name
            && denied.iter().any(|access| rights.everywhere.contains(access))
        {
            denied.retain(|access| rights.needed.contains(access));
            denied.extend(self.denied(by_name, author).await?);
        }
        if denied.is_empty() {
            return Ok(());
        }
        Err(Denial::Refused(rights.refusal(&author.username, &denied)))
    }

    /// The rights that an author lacks, in their order.
    async fn denied(&self, wanted: &[Access], author: &Author) -> Result<Vec<Access>, Denial> {
        let mut lacking = BTreeSet::new();
        for (at, some) in wanted.chunks(AT_ONCE).enumerate() {
            let mut asked = JoinSet::new();
            for (place, access) in some.iter().enumerate() {
                let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
                let question = question(access, author);
                asked.spawn(async move {
                    let answer = api.create(&PostParams::default(), &question).await;
                    (at * AT_ONCE + place, answer)
                });
            }
            while let Some(answer) = asked.join_next().await {
                let (place, why) = match answer {
                    Ok((place, Ok(review))) => match review.status {
                        Some(status) if status.allowed => continue,
                        Some(_) => (place, None),
                        None => (place, Some("the response has no status".to_owned())),
                    },
                    Ok((place, Err(error))) => (place, Some(describe(&error))),
                    Err(_) => (0, Some("the question was dropped".to_owned())),
                };
                if let Some(why) = why {
                    return Err(Denial::Unknown(inquiry::unknown_rights(&author.username, &why)));
                }
                lacking.insert(place);
            }
        }
        let lacking = lacking.into_iter().filter_map(|place| wanted.get(place).cloned());
        Ok(lacking.collect())
    }

    /// Creates a copy as a dry run.
    async fn tried(&self, trial: &Trial) -> Answer {
        let path = format!("/api/v1/namespaces/{}/{}", self.namespace, trial.plural);
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let request = serde_json::to_vec(trial.object.object())
            .ok()
            .and_then(|body| kube::core::Request::new(path).create(&params, body).ok());
        let Some(request) = request else {
            return Answer::Silence;
        };
        match self.client.request_text(request).await {
            Ok(_) => Answer::Taken,
            // A server validates an object before it compares it with the existing one.
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Answer::Taken,
            Err(kube::Error::Api(status)) => {
                let causes = status.details.iter().flat_map(|details| &details.causes);
                let fields = causes.map(|cause| (cause.field.clone(), cause.reason.clone()));
                Answer::Error(status.code, status.reason.clone(), fields.collect())
            }
            Err(_) => Answer::Silence,
        }
    }
}

const LATE: &str = "the hub does not respond in time";

fn question(access: &Access, author: &Author) -> SubjectAccessReview {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    SubjectAccessReview {
        metadata: ObjectMeta::default(),
        spec: SubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                verb: Some(access.verb.to_owned()),
                version: Some("v1".to_owned()),
                resource: Some(access.plural.to_owned()),
                namespace: given(&access.namespace),
                name: given(&access.name),
                ..ResourceAttributes::default()
            }),
            user: given(&author.username),
            uid: given(&author.uid),
            groups: Some(author.groups.clone()),
            extra: Some(author.extra.clone()).filter(|extra| !extra.is_empty()),
            ..SubjectAccessReviewSpec::default()
        },
        status: None,
    }
}

/// Describes a failed request about rights, without any content of an object.
fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        _ => "the hub does not respond".to_owned(),
    }
}
