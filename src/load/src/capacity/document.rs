//! The output of `sakshi-load plan`, and documents with such outputs. A comment in a document contains a command. The
//! text up to the next comment is the output of the command.

use std::fmt::Write as _;
use std::fs;

use clap::Parser as _;

use super::cli::PlanOptions;
use super::costs::Costs;
use super::error::PlanError;
use super::plan::Plan;
use super::table::summary_table;

const BEGIN: &str = "<!-- sakshi-load plan";
const END: &str = "<!-- end -->";

/// Example plans: their names and options.
pub(crate) const EXAMPLES: [(&str, &str); 4] = [
    ("bank", "--peak 10 --store embedded"),
    ("fair", "--guests 20000 --minutes 3"),
    ("state", "--peak 2000"),
    ("country", "--day 100000000 --peak 12000"),
];

/// Returns the output of a command.
///
/// # Errors
/// Any error of [`Plan::compute`]; [`PlanError::File`] or [`PlanError::Costs`] if the costs cannot be read.
pub(crate) fn command_output(options: &PlanOptions) -> Result<String, PlanError> {
    let costs = match &options.costs {
        Some(path) => Costs::parse(&fs::read_to_string(path)?)?,
        None => Costs::committed()?,
    };
    if options.costs_table {
        return Ok(costs.to_markdown());
    }
    if options.examples {
        let plans = EXAMPLES.map(|(name, arguments)| Ok((name, Plan::compute(&parse_options(arguments), &costs)?)));
        return Ok(summary_table(&plans.into_iter().collect::<Result<Vec<_>, PlanError>>()?));
    }
    let plan = Plan::compute(options, &costs)?;
    if options.json {
        let mut text = serde_json::to_string_pretty(&plan).unwrap_or_default();
        text.push('\n');
        return Ok(text);
    }
    Ok(plan.to_markdown())
}

/// Updates the outputs of the commands in a document.
pub(crate) fn update_document(text: &str) -> Result<String, PlanError> {
    let mut updated = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once(BEGIN) {
        let Some((arguments, after)) = after.split_once(" -->") else { break };
        let Some((_, after)) = after.split_once(END) else { break };
        // Writing to a string cannot fail.
        let _ =
            write!(updated, "{before}{BEGIN}{arguments} -->\n\n{}\n{END}", command_output(&parse_options(arguments))?);
        remaining = after;
    }
    Ok(updated + remaining)
}

/// Parses options from one line. A malformed line becomes empty options, which [`Plan::compute`] refuses.
fn parse_options(line: &str) -> PlanOptions {
    let arguments = std::iter::once("plan").chain(line.split_whitespace());
    PlanOptions::try_parse_from(arguments).unwrap_or_else(|_| PlanOptions::parse_from(["plan"]))
}
