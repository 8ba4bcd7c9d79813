"""The views of a cluster, made of answers that all viewers share."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

from gearpy.cluster.client.client import ClusterClient
from gearpy.cluster.client.looking import ClusterWatch
from gearpy.ids import AppId
from gearpy.views.model import AppView, OverviewView, ProcessorView

#: Answers that are younger are not asked for again; nor those that took longer than they are old.
_FRESH_S: Final = 0.7
#: So many views are remembered, for rates; those that were looked at last.
_KEPT_MAX: Final = 200


class Watching:
    """Looks at a cluster; who looks at the same within a moment gets the same.

    Runs on: any thread; blocks until the cluster answers.
    """

    def __init__(self, client: ClusterClient, now_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._now_s = now_s
        self._lock = threading.Lock()
        self._watched = OrderedDict[Hashable, _Watched]()

    def application(self, app_id: AppId) -> AppView:
        view: AppView = self._shared(("view", app_id), lambda watch: watch.application(app_id))
        return view

    def processor(self, app_id: AppId, processor_id: int) -> ProcessorView | None:
        view: ProcessorView | None = self._shared(
            ("processor", app_id, processor_id), lambda watch: watch.processor(app_id, processor_id)
        )
        return view

    def overview(self) -> OverviewView:
        view: OverviewView = self._shared(("overview",), ClusterWatch.overview)
        return view

    def _shared(self, key: Hashable, look: Callable[[ClusterWatch], Any]) -> Any:
        with self._lock:
            watched = self._watched.setdefault(key, _Watched(self._client))
            self._watched.move_to_end(key)
            while len(self._watched) > _KEPT_MAX:
                self._watched.popitem(last=False)
        with watched.lock:
            begun_s = self._now_s()
            if watched.at_s is None or begun_s - watched.at_s >= max(_FRESH_S, watched.took_s):
                watched.view = look(watched.watch)
                watched.at_s = self._now_s()
                watched.took_s = watched.at_s - begun_s
            return watched.view


class _Watched:
    """One view, when it was made, and what its rates are counted from."""

    def __init__(self, client: ClusterClient) -> None:
        self.lock = threading.Lock()
        self.watch = ClusterWatch(client)
        self.view: Any = None
        self.at_s: float | None = None
        self.took_s = 0.0
