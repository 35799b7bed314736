//! Every key that a store writes: its name, its type, what it holds, and when it expires. The tests
//! compare it with what a server holds.

/// When a key expires.
#[allow(dead_code, reason = "the texts are written for the reader")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It always has a time to live, until the given end.
    Always(&'static str),
    /// It has one, except while the given condition holds.
    Except(&'static str),
    /// It has none, for the given reason.
    None(&'static str),
}

/// One kind of key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyKind {
    /// Its name: `*` stands for an id, `{p*}` for the tag of a partition.
    pub(crate) pattern: &'static str,
    /// The type as Redis names it.
    pub(crate) of_type: &'static str,
    /// Its content, field by field.
    #[allow(dead_code, reason = "it is written for the reader")]
    pub(crate) holds: &'static str,
    /// When it expires.
    pub(crate) lifetime: Lifetime,
}

const fn kind(pattern: &'static str, of_type: &'static str, holds: &'static str, lifetime: Lifetime) -> KeyKind {
    KeyKind { pattern, of_type, holds, lifetime }
}

/// Every key that a store writes.
#[rustfmt::skip]
pub(crate) const KEYS: &[KeyKind] = &[
    kind("{p*}t:*", "hash", "a transaction: c client, a app, e event, o opened, x window's end, s sealed terms, g origin of its webhook, m nodes that have a copy; \
        ended: v when, p passed, f refusal, d answer, r sealed outcome, u result's end, y completing call; \
        delivery: i entry, h sealed address, k claimed, j claiming call, w outcome, n status, l duration",
        Lifetime::Except("its delivery has not ended")),
    kind("{p*}c:*", "hash", "a client: n name, t created, b balance, s entries of its ledger, i events so far, m when an import first did something for it, z since when it is suspended, q its limits", Lifetime::None("clients and their credits stay")),
    kind("{p*}l:*", "list", "a client's ledger: kind, amount, balance after, when, reference; the place is the number", Lifetime::None("the ledger only grows")),
    kind("{p*}g:*", "hash", "a client's grants and adjustments: kind and reference to number", Lifetime::None("a reference is valid for one movement for ever")),
    kind("{p*}ac:*", "hash", "a client's apps: id to created and place", Lifetime::None("apps stay")),
    kind("{p*}kc:*", "hash", "a client's keys: id to created and place", Lifetime::None("keys stay, revoked ones too")),
    kind("{p*}i:*", "hash", "the answer kept under an idempotency key: s what it created, q request, a sealed answer, u its end", Lifetime::Always("the answer's end")),
    kind("{p*}o:*", "string", "the request that may place the order of an idempotency key", Lifetime::Always("the lease's end")),
    kind("{p*}e:*", "hash", "an event: c client, a app, t created, i place, s sealed terms, y active, x end, m places, o origin and h sealed URL of its webhook; \
        r registrations, n scans, b abandoned", Lifetime::Always("its end and the retention, or its last scan")),
    kind("{p*}r:*", "list", "an event's registrations: transaction, when, sealed outcome", Lifetime::Always("with its event")),
    kind("{p*}w:*", "zset", "an event's scans that nobody answered, by their window's end", Lifetime::Always("with its event")),
    kind("{p*}ae:*", "zset", "an app's events by creation", Lifetime::Always("with its last event")),
    kind("{p*}ax:*", "zset", "an app's events by when they go", Lifetime::Always("with its last event")),
    kind("{p*}f:*", "hash", "a flow: a app, s sealed state, z version, u its end, l name of the report that polls show; d and a name: a fetch's sealed state; \
        w and a name: what a queued webhook tells", Lifetime::Always("its result's end, or its own while it is pending")),
    kind("{p*}fr:*:*", "hash", "a report of a flow: r sealed payload, u result's end, y committing call; delivery as of a transaction: v when it was queued", Lifetime::Except("its delivery has not ended")),
    kind("{p*}n:*", "string", "the flow whose webhook a deduplication key is, by the key's digest", Lifetime::Always("its flow's end at that moment")),
    kind("{p*}lapse", "zset", "flows with an open invitation, by its end", Lifetime::Always("with its last flow")),
    kind("{p*}out", "stream", "waiting deliveries: t transaction, or flow and name of the report, o origin; the pending lists of the group say for which node", Lifetime::None("its entry ids must not restart; it is empty when nothing waits")),
    kind("{p*}flight", "hash", "unfinished attempts: entry to node and subject", Lifetime::None("it is empty when there is no attempt")),
    kind("a:*", "hash", "an app: p partition, r sealed record, w sealed URLs of its webhooks", Lifetime::None("apps stay")),
    kind("k:*", "hash", "an API key by its digest: i id, c client, l label, e environments, t created, x end, v revoked", Lifetime::None("keys stay, revoked ones too")),
    kind("kid:*", "string", "the digest of a key by its id", Lifetime::None("keys stay, revoked ones too")),
    kind("s:*", "hash", "a session by the digest of its id: u when it ends unless it is used, x when it ends in any case, s sealed key and app", Lifetime::Always("its end")),
    kind("rf:*", "zset", "refused requests of an app, sealed, by when", Lifetime::Always("a day after the newest")),
    kind("audit", "list", "what operators have changed: number, hash before, own hash, sealed entry; the place is the number", Lifetime::None("the audit log only grows")),
    kind("{operators}all", "hash", "the operators by id: digest of the token, sealed record", Lifetime::None("operators stay, revoked ones too")),
    kind("{operators}revoked", "hash", "when an operator was revoked", Lifetime::None("operators stay, revoked ones too")),
    kind("clients", "zset", "every client by creation", Lifetime::None("clients and their credits stay")),
    kind("cred:*", "string", "a credential that was presented: transaction, call, end", Lifetime::Always("the replay window")),
    kind("{nodes}beats", "zset", "the nodes by their latest heartbeat; 0 for one that has left", Lifetime::Always("a day after the last heartbeat")),
    kind("canary", "string", "a sealed text that only the store's encryption keys open", Lifetime::None("it shows whether a node has the keys")),
    kind("{canary}starts", "string", "starts of nodes, each counted by a single command", Lifetime::None("it shows whether data was lost")),
    kind("{canary}steps", "string", "the same, each counted before by a step of several commands", Lifetime::None("it shows whether data was lost")),
    kind("{canary}started", "string", "the time of the latest start", Lifetime::None("it is written with each step")),
    kind("{canary}lost", "string", "since when data is missing, in milliseconds", Lifetime::None("an operator removes it by accepting the loss")),
    kind("{canary}acceptances", "string", "losses that operators have accepted", Lifetime::None("it must not go back")),
    kind("installation", "string", "the profile and the authority under which the store was made", Lifetime::None("a node of another installation is refused")),
    kind("intent-key", "string", "when operators have chosen an intent key, and its id; - when the settings decide", Lifetime::None("it holds until they choose again")),
    kind("probe", "string", "what the last health check wrote", Lifetime::Always("a minute")),
];
