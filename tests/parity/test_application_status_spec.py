"""Promises of Gearpump's `ApplicationStatusSpec`."""

from typing import get_args

from gearpy.core.master.registry import TERMINAL, is_legal
from gearpy.messages.summaries import ApplicationStatus

STATUSES: tuple[ApplicationStatus, ...] = get_args(ApplicationStatus)


def test_pending_may_become_anything() -> None:
    """`ApplicationStatusSpec`: pending may go to active and straight to every end."""
    assert all(is_legal("pending", status) for status in STATUSES)


def test_active_may_end_but_not_be_activated_again() -> None:
    assert not is_legal("active", "active")
    assert all(is_legal("active", status) for status in TERMINAL)


def test_active_goes_back_to_pending_when_its_app_master_is_lost() -> None:
    """Gearpump does so past its own table; here the table says it."""
    assert is_legal("active", "pending")


def test_terminal_states_lead_nowhere() -> None:
    assert not any(is_legal(old, new) for old in TERMINAL for new in STATUSES)
