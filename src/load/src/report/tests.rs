//! The reports contain the figures, and escape quoted text.

use std::time::Duration;

use sakshi_client::judge::Blame;
use tokio::time::Instant;

use super::*;
use crate::record::{DIGITS, Due, Outcome, Recorder, add, empty_latencies};

fn summary() -> Summary {
    let run_start = Instant::now();
    let recorder = Recorder::new(run_start, Duration::from_secs(1));
    for millis in 1..=1_000 {
        let sent = run_start + Duration::from_millis(3 * millis);
        recorder.record(Step::Page, Due::At(sent), sent, sent + Duration::from_millis(millis), Outcome::Status(200));
    }
    let record = &recorder.snapshot()[&Step::Page];
    Summary {
        scenario: "kiosk".to_owned(),
        model: "open".to_owned(),
        correction: "as it is".to_owned(),
        began: "2026-01-01T00:00:00.000Z".to_owned(),
        seconds: 4.0,
        verdict: Verdict::Broken,
        guests: Guests { started: 1_000, ..Guests::default() },
        findings: vec![Finding {
            rule: "no webhook is sent twice",
            blame: Blame::Service,
            held: false,
            figures: "1 more than once".to_owned(),
            examples: vec!["<script>alert('x')</script>".to_owned()],
        }],
        steps: vec![StepSummary::new(Step::Page, record, Duration::from_secs(1), 4.0)],
        webhooks: WebhookCounts { lost: 77, ..WebhookCounts::default() },
        credits: Credits { spent: 12, least: 11, most: 11 },
        places: Some(Places { registered: 9, max_guests: 10 }),
        doors: Some(Doors { doors: 3, checked_in: 8, at_two_doors: 2, sent_later: 1 }),
        tester: Tester {
            lag_ms: (0.1, 0.2),
            wait_ms: (0.1, 0.2),
            busy: Some(0.1),
            signs: vec!["a \"sign\" & <b>more</b>".to_owned()],
        },
        memory: vec![(0.0, 50 << 20), (4.0, 60 << 20)],
        processes: vec![Process { name: "redis".into(), ms_per_guest: 1.5 }],
        problems: vec!["</li><img src=x onerror=alert(1)>".to_owned()],
    }
}

#[test]
fn the_report_warns_if_the_tester_was_the_limit() {
    let signs = |ms, busy| {
        let mut lag = empty_latencies(DIGITS);
        (0..100).for_each(|_| add(&mut lag, Duration::from_millis(ms)));
        Tester::evaluate(&lag, &empty_latencies(DIGITS), busy).signs
    };
    assert_eq!(signs(1, Some(0.2)), Vec::<String>::new());
    assert_eq!(signs(500, Some(0.9)).len(), 2);
}

#[test]
fn percentiles_match_the_recorded_latencies() {
    let step = &summary().steps[0];
    assert!((step.due.p50 - 500.0).abs() < 2.0 && (step.due.p99 - 990.0).abs() < 2.0, "{:?}", step.due);
    assert_eq!((step.count, step.per_second), (1_000, 250.0));
    assert_eq!(step.over_time.len(), 4);
    assert!(step.curve.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{:?}", step.curve);
}

#[test]
fn the_page_loads_nothing_and_escapes_quoted_text() {
    let page = html::to_html(&summary()).unwrap();
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>more"), "{page}");
    assert!(page.contains("alert"), "it is shown as text");
    for outside in ["src=\"", "href=", "url(", "@import", "http://", "https://"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(
        page.contains("The service broke an invariant.")
            && page.contains("<td>77</td>")
            && page.contains("8 guests checked in")
            && page.contains("GET /e/{id}: latency over time")
    );
    assert_eq!(page.matches("<figure>").count(), 4, "throughput, two for the step, memory");
}

#[test]
fn plots_stay_within_their_frame() {
    let page = html::to_html(&summary()).unwrap();
    let points: Vec<(f64, f64)> = page
        .split("points=\"")
        .skip(1)
        .flat_map(|rest| rest.split('"').next().unwrap().split(' '))
        .map(|point| point.split_once(',').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    assert!(points.len() > 20);
    assert!(
        points.iter().all(|(x, y)| (0.0..=plot::WIDTH).contains(x) && (0.0..=plot::HEIGHT).contains(y)),
        "{points:?}"
    );
}

#[test]
fn the_table_contains_every_rule_with_its_examples() {
    let text = table::to_text(&summary());
    for part in [
        "BROKEN no webhook is sent twice",
        "alert('x')",
        "77 lost",
        "9 of 10",
        "doors: 3, 8 guests checked in, 2 scanned at two doors, 1 scans sent later",
        "THE TESTER WAS THE LIMIT",
        "12 spent, 11 to 11",
        "one guest, ms: redis 1.50",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
