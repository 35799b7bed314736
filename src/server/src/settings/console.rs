//! `[console]`: the console's address for operators' browsers, and the identity provider for their sign-in.

use sakshi_console::ProviderSettings;
use sakshi_domain::operator::Role;
use sakshi_domain::profile::Profile;
use sakshi_operator::inside::ProviderRoles;
use url::Url;

use super::flows::is_private;
use super::problem::Problems;
use super::reader::Reader;
use super::sections::origin;

/// `[console]`
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// Origin of the internal listener in browsers.
    pub base_url: Option<Url>,
    /// Identity provider, and the roles of its groups.
    pub provider: Option<(ProviderSettings, ProviderRoles)>,
}

/// Rule for the keys that need a provider.
const WITH_ISSUER: &str = "must be set together with console.oidc_issuer";

impl ConsoleSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let base_url = reader.optional("console.base_url", origin);
        let issuer = reader.optional("console.oidc_issuer", issuer);
        let client_id = reader.text("console.oidc_client_id");
        let client_secret = reader.secret("console.oidc_client_secret");
        let scopes = reader.text("console.oidc_scopes");
        let groups_claim = reader.text("console.oidc_groups_claim");
        let groups = reader.list("console.oidc_roles", role);
        let ends_with_token = reader.flag("console.oidc_session_ends_with_token");
        let Some(issuer) = issuer else { return Self { base_url, provider: None } };
        let problems = &mut reader.problems;
        problems.require(!client_id.is_empty(), "console.oidc_client_id", WITH_ISSUER);
        problems.require(client_secret.is_some(), "console.oidc_client_secret", WITH_ISSUER);
        problems.require(base_url.is_some(), "console.base_url", WITH_ISSUER);
        problems.require(!groups.is_empty(), "console.oidc_roles", WITH_ISSUER);
        problems.require(!groups_claim.is_empty(), "console.oidc_groups_claim", WITH_ISSUER);
        let is_openid = scopes.split(' ').any(|scope| scope == "openid");
        problems.require(is_openid, "console.oidc_scopes", "must have openid among its words");
        let base = base_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
        let client_secret = client_secret.unwrap_or_default();
        let roles = ProviderRoles { issuer: issuer.clone(), groups };
        let base_of = base.unwrap_or_default();
        let settings = ProviderSettings {
            issuer,
            client_id,
            client_secret,
            scopes,
            groups_claim,
            ends_with_token,
            base_url: base_of,
        };
        Self { base_url, provider: Some((settings, roles)) }
    }

    /// Adds a problem for an issuer without https.
    pub(super) fn refuse(&self, profile: Profile, problems: &mut Problems) {
        let Some((settings, _)) = &self.provider else { return };
        let is_https = settings.issuer.starts_with("https:");
        let is_here = Url::parse(&settings.issuer).is_ok_and(|url| is_private(&url)) && profile == Profile::Sandbox;
        problems.require(
            is_https || is_here,
            "console.oidc_issuer",
            "must be an https:// URL; http on this machine in the sandbox alone",
        );
    }
}

/// Parses an issuer, unchanged because issuers are compared as text.
fn issuer(text: &str) -> Result<String, &'static str> {
    let is_url = Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
    });
    is_url.then(|| text.to_owned()).ok_or("must be an http or https URL without credentials, query or fragment")
}

fn role(text: &str) -> Result<(String, Role), &'static str> {
    let parsed = text.rsplit_once('=').and_then(|(group, role)| Some((group.trim(), role.trim().parse().ok()?)));
    let (group, role) =
        parsed.filter(|(group, _)| !group.is_empty()).ok_or("must be GROUP=ROLE, with owner, support or auditor")?;
    Ok((group.to_owned(), role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_may_have_any_name_and_its_role_is_one_of_three() {
        assert_eq!(role("cn=owners,dc=bank = owner"), Ok(("cn=owners,dc=bank".to_owned(), Role::Owner)));
        for text in ["", "owners", "=owner", "owners=king"] {
            assert!(role(text).is_err(), "{text}");
        }
        assert!(issuer("https://login.example/realms/bank").is_ok());
        for text in ["login.example", "ftp://login.example", "https://a:b@login.example", "https://login.example?x=1"] {
            assert!(issuer(text).is_err(), "{text}");
        }
    }
}
