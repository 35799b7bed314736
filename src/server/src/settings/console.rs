//! `[console]`: the console's address for operators' browsers, and the identity provider for their sign-in.

use sakshi_console::ProviderSettings;
use sakshi_domain::operator::Role;
use sakshi_domain::profile::Profile;
use sakshi_operator::console_api::ProviderRoles;
use url::Url;

use super::flows::is_private;
use super::problem::Problems;
use super::reader::Reader;
use super::sections::parse_origin;

/// `[console]`
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// Origin of the internal listener in browsers.
    pub base_url: Option<Url>,
    /// Identity provider, and the roles of its groups.
    pub provider: Option<(ProviderSettings, ProviderRoles)>,
}

/// Error for a missing key that the identity provider needs.
const WITH_ISSUER: &str = "must be set together with console.oidc_issuer";

impl ConsoleSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let base_url = reader.optional("console.base_url", parse_origin);
        let issuer = reader.optional("console.oidc_issuer", parse_issuer);
        let client_id = reader.text("console.oidc_client_id");
        let client_secret = reader.secret("console.oidc_client_secret");
        let scopes = reader.text("console.oidc_scopes");
        let groups_claim = reader.text("console.oidc_groups_claim");
        let groups = reader.list("console.oidc_roles", parse_role);
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
        let settings = ProviderSettings {
            issuer,
            client_id,
            client_secret,
            scopes,
            groups_claim,
            ends_with_token,
            base_url: base.unwrap_or_default(),
        };
        Self { base_url, provider: Some((settings, roles)) }
    }

    /// Adds a problem for an issuer without https.
    pub(super) fn check(&self, profile: Profile, problems: &mut Problems) {
        let Some((settings, _)) = &self.provider else { return };
        let is_https = settings.issuer.starts_with("https:");
        let is_local = Url::parse(&settings.issuer).is_ok_and(|url| is_private(&url)) && profile == Profile::Sandbox;
        problems.require(
            is_https || is_local,
            "console.oidc_issuer",
            "must be an https:// URL; http on this machine in the sandbox alone",
        );
    }
}

/// Checks an issuer, and returns it unchanged, because issuers are compared as text.
fn parse_issuer(text: &str) -> Result<String, &'static str> {
    let is_url = Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    });
    is_url.then(|| text.to_owned()).ok_or("must be an http or https URL without credentials, query or fragment")
}

fn parse_role(text: &str) -> Result<(String, Role), &'static str> {
    let parsed = text.rsplit_once('=').and_then(|(group, role)| Some((group.trim(), role.trim().parse().ok()?)));
    let (group, role) =
        parsed.filter(|(group, _)| !group.is_empty()).ok_or("must be GROUP=ROLE, with owner, support or auditor")?;
    Ok((group.to_owned(), role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_any_name_and_one_of_three_roles() {
        assert_eq!(parse_role("cn=owners,dc=bank = owner"), Ok(("cn=owners,dc=bank".to_owned(), Role::Owner)));
        for text in ["", "owners", "=owner", "owners=king"] {
            assert!(parse_role(text).is_err(), "{text}");
        }
        assert!(parse_issuer("https://login.example/realms/bank").is_ok());
        for text in [
            "login.example",
            "ftp://login.example",
            "https://a:b@login.example",
            "https://:b@login.example",
            "https://login.example?x=1",
        ] {
            assert!(parse_issuer(text).is_err(), "{text}");
        }
    }
}
