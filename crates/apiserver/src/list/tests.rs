//! Lists: revisions, pages and tokens, against a model.

use serde_json::json;

use super::*;
use crate::{
    auth::User,
    query::Query,
    server::{Server, tests_support::bare},
    store::Expect,
};

fn call(query: &str) -> Call {
    let kinds = crate::kinds::builtin();
    Call {
        method: http::Method::GET,
        resource: kinds.find("", "v1", "configmaps").unwrap().clone(),
        namespace: "n".to_owned(),
        name: String::new(),
        subresource: String::new(),
        query: Query::parse(query),
        user: User::default(),
        agent: String::new(),
        content_type: None,
        body: bytes::Bytes::new(),
    }
}

fn put(cluster: &Arc<Server>, name: &str, odd: bool) -> Revision {
    let labels = if odd { json!({"odd": "yes"}) } else { json!({}) };
    let object = json!({"metadata": {"namespace": "n", "name": name, "labels": labels}}).to_string();
    let store = &cluster.store;
    let key = format!("n/{name}");
    store
        .put("configmaps", &key, Expect::Absent, |_| object.into())
        .unwrap()
        .revision
}

/// Names, continue token, what remains, revision.
async fn listed(
    cluster: &Arc<Server>,
    query: &str,
) -> Result<(Vec<String>, String, Option<usize>, Revision)> {
    let Reply::List {
        items,
        revision,
        next,
        remaining,
    } = list(&cluster.store, &call(query)).await?
    else {
        panic!()
    };
    let names = items.iter().map(|item| match item {
        Item::Stored(entry) => entry.key[2..].to_owned(),
        Item::Made(_) => panic!(),
    });
    Ok((names.collect(), next, remaining, revision))
}

#[tokio::test]
async fn pages_with_a_selector_are_full_and_do_not_tell_what_remains() {
    let cluster = bare();
    for (at, name) in ["a", "b", "c", "d", "e"].iter().enumerate() {
        put(&cluster, name, at % 2 == 0);
    }
    let (names, next, remaining, first) = listed(&cluster, "limit=2&labelSelector=odd").await.unwrap();
    assert_eq!((names, remaining), (vec!["a".to_owned(), "c".to_owned()], None));
    put(&cluster, "f", true);
    let query = format!("limit=2&labelSelector=odd&continue={next}");
    let (names, next, _, revision) = listed(&cluster, &query).await.unwrap();
    assert_eq!(
        (names, next.as_str(), revision),
        (vec!["e".to_owned()], "", first)
    );
}

#[tokio::test]
async fn a_forgotten_page_gives_a_token_for_the_latest_state() {
    let cluster = bare();
    for name in ["a", "b", "c"] {
        put(&cluster, name, true);
    }
    let (_, next, remaining, _) = listed(&cluster, "limit=1").await.unwrap();
    assert_eq!(remaining, Some(2));
    let last = put(&cluster, "bb", true);
    cluster.store.compact(last);
    let status = listed(&cluster, &format!("limit=1&continue={next}"))
        .await
        .unwrap_err();
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let fresh = status.metadata["continue"].as_str().unwrap();
    let (names, _, _, revision) = listed(&cluster, &format!("continue={fresh}")).await.unwrap();
    assert_eq!(names, ["b", "bb", "c"]);
    assert_eq!(revision, last);
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_for_a_revision_that_is_about_to_come() {
    let cluster = bare();
    let next = put(&cluster, "a", true) + 1;
    let query = format!("resourceVersion={next}");
    let (found, revision) = tokio::join!(listed(&cluster, &query), async { put(&cluster, "b", true) });
    assert_eq!(revision, next);
    assert_eq!(found.unwrap().0, ["a", "b"]);
    let late = listed(&cluster, &format!("resourceVersion={}", next + 1))
        .await
        .unwrap_err();
    assert_eq!((late.code, late.retry_after), (504, Some(1)));
    assert_eq!(
        late.message,
        format!(
            "Timeout: Too large resource version: {}, current: {next}",
            next + 1
        )
    );
}

#[tokio::test]
async fn numbers_that_are_none_are_reported_in_the_servers_words() {
    let cluster = bare();
    let cases = [
        ("limit=", "strconv.ParseInt: parsing \"\": invalid syntax"),
        (
            "limit=99999999999999999999",
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
        (
            "timeoutSeconds=1s",
            "strconv.ParseInt: parsing \"1s\": invalid syntax",
        ),
        (
            "resourceVersion=%2B1",
            "invalid resource version: resourceVersion: Invalid value: \"+1\": strconv.ParseUint: parsing \"+1\": invalid syntax",
        ),
        (
            "resourceVersion=18446744073709551616",
            "invalid resource version: resourceVersion: Invalid value: \"18446744073709551616\": strconv.ParseUint: parsing \"18446744073709551616\": value out of range",
        ),
    ];
    for (query, expected) in cases {
        let status = listed(&cluster, query).await.unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (400, expected), "{query}");
    }
}
