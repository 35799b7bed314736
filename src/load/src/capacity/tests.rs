//! Plans from round costs, errors, and the document with the computed tables.

use clap::Parser as _;

use super::cli::PlanOptions;
use super::costs::Costs;
use super::document::update_document;
use super::error::PlanError;
use super::plan::Plan;

/// Builds costs: each step of every kind costs 100 µs of a node, 10 µs of Redis, and 1,000 of each kind of byte.
fn round_costs() -> Costs {
    let step = r#"{"node_us":100,"redis_us":10,"light_node_us":100,"light_redis_us":10,
        "received_bytes":1000,"sent_bytes":1000,"disk_bytes":1000,"log_bytes":1000,
        "redis_in_bytes":1000,"redis_out_bytes":1000}"#;
    let steps = ["init_rs256", "pending_poll", "callback", "webhook", "ended_poll", "guest_rs256"];
    let steps: String = steps.iter().map(|name| format!("\"{name}\":{step},")).collect();
    let store = format!(
        "{{{steps}\"node_bytes\":50000000,\"node_pending_bytes\":2000,\"store_pending_bytes\":1000,\
            \"store_ended_bytes\":2000}}"
    );
    let text = format!(
        r#"{{"machine":{{"processor":"any","cores":2,"avx512_ifma":true,"measured":"once"}},
        "signature":{{"rs256_us":200,"rs256_without_ifma_us":800,"es256_check_us":35}},
        "sync_us":200,"webhook_bytes":1000,
        "balanced_request":{{"balancer_us":50,"node_more_us":25,
        "light_balancer_us":50,"light_node_more_us":25}},"embedded":{store},"redis":{store}}}"#
    );
    Costs::parse(&text).unwrap()
}

/// Computes a plan for these options from [`round_costs`].
fn plan(line: &str) -> Result<Plan, PlanError> {
    Plan::compute(&PlanOptions::try_parse_from(format!("plan {line}").split_whitespace()).unwrap(), &round_costs())
}

#[test]
fn a_figure_is_a_count_times_a_cost() {
    let plan = plan("--peak 12000 --day 100000000 --cores 8").unwrap();
    // Five steps of 100 µs, and four requests that cost 25 more.
    assert!((plan.node_cores - 7.2).abs() < 1e-9);
    // 14.4 cores at half use are two machines of eight, but 1,056 Mbit/s to clients and Redis need three; and a spare
    // one.
    assert!((plan.node_machines - 4.0).abs() < 1e-9);
    // 50 µs each are 0.6 threads, 1.2 at half use, and so two masters with a replica each.
    assert!(
        (plan.redis_cores - 0.6).abs() < 1e-9
            && (plan.redis_masters - 2.0).abs() < 1e-9
            && (plan.redis_replicas - 2.0).abs() < 1e-9
    );
    // 10.8 million wait in three nodes, and a day's results are kept.
    assert!((plan.node_bytes - (50e6 + 3.6e6 * 2e3)).abs() < 1.0);
    assert!((plan.store_bytes - (10.8e6 * 1e3 + 1e8 * 2e3)).abs() < 1.0);
    assert!((plan.disk_bytes_per_second - 12_000.0 * 5_000.0).abs() < 1e-3);
    assert!((plan.log_bytes_a_day - 1e8 * 5_000.0).abs() < 1e-3);
    // Five requests, five responses and one webhook, of 1,000 bytes each.
    assert!((plan.public_mbit - 12_000.0 * 11_000.0 * 8.0 / 1e6).abs() < 1e-6);
    // 48,000 requests of 50 µs are 2.4 cores, for which one is enough, but 960 Mbit/s each way need two; and a spare
    // one.
    assert!((plan.balancer_machines - 3.0).abs() < 1e-9);
    // 480 Mbit/s go in and out of Redis, whose two masters have 1,000 each. All other resources are at most half used
    // too.
    assert!(plan.bounds.iter().all(|bound| bound.share <= 0.5 + 1e-9), "{:?}", plan.bounds);
}

#[test]
fn a_peak_and_a_day_follow_from_each_other() {
    let from_day = plan("--day 864000").unwrap();
    assert!((from_day.verifications_per_second - 100.0).abs() < 1e-9);
    let from_peak = plan("--peak 100").unwrap();
    assert!((from_peak.verifications_a_day - 864_000.0).abs() < 1e-6);
}

#[test]
fn guests_add_to_the_load_and_the_table_shows_the_arithmetic() {
    let fair = plan("--guests 20000 --minutes 3").unwrap();
    assert!((fair.guests_per_second - 111.111).abs() < 1e-3);
    // 100 µs and five requests that cost 25 more.
    assert!((fair.node_cores - 111.111 * 225e-6).abs() < 1e-6);
    let both = plan("--guests 20000 --minutes 3 --peak 100").unwrap();
    assert!((both.node_cores - fair.node_cores - 100.0 * 600e-6).abs() < 1e-9);
    let table = both.to_markdown();
    assert!(
        table.contains(
            "| init 100 + poll 100 + callback 100 + webhook 100 + last poll 100 + 4 requests through a \
                balancer × 25 | 600 µs |"
        ),
        "{table}"
    );
    assert!(table.contains("100/s × 600 µs + 111/s × 225 µs"), "{table}");
}

#[test]
fn costs_are_interpolated_between_light_and_full_load() {
    let mut costs = round_costs();
    costs.redis.callback.light_node_us = 300.0;
    costs.redis.callback.light_redis_us = 30.0;
    costs.balanced_request.light_node_more_us = 75.0;
    let cores = |line: &str| {
        let options = PlanOptions::try_parse_from(format!("plan --peak 1000 {line}").split_whitespace()).unwrap();
        let plan = Plan::compute(&options, &costs).unwrap();
        [plan.node_cores, plan.redis_cores]
    };
    let [node, redis] = cores("--utilisation 0.5");
    assert!((node - (0.4 + 0.2 + 4.0 * 0.05)).abs() < 1e-9 && (redis - 0.06).abs() < 1e-9);
    let [node, redis] = cores("--utilisation 0.75");
    assert!((node - (0.4 + 0.15 + 4.0 * 0.0375)).abs() < 1e-9 && (redis - 0.055).abs() < 1e-9);
}

#[test]
fn rsa_signatures_cost_more_without_ifma() {
    let difference =
        |line: &str| plan(&format!("{line} --without-ifma")).unwrap().node_cores - plan(line).unwrap().node_cores;
    assert!((difference("--peak 1000") - 0.6).abs() < 1e-9);
    assert!((difference("--guests 60000 --minutes 1") - 0.6).abs() < 1e-9);
}

#[test]
fn the_embedded_store_runs_on_one_machine_only() {
    let bank = plan("--peak 10 --store embedded").unwrap();
    assert!((bank.node_machines - 1.0).abs() < 1e-9 && bank.redis_masters.abs() < 1e-9);
    assert!((bank.node_cores - 10.0 * 500e-6).abs() < 1e-9, "there is no balancer");
    assert!(matches!(plan("--peak 12000 --store embedded"), Err(PlanError::TooMuchForOneMachine { .. })));
}

#[test]
fn an_error_names_the_option() {
    let error_of = |line: &str| plan(line).unwrap_err().to_string();
    assert_eq!(error_of(""), "--peak, --day or --guests is required");
    for (line, option) in [
        ("--peak 0", "--peak"),
        ("--peak NaN", "--peak"),
        ("--day=-1", "--day"),
        ("--guests 0.5", "--guests"),
        ("--guests 10 --minutes 0", "--minutes"),
        ("--peak 1 --utilisation 1", "--utilisation"),
        ("--peak 1 --cores 0", "--cores"),
        ("--peak 1 --day 1000000", "--peak"),
        ("--peak 1 --window 0", "--window"),
        ("--peak 1 --result-ttl inf", "--result-ttl"),
        ("--day 1 --peak-factor 0.5", "--peak-factor"),
        ("--peak 10000000", "Redis masters"),
    ] {
        assert!(error_of(line).contains(option), "{line}: {}", error_of(line));
    }
}

#[test]
fn invalid_costs_are_refused_and_the_error_names_the_field() {
    let committed = include_str!("../../../../benches/costs.json");
    let error_of = |text: &str| Costs::parse(text).unwrap_err().to_string();
    assert!(error_of(&committed.replacen("\"sync_us\"", "\"sink_us\"", 1)).contains("sync_us"));
    let sync = committed.lines().find(|line| line.contains("\"sync_us\"")).unwrap();
    assert!(error_of(&committed.replace(sync, "\"sync_us\": -1,")).contains("sync_us must be a number from 0"));
    assert!(error_of("").contains("no measured table"));
}

#[test]
fn the_document_contains_the_computed_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/capacity.md");
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.matches("<!-- sakshi-load plan").count(), text.matches("<!-- end -->").count());
    assert!(
        update_document(&text).unwrap() == text,
        "run: cargo run -p sakshi-load -- plan --document docs/capacity.md"
    );
}
