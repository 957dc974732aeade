//! Tasks against scripted answers, for their tables of tests.

use serde_json::Value;

use super::{Answer, Applied, ApplyTask, Fetched, Next, Request, RequestError};

/// The requests and the outcome of a task.
pub(crate) struct Walk<O> {
    /// The requests: the name, and the resourceVersion that a PUT or a DELETE depends on.
    pub(crate) requests: String,
    /// The versions of the live object that the sender rendered for; "none" for a POST.
    pub(crate) rendered: Vec<String>,
    /// The resourceVersions of the objects that were observed on the way.
    pub(crate) seen: Vec<String>,
    pub(crate) outcome: O,
    /// The object that was sent last.
    pub(crate) sent: Value,
}

/// Answers the requests of a task, one after the other, until it has ended. Each answer must be asked for.
pub(crate) fn walk<A: Applied>(
    begun: (ApplyTask<A>, Next<A::Outcome>),
    answers: impl IntoIterator<Item = Answer>,
) -> Walk<A::Outcome> {
    walk_rendering(begun, answers, |_| panic!("it is rendered by the task"))
}

/// As [`walk`], for objects that the sender renders.
pub(crate) fn walk_rendering<A: Applied>(
    (mut task, mut next): (ApplyTask<A>, Next<A::Outcome>),
    answers: impl IntoIterator<Item = Answer>,
    render: impl Fn(Option<&Value>) -> Answer,
) -> Walk<A::Outcome> {
    let mut answers = answers.into_iter();
    let (mut requests, mut rendered, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let mut sent = Value::Null;
    let outcome = loop {
        let answer = match next {
            Next::End(outcome) => break outcome,
            Next::Ask(Request::Render) => {
                rendered.push(task.live().map_or("none".into(), version));
                render(task.live())
            }
            Next::Ask(request) => {
                requests.push(name(&request));
                if let Request::Create(object) | Request::Replace(object) = &request {
                    sent = object.object().clone();
                }
                answers.next().expect("no more requests than answers")
            }
        };
        let turn = task.answered(answer);
        seen.extend(turn.seen.map(|seen| version(&seen.0)));
        next = turn.next;
    };
    assert!(answers.next().is_none(), "it ended early, after {requests:?}");
    Walk {
        requests: requests.join(", "),
        rendered,
        seen,
        outcome,
        sent,
    }
}

fn name(request: &Request) -> String {
    match request {
        Request::Render => "render".into(),
        Request::Read => "GET".into(),
        Request::Look => "GET metadata".into(),
        Request::Create(_) => "POST".into(),
        Request::Replace(object) => {
            assert!(
                object.object()["metadata"]["uid"].is_string(),
                "a PUT names its object"
            );
            format!("PUT {}", version(object.object()))
        }
        Request::Delete(preconditions) => format!("DELETE {}", preconditions.resource_version),
    }
}

fn version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.expect("a resourceVersion").to_owned()
}

pub(crate) fn object(object: Value) -> Answer {
    Answer::Object(Fetched(object))
}

/// An error with the message "why".
pub(crate) fn no(no: RequestError) -> Answer {
    Answer::Failed(no, "why".into())
}
