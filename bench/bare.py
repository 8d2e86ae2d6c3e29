"""The least a server in Python can do: an ASGI callable that sends recorded bytes. What Lathe's cache hits are held against.

`python -m bench.bare FILE` serves by uvicorn as Lathe does, until a signal ends it. FILE: JSON, path → `{"headers", "body"}`.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import uvicorn

from bench.processes import LISTENING

Message = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]


class Bare:
    """answers: by path. Every other path gets an empty 200."""

    def __init__(self, answers: dict[str, tuple[Headers, bytes]]) -> None:
        self._answers = answers

    async def __call__(self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]) -> None:
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
        headers, body = self._answers.get(scope["path"], ([(b"content-length", b"0")], b""))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def main() -> None:
    recorded = json.loads(Path(sys.argv[1]).read_bytes())
    answers = {
        path: ([(name.encode(), value.encode()) for name, value in answer["headers"]], answer["body"].encode())
        for path, answer in recorded.items()
    }
    config = uvicorn.Config(
        Bare(answers),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=4096,
        timeout_keep_alive=75,
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        print(json.dumps({"message": LISTENING, "port": listener.getsockname()[1]}), flush=True)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
