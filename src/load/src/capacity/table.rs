//! A plan as Markdown, for terminals and documents.

use super::number::{format_bytes, format_number};
use super::plan::Plan;

/// Header of the table with one row per plan.
const SUMMARY_HEADER: &str = "| | at the peak | machines: nodes, balancers, Redis with replicas | cores used | Redis \
threads used | memory of a node | size of the store | disk, written | clients' network | Redis' network | first limit \
|\n\
|---|---|---|---|---|---|---|---|---|---|---|\n";

/// Formats a share in percent.
fn percent(share: f64) -> String {
    format!("{} %", format_number(share * 100.0))
}

impl Plan {
    /// Renders every figure with its arithmetic.
    pub(crate) fn to_markdown(&self) -> String {
        let mut text = format!("| {} | Arithmetic | Result |\n|---|---|---|\n", self.load_in_words());
        for row in &self.rows {
            text += &format!("| {} | {} | {} |\n", row.name, row.arithmetic, row.result);
        }
        let bounds: Vec<String> =
            self.bounds.iter().map(|bound| format!("{} {}", bound.resource, percent(bound.share))).collect();
        let first = self.bounds.first().map_or("", |bound| bound.resource);
        text + &format!("\nFirst limit: {first}. Used at the peak: {}.\n", bounds.join(", "))
    }

    fn load_in_words(&self) -> String {
        let rate = |count: f64, unit: &str| (count > 0.0).then(|| format!("{} {unit}/s", format_number(count)));
        let rates = [rate(self.verifications_per_second, "verifications"), rate(self.guests_per_second, "guests")];
        rates.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    fn summary_row(&self, name: &str) -> String {
        let machines = match self.redis_masters {
            0.0 => "1 with its own store".to_owned(),
            masters => {
                let counts =
                    [self.node_machines, self.balancer_machines, masters + self.redis_replicas].map(format_number);
                counts.join(" + ")
            }
        };
        let first =
            self.bounds.first().map_or(String::new(), |bound| format!("{}, {}", bound.resource, percent(bound.share)));
        let cells = [
            name.to_owned(),
            self.load_in_words(),
            machines,
            format_number(self.node_cores),
            if self.redis_masters > 0.0 { format_number(self.redis_cores) } else { "–".to_owned() },
            format_bytes(self.node_bytes),
            format_bytes(self.store_bytes),
            format!("{}/s", format_bytes(self.disk_bytes_per_second)),
            format!("{} Mbit/s", format_number(self.public_mbit)),
            if self.redis_masters > 0.0 {
                format!("{} Mbit/s", format_number(self.redis_mbit))
            } else {
                "–".to_owned()
            },
            first,
        ];
        format!("| {} |\n", cells.join(" | "))
    }
}

/// Renders one row per plan.
pub(crate) fn summary_table(plans: &[(&str, Plan)]) -> String {
    plans.iter().fold(SUMMARY_HEADER.to_owned(), |text, (name, plan)| text + &plan.summary_row(name))
}
