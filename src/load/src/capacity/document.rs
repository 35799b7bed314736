//! Output of `sakshi-load plan`, and documents that show it. A comment in a document names a command; the text up to
//! the next comment is the output of that command.

use std::fmt::Write as _;
use std::fs;

use clap::Parser as _;

use super::cli::PlanOptions;
use super::costs::Costs;
use super::error::PlanError;
use super::plan::Plan;
use super::table::brief;

const BEGIN: &str = "<!-- sakshi-load plan";
const END: &str = "<!-- end -->";

/// Loads of the examples, as options of a plan.
pub(crate) const EXAMPLES: [(&str, &str); 4] = [
    ("bank", "--peak 10 --store embedded"),
    ("fair", "--guests 20000 --minutes 3"),
    ("state", "--peak 2000"),
    ("country", "--day 100000000 --peak 12000"),
];

/// Returns the output of a command.
///
/// # Errors
/// As [`Plan::of`], and when the costs cannot be read.
pub(crate) fn printed(options: &PlanOptions) -> Result<String, PlanError> {
    let costs = match &options.costs {
        Some(path) => Costs::read(&fs::read_to_string(path)?)?,
        None => Costs::committed()?,
    };
    if options.costs_table {
        return Ok(costs.table());
    }
    if options.examples {
        let plans = EXAMPLES.map(|(name, arguments)| Ok((name, Plan::of(&parse(arguments), &costs)?)));
        return Ok(brief(&plans.into_iter().collect::<Result<Vec<_>, PlanError>>()?));
    }
    let plan = Plan::of(options, &costs)?;
    if options.json {
        let mut text = serde_json::to_string_pretty(&plan).unwrap_or_default();
        text.push('\n');
        return Ok(text);
    }
    Ok(plan.table())
}

/// Fills in a document the outputs that its comments name.
pub(crate) fn fill(text: &str) -> Result<String, PlanError> {
    let mut filled = String::with_capacity(text.len());
    let mut left = text;
    while let Some((before, after)) = left.split_once(BEGIN) {
        let Some((arguments, after)) = after.split_once(" -->") else { break };
        let Some((_, after)) = after.split_once(END) else { break };
        // Writing to a string cannot fail.
        let _ = write!(filled, "{before}{BEGIN}{arguments} -->\n\n{}\n{END}", printed(&parse(arguments))?);
        left = after;
    }
    Ok(filled + left)
}

/// Reads options from one line. A malformed line asks for no plan, which is refused with an explanation.
fn parse(line: &str) -> PlanOptions {
    let arguments = std::iter::once("plan").chain(line.split_whitespace());
    PlanOptions::try_parse_from(arguments).unwrap_or_else(|_| PlanOptions::parse_from(["plan"]))
}
