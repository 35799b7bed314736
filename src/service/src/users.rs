//! The users of a client: invitations by link, and sign-ins with password and one-time code.
//!
//! Every failed sign-in gets the same answer and takes the same work. So a stranger learns neither if an address has a
//! user nor if a password is right.

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
use sakshi_store::{Credential, InviteDigest, InviteOutcome, Sealed, SignInCandidate, Store};

use crate::api_key::sha256;
use crate::budget::{Owner, OwnerPath};
use crate::error::ServiceError;
use crate::one_time_code::{EnteredCode, Secret, generate_recovery_codes, generate_secret, recovery_digest, step_of};
use crate::passwords::{ITERATIONS, check_new_password, generate_salt, hash};
use crate::service::Service;

/// The error for an e-mail address that another user has.
pub const EMAIL_TAKEN: ServiceError =
    ServiceError::Conflict { code: "email_taken", message: "Another user has this e-mail address." };
/// The error for a user beyond the limit of a client.
const TOO_MANY: ServiceError = ServiceError::Conflict {
    code: "limit_reached",
    message: "A client has at most 500 users. Remove those who have left first.",
};
/// Random bytes of a link.
const LINK_BYTES: usize = 32;

/// A user to be invited.
#[derive(Debug)]
pub struct NewUser {
    /// Client of the user.
    pub client: ClientId,
    /// The name.
    pub name: PersonName,
    /// The e-mail address.
    pub email: Email,
    /// The role.
    pub role: UserRole,
}

/// An invitation link for a user, shown once to its sender.
pub struct Invitation {
    /// The user.
    pub user_id: UserId,
    /// URL of the link.
    pub url: String,
    /// End of the link.
    pub until: Timestamp,
}

/// The secret part of an invitation's link.
struct InviteSecret([u8; LINK_BYTES]);

impl InviteSecret {
    fn generate() -> Result<Self, ServiceError> {
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

/// The error when the system has no randomness.
fn no_randomness() -> ServiceError {
    ServiceError::Internal("the system gives no random bytes".to_owned())
}

/// Invites a user. `base` is the public address of the portal.
///
/// # Errors
/// [`EMAIL_TAKEN`]; [`ServiceError::Conflict`] when the client has too many users; [`ServiceError::NotFound`] without
/// such a client; any error of the store.
pub async fn invite(
    store: &Store,
    clock: &dyn Clock,
    base: &str,
    new_user: NewUser,
) -> Result<Invitation, ServiceError> {
    let (link, user_id, now) = (InviteSecret::generate()?, UserId::generate(), clock.now());
    let NewUser { client: client_id, name, email, role } = new_user;
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

/// Makes a new invitation link for a user. The password, the codes and the sessions of the user end at once.
///
/// # Errors
/// [`ServiceError::NotFound`] without such a user; any error of the store.
pub async fn reset(store: &Store, clock: &dyn Clock, base: &str, user_id: UserId) -> Result<Invitation, ServiceError> {
    let (link, until) = (InviteSecret::generate()?, clock.now() + INVITE_TTL);
    store.reset_user(user_id.clone(), link.digest(), until).await?.ok_or(ServiceError::NotFound("user"))?;
    tracing::info!(user.id = %user_id, "user reset");
    Ok(Invitation { user_id, url: link.url(base), until })
}

/// Returns the user of a valid link, and a secret for the authenticator app: a new secret, or that of a refused form.
/// Also returns the secret sealed for the form.
///
/// # Errors
/// [`ServiceError::NotFound`] when the link has ended, was used or never existed; any error of the store.
pub async fn open_invite(
    service: &Service,
    link: &str,
    sealed: Option<&str>,
) -> Result<(User, Secret, String), ServiceError> {
    let digest = InviteSecret::parse(link).ok_or(ServiceError::NotFound("link"))?.digest();
    let user = service.store.find_invite(digest).await?.ok_or(ServiceError::NotFound("link"))?;
    let from_form = sealed.and_then(|sealed| unseal(service, digest, sealed));
    let secret = from_form.or_else(generate_secret).ok_or_else(no_randomness)?;
    let sealed = URL_SAFE_NO_PAD.encode(service.vault.seal(&digest.0, &secret).as_bytes());
    Ok((user, secret, sealed))
}

/// Decrypts the secret in a form.
fn unseal(service: &Service, digest: InviteDigest, text: &str) -> Option<Secret> {
    let sealed = Sealed::from_bytes(URL_SAFE_NO_PAD.decode(text).ok()?)?;
    service.vault.open(&digest.0, &sealed).ok()?.as_slice().try_into().ok()
}

/// The form of an invitation.
#[derive(Clone, Copy)]
pub struct Acceptance<'a> {
    /// The secret part of the link.
    pub link: &'a str,
    /// The password that the person chooses.
    pub password: &'a str,
    /// The secret that [`open_invite`] has sealed.
    pub sealed: &'a str,
    /// A one-time code of that secret.
    pub code: &'a str,
}

/// Accepts an invitation. Returns the user and the recovery codes, which are shown once.
///
/// # Errors
/// [`ServiceError::Invalid`] with every field that is not acceptable; [`ServiceError::NotFound`] for an invalid link;
/// [`ServiceError::Overloaded`] without processor time; any error of the store.
pub async fn accept(
    service: &Service,
    address: IpAddr,
    form: Acceptance<'_>,
) -> Result<(User, Vec<String>), ServiceError> {
    let digest = InviteSecret::parse(form.link).ok_or(ServiceError::NotFound("link"))?.digest();
    let user = service.store.find_invite(digest).await?.ok_or(ServiceError::NotFound("link"))?;
    let mut invalid = Invalid::none();
    if let Err(problem) = check_new_password(form.password, &user) {
        invalid.add("password", problem);
    }
    let secret = unseal(service, digest, form.sealed);
    let code = EnteredCode::parse(form.code);
    let step = |secret: &Secret| match &code {
        EnteredCode::OneTime(code) => step_of(secret, code, service.clock.now()),
        EnteredCode::Recovery(_) => None,
    };
    let Some((totp, step)) = secret.and_then(|secret| Some((secret, step(&secret)?))) else {
        invalid.add("code", "must be the one that the app shows now");
        return Err(invalid.into());
    };
    invalid.or_ok()?;
    let (salt, codes) =
        (generate_salt().ok_or_else(no_randomness)?, generate_recovery_codes().ok_or_else(no_randomness)?);
    let hash = hash_password(service, address, form.password, salt, ITERATIONS).await?;
    let recovery = codes.iter().map(|code| recovery_digest(&user.user_id, code)).collect();
    let credential = Credential { salt, iterations: ITERATIONS, hash, totp, recovery };
    let user = service.store.accept_invite(digest, credential, step).await?.ok_or(ServiceError::NotFound("link"))?;
    tracing::info!(user.id = %user.user_id, "invitation accepted");
    Ok((user, codes))
}

/// Hashes a password on the threads of the processor budget.
async fn hash_password(
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
    /// The e-mail address as entered.
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
    /// Number of the user's credential, stored in the session.
    pub epoch: i64,
    /// True if the code was a recovery code, which is now used up.
    pub by_recovery_code: bool,
}

/// Signs a user in.
///
/// # Errors
/// [`ServiceError::Unauthorized`] for any wrong credential; [`ServiceError::Overloaded`] without processor time; any
/// error of the store.
pub async fn sign_in(service: &Service, address: IpAddr, form: SignIn<'_>) -> Result<SignedIn, ServiceError> {
    let account = match form.email.trim().parse::<Email>() {
        Ok(email) => service.store.find_signing_in(email).await?,
        Err(_) => None,
    };
    let (salt, iterations) = account
        .as_ref()
        .map_or(([0; 16], ITERATIONS), |SignInCandidate { credential, .. }| (credential.salt, credential.iterations));
    let hash = hash_password(service, address, form.password, salt, iterations).await?;
    let account = account.filter(|account| verify_slices_are_equal(&account.credential.hash, &hash).is_ok());
    let Some(SignInCandidate { user, credential, epoch }) = account else { return Err(ServiceError::Unauthorized) };
    let id = user.user_id.clone();
    let (is_code_accepted, by_recovery_code) = match EnteredCode::parse(form.code) {
        EnteredCode::OneTime(code) => match step_of(&credential.totp, &code, service.clock.now()) {
            Some(step) => (service.store.use_code(id, epoch, step).await?, false),
            None => (false, false),
        },
        EnteredCode::Recovery(code) => {
            let digest = recovery_digest(&id, &code);
            let is_known = credential.recovery.iter().any(|stored| verify_slices_are_equal(stored, &digest).is_ok());
            (is_known && service.store.use_recovery_code(id, epoch, digest).await?, true)
        }
    };
    if !is_code_accepted {
        return Err(ServiceError::Unauthorized);
    }
    tracing::info!(user.id = %user.user_id, "user signed in");
    Ok(SignedIn { user, epoch, by_recovery_code })
}

/// Returns the actions to log for a change of a user.
#[must_use]
pub fn logged_changes(before: &User, after: &User) -> Vec<Action> {
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
/// [`ServiceError::NotFound`] unless the client has such a user; any error of the store.
pub async fn own_user(store: &Store, client: &ClientId, id: UserId) -> Result<User, ServiceError> {
    store.load_user(id).await?.filter(|user| user.client_id == *client).ok_or(ServiceError::NotFound("user"))
}
