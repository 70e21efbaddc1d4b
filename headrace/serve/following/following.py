"""All subscriptions of a server: one hub for each view that somebody follows.

It belongs to the server's event loop; `close` may be called from any thread.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from headrace.errors import EngineBusy, HeadraceError, TokenRefused, ViewNotFound
from headrace.serve.following.hub import FollowLimits, Hub
from headrace.serve.following.leases import Leases, left_behind
from headrace.serve.following.subscription import Subscription, Wanted
from headrace.serve.reading.views import Views
from headrace.serve.signal import Signal
from headrace.store.base import Store

__all__ = ["Following"]

logger = logging.getLogger("headrace.serve")


class Following:
    """Hubs by view, and how many subscribe. Leases of a process that died are taken over."""

    def __init__(
        self, store: Store, views: Views, commits: Signal, limits: FollowLimits | None = None
    ) -> None:
        self.limits = limits or FollowLimits()
        self.subscribers = 0
        self._store = store
        self._views = views
        self._commits = commits
        self._hubs: dict[str, Hub] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._leases: dict[str, Leases] = {}
        self._pool = ThreadPoolExecutor(self.limits.threads, "following")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock
        self._snapshots: asyncio.Semaphore
        self._letting_go = self._take_over()

    def _take_over(self) -> threading.Timer | None:
        for view, left in left_behind(self._store).items():
            self._leases[view] = self._new_leases(view)
            self._leases[view].adopt(left)
        if not self._leases:
            return None
        timer = threading.Timer(self.limits.resume_seconds, self._let_go, [dict(self._leases)])
        timer.daemon = True
        timer.start()
        return timer

    def _let_go(self, taken_over: Mapping[str, Leases]) -> None:
        for view, leases in taken_over.items():
            try:
                leases.end_unless_followed()
            except HeadraceError as error:
                logger.warning("%s: its changes are still kept: %s", view, error)

    def _new_leases(self, view: str) -> Leases:
        return Leases(self._store, view, resume_seconds=self.limits.resume_seconds)

    @asynccontextmanager
    async def subscribe(self, view: str, wanted: Wanted) -> AsyncIterator[Subscription]:
        """Subscribe to a view. What a request is refused with is raised before it is entered.

        ViewNotFound, UsageError, TokenRefused, TokenTooOld, EngineBusy, QueryRefused.
        """
        if self.subscribers >= self.limits.max_subscribers:
            raise EngineBusy(
                f"{self.limits.max_subscribers} subscriptions are open already, which is the most; "
                f"ask again when others have ended"
            )
        self.subscribers += 1
        try:
            hub = await self._hub(view)
            owner = object()
            hub.enter(owner)
            subscription = Subscription(
                hub,
                self._store,
                self._views,
                self.limits,
                self._snapshots,
                wanted,
            )
            try:
                await subscription.begin()
                yield subscription
            finally:
                subscription.close()
                hub.leave(owner)
        finally:
            self.subscribers -= 1

    async def _hub(self, view: str) -> Hub:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._opening = asyncio.Lock()
            self._snapshots = asyncio.Semaphore(self.limits.max_snapshots)
        async with self._opening:
            hub = self._hubs.get(view)
            if hub is None or hub.is_over or hub.failure is not None:
                hub = self._hubs[view] = await self._open(view)
            return hub

    async def _open(self, view: str) -> Hub:
        leases = self._leases.get(view) or self._new_leases(view)
        hub = Hub(
            view,
            self._store,
            self._commits,
            self._views.topics,
            self._pool,
            leases,
            self.limits,
        )
        try:
            await hub.begin()
        except TokenRefused as error:
            raise ViewNotFound(await hub.in_thread(lambda: self._views.missing(view))) from error
        self._leases[view] = leases
        task = asyncio.create_task(self._run(hub))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return hub

    async def _run(self, hub: Hub) -> None:
        await hub.run()
        async with self._opening:
            if self._hubs.get(hub.view) is hub:
                del self._hubs[hub.view]
                self._leases.pop(hub.view, None)
                try:
                    await hub.in_thread(hub.leases.end)
                except HeadraceError as error:
                    logger.warning("%s: its changes are still kept: %s", hub.view, error)

    def close(self) -> None:
        """Read no more. The server ends who subscribes; what is kept stays for the next engine."""
        if self._letting_go is not None:
            self._letting_go.cancel()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
