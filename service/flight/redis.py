"""Leases in Redis: `SET NX PX` with a token, given up by compare-and-delete; word of it by a channel."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from redis.exceptions import RedisClusterException, RedisError

from service.errors import StoreDown
from service.flight.leases import LANDED, Standing
from service.logs import logger
from service.store.keys import Key, Name, as_key
from service.store.redis import RedisStore
from service.store.redis_link import Client, Link

log = logger("leases")

FAILED_MS = 5000  # how long word of a failure stays; whoever waits looks far more often
QUIET_S = 5.0  # without a message for so long, the channel is asked whether it is still there
BACK_MOST_S = 2.0  # longest pause between two tries to listen

# KEYS[1]: the lease. ARGV[1]: the token. Whose lease it is is decided where it is kept, or another's could be taken away.
_RENEW = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end"
# ARGV[2]: the failure, or empty. KEYS[2]: where it is left. ARGV[3], ARGV[4]: the channel, and the word for it.
_RELEASE = f"""
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    if ARGV[2] ~= '' then redis.call('SET', KEYS[2], ARGV[1] .. ARGV[2], 'PX', {FAILED_MS}) end
end
return redis.call('PUBLISH', ARGV[3], ARGV[4])
"""
TOKEN_CHARS = 32


class RedisLeases:
    """Leases beside the values of a store, in the same slot of a cluster. Tokens have TOKEN_CHARS characters."""

    def __init__(self, link: Link, store: RedisStore, *, prefix: str = "lathe") -> None:
        self._link = link
        self._store = store
        self._prefix = prefix
        self._channel = f"{prefix}:landed"

    def _lease(self, key: Key) -> str:
        return f"{self._prefix}:{{{key}}}:lease"

    def _failure(self, key: Key) -> str:
        return f"{self._prefix}:{{{key}}}:failure"

    async def take(self, key: Key, token: str, lease_s: float) -> Standing:
        # A call may be sent twice, after a cut connection: what counts is not what SET said but whose token is there.
        return await self._link.call(lambda client: self._asked(client, key, token, lease_s))

    async def standing(self, key: Key) -> Standing:
        return await self._link.call(lambda client: self._asked(client, key))

    async def _asked(self, client: Client, key: Key, token: str | None = None, lease_s: float = 0.0) -> Standing:
        async with client.pipeline(transaction=False) as line:
            if token is not None:
                line.set(self._lease(key), token, nx=True, px=round(lease_s * 1000))
            line.execute_command("MGET", self._lease(key), self._failure(key))  # methods of several keys refuse a cluster's
            line.execute_command("EXISTS", *(self._store.spelt(Name(kind, key)) for kind in LANDED))
            (holder, failure), landed = (await line.execute())[-2:]
        failed = None if failure is None else (failure[:TOKEN_CHARS].decode("ascii", "replace"), failure[TOKEN_CHARS:])
        return Standing(None if holder is None else holder.decode("ascii", "replace"), bool(landed), failed)

    async def renew(self, key: Key, token: str, lease_s: float) -> bool:
        return bool(await self._link.call(lambda client: client.eval(_RENEW, 1, self._lease(key), token, round(lease_s * 1000))))

    async def release(self, key: Key, token: str, failure: bytes | None = None) -> None:
        names = (self._lease(key), self._failure(key))
        await self._link.call(lambda client: client.eval(_RELEASE, 2, *names, token, failure or b"", self._channel, key))

    async def listen(self, heard: Callable[[Key], None]) -> None:
        pause_s = 0.1
        while True:
            try:
                await self._hear(heard)
            except (RedisError, RedisClusterException, OSError, TimeoutError, StoreDown) as error:
                log.debug("not listening", why=str(error))  # the store's own trouble is logged where it is asked
            except Exception as error:  # a client library at odds with a server that is going down
                log.warning("not listening", why=repr(error))
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, BACK_MOST_S)

    async def _hear(self, heard: Callable[[Key], None]) -> None:
        async with self._link.client.pubsub(ignore_subscribe_messages=True) as channel:
            async with asyncio.timeout(QUIET_S):
                await channel.subscribe(self._channel)
            asked = False
            while True:
                message = await channel.get_message(timeout=QUIET_S)
                if message is None:
                    if asked:
                        raise TimeoutError("the channel does not answer")
                    await channel.ping()
                elif message["type"] == "message":
                    key = as_key(message["data"].decode("ascii", "replace"))
                    if key is not None:
                        heard(key)
                asked = message is None
