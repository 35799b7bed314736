//! Shards and their supervisors, tested with an actor that obeys commands.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext as _, Addr, Context, Handler, Message, MessageResult, Supervised};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::yield_now;
use tokio::time::{Instant, advance};

use crate::shard_failures::StartOver;
use crate::wheel::TICK;
use crate::{Deadline, Escalation, LastPanic, NodeView, Root, Shard, ShardActor, ShardBounds, Shards, note_panic};

/// Number of a shard, and a number within it.
type Id = u16;

thread_local! {
    /// Number of steps of all wheels of this thread; each reads the time once.
    static STEPS: Cell<u32> = const { Cell::new(0) };
}

/// An actor that obeys [`Command`]s.
#[derive(Debug)]
pub(crate) struct Obedient;

impl Actor for Obedient {
    type Context = Context<Self>;
}

impl Supervised for Obedient {}

impl ShardActor for Obedient {
    type Id = Id;
    type Shared = ();
    const KIND: &'static str = "obedient";

    fn random_byte(id: &Id) -> u8 {
        id.to_le_bytes()[0]
    }

    fn shard_byte(id: &Id) -> u8 {
        id.to_le_bytes()[1]
    }

    fn now_millis((): &()) -> i64 {
        STEPS.set(STEPS.get() + 1);
        0
    }
}

impl Handler<Deadline> for Obedient {
    type Result = ();

    fn handle(&mut self, _: Deadline, _: &mut Self::Context) {}
}

/// A command to an actor.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
enum Command {
    Answer,
    Panic,
    Stop,
}

impl Handler<Command> for Obedient {
    type Result = ();

    fn handle(&mut self, command: Command, ctx: &mut Self::Context) {
        match command {
            Command::Answer => {}
            Command::Panic => panic!("as commanded"),
            Command::Stop => ctx.stop(),
        }
    }
}

impl Handler<Command> for Shard<Obedient> {
    type Result = ();

    fn handle(&mut self, command: Command, _: &mut Self::Context) {
        assert!(matches!(command, Command::Answer), "as commanded");
    }
}

/// Starts an actor.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Addr<Obedient>")]
struct Start(Id);

impl Handler<Start> for Shard<Obedient> {
    type Result = MessageResult<Start>;

    fn handle(&mut self, Start(id): Start, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.start_child(id, Obedient))
    }
}

/// Sets a timer of this actor that never comes due.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
struct SetTimer(Id);

impl Handler<SetTimer> for Shard<Obedient> {
    type Result = ();

    fn handle(&mut self, SetTimer(id): SetTimer, _: &mut Self::Context) {
        self.wake_at(id, i64::MAX);
    }
}

/// Asks which of these actors the shard knows, and whether it is full.
#[derive(Clone, Debug, Message)]
#[rtype(result = "(Vec<Id>, bool)")]
struct ListKnown(Vec<Id>);

impl Handler<ListKnown> for Shard<Obedient> {
    type Result = MessageResult<ListKnown>;

    fn handle(&mut self, ListKnown(ids): ListKnown, _: &mut Self::Context) -> Self::Result {
        let known = ids.into_iter().filter(|id| self.get(id).is_some()).collect();
        MessageResult((known, self.is_full()))
    }
}

/// Runs a test in an actix system whose time is paused.
pub(crate) fn in_a_system(test: impl Future<Output = ()>) {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    actix_rt::System::with_tokio_rt(runtime).block_on(test);
}

/// Builds shards under a root of their own, with the root's escalations.
fn shards(count: usize, live: usize) -> (Arc<Shards<Obedient>>, Root, UnboundedReceiver<Escalation>) {
    let (root, escalations) = Root::new();
    let shards = Shards::new(&root, "shard", "registry", (), ShardBounds { shards: count, live, requests: 10 });
    (shards, root, escalations)
}

/// Returns a snapshot of the root's first child, which is the first shard in most tests.
fn first_child(root: &Root) -> NodeView {
    root.view().children.swap_remove(0)
}

/// Lets everything run that needs no time to pass.
async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[test]
fn the_first_restart_is_at_once_and_the_second_after_a_pause() {
    in_a_system(async {
        let (shards, ..) = shards(1, 10);
        shards.start_here();
        let child = shards.get(0).unwrap().send(Start(1)).await.unwrap();
        let began = Instant::now();
        for pause in [0, 10, 20].map(Duration::from_millis) {
            let before = Instant::now();
            assert!(child.send(Command::Panic).await.is_err());
            child.send(Command::Answer).await.unwrap();
            assert_eq!(before.elapsed(), pause, "after {:?}", began.elapsed());
        }
        assert!(child.send(Command::Panic).await.is_err());
        assert!(child.send(Command::Answer).await.is_err(), "it is given up");
    });
}

#[test]
fn an_actor_that_has_ended_is_removed_from_its_shard() {
    in_a_system(async {
        let (shards, root, _escalations) = shards(1, 2);
        assert_eq!(shards.start_here(), Some(0));
        let shard = shards.get(0).unwrap();
        let child = shard.send(Start(1)).await.unwrap();
        assert_eq!(shard.send(ListKnown(vec![1, 2])).await.unwrap(), (vec![1], false));
        shard.send(Start(2)).await.unwrap();
        assert_eq!(shard.send(ListKnown(vec![1, 2])).await.unwrap(), (vec![1, 2], true));
        assert_eq!(shards.live(), 2);
        child.do_send(Command::Stop);
        settle().await;
        assert_eq!(shard.send(ListKnown(vec![1, 2])).await.unwrap(), (vec![2], false));
        assert_eq!(first_child(&root).live, 1);
    });
}

#[test]
fn a_shard_that_panics_or_starts_over_forgets_its_actors() {
    in_a_system(async {
        let (shards, root, _escalations) = shards(1, 2);
        shards.start_here();
        let shard = shards.get(0).unwrap();
        for (restarts, fails) in [(1, true), (2, false)] {
            let child = shard.send(Start(1)).await.unwrap();
            if fails {
                assert!(shard.send(Command::Panic).await.is_err());
            } else {
                shard.send(StartOver).await.unwrap();
            }
            assert_eq!(shard.send(ListKnown(vec![1])).await.unwrap(), (vec![], false));
            assert!(child.send(Command::Answer).await.is_err(), "a new actor may have its id");
            settle().await;
            let NodeView { restarts: seen, live, .. } = first_child(&root);
            assert_eq!((seen, live), (restarts, 0));
        }
    });
}

#[test]
fn a_shard_that_starts_over_turns_a_single_wheel() {
    in_a_system(async {
        let (shards, _root, _escalations) = shards(1, 2);
        shards.start_here();
        let shard = shards.get(0).unwrap();
        shard.send(SetTimer(1)).await.unwrap();
        settle().await;
        shard.send(StartOver).await.unwrap();
        shard.send(SetTimer(2)).await.unwrap();
        settle().await;
        let before = STEPS.get();
        for _ in 0..4 {
            advance(TICK + Duration::from_millis(1)).await;
            settle().await;
        }
        assert_eq!(STEPS.get() - before, 4);
    });
}

#[test]
fn a_node_shows_place_request_and_count_of_its_last_panic() {
    // The process has one hook, so panics of other tests keep the one before.
    let (before, own_thread) = (std::panic::take_hook(), std::thread::current().id());
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == own_thread {
            note_panic(panic.location(), Some("order-42".to_owned()));
        } else {
            before(panic);
        }
    }));
    in_a_system(async {
        let (shards, root, _escalations) = shards(1, 2);
        shards.start_here();
        let shard = shards.get(0).unwrap();
        assert_eq!(first_child(&root).last_panic, None);
        for (id, count) in [(1, 1), (1, 2), (2, 3)] {
            let child = shard.send(Start(id)).await.unwrap();
            assert!(child.send(Command::Panic).await.is_err());
            let LastPanic { place, request_id, count: seen, .. } = first_child(&root).last_panic.unwrap();
            assert_eq!((request_id.as_deref(), seen), (Some("order-42"), count));
            assert!(place.starts_with("actors/supervision/src/tests.rs:"), "{place}");
        }
        assert!(shard.send(Command::Panic).await.is_err());
        assert_eq!(first_child(&root).last_panic.map(|last| last.count), Some(1), "elsewhere");
    });
}

#[test]
fn the_age_of_a_node_counts_from_its_last_restart() {
    in_a_system(async {
        let (root, _escalations) = Root::new();
        let single = root.start(&actix_rt::Arbiter::current(), "single", "obedient", || Obedient);
        single.send(Command::Answer).await.unwrap();
        advance(Duration::from_secs(7)).await;
        assert_eq!((root.view().age_s, first_child(&root).age_s), (Some(7), Some(7)));
        assert!(single.send(Command::Panic).await.is_err());
        assert_eq!((root.view().age_s, first_child(&root).age_s), (Some(7), Some(0)));
        single.do_send(Command::Stop);
        settle().await;
        assert_eq!((first_child(&root).state, first_child(&root).age_s), ("down", None));
    });
}

#[test]
fn a_shard_that_keeps_panicking_escalates_and_does_not_count_itself() {
    in_a_system(async {
        let (shards, root, mut escalations) = shards(1, 2);
        shards.start_here();
        let shard = shards.get(0).unwrap();
        for _ in 0..4 {
            assert!(escalations.try_recv().is_err());
            assert!(shard.send(Command::Panic).await.is_err());
        }
        settle().await;
        assert_eq!(escalations.try_recv().unwrap().actor, "shard-0");
        assert_eq!(first_child(&root).live, 0);
        assert_eq!(shards.start_here(), Some(0), "its place is free");
    });
}

#[test]
fn all_shards_together_may_start_over_three_times_a_minute() {
    in_a_system(async {
        let (root, _escalations) = Root::new();
        assert!((0..3).all(|_| root.may_reset_shard()));
        assert!(!root.may_reset_shard());
        advance(Duration::from_secs(61)).await;
        assert!(root.may_reset_shard());
    });
}

#[test]
fn a_node_is_complete_when_every_shard_has_started() {
    in_a_system(async {
        let (shards, ..) = shards(2, 2);
        assert!(!shards.all_started());
        assert_eq!(shards.start_here(), Some(0));
        assert!(!shards.all_started());
        assert_eq!(shards.start_here(), Some(1));
        assert!(shards.all_started());
        assert_eq!(shards.start_here(), None);
    });
}

#[test]
fn each_shard_generates_exactly_the_bytes_that_it_serves() {
    for count in [1, 2, 3, 7, 255, 256] {
        let (shards, ..) = shards(count, 2);
        for index in 0..count {
            let mut bytes: Vec<u8> = (0..512).map(|pick| shards.shard_byte(index, pick)).collect();
            bytes.sort_unstable();
            bytes.dedup();
            let served: Vec<u8> =
                (0..=255).filter(|byte| shards.index_of(&Id::from_le_bytes([7, *byte])) == index).collect();
            assert_eq!(bytes, served, "shard {index} of {count}");
        }
    }
}
