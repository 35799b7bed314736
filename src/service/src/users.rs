//! The users of a client: invited by a link, signed in by password and one-time code.
//!
//! Every failed sign-in gets the same answer and takes the same work. A stranger learns neither whether an address has
//! a user nor whether a password is right.

use std::net::IpAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_domain::client_log::Action;
use sakshi_domain::clock::Clock;
use sakshi_domain::ids::{ClientId, UserId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::INVITE_TTL;
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{Email, PersonName, User, UserRole};
use sakshi_store::{Credential, InviteDigest, InviteOutcome, Sealed, SigningIn, Store};

use crate::api_key::sha256;
use crate::budget::{Owner, OwnerPath};
use crate::error::ServiceError;
use crate::one_time_code::{EnteredCode, Secret, recovery_codes, recovery_digest, secret, step_of};
use crate::passwords::{ITERATIONS, check, hash, salt};
use crate::service::Service;

/// The error for an address that another user has.
pub const EMAIL_TAKEN: ServiceError =
    ServiceError::Conflict { code: "email_taken", message: "Another user has this e-mail address." };
const TOO_MANY: ServiceError = ServiceError::Conflict {
    code: "limit_reached",
    message: "A client has at most 500 users. Remove those who have left first.",
};
const LINK_BYTES: usize = 32;

/// A user to be invited.
#[derive(Debug)]
pub struct NewUser {
    /// Client of the user.
    pub client: ClientId,
    /// The name.
    pub name: PersonName,
    /// The address.
    pub email: Email,
    /// The role.
    pub role: UserRole,
}

/// A link for a user, shown once to its sender.
pub struct Invitation {
    /// The user.
    pub user_id: UserId,
    /// The link.
    pub url: String,
    /// Its end.
    pub until: Timestamp,
}

/// The secret part of a link.
struct Link([u8; LINK_BYTES]);

impl Link {
    fn mint() -> Result<Self, ServiceError> {
        let mut bytes = [0; LINK_BYTES];
        rand::fill(&mut bytes).map_err(|_| no_randomness())?;
        Ok(Self(bytes))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; LINK_BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        (length == LINK_BYTES).then_some(Self(bytes))
    }

    fn digest(&self) -> InviteDigest {
        InviteDigest(sha256(&[b"sakshi invitation", &self.0]))
    }

    fn url(&self, base: &str) -> String {
        format!("{base}/portal/invite/{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

fn no_randomness() -> ServiceError {
    ServiceError::Internal("the system gives no random bytes".to_owned())
}

/// Invites a user. `base` is the public address of the portal.
///
/// # Errors
/// Another user has the address, the client has too many or does not exist; a store error.
pub async fn invite(store: &Store, clock: &dyn Clock, base: &str, new: NewUser) -> Result<Invitation, ServiceError> {
    let (link, user_id, now) = (Link::mint()?, UserId::generate(), clock.now());
    let NewUser { client: client_id, name, email, role } = new;
    let until = now + INVITE_TTL;
    let user = User {
        user_id: user_id.clone(),
        client_id,
        name,
        email,
        role,
        created_at: now,
        invited_until: Some(until),
        accepted_at: None,
        signed_in_at: None,
        disabled_at: None,
    };
    match store.invite_user(user, link.digest(), until).await? {
        InviteOutcome::Invited => {
            tracing::info!(user.id = %user_id, "user invited");
            Ok(Invitation { user_id, url: link.url(base), until })
        }
        InviteOutcome::EmailTaken => Err(EMAIL_TAKEN),
        InviteOutcome::TooMany => Err(TOO_MANY),
        InviteOutcome::NotFound => Err(ServiceError::NotFound("client")),
    }
}

/// Makes a new link for a user. The password, the codes and the sessions of the user end at once.
///
/// # Errors
/// There is no such user; a store error.
pub async fn reset(store: &Store, clock: &dyn Clock, base: &str, user_id: UserId) -> Result<Invitation, ServiceError> {
    let (link, until) = (Link::mint()?, clock.now() + INVITE_TTL);
    store.reset_user(user_id.clone(), link.digest(), until).await?.ok_or(ServiceError::NotFound("user"))?;
    tracing::info!(user.id = %user_id, "user reset");
    Ok(Invitation { user_id, url: link.url(base), until })
}

/// Returns the user of a usable link, and a secret for the authenticator app: a fresh one, or the one in a form that
/// was refused.
///
/// # Errors
/// The link has ended, was used or never was; a store error.
pub async fn open_invite(
    service: &Service,
    link: &str,
    sealed: Option<&str>,
) -> Result<(User, Secret, String), ServiceError> {
    let digest = Link::parse(link).ok_or(ServiceError::NotFound("link"))?.digest();
    let user = service.store.find_invite(digest).await?.ok_or(ServiceError::NotFound("link"))?;
    let known = sealed.and_then(|sealed| unseal(service, digest, sealed));
    let secret = known.or_else(secret).ok_or_else(no_randomness)?;
    let sealed = URL_SAFE_NO_PAD.encode(service.vault.seal(&digest.0, &secret).as_bytes());
    Ok((user, secret, sealed))
}

/// Reads the secret that a form carries.
fn unseal(service: &Service, digest: InviteDigest, text: &str) -> Option<Secret> {
    let sealed = Sealed::from_bytes(URL_SAFE_NO_PAD.decode(text).ok()?)?;
    service.vault.open(&digest.0, &sealed).ok()?.as_slice().try_into().ok()
}

/// The form of an invitation.
#[derive(Clone, Copy)]
pub struct Acceptance<'a> {
    /// The link's secret.
    pub link: &'a str,
    /// The password that the person chooses.
    pub password: &'a str,
    /// The secret that [`open_invite`] has sealed.
    pub sealed: &'a str,
    /// A code of it.
    pub code: &'a str,
}

/// Accepts an invitation from an address. Returns the user and the recovery codes, which are shown once.
///
/// # Errors
/// Fields that are not acceptable; a link that cannot be used; no processor time; a store error.
pub async fn accept(
    service: &Service,
    address: IpAddr,
    given: Acceptance<'_>,
) -> Result<(User, Vec<String>), ServiceError> {
    let digest = Link::parse(given.link).ok_or(ServiceError::NotFound("link"))?.digest();
    let user = service.store.find_invite(digest).await?.ok_or(ServiceError::NotFound("link"))?;
    let mut invalid = Invalid::none();
    if let Err(problem) = check(given.password, &user) {
        invalid.add("password", problem);
    }
    let secret = unseal(service, digest, given.sealed);
    let code = EnteredCode::parse(given.code);
    let is_code = |secret: &Secret| {
        matches!(&code, EnteredCode::OneTime(code) if step_of(secret, code,
        service.clock.now()).is_some())
    };
    let Some(totp) = secret.filter(is_code) else {
        invalid.add("code", "must be the one that the app shows now");
        return Err(invalid.into());
    };
    invalid.or_ok()?;
    let (salt, codes) = (salt().ok_or_else(no_randomness)?, recovery_codes().ok_or_else(no_randomness)?);
    let hash = hashed(service, address, given.password, salt, ITERATIONS).await?;
    let recovery = codes.iter().map(|code| recovery_digest(&user.user_id, code)).collect();
    let credential = Credential { salt, iterations: ITERATIONS, hash, totp, recovery };
    let user = service.store.accept_invite(digest, credential).await?.ok_or(ServiceError::NotFound("link"))?;
    tracing::info!(user.id = %user.user_id, "invitation accepted");
    Ok((user, codes))
}

async fn hashed(
    service: &Service,
    address: IpAddr,
    password: &str,
    salt: [u8; 16],
    iterations: u32,
) -> Result<[u8; 32], ServiceError> {
    let password = zeroize::Zeroizing::new(password.to_owned());
    let owners = OwnerPath::new([Owner::Address(address)]);
    service.cpu.run(owners, move || hash(&password, &salt, iterations)).await
}

/// The form of a sign-in.
#[derive(Clone, Copy)]
pub struct SignIn<'a> {
    /// The address, as it was entered.
    pub email: &'a str,
    /// The password.
    pub password: &'a str,
    /// The one-time or recovery code.
    pub code: &'a str,
}

/// A user who has signed in.
#[derive(Debug)]
pub struct SignedIn {
    /// The user.
    pub user: User,
    /// The number of the credential, for the session.
    pub epoch: i64,
    /// True if the code was a recovery code, which is used up.
    pub by_recovery_code: bool,
}

/// Signs a user in from an address.
///
/// # Errors
/// [`ServiceError::Unauthorized`], whatever is wrong; no processor time; a store error.
pub async fn sign_in(service: &Service, address: IpAddr, given: SignIn<'_>) -> Result<SignedIn, ServiceError> {
    let found = match given.email.trim().parse::<Email>() {
        Ok(email) => service.store.find_signing_in(email).await?,
        Err(_) => None,
    };
    let (salt, iterations) = found
        .as_ref()
        .map_or(([0; 16], ITERATIONS), |SigningIn { credential, .. }| (credential.salt, credential.iterations));
    let hash = hashed(service, address, given.password, salt, iterations).await?;
    let found = found.filter(|found| verify_slices_are_equal(&found.credential.hash, &hash).is_ok());
    let Some(SigningIn { user, credential, epoch }) = found else { return Err(ServiceError::Unauthorized) };
    let id = user.user_id.clone();
    let (is_used, by_recovery_code) = match EnteredCode::parse(given.code) {
        EnteredCode::OneTime(code) => match step_of(&credential.totp, &code, service.clock.now()) {
            Some(step) => (service.store.use_code(id, epoch, step).await?, false),
            None => (false, false),
        },
        EnteredCode::Recovery(code) => {
            let digest = recovery_digest(&id, &code);
            let is_known = credential.recovery.iter().any(|known| verify_slices_are_equal(known, &digest).is_ok());
            (is_known && service.store.use_recovery_code(id, epoch, digest).await?, true)
        }
    };
    if !is_used {
        return Err(ServiceError::Unauthorized);
    }
    tracing::info!(user.id = %user.user_id, "user signed in");
    Ok(SignedIn { user, epoch, by_recovery_code })
}

/// Returns the log's actions for a change of a user.
#[must_use]
pub fn changes(before: &User, after: &User) -> Vec<Action> {
    let role = (before.role != after.role).then_some(Action::RoleChanged);
    let state = match (before.disabled_at, after.disabled_at) {
        (None, Some(_)) => Some(Action::UserDisabled),
        (Some(_), None) => Some(Action::UserEnabled),
        _ => None,
    };
    role.into_iter().chain(state).collect()
}

/// Loads a user of a client.
///
/// # Errors
/// The client has no such user; a store error.
pub async fn own_user(store: &Store, client: &ClientId, id: UserId) -> Result<User, ServiceError> {
    store.load_user(id).await?.filter(|user| user.client_id == *client).ok_or(ServiceError::NotFound("user"))
}
