//! The role that each route of the portal needs: reading needs `view`, changing `organise`; the exceptions are listed
//! here. The extractor of the signed-in person checks it, so no page can forget it.

use actix_web::http::Method;
use sakshi_domain::user::UserRole;

/// Routes whose role differs from their method's: a method, or any; a path with everything below it; the role.
const EXCEPTIONS: &[(&str, &str, UserRole)] = &[
    ("", "/portal/team", UserRole::Admin),
    ("", "/portal/keys", UserRole::Admin),
    // Actions of everybody for themselves.
    ("POST", "/portal/sign-out", UserRole::View),
    ("POST", "/portal/account", UserRole::View),
    ("POST", "/portal/app", UserRole::View),
    // Reads that are logged.
    ("POST", "/portal/transactions/{txnId}/details", UserRole::View),
    // Pages that are forms, or show secrets of doors and webhooks.
    ("GET", "/portal/trial", UserRole::Organise),
    ("GET", "/portal/checks", UserRole::Organise),
    ("GET", "/portal/webhooks", UserRole::Organise),
    ("GET", "/portal/events/new", UserRole::Organise),
    ("GET", "/portal/events/{eventId}/settings", UserRole::Organise),
];

/// Returns the role that a route needs, by its pattern.
#[must_use]
pub fn needed(method: &Method, pattern: &str) -> UserRole {
    let is_of = |path: &str| pattern.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let exception = EXCEPTIONS.iter().find(|(of, path, _)| (of.is_empty() || *of == method.as_str()) && is_of(path));
    let is_read = *method == Method::GET || *method == Method::HEAD;
    exception.map_or(if is_read { UserRole::View } else { UserRole::Organise }, |(.., role)| *role)
}

/// Returns what a role may do, in words.
#[must_use]
pub(super) const fn in_words(role: UserRole) -> &'static str {
    match role {
        UserRole::View => "reads",
        UserRole::Organise => "verifies people, and looks after events, doors and webhooks",
        UserRole::Admin => "looks after API keys and the team as well",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_nobody_thought_of_needs_what_its_method_says() {
        assert_eq!(needed(&Method::GET, "/portal/new-page"), UserRole::View);
        assert_eq!(needed(&Method::POST, "/portal/new-page"), UserRole::Organise);
        assert_eq!(needed(&Method::DELETE, "/portal/new-page"), UserRole::Organise);
        assert_eq!(needed(&Method::HEAD, "/portal/keys/{key_id}"), UserRole::Admin);
        assert_eq!(needed(&Method::GET, "/portal/keyside"), UserRole::View);
    }
}
