//! Cases that no run produces, with the reason and the tests that have them instead. `--gaps` reports a case that is
//! neither produced nor listed here, and one that is listed and produced.

use std::fmt::{self, Display};

/// Cases that no run produces.
pub(crate) struct Exempt {
    /// Names of [`crate::coverage::gaps`].
    pub(crate) cases: &'static [&'static str],
    pub(crate) reason: &'static str,
    /// Test files and directories in the repository.
    pub(crate) tests: &'static [&'static str],
}

impl Display for Exempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.tests.join(", "))
    }
}

pub(crate) const EXEMPT: &[Exempt] = &[
    Exempt {
        cases: STATIC,
        reason: "the response is part of the binary or of the settings, and reads no record",
        tests: &["tests/node/pages/files.rs", "tests/node/portal/docs.rs", "tests/node/api/openapi.rs"],
    },
    Exempt {
        cases: POSTERS,
        reason: "they draw the event's address and name, which `GET /api/nationalid-ovse/events` reads here",
        tests: &["tests/node/pages/poster.rs", "tests/node/portal/pages.rs"],
    },
    Exempt {
        cases: STREAMS,
        reason: "the response goes on until its caller leaves, so it needs a connection that can be closed",
        tests: &["tests/node/pages/live.rs", "tests/node/pages/kiosk.rs", "tests/browser/kiosk.test.mjs"],
    },
    Exempt {
        cases: REDIRECTS,
        reason: "they redirect a browser that repeats a form's address, and read no record",
        tests: &["tests/node/portal/forms.rs", "tests/node/portal/docs.rs", "tests/node/pages/guest.rs"],
    },
    Exempt {
        cases: GUEST_PAGES,
        reason: "they render a record that `GET /v` or `GET /d` reads here",
        tests: &["tests/node/pages/guest.rs", "tests/node/pages/entrance.rs", "tests/node/pages/kiosk.rs"],
    },
    Exempt {
        cases: PORTAL_PAGES,
        reason: "they render records that the API's and the operators' routes read here",
        tests: &["tests/node/portal/pages.rs", "tests/node/portal/work.rs", "tests/browser/portal_pages.test.mjs"],
    },
    Exempt {
        cases: PORTAL_FORMS,
        reason: "each is the use case of a route of the API or of operators, which is called here",
        tests: &["tests/node/portal/forms.rs", "tests/node/portal/keys.rs", "tests/node/portal/work.rs"],
    },
    Exempt {
        cases: USERS,
        reason: "people of a client have passwords and codes, whose hashing would take most of a run",
        tests: &["tests/node/portal/users.rs", "tests/node/portal/team.rs", "tests/browser/portal_users.test.mjs"],
    },
    Exempt { cases: BRANDS, reason: "a brand changes nothing but pages", tests: &["tests/api/brand.rs"] },
    Exempt {
        cases: NODE,
        reason: "they concern one process, its clock or its release, which a run replaces by stand-ins",
        tests: &[
            "tests/node/console/tree.rs",
            "tests/node/log_level.rs",
            "tests/api/clock.rs",
            "tests/api/intent_keys.rs",
            "tests/cluster/upgrade.rs",
            "tests/api/portal_refusals.rs",
        ],
    },
];

const STATIC: &[&str] = &[
    "GET /.well-known/jwks.json",
    "GET /api/ping",
    "GET /assets",
    "GET /assets/app-icon",
    "GET /assets/brand",
    "GET /assets/claims.css",
    "GET /assets/credits.css",
    "GET /assets/docs.css",
    "GET /assets/docs.js",
    "GET /assets/door.css",
    "GET /assets/door.js",
    "GET /assets/event.css",
    "GET /assets/figures.css",
    "GET /assets/icon.svg",
    "GET /assets/kiosk.css",
    "GET /assets/kiosk.js",
    "GET /assets/live.js",
    "GET /assets/logo",
    "GET /assets/page.css",
    "GET /assets/page.js",
    "GET /assets/picture.css",
    "GET /assets/portal.css",
    "GET /assets/portal.js",
    "GET /assets/poster.css",
    "GET /assets/records.css",
    "GET /assets/team.css",
    "GET /assets/ticket.css",
    "GET /assets/ticket.js",
    "GET /assets/transaction.js",
    "GET /docs",
    "GET /docs.md",
    "GET /docs/asyncapi.json",
    "GET /docs/postman.json",
    "GET /docs/search",
    "GET /docs/search.json",
    "GET /llms.txt",
    "GET /openapi.json",
    "GET /portal/sign-in",
    "GET /portal/trial",
];

const POSTERS: &[&str] = &[
    "GET /api/nationalid-ovse/events/poster",
    "GET /api/nationalid-ovse/events/poster.svg",
    "GET /api/nationalid-ovse/events/qr.png",
    "GET /api/nationalid-ovse/events/qr.svg",
    "GET /portal/events/poster",
    "GET /portal/events/poster.svg",
    "GET /portal/events/qr.png",
    "GET /portal/events/qr.svg",
];

const STREAMS: &[&str] = &["GET /e/kiosk/events", "GET /portal/events/live", "GET /v/events"];

const REDIRECTS: &[&str] = &[
    "GET /docs/",
    "GET /docs/guides",
    "GET /docs/guides/start",
    "GET /e/start",
    "GET /portal/",
    "GET /portal/app",
    "GET /portal/sign-out",
    "GET /portal/team/sign-in",
    "GET /portal/transactions/details",
];

const GUEST_PAGES: &[&str] = &["GET /d/t", "GET /e/event.ics", "GET /e/kiosk", "GET /e/ticket"];

const PORTAL_PAGES: &[&str] = &[
    "GET /portal",
    "GET /portal/checks",
    "GET /portal/credits",
    "GET /portal/deliveries",
    "GET /portal/events",
    "GET /portal/events/guests",
    "GET /portal/events/guests.csv",
    "GET /portal/events/guests.xlsx",
    "GET /portal/events/new",
    "GET /portal/events/settings",
    "GET /portal/keys",
    "GET /portal/log",
    "GET /portal/orders",
    "GET /portal/refusals",
    "GET /portal/status",
    "GET /portal/verifications.csv",
    "GET /portal/webhooks",
];

const PORTAL_FORMS: &[&str] = &[
    "POST /portal/checks",
    "POST /portal/events",
    "POST /portal/events/doors",
    "POST /portal/events/settings",
    "POST /portal/keys",
    "POST /portal/transactions",
    "POST /portal/transactions/details",
    "POST /portal/webhooks",
];

const USERS: &[&str] = &[
    "DELETE /admin/users",
    "GET /admin/clients/users",
    "GET /portal/account",
    "GET /portal/invite",
    "GET /portal/once",
    "GET /portal/team",
    "PATCH /admin/users",
    "POST /admin/clients/users",
    "POST /admin/users/invite",
    "POST /portal/account",
    "POST /portal/app",
    "POST /portal/invite",
    "POST /portal/once",
    "POST /portal/team",
    "POST /portal/team/sign-in",
    "POST /portal/trial",
];

const NODE: &[&str] = &[
    "DELETE /admin/log-level",
    "GET /admin/intent-keys",
    "GET /admin/log-level",
    "GET /admin/nodes",
    "GET /admin/requests",
    "GET /livez",
    "GET /metrics",
    "GET /readyz",
    "POST /admin/clock/accept",
    "POST /admin/intent-keys",
    "POST /admin/store/accept-loss",
    "POST /admin/store/finish-upgrade",
    "PUT /admin/log-level",
];

const BRANDS: &[&str] =
    &["GET /admin/clients/brand", "GET /admin/events/brand", "PATCH /admin/clients/brand", "PATCH /admin/events/brand"];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::coverage::all_cases;

    #[test]
    fn every_exempt_case_exists_and_is_listed_once() {
        let all: BTreeSet<String> = all_cases().into_iter().flat_map(|(_, cases)| cases).collect();
        let mut listed = BTreeSet::new();
        for case in EXEMPT.iter().flat_map(|exempt| exempt.cases) {
            assert!(all.contains(*case), "{case}");
            assert!(listed.insert(case), "{case}");
        }
    }

    #[test]
    fn every_test_that_covers_an_exempt_case_exists() {
        for exempt in EXEMPT {
            assert!(!exempt.reason.is_empty() && !exempt.tests.is_empty());
            for test in exempt.tests {
                assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(test).exists(), "{test}");
            }
        }
    }
}
