"""``gear why``: what is wrong with an application, and the tasks that hold its clock back."""

from msgspec import to_builtins

from gearpy.cli.terminal.options import Given, MaybeRef, asking
from gearpy.cli.terminal.output import print_json, table
from gearpy.cluster.client.looking import look_at
from gearpy.core.app.consumers import stalled
from gearpy.messages.client import DescribeApplication
from gearpy.views import text
from gearpy.views.app import findings_in
from gearpy.views.findings import clock_finding, sentence, stuck_finding


@asking
def why(given: Given, ref: MaybeRef = None) -> None:
    """Say what is wrong with an application, what holds its clock back, and what to do."""
    with given.client(ref) as client:
        app_id = client.find(ref)
        look = look_at(client, app_id)
        summary, detail = look.summary, look.detail
        if detail is None or look.known_ms:
            detail = client.ask(DescribeApplication(app_id=app_id))
    chain, findings = detail.why, findings_in(look)
    held = clock_finding(detail, summary.progress)
    if given.as_json:
        print_json(
            {
                "app_id": app_id,
                "name": summary.name,
                "watermark_ms": summary.progress.watermark_ms,
                "waits_for": summary.progress.waits_for,
                "chain": [to_builtins(each) for each in chain],
                "lag_ms": detail.lag_ms,
                "long_turns": [to_builtins(each) for each in detail.long_turns],
                "culprit": held.task,
                "advice": sentence(held),
                "consumers": [to_builtins(each) for each in detail.consumers],
                "stalled_consumers": [
                    sentence(stuck_finding(each, look.at_ms))
                    for each in stalled(detail.consumers, look.at_ms)
                ],
                "findings": [to_builtins(each) for each in findings],
            }
        )
        return
    if chain:
        columns = ("", "task", "name", "clock", "watermark", "waits for")
        name = text.printable(summary.name)
        rows = [
            [
                "" if each is chain[0] else "->",
                each.task,
                each.name,
                text.watermark(each.clock_ms),
                text.watermark(each.watermark_ms),
                each.waits_for,
            ]
            for each in chain
        ]
        table(f"what holds the clock of application {app_id} ({name})", columns, rows)
        print()
    for each in findings:
        print(text.printable(sentence(each)))
