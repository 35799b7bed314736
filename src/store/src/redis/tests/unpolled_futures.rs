//! Futures that are not polled for a while: an actor that waits for one future polls no other.

use std::future::poll_fn;
use std::task::Poll;

use sakshi_domain::ids::ClientId;

use super::test_store;
use crate::conformance::{TestStore, run};

#[test]
fn an_unpolled_future_blocks_no_other() {
    run(async {
        let test = test_store();
        // The first call of a thread opens connections, and is not polled meanwhile.
        let mut first = test.store().balance(ClientId::generate());
        let waits = poll_fn(|task| Poll::Ready(first.as_mut().poll(task).is_pending())).await;
        assert!(waits, "the future needs a reply of the server");
        for _ in 0..4 {
            assert_eq!(test.store().balance(ClientId::generate()).await, Ok(None));
        }
        assert_eq!(first.await, Ok(None));
    });
}
