//! Faults in the body of a watch, frame by frame.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use serde_json::Value;
use tower::BoxError;

use super::decide::{self, FrameFate};
use super::life::Crashed;
use super::{Faults, ResponseBody, answer};

/// The number of events that are kept for each object.
const HISTORY: usize = 4;

/// The time that a stalled watch sends nothing before its connection breaks.
pub(super) const STALL: Duration = Duration::from_secs(2);

/// A frame about an object, a Secret perhaps: no Debug.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// With its newline.
    line: Bytes,
    deleted: bool,
    uid: String,
}

/// Hands `body` on until its generation dies.
pub(super) fn mortal<B>(body: B, faults: &Faults, generation: u64) -> ResponseBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Frames::new(body, faults, generation, None).into_body()
}

/// Hands a watch's `body` on, frame by frame and under the plan, until its generation dies. `key` names the watch, its
/// scope included.
pub(super) fn watch<B>(body: B, faults: &Faults, generation: u64, key: String) -> ResponseBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Frames::new(body, faults, generation, Some(key)).into_body()
}

struct Frames<B> {
    body: Pin<Box<B>>,
    faults: Faults,
    generation: u64,
    /// None: no watch, nothing is looked at.
    key: Option<String>,
    /// Read and not yet a whole line.
    unread: BytesMut,
    steps: VecDeque<Step>,
    ended: bool,
}

/// The next action towards the reader.
enum Step {
    Wait(Duration),
    Give(Bytes),
    End,
    Break,
}

impl<B> Frames<B>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn new(body: B, faults: &Faults, generation: u64, key: Option<String>) -> Self {
        Self {
            body: Box::pin(body),
            faults: faults.clone(),
            generation,
            key,
            unread: BytesMut::new(),
            steps: VecDeque::new(),
            ended: false,
        }
    }

    fn into_body(self) -> ResponseBody {
        let frames = stream::unfold(self, |mut frames| async move {
            let life = frames.faults.clone();
            let next = tokio::select! {
                biased;
                () = life.0.life.died(frames.generation), if !frames.ended => Some(Err(Crashed.into())),
                next = frames.next() => next,
            };
            if matches!(next, Some(Err(_))) {
                frames.ended = true;
                frames.steps.clear();
            }
            next.map(|item| (item, frames))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        loop {
            match self.steps.pop_front() {
                Some(Step::Wait(time)) => tokio::time::sleep(time).await,
                Some(Step::Give(line)) => return Some(Ok(Frame::data(line))),
                Some(Step::End) => self.ended = true,
                Some(Step::Break) => return Some(Err(answer::broken().into())),
                None if self.ended => return None,
                None => match self.read().await {
                    Some(Ok(())) => {}
                    Some(Err(error)) => return Some(Err(error)),
                    None => self.ended = true,
                },
            }
        }
    }

    /// Reads once and plans the steps of what came. None at the end of the body.
    async fn read(&mut self) -> Option<Result<(), BoxError>> {
        let data = match self.body.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => return Some(Err(error.into())),
            None if self.unread.is_empty() => return None,
            None => {
                self.steps.push_back(Step::Give(self.unread.split().freeze()));
                return None;
            }
        };
        let Some(key) = self.key.clone() else {
            self.steps.push_back(Step::Give(data));
            return Some(Ok(()));
        };
        self.unread.extend_from_slice(&data);
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line = self.unread.split_to(end + 1).freeze();
            if !plan_line(&self.faults, &key, line, &mut self.steps) {
                break;
            }
        }
        Some(Ok(()))
    }
}

/// Adds to `steps` what becomes of one line. False: the watch ends with it.
fn plan_line(faults: &Faults, key: &str, line: Bytes, steps: &mut VecDeque<Step>) -> bool {
    let Some((name, event)) = read_event(&line) else {
        // Bookmarks and errors belong to no object.
        steps.push_back(Step::Give(line));
        return true;
    };
    let key = format!("{key} frame {name}");
    let decision = decide::frame(faults.plan(), &key, faults.ordinal(&key));
    if !decision.delay.is_zero() {
        steps.push_back(Step::Wait(decision.delay));
    }
    let (twice, stale) = match decision.fate {
        FrameFate::Cut => {
            faults.recorder().struck("watch-cut");
            steps.push_back(Step::End);
            return false;
        }
        FrameFate::Gone => {
            faults.recorder().struck("watch-gone");
            steps.extend([Step::Give(answer::gone_frame()), Step::End]);
            return false;
        }
        FrameFate::Stall => {
            faults.recorder().struck("watch-stall");
            steps.extend([Step::Wait(STALL), Step::Break]);
            return false;
        }
        FrameFate::Drop => {
            faults.recorder().struck("watch-drop");
            return true;
        }
        FrameFate::Deliver { twice, stale } => (twice, stale),
    };
    steps.push_back(Step::Give(line.clone()));
    if twice {
        faults.recorder().struck("watch-repeat");
        steps.push_back(Step::Give(line));
    }
    let older = faults.remember(&key, &event);
    if let Some(which) = stale
        && !older.is_empty()
    {
        faults.recorder().struck("watch-stale");
        let late = &older[(which % older.len() as u64) as usize];
        steps.push_back(Step::Give(late.line.clone()));
        // Versions tell a reader which of two states of one object is older. Between an object and its successor of the
        // same name, or its end, nothing in the frames needs to: the truth comes once more, as it would from a server.
        if late.deleted || event.deleted || late.uid != event.uid {
            steps.push_back(Step::Give(event.line));
        }
    }
    true
}

/// The object's kind, namespace and name in one word, and the frame. None for what is about no object.
fn read_event(line: &Bytes) -> Option<(String, Event)> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let kind = value["type"].as_str()?;
    if !matches!(kind, "ADDED" | "MODIFIED" | "DELETED") {
        return None;
    }
    let object = &value["object"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let name = format!(
        "{} {}/{}",
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"])
    );
    Some((
        name,
        Event {
            line: line.clone(),
            deleted: kind == "DELETED",
            uid: text(&metadata["uid"]),
        },
    ))
}

impl Faults {
    /// Stores a frame that was delivered. Returns the stored ones that are older and different.
    fn remember(&self, key: &str, event: &Event) -> Vec<Event> {
        if self.plan().watch_stale.millionths() == 0 {
            return Vec::new();
        }
        let mut counters = self.counters();
        let history = counters.history.entry(key.to_owned()).or_default();
        history.retain(|older| older != event);
        let older = history.iter().cloned().collect();
        history.push_back(event.clone());
        if history.len() > HISTORY {
            history.pop_front();
        }
        older
    }
}
