//! The summary as text for a terminal.

use std::fmt::Write as _;

use super::{StepSummary, Summary};

/// Renders the summary.
pub(crate) fn to_text(summary: &Summary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(summary, &mut out);
    out
}

fn write_all(summary: &Summary, out: &mut String) -> std::fmt::Result {
    write_guests(summary, out)?;
    write_steps(summary, out)?;
    write_counts(summary, out)?;
    write_service(summary, out)?;
    write_tester(summary, out)?;
    for problem in &summary.problems {
        writeln!(out, "problem: {problem}")?;
    }
    writeln!(out)?;
    for finding in &summary.findings {
        writeln!(out, "{} {} ({})", if finding.held { "held  " } else { "BROKEN" }, finding.rule, finding.figures)?;
        for example in &finding.examples {
            writeln!(out, "         {example}")?;
        }
    }
    writeln!(out, "\n{}", summary.verdict.sentence())
}

fn write_guests(summary: &Summary, out: &mut String) -> std::fmt::Result {
    writeln!(out, "{}: {}; {:.1} s", summary.scenario, summary.model, summary.seconds)?;
    let guests = summary.guests;
    writeln!(
        out,
        "guests: {} started, {} completed, {} declined, {} left, {} turned away, {} registered already, {} failed\n",
        guests.started,
        guests.completed,
        guests.declined,
        guests.left,
        guests.turned_away,
        guests.already_registered,
        guests.failed
    )
}

fn write_steps(summary: &Summary, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "{:<22}{:>9}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}  outcomes",
        "ms from intended time", "requests", "per s", "p50", "p90", "p99", "p99.9", "max"
    )?;
    for step in &summary.steps {
        write_step(step, out)?;
    }
    writeln!(out, "({})\n", summary.correction)
}

fn write_counts(summary: &Summary, out: &mut String) -> std::fmt::Result {
    let webhooks = summary.webhooks;
    writeln!(
        out,
        "webhooks: {} expected, {} on time, {} late, {} lost, {} repeated, {} unexpected",
        webhooks.expected, webhooks.on_time, webhooks.late, webhooks.lost, webhooks.repeated, webhooks.unexpected
    )?;
    let credits = summary.credits;
    writeln!(out, "credits: {} spent, {} to {} expected", credits.spent, credits.least, credits.most)?;
    if let Some(places) = summary.places {
        writeln!(out, "places: {} of {} taken", places.registered, places.max_guests)?;
    }
    if let Some(doors) = summary.doors {
        writeln!(
            out,
            "doors: {}, {} guests checked in, {} scanned at two doors, {} scans sent later",
            doors.doors, doors.checked_in, doors.at_two_doors, doors.sent_later
        )?;
    }
    Ok(())
}

fn write_service(summary: &Summary, out: &mut String) -> std::fmt::Result {
    if let (Some((_, first)), Some((_, last))) = (summary.memory.first(), summary.memory.last()) {
        let highest = summary.memory.iter().map(|(_, bytes)| *bytes).max().unwrap_or_default();
        writeln!(
            out,
            "resident MiB of the service: {} at the start, {} at the end, {} at most",
            mib(*first),
            mib(*last),
            mib(highest)
        )?;
    }
    if !summary.processes.is_empty() {
        let times = summary.processes.iter().map(|process| format!("{} {:.2}", process.name, process.ms_per_guest));
        writeln!(out, "processor time for one guest, ms: {}", times.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

fn write_tester(summary: &Summary, out: &mut String) -> std::fmt::Result {
    let tester = &summary.tester;
    let ((lag_p99, _), (wait_p99, _)) = (tester.lag_ms, tester.wait_ms);
    write!(out, "tester: started guests {lag_p99:.2} ms late at p99, signed within {wait_p99:.2} ms")?;
    match tester.busy {
        Some(busy) => writeln!(out, ", used {:.0} % of the processors", busy * 100.0)?,
        None => writeln!(out)?,
    }
    for sign in &tester.signs {
        writeln!(out, "  THE TESTER WAS THE LIMIT: {sign}; the latencies include delays of the tester")?;
    }
    Ok(())
}

fn write_step(step: &StepSummary, out: &mut String) -> std::fmt::Result {
    let (due, outcomes) = (step.due, step.outcomes.iter().map(|(outcome, count)| format!("{outcome}: {count}")));
    writeln!(
        out,
        "{:<22}{:>9}{:>9.1}{:>10.2}{:>10.2}{:>10.2}{:>10.2}{:>10.2}  {}",
        step.title,
        step.count,
        step.per_second,
        due.p50,
        due.p90,
        due.p99,
        due.p999,
        due.max,
        outcomes.collect::<Vec<_>>().join(", ")
    )
}

fn mib(bytes: u64) -> u64 {
    bytes / (1_024 * 1_024)
}
