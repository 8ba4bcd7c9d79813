"""Who takes what sinks have shown, outside of the application."""

from dataclasses import dataclass

__all__ = ["ConsumerReport", "ConsumerSummary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerReport:
    """Who takes what a sink has shown, and how far it has come, as its task knows.

    Attributes:
        name: of the consumer.
        batch_id: the last batch that it has taken; 0 for none.
        rows: it has taken since it began.
        rows_per_s: how fast that was lately.
        waiting_rows: shown, and not taken.
        waiting_since_ms: wall time since when it has taken nothing though there is something; 0
            if there is nothing.
        trouble: what went wrong last, while it does.
    """

    name: str
    batch_id: int = 0
    rows: int = 0
    rows_per_s: float = 0.0
    waiting_rows: int = 0
    waiting_since_ms: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSummary:
    """What a consumer's sink is, and what its task has reported last."""

    sink: str
    task: str
    report: ConsumerReport
