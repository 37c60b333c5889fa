"""One worker of `interpose up --workers N`: `python -m interpose.cli.worker NUMBER WORKERS CHANNEL MEMORY HOST`."""

import asyncio
import mmap
import os
import signal
import socket
import sys

from interpose.assembly.runtime import Runtime
from interpose.contracts.errors import InterposeError
from interpose.gateway.metrics import Metrics
from interpose.gateway.server import HandedServer, loop_factory
from interpose.gateway.workers import READY
from interpose.kernel.memory import settle


def main(words: list[str]) -> None:
    """Serves what comes through the channel until that is closed; then open streams may end."""
    number, workers, channel_descriptor, memory_descriptor = map(int, words[:4])
    host = words[4]
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):  # they reach the whole group, and the parent decides
        signal.signal(number_of_signal, signal.SIG_IGN)
    channel = socket.socket(fileno=channel_descriptor)
    metrics = Metrics(memoryview(mmap.mmap(memory_descriptor, 0)), worker=number)
    metrics.begin()
    with Runtime.open(metrics=metrics) as runtime:
        gateway = runtime.gateway(host=host, parent_pid=os.getppid())
        server = HandedServer(gateway, channel, worker=number, workers=workers, on_refused=gateway.refused)
        settle()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(server.serve(lambda: channel.sendall(READY)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InterposeError as error:
        sys.exit(f"interpose: {error}")
