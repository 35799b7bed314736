//! `sakshi top`: shows the activity of all nodes, redrawn each second. It reads the admin API of one node, which knows
//! the other nodes. Output that is not a terminal gets one picture.

mod picture;
mod terminal;

use std::time::Duration;

use clap::Args;
use sakshi_client::internal;
use sakshi_wire::operator::nodes::NodesResponse;
use tokio::time::{Instant, sleep, timeout_at};

use self::picture::picture;
use self::terminal::Terminal;
use super::api::Api;
use super::connection::Access;
use super::error::CliError;
use super::style::{Line, Out, Tone, write_lines};
use crate::settings::Sources;

/// Interval between two pictures.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time in which nodes publish their first snapshot.
const FIRST_SNAPSHOT_TIME: Duration = Duration::from_secs(3);
/// Width of a picture without a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Options of `top`.
#[derive(Args, Debug)]
pub struct Top {
    #[command(flatten)]
    access: Access,
    /// Print one picture and exit; the default when the output is not a terminal.
    #[arg(long)]
    once: bool,
}

impl Top {
    /// Draws until a key or a signal ends it.
    ///
    /// # Errors
    /// The service is unreachable at the start, or the terminal cannot be used.
    pub(super) async fn run(&self, sources: &Sources, out: &mut dyn Out) -> Result<bool, CliError> {
        let api = self.access.api(sources)?;
        let first = fetch_nodes(&api).await?;
        let terminal = if self.once || !out.capabilities().is_terminal { None } else { Terminal::open(out)? };
        let Some(terminal) = terminal else {
            print(&api, first, out).await?;
            return Ok(true);
        };
        let result = draw_until_ended(&api, first, terminal, out).await;
        Terminal::leave(out)?;
        result.map(|()| true)
    }
}

async fn fetch_nodes(api: &Api) -> Result<NodesResponse, CliError> {
    api.send(internal::nodes()).await
}

/// Prints one picture, once the nodes have published snapshots.
async fn print(api: &Api, first: NodesResponse, out: &mut dyn Out) -> Result<(), CliError> {
    let have_all_published = first.nodes.iter().all(|node| node.tree.is_some());
    let answer = if have_all_published {
        first
    } else {
        sleep(FIRST_SNAPSHOT_TIME).await;
        fetch_nodes(api).await?
    };
    Ok(write_lines(picture(&answer, out.capabilities().width().unwrap_or(DEFAULT_WIDTH), ""), out)?)
}

/// Draws a picture each second until a key or a signal ends it. While the service is unreachable, the last picture
/// stays.
async fn draw_until_ended(
    api: &Api,
    first: NodesResponse,
    mut terminal: Terminal,
    out: &mut dyn Out,
) -> Result<(), CliError> {
    let (mut answer, mut error_note) = (first, None);
    loop {
        let (width, height) = out.capabilities().size.unwrap_or((DEFAULT_WIDTH, usize::MAX));
        let error_line = error_note.take().map(|reason: String| Line::new(Tone::Bad, reason));
        let lines = error_line.into_iter().chain(picture(&answer, width, "q ends")).collect();
        terminal::draw(lines, (width, height), out)?;
        let next = Instant::now() + INTERVAL;
        if timeout_at(next, terminal.wait_for_exit()).await.is_ok() {
            return Ok(());
        }
        // A node that hangs must not keep the keys waiting.
        let fetched = tokio::select! {
            fetched = fetch_nodes(api) => fetched,
            () = terminal.wait_for_exit() => return Ok(()),
        };
        match fetched {
            Ok(fresh) => answer = fresh,
            Err(error) => error_note = Some(format!("{error}; shown as of {}", answer.now)),
        }
    }
}
