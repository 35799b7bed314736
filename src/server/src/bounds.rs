//! Limits, times and rates from the settings, for the parts of the process that apply them.

use std::num::NonZeroU32;
use std::time::Duration;

use sakshi_actors::{ByteBounds, DispatchBounds, TreeBounds};
use sakshi_domain::limits::{REFUSALS_KEPT_PER_SECOND, SIGN_INS_PER_ACCOUNT, SIGN_INS_PER_BROWSER};
use sakshi_outbound::guard::AddressPolicy;
use sakshi_service::Rules;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_store::Retention;
use sakshi_web::event_stream::StreamSlots;
use sakshi_web::rate_limit::{ClientRates, RateLimit, RateLimits};

use crate::fd_budget::FdBudget;
use crate::settings::{Settings, WORKERS_MAX};

/// Time an actor may take to answer before the caller gets a 503.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which an expired transaction answers 410 before it is forgotten.
const EXPIRED_GRACE: Duration = Duration::from_secs(24 * 3_600);

/// Returns the number of HTTP workers: as configured, or one per core. Each worker runs one shard, a part of the
/// actors, of each kind.
pub(crate) fn workers(settings: &Settings) -> usize {
    match settings.server.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX.into()),
        count => count,
    }
}

/// Returns the number of processors that the node may use: one per HTTP worker, but no more than the machine or its
/// quota has.
pub(crate) fn processors(settings: &Settings) -> usize {
    workers(settings).min(std::thread::available_parallelism().map_or(1, usize::from))
}

/// Returns the bounds of the actors. `fds` is the division of the file descriptors.
pub(crate) fn tree(settings: &Settings, fds: &FdBudget) -> TreeBounds {
    TreeBounds {
        shards: workers(settings),
        live_transactions: settings.limits.max_live_transactions,
        in_flight: settings.limits.max_in_flight,
        mailbox_depth: settings.limits.mailbox_depth,
        ask_timeout: ASK_TIMEOUT,
        webhooks: DispatchBounds {
            in_flight: fds.webhooks,
            in_flight_per_origin: settings.webhooks.max_in_flight_per_origin.min(fds.webhooks),
            outcome_bytes: ByteBounds::OUTCOMES,
            flow_bytes: ByteBounds::FLOWS,
        },
        // Events and flows have no settings of their own.
        live_events: settings.limits.max_live_transactions,
        flow_result_ttl: settings.flows.result_ttl,
        flow_pending_ttl: settings.flows.pending_ttl,
    }
}

/// Returns the retention of expired records in the store.
pub(crate) fn retention(settings: &Settings) -> Retention {
    Retention { expired: EXPIRED_GRACE, events: settings.ovse.registration_ttl, consents: settings.ovse.consent_ttl }
}

/// Returns the settings that the use cases apply.
pub(crate) fn rules(settings: &Settings) -> Rules {
    Rules {
        profile: settings.profile,
        window: settings.ovse.window,
        result_ttl: settings.ovse.result_ttl,
        time_zone: settings.ovse.time_zone,
        registration_ttl: settings.ovse.registration_ttl,
        replay_window: settings.authority.credential_replay_window,
        has_public_base_url: settings.server.public_base_url.is_some(),
        urls: UrlPolicy {
            schemes: settings.webhooks.schemes,
            targets: AddressPolicy { allow_private: settings.webhooks.allow_private_targets },
        },
        callback_bytes: settings.limits.callback_bytes,
        flow_result_ttl: settings.flows.result_ttl,
        events_per_app: NonZeroU32::new(settings.limits.events_per_app).map(NonZeroU32::get),
        flow_pending_ttl: settings.flows.pending_ttl,
        low_credits: settings.telemetry.low_credits,
    }
}

/// Attempts at a door's PIN per minute and address. The link cannot be guessed.
const PIN_TRIES_PER_MINUTE: u32 = 10;
/// Attempts per minute from all addresses. With a hundred million PINs, a month of attempts succeeds with a chance of
/// 1.3 %.
const PIN_TRIES_PER_MINUTE_OF_DOOR: u32 = 30;

/// Returns the rate limits of the public listener, counted over all workers. Streams may use half of the `connections`.
pub(crate) fn rates(settings: &Settings, connections: usize) -> RateLimits {
    let limits = &settings.limits;
    RateLimits {
        clients: ClientRates::default(),
        init: RateLimit::per_second("init", limits.init_per_second_per_app),
        orders: RateLimit::per_second("orders", limits.orders_per_second_per_client),
        polls: RateLimit::per_second("polls", limits.polls_per_second_per_app),
        callbacks: RateLimit::per_second("callbacks", limits.callbacks_per_second_per_address),
        stray_callbacks: RateLimit::per_second("callbacks", limits.callbacks_per_second_per_address),
        pages: RateLimit::per_second("pages", limits.pages_per_second_per_address),
        event_starts: RateLimit::per_second("starts", limits.event_starts_per_second_per_address),
        starts_of_events: RateLimit::per_minute("starts", limits.event_starts_per_minute_per_event),
        refusals: RateLimit::per_second("refusals", REFUSALS_KEPT_PER_SECOND),
        sign_ins: RateLimit::per_minute("sign_ins", limits.sign_ins_per_minute_per_address),
        sign_ins_of_accounts: RateLimit::per_hour("sign_ins", SIGN_INS_PER_ACCOUNT),
        sign_ins_of_browsers: RateLimit::per_hour("sign_ins", SIGN_INS_PER_BROWSER),
        pins: RateLimit::per_minute("pins", PIN_TRIES_PER_MINUTE),
        pins_of_doors: RateLimit::per_minute("pins", PIN_TRIES_PER_MINUTE_OF_DOOR),
        streams: StreamSlots::new((connections / 2).max(1)),
        trusted_proxies: settings.server.trusted_proxies.clone().into(),
    }
}
