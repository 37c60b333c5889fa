"""One worker of `interpose up --workers N`.

Started as `python -m interpose.cli.worker NUMBER WORKERS CHANNEL MEMORY REPORT HOST`: three of these are descriptors.
"""

import asyncio
import mmap
import os
import signal
import socket
import sys
import time
from functools import partial

from interpose.assembly.runtime import Runtime
from interpose.cli.health import report
from interpose.contracts.errors import InterposeError
from interpose.gateway.metrics import Metrics
from interpose.gateway.server import HandedServer, loop_factory
from interpose.gateway.workers import READY
from interpose.kernel.memory import settle

LOOK_S = 0.1
"""How often a worker that is being stopped looks whether its parent is still there."""


def main(words: list[str]) -> None:
    """Serves what comes through the channel until that is closed; then open streams may end."""
    number, workers, channel_descriptor, memory_descriptor, report_descriptor = map(int, words[:5])
    host = words[5]
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):  # they reach the whole group, and the parent decides
        signal.signal(number_of_signal, signal.SIG_IGN)
    channel = socket.socket(fileno=channel_descriptor)
    metrics = Metrics(memoryview(mmap.mmap(memory_descriptor, 0)), worker=number)
    metrics.begin()
    tell = partial(report, report_descriptor)
    parent = os.getppid()
    with Runtime.open(metrics=metrics, on_health=tell) as runtime:
        gateway = runtime.gateway(host=host, parent_pid=parent)
        server = HandedServer(
            gateway,
            channel,
            worker=number,
            workers=workers,
            drain_timeout_s=runtime.settings.file.gateway.drain_s,
            on_refused=gateway.refused,
            on_cut=gateway.cut,
            on_closed=partial(_end_with, parent),
        )
        settle()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(server.serve(lambda: channel.sendall(READY)))
        metrics.cut(server.cut_off)
    tell(runtime.stored.health)


def _end_with(parent: int) -> None:
    """Ends this process at once when its parent has ended: replies that run on would be nobody's to stop."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    os._exit(1)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InterposeError as error:
        sys.exit(f"interpose: {error}")
