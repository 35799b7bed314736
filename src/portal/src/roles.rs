//! The role that each route of the portal needs: `view` to read, `organise` to change, and the exceptions listed here.
//! The extractor of the signed-in person checks the role, so a page cannot forget the check.

use actix_web::http::Method;
use sakshi_domain::user::UserRole;

/// Exceptions: a method, or any method if empty; a path with everything below it; the role.
const EXCEPTIONS: &[(&str, &str, UserRole)] = &[
    ("", "/portal/team", UserRole::Admin),
    ("", "/portal/keys", UserRole::Admin),
    // Actions that concern only the person.
    ("POST", "/portal/sign-out", UserRole::View),
    ("POST", "/portal/account", UserRole::View),
    ("POST", "/portal/app", UserRole::View),
    // Reads that are logged.
    ("POST", "/portal/transactions/{txnId}/details", UserRole::View),
    // Pages with forms, or with secrets of doors and webhooks.
    ("GET", "/portal/trial", UserRole::Organise),
    ("GET", "/portal/checks", UserRole::Organise),
    ("GET", "/portal/webhooks", UserRole::Organise),
    ("GET", "/portal/events/new", UserRole::Organise),
    ("GET", "/portal/events/{eventId}/settings", UserRole::Organise),
];

/// Returns the role that a route needs, by its pattern.
#[must_use]
pub fn required_role(method: &Method, pattern: &str) -> UserRole {
    let is_below = |path: &str| pattern.strip_prefix(path).is_some_and(|tail| tail.is_empty() || tail.starts_with('/'));
    let has_method = |name: &str| name.is_empty() || name == method.as_str();
    let exception = EXCEPTIONS.iter().find(|(name, path, _)| has_method(name) && is_below(path));
    let is_read = *method == Method::GET || *method == Method::HEAD;
    exception.map_or(if is_read { UserRole::View } else { UserRole::Organise }, |(.., role)| *role)
}

/// Describes the rights of a role.
#[must_use]
pub(super) const fn describe_rights(role: UserRole) -> &'static str {
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
    fn an_unlisted_route_needs_the_role_of_its_method() {
        assert_eq!(required_role(&Method::GET, "/portal/new-page"), UserRole::View);
        assert_eq!(required_role(&Method::POST, "/portal/new-page"), UserRole::Organise);
        assert_eq!(required_role(&Method::DELETE, "/portal/new-page"), UserRole::Organise);
        assert_eq!(required_role(&Method::HEAD, "/portal/keys/{key_id}"), UserRole::Admin);
        assert_eq!(required_role(&Method::GET, "/portal/keyside"), UserRole::View);
    }
}
