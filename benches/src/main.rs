//! What the service does, as ratios to the limit of what it is made of, measured in one run.
//!
//! Absolute rates of a shared machine mean little; a ratio of two rates that were taken in turns by
//! the same load generator means something. `README.md` in this folder says what each ratio is
//! made of. Servers run in child processes of this same binary, see [`role`].

mod bare;
mod completion;
mod connection;
mod crypto;
mod growth;
mod guests;
mod init;
mod latency;
mod load;
mod memory;
mod node;
mod nodes;
mod poll;
mod process;
mod recording;
#[path = "../../tests/harness/redis.rs"]
#[allow(clippy::expect_used, clippy::panic, reason = "the test suites' own server; without it there is nothing to measure")]
mod redis_server;
mod report;
mod requests;
mod role;
mod scale;
mod transactions;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::process::Usage;
use self::report::Report;
use self::role::Role;
use self::scale::Scale;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Bench = fn(Scale) -> Result<Report, Failure>;

/// Reports ratios of what the service does against its limits.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
    /// Small numbers and short rounds: shows that everything works, not how fast it is.
    #[arg(long, global = true)]
    quick: bool,
    /// Keep-alive connections of the load generator, instead of the usual 64.
    #[arg(long, global = true)]
    connections: Option<usize>,
    /// Puts the results into benches/README.md as well.
    #[arg(long, global = true)]
    write: bool,
}

#[derive(Subcommand)]
enum What {
    /// Inits per second against signatures per second.
    Init,
    /// Result polls against a bare handler with the same authentication.
    Poll,
    /// Callbacks with credentials against the two signature checks in them.
    Completion,
    /// Bytes of resident memory per live transaction, fresh and churned.
    Memory,
    /// Latency of init with few and with many live transactions.
    Latency,
    /// Guests of one event arriving over a minute: the time of each step.
    Guests,
    /// Inits of nodes that share a Redis, against a bare server on the same Redis.
    Nodes,
    /// Cost per request as what the node holds grows: one series or all of them.
    Growth {
        #[command(subcommand)]
        series: Option<growth::Series>,
    },
    /// All of them but growth.
    All,
    /// What a child process does.
    #[command(subcommand, hide = true)]
    Role(Role),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut scale = if cli.quick { Scale::QUICK } else { Scale::FULL };
    scale.connections = cli.connections.unwrap_or(scale.connections).max(1);
    let done = match &cli.what {
        What::Role(role) => role.play(),
        What::Init => show(&cli, &[init::run], scale),
        What::Poll => show(&cli, &[poll::run], scale),
        What::Completion => show(&cli, &[completion::run], scale),
        What::Memory => show(&cli, &[memory::run], scale),
        What::Latency => show(&cli, &[latency::run], scale),
        What::Guests => show(&cli, &[guests::run], scale),
        What::Nodes => show(&cli, &[nodes::run], scale),
        What::Growth { series } => growth::show(*series, cli.quick, cli.write),
        What::All => show(&cli, &[init::run, poll::run, completion::run, nodes::run, guests::run, memory::run, latency::run], scale),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show(cli: &Cli, benches: &[Bench], scale: Scale) -> Result<(), Failure> {
    let mut out = io::stdout();
    let mut text = report::machine()?;
    writeln!(out, "{text}")?;
    for bench in benches {
        let before = Usage::now()?;
        let mut report = bench(scale)?;
        let share = Usage::now()?.foreign_share_since(before) * 100.0;
        report.note(format!("Other processes of the machine used {share:.1} % of its processor time meanwhile."));
        let table = report.to_string();
        writeln!(out, "{table}")?;
        out.flush()?;
        text.push('\n');
        text.push_str(&table);
    }
    if cli.write { report::write(&text) } else { Ok(()) }
}
