//! Who uses the nodes: clients that open transactions and repeat what was not answered, residents who approve, decline, walk away,
//! deliver twice or late, pollers, guests of an event, and an organiser.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sakshi_actors::{AskError, Complete, CompleteReply, View};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::{EventPatch, MaxGuests};
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Answer, AnswerDigest, Failure};
use sakshi_kit::records;
use sakshi_store::{CreditOutcome, Events as _, OpenOutcome, OpenTransaction, PatchEventOutcome};
use tokio::time::sleep;

use crate::world::{Node, World, lock};

/// How long a transaction waits: less than in use, so that runs are short.
pub(crate) const WINDOW: Duration = Duration::from_secs(3 * 60);
/// How long a result can be fetched: longer than any run.
const RESULT_TTL: Duration = Duration::from_secs(24 * 3_600);
/// How often a client asks again when it got no answer.
const TRIES: usize = 4;

/// What somebody learned, and between which moments the node was asked.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) txn: TxnId,
    pub(crate) asked: Duration,
    pub(crate) answered: Duration,
    pub(crate) learned: Learned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It was opened and costs a credit.
    Opened,
    /// It was refused and costs nothing.
    Refused,
    /// Nobody knows whether it was opened.
    OpenUnknown,
    /// The answer with this digest ended it, and whether the guest has a place.
    Accepted {
        digest: [u8; 32],
        has_place: bool,
    },
    /// Another answer had ended it.
    AnsweredBefore,
    /// It was over, or unknown.
    TooLate,
    Pending,
    Completed {
        digest: [u8; 32],
        passed: bool,
    },
    Expired,
    Unknown,
}

impl Display for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |digest: &[u8; 32]| format!("{:02x}{:02x}", digest[0], digest[1]);
        match self {
            Self::Opened => f.write_str("it is open"),
            Self::Refused => f.write_str("it is refused"),
            Self::OpenUnknown => f.write_str("nobody knows whether it is open"),
            Self::Accepted { digest, has_place: true } => write!(f, "answer {} is accepted", short(digest)),
            Self::Accepted { digest, has_place: false } => write!(f, "answer {} is accepted, and there is no place", short(digest)),
            Self::AnsweredBefore => f.write_str("another answer came before"),
            Self::TooLate => f.write_str("the answer is too late"),
            Self::Pending => f.write_str("it waits"),
            Self::Completed { digest, passed } => {
                write!(f, "it was ended by {} and {}", short(digest), if *passed { "passed" } else { "failed" })
            }
            Self::Expired => f.write_str("its window has passed"),
            Self::Unknown => f.write_str("it is unknown"),
        }
    }
}

/// What everybody learned.
#[derive(Debug, Default)]
pub(crate) struct Diary {
    pub(crate) facts: Mutex<Vec<Fact>>,
    /// The longest that a node let somebody wait.
    pub(crate) longest: Mutex<Duration>,
    /// Credits that were granted.
    pub(crate) granted: Mutex<u64>,
    /// What an operator asks again until it is answered.
    pub(crate) unanswered: Mutex<Option<String>>,
    /// What somebody saw that cannot be.
    pub(crate) wrong: Mutex<Vec<String>>,
}

pub(crate) struct Person {
    pub(crate) world: Arc<World>,
    pub(crate) diary: Arc<Diary>,
}

impl Person {
    /// Asks a node, and notes when; `None` when no node runs, or the node was killed meanwhile.
    async fn ask<T>(&self, question: impl AsyncFnOnce(&Node) -> Result<T, AskError>) -> Option<(Result<T, AskError>, Duration, Duration)> {
        let node = self.world.any_node()?;
        let asked = self.world.begun.elapsed();
        let answer = question(&node).await;
        let answered = self.world.begun.elapsed();
        if node.incarnation.is_dead() {
            return None;
        }
        let mut longest = lock(&self.diary.longest);
        *longest = (*longest).max(answered - asked);
        drop(longest);
        Some((answer, asked, answered))
    }

    fn learn(&self, txn: TxnId, asked: Duration, answered: Duration, learned: Learned) {
        self.world.say(|line| _ = write!(line, "{txn}: {learned}"));
        lock(&self.diary.facts).push(Fact { txn, asked, answered, learned });
    }

    /// Opens a transaction; whether it is known to be open.
    async fn open(&self, guest: bool) -> (TxnId, bool) {
        let id = self.world.transaction_id();
        let mut pending = records::pending(id, self.world.client.clone(), self.world.app.clone(), self.world.store_time());
        pending.expires_at = pending.opened_at + WINDOW;
        if guest {
            pending.event = Some(self.world.event);
        } else if self.world.chance(800) {
            let url = format!("https://receiver-{}.example/hook", self.world.below(4));
            pending.terms.webhook_url = Some(HttpUrl::parse(&url, Schemes::HttpAndHttps).expect("a URL"));
        }
        let open = OpenTransaction { pending: Arc::new(pending), cost: 1, idempotency: None };
        for _ in 0..TRIES {
            let asked = self.ask(async |node| node.handles.transactions.open(open.clone()).await).await;
            if let Some((Ok(outcome), asked, answered)) = asked {
                let is_open = matches!(outcome, OpenOutcome::Opened { .. });
                self.learn(id, asked, answered, if is_open { Learned::Opened } else { Learned::Refused });
                return (id, is_open);
            }
            sleep(self.world.pause(500)).await;
        }
        let now = self.world.begun.elapsed();
        self.learn(id, now, now, Learned::OpenUnknown);
        (id, false)
    }

    async fn deliver(&self, id: TxnId, answer: &Answer) {
        let complete = Complete { answer: answer.clone(), known: None, replay_window: WINDOW, result_ttl: RESULT_TTL };
        for _ in 0..TRIES {
            let asked = self.ask(async |node| node.handles.transactions.complete(id, complete.clone()).await).await;
            if let Some((Ok(reply), asked, answered)) = asked {
                let digest = answer.digest().0;
                let learned = match reply {
                    CompleteReply::Accepted => Learned::Accepted { digest, has_place: true },
                    CompleteReply::EventRefused(_) => Learned::Accepted { digest, has_place: false },
                    CompleteReply::AlreadyCompleted => Learned::AnsweredBefore,
                    CompleteReply::Expired | CompleteReply::Unknown => Learned::TooLate,
                    CompleteReply::CredentialReplayed => Learned::Refused,
                };
                return self.learn(id, asked, answered, learned);
            }
            sleep(self.world.pause(500)).await;
        }
    }

    /// Looks at a transaction.
    pub(crate) async fn look(&self, id: TxnId, wait: Option<Duration>) {
        let asked = self
            .ask(async |node| match wait {
                None => node.handles.transactions.get(id).await,
                Some(wait) => node.handles.transactions.wait_for_end(id, wait).await,
            })
            .await;
        let Some((Ok(view), asked, answered)) = asked else { return };
        // What was shown was true at some moment in between.
        self.learn(id, asked, answered, seen(view));
    }

    /// A transaction from its beginning to its end, with whoever looks at it.
    pub(crate) async fn verification(self: Arc<Self>, guest: bool) {
        sleep(Duration::from_millis(self.world.below(90_000))).await;
        let (id, _) = self.open(guest).await;
        for _ in 0..self.world.below(4) {
            let (person, after) = (Arc::clone(&self), Duration::from_millis(self.world.below(60_000)));
            let wait = self.world.chance(500).then(|| Duration::from_millis(self.world.below(25_000)));
            actix_rt::spawn(async move {
                sleep(after).await;
                person.look(id, wait).await;
            });
        }
        let answers = [self.credential(), self.declining()];
        match self.world.below(10) {
            // Walks away.
            0 | 1 => {}
            2 => self.answered(id, &answers[1]).await,
            // The app delivers twice, perhaps by two ways at once.
            3 => {
                let (person, again) = (Arc::clone(&self), answers[0].clone());
                let second = actix_rt::spawn(async move { person.answered(id, &again).await });
                self.answered(id, &answers[0]).await;
                let _ = second.await;
            }
            // Two answers race.
            4 => {
                let (person, other) = (Arc::clone(&self), answers[1].clone());
                let second = actix_rt::spawn(async move { person.answered(id, &other).await });
                self.answered(id, &answers[0]).await;
                let _ = second.await;
            }
            // Around the end of the window.
            5 => {
                sleep(WINDOW.saturating_sub(Duration::from_secs(2))).await;
                self.answered(id, &answers[0]).await;
            }
            _ => self.answered(id, &answers[0]).await,
        }
        self.look(id, None).await;
    }

    async fn answered(&self, id: TxnId, answer: &Answer) {
        sleep(Duration::from_millis(self.world.below(4_000))).await;
        self.deliver(id, answer).await;
    }

    fn mark(&self) -> [u8; 32] {
        let mut mark = [0; 32];
        mark[..8].copy_from_slice(&self.world.below(u64::MAX).to_be_bytes());
        mark
    }

    fn credential(&self) -> Answer {
        records::credential(self.mark())
    }

    fn declining(&self) -> Answer {
        Answer::Failure { failure: Failure::new("User Reject", Some("301")), digest: AnswerDigest(self.mark()) }
    }

    /// Changes the event now and then, and looks at it. One organiser does one thing after the other, so what an event may be
    /// is known: what was answered, or what was not.
    pub(crate) async fn organises(self: Arc<Self>) {
        let mut possible = vec![self.event_in_store().await];
        while self.world.is_rough.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(self.world.below(30_000))).await;
            if self.world.goes_wrong("changes", 500) {
                possible = self.patches(possible).await;
            }
            self.looks_at_the_event(&mut possible).await;
        }
    }

    async fn event_in_store(&self) -> (bool, MaxGuests) {
        let event = self.world.store.load_event(self.world.event).await.expect("the store answers").expect("the event");
        (event.terms.is_active, event.terms.max_guests)
    }

    /// What the event may be after a change.
    async fn patches(&self, before: Vec<(bool, MaxGuests)>) -> Vec<(bool, MaxGuests)> {
        let patch = match self.world.below(3) {
            0 => EventPatch { is_active: Some(self.world.chance(700)), ..EventPatch::default() },
            _ => EventPatch { max_guests: MaxGuests::new(2 + self.world.below(5)).ok(), ..EventPatch::default() },
        };
        let (event, app) = (self.world.event, self.world.app.clone());
        let (is_active, max_guests) = (patch.is_active, patch.max_guests);
        let asked = self.ask(async |node| node.handles.events.patch(event, app, patch).await).await;
        let after = before.iter().map(|(active, most)| (is_active.unwrap_or(*active), max_guests.unwrap_or(*most)));
        match asked {
            Some((Ok(PatchEventOutcome::Patched(event)), ..)) => {
                self.world.say(|line| line.push_str("the event is changed"));
                vec![(event.terms.is_active, event.terms.max_guests)]
            }
            Some((Ok(_), ..)) => {
                self.world.say(|line| line.push_str("the event is not changed"));
                before
            }
            // It may have been changed, or be changed in a moment.
            _ => {
                self.world.say(|line| line.push_str("nobody knows whether the event is changed"));
                let possible = after.chain(before.clone()).collect();
                sleep(Duration::from_secs(1)).await;
                possible
            }
        }
    }

    async fn looks_at_the_event(&self, possible: &mut Vec<(bool, MaxGuests)>) {
        let event = self.world.event;
        let asked = self.ask(async |node| node.handles.events.get(event).await).await;
        let Some((Ok(event), ..)) = asked else { return };
        let shown = event.map(|event| (event.terms.is_active, event.terms.max_guests));
        possible.retain(|possible| Some(*possible) == shown);
        if possible.is_empty() {
            lock(&self.diary.wrong).push("the event is shown as it was before, or never was".to_owned());
            possible.push(self.event_in_store().await);
        }
    }

    /// Grants credits now and then, and repeats what was not answered.
    pub(crate) async fn operates(self: Arc<Self>) {
        for number in 0.. {
            sleep(Duration::from_millis(self.world.below(60_000))).await;
            if !self.world.is_rough.load(Ordering::Relaxed) {
                return;
            }
            let grant = CreditMove { kind: EntryKind::Grant, amount: 3, reference: format!("grant {number}") };
            *lock(&self.diary.unanswered) = Some(grant.reference.clone());
            loop {
                let (client, grant) = (self.world.client.clone(), grant.clone());
                let asked = self.ask(async |node| Ok(node.tree.move_credits(client, grant).await?)).await;
                if let Some((Ok(outcome), ..)) = asked {
                    assert!(matches!(outcome, CreditOutcome::Moved(_)), "{outcome:?}");
                    *lock(&self.diary.granted) += 3;
                    *lock(&self.diary.unanswered) = None;
                    self.world.say(|line| line.push_str("credits are granted"));
                    break;
                }
                sleep(self.world.pause(500)).await;
            }
        }
    }

    /// Asks every node about every transaction, when nothing goes wrong any more.
    pub(crate) async fn looks_at_everything(&self) {
        let known: BTreeSet<TxnId> = lock(&self.diary.facts).iter().map(|fact| fact.txn).collect();
        for number in 0..self.world.nodes() {
            let Some(node) = self.world.node(number) else {
                lock(&self.diary.wrong).push(format!("node {number} does not run at the end"));
                continue;
            };
            for id in &known {
                let asked = self.world.begun.elapsed();
                match node.handles.transactions.get(*id).await {
                    Ok(view) => self.learn(*id, asked, self.world.begun.elapsed(), seen(view)),
                    Err(error) => lock(&self.diary.wrong).push(format!("{id}: node {number} does not tell at the end: {error}")),
                }
            }
        }
    }
}

fn seen(view: View) -> Learned {
    match view {
        View::Pending(_) => Learned::Pending,
        View::Completed(record) => Learned::Completed { digest: record.answer.0, passed: record.passed },
        View::Expired(_) => Learned::Expired,
        View::Unknown => Learned::Unknown,
    }
}
