"""That each alert fires when it should, only then, and no longer than it should: writes a test of `promtool test rules` for each row
of the table, with the rules that the alert needs and no others, and runs them all. An alert without a row fails.

    alerts.py DEPLOY
"""

import pathlib
import subprocess
import sys
import tempfile

import yaml

from rules import alerts, groups

deploy = pathlib.Path(sys.argv[1])
# Minutes of samples, four a minute. A row is quiet for ten minutes, then something is wrong, then it is right again.
RUNBOOK = "https://runbook.example.com/runbook.md#alerts"
DAY = 86_400


def series(name, values, **labels):
    labels = {"job": "sakshi", "instance": "a"} | labels
    told = ", ".join(f'{label}="{value}"' for label, value in labels.items() if value is not None)
    return {"series": f"{name}{{{told}}}", "values": values}


def row(alert, times, inputs, summary, labels=None, severity="ticket"):
    """`times`: minutes at which the alert is silent, fires, and is silent again."""
    return alert, times, inputs, {"severity": severity} | (labels or {}), summary


OF_A = {"job": "sakshi", "instance": "a"}
A = {"instance": "a"}
ROWS = [
    row("SakshiNodeGone", (9, 14, 21), [series("up", "1x40 0x40 1x40")], "a does not answer its scraper", OF_A),
    row("SakshiNoNodes", (9, 14, 21), [series("up", "1x40 0x40 1x40")], "no node answers", severity="page"),
    row("SakshiNotReady", (9, 14, 21), [series("sakshi_ready", "1x40 0x40 1x40"), series("sakshi_ready", "1x120", instance="b")],
        "a has not been ready for a minute: draining, a thread hangs, or no writes", OF_A),
    row("SakshiNoneReady", (9, 14, 21), [series("sakshi_ready", "1x40 0x40 1x40"), series("sakshi_ready", "0x120", instance="b")],
        "no node is ready", severity="page"),
    row("SakshiStoreRefuses", (9, 14, 25), [series("sakshi_http_refusals_total", "0x40 0+30x40 1200x40", code="storage_unavailable")],
        "requests end with 503 storage_unavailable", {"code": "storage_unavailable"}),
    row("SakshiStoreLostData", (9, 12, 21), [series("sakshi_store_data_lost", "0x40 1x40 0x40")],
        "Redis has lost data; every node refuses requests until it is back or an operator accepts the loss", severity="page"),
    row("SakshiLoadHigh", (24, 59, 85), [series("sakshi_load_ratio", "0.5x100 0.9x140 0.5x120")], "a uses 90% of what it may", OF_A),
    row("SakshiServerErrors", (9, 18, 30), [series("sakshi_http_refusals_total", "0x40 0+15x40 600x60", code="internal_error")],
        "requests end with 500", severity="page"),
    row("SakshiActorsRestart", (5, 11, 30), [series("sakshi_actor_restarts_total", "0x40 1x100", actor="webhook-dispatcher")],
        "webhook-dispatcher on a panicked and was restarted", OF_A | {"actor": "webhook-dispatcher"}),
    row("SakshiInvariantBroken", (5, 11, 30), [series("sakshi_invariants_broken_total", "0x40 1x100", part="record")],
        "an invariant of record is broken on a", OF_A | {"part": "record"}, severity="page"),
    row("SakshiWebhooksLost", (19, 59, 100),
        [series("sakshi_webhook_attempts_total", "0+45x400", outcome="delivered"),
         series("sakshi_webhook_attempts_total", "0x80 0+15x180 2700x140", outcome="timed_out")],
        "1 webhooks a second are lost, more than one in five"),
    row("SakshiCredentialsRefused", (19, 59, 100),
        [series("sakshi_transactions_completed_total", "0+30x400", verification_passed="true"),
         series("sakshi_credentials_refused_total", "0x80 0+15x180 2700x140", reason="issuer_unknown")],
        "many credentials are refused: keys of the issuer changed, or somebody tries"),
    row("SakshiNothingCompletes", (29, 110, 170),
        [series("sakshi_transactions_opened_total", "0+15x720"),
         series("sakshi_transactions_completed_total", "0+15x120 1800x360 1800+15x240", verification_passed="true")],
        "transactions are opened and none is completed", severity="page"),
    row("SakshiOutboxOld", (9, 20, 31), [series("sakshi_outbox_oldest_seconds", "0x40 315x80 0x40")],
        "a webhook has waited for 5m 15s"),
    row("SakshiLowOnCredits", (9, 22, 31), [series("sakshi_clients_low_on_credits", "0x40 2x80 0x40")],
        "2 clients have few credits left"),
    row("SakshiCommitsSlow", (19, 59, 90),
        [series("sakshi_store_commit_seconds_bucket", "0+100x400", le="0.25"),
         *(series("sakshi_store_commit_seconds_bucket", "0+100x80 8100+200x160 40100+100x160", le=le) for le in ("1", "+Inf"))],
        "one in a hundred commits on a takes 985ms or more", A),
    row("SakshiAuditLogIncomplete", (9, 12, 30), [series("sakshi_audit_log_unanswered_total", "0x40 1x100")],
        "the audit log does not say what came of a change on a", A),
    row("SakshiAuditLogUnsent", (24, 26, 45), [series("sakshi_audit_log_unsent", "0x40 3x80 0x60")],
        "3 entries of the audit log wait for their receiver", {"job": "sakshi"}),
    # The receiver is new, and gets all earlier entries first.
    row("SakshiAuditLogUnsent", (24, 27, 60), [series("sakshi_audit_log_unsent", "_x40 3x120 0x100")],
        "3 entries of the audit log wait for their receiver", {"job": "sakshi"}),
    row("SakshiOperatorLoginsFail", (9, 15, 45),
        [series("sakshi_operator_logins_failed_total", "0x40 0+3x20 60x140", token="operator"),
         series("sakshi_operator_logins_failed_total", "0x40 5x160", token="connector")],
        "a was given 57 wrong operator tokens in 15 minutes", A | {"token": "operator"}),
    row("SakshiIssuerKeysStale", (9, 40, 60),
        [series("sakshi_issuer_keys_read_total", "0x40 0+0.25x120 30x400", result="failed")], "a cannot read the issuer's keys again", A),
    row("SakshiCredentialStatusUnknown", (9, 22, 45),
        [series("sakshi_credential_status_checks_total", "0+15x200", outcome="valid"),
         series("sakshi_credential_status_checks_total", "0+15x200", outcome="credential_revoked"),
         series("sakshi_credential_status_checks_total", "0x40 0+15x60 900x100", outcome="timed_out")],
        "1 callbacks a second end with 503, because the issuer does not say whether credentials are valid", severity="page"),
    row("SakshiClockSuspected", (9, 12, 25), [series("sakshi_clock_suspected_total", "0x40 1x100")],
        "most credentials are refused on a for their times: its clock may be wrong", A, "page"),
    row("SakshiIntentKeyMissing", (9, 15, 31),
        [series("sakshi_intent_key_missing", "0x40 1x80 0x40"), series("sakshi_intent_key_missing", "0x160", instance="b")],
        "a does not have the intent key that was chosen, and signs with another one", OF_A),
    row("SakshiSignerAway", (9, 12, 21), [series("sakshi_signer_available", "1x40 0x40 1x40")],
        "a cannot sign intents: its token is away", OF_A, "page"),
    row("SakshiCertificateUnread", (9, 12, 30), [series("sakshi_tls_certificates_read_total", "0x40 1x100", result="failed")],
        "a cannot read the certificate of a listener again", OF_A | {"result": "failed"}),
    # Time begins at 0 here. Ten minutes before the alert the certificate has fourteen days and ten minutes; then it is replaced.
    row("SakshiCertificateExpires", (9, 20, 41),
        [series("sakshi_tls_certificate_expiry_timestamp_seconds", f"{14 * DAY + 600}x160 {90 * DAY}x40", listener="public")],
        "the certificate of the public listener of a expires in 13d 23h 50m 0s", OF_A | {"listener": "public"}),
    row("SakshiClockJumped", (9, 11, 21),
        [series("sakshi_clock_jumped", "0x40 1x40 0x40"), series("sakshi_clock_jumped", "0x120", instance="b")],
        "the clock of a has jumped; it deletes nothing for an hour", OF_A, "page"),
    row("SakshiStoreClockOffset", (9, 20, 31),
        [series("sakshi_store_clock_offset_seconds", "59x40 -120x80 59x40"),
         series("sakshi_store_clock_offset_seconds", "-59x160", instance="b")],
        "the clocks of a and Redis are 2m 0s apart", OF_A),
    row("SakshiDescriptors", (9, 25, 31),
        [series("process_open_fds", "850x40 950x80 850x40"), series("process_max_fds", "1000x160")],
        "a has 950 descriptors open, nearly all", OF_A),
    row("SakshiMemory", (9, 25, 31), [series("process_resident_memory_bytes", "3e9x40 4294967296x80 3e9x40")],
        "a holds 4GiB", OF_A),
    row("SakshiRedisMemory", (9, 20, 31),
        [series("sakshi_redis_memory_ratio", "0.7x40 0.9x80 0.7x40"), series("sakshi_redis_memory_ratio", "0.1x160", instance="b")],
        "Redis uses 90% of its maxmemory; at 95% no verification begins"),
    row("SakshiRedisFile", (9, 15, 31), [series("sakshi_redis_file_written", "1x40 0x80 1x40")],
        "Redis has no append-only file, or its last write or rewrite failed"),
    row("SakshiDiskNearlyFull", (9, 20, 31),
        [series("sakshi_store_disk_free_bytes", "2147483648x40 1073741824x80 2147483648x40"),
         series("sakshi_store_disk_size_bytes", "17179869184x160")],
        "the store's disk of a has 1GiB left", OF_A),
    row("SakshiBackupOld", (36 * 60 - 1, 36 * 60 + 5, 36 * 60 + 21),
        [series("sakshi_store_backup_timestamp_seconds", f"0x{36 * 240 + 40} {36 * 3_600 + 900}x80"),
         series("sakshi_store_disk_size_bytes", f"1x{36 * 240 + 120}"), series("process_start_time_seconds", f"0x{36 * 240 + 120}")],
        "the store of a has had no backup for 1d 12h 5m 0s", OF_A),
    # A store without any backup; a node on Redis has no disk, and does not know its backup.
    row("SakshiBackupOld", (36 * 60 - 1, 36 * 60 + 5, 36 * 60 + 21),
        [series("sakshi_store_backup_timestamp_seconds", f"_x{36 * 240 + 40} {36 * 3_600 + 900}x80"),
         series("sakshi_store_disk_size_bytes", f"1x{36 * 240 + 120}"), series("process_start_time_seconds", f"0x{36 * 240 + 120}"),
         series("process_start_time_seconds", f"0x{36 * 240 + 120}", instance="on-redis")],
        "the store of a has had no backup for 1d 12h 5m 0s", OF_A),
    row("SakshiLogLinesDropped", (9, 12, 30), [series("sakshi_log_lines_dropped_total", "0x40 7x100")],
        "a drops log lines: nobody reads them in time", OF_A),
    row("SakshiSpansLost", (14, 35, 80), [series("sakshi_spans_lost_total", "0x40 0+10x120 1200x160")],
        "the collector does not take the spans of a", OF_A),
    row("SakshiProxyGone", (9, 14, 21), [series("up", "1x40 0x40 1x40", job="haproxy"), series("up", "1x120")],
        "haproxy on a does not answer its scraper: clients may reach no node", OF_A | {"job": "haproxy"}, "page"),
    row("SakshiProxyNodeDown", (9, 15, 21),
        [series("haproxy_server_status", "0x40 1x40 0x40", job=None, instance=None, proxy="nodes", server="node1", state="DOWN")],
        "haproxy sends nothing to node1", {"proxy": "nodes", "server": "node1", "state": "DOWN"}),
    row("SakshiProxyRetries", (9, 20, 45),
        [series("haproxy_backend_retry_warnings_total", "0x40 0+30x60 1800x100", job=None, instance=None, proxy="nodes")],
        "haproxy repeats 2 requests a second"),
]


def objective(objective, sli, good, bad, share, minutes):
    """Series with this share of missed events, from minute 60 for `minutes`: 25 events each quarter of a minute."""
    missed = lambda of: f"0x240 0+{of:g}x{4 * minutes} {of * 4 * minutes:g}x800"
    told = {"objective": objective, "sli": sli}
    if isinstance(bad, dict):
        inputs = [series(good[0], f"0+25x{1_040 + 4 * minutes}", **good[1]), series(good[0], missed(25 * share / (1 - share)), **bad)]
    else:
        # The slow ones are in the count and not in the bucket.
        within = f"0+25x240 6000+{25 * (1 - share):g}x{4 * minutes} {6_000 + 25 * (1 - share) * 4 * minutes:g}+25x800"
        inputs = [series(f"{good[0]}_count", f"0+25x{1_040 + 4 * minutes}", **good[1]), series(f"{good[0]}_bucket", within, le=bad, **good[1])]
    return told, inputs


INIT = {"route": "/api/v1/nationalid-ovse/init"}
START = {"route": "/e/{eventId}/start"}
SLIS = [
    # Objective, subject, its metric, its misses: a separate series, or all above a bucket; and its budget.
    ("init", "answered", ("sakshi_http_requests_total", INIT | {"status": "2xx"}), INIT | {"status": "5xx"}, 0.001),
    ("init", "answered", ("sakshi_http_requests_total", START | {"status": "3xx"}), START | {"status": "5xx"}, 0.001),
    ("init", "time", ("sakshi_http_request_seconds", INIT), "0.25", 0.01),
    ("callback", "answered", ("sakshi_callbacks_total", {"outcome": "accepted"}), {"outcome": "failed"}, 0.001),
    ("callback", "time", ("sakshi_callback_seconds", {}), "1", 0.01),
    ("webhook", "time", ("sakshi_webhook_delay_seconds", {"receiver_busy": "false"}), "5", 0.001),
]
SPENDS = "{objective} ({sli}) spends its budget {rate} times as fast as it may: {part}"
HOUR, SIX_HOURS = "two percent of a month in this hour", "five percent of a month in six hours"
for name, sli, good, bad, budget in SLIS:
    told, inputs = objective(name, sli, good, bad, 40 * budget, 90)
    ROWS.append(row("SakshiObjectiveBurnsFast", (66, 140, 160), inputs, SPENDS.format(rate=40, part=HOUR, **told), told, "page"))
# If all requests fail, the page comes within two minutes; it ends after recovery.
told = {"objective": "init", "sli": "answered"}
outage = [series("sakshi_http_requests_total", "0+25x240 6000x60 6000+25x200", **INIT, status="2xx"),
          series("sakshi_http_requests_total", "0x240 0+25x60 1500x200", **INIT, status="5xx")]
ROWS.append(row("SakshiObjectiveBurnsFast", (60, 62, 90), outage, SPENDS.format(rate="14.58", part=HOUR, **told), told, "page"))
# The slower alert asks the same series.
told, inputs = objective(*SLIS[0][:4], 0.01, 480)
ROWS.append(row("SakshiObjectiveBurns", (66, 500, 585), inputs, SPENDS.format(rate=10, part=SIX_HOURS, **told), told))

ASKED = {"sakshi_callbacks_total": [{"outcome": "refused"}, {"outcome": "issuer_unavailable"}],
         "sakshi_http_requests_total": [INIT | {"status": "4xx"}, {"route": "/portal", "status": "5xx"}]}
# Cases for nobody: below the rate, a few misses in a quiet night, failures that are not the service's fault, and single ones.
SILENT = [
    ("SakshiObjectiveBurnsFast", objective(*SLIS[0][:4], 0.014, 200)[1]),
    ("SakshiObjectiveBurns", objective(*SLIS[0][:4], 0.0058, 200)[1]),
    ("SakshiObjectiveBurnsFast", [series("sakshi_callbacks_total", "0+0.25x2000", outcome="accepted"),
                                  series("sakshi_callbacks_total", "0x240 9x2000", outcome="failed")]),
    ("SakshiObjectiveBurnsFast", [series("sakshi_http_requests_total", "0+25x2000", **INIT, status="2xx"),
                                  series("sakshi_callbacks_total", "0+25x2000", outcome="accepted"),
                                  *(series(name, "0x240 0+50x2000", **labels) for name, each in ASKED.items() for labels in each)]),
    ("SakshiObjectiveBurnsFast", [series("sakshi_webhook_delay_seconds_count", "0+25x2000", receiver_busy="true"),
                                  series("sakshi_webhook_delay_seconds_bucket", "0x2000", receiver_busy="true", le="5")]),
    # Two fetches of an hour fail, and the next attempt of each succeeds.
    ("SakshiIssuerKeysStale", [series("sakshi_issuer_keys_read_total", "0x40 1x160 2x1000", result="failed")]),
]


def needed(alert):
    """Returns the rules of an alert: those of its group that record, and itself."""
    group = next(group for group in groups(deploy) if any(rule.get("alert") == alert for rule in group["rules"]))
    return {"groups": [group | {"rules": [rule for rule in group["rules"] if rule.get("alert", alert) == alert]}]}


def write(number, alert, inputs, expected):
    """Writes a test whose alert is silent or fires at some minutes; returns its name."""
    at = lambda minute, found: {"alertname": alert, "eval_time": f"{minute}m", "exp_alerts": found}
    test = {"interval": "15s", "input_series": inputs, "alert_rule_test": [at(*each) for each in expected.items()]}
    rules, name = f"{number}-rules.yaml", f"{number}-{alert}.yaml"
    (work / rules).write_text(yaml.safe_dump(needed(alert)))
    (work / name).write_text(yaml.safe_dump({"rule_files": [rules], "evaluation_interval": "15s", "tests": [test]}))
    return name


missing = {rule["alert"] for rule in alerts(deploy)} - {alert for alert, *_ in ROWS}
if missing:
    sys.exit(f"no row tests {sorted(missing)}")
with tempfile.TemporaryDirectory() as work:
    work, names = pathlib.Path(work), []
    for alert, (before, during, after), inputs, labels, summary in ROWS:
        fires = [{"exp_labels": labels, "exp_annotations": {"summary": summary, "runbook_url": RUNBOOK}}]
        names.append(write(len(names), alert, inputs, {before: [], during: fires, after: []}))
    names += [write(len(names) + more, alert, inputs, {minute: [] for minute in range(65, 250, 15)}) for more, (alert, inputs) in enumerate(SILENT)]
    sys.exit(subprocess.run(["promtool", "test", "rules", *names], cwd=work).returncode)
