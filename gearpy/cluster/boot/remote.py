"""RemoteCluster: a cluster of daemons, as programs and notebooks work with it."""

from collections.abc import Sequence
from typing import Self

from gearpy.cluster.client.client import ClusterClient, RunningApplication
from gearpy.cluster.net.limits import transport_limits
from gearpy.cluster.net.masters import Masters
from gearpy.config.load import Overrides, chosen
from gearpy.config.schema import Config
from gearpy.transport.security.credentials import Credentials
from gearpy.views.notebook import records_html


def connect(
    master: str | None = None, *, config: Config | Overrides | None = None
) -> "RemoteCluster":
    """Connect to a cluster.

    Nothing is asked yet: a cluster that is not there shows with the first question.

    Args:
        master: ``host:port`` of its master; by default ``cluster.masters`` of the configuration.
        config: the configuration, with the secret of the cluster, or settings of it by their keys;
            by default that of `load_config`.

    Raises:
        ConfigError: the address is none, or there is no secret that can be used.

    Example::

        with gp.connect("127.0.0.1:3000") as cluster:
            run = cluster.submit_program("wordcount.py", executors=2)
            print(run.wait())
    """
    if config is None and master:
        config = {"cluster.masters": master}
    config = chosen(config)
    return RemoteCluster([master] if master else config.cluster.masters, config)


class RemoteCluster(ClusterClient):
    """Talks to the master of a cluster, and to no other cluster that takes its place.

    Use as a context manager, or call `close`.

    Runs on: any thread; every question blocks until there is an answer.

    Args:
        addresses: of all masters, ``host:port``.
        config: with the secret of the cluster, and how long to wait for answers.
    """

    def __init__(self, addresses: Sequence[str], config: Config) -> None:
        self.address = ",".join(addresses)
        self._masters = Masters(
            addresses,
            Credentials.of_cluster(config),
            transport_limits(config),
            timeout_s=config.masterclient.timeout_s,
            one_cluster=True,
        )
        super().__init__(self._masters.ask, config=config)

    def submit_program(
        self,
        target: str,
        args: Sequence[str] = (),
        *,
        name: str = "",
        executors: int = 0,
        config: Overrides | None = None,
    ) -> RunningApplication:
        """Upload a program and start its application.

        It is loaded here first, so that mistakes show at once. Functions of a notebook cannot be
        submitted: write the program into a file, by ``%%writefile`` for example.

        Args:
            target: a ``.py`` file, a package folder, a ``.zip`` or a ``.whl``; ``:NAME`` behind it
                says which application or function in it.
            args: of the program.
            name: instead of the application's own.
            executors: how many share its tasks; 0 for as few as there is room for.
            config: its own settings, by key: numbers, texts, or lists of texts.

        Raises:
            ConfigError: there is no program, or it cannot run.
            OperatorError: the program itself raised.
            SubmitRefused: the cluster does not take it, as when its name is taken.
        """
        artifact, application = self.upload(target, args)
        return self.submit(name or application.name, artifact, executors=executors, config=config)

    def know_masters(self, addresses: Sequence[str]) -> None:
        """Ask these masters from now on: those before are gone, and nobody else says so."""
        self._masters.know(addresses)

    def close(self) -> None:
        """End the connection; applications go on."""
        self._masters.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteCluster {self.address}>"

    def _repr_html_(self) -> str:
        return records_html(
            [
                {
                    "id": each.app_id,
                    "name": each.name,
                    "status": each.status,
                    "in": each.progress.records_in,
                    "out": each.progress.records_out,
                }
                for each in self.applications()
            ]
        )
