"""Files in memory that can lose power, for stores and folders made of them."""

import io
from dataclasses import dataclass


@dataclass
class Content:
    """What a process sees of a file, and what a power cut leaves of it."""

    data: bytes = b""
    durable: bytes = b""
    changed_ms: int = 0


class MemoryFile(io.BytesIO):
    """A file whose content stays when it is closed."""

    def __init__(self, content: Content) -> None:
        super().__init__()
        self.content = content

    def flush(self) -> None:
        """Hand the buffer to the operating system."""
        self.content.data = self.getvalue()

    def close(self) -> None:
        """Flush, too."""
        if not self.closed:
            self.flush()
        super().close()
