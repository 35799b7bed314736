//! Erasure of personal data before it expires.
//!
//! Shared claims, requested claims, references and stored responses are erased. A ledger keeps its entries, which have
//! only the ids of transactions. An erased guest keeps the place among the registered, without claims. Digests of
//! credentials and of webhook keys remain until they expire.

use std::ops::AddAssign;

/// Numbers of erased records, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Transactions.
    pub transactions: u64,
    /// Registrations of guests at events.
    pub registrations: u64,
    /// Events.
    pub events: u64,
    /// Flows, including expired ones with an unfinished webhook.
    pub flows: u64,
    /// Responses stored under idempotency keys.
    pub answers: u64,
    /// Refused requests.
    pub refusals: u64,
    /// Users of the portal.
    pub users: u64,
}

impl AddAssign for Erased {
    fn add_assign(&mut self, other: Self) {
        let Self { transactions, registrations, events, flows, answers, refusals, users } = other;
        self.transactions += transactions;
        self.registrations += registrations;
        self.events += events;
        self.flows += flows;
        self.answers += answers;
        self.refusals += refusals;
        self.users += users;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erased_counts_are_added_kind_by_kind() {
        let part = Erased { transactions: 1, registrations: 2, events: 3, flows: 4, answers: 5, refusals: 6, users: 7 };
        let mut sum =
            Erased { transactions: 10, registrations: 10, events: 10, flows: 10, answers: 10, refusals: 10, users: 10 };
        sum += part;
        assert_eq!(
            sum,
            Erased { transactions: 11, registrations: 12, events: 13, flows: 14, answers: 15, refusals: 16, users: 17 }
        );
    }
}
