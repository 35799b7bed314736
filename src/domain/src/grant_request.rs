//! Grants of credits above a limit, which a second operator must confirm.

use crate::credits::CreditMove;
use crate::ids::{ClientId, GrantId};
use crate::operator::Signatory;
use crate::string_enum::string_enum;
use crate::time::Timestamp;

string_enum!(
    /// The state of a request.
    GrantState {
        /// Nobody has decided yet.
        Pending = "pending",
        /// A second operator has confirmed it.
        Confirmed = "confirmed",
        /// An operator has refused it.
        Refused = "refused",
    }
);

/// A movement of credits requested by one operator and decided by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRequest {
    /// Its id.
    pub id: GrantId,
    /// The client that gets the credits.
    pub client: ClientId,
    /// The movement.
    pub movement: CreditMove,
    /// The requesting operator.
    pub asked_by: Signatory,
    /// Time of the request.
    pub asked_at: Timestamp,
    /// End of the request, independent of the decision.
    pub ends_at: Timestamp,
    /// The state.
    pub state: GrantState,
    /// The deciding operator, and the time.
    pub decided: Option<(Signatory, Timestamp)>,
}

/// Reason for which an operator may not decide a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionRefusal {
    /// The operator who asked cannot confirm.
    SamePerson,
    /// It was decided otherwise.
    Decided(GrantState),
}

impl GrantRequest {
    /// Checks a decision. The same decision may be repeated, as a retry after a lost response.
    ///
    /// # Errors
    /// A second person is missing, or it was decided otherwise.
    pub fn check(&self, by: &Signatory, decision: GrantState) -> Result<(), DecisionRefusal> {
        if decision == GrantState::Confirmed && by.is(&self.asked_by) {
            return Err(DecisionRefusal::SamePerson);
        }
        let is_open = self.state == GrantState::Pending || self.state == decision;
        is_open.then_some(()).ok_or(DecisionRefusal::Decided(self.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credits::EntryKind;

    fn by(id: &str) -> Signatory {
        Signatory { id: id.to_owned(), name: "Anybody".to_owned() }
    }

    fn request(state: GrantState) -> GrantRequest {
        GrantRequest {
            id: GrantId::generate(),
            client: ClientId::generate(),
            movement: CreditMove { kind: EntryKind::Grant, amount: 10, reference: "invoice 7".to_owned() },
            asked_by: by("op_1"),
            asked_at: Timestamp::from_millis(0),
            ends_at: Timestamp::from_millis(1),
            state,
            decided: None,
        }
    }

    #[test]
    fn only_a_second_person_confirms_and_the_first_one_may_withdraw() {
        let pending = request(GrantState::Pending);
        assert_eq!(pending.check(&by("op_1"), GrantState::Confirmed), Err(DecisionRefusal::SamePerson));
        assert_eq!(pending.check(&by("op_2"), GrantState::Confirmed), Ok(()));
        assert_eq!(pending.check(&by("op_1"), GrantState::Refused), Ok(()));
    }

    #[test]
    fn what_was_decided_stays_and_may_be_decided_the_same_way_again() {
        for (before, after) in
            [(GrantState::Confirmed, GrantState::Refused), (GrantState::Refused, GrantState::Confirmed)]
        {
            let decided = request(before);
            assert_eq!(decided.check(&by("op_2"), before), Ok(()));
            assert_eq!(decided.check(&by("op_2"), after), Err(DecisionRefusal::Decided(before)));
        }
    }
}
