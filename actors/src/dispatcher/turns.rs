//! Turns: clients take turns, and so do the receivers of each client.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sakshi_domain::delivery::Receiver;
use sakshi_domain::ids::ClientId;
use sakshi_supervision::{FairSlot, FairSlots};

/// Receivers with something to send that may begin an attempt.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Clients that have receivers here, in order of their turns.
    clients: VecDeque<ClientId>,
    receivers: HashMap<ClientId, VecDeque<Arc<Receiver>>>,
}

impl Turns {
    /// Adds a receiver after the others of its client.
    pub(super) fn push(&mut self, receiver: Arc<Receiver>) {
        let of_client = self.receivers.entry(receiver.client.clone()).or_default();
        if of_client.is_empty() {
            self.clients.push_back(receiver.client.clone());
        }
        of_client.push_back(receiver);
    }

    /// Returns the next receiver whose client may have another slot, with the slot.
    pub(super) fn next(&mut self, slots: &FairSlots<ClientId>) -> Option<(Arc<Receiver>, FairSlot<ClientId>)> {
        let (place, slot) =
            self.clients.iter().enumerate().find_map(|(place, client)| Some((place, slots.enter(client)?)))?;
        let client = self.clients.remove(place)?;
        let of_client = self.receivers.get_mut(&client)?;
        let receiver = of_client.pop_front()?;
        if of_client.is_empty() {
            self.receivers.remove(&client);
        } else {
            self.clients.push_back(client);
        }
        Some((receiver, slot))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns_and_one_that_has_its_share_waits_for_nobody_else() {
        let [many, one] = [(); 2].map(|()| ClientId::generate());
        let (mut turns, slots) = (Turns::default(), FairSlots::new(6));
        let receiver =
            |client: &ClientId, origin: &str| Arc::new(Receiver { client: client.clone(), origin: origin.into() });
        for origin in ["a", "b", "c", "d", "e"] {
            turns.push(receiver(&many, origin));
        }
        turns.push(receiver(&one, "x"));
        let mut held = Vec::new();
        let mut taken = Vec::new();
        while let Some((receiver, slot)) = turns.next(&slots) {
            taken.push(receiver.origin.clone());
            held.push(slot);
        }
        assert_eq!(taken, ["a", "x", "b", "c"], "three, and two are free");
        turns.push(receiver(&one, "y"));
        assert_eq!(turns.next(&slots).map(|(receiver, _slot)| receiver.origin.clone()).as_deref(), Some("y"));
        held.clear();
        assert_eq!(turns.next(&slots).map(|(receiver, _slot)| receiver.origin.clone()).as_deref(), Some("d"));
        assert!(!turns.is_empty());
    }
}
