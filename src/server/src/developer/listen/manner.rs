//! The receiver's behaviour: normal, or faulty on purpose.

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Args;
use sakshi_sandbox::receiver::Behaviour;

/// Faulty behaviours; at most one.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct FaultOptions {
    /// Respond with this HTTP status instead of 200.
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(200..=599), group = "behaviour")]
    answer: Option<u16>,
    /// Never respond and keep the connection open; the sender times out.
    #[arg(long, group = "behaviour")]
    hang: bool,
    /// Close the connection without a response.
    #[arg(long, group = "behaviour")]
    drop: bool,
    /// Respond with 200 after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, group = "behaviour")]
    slow: Option<Duration>,
    /// Respond with 302 and this `Location`; sakshi follows no redirect.
    #[arg(long, value_name = "URL", value_parser = parse_location, group = "behaviour")]
    redirect: Option<String>,
    /// Misbehave at every Nth webhook only; respond with 500 unless another option chooses the behaviour.
    #[arg(long, value_name = "N")]
    fail_every: Option<NonZeroU64>,
}

impl FaultOptions {
    /// Returns the behaviour for the webhook with this number, counted from 1.
    pub(super) fn behaviour_for(&self, number: u64) -> Behaviour {
        match self.fail_every {
            Some(every) if number % every != 0 => Behaviour::Answer(200),
            Some(_) => self.chosen_behaviour().unwrap_or(Behaviour::Answer(500)),
            None => self.chosen_behaviour().unwrap_or(Behaviour::Answer(200)),
        }
    }

    /// Returns the behaviour that an option chooses, if any.
    fn chosen_behaviour(&self) -> Option<Behaviour> {
        let slow = self.slow.map(Behaviour::SlowAnswer);
        let redirect = || self.redirect.clone().map(Behaviour::Redirect);
        let answer = || self.answer.map(Behaviour::Answer);
        slow.or_else(redirect)
            .or_else(answer)
            .or(self.hang.then_some(Behaviour::Hang))
            .or(self.drop.then_some(Behaviour::Drop))
    }

    /// Describes the behaviour, unless every webhook gets 200.
    pub(super) fn describe(&self) -> Option<String> {
        let behaviour = self.chosen_behaviour().or(self.fail_every.map(|_| Behaviour::Answer(500)))?;
        let webhooks = self.fail_every.map_or_else(
            || "every webhook".to_owned(),
            |every| format!("every webhook with a number divisible by {every}"),
        );
        Some(format!("{webhooks} is {}", describe_behaviour(&behaviour)))
    }
}

/// Describes the response to a webhook.
pub(super) fn describe_behaviour(behaviour: &Behaviour) -> String {
    match behaviour {
        Behaviour::Answer(status) => format!("answered {status}"),
        Behaviour::Hang => "not answered".to_owned(),
        Behaviour::Drop => "hung up on".to_owned(),
        Behaviour::Redirect(target) => format!("answered 302 to {target}"),
        Behaviour::SlowAnswer(time) => format!("answered 200 after {time:?}"),
        Behaviour::CloseIdle => "answered 200 on a connection that is then closed".to_owned(),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds")?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= Duration::from_secs(3_600))
        .ok_or("must be 0 to 3600 seconds")
}

fn parse_location(text: &str) -> Result<String, &'static str> {
    let is_header_value = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_header_value.then(|| text.to_owned()).ok_or("must be a URL in visible ASCII characters")
}
