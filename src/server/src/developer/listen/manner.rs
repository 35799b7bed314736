//! The receiver's behaviour: normal, or faulty on purpose.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Args;
use sakshi_sandbox::receiver::Behaviour;

/// Faulty behaviours; at most one.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Manner {
    /// Respond with this HTTP status instead of 200.
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599), group = "way")]
    answer: Option<u16>,
    /// Never respond and keep the connection open; the sender times out.
    #[arg(long, group = "way")]
    hang: bool,
    /// Close the connection without a response.
    #[arg(long, group = "way")]
    drop: bool,
    /// Respond with 200 after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, group = "way")]
    slow: Option<Duration>,
    /// Respond with 302 and this `Location`; sakshi follows no redirect.
    #[arg(long, value_name = "URL", value_parser = location, group = "way")]
    redirect: Option<String>,
    /// Misbehave at every Nth webhook only; with 500 unless another behaviour is given.
    #[arg(long, value_name = "N")]
    fail_every: Option<NonZeroU64>,
}

impl Manner {
    /// Returns the behaviour for the webhook with this number, counted from 1.
    pub(super) fn treat(&self, number: u64) -> Behaviour {
        match self.fail_every {
            Some(every) if number % every != 0 => Behaviour::Answer(200),
            Some(_) => self.way().unwrap_or(Behaviour::Answer(500)),
            None => self.way().unwrap_or(Behaviour::Answer(200)),
        }
    }

    fn way(&self) -> Option<Behaviour> {
        let slow = self.slow.map(Behaviour::SlowAnswer);
        let redirect = || self.redirect.clone().map(Behaviour::Redirect);
        let answer = || self.answer.map(Behaviour::Answer);
        slow.or_else(redirect)
            .or_else(answer)
            .or(self.hang.then_some(Behaviour::Hang))
            .or(self.drop.then_some(Behaviour::Drop))
    }

    /// Describes the behaviour, if it is not the usual one.
    pub(super) fn told(&self) -> Option<String> {
        let way = self.way().or(self.fail_every.map(|_| Behaviour::Answer(500)))?;
        let which = self
            .fail_every
            .map_or_else(|| "every webhook".to_owned(), |every| format!("every webhook whose number {every} divides"));
        Some(format!("{which} is {}", treated(&way)))
    }
}

/// Describes the treatment of a webhook.
pub(super) fn treated(behaviour: &Behaviour) -> String {
    match behaviour {
        Behaviour::Answer(status) => format!("answered {status}"),
        Behaviour::Hang => "left without an answer".to_owned(),
        Behaviour::Drop => "hung up on".to_owned(),
        Behaviour::Redirect(target) => format!("answered 302 to {target}"),
        Behaviour::SlowAnswer(time) => format!("answered 200 after {time:?}"),
        Behaviour::CloseIdle => "answered 200 on a connection that is then closed".to_owned(),
    }
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds")?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= Duration::from_secs(3_600))
        .ok_or("must be 0 to 3600 seconds")
}

fn location(text: &str) -> Result<String, &'static str> {
    let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.to_owned()).ok_or("must be a URL in visible ASCII characters")
}
