//! Every operation of the internal listener: the one table that defines routes and document.

mod service;
mod tenants;

use super::operation::Operation;

/// Tag of the operations for connectors, which report the results of upstreams. They may have a listener of their own.
const CONNECTORS: &str = "Connectors";
/// Path of the document; on every listener.
const DOCUMENT: &str = "/openapi.json";

/// Operations of one subject.
pub(super) struct Group {
    /// Tag in the document.
    pub(super) tag: &'static str,
    /// Description in the document.
    pub(super) about: &'static str,
    /// The operations; operations with the same path are adjacent.
    pub(super) operations: fn() -> Vec<Operation>,
}

/// Every group, in the order of the document.
pub(super) const GROUPS: [Group; 15] = [
    Group {
        tag: "Clients",
        about: "Clients pay for verifications. A client has apps, keys and credits.",
        operations: tenants::clients,
    },
    Group {
        tag: "Brands",
        about: "A client's name, logo, colour, contact and privacy notice on pages.",
        operations: tenants::brands,
    },
    Group {
        tag: "Apps",
        about: "The applications of a client, identified by `X-API-APP-ID`.",
        operations: tenants::apps,
    },
    Group {
        tag: "Keys",
        about: "The API keys of a client. The text of a key is shown once.",
        operations: tenants::keys,
    },
    Group {
        tag: "Users",
        about: "The people of a client who use the portal, and their roles.",
        operations: tenants::users,
    },
    Group { tag: "Credits", about: "Balances and movements of clients' credits.", operations: tenants::credits },
    Group {
        tag: "Operators",
        about: "The people who operate the service, and their roles.",
        operations: service::operators,
    },
    Group {
        tag: "Encryption",
        about: "The keys with which the service encrypts and signs.",
        operations: service::encryption,
    },
    Group {
        tag: "Erasure",
        about: "Erasure of personal data before its retention ends.",
        operations: service::erasure,
    },
    Group { tag: "Audit", about: "Changes by operators.", operations: service::audit },
    Group { tag: "Consents", about: "What people were asked, and whether they agreed.", operations: service::consents },
    Group { tag: "Support", about: "Look-up of a transaction or a refused request.", operations: service::support },
    Group {
        tag: "Webhooks",
        about: "Deliveries of the webhooks of a transaction or a flow.",
        operations: service::webhooks,
    },
    Group { tag: CONNECTORS, about: "Reports of upstreams about flows.", operations: service::connectors },
    Group {
        tag: "Node",
        about: "The process that answers: its health, its metrics and its actors.",
        operations: service::node,
    },
];

/// Returns every operation.
#[must_use]
pub fn operations() -> Vec<Operation> {
    Part::Whole.operations().map(|(_, operation)| operation).collect()
}

/// The part of the table that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// Everything except the connectors' reports, which another listener accepts.
    WithoutReports,
    /// Only the connectors' reports, and their document.
    Reports,
}

impl Part {
    /// Returns the operations with the tags of their groups.
    pub(super) fn operations(self) -> impl Iterator<Item = (&'static str, Operation)> {
        let all =
            GROUPS.iter().flat_map(|group| (group.operations)().into_iter().map(|operation| (group.tag, operation)));
        all.filter(move |(tag, operation)| match self {
            Self::Whole => true,
            Self::WithoutReports => *tag != CONNECTORS,
            Self::Reports => *tag == CONNECTORS || operation.path == DOCUMENT,
        })
    }
}
