"""How many records a source reads at a time: the work of a moment, whatever a record costs."""

from typing import Final, Literal, TypeAlias

#: The work of one read.
_READ_MS: Final = 250
#: Of the work for the last read, so much is the time to read on behind a small batch.
_READ_ON_SHARE: Final = 8
#: The work that is remembered; older work counts half, then a quarter.
_REMEMBERED_MS: Final = 1000
#: A trial of another size takes so many reads, besides the first, and so much work or more reads.
_TRIAL_READS: Final = (2, 16)
_TRIAL_MS: Final = 1000
#: Larger reads are worth it if so much more is done in the same time.
_GAIN: Final = 1.2
#: How much larger the sizes are that are tried: the first, and those behind one that was worth it.
_LARGER: Final = (2, 4)
#: The work between trials: more after each that has changed nothing.
_REST_MS: Final = (1000, 64_000)

_Trial: TypeAlias = Literal["none", "larger", "smaller"]


class _Work:
    """Counts records, and the ms that the work for them took."""

    def __init__(self) -> None:
        self.reads = self.records = self.spent_ms = 0
        self._last = (0, 0)

    def add(self, records: int, spent_ms: int) -> None:
        self._last = (records, spent_ms)
        self.reads += 1
        self.records += records
        self.spent_ms += spent_ms

    def fits(self, most: int) -> int:
        records, spent_ms = self._last
        by_last = 2 * records * _READ_MS // spent_ms if spent_ms else most
        by_all = self.records * _READ_MS // self.spent_ms if self.spent_ms else most
        return max(1, min(by_all, by_last, most))

    def forget(self) -> None:
        if self.spent_ms > _REMEMBERED_MS:
            self.records, self.spent_ms = (self.records + 1) // 2, self.spent_ms // 2

    @property
    def rate(self) -> float:
        return self.records / max(1, self.spent_ms)

    @property
    def is_enough(self) -> bool:
        least, most = _TRIAL_READS
        return self.reads >= (least if self.spent_ms >= _TRIAL_MS else most)


class ReadSize:
    """Says how many records to read at a time: work for a quarter of a second.

    Steps that take a time for each *batch* do less with smaller ones. So other sizes are tried, and
    the least is kept with which clearly more is done than with half of it. A read is full from a
    ``share`` of its size on.
    """

    def __init__(self, most: int, *, share: int = 1) -> None:
        self.size = 1  #: The records to read next, at most.
        self.enough = 1  #: A batch of so many is not small.
        #: For so long is read on behind a small one. Its records wait for their work anyway, for as
        #: long as that of the read before took.
        self.read_on_ms = 1
        self._most = most
        self._share = share
        self._least = 1  # Smaller reads do less.
        self._worked_ms = 0
        self._work = _Work()
        self._trial: _Trial = "none"
        self._is_first = False  # The first read of a trial has work for those before.
        self._before = self._work  # That before the trial.
        self._next: _Trial = "larger"
        self._rests_ms = self._rest_ms = _REST_MS[0]

    def on_read(self, records: int, worked_ms: int) -> None:
        spent_ms, self._worked_ms = worked_ms - self._worked_ms, worked_ms
        if not records:
            return  # It asked in vain.
        if not spent_ms and self.size == self._most and self._trial == "none":
            self._work.add(records, 0)  # Nothing says that it is too much.
            return
        self.read_on_ms = max(1, min(spent_ms, _READ_MS) // _READ_ON_SHARE)
        is_full = records * self._share >= self.size
        if self._trial != "none" and not is_full:
            self._work = self._before
            self._end(self._trial)
        if self._trial == "none":
            self._work.add(records, spent_ms)
            self._rest_ms -= spent_ms
            self._resize(is_full=is_full)
            self._work.forget()
        elif self._is_first:
            self._is_first = False
        else:
            self._work.add(records, spent_ms)
            if self._work.is_enough:
                trial, gain = self._trial, self._work.rate / self._before.rate
                if trial == "larger" and gain >= _GAIN:
                    self._keep()
                    self._try(trial, _LARGER[1])
                elif trial == "smaller" and gain * _GAIN >= 1:
                    self._keep()
                    self._try(trial, _LARGER[0])
                else:
                    self._work = self._before
                    self._end(trial)
        self.enough = max(1, min(self.size, self._most // self._share))

    def _resize(self, *, is_full: bool) -> None:
        fits = self._work.fits(self._most)
        if fits >= self._most:
            self._least = 1  # It is slow no longer.
        elif is_full and self._rest_ms <= 0:
            self._try(self._next, _LARGER[0])
            return
        wanted = max(fits, self._least)
        if is_full or wanted < self.size:
            self.size = min(self._most, wanted, 2 * self.size)

    def _try(self, trial: _Trial, step: int) -> None:
        self._before = self._work
        fits = self._work.fits(self._most)
        larger, smaller = min(self._most, self.size * step), max(fits, self.size // step)
        size = larger if trial == "larger" else min(self.size, smaller)
        if size == self.size:
            self._end(trial)
            return
        self._trial, self._is_first = trial, True
        self._work = _Work()
        self.size = size

    def _keep(self) -> None:
        self._least = self.size if self.size > self._work.fits(self._most) else 1
        self._rests_ms = _REST_MS[0]

    def _end(self, trial: _Trial) -> None:
        self._trial = "none"
        self._next = "smaller" if trial == "larger" and self._least > 1 else "larger"
        self._rest_ms, self._rests_ms = self._rests_ms, min(2 * self._rests_ms, _REST_MS[1])
        self.size = min(self._most, max(self._work.fits(self._most), self._least))
