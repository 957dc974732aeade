//! Long requests let others have their turn.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::ask;
use entourage_apiserver::{Cluster, Options};
use serde_json::{Value, json};

#[tokio::test]
async fn others_get_their_turn_while_a_collection_is_deleted() {
    const ADMIN: &str = "the-admin";
    let cluster = Cluster::new(Options {
        admin_token: ADMIN.to_owned(),
        ..Options::default()
    });
    let path = "/api/v1/namespaces/default/configmaps";
    for at in 0..200 {
        let object = json!({"metadata": {"name": format!("c-{at}")}});
        assert_eq!(ask(&cluster, ADMIN, "POST", path, &object).await.0, 201);
    }
    let (done, left) = (AtomicBool::new(false), AtomicUsize::new(usize::MAX));
    let deletes = async {
        let (code, list) = ask(&cluster, ADMIN, "DELETE", path, &Value::Null).await;
        done.store(true, Ordering::Relaxed);
        (code, list["items"].as_array().map(Vec::len))
    };
    let others = async {
        let mut turns = 0;
        while !done.load(Ordering::Relaxed) {
            let now = cluster.store().list("configmaps", "", None, 0).entries.len();
            if left.swap(now, Ordering::Relaxed) != now {
                turns += 1;
            }
            tokio::task::yield_now().await;
        }
        turns
    };
    let ((code, deleted), turns) = tokio::join!(deletes, others);
    assert_eq!((code, deleted), (200, Some(200)));
    assert!(turns > 2, "{turns}");
}
