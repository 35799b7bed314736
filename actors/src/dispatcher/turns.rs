//! The order of attempts: clients take turns, and so do the receivers of each client.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sakshi_domain::delivery::Receiver;
use sakshi_domain::ids::ClientId;
use sakshi_supervision::{FairSlot, FairSlots};

/// Receivers with something to send that may begin an attempt.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Clients with receivers here, in order of their turns.
    clients: VecDeque<ClientId>,
    receivers: HashMap<ClientId, VecDeque<Arc<Receiver>>>,
}

impl Turns {
    /// Adds a receiver after the others of its client.
    pub(super) fn push(&mut self, receiver: Arc<Receiver>) {
        let client_receivers = self.receivers.entry(receiver.client.clone()).or_default();
        if client_receivers.is_empty() {
            self.clients.push_back(receiver.client.clone());
        }
        client_receivers.push_back(receiver);
    }

    /// Returns the next receiver whose client may have another slot, with the slot.
    pub(super) fn next(&mut self, slots: &FairSlots<ClientId>) -> Option<(Arc<Receiver>, FairSlot<ClientId>)> {
        let (index, slot) =
            self.clients.iter().enumerate().find_map(|(index, client)| Some((index, slots.enter(client)?)))?;
        let client = self.clients.remove(index)?;
        let client_receivers = self.receivers.get_mut(&client)?;
        let receiver = client_receivers.pop_front()?;
        if client_receivers.is_empty() {
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
    fn clients_take_turns_up_to_their_share_of_the_slots() {
        let [busy_client, small_client] = [ClientId::generate(), ClientId::generate()];
        let (mut turns, slots) = (Turns::default(), FairSlots::new(6));
        let receiver =
            |client: &ClientId, origin: &str| Arc::new(Receiver { client: client.clone(), origin: origin.into() });
        for origin in ["a", "b", "c", "d", "e"] {
            turns.push(receiver(&busy_client, origin));
        }
        turns.push(receiver(&small_client, "x"));
        let mut slots_taken = Vec::new();
        let mut origins = Vec::new();
        while let Some((receiver, slot)) = turns.next(&slots) {
            origins.push(receiver.origin.clone());
            slots_taken.push(slot);
        }
        assert_eq!(origins, ["a", "x", "b", "c"], "the client has three slots, and two are free");
        turns.push(receiver(&small_client, "y"));
        assert_eq!(turns.next(&slots).map(|(receiver, _slot)| receiver.origin.clone()).as_deref(), Some("y"));
        slots_taken.clear();
        assert_eq!(turns.next(&slots).map(|(receiver, _slot)| receiver.origin.clone()).as_deref(), Some("d"));
        assert!(!turns.is_empty());
    }
}
