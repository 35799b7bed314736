"""Holds the dashboard against Grafana's own types: those of the SDK that Grafana generates from its schemas. What they do not know is
lost when the dashboard is read and written again."""

import json

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

plugins.register_default_plugins()


def lost(before, after, place="dashboard"):
    """Returns the places of `before` that are missing in `after` or have another value there."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [fault for key, value in before.items()
                for fault in (lost(value, after[key], f"{place}.{key}") if key in after else [f"{place}.{key}"])]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [fault for number, (one, other) in enumerate(zip(before, after)) for fault in lost(one, other, f"{place}[{number}]")]
    return [] if before == after else [place]


def faults(dashboard):
    """Returns the parts of a dashboard that Grafana does not know."""
    read = Dashboard.from_json(json.loads(json.dumps(dashboard)))
    known = {"Timeseries", "Stat", "Row"}
    strange = [panel["type"] for panel in dashboard["panels"] if panel["type"].capitalize() not in known]
    return lost(dashboard, json.loads(JSONEncoder().encode(read))) + strange
