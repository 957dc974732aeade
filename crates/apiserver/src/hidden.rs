//! Debug output of types that may hold a Secret: their name, and nothing of their content.

/// Implements `Debug` for types: their name alone.
macro_rules! without_content {
    ($($type:ty),+ $(,)?) => {
        $(impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($type), " { .. }"))
            }
        })+
    };
}

pub(crate) use without_content;

#[cfg(test)]
mod tests {
    use std::{fmt::Debug, sync::Arc};

    use serde_json::json;

    use crate::{
        call::{Call, Item, Reply},
        cluster::Cluster,
        decode::{Decoded, Media, envelope},
        delete::Deleted,
        object::Object,
        query::Query,
        read::{json::Node, yaml},
        server::Options,
        store::{Entry, Event, Happened},
        watch::Frame,
    };

    const CANARY: &str = "c4n4ry";

    fn secret() -> Object {
        let secret = json!({"metadata": {"name": "s"}, "data": {"k": CANARY}});
        secret.as_object().expect("an object").clone()
    }

    fn unresponsive(what: &str, value: &dyn Debug) {
        for text in [format!("{value:?}"), format!("{value:#?}")] {
            assert!(!text.contains(CANARY), "{what}: {text}");
            // Not as a list of bytes either.
            let bytes: Vec<String> = CANARY.bytes().map(|byte| byte.to_string()).collect();
            assert!(!text.contains(&bytes.join(", ")), "{what}: {text}");
        }
    }

    #[test]
    fn nothing_that_holds_objects_or_tokens_shows_them_when_it_is_debugged() {
        let cluster = Cluster::bare(Options {
            admin_token: CANARY.to_owned(),
            ..Options::default()
        });
        let text = json!(secret()).to_string();
        let entry = Arc::new(Entry {
            key: "n/s".to_owned(),
            revision: 3,
            created: 3,
            object: text.clone().into(),
        });
        let call = Call {
            method: http::Method::PUT,
            resource: cluster
                .inner()
                .kinds()
                .find("", "v1", "secrets")
                .expect("served")
                .clone(),
            namespace: "n".to_owned(),
            name: "s".to_owned(),
            subresource: String::new(),
            query: Query::parse(""),
            user: crate::auth::User::default(),
            agent: String::new(),
            content_type: None,
            body: text.clone().into(),
        };
        let event = Event {
            happened: Happened::Modified,
            entry: entry.clone(),
            previous: Some(entry.clone()),
        };
        let object = Reply::Object {
            code: 200,
            item: Item::Made(secret()),
            warnings: Vec::new(),
        };
        let list = Reply::List {
            items: vec![Item::Made(secret()), Item::Stored(entry.clone())],
            revision: 3,
            next: String::new(),
            remaining: None,
        };
        let other = Reply::Other {
            code: 201,
            value: json!({"status": {"token": CANARY}}),
            warnings: Vec::new(),
        };
        let decoded = Decoded {
            object: secret(),
            warnings: Vec::new(),
        };
        let all: [(&str, &dyn Debug); 17] = [
            ("Cluster", &cluster),
            ("Options", &cluster.inner().options),
            ("Service", &cluster.service().with_token(CANARY)),
            ("Call", &call),
            ("Entry", &entry),
            ("Event", &event),
            ("Item", &Item::Made(secret())),
            ("Reply::Object", &object),
            ("Reply::List", &list),
            ("Reply::Other", &other),
            ("Frame", &Frame::Object("ADDED", Item::Made(secret()))),
            ("Decoded", &decoded),
            (
                "Deleted::Gone",
                &Deleted::Gone(String::new(), Item::Made(secret())),
            ),
            ("Deleted::Waits", &Deleted::Waits(Item::Made(secret()))),
            ("Node", &Node::parse(text.as_bytes())),
            ("Document", &yaml::parse(text.as_bytes())),
            ("Read", &envelope::read(text.as_bytes(), Media::Json)),
        ];
        for (what, value) in all {
            unresponsive(what, value);
        }
    }
}
