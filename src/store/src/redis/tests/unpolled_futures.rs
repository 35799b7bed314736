//! Answers that nobody looks at for a while: an actor that waits for one thing looks at nothing else.

use std::future::poll_fn;
use std::task::Poll;

use sakshi_domain::ids::ClientId;

use super::universe;
use crate::conformance::{World, run};

#[test]
fn an_answer_that_nobody_looks_at_holds_up_nobody_else() {
    run(async {
        let world = universe();
        // The first call of a thread opens its connections, and was left alone in the middle of that.
        let mut first = world.store().balance(ClientId::generate());
        let waits = poll_fn(|task| Poll::Ready(first.as_mut().poll(task).is_pending())).await;
        assert!(waits, "it needs a server's answer");
        for _ in 0..4 {
            assert_eq!(world.store().balance(ClientId::generate()).await, Ok(None));
        }
        assert_eq!(first.await, Ok(None));
    });
}
