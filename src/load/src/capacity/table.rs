//! A plan as Markdown, so that a terminal and a document show the same.

use super::number::{bytes, number};
use super::plan::Plan;

/// Header of a table with one row per plan.
const BRIEF: &str = "| | at the peak | machines: nodes, balancers, Redis with replicas | cores used | Redis threads \
used | memory of a node | kept by the store | disk, written | clients' network | Redis' network | binds first |\n\
|---|---|---|---|---|---|---|---|---|---|---|\n";

/// Formats a share in percent.
fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

impl Plan {
    /// Renders every figure with its arithmetic.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("| {} | Arithmetic | Result |\n|---|---|---|\n", self.who());
        for row in &self.rows {
            text += &format!("| {} | {} | {} |\n", row.what, row.arithmetic, row.result);
        }
        let bounds: Vec<String> =
            self.bounds.iter().map(|bound| format!("{} {}", bound.resource, percent(bound.share))).collect();
        let first = self.bounds.first().map_or("", |bound| bound.resource);
        text + &format!("\nBinds first: {first}. Used at the peak: {}.\n", bounds.join(", "))
    }

    fn who(&self) -> String {
        let of = |count: f64, what: &str| (count > 0.0).then(|| format!("{} {what}/s", number(count)));
        let both = [of(self.verifications_per_second, "verifications"), of(self.guests_per_second, "guests")];
        both.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    fn brief(&self, name: &str) -> String {
        let machines = match self.redis_masters {
            0.0 => "1 with its own store".to_owned(),
            masters => {
                let counts = [self.node_machines, self.balancer_machines, masters + self.redis_replicas].map(number);
                counts.join(" + ")
            }
        };
        let first =
            self.bounds.first().map_or(String::new(), |bound| format!("{}, {}", bound.resource, percent(bound.share)));
        let cells = [
            name.to_owned(),
            self.who(),
            machines,
            number(self.node_cores),
            if self.redis_masters > 0.0 { number(self.redis_cores) } else { "–".to_owned() },
            bytes(self.node_bytes),
            bytes(self.store_bytes),
            format!("{}/s", bytes(self.disk_bytes_per_second)),
            format!("{} Mbit/s", number(self.public_mbit)),
            if self.redis_masters > 0.0 { format!("{} Mbit/s", number(self.redis_mbit)) } else { "–".to_owned() },
            first,
        ];
        format!("| {} |\n", cells.join(" | "))
    }
}

/// Renders one row per plan.
pub(crate) fn brief(plans: &[(&str, Plan)]) -> String {
    plans.iter().fold(BRIEF.to_owned(), |text, (name, plan)| text + &plan.brief(name))
}
