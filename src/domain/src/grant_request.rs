//! Grants of credits above a limit, which a second operator must confirm.

use crate::credits::CreditMove;
use crate::ids::{ClientId, GrantId};
use crate::operator::Signatory;
use crate::string_enum::string_enum;
use crate::time::Timestamp;

string_enum!(
    /// The state of a grant request.
    GrantState {
        /// No operator has decided yet.
        Pending = "pending",
        /// A second operator has confirmed the movement.
        Confirmed = "confirmed",
        /// An operator has refused the movement.
        Refused = "refused",
    }
);

/// A movement of credits that one operator requests and another decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRequest {
    /// The id of the request.
    pub id: GrantId,
    /// The client whose balance changes.
    pub client: ClientId,
    /// The movement.
    pub movement: CreditMove,
    /// The requesting operator.
    pub requested_by: Signatory,
    /// Time of the request.
    pub requested_at: Timestamp,
    /// Time at which the request is deleted, decided or not.
    pub ends_at: Timestamp,
    /// The state of the request.
    pub state: GrantState,
    /// The deciding operator, and the time of the decision.
    pub decision: Option<(Signatory, Timestamp)>,
}

/// The reason why an operator may not decide a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionRefusal {
    /// The requesting operator cannot confirm the movement.
    SamePerson,
    /// The request has another decision already.
    Decided(GrantState),
}

impl GrantRequest {
    /// Checks a decision. A retry with the same decision is allowed.
    ///
    /// # Errors
    /// [`DecisionRefusal::SamePerson`] if the requesting operator confirms; [`DecisionRefusal::Decided`] after another
    /// decision.
    pub fn check_decision(&self, by: &Signatory, decision: GrantState) -> Result<(), DecisionRefusal> {
        if decision == GrantState::Confirmed && by.is_same_as(&self.requested_by) {
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

    fn signatory(id: &str) -> Signatory {
        Signatory { id: id.to_owned(), name: "Asha Rao".to_owned() }
    }

    fn request(state: GrantState) -> GrantRequest {
        GrantRequest {
            id: GrantId::generate(),
            client: ClientId::generate(),
            movement: CreditMove { kind: EntryKind::Grant, amount: 10, reference: "invoice 7".to_owned() },
            requested_by: signatory("op_1"),
            requested_at: Timestamp::from_millis(0),
            ends_at: Timestamp::from_millis(1),
            state,
            decision: None,
        }
    }

    #[test]
    fn only_another_operator_confirms_but_the_requester_may_withdraw() {
        let pending = request(GrantState::Pending);
        assert_eq!(pending.check_decision(&signatory("op_1"), GrantState::Confirmed), Err(DecisionRefusal::SamePerson));
        assert_eq!(pending.check_decision(&signatory("op_2"), GrantState::Confirmed), Ok(()));
        assert_eq!(pending.check_decision(&signatory("op_1"), GrantState::Refused), Ok(()));
    }

    #[test]
    fn a_decision_is_final_and_may_be_repeated() {
        for (before, after) in
            [(GrantState::Confirmed, GrantState::Refused), (GrantState::Refused, GrantState::Confirmed)]
        {
            let decided = request(before);
            assert_eq!(decided.check_decision(&signatory("op_2"), before), Ok(()));
            assert_eq!(decided.check_decision(&signatory("op_2"), after), Err(DecisionRefusal::Decided(before)));
        }
    }
}
