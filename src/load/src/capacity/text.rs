//! A plan as Markdown, so that a terminal and a document show the same.

use super::Plan;

/// Columns of one row for each plan.
const BRIEF: &str = "| | at the peak | machines: nodes, balancers, Redis with replicas | cores used | Redis threads used | \
memory of a node | kept by the store | disk, written | clients' network | Redis' network | binds first |\n\
|---|---|---|---|---|---|---|---|---|---|---|\n";

/// Three digits, with separators.
#[must_use]
pub fn number(figure: f64) -> String {
    if figure >= 100.0 {
        let digits = format!("{figure:.0}");
        let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
        return groups.join(",");
    }
    let text = match figure {
        10.0.. => format!("{figure:.1}"),
        0.1.. => format!("{figure:.2}"),
        _ => format!("{figure:.4}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in the unit that suits them.
#[must_use]
pub fn bytes(count: f64) -> String {
    let (size, unit) = match count {
        1e12.. => (1e12, "TB"),
        1e9.. => (1e9, "GB"),
        1e6.. => (1e6, "MB"),
        1e3.. => (1e3, "kB"),
        _ => (1.0, "B"),
    };
    format!("{} {unit}", number(count / size))
}

/// The share of something in percent.
fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

impl Plan {
    /// Every figure with its arithmetic.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("| {} | Arithmetic | Result |\n|---|---|---|\n", self.who());
        for row in &self.rows {
            text += &format!("| {} | {} | {} |\n", row.what, row.arithmetic, row.result);
        }
        let bounds: Vec<String> = self.bounds.iter().map(|bound| format!("{} {}", bound.resource, percent(bound.share))).collect();
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
        let first = self.bounds.first().map_or(String::new(), |bound| format!("{}, {}", bound.resource, percent(bound.share)));
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

/// One row for each plan.
#[must_use]
pub fn brief(plans: &[(&str, Plan)]) -> String {
    plans.iter().fold(BRIEF.to_owned(), |text, (name, plan)| text + &plan.brief(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [0.0, 0.0120, 0.5, 1.0, 2.345, 10.0, 56.78, 751.4, 12_000.0, 1_234_567.8].map(number);
        assert_eq!(shown, ["0", "0.012", "0.5", "1", "2.35", "10", "56.8", "751", "12,000", "1,234,568"]);
    }

    #[test]
    fn bytes_have_the_unit_that_suits_them() {
        assert_eq!([12.0, 1_500.0, 2e6, 26.4e9, 3e12].map(bytes), ["12 B", "1.5 kB", "2 MB", "26.4 GB", "3 TB"]);
    }
}
