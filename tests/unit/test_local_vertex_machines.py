"""Turns of engines that share a machine."""

from __future__ import annotations

import asyncio

from eagle_bench.local_vertex import machines
from eagle_bench.local_vertex.machines import Machine, Turns


class Use:
    """Work of one holder that lasts until the test ends it."""

    def __init__(self, turns, holder):
        self.began, self._end = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._work(turns, holder))

    async def _work(self, turns, holder):
        async with turns.of(holder):
            self.began.set()
            await self._end.wait()

    async def end(self):
        self._end.set()
        await self.task


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


def run(test):
    asyncio.run(asyncio.wait_for(test(), 60))


def test_one_holder_does_many_things_at_once():
    async def test():
        turns = Turns(0)
        uses = [Use(turns, "a") for _ in range(3)]
        await settled()
        assert all(use.began.is_set() for use in uses)
        for use in uses:
            await use.end()

    run(test)


def test_another_waits_until_the_last_has_ended_and_the_time_to_linger_is_over():
    async def test():
        turns = Turns(0.05)
        first, second = Use(turns, "a"), Use(turns, "a")
        await settled()
        other = Use(turns, "b")
        await first.end()
        await settled()
        assert not other.began.is_set()
        await second.end()
        await settled()
        assert not other.began.is_set()
        again = Use(turns, "a")  # within the time to linger: the turn goes on
        await again.began.wait()
        await again.end()
        await other.began.wait()
        await other.end()

    run(test)


def test_first_come_first_served_and_all_of_one_holder_together():
    async def test():
        turns = Turns(0)
        first = Use(turns, "a")
        await settled()
        b1, c, b2 = Use(turns, "b"), Use(turns, "c"), Use(turns, "b")
        await settled()
        await first.end()
        await b1.began.wait()
        await b2.began.wait()
        assert not c.began.is_set()
        await b1.end()
        await settled()
        assert not c.began.is_set()
        await b2.end()
        await c.began.wait()
        await c.end()

    run(test)


def test_who_stops_waiting_does_not_stop_the_others():
    async def test():
        turns = Turns(0)
        first = Use(turns, "a")
        await settled()
        impatient, patient = Use(turns, "b"), Use(turns, "c")
        await settled()
        impatient.task.cancel()
        await settled()
        await first.end()
        await patient.began.wait()
        await patient.end()

    run(test)


def test_one_who_gave_up_as_the_turn_came_passes_it_on():
    async def test():
        turns = Turns(0)
        async with turns.of("a"):
            impatient, patient = Use(turns, "b"), Use(turns, "c")
            await settled()
        turns._pass_on()  # the turn is b's now, and b has not run since
        impatient.task.cancel()
        await patient.began.wait()
        await patient.end()

    run(test)


def test_slots_and_modes():
    async def test():
        one, two = Machine(1, 0), Machine(2, 0)
        assert (one.mode, two.mode) == ("one-at-a-time", "turns")
        await one.take_slot("a")
        waiting = asyncio.create_task(one.take_slot("b"))
        await settled()
        assert not waiting.done()
        assert (one.ahead_of("b"), one.ahead_of("a"), one.ahead_of("c")) == (("a",), (), ())
        one.give_slot_back("a")
        await waiting
        assert one.ahead_of("b") == ()

    run(test)


def test_the_first_gets_the_only_machine_though_others_ask_before():
    async def test():
        machine = Machine(1, 0)
        machine.expect("baseline")
        others = [asyncio.create_task(machine.take_slot(name)) for name in ("b", "c")]
        await settled()
        assert machine.ahead_of("b") == ("baseline",)
        await machine.take_slot("baseline")
        await settled()
        assert not any(other.done() for other in others)
        machine.give_slot_back("baseline")
        await others[0]
        assert machine.ahead_of("c") == ("b",)
        machine.give_slot_back("b")
        await others[1]

    run(test)


def test_of_two_machines_one_is_kept_for_the_first():
    async def test():
        machine = Machine(2, 0)
        machine.expect("baseline")
        await machine.take_slot("b")
        other = asyncio.create_task(machine.take_slot("c"))
        await settled()
        assert not other.done()
        assert machine.ahead_of("c") == ("b", "baseline")
        await machine.take_slot("baseline")
        machine.give_slot_back("baseline")
        await other

    run(test)


def test_a_first_that_never_comes_does_not_stop_the_others(monkeypatch):
    monkeypatch.setattr(machines, "FIRST_PATIENCE_S", 0.0)

    async def test():
        machine = Machine(1, 0)
        machine.expect("baseline")
        await machine.take_slot("b")
        late = asyncio.create_task(machine.take_slot("baseline"))
        await settled()
        assert machine.ahead_of("baseline") == ("b",)
        machine.give_slot_back("b")
        await late

    run(test)


def test_who_is_expected_later_comes_before_those_who_wait_already():
    async def test():
        machine = Machine(1, 0)
        machine.expect("a")
        await machine.take_slot("a")
        waiting = asyncio.create_task(machine.take_slot("b"))
        await settled()
        machine.expect("c")
        machine.give_slot_back("a")
        await settled()
        assert machine.ahead_of("b") == ("c",)
        await machine.take_slot("c")
        machine.give_slot_back("c")
        await waiting

    run(test)


def test_who_stops_waiting_for_a_machine_does_not_get_one():
    async def test():
        machine = Machine(1, 0)
        await machine.take_slot("a")
        impatient, late = (asyncio.create_task(machine.take_slot(name)) for name in ("b", "c"))
        await settled()
        impatient.cancel()
        await settled()
        machine.give_slot_back("a")
        late.cancel()  # just as it got it
        await settled()
        await machine.take_slot("d")

    run(test)


def test_who_waits_for_a_turn_knows_for_whose():
    async def test():
        machine = Machine(2, 0)
        async with machine.turn_of("a"):
            other = asyncio.create_task(machine.turn_of("b").__aenter__())
            await settled()
            assert machine.ahead_of("b") == ("a",)
            assert machine.ahead_of("a") == ()
        await other
        assert machine.ahead_of("b") == ()

    run(test)
