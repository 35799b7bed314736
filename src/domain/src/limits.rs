//! The fixed limits of the service, with the relations between them checked at compile time. Limits that an
//! operator can change are settings.
//!
//! `…_BYTES_HELD_MAX` bounds the memory for all such bodies together, on one node.

use std::num::NonZeroU32;
use std::time::Duration;

/// Claims in one request (specification, "OVSE claims").
pub const CLAIMS_MAX: usize = 30;
/// Characters of a URL from a client.
pub const URL_CHARS_MAX: usize = 2_048;
/// Characters of a request id.
pub const REQUEST_ID_CHARS_MAX: usize = 128;
/// Characters of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;
/// Characters of `name_hint`.
pub const NAME_HINT_CHARS_MAX: usize = 100;
/// Characters of `client_reference_id`.
pub const CLIENT_REFERENCE_CHARS_MAX: usize = 128;
/// Characters of a client's, an app's or a key's name.
pub const LABEL_CHARS_MAX: usize = 100;
/// Apps of a client that is transferred between installations.
pub const TRANSFERRED_APPS_MAX: usize = 100;
/// Keys of a client that is transferred between installations.
pub const TRANSFERRED_KEYS_MAX: usize = 500;
/// Bytes of a client that is transferred between installations, as JSON.
pub const TRANSFER_BYTES_MAX: usize = 2 * 1_024 * 1_024;
/// Characters of an Android package id.
pub const ANDROID_PACKAGE_CHARS_MAX: usize = 255;
/// Characters of a failure message from the identity app; longer messages are cut.
pub const REASON_CHARS_MAX: usize = 200;
/// Characters of a failure code from the identity app; longer codes are cut.
pub const REASON_CODE_CHARS_MAX: usize = 32;
/// Credits in one grant or adjustment.
pub const CREDITS_PER_MOVE_MAX: u64 = 1_000_000_000_000;
/// Credits that one OVSE verification costs (specification, "Limits").
pub const CREDITS_PER_VERIFICATION: u64 = 1;
/// Largest page number of a list.
pub const PAGE_MAX: u32 = 2_147_483_647;
/// Entries of one page of a list.
pub const PAGE_SIZE_MAX: u32 = 100;
/// Default number of entries of one page.
pub const PAGE_SIZE_DEFAULT: u32 = 20;
/// Longest wait of a long poll, in seconds.
pub const LONG_POLL_SECONDS_MAX: u64 = 30;
/// Time for which a response is stored under its `Idempotency-Key`.
pub const IDEMPOTENCY_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Bytes of a fetched issuer key set.
pub const JWKS_BYTES_MAX: usize = 256 * 1_024;
/// Minimum time between two reads of the issuer's keys for the same unknown key id.
pub const JWKS_REREAD_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum time between two reads of the issuer's keys for any unknown key ids.
pub const JWKS_REREAD_SPACING: Duration = Duration::from_secs(2);
/// Unknown key ids that a node remembers.
pub const JWKS_IDS_KEPT_MAX: usize = 1_024;
/// Bytes of a credential status response.
pub const STATUS_ANSWER_BYTES_MAX: usize = 64 * 1_024;
/// JSON values of a credential status response.
pub const STATUS_VALUES_MAX: usize = 64;
/// Bytes of a decompressed status list; at one bit each, the states of 8 million credentials.
pub const STATUS_LIST_BYTES_MAX: usize = 1_024 * 1_024;
/// Timeout of fetching a credential status: queueing, name resolution, connection and body together.
pub const STATUS_FETCH_MAX: Duration = Duration::from_secs(5);
/// Fetches of credential statuses in flight on a node.
pub const STATUS_FETCHES_MAX: usize = 64;
/// Time for which a failed fetch of a credential status is not repeated.
pub const STATUS_FAILURE_KEPT: Duration = Duration::from_secs(5);
/// Credential status responses that a node caches.
pub const STATUS_ANSWERS_KEPT_MAX: usize = 4_096;
/// Bytes of the status lists that a node caches.
pub const STATUS_BYTES_KEPT_MAX: usize = 16 * 1_024 * 1_024;
/// Longest session of the console.
pub const CONSOLE_SESSION_MAX: Duration = Duration::from_secs(8 * 3_600);
/// Time for which a grant of credits waits for a second operator.
pub const GRANT_REQUEST_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Refused requests of an app that are stored for its developers.
pub const REFUSALS_KEPT_MAX: u32 = 200;
/// Time for which a refused request is stored.
pub const REFUSAL_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Fields that are stored of a refused request.
pub const REFUSAL_FIELDS_MAX: usize = 20;
/// Characters that are stored of a field of a refused request.
pub const REFUSAL_FIELD_CHARS_MAX: usize = 100;
/// Refused requests of an app that a node stores per second; further ones are dropped.
pub const REFUSALS_KEPT_PER_SECOND: u32 = 10;
/// Characters of an e-mail address.
pub const EMAIL_CHARS_MAX: usize = 254;
/// Sign-in attempts per hour at one portal account from unknown browsers, at each node.
pub const SIGN_INS_PER_ACCOUNT: u32 = 10;
/// Sign-in attempts per hour at one portal account from one known browser, at each node.
pub const SIGN_INS_PER_BROWSER: u32 = 20;
/// Users of a client.
pub const USERS_MAX: u64 = 500;
/// Lifetime of a link that invites or resets a user.
pub const INVITE_TTL: Duration = Duration::from_secs(72 * 3_600);
/// Months of 30 days for which the log of a client is kept after the month of an entry.
pub const CLIENT_LOG_MONTHS: i64 = 24;
/// Bytes of a webhook receiver's response that are read before the connection is closed.
pub const WEBHOOK_RESPONSE_BYTES_MAX: usize = 64 * 1_024;
/// Longest wait of a webhook for the resolver to answer for the receiver's name.
pub const WEBHOOK_RESOLUTION_MAX: Duration = Duration::from_secs(30);
/// Bytes of a callback body, including a photo.
pub const CALLBACK_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Bytes of memory for the bodies of all callbacks.
pub const CALLBACK_BYTES_HELD_MAX: usize = 64 * 1_024 * 1_024;
/// Time within which the body of a callback must arrive.
pub const CALLBACK_ARRIVAL_MAX: Duration = Duration::from_secs(30);
/// Bytes of a callback that the receiving thread verifies; another thread verifies larger ones.
pub const CALLBACK_INLINE_BYTES_MAX: usize = 64 * 1_024;
/// Bytes of a report or payload that a worker itself reads or decrypts; another thread handles larger ones.
pub const PAYLOAD_INLINE_BYTES_MAX: usize = 64 * 1_024;
/// Bytes of an SD-JWT.
pub const CREDENTIAL_BYTES_MAX: usize = CALLBACK_BYTES_MAX;
/// Disclosures in one SD-JWT.
pub const DISCLOSURES_MAX: usize = 256;
/// Nesting depth of a credential's JSON.
pub const CREDENTIAL_DEPTH_MAX: usize = 16;
/// JSON values of a credential, with its digests, decoys and disclosures.
pub const CREDENTIAL_VALUES_MAX: usize = 8_192;
/// Characters of a JOSE header.
pub const JOSE_HEADER_CHARS_MAX: usize = 8 * 1_024;
/// JSON values of a JOSE header.
pub const JOSE_HEADER_VALUES_MAX: usize = 64;
/// Characters of a JOSE signature; an ES256 signature has 86.
pub const JOSE_SIGNATURE_CHARS_MAX: usize = 1_024;
/// Characters of a key-binding JWT.
pub const KEY_BINDING_CHARS_MAX: usize = 16 * 1_024;
/// Bytes of an intent JWT that is read; intents of this service have about 1,000.
pub const INTENT_BYTES_MAX: usize = 8 * 1_024;
/// Digits of a QR value that is read; a QR code holds 7,089.
pub const QR_DIGITS_MAX: usize = 8_192;
/// Characters of the transaction id in a callback, before it is parsed.
pub const CALLBACK_TXN_CHARS_MAX: usize = 64;
/// Elements of an XML callback.
pub const CALLBACK_ELEMENTS_MAX: usize = 32;
/// JSON values of a JSON callback.
pub const CALLBACK_VALUES_MAX: usize = 64;
/// Characters of an event's name.
pub const EVENT_NAME_CHARS_MAX: usize = 200;
/// Guests of one event.
pub const GUESTS_MAX: u32 = 1_000_000;
/// Credits that the guests of one event may spend.
pub const EVENT_BUDGET_MAX: u32 = 1_000_000_000;
/// Time after the end of an event for which its doors can be open.
pub const DOOR_AFTER_END_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Time after the end of a door for which it accepts earlier scans.
pub const DOOR_GRACE: Duration = Duration::from_secs(3_600);
/// Doors of an event with a valid link.
pub const DOORS_MAX: usize = 50;
/// Minimum of the default limit on pending scans of an event.
pub const PENDING_SCANS_MIN: u32 = 20;
/// Longest time until the end of an event.
pub const EVENT_LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// Bytes of a file that is sent as Base64: a signed or stamped PDF, a locker document.
pub const FILE_BYTES_MAX: usize = 10 * 1_024 * 1_024;
/// Characters of a file in Base64.
pub const FILE_CHARS_MAX: usize = FILE_BYTES_MAX.div_ceil(3) * 4;
/// Bytes of a request that contains a file.
pub const FILE_REQUEST_BYTES_MAX: usize = FILE_CHARS_MAX + 64 * 1_024;
/// Bytes of memory for all requests that contain a file, from the first byte until the upstream's response.
pub const FILE_REQUEST_BYTES_HELD_MAX: usize = 64 * 1_024 * 1_024;
/// Time within which a request that contains a file must arrive.
pub const FILE_REQUEST_ARRIVAL_MAX: Duration = Duration::from_secs(60);
/// Bytes of an upstream's response to an order.
pub const UPSTREAM_ANSWER_BYTES_MAX: usize = 64 * 1_024;
/// Bytes of an upstream's report: room for one file of the largest size and 1 MiB beside it.
pub const REPORT_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// JSON values of an upstream's report.
pub const REPORT_VALUES_MAX: usize = 10_000;
/// JSON values of a client's request.
pub const BODY_VALUES_MAX: usize = 10_000;
/// Problems listed for one report or request.
pub const REPORT_PROBLEMS_MAX: usize = 100;
/// Characters of an unknown field's or parameter's name that an error repeats. Known names are shorter.
pub const UNKNOWN_NAME_CHARS_MAX: usize = 128;
/// Bytes of memory for the bodies of all reports.
pub const REPORT_BYTES_HELD_MAX: usize = 64 * 1_024 * 1_024;
/// Time within which the body of a report must arrive.
pub const REPORT_ARRIVAL_MAX: Duration = Duration::from_secs(60);
/// Time within which a client must read a large response; 60 KB/s suffice for the largest answer to a poll.
pub const POLL_READING_MAX: Duration = Duration::from_secs(5 * 60);
/// Interval of progress checks on an arriving body; the first check is skipped.
pub const BODY_PROGRESS_WINDOW: Duration = Duration::from_secs(5);
/// Bytes of a body that must arrive between two checks.
pub const BODY_PROGRESS_BYTES_MIN: usize = 5 * 1_024;
/// Bytes of memory for small bodies that arrive in several pieces.
pub const REQUEST_BYTES_HELD_MAX: usize = 32 * 1_024 * 1_024;
/// Bytes of memory for all responses until their clients have read them.
pub const ANSWER_BYTES_HELD_MAX: usize = 96 * 1_024 * 1_024;
/// CPU-bound jobs on untrusted input in the queue.
pub const CPU_WAITING_MAX: usize = 256;
/// Longest wait of a CPU-bound job in the queue.
pub const CPU_WAIT_MAX: Duration = Duration::from_secs(10);
/// Half-life of the CPU time that is charged to an owner.
pub const CPU_USAGE_HALF_LIFE: Duration = Duration::from_secs(10);
/// Bytes of guests read and written at a time; a single guest may have more.
pub const GUEST_SLICE_BYTES: usize = 256 * 1_024;
/// Guests up to this many bytes are decrypted on the thread that serves the request.
pub const GUEST_SLICE_INLINE_BYTES: usize = 32 * 1_024;
/// Bytes of pending responses that a client must read in every [`ANSWER_STALL_MAX`].
pub const ANSWER_PROGRESS_BYTES: usize = 16 * 1_024;
/// Time for which a client may read less than [`ANSWER_PROGRESS_BYTES`] before its connection is closed.
pub const ANSWER_STALL_MAX: Duration = Duration::from_secs(20);
/// Bytes of a response passed to the connection at a time.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1_024;
/// Bytes of unsent responses that the kernel buffers for a connection.
pub const ANSWER_UNSENT_BYTES: u32 = 64 * 1_024;
/// Bytes read from a connection at a time while it waits for a request.
pub const READ_HEAD_BYTES: usize = 4 * 1_024;
/// Bytes read from a connection at a time while a body arrives.
pub const READ_BODY_BYTES: usize = 64 * 1_024;
/// Time within which a small body must arrive: a JSON body without a file, or a form.
pub const SMALL_BODY_ARRIVAL_MAX: Duration = Duration::from_secs(30);
/// Characters of an id that another system chose.
pub const FOREIGN_ID_CHARS_MAX: usize = 128;
/// Characters of free text in a flow: names, remarks, reasons.
pub const TEXT_CHARS_MAX: usize = 1_024;
/// Characters of the consent declaration shown to the person.
pub const CONSENT_TEXT_CHARS_MAX: usize = 4_096;
/// Signers of a document; signatories of an e-stamp.
pub const SIGNERS_MAX: usize = 20;
/// Documents of a locker request; files of an e-stamp.
pub const DOCUMENTS_MAX: usize = 20;
/// Accounts of a wealth-data consent.
pub const ACCOUNTS_MAX: usize = 500;
/// Nesting depth of the details of a locker document.
pub const DETAILS_DEPTH_MAX: usize = 8;
/// Default validity of a signer's invitation.
pub const INVITATION_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Longest validity of a signer's invitation.
pub const INVITATION_MAX: Duration = Duration::from_secs(90 * 24 * 3_600);
/// Time for which an unfinished flow is kept after its end was due, so that the sweeper or a late report can still end
/// it. Longer than an outage over a long weekend.
pub const FLOW_END_GRACE: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Longest time from a report to the end of a wealth-data consent for which it is kept. A consent may last for years; a
/// later end is more likely a mistake, and each further report keeps the consent longer.
pub const CONSENT_KEPT_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3_600);
/// A search of the register of consents ends this long after now, because the nodes' clocks differ.
pub const CONSENT_SEARCH_AHEAD: Duration = Duration::from_secs(24 * 3_600);
/// Intents that a worker caches for reloads of verify pages.
pub const PAGE_INTENTS_KEPT_MAX: usize = 128;
/// Time for which a cached intent is shown on verify pages.
pub const PAGE_INTENT_REUSED_MAX: Duration = Duration::from_secs(60);
/// Cost of a page with a signed intent in the rate limit of an address, in pages without one.
pub const PAGE_SIGNATURE_COST: NonZeroU32 = NonZeroU32::new(4).unwrap();
/// Largest change of a clock between two readings that is not a jump: more than NTP slew and busy machines cause.
pub const CLOCK_JUMP_MIN: Duration = Duration::from_secs(5 * 60);
/// Time that a clock must run evenly after a jump before anything is deleted by it.
pub const CLOCK_AGREEMENT: Duration = Duration::from_secs(3_600);
/// Longest stop of a node after which its start is not a jump of the clock.
pub const CLOCK_STOPPED_MAX: Duration = Duration::from_secs(3_600);
/// Partitions of the store; each client belongs to one.
pub const PARTITIONS: u8 = 64;

const _: () = assert!(PARTITIONS.is_power_of_two() && PARTITIONS <= 64, "six bits of an id hold it");
const _: () = assert!(
    CLOCK_JUMP_MIN.as_secs() < CLOCK_AGREEMENT.as_secs() && CLOCK_JUMP_MIN.as_secs() < CLOCK_STOPPED_MAX.as_secs()
);
const _: () = assert!(CREDENTIAL_BYTES_MAX <= CALLBACK_BYTES_MAX);
const _: () = assert!(CALLBACK_BYTES_HELD_MAX >= 8 * CALLBACK_BYTES_MAX);
const _: () = assert!(PAGE_SIZE_DEFAULT <= PAGE_SIZE_MAX);
const _: () =
    assert!(TRANSFERRED_APPS_MAX * (3 * URL_CHARS_MAX + 2_048) + TRANSFERRED_KEYS_MAX * 1_024 <= TRANSFER_BYTES_MAX);
const _: () = assert!(TRANSFERRED_APPS_MAX * 8 + TRANSFERRED_KEYS_MAX * 11 + 8 <= BODY_VALUES_MAX);
const _: () = assert!(CLAIMS_MAX < DISCLOSURES_MAX);
const _: () = assert!(STATUS_BYTES_KEPT_MAX >= 8 * STATUS_LIST_BYTES_MAX);
const _: () = assert!(
    DISCLOSURES_MAX * 16 < CREDENTIAL_VALUES_MAX,
    "a disclosure has a digest and a few values, and there are decoys"
);
const _: () = assert!(CALLBACK_INLINE_BYTES_MAX < CALLBACK_BYTES_MAX);
const _: () = assert!(FILE_CHARS_MAX + 1_024 * 1_024 <= REPORT_BYTES_MAX, "a report can contain the largest file");
const _: () = assert!(
    FILE_REQUEST_BYTES_HELD_MAX >= 4 * FILE_REQUEST_BYTES_MAX,
    "one client may have two, which leaves room for others"
);
const _: () = assert!(
    SIGNERS_MAX * (URL_CHARS_MAX + FOREIGN_ID_CHARS_MAX) < UPSTREAM_ANSWER_BYTES_MAX,
    "an answer can name a page for each signer"
);
const _: () = assert!(REPORT_BYTES_HELD_MAX >= 4 * REPORT_BYTES_MAX && ANSWER_BYTES_HELD_MAX >= 4 * REPORT_BYTES_MAX);
const _: () = assert!(ANSWER_STALL_MAX.as_secs() < POLL_READING_MAX.as_secs());
const _: () = assert!(
    REPORT_BYTES_MAX as u64 <= 60_000 * POLL_READING_MAX.as_secs(),
    "the largest answer can be read at 60 KB/s"
);
const _: () = assert!(ACCOUNTS_MAX * 5 < REPORT_VALUES_MAX && SIGNERS_MAX * 13 < REPORT_VALUES_MAX);
const _: () = assert!(INVITATION_DEFAULT.as_secs() <= INVITATION_MAX.as_secs());
const _: () = assert!(ANSWER_PIECE_BYTES <= ANSWER_UNSENT_BYTES as usize, "the kernel can take a whole piece");
const _: () = assert!(GUEST_SLICE_INLINE_BYTES < GUEST_SLICE_BYTES && GUEST_SLICE_BYTES < ANSWER_BYTES_HELD_MAX);
const _: () = assert!(READ_HEAD_BYTES < READ_BODY_BYTES);
