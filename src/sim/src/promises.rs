//! The promises, each a check of what happened: of what people learned, what receivers were told, and what the store holds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::ids::TxnId;
use sakshi_store::{Credits as _, Events as _, Outbox as _, PageRequest, TransactionRecord, Transactions as _};
use serde_json::Value;

use crate::people::{Diary, Fact, Learned};
use crate::world::{World, lock};

/// The longest that somebody may wait for a node: three times the time for a question, or a long poll and two questions.
const WAIT_MAX: Duration = Duration::from_secs(41);

/// A promise that was broken, in words.
pub(crate) type Broken = Vec<String>;

/// Checks all of them.
pub(crate) async fn broken(world: &World, diary: &Diary, inbox: &BTreeMap<String, Vec<Value>>, credits: u64) -> Broken {
    let facts = lock(&diary.facts).clone();
    let mut broken = lock(&diary.wrong).clone();
    let credits = credits + *lock(&diary.granted);
    broken.extend(lock(&diary.unanswered).iter().map(|asked| format!("nobody answers {asked}")));
    let mut records = BTreeMap::new();
    for txn in facts.iter().map(|fact| fact.txn).collect::<BTreeSet<_>>() {
        records.insert(txn, world.store.load_transaction(txn).await.expect("the store answers"));
    }
    nobody_waits_too_long(diary, &mut broken);
    what_was_answered_is_kept(&facts, &records, &mut broken);
    one_answer_ends_a_transaction(&facts, &records, &mut broken);
    nothing_goes_back(&facts, &mut broken);
    a_webhook_is_sent_at_most_once_and_says_what_a_poll_says(&records, inbox, &mut broken);
    credits_are_conserved(world, &records, credits, &mut broken).await;
    an_event_has_no_more_guests_than_places(world, &records, &mut broken).await;
    everything_drains(world, &records, &mut broken).await;
    broken
}

type Records = BTreeMap<TxnId, Option<TransactionRecord>>;

fn nobody_waits_too_long(diary: &Diary, broken: &mut Broken) {
    let longest = *lock(&diary.longest);
    if longest > WAIT_MAX {
        broken.push(format!("somebody waited for {longest:?}"));
    }
}

fn what_was_answered_is_kept(facts: &[Fact], records: &Records, broken: &mut Broken) {
    for fact in facts {
        let record = records.get(&fact.txn).and_then(Option::as_ref);
        match (&fact.learned, record) {
            (Learned::Opened, None) => broken.push(format!("{}: it was opened, and is unknown", fact.txn)),
            (Learned::Refused, Some(TransactionRecord::Pending(_) | TransactionRecord::Expired(_)))
                if !facts.iter().any(|other| other.txn == fact.txn && other.learned == Learned::Opened) =>
            {
                broken.push(format!("{}: it was refused, and is open", fact.txn));
            }
            (Learned::Accepted { digest, .. }, Some(TransactionRecord::Completed(record))) if record.answer.0 == *digest => {}
            (Learned::Accepted { .. }, _) => broken.push(format!("{}: an answer was accepted, and is not what ended it", fact.txn)),
            _ => {}
        }
    }
}

fn one_answer_ends_a_transaction(facts: &[Fact], records: &Records, broken: &mut Broken) {
    for fact in facts {
        let record = records.get(&fact.txn).and_then(Option::as_ref);
        if let Learned::Completed { digest, passed } = fact.learned {
            let is_so =
                matches!(record, Some(TransactionRecord::Completed(record)) if record.answer.0 == digest && record.passed == passed);
            if !is_so {
                broken.push(format!("{}: it was shown as completed otherwise than it is", fact.txn));
            }
        }
    }
}

/// Whoever asks after somebody was told that it has ended, is told the same.
fn nothing_goes_back(facts: &[Fact], broken: &mut Broken) {
    let ends = |learned: &Learned| matches!(learned, Learned::Completed { .. } | Learned::Accepted { .. });
    for (index, before) in facts.iter().enumerate() {
        let later = facts.iter().skip(index).filter(|later| later.txn == before.txn && later.asked > before.answered);
        for later in later {
            let goes_back = match (&before.learned, &later.learned) {
                (before, Learned::Pending | Learned::Expired | Learned::Unknown) if ends(before) => true,
                (Learned::Expired, Learned::Pending | Learned::Completed { .. } | Learned::Unknown) => true,
                (Learned::Opened | Learned::Pending, Learned::Unknown) => true,
                _ => false,
            };
            if goes_back {
                let (txn, before, later) = (before.txn, &before.learned, &later.learned);
                broken.push(format!("{txn}: first \"{before}\", and afterwards \"{later}\""));
            }
        }
    }
}

fn a_webhook_is_sent_at_most_once_and_says_what_a_poll_says(records: &Records, inbox: &BTreeMap<String, Vec<Value>>, broken: &mut Broken) {
    for (id, told) in inbox {
        if told.len() > 1 {
            broken.push(format!("{id}: its webhook was sent {} times", told.len()));
        }
        let record = id.parse::<TxnId>().ok().and_then(|id| records.get(&id)?.as_ref());
        let data = &told[0]["data"];
        let says = data["verification_passed"].as_bool().or(data["verificationPassed"].as_bool());
        match record {
            Some(TransactionRecord::Completed(record)) if says == Some(record.passed) => {}
            _ => broken.push(format!("{id}: its webhook says {says:?}, and a poll something else")),
        }
    }
}

async fn credits_are_conserved(world: &World, records: &Records, credits: u64, broken: &mut Broken) {
    let audits = world.store.audit().await.expect("the store answers");
    if !audits.iter().all(sakshi_store::Audit::is_clean) {
        broken.push("a ledger does not add up".to_owned());
    }
    let balance = world.store.balance(world.client.clone()).await.expect("the store answers").unwrap_or(0);
    let opened = records.values().flatten().count() as u64;
    if balance + opened != credits {
        broken.push(format!("{opened} transactions were opened on {credits} credits, of which {balance} are left"));
    }
}

async fn an_event_has_no_more_guests_than_places(world: &World, records: &Records, broken: &mut Broken) {
    let event = world.store.load_event(world.event).await.expect("the store answers").expect("the event");
    let page = PageRequest { page: 1, page_size: 1_000 };
    let listed = world.store.list_registrations(world.event, page.into()).await.expect("the store answers");
    let passed = records.values().flatten().filter(|record| {
        let is_guest = record.opened().event == Some(world.event);
        is_guest && matches!(record, TransactionRecord::Completed(record) if record.passed)
    });
    let (passed, counted, most) = (passed.count(), event.counts.registrations as usize, event.terms.max_guests.get() as usize);
    if counted > most || listed.items.len() != counted || passed != counted {
        broken.push(format!(
            "an event for {most} has {counted} guests, {} on its list, and {passed} were told that they have a place",
            listed.items.len()
        ));
    }
    let scans = records.values().flatten().filter(|record| record.opened().event == Some(world.event));
    let (ended, abandoned): (Vec<_>, Vec<_>) = scans.partition(|record| matches!(record, TransactionRecord::Completed(_)));
    let (scans, abandoned) = ((ended.len() + abandoned.len()) as u64, abandoned.len() as u64);
    if (event.counts.scans, event.counts.abandoned) != (scans, abandoned) {
        let counts = event.counts;
        broken.push(format!(
            "{scans} guests have scanned and {abandoned} have given up, and the event counts {} and {}",
            counts.scans, counts.abandoned
        ));
    }
}

async fn everything_drains(world: &World, records: &Records, broken: &mut Broken) {
    let backlog = world.store.backlog().await.expect("the store answers");
    if backlog.waiting > 0 {
        broken.push(format!("{} webhooks still wait", backlog.waiting));
    }
    for (id, record) in records {
        let Some(TransactionRecord::Completed(record)) = record else { continue };
        let is_registered = record.opened.event.is_some() && record.passed;
        if is_registered || (record.opened.terms.webhook_url.is_some() && record.refused.is_none()) {
            let delivery = world.store.load_delivery((*id).into()).await.expect("the store answers");
            if delivery.is_none_or(|delivery| delivery.attempt.is_none()) {
                broken.push(format!("{id}: nobody knows what became of its webhook"));
            }
        }
    }
}
