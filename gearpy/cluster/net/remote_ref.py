"""The address of an actor in another process."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gearpy.actor.api import Exited, Killed, Ref
from gearpy.ids import ActorPath, incarnation_of

if TYPE_CHECKING:
    from gearpy.cluster.net.post import Post
    from gearpy.transport.api import Nodes

__all__ = ["RemoteRef"]

M_contra = TypeVar("M_contra", contravariant=True)


class RemoteRef(Ref[M_contra]):
    """A `Ref` whose messages go through the post. A `Post` makes one for each path.

    What it can tell of the actor is what it knows of the process: watchers hear `Killed` when
    that is lost, but not when the actor alone stops.

    Runs on: any thread.
    """

    # Without `__slots__`, so that the post can hold it weakly.

    def __init__(self, path: ActorPath, post: "Post", nodes: "Nodes") -> None:
        self.path = path
        self._post = post
        self._nodes = nodes
        self._is_alive = True

    def tell(self, message: M_contra) -> None:
        """See `Ref.tell`; what cannot be sent as the node is lost is counted by the post."""
        if not self._post.tell(self.path, message):
            self._note_loss()

    def ask(self, message: M_contra, timeout_s: float) -> Any:
        """See `Ref.ask`."""
        return self._post.ask(self.path, message, timeout_s)

    @property
    def is_alive(self) -> bool:
        """Whether nothing is known that speaks against it."""
        return self._is_alive

    def add_watcher(self, key: object, notify: Callable[[Exited], None]) -> None:
        """See `Ref.add_watcher`. ``notify`` may be called on the transport's thread."""

        def lost(_reason: str) -> None:
            self._note_loss()
            notify(Exited(self, Killed()))

        self._nodes.watch(self.path.node, (self.path, key), lost)

    def remove_watcher(self, key: object) -> None:
        """See `Ref.remove_watcher`."""
        self._nodes.unwatch(self.path.node, (self.path, key))

    def _note_loss(self) -> None:
        # Where there is no incarnation, another process may take the place of the lost one.
        self._is_alive = not incarnation_of(self.path.node)
