"""Masters, as the command line shows and changes them."""

from msgspec.structs import replace

from gearpy.cli.daemons.commands import status_lines
from gearpy.cli.terminal.exits import WRONG_USE
from gearpy.messages.client import ChangeMasters, Refused
from gearpy.messages.masters import GetMasters, MasterList, MasterSummary
from tests.cli.build import MASTERS, Gear, masters


def test_a_change_of_the_masters_is_waited_for(gear: Gear) -> None:
    """Nobody wants to ask again whether it is done; what makes no sense is refused."""
    asked = list[object]()

    def answer(message: ChangeMasters) -> object:
        asked.append(message.change)
        known = message.address in {each.address for each in MASTERS.masters}
        return MASTERS if known else Refused(reason=f"{message.address} is none of the masters")

    gear.cluster.instead[ChangeMasters] = answer

    assert "leader" in gear("master", "transfer", "127.0.0.1:3000")
    assert "3001" in gear("master", "add", "127.0.0.1:3001")
    assert "none of the masters" in gear("master", "remove", "a:1", code=WRONG_USE)
    assert asked == ["transfer", "add", "remove"]


def test_status_says_how_many_more_may_be_lost() -> None:
    """Who shuts down a machine wants to know that, and nothing else."""
    alone = MasterList(masters=(MasterSummary(address="a:1", role="leader"),))
    assert list(status_lines(alone)) == [
        "a:1 has no others: while it is away, nothing new is taken"
    ]
    three = tuple(replace(each, role="follower") for each in MASTERS.masters[1:])
    all_there = replace(MASTERS, masters=(MASTERS.masters[0], *three))
    assert list(status_lines(all_there)) == [
        "127.0.0.1:3000 leads in term 3; 3 masters, 0 away",
        "1 master more may be lost",
    ]


def test_status_tells_of_an_upgrade_that_is_under_way() -> None:
    """Masters of two versions write the older one: not for longer than it takes."""
    found = masters(GetMasters(with_disks=True))
    leader = found.masters[0]
    assert leader.disk is not None
    newer = replace(leader, disk=replace(leader.disk, version="0.2.0"))
    mixed = replace(found, masters=(newer, *found.masters[1:]))
    assert (
        list(status_lines(mixed))[-1] == "they run gearpy 0.1.0 and 0.2.0: an upgrade is under way"
    )
