//! Benchmarks: the service beside a bare server that does only the unavoidable part of the work.
//!
//! Absolute rates of a shared machine mean little. The ratio of two rates is comparable if the same load generator
//! measured them in turns. `benches/README.md` explains each ratio. Servers run in child processes of this binary, see
//! [`role`].

mod balancer;
mod bank;
mod bare;
mod bare_redis;
mod completion;
mod connection;
mod costs;
mod crypto;
mod growth;
mod guests;
mod https;
mod init;
mod journal;
mod kiosks;
mod latency;
mod limits;
mod load;
mod memory;
mod moving;
mod node;
mod nodes;
mod overload;
mod peers;
mod poll;
mod process;
mod report;
mod requests;
mod results;
mod role;
mod scale;
mod scaling;
mod steps;
mod summary;
mod transactions;
mod verification;
mod webhooks;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::process::Usage;
use self::report::Report;
use self::role::Role;
use self::scale::Scale;
use self::summary::{Line, Summary};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Bench = fn(Scale) -> Result<Report, Failure>;

/// Measures the service beside bare servers that do only the unavoidable part of the work.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Runs small and short turns, which show that everything works, not how fast it is.
    #[arg(long, global = true)]
    quick: bool,
    /// Number of keep-alive connections of the load generator, instead of 64.
    #[arg(long, global = true)]
    connections: Option<usize>,
    /// Writes the tables into target/benches.md as well.
    #[arg(long, global = true)]
    write: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Inits beside a bare handler that makes one signature.
    Init,
    /// Cost of a bank's settings for an init: a key on a token in software beside one in a file, and TLS beside plain
    /// HTTP.
    Bank,
    /// Polls beside a bare handler with the same authentication.
    Poll,
    /// Callbacks beside a bare handler that makes the same two signature checks.
    Completion,
    /// Resident memory per live transaction, fresh and after many were replaced.
    Memory,
    /// Latency of init with few and with many live transactions.
    Latency,
    /// Guests of one event who arrive over a minute: latency of each step.
    Guests,
    /// Processor time of a whole verification, of the node and of Redis; writes costs.json.
    Verification,
    /// Cost of a verification here and in minimal servers in Node and Python.
    Peers,
    /// Inits of nodes that share a Redis, beside a bare server on the same Redis.
    Nodes,
    /// Cost of a request as the node holds more: one series or all.
    Growth {
        #[command(subcommand)]
        series: Option<growth::Series>,
    },
    /// Cost of a completion as more nodes share a Redis.
    Scaling,
    /// Moving an embedded store into Redis.
    Move,
    /// Webhooks from the outbox beside a bare client that posts the same bytes.
    Webhooks,
    /// Webhooks over TLS to nginx, haproxy, Node and hyper: rates, and one arrival of each while connections close.
    Https,
    /// Rates of webhooks and of completions, which must keep pace, on both stores.
    Pace,
    /// Draining a full outbox on Redis beside the embedded store.
    Drain,
    /// This machine alone: signatures, bare handlers, scripts, POSTs, fdatasync.
    Limits,
    /// Clients at twice the capacity, then at half of it; and the memory of idle connections.
    Overload,
    /// Runs most benches and writes a summary: all but bank, growth and move.
    All,
    /// Runs a role in a child process.
    #[command(subcommand, hide = true)]
    Role(Role),
}

fn main() -> ExitCode {
    sakshi::allocator::give_memory_back_soon();
    let cli = Cli::parse();
    let mut scale = if cli.quick { Scale::QUICK } else { Scale::FULL };
    scale.connections = cli.connections.unwrap_or(scale.connections).max(1);
    let result = match &cli.command {
        Command::Role(role) => role.run(),
        Command::Init => run_and_show(&cli, init::run, scale).map(drop),
        Command::Bank => run_and_show(&cli, bank::run, scale).map(drop),
        Command::Poll => run_and_show(&cli, poll::run, scale).map(drop),
        Command::Completion => run_and_show(&cli, completion::run, scale).map(drop),
        Command::Memory => run_and_show(&cli, memory::run, scale).map(drop),
        Command::Latency => run_and_show(&cli, latency::run, scale).map(drop),
        Command::Guests => run_and_show(&cli, guests::run, scale).map(drop),
        Command::Verification => run_and_show(&cli, verification::run, scale).map(drop),
        Command::Peers => run_and_show(&cli, peers::run, scale).map(drop),
        Command::Nodes => run_and_show(&cli, nodes::run, scale).map(drop),
        Command::Scaling => run_and_show(&cli, scaling::run, scale).map(drop),
        Command::Move => run_and_show(&cli, moving::run, scale).map(drop),
        Command::Webhooks => run_and_show(&cli, webhooks::run, scale).map(drop),
        Command::Https => run_and_show(&cli, https::run, scale).map(drop),
        Command::Pace => run_and_show(&cli, webhooks::pace::run, scale).map(drop),
        Command::Drain => run_and_show(&cli, webhooks::pace::drain, scale).map(drop),
        Command::Limits => run_and_show(&cli, limits::run, scale).map(drop),
        Command::Overload => run_and_show(&cli, overload::run, scale).map(drop),
        Command::Growth { series } => growth::show(*series, cli.quick, cli.write),
        Command::All => run_all(&cli, Scale { store_alone: false, ..scale }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done when stderr is closed.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The benches of `all`, in order.
const ALL: [Bench; 16] = [
    limits::run,
    init::run,
    poll::run,
    completion::run,
    verification::run,
    peers::run,
    nodes::run,
    scaling::run,
    webhooks::run,
    https::run,
    webhooks::pace::run,
    webhooks::pace::drain,
    guests::run,
    memory::run,
    latency::run,
    overload::run,
];

fn run_and_show(cli: &Cli, bench: Bench, scale: Scale) -> Result<Vec<Line>, Failure> {
    let usage_before = Usage::now()?;
    let mut report = bench(scale)?;
    report
        .note(results::describe_run_beside(Usage::now()?.plus_own(report.indirect).others_share_since(usage_before))?);
    show(&report, cli.write)?;
    report.costs.filter(|_| cli.write).map_or(Ok(()), |costs| costs::write(&costs))?;
    Ok(report.lines)
}

fn run_all(cli: &Cli, scale: Scale) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for bench in ALL {
        lines.append(&mut run_and_show(cli, bench, scale)?);
    }
    show(&Summary { lines: &lines, run: &results::describe_run()? }, cli.write)
}

/// Prints a section, and with `write` writes it into the results.
fn show(section: &impl std::fmt::Display, write: bool) -> Result<(), Failure> {
    let text = section.to_string();
    let mut out = io::stdout();
    writeln!(out, "{text}")?;
    out.flush()?;
    if write { results::write_section(&text) } else { Ok(()) }
}
