"""The queue before the workers: clients take turns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.workers.queue import FairQueue


def drained(queue: FairQueue[str]) -> list[str]:
    items = []
    while (item := queue.take()) is not None:
        items.append(item)
    return items


def test_who_asks_for_much_waits_behind_the_next_of_everyone_else() -> None:
    queue: FairQueue[str] = FairQueue()
    for i in range(5):
        queue.add("many", f"m{i}", 0.0)
    queue.add("one", "o0", 1.0)
    queue.add("two", "t0", 1.0)
    queue.add("two", "t1", 1.0)

    assert ["m0", "o0", "t0", "m1", "t1", "m2", "m3", "m4"] == drained(queue)


def test_a_client_that_comes_back_has_no_second_turn_before_the_others_first() -> None:
    queue: FairQueue[str] = FairQueue()
    for client in "abc":
        queue.add(client, client, 0.0)

    assert "a" == queue.take()
    queue.add("a", "a again", 1.0)
    assert ["b", "c", "a again"] == drained(queue)


def test_a_place_given_up_is_nobody_s_turn() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("a", "a0", 0.0)
    gone = queue.add("b", "b0", 1.0)
    queue.add("b", "b1", 2.0)
    queue.remove(gone)
    queue.remove(gone)

    assert (2, 1, 1, 0) == (len(queue), queue.held_by("a"), queue.held_by("b"), queue.held_by("c"))
    assert ["a0", "b1"] == drained(queue)
    assert (0, None, None) == (len(queue), queue.take(), queue.oldest())


def test_the_oldest_place_is_found_in_whichever_line_it_stands() -> None:
    queue: FairQueue[str] = FairQueue()
    queue.add("a", "a0", 3.0)
    queue.add("b", "b0", 5.0)
    queue.take()

    assert 5.0 == queue.oldest()


@given(st.lists(st.one_of(st.sampled_from("abcd"), st.just(None)), max_size=60))
def test_each_client_s_items_keep_their_order_and_none_is_lost(steps: list[str | None]) -> None:
    queue: FairQueue[str] = FairQueue()
    added: list[str] = []
    taken: list[str] = []
    for number, client in enumerate(steps):
        if client is None:
            item = queue.take()
            if item is not None:
                taken.append(item)
        else:
            item = f"{client}{number:03}"
            queue.add(client, item, 0.0)
            added.append(item)
        assert len(queue) == len(added) - len(taken) == sum(1 for _ in queue)
    taken += drained(queue)

    assert sorted(added) == sorted(taken)
    for client in "abcd":
        assert [item for item in added if item[0] == client] == [item for item in taken if item[0] == client]
