//! The error of `sakshi-load plan`.

use thiserror::Error;

use super::costs::CostsError;

/// The error when there is no plan.
#[derive(Debug, Error)]
pub(crate) enum PlanError {
    #[error("--{0} must be a number {1}")]
    Range(&'static str, &'static str),
    #[error("--peak, --day or --guests must say who comes")]
    Nobody,
    #[error("--peak is {peak} a second, less than the mean of --day, {mean}")]
    BelowMean { peak: String, mean: String },
    #[error(
        "--store embedded is one machine; --cores {cores} and its network at --utilisation {utilisation} do not bear \
            {needed} cores and {mbit} Mbit/s"
    )]
    TooMuchForOne { needed: String, mbit: String, utilisation: f64, cores: u32 },
    #[error("{0} Redis masters are needed, and clients are spread over 64 tags")]
    TooManyMasters(String),
    #[error("--costs: {0}")]
    Costs(#[from] CostsError),
    #[error("--costs: {0}")]
    File(#[from] std::io::Error),
}
