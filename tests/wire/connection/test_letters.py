"""Letters between nodes, see `wire.connection.letters`. The network is a list, time a number."""

import random
from collections import deque
from itertools import groupby
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gearpy.errors import ConfigError, ProtocolError
from gearpy.ids import ActorPath
from gearpy.messages.peer import Fenced, Greeting, Letter, Welcome
from gearpy.wire.codec import encode_control
from gearpy.wire.connection.letters import (
    Heartbeat,
    Intake,
    LetterVerdict,
    Outbox,
    Patience,
    letter_bytes_max,
)

SENDER, HERE, ADDRESS = "a:1#aa", "b:2#bb", "b:2"


def an_outbox(
    session: int = 1, *, letters: int = 100, bytes_: int = 1 << 20, letter: int = 1 << 16
) -> Outbox:
    return Outbox(session, letters_max=letters, bytes_max=bytes_, letter_bytes_max=letter)


def an_intake(*, senders: int = 100, fenced: int = 100) -> Intake:
    return Intake(HERE, senders_max=senders, fenced_max=fenced)


def a_greeting(
    session: int = 1, *, sender: str = SENDER, receiver: str = HERE, resumes: bool = False
) -> Greeting:
    return Greeting(sender=sender, receiver=receiver, session=session, resumes=resumes)


def posted(outbox: Outbox, *bodies: bytes) -> Outbox:
    for body in bodies:
        assert outbox.post(to="x", body=body)
    return outbox


def numbers(letters: list[Letter]) -> list[int]:
    return [letter.number for letter in letters]


# -- the sending half ----------------------------------------------------------------------


def test_letters_are_sent_a_buffer_at_a_time() -> None:
    """A full outbox must not become one giant write; at least one letter goes out."""
    outbox = posted(an_outbox(), *[b"x" * 1000] * 4)

    assert numbers(outbox.unsent(1)) == [1]
    assert numbers(outbox.unsent(2000)) == [2, 3]


def test_what_was_not_taken_is_sent_again_on_the_next_connection() -> None:
    """A reset link costs nothing; what the other end has is not sent twice."""
    outbox = posted(an_outbox(), b"a", b"b", b"c")
    outbox.unsent(1 << 20)
    outbox.on_taken(1)

    assert outbox.on_welcome(2)

    assert numbers(outbox.unsent(1 << 20)) == [3]
    assert outbox.untaken == 1


@pytest.mark.parametrize("taken", [0, 3], ids=["forgot what it took", "took what was not sent"])
def test_a_welcome_that_cannot_be_right_means_that_the_node_is_given_up(taken: int) -> None:
    """To guess would be to lose or to repeat."""
    outbox = posted(an_outbox(), b"a", b"b")
    outbox.unsent(1 << 20)
    outbox.on_taken(1)

    assert not outbox.on_welcome(taken)


def test_taking_what_was_not_sent_is_nonsense() -> None:
    """It would drop letters that nobody has."""
    with pytest.raises(ProtocolError, match="letter 1 was taken but not sent"):
        posted(an_outbox(), b"a").on_taken(1)


def test_an_outbox_refuses_letters_above_its_limits() -> None:
    by_count, by_bytes = an_outbox(letters=2), an_outbox(bytes_=1000)

    assert [by_count.post(to="x", body=b"") for _ in range(3)] == [True, True, False]
    assert by_bytes.post(to="x", body=bytes(500))
    assert not by_bytes.post(to="x", body=bytes(500))
    by_bytes.unsent(1000)
    by_bytes.on_taken(1)
    assert by_bytes.post(to="x", body=bytes(500))


def test_a_letter_larger_than_a_frame_is_a_mistake() -> None:
    """The receiver would end the connection, again and again."""
    with pytest.raises(ConfigError, match=r"to actor 'x' is over the limit of 1000: send less"):
        an_outbox(letter=1000).post(to="x", body=bytes(1000))


@given(
    st.binary(max_size=300),
    st.text(max_size=300),
    st.none() | st.builds(ActorPath, st.text(max_size=50), st.text(max_size=50)),
    st.integers(0, 2**63 - 1),
)
def test_no_letter_is_larger_than_was_reckoned(
    body: bytes, to: str, reply_to: ActorPath | None, number: int
) -> None:
    letter = Letter(number=number, to=to, body=body, reply_to=reply_to, ask=number, answers=number)

    assert len(encode_control(letter)) <= letter_bytes_max(body, to, reply_to)


# -- the receiving half --------------------------------------------------------------------


def test_letters_are_handed_on_in_order_and_once() -> None:
    intake, greeting = an_intake(), a_greeting()
    intake.on_greeting(greeting)

    verdicts = [intake.on_letter(greeting, number) for number in (1, 2, 1, 2, 3)]

    assert [verdict is LetterVerdict.HAND_ON for verdict in verdicts] == [
        True,
        True,
        False,
        False,
        True,
    ]
    again = a_greeting(resumes=True)
    assert intake.on_greeting(again) == Welcome(node=HERE, taken=3)


def test_a_gap_is_nonsense() -> None:
    """It ends the connection; the next one begins with what is here."""
    intake, greeting = an_intake(), a_greeting()
    intake.on_greeting(greeting)

    with pytest.raises(ProtocolError, match=f"letter 2 of {SENDER} came after 0"):
        intake.on_letter(greeting, 2)


def test_a_new_session_begins_anew_and_ends_the_one_before() -> None:
    intake, old, new = an_intake(), a_greeting(1), a_greeting(2)
    intake.on_greeting(old)
    intake.on_letter(old, 1)

    assert intake.on_greeting(new) == Welcome(node=HERE, taken=0)

    assert intake.on_letter(old, 2) is LetterVerdict.REFUSED
    assert intake.on_letter(new, 1) is LetterVerdict.HAND_ON
    assert isinstance(intake.on_greeting(old), Fenced)


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (a_greeting(receiver="b:2#other"), "b:2#other is not here any more"),
        (a_greeting(sender="a:1"), "has no incarnation"),
        (a_greeting(resumes=True), "not known here"),
    ],
    ids=["for another", "from nobody", "of another"],
)
def test_whoever_is_not_meant_says_so(greeting: Greeting, reason: str) -> None:
    answer = an_intake().on_greeting(greeting)

    assert isinstance(answer, Fenced)
    assert reason in answer.reason


def test_a_fenced_node_is_refused() -> None:
    intake, greeting = an_intake(), a_greeting()
    intake.on_greeting(greeting)

    intake.fence(SENDER, "silent")
    intake.fence(SENDER, "again")

    assert intake.on_letter(greeting, 1) is LetterVerdict.REFUSED
    assert intake.on_greeting(greeting) == Fenced(node=HERE, reason="fenced: silent", given_up=True)
    assert not intake.on_ping(greeting)
    assert intake.on_ping(a_greeting(sender="c:3#cc"))
    assert intake.reason(SENDER) == "silent"


def test_only_so_many_senders_are_remembered_and_none_is_resumed_by_mistake() -> None:
    """Who was forgotten may not go on: its letters might come twice."""
    intake, first = an_intake(senders=2), a_greeting(sender="s:1#1")
    for greeting in (first, a_greeting(sender="s:2#2"), a_greeting(sender="s:3#3")):
        intake.on_greeting(greeting)

    assert intake.on_letter(first, 1) is LetterVerdict.REFUSED
    assert isinstance(intake.on_greeting(a_greeting(sender="s:1#1", resumes=True)), Fenced)


def test_only_so_many_fenced_nodes_are_remembered() -> None:
    """The oldest is forgotten first; its conversations are, too."""
    intake = an_intake(fenced=2)
    intake.on_greeting(a_greeting(sender="s:1#1"))

    for node in ("s:1#1", "s:2#2", "s:3#3"):
        intake.fence(node, "lost")

    assert intake.reason("s:1#1") is None
    assert intake.reason("s:2#2") == "lost"
    assert isinstance(intake.on_greeting(a_greeting(sender="s:1#1", resumes=True)), Fenced)


_RARELY = st.integers(0, 7)  #: Only 0 counts: such rules would end most runs early.


class Conversation(RuleBasedStateMachine):
    """Both halves and a network that breaks, drops, repeats and restarts as it likes."""

    @initialize(
        letters=st.integers(5, 30),
        senders=st.integers(1, 3),
        receiver=st.sampled_from([HERE, ADDRESS]),
    )
    def begin(self, letters: int, senders: int, receiver: str) -> None:
        self.letters, self.senders, self.receiver = letters, senders, receiver
        self.others = self.sent = 0
        self.greeting = a_greeting()
        self.restart_receiver(chance=0)
        self.begin_session(1)

    def begin_session(self, session: int) -> None:
        self.outbox = an_outbox(session, letters=self.letters)
        self.posted = 0
        self.lost = False
        self.wire: deque[Letter] | None = None
        self.connect()

    @rule(chance=_RARELY)
    def restart_receiver(self, chance: int) -> None:
        """Another process with the same address knows nothing, and is told what is for it."""
        if chance:
            return
        self.intake = an_intake(senders=self.senders)
        self.handed_on: list[tuple[int, int]] = []  # Session and number.
        self.stale: list[tuple[Greeting, deque[Letter]]] = []
        self.wire = None

    @precondition(lambda self: self.lost and self.receiver == ADDRESS)
    @rule()
    def begin_anew(self) -> None:
        """Who is lost under its address may be written to again, also if it is the same."""
        self.begin_session(self.outbox.session + 1)

    @precondition(lambda self: not self.lost)
    @rule(times=st.integers(1, 5))
    def post(self, times: int) -> None:
        for _ in range(times):
            if self.outbox.post(to="x", body=b"%d" % (self.posted + 1)):
                self.posted += 1
            else:
                self.lost = True

    @precondition(lambda self: not self.lost)
    @rule()
    def connect(self) -> None:
        """The connection before may still deliver: the receiver does not know that it is over."""
        if self.wire:
            self.stale.append((self.greeting, self.wire))
        self.wire = None
        self.greeting = self.outbox.greeting(sender=SENDER, receiver=self.receiver)
        answer = self.intake.on_greeting(self.greeting)
        if isinstance(answer, Fenced) or not self.outbox.on_welcome(answer.taken):
            self.lost = True
        else:
            self.wire, self.sent = deque(), answer.taken

    @precondition(lambda self: not self.lost)
    @rule()
    def greet_in_vain(self) -> None:
        self.wire = None
        self.intake.on_greeting(self.outbox.greeting(sender=SENDER, receiver=self.receiver))

    @precondition(lambda self: self.wire is not None)
    @rule(size=st.integers(1, 1000))
    def send(self, size: int) -> None:
        """Put letters on the connection: each once, in order."""
        assert self.wire is not None
        letters = self.outbox.unsent(size)
        assert numbers(letters) == list(range(self.sent + 1, self.sent + 1 + len(letters)))
        self.sent += len(letters)
        self.wire += letters

    @precondition(lambda self: self.wire)
    @rule(times=st.integers(1, 5), is_acknowledged=st.booleans())
    def arrive(self, *, times: int, is_acknowledged: bool) -> None:
        while self.wire and times:
            letter = self.wire.popleft()
            times -= 1
            if not self.take(self.greeting, letter):
                self.wire = None
            elif is_acknowledged:
                self.outbox.on_taken(letter.number)

    @precondition(lambda self: self.wire)
    @rule(chance=_RARELY)
    def drop(self, chance: int) -> None:
        assert self.wire is not None
        if not chance:
            self.wire.popleft()

    @precondition(lambda self: self.stale)
    @rule(which=st.integers(0, 100), times=st.integers(1, 10))
    def arrive_late(self, *, which: int, times: int) -> None:
        greeting, wire = self.stale[which % len(self.stale)]
        while wire and times:
            times -= 1
            if not self.take(greeting, wire.popleft()):
                wire.clear()

    @rule(times=st.integers(1, 3), chance=_RARELY)
    def others_greet(self, times: int, chance: int) -> None:
        for _ in range(0 if chance else times):
            self.others += 1
            self.intake.on_greeting(a_greeting(sender=f"o:{self.others}#{self.others}"))

    def take(self, greeting: Greeting, letter: Letter) -> bool:
        """Have the receiver judge; False: it closes the connection."""
        try:
            verdict = self.intake.on_letter(greeting, letter.number)
        except ProtocolError:
            return False
        if verdict is LetterVerdict.HAND_ON:
            self.handed_on.append((greeting.session, int(letter.body)))
        return verdict is not LetterVerdict.REFUSED

    @invariant()
    def each_once_and_in_order(self) -> None:
        """Of each session the letters from the first on; none after the next has begun."""
        if hasattr(self, "handed_on"):
            assert self.handed_on == sorted(set(self.handed_on))
            for session, letters in groupby(self.handed_on, key=itemgetter(0)):
                got = [number for _, number in letters]
                assert got == list(range(got[0], got[0] + len(got)))
                # A receiver that was restarted gets none that may have been taken before it.
                assert got[0] == 1, session

    def teardown(self) -> None:
        if not hasattr(self, "posted") or self.lost:
            return
        self.connect()
        if self.wire is None:
            return
        while letters := self.outbox.unsent(1 << 20):
            for letter in letters:
                assert self.take(self.greeting, letter)
        got = [number for session, number in self.handed_on if session == self.outbox.session]
        assert got == list(range(1, self.posted + 1))


TestConversation = Conversation.TestCase
# Each run is short and most end early: fewer find nothing.
TestConversation.settings = settings(max_examples=max(150, settings().max_examples))


# -- signs of life -------------------------------------------------------------------------


def a_heartbeat() -> Heartbeat:
    """Return one that asks every second and waits six; it began at 0."""
    heartbeat = Heartbeat(interval_ms=1000, timeout_ms=6000)
    heartbeat.start(0)
    return heartbeat


def ticks(heartbeat: Heartbeat, *times_ms: int) -> list[bool]:
    return [heartbeat.on_tick(now_ms) is not None for now_ms in times_ms]


def test_silence_for_the_timeout_is_a_loss() -> None:
    """Frozen or cut off: nobody can tell, and somebody has to go on."""
    assert ticks(a_heartbeat(), *range(1000, 7000, 1000)) == [True] * 5 + [False]


def test_half_of_the_timeout_in_silence_is_a_reason_to_doubt_the_connection() -> None:
    heartbeat, doubts = a_heartbeat(), []

    for now_ms in range(1000, 6000, 1000):
        heartbeat.on_tick(now_ms)
        doubts.append(heartbeat.is_doubtful)
    heartbeat.on_heard(5500)
    heartbeat.on_tick(6000)

    assert doubts == [False, False, True, True, True]
    assert not heartbeat.is_doubtful


def test_a_process_that_is_always_late_still_finds_a_loss() -> None:
    """Or a busy process would trust a dead one for ever."""
    late = range(0, 40_000, 3000)

    assert False in ticks(a_heartbeat(), *late)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), max_size=60))
def test_nobody_is_lost_who_was_heard_within_the_timeout(events: list[tuple[bool, int]]) -> None:
    """The invariant, for any order of ticks and signs of life."""
    heartbeat, now_ms, heard_ms = a_heartbeat(), 0, 0
    for is_heard, pause_ms in events:
        now_ms += pause_ms
        if is_heard:
            heartbeat.on_heard(now_ms)
            heard_ms = now_ms
        elif heartbeat.on_tick(now_ms) is None:
            assert now_ms - heard_ms >= 6000


# -- calling again -------------------------------------------------------------------------


def a_patience(*, is_incarnated: bool = True) -> Patience:
    return Patience(is_incarnated=is_incarnated, base_ms=100, max_ms=1000)


def after(patience: Patience, *refused: bool) -> list[int | None]:
    rng = random.Random(1)
    return [patience.on_failure(rng, refused=one) for one in refused]


def test_a_broken_connection_is_made_again_at_once_and_then_ever_slower() -> None:
    """A reset costs no time; a network that is away is not flooded."""
    patience = a_patience()

    pauses = after(patience, *[False] * 10)
    patience.on_progress()

    assert pauses[0] == 0
    assert all(500 <= (pause or 0) <= 1000 for pause in pauses[5:])
    assert after(patience, False) == [0]


@given(
    events=st.lists(st.sampled_from(["refused", "broken", "welcome", "progress"])),
    is_incarnated=st.booleans(),
)
def test_pauses_have_a_limit_and_hope_ends_with_refusals_only(
    *, events: list[str], is_incarnated: bool
) -> None:
    patience, row = a_patience(is_incarnated=is_incarnated), 0
    for event in events:
        match event:
            case "welcome":
                patience.on_welcome()
                row = 0
            case "progress":
                patience.on_progress()
            case _:
                row = row + 1 if event == "refused" else 0
                (pause,) = after(patience, event == "refused")
                assert (row >= Patience.refused_max) if pause is None else (0 <= pause <= 1000)
