"""A client of a sakshi service. README.md shows its use."""

from .client import Sakshi, SakshiError, Verdict
from .receiver import Arrival, Receiver, recognised

__all__ = ["Arrival", "Receiver", "Sakshi", "SakshiError", "Verdict", "recognised"]
