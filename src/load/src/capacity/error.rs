//! The error of `sakshi-load plan`.

use thiserror::Error;

use super::costs::CostsError;

/// The reason why a plan cannot be computed.
#[derive(Debug, Error)]
pub(crate) enum PlanError {
    #[error("--{0} must be a number {1}")]
    Range(&'static str, &'static str),
    #[error("--peak, --day or --guests is required")]
    NoLoad,
    #[error("--peak is {peak} a second, less than the mean of --day, {mean}")]
    BelowMean { peak: String, mean: String },
    #[error(
        "--store embedded is one machine: {needed} cores and {mbit} Mbit/s exceed --cores {cores} and its network at \
            --utilisation {utilisation}"
    )]
    TooMuchForOneMachine { needed: String, mbit: String, utilisation: f64, cores: u32 },
    #[error("{0} Redis masters are needed, but clients are spread over only 64 hash tags")]
    TooManyMasters(String),
    #[error("--costs: {0}")]
    Costs(#[from] CostsError),
    #[error("--costs: {0}")]
    File(#[from] std::io::Error),
}
