"""The recording rules, alerts and panels of deploy/, as the checks read them."""

import json
import re

import yaml

FILES = ("objectives.yaml", "alerts.yaml")


def groups(deploy):
    return [group for name in FILES for group in yaml.safe_load((deploy / "prometheus" / name).read_text())["groups"]]


def rules(deploy):
    return [rule for group in groups(deploy) for rule in group["rules"]]


def alerts(deploy):
    return [rule for rule in rules(deploy) if "alert" in rule]


def dashboard(deploy):
    return json.loads((deploy / "grafana/sakshi.json").read_text())


def panels(deploy):
    """Returns panels with queries; a row only divides them."""
    return [panel for panel in dashboard(deploy)["panels"] if panel["type"] != "row"]


def queries(deploy):
    """Returns each query with its place."""
    found = [(rule.get("alert") or f"{rule['record']} {rule.get('labels', '')}", rule["expr"]) for rule in rules(deploy)]
    return found + [(f"panel {panel['title']} {target['refId']}", target["expr"]) for panel in panels(deploy) for target in panel["targets"]]


def names(expression):
    """Returns the metrics and recorded series of a query, without those of a histogram's parts."""
    found = re.findall(r"\b(?:sakshi|process|haproxy)[_:][a-z0-9_:]+|\bup\b", re.sub(r'"[^"]*"', "", expression))
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in found}
