//! The promises of `docs/promises.md`, each as one check of a run's evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sakshi_domain::consent::ConsentAnswer;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::event::{EventRefusal, OnDuplicate};
use sakshi_domain::ids::TxnId;
use sakshi_store::{Audit, CompletedRecord, KeptConsent, Registration, TransactionRecord};
use sakshi_wire::credits::StatementEntry;
use serde_json::{Value, json};

use crate::diary::{Fact, Knowledge};
use crate::evidence::{Evidence, KeptEvent, StoredTransaction, since_start};
use crate::guests::PLACES;
use crate::history::{EventFact, EventView, NoPlace, Step, Verdict, order};
use crate::model::history::strays;
use crate::world::{Deployment, lock};

/// The findings of a check.
type Found = Vec<String>;

/// A promise.
pub(crate) struct Promise {
    pub(crate) name: &'static str,
    /// True if it holds even if the store forgets acknowledged writes, in a failover without waiting.
    survives_loss: bool,
    check: fn(&Evidence<'_>) -> Found,
}

const fn promise(name: &'static str, survives_loss: bool, check: fn(&Evidence<'_>) -> Found) -> Promise {
    Promise { name, survives_loss, check }
}

/// All promises.
pub(crate) const PROMISES: [Promise; 18] = [
    promise("every answer is one that can be, and comes in time", false, nobody_saw_what_cannot_be),
    promise("a ledger adds up, and a transaction costs one credit", true, credits_are_conserved),
    promise("what was granted is there", false, grants_are_there),
    promise("nobody is refused for want of credits that are there", false, credits_are_used),
    promise("what was answered is kept", false, what_was_answered_is_kept),
    promise("a verification that has ended is in the register of consents once, and no other", true, consents_are_kept),
    promise("only what a resident answered within its window ends a verification", true, residents_end_verifications),
    promise("who asks about a verification is told what is so at that moment", false, each_answer_was_true_at_its_time),
    promise("an event never has more guests than places", true, no_more_guests_than_places),
    promise(
        "a person who registers again is known, and has one place where nobody registers twice",
        true,
        people_are_known,
    ),
    promise(
        "a guest is checked in once, at the time and the gate that everybody is told",
        false,
        guests_are_checked_in_once,
    ),
    promise(
        "changes, scans and guests of an event come in one order that everybody sees",
        false,
        events_have_one_order,
    ),
    promise("a webhook is sent at most once and says what a poll says", false, webhooks_are_sent_once),
    promise(
        "what is done with a webhook is a course that the model of the outbox has",
        false,
        webhooks_follow_the_model,
    ),
    promise("a flow ends in one way", false, flows_end_in_one_way),
    promise("nobody gets what is of another client", true, receivers_get_their_own),
    promise("what is erased is not told any more", false, erased_is_not_told),
    promise("everything ends, and what became of a webhook is known", false, everything_drains),
];

/// Returns the broken promises, in words.
pub(crate) fn broken(evidence: &Evidence<'_>) -> Found {
    let is_lossy = evidence.sim.world.deployment == Deployment::LossyReplica;
    let checked = PROMISES.iter().filter(|promise| promise.survives_loss || !is_lossy);
    checked
        .flat_map(|promise| {
            (promise.check)(evidence).into_iter().map(|found| format!("{found} (promise: {})", promise.name))
        })
        .collect()
}

fn nobody_saw_what_cannot_be(evidence: &Evidence<'_>) -> Found {
    let unanswered = evidence.sim.diary.unanswered.borrow().clone();
    let waiting = unanswered.into_iter().map(|what| format!("nobody answers that {what}"));
    evidence.sim.diary.wrong().into_iter().chain(waiting).collect()
}

fn credits_are_conserved(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    if !evidence.audits.iter().all(Audit::is_clean) {
        found.push("a ledger does not add up".to_owned());
    }
    for (txn, kept) in &evidence.transactions {
        match (kept.paid_at, &kept.record) {
            (None, Some(_)) => found.push(format!("{txn}: it is open, and nobody has paid")),
            (Some(_), None) if !evidence.is_erased(*txn) => found.push(format!("{txn}: it was paid, and is unknown")),
            _ => {}
        }
    }
    for (tenant, (entries, left)) in evidence.ledgers.iter().enumerate() {
        let debits: Vec<_> = entries.iter().filter(|entry| entry.kind == EntryKind::Debit).collect();
        if debits.iter().any(|entry| entry.amount.abs() != 1) {
            found.push(format!("a transaction of client {tenant} cost something else than one credit"));
        }
        let mut charged = BTreeSet::new();
        let twice = debits.iter().filter(|entry| !charged.insert(&entry.reference));
        found.extend(
            twice.map(|entry| format!("{}: it was charged again at {:?}", entry.reference, since_start(entry.at))),
        );
        let granted: i64 =
            entries.iter().filter(|entry| entry.kind == EntryKind::Grant).map(|entry| entry.amount).sum();
        if granted - i64::try_from(debits.len()).unwrap_or(0) != i64::try_from(*left).unwrap_or(0) {
            found.push(format!(
                "client {tenant} was granted {granted} credits, has used {} and has {left}",
                debits.len()
            ));
        }
    }
    found
}

fn consents_are_kept(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let mut entries: BTreeMap<String, Vec<&KeptConsent>> = BTreeMap::new();
    for kept in evidence.consents.iter().flatten().filter(|kept| kept.consent.kind == "verification") {
        entries.entry(kept.consent.id.clone()).or_default().push(kept);
    }
    for (txn, kept) in &evidence.transactions {
        let listed = entries.remove(&txn.to_string()).unwrap_or_default();
        let expected = usize::from(completed(kept).is_some());
        // An erased transaction is in the register if it had ended.
        if listed.len() != expected && !(evidence.is_erased(*txn) && listed.len() == 1) {
            found.push(format!("{txn}: it is in the register of consents {} times", listed.len()));
        }
        for (entry, record) in listed.iter().zip(completed(kept)) {
            let was_given = record.passed || record.refused.is_some();
            if was_given != (entry.consent.answer == ConsentAnswer::Given) || entry.answered_at != record.verified_at {
                found.push(format!("{txn}: the register of consents says something else"));
            }
        }
    }
    found.extend(entries.into_keys().map(|txn| format!("{txn}: it is in the register of consents, and unknown")));
    found
}

fn grants_are_there(evidence: &Evidence<'_>) -> Found {
    let of = |tenant: usize| evidence.sim.tenants[tenant].credits.get();
    let sums = evidence.ledgers.iter().enumerate().map(|(tenant, (entries, _))| {
        let granted: i64 =
            entries.iter().filter(|entry| entry.kind == EntryKind::Grant).map(|entry| entry.amount).sum();
        (tenant, u64::try_from(granted).unwrap_or(0))
    });
    let mut found: Vec<String> = sums
        .filter(|(tenant, granted)| *granted != of(*tenant))
        .map(|(tenant, granted)| {
            format!("client {tenant} was granted {} credits, and its ledger says {granted}", of(tenant))
        })
        .collect();
    for (tenant, (entries, _)) in evidence.sim.tenants.iter().zip(&evidence.ledgers) {
        let kept: Vec<Value> = entries.iter().cloned().map(|entry| json!(StatementEntry::from(entry))).collect();
        let grants = tenant.grants.borrow();
        let other = grants.iter().filter(|told| !kept.contains(told));
        found.extend(other.map(|told| format!("client {} has another entry in its ledger than {told}", tenant.number)));
    }
    found
}

fn credits_are_used(evidence: &Evidence<'_>) -> Found {
    let unpaid = evidence.sim.diary.unpaid.borrow();
    let without_reason = unpaid.iter().filter(|unpaid| {
        // The balance was zero from one entry until the next.
        let (entries, _) = &evidence.ledgers[unpaid.tenant];
        !entries.iter().enumerate().any(|(at, entry)| {
            let tolerance = evidence.sim.world.tolerance();
            let until = entries.get(at + 1).map_or(Duration::MAX, |next| since_start(next.at) + tolerance);
            entry.balance_after == 0 && since_start(entry.at) <= unpaid.answered && until >= unpaid.asked
        })
    });
    without_reason
        .map(|unpaid| format!("client {} was refused at {:?} although it had credits", unpaid.tenant, unpaid.answered))
        .collect()
}

const fn completed(kept: &StoredTransaction) -> Option<&CompletedRecord> {
    match &kept.record {
        Some(TransactionRecord::Completed(record)) => Some(record),
        _ => None,
    }
}

fn what_was_answered_is_kept(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for Fact { txn, learned, .. } in evidence.sim.diary.facts.borrow().iter() {
        if evidence.is_erased(*txn) {
            continue;
        }
        let kept = &evidence.transactions[txn];
        match learned {
            Knowledge::Opened { .. } if kept.record.is_none() => {
                found.push(format!("{txn}: it was opened, and is unknown"));
            }
            Knowledge::Accepted { digest, has_place }
                if !completed(kept)
                    .is_some_and(|record| record.answer.0 == *digest && record.refused.is_none() == *has_place) =>
            {
                found.push(format!("{txn}: an answer was accepted, and is not what ended it"));
            }
            Knowledge::AnsweredBefore | Knowledge::Completed(_) | Knowledge::Ended { .. }
                if completed(kept).is_none() =>
            {
                found.push(format!("{txn}: it had ended, and waits"));
            }
            _ => {}
        }
    }
    found
}

fn residents_end_verifications(evidence: &Evidence<'_>) -> Found {
    let answers = evidence.sim.diary.answers.borrow();
    let ended = evidence.transactions.iter().filter_map(|(txn, kept)| Some((txn, completed(kept)?)));
    let mut found = Found::new();
    for (txn, record) in ended {
        if !answers.contains(&(*txn, record.answer.0)) {
            found.push(format!("{txn}: it ended without an answer of its resident"));
        }
        if record.verified_at >= record.opened.expires_at {
            found.push(format!("{txn}: an answer after its window ended it"));
        }
    }
    found
}

/// The store records the time of each step, so the state at each moment is known.
fn each_answer_was_true_at_its_time(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let mut bodies = BTreeMap::new();
    for Fact { txn, asked, answered, learned } in evidence.sim.diary.facts.borrow().iter() {
        let kept = &evidence.transactions[txn];
        let (Some(opened), Some(record)) = (kept.paid_at.map(since_start), &kept.record) else { continue };
        let expires = since_start(record.opened().expires_at);
        let ended = completed(kept).map(|record| since_start(record.verified_at));
        let over = ended.unwrap_or(expires);
        let tolerance = evidence.sim.world.tolerance();
        let (asked, answered) = (asked.saturating_sub(tolerance), *answered + tolerance);
        let is_true = match learned {
            Knowledge::Opened { expires_at } => {
                opened <= answered && expires_at.is_none_or(|at| since_start(at) == expires)
            }
            // A client polls again: a state that is not final does not wait for a replica.
            Knowledge::Pending => {
                opened <= answered && (asked <= over || evidence.sim.world.servers.may_be_superseded(asked, answered))
            }
            Knowledge::Completed(body) => {
                bodies.entry(*txn).or_insert(body.clone()) == body && ended.is_some_and(|ended| ended <= answered)
            }
            Knowledge::Accepted { .. } | Knowledge::AnsweredBefore => ended.is_some_and(|ended| ended <= answered),
            Knowledge::Ended { verified } => {
                ended.is_some_and(|ended| ended <= answered)
                    && completed(kept).is_some_and(|record| record.passed == *verified)
            }
            Knowledge::Expired | Knowledge::TooLate => ended.is_none() && expires <= answered,
            Knowledge::Unknown => asked <= opened,
        };
        if !is_true {
            found.push(format!("{txn}: \"{learned}\" was not so between {asked:?} and {answered:?}"));
        }
    }
    found
}

const fn no_place(refusal: EventRefusal) -> NoPlace {
    match refusal {
        EventRefusal::Full => NoPlace::Full,
        EventRefusal::Disabled | EventRefusal::Expired => NoPlace::Closed,
        EventRefusal::Duplicate => NoPlace::Twice,
    }
}

fn guests<'a>(evidence: &'a Evidence<'_>, event: &'a KeptEvent) -> impl Iterator<Item = &'a StoredTransaction> {
    let is_guest = move |kept: &&StoredTransaction| {
        kept.record.as_ref().is_some_and(|record| record.opened().event == Some(event.event.id))
    };
    evidence.transactions.values().filter(is_guest)
}

fn no_more_guests_than_places(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for event in &evidence.events {
        let KeptEvent { event: of, listed, .. } = event;
        let passed = guests(evidence, event).filter(|kept| completed(kept).is_some_and(|record| record.passed)).count();
        let (counted, most) = (of.counts.registrations as usize, of.terms.max_guests.get() as usize);
        if counted > most || listed.len() != counted || passed != counted {
            let listed = listed.len();
            found.push(format!(
                "an event for {most} has {counted} guests, {listed} on its list, and {passed} have a place"
            ));
        }
        let (ended, abandoned): (Vec<_>, Vec<_>) = guests(evidence, event).partition(|kept| completed(kept).is_some());
        let (scans, abandoned) = ((ended.len() + abandoned.len()) as u64, abandoned.len() as u64);
        if (of.counts.scans, of.counts.abandoned) != (scans, abandoned) {
            let (counted, given_up) = (of.counts.scans, of.counts.abandoned);
            found.push(format!(
                "{scans} guests have scanned and {abandoned} have given up, and the event counts \
                {counted} and {given_up}"
            ));
        }
    }
    found
}

/// All guests of a run are one person, with the same device.
fn people_are_known(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for KeptEvent { event, listed, .. } in &evidence.events {
        let marked = listed.iter().filter(|one| one.guest.duplicate_of.is_some()).count();
        let first = listed.first().map(|one| one.guest.txn);
        let are_right = match event.terms.on_duplicate {
            OnDuplicate::Allow => marked == 0,
            OnDuplicate::Flag => {
                let is_of_first = |one: &Registration| one.guest.duplicate_of == first;
                marked == listed.len().saturating_sub(1) && listed.iter().skip(1).all(is_of_first)
            }
            OnDuplicate::Refuse => listed.len() <= 1 && marked == 0,
        };
        if !are_right || event.counts.duplicates as usize != marked {
            let (guests, counted, how) = (listed.len(), event.counts.duplicates, event.terms.on_duplicate);
            found.push(format!(
                "one person is {guests} guests of an event that should {how} that: {marked} are \
                marked, {counted} counted"
            ));
        }
    }
    found
}

fn guests_are_checked_in_once(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let told = evidence.sim.diary.check_ins.borrow();
    for KeptEvent { tenant, event, listed } in &evidence.events {
        let inside = listed.iter().filter(|one| one.guest.check_in.is_some()).count();
        if inside != event.counts.checked_in as usize {
            found.push(format!("{inside} guests are checked in, and {} are counted", event.counts.checked_in));
        }
        for Registration { guest, .. } in listed {
            let answers: Vec<&Value> = told
                .iter()
                .filter(|(of, answer)| of == tenant && answer["txn_id"] == guest.txn.to_string())
                .map(|(_, answer)| answer)
                .collect();
            let first = answers.iter().filter(|answer| answer["already"] == false).count();
            let known = guest.check_in.as_ref().map(|check_in| (check_in.at.to_string(), check_in.gate.as_str()));
            let is_known = |answer: &&Value| {
                known
                    .as_ref()
                    .is_some_and(|(at, gate)| answer["checked_in_at"] == at.as_str() && answer["gate"] == *gate)
            };
            if first > 1 || !answers.iter().all(is_known) {
                found.push(format!("{}: it was checked in as {known:?}, and the answers were {answers:?}", guest.txn));
            }
        }
    }
    found
}

fn events_have_one_order(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    for event in &evidence.events {
        let seen = evidence.sim.diary.events.borrow();
        // Views of an event do not wait for a replica.
        let is_kept = |fact: &EventFact| {
            let is_unconfirmed = fact
                .answered
                .is_some_and(|answered| evidence.sim.world.servers.may_be_unconfirmed(fact.asked, answered));
            !(is_unconfirmed && matches!(fact.step, Step::Look(_) | Step::RefusedScan(_)))
        };
        let mut facts: Vec<EventFact> = seen
            .iter()
            .filter(|(tenant, fact)| *tenant == event.tenant && is_kept(fact))
            .map(|(_, fact)| *fact)
            .collect();
        // The store records when a guest scanned, and when one was registered or refused.
        let at = |at, step| {
            let (at, tolerance) = (since_start(at), evidence.sim.world.tolerance());
            EventFact {
                asked: (at + Duration::from_millis(1)).saturating_sub(tolerance),
                answered: Some(at + tolerance),
                step,
                is_repeatable: false,
            }
        };
        for kept in guests(evidence, event) {
            facts.extend(kept.paid_at.map(|paid| at(paid, Step::Scan)));
            let Some(record) = completed(kept) else { continue };
            match record.refused {
                Some(refusal) => facts.push(at(record.verified_at, Step::RefusedGuest(no_place(refusal)))),
                None if record.passed => facts.push(at(record.verified_at, Step::Register)),
                None => {}
            }
        }
        let is_strict = event.event.terms.on_duplicate == OnDuplicate::Refuse;
        let begin = EventView { is_active: true, max_guests: PLACES, registrations: 0, scans: 0, is_strict };
        match order(begin, &facts) {
            Verdict::Ordered => evidence.sim.world.reach("event put in order"),
            Verdict::Undecided => evidence.sim.world.reach("event not put in order, because it takes too long"),
            Verdict::Unordered { most } => {
                facts.sort_by_key(|fact| fact.asked);
                let told: Vec<String> = facts.iter().map(|fact| format!("{fact:?}")).collect();
                let all = facts.len();
                found.push(format!(
                    "of {all} things that happened to the event of client {}, {most} are in order:\n  {}",
                    event.tenant,
                    told.join("\n  ")
                ));
            }
        }
    }
    found
}

fn webhooks_are_sent_once(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    let facts = evidence.sim.diary.facts.borrow();
    for (key, told) in &evidence.inbox {
        if told.len() > 1 {
            found.push(format!("{key}: its webhook was sent {} times", told.len()));
        }
        let body = &told[0].body;
        let kept = key.parse().ok().and_then(|txn: TxnId| Some((txn, evidence.transactions.get(&txn)?)));
        if kept.is_some_and(|(txn, _)| evidence.is_erased(txn)) {
            continue;
        }
        if let Some((txn, kept)) = kept {
            let says = serde_json::from_slice::<Value>(body)
                .ok()
                .and_then(|body| body["data"]["verification_passed"].as_bool());
            if says.is_none() || says != completed(kept).map(|record| record.passed) {
                found.push(format!("{key}: its webhook says {says:?}, and it ended otherwise"));
            }
            let is_other = |fact: &&Fact| {
                fact.txn == txn && matches!(&fact.learned, Knowledge::Completed(polled) if polled != body)
            };
            if facts.iter().any(|fact| is_other(&fact)) {
                found.push(format!("{key}: its webhook says something else than a poll"));
            }
        // A flow is polled by its id, which is also the deduplication key of its webhook.
        } else if !evidence.sim.diary.polled.borrow().iter().all(|(flow, polled)| flow != key || polled == body) {
            found.push(format!("{key}: its webhook says something else than a poll"));
        }
    }
    found
}

fn flows_end_in_one_way(evidence: &Evidence<'_>) -> Found {
    let reported = evidence.sim.diary.reported.borrow();
    let ends: Vec<_> = reported.iter().filter_map(|reported| Some((&reported.flow, reported.end.as_ref()?))).collect();
    let otherwise = |(flow, end): &&(&String, &Value)| ends.iter().any(|(other, first)| other == flow && first != end);
    ends.iter().filter(otherwise).map(|(flow, _)| format!("{flow}: two different ends of it are accepted")).collect()
}

fn erased_is_not_told(evidence: &Evidence<'_>) -> Found {
    let erased = evidence.sim.diary.erased.borrow();
    let told = |fact: &&Fact| {
        matches!(fact.learned, Knowledge::Completed(_) | Knowledge::Ended { .. } | Knowledge::Accepted { .. })
    };
    let facts = evidence.sim.diary.facts.borrow();
    let after = |fact: &&Fact| erased.get(&fact.txn).copied().flatten().is_some_and(|at| fact.asked > at);
    let after_all = facts
        .iter()
        .filter(told)
        .filter(after)
        .map(|fact| format!("{}: \"{}\" although it is erased", fact.txn, fact.learned));
    let kept = evidence
        .transactions
        .iter()
        .filter(|(txn, kept)| matches!(erased.get(txn), Some(Some(_))) && kept.record.is_some());
    after_all.chain(kept.map(|(txn, _)| format!("{txn}: it is erased, and there"))).collect()
}

fn webhooks_follow_the_model(evidence: &Evidence<'_>) -> Found {
    let world = &evidence.sim.world;
    // Each start of a single node has the same id.
    if world.deployment == Deployment::Alone { Found::new() } else { strays(world.deployment, &lock(&world.outbox)) }
}

fn receivers_get_their_own(evidence: &Evidence<'_>) -> Found {
    // The last part of a receiver's URL is the number of its client.
    let tenant =
        |url: &str| url.rsplit('/').next().and_then(|number| number.parse().ok()).expect("a client's receiver");
    let told = evidence.inbox.iter().flat_map(|(key, told)| told.iter().map(move |told| (key, told)));
    let foreign = told.filter(|(_, told)| evidence.sim.has_foreign(tenant(&told.url), &told.body));
    foreign.map(|(key, _)| format!("{key}: its webhook holds what is of another client")).collect()
}

fn everything_drains(evidence: &Evidence<'_>) -> Found {
    let mut found = Found::new();
    if evidence.waiting > 0 {
        found.push(format!("{} webhooks still wait", evidence.waiting));
    }
    for (number, live) in evidence.live.iter().enumerate().filter(|(_, live)| **live > 0) {
        found.push(format!("node {number} still has {live} live transactions"));
    }
    for (txn, kept) in &evidence.transactions {
        let Some(record) = completed(kept) else { continue };
        let is_registered = record.opened.event.is_some() && record.passed;
        let has_url = record.opened.terms.webhook_url.is_some() && record.refused.is_none();
        if (is_registered || has_url) && kept.delivery.as_ref().is_none_or(|delivery| delivery.attempt.is_none()) {
            found.push(format!("{txn}: nobody knows what became of its webhook"));
        }
    }
    for reported in evidence.sim.diary.reported.borrow().iter().filter(|reported| reported.is_told) {
        let deliveries = evidence.flows.get(&reported.flow).and_then(Option::as_ref);
        if deliveries.is_none_or(|deliveries| {
            deliveries.deliveries.is_empty() || deliveries.deliveries.iter().any(|one| one.delivery.attempt.is_none())
        }) {
            found.push(format!(
                "{}: nobody knows what became of the webhook of {} of client {}",
                reported.flow, reported.key, reported.tenant
            ));
        }
    }
    found
}
