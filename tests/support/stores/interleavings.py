"""
Every order in which the calls of several actors reach a store. An actor is a thread that stops
before each call. Ways that lead to the same answers and the same store go on alike, so one of them
is enough.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from tests.support.stores.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STEP_S = 30.0
"""Never reached, unless an actor hangs."""


class Story(Protocol):
    objects: dict[str, bytes]

    def actors(self, stores: Sequence[MemoryStore]) -> list[Callable[[], object]]: ...

    def judge(self, *, is_over: bool) -> None: ...


class _Actor:
    def __init__(self, objects: dict[str, bytes]) -> None:
        self.store = _Told(objects, self._wait)
        self.act: Callable[[], object] = lambda: None
        self.error: BaseException | None = None
        self._go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.is_over = False
        self._is_given_up = False

    def begin(self) -> None:
        self._thread.start()
        self._reached()

    def step(self) -> None:
        self._go.release()
        self._reached()

    def give_up(self) -> None:
        if not self.is_over:
            self._is_given_up = True
            self.step()
        self._thread.join(STEP_S)

    def _reached(self) -> None:
        assert self._stands.acquire(timeout=STEP_S), "an actor hangs"

    def _wait(self, name: str, key: str) -> None:
        if threading.current_thread() is not self._thread:
            return
        self._stands.release()
        self._go.acquire()
        if self._is_given_up:
            raise GeneratorExit

    def _run(self) -> None:
        try:
            self.act()
        except GeneratorExit:
            pass
        except BaseException as error:  # noqa: BLE001 - it is told where the story is judged
            self.error = error
        finally:
            self.is_over = True
            self._stands.release()


class _Told(MemoryStore):
    def __init__(self, objects: dict[str, bytes], before: Callable[[str, str], None]) -> None:
        super().__init__(objects, before)
        self.answers: list[str] = []

    def put(self, key: str, content: Any) -> Any:
        return self._noted(super().put(key, content))

    def head(self, key: str, *, is_sum_wanted: bool = True) -> Any:
        return self._noted(super().head(key, is_sum_wanted=is_sum_wanted))

    def get(self, key: str, first_byte: int, last_byte: int) -> Any:
        return self._noted(super().get(key, first_byte, last_byte))

    def list(self, prefix: str = "") -> Any:
        return iter(self._noted(list(super().list(prefix))))

    def delete(self, key: str) -> None:
        super().delete(key)
        self._noted(None)

    def _noted(self, answer: Any) -> Any:
        self.answers.append(repr(answer))
        return answer


def explore(make: Callable[[], Story], actors: int) -> int:
    """Run every order of the story's calls, judge each end state, and return their number."""
    seen: set[object] = set()
    ahead: list[tuple[int, ...]] = [()]
    while ahead:
        order = ahead.pop()
        state, going = _replay(make(), actors, order)
        if state not in seen:
            seen.add(state)
            ahead += [(*order, one) for one in going]
    return len(seen)


def _replay(story: Story, count: int, order: Sequence[int]) -> tuple[object, list[int]]:
    acting = [_Actor(story.objects) for _ in range(count)]
    for actor, act in zip(acting, story.actors([one.store for one in acting]), strict=True):
        actor.act = act
    try:
        for actor in acting:
            actor.begin()
        for one in order:
            acting[one].step()
        going = [at for at, actor in enumerate(acting) if not actor.is_over]
        state = (
            tuple(tuple(actor.store.answers) for actor in acting),
            tuple(sorted(story.objects.items())),
        )
        try:
            assert [actor.error for actor in acting if actor.error is not None] == []
            story.judge(is_over=not going)
        except Exception as error:
            error.add_note(f"the order was {order}")
            raise
        return state, going
    finally:
        for actor in acting:
            actor.give_up()
