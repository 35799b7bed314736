//! Every fixed bound of the service, in one place, with the relations between them checked by the
//! compiler. What an operator may change is a setting and not here.

use std::num::NonZeroU32;
use std::time::Duration;

/// Claims in one request; there are thirty (specification, "OVSE claims").
pub const CLAIMS_MAX: usize = 30;
/// Characters of a URL that a client gives us.
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
/// Characters of an Android package id.
pub const ANDROID_PACKAGE_CHARS_MAX: usize = 255;
/// Characters kept of a reason that the identity app gives.
pub const REASON_CHARS_MAX: usize = 200;
/// Characters kept of an error code that the identity app gives.
pub const REASON_CODE_CHARS_MAX: usize = 32;
/// Credits in one grant or adjustment.
pub const CREDITS_PER_MOVE_MAX: u64 = 1_000_000_000_000;
/// Credits that one OVSE verification costs (specification, "Limits").
pub const CREDITS_PER_VERIFICATION: u64 = 1;
/// Rows of one page.
pub const PAGE_SIZE_MAX: u32 = 100;
/// Rows of one page when the caller does not say.
pub const PAGE_SIZE_DEFAULT: u32 = 20;
/// How long a long poll may wait, in seconds.
pub const LONG_POLL_SECONDS_MAX: u64 = 30;
/// How long an answer is replayed for its `Idempotency-Key`.
pub const IDEMPOTENCY_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Bytes read of a webhook receiver's answer before the connection is dropped.
pub const WEBHOOK_RESPONSE_BYTES_MAX: usize = 64 * 1_024;
/// Bytes of a callback body, photo claim included.
pub const CALLBACK_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Bytes that the bodies of all callbacks together may hold of the memory.
pub const CALLBACK_BYTES_HELD_MAX: usize = 64 * 1_024 * 1_024;
/// How long the body of a callback may take to arrive.
pub const CALLBACK_ARRIVAL_MAX: Duration = Duration::from_secs(30);
/// Bytes of a callback that is verified where it was received; larger ones are verified on other threads.
pub const CALLBACK_INLINE_BYTES_MAX: usize = 64 * 1_024;
/// Bytes of an SD-JWT.
pub const CREDENTIAL_BYTES_MAX: usize = CALLBACK_BYTES_MAX;
/// Disclosures in one SD-JWT.
pub const DISCLOSURES_MAX: usize = 256;
/// Depth to which JSON of a credential may nest.
pub const CREDENTIAL_DEPTH_MAX: usize = 16;
/// JSON values of a credential in all: its payload, digests and decoys included, and its disclosures.
pub const CREDENTIAL_VALUES_MAX: usize = 8_192;
/// Characters of a JOSE header.
pub const JOSE_HEADER_CHARS_MAX: usize = 8 * 1_024;
/// JSON values of a JOSE header.
pub const JOSE_HEADER_VALUES_MAX: usize = 64;
/// Characters of a JOSE signature; one of ES256 has 86.
pub const JOSE_SIGNATURE_CHARS_MAX: usize = 1_024;
/// Characters of a key binding.
pub const KEY_BINDING_CHARS_MAX: usize = 16 * 1_024;
/// Bytes of an intent JWT that is read back; our own stay near 1,000.
pub const INTENT_BYTES_MAX: usize = 8 * 1_024;
/// Digits of a QR value that is read back; a QR code holds 7,089.
pub const QR_DIGITS_MAX: usize = 8_192;
/// Characters of a transaction id as a callback gives it, before it is known to be one.
pub const CALLBACK_TXN_CHARS_MAX: usize = 64;
/// Elements in an XML callback, known and unknown.
pub const CALLBACK_ELEMENTS_MAX: usize = 32;
/// JSON values of a JSON callback, known and unknown.
pub const CALLBACK_VALUES_MAX: usize = 64;
/// Characters of an event's name.
pub const EVENT_NAME_CHARS_MAX: usize = 200;
/// Guests of one event.
pub const GUESTS_MAX: u32 = 1_000_000;
/// How far in the future an event may end.
pub const EVENT_LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// Bytes of a file that travels as Base64: a signed or stamped PDF, a document of the locker.
pub const FILE_BYTES_MAX: usize = 10 * 1_024 * 1_024;
/// Characters of such a file in Base64.
pub const FILE_CHARS_MAX: usize = FILE_BYTES_MAX.div_ceil(3) * 4;
/// Bytes of a request that holds such a file, and everything beside it.
pub const FILE_REQUEST_BYTES_MAX: usize = FILE_CHARS_MAX + 64 * 1_024;
/// Bytes of the memory that all such requests together may hold, from their first byte until the upstream has answered.
pub const FILE_REQUEST_BYTES_HELD_MAX: usize = 64 * 1_024 * 1_024;
/// How long such a request may take to arrive.
pub const FILE_REQUEST_ARRIVAL_MAX: Duration = Duration::from_secs(60);
/// Bytes of an upstream's answer to an order.
pub const UPSTREAM_ANSWER_BYTES_MAX: usize = 64 * 1_024;
/// Bytes of an upstream's report; room for one file of the largest size and everything beside it.
pub const REPORT_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// JSON values in an upstream's report, so that a small body cannot become a large tree.
pub const REPORT_VALUES_MAX: usize = 10_000;
/// JSON values in a client's request.
pub const BODY_VALUES_MAX: usize = 10_000;
/// Problems that are told of one report, or of one request.
pub const REPORT_PROBLEMS_MAX: usize = 100;
/// Bytes that the bodies of all reports together may hold of the memory while they are taken in.
pub const REPORT_BYTES_HELD_MAX: usize = 64 * 1_024 * 1_024;
/// How long the body of a report may take to arrive.
pub const REPORT_ARRIVAL_MAX: Duration = Duration::from_secs(60);
/// How long a client may take nothing of an answer to a poll before the answer is given up and its room is free again.
pub const POLL_STALL_MAX: Duration = Duration::from_secs(20);
/// How long a client may take to read such an answer whole: the largest comes through at 60 KB/s.
pub const POLL_READING_MAX: Duration = Duration::from_secs(5 * 60);
/// How often it is looked whether a body that arrives comes on; the first window is a grace.
pub const BODY_PROGRESS_WINDOW: Duration = Duration::from_secs(5);
/// Bytes of a body that must come in each further window.
pub const BODY_PROGRESS_BYTES_MIN: usize = 5 * 1_024;
/// Bytes that small bodies which do not arrive at once may hold of the memory together.
pub const REQUEST_BYTES_HELD_MAX: usize = 32 * 1_024 * 1_024;
/// Bytes that answers may hold of the memory together, until their clients have read them.
pub const ANSWER_BYTES_HELD_MAX: usize = 96 * 1_024 * 1_024;
/// Pieces of untrusted work that wait for processor time at one moment.
pub const CPU_WAITING_MAX: usize = 256;
/// How long one waits for its turn.
pub const CPU_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long it takes until half of the processor time that an owner has used is forgotten.
pub const CPU_MEMORY_HALVES_IN: Duration = Duration::from_secs(10);
/// Bytes of the guests of one answer, above which the rest of the page is left to another one.
pub const GUEST_LIST_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// Bytes of guests that are read and written at once; a single guest may have more.
pub const GUEST_SLICE_BYTES: usize = 256 * 1_024;
/// Bytes of guests up to which they are opened where the request is served.
pub const GUEST_SLICE_BYTES_AT_ONCE: usize = 32 * 1_024;
/// Bytes of an answer of which a client must take so many in every [`ANSWER_STALL_MAX`], while some wait to be sent.
pub const ANSWER_PROGRESS_BYTES: usize = 16 * 1_024;
/// How long a client may take less than that before its connection is closed.
pub const ANSWER_STALL_MAX: Duration = Duration::from_secs(20);
/// Bytes of an answer that are handed to the connection at once; it asks for more when they are sent.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1_024;
/// Bytes of a connection's answers that the kernel takes before they are under way.
pub const ANSWER_UNSENT_BYTES: u32 = 64 * 1_024;
/// Bytes that are read of a connection at once while a request is awaited; what they hold is decoded before more are read.
pub const READ_HEAD_BYTES: usize = 4 * 1_024;
/// The same while the body of a request arrives.
pub const READ_BODY_BYTES: usize = 64 * 1_024;
/// How long a small body may take to arrive: every JSON body without a file, every form of a page.
pub const SMALL_BODY_ARRIVAL_MAX: Duration = Duration::from_secs(30);
/// Characters of an id that another system chose.
pub const FOREIGN_ID_CHARS_MAX: usize = 128;
/// Characters of a text that a flow carries and does not read: names, remarks, reasons.
pub const TEXT_CHARS_MAX: usize = 1_024;
/// Characters of the consent declaration shown to the person.
pub const CONSENT_TEXT_CHARS_MAX: usize = 4_096;
/// Signers of one document, signatories of one e-stamp.
pub const SIGNERS_MAX: usize = 20;
/// Documents of one locker request, files of one e-stamp.
pub const DOCUMENTS_MAX: usize = 20;
/// Accounts of one wealth-data consent.
pub const ACCOUNTS_MAX: usize = 500;
/// Depth to which the details of a locker document may nest.
pub const DETAILS_DEPTH_MAX: usize = 8;
/// How long a signer is invited when the client does not say.
pub const INVITATION_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long a signer may be invited.
pub const INVITATION_MAX: Duration = Duration::from_secs(90 * 24 * 3_600);
/// Intents that one worker keeps for verify pages that are looked at again.
pub const PAGE_INTENTS_KEPT_MAX: usize = 128;
/// How long verify pages show one intent, at most; the page may stand open until its end.
pub const PAGE_INTENT_REUSED_MAX: Duration = Duration::from_secs(60);
/// Pages that an intent signed for an address counts as, beside the page itself: what its signature
/// costs of a processor, in pages without one.
pub const PAGE_SIGNATURE_COST: NonZeroU32 = NonZeroU32::new(4).unwrap();
/// Store partitions; a client lives in one of them.
pub const PARTITIONS: u8 = 64;

const _: () = assert!(PARTITIONS.is_power_of_two() && PARTITIONS <= 64, "six leading bits of an id hold it");
const _: () = assert!(CREDENTIAL_BYTES_MAX <= CALLBACK_BYTES_MAX);
const _: () = assert!(CALLBACK_BYTES_HELD_MAX >= 8 * CALLBACK_BYTES_MAX);
const _: () = assert!(PAGE_SIZE_DEFAULT <= PAGE_SIZE_MAX);
const _: () = assert!(CLAIMS_MAX < DISCLOSURES_MAX);
const _: () = assert!(DISCLOSURES_MAX * 16 < CREDENTIAL_VALUES_MAX, "every disclosure has a digest, a few values, and decoys beside it");
const _: () = assert!(CALLBACK_INLINE_BYTES_MAX < CALLBACK_BYTES_MAX);
const _: () = assert!(FILE_CHARS_MAX + 1_024 * 1_024 <= REPORT_BYTES_MAX, "a report holds its largest file");
const _: () = assert!(FILE_REQUEST_BYTES_HELD_MAX >= 4 * FILE_REQUEST_BYTES_MAX, "one client may keep two and leaves room to others");
const _: () = assert!(SIGNERS_MAX * (URL_CHARS_MAX + FOREIGN_ID_CHARS_MAX) < UPSTREAM_ANSWER_BYTES_MAX, "every signer has a page");
const _: () = assert!(REPORT_BYTES_HELD_MAX >= 4 * REPORT_BYTES_MAX && ANSWER_BYTES_HELD_MAX >= 4 * REPORT_BYTES_MAX);
const _: () = assert!(POLL_STALL_MAX.as_secs() < POLL_READING_MAX.as_secs());
const _: () = assert!(REPORT_BYTES_MAX as u64 <= 60_000 * POLL_READING_MAX.as_secs(), "the largest answer can be read in time");
const _: () = assert!(ACCOUNTS_MAX * 5 < REPORT_VALUES_MAX && SIGNERS_MAX * 13 < REPORT_VALUES_MAX);
const _: () = assert!(INVITATION_DEFAULT.as_secs() <= INVITATION_MAX.as_secs());
const _: () = assert!(ANSWER_PIECE_BYTES <= ANSWER_UNSENT_BYTES as usize, "a piece that is taken goes to the kernel whole");
const _: () = assert!(GUEST_SLICE_BYTES_AT_ONCE < GUEST_SLICE_BYTES && GUEST_SLICE_BYTES < GUEST_LIST_BYTES_MAX);
const _: () = assert!(GUEST_LIST_BYTES_MAX < ANSWER_BYTES_HELD_MAX && READ_HEAD_BYTES < READ_BODY_BYTES);
