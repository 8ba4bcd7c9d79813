"""``gear metrics ...``: all that is measured, and what Prometheus and Grafana make of it."""

from gearpy.cli.terminal.groups import group
from gearpy.cli.terminal.options import Given, takes
from gearpy.cli.terminal.output import print_json, table
from gearpy.metrics.alert_rules import rule_file
from gearpy.metrics.catalogue import CATALOGUE
from gearpy.metrics.dashboard import dashboard

commands = group("List what is measured; rules for Prometheus, a dashboard for Grafana.")


@commands.command("list")
@takes("as_json", "verbose")
def list_(given: Given) -> None:
    """Print all metrics that the page for Prometheus may have, with their labels."""
    infos = list(CATALOGUE.values())
    if given.as_json:
        print_json(
            [
                {"name": each.name, "kind": each.kind, "labels": each.labels, "help": each.help}
                for each in infos
            ]
        )
        return
    rows = [(each.name, each.kind, ", ".join(each.labels), each.help) for each in infos]
    table("metrics", ("name", "kind", "labels", "meaning"), rows)


@commands.command()
@takes("verbose")
def rules(_: Given) -> None:
    """Print the alerts as a rule file of Prometheus."""
    print(rule_file(), end="")


@commands.command("dashboard")
@takes("verbose")
def dashboard_(_: Given) -> None:
    """Print a dashboard that Grafana imports; it asks for the Prometheus to read."""
    print(dashboard())
