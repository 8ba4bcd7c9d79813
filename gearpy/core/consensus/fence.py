"""The fence against orders of masters that do not lead any more."""


class TermFence:
    """Admits orders of the newest term that was seen, and of later ones.

    Term 0 is that of a master without others: its orders are always admitted.

    Invariant: `term` never falls.
    """

    def __init__(self) -> None:
        self.term = 0  #: The newest that was seen.
        self.refused = 0  #: How many orders were not admitted.

    def why(self, term: int) -> str:
        return (
            f"it is of a master of term {term}, and one of term {self.term} has spoken; "
            f"{self.refused} refused so far"
        )

    def admits(self, term: int) -> bool:
        if 0 < term < self.term:
            self.refused += 1
            return False
        self.term = max(self.term, term)
        return True
