"""One worker of `interpose up --workers N`.

Started as `python -m interpose.cli.worker NUMBER WORKERS CHANNEL MEMORY REPORT HOST`: three of these are descriptors.
"""

import asyncio
import mmap
import os
import signal
import socket
import sys
from functools import partial

from interpose.assembly.runtime import Runtime
from interpose.cli.health import report
from interpose.contracts.errors import InterposeError
from interpose.gateway.metrics import Metrics
from interpose.gateway.server import HandedServer, loop_factory
from interpose.gateway.workers import READY
from interpose.kernel.memory import settle


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
    with Runtime.open(metrics=metrics, on_health=tell) as runtime:
        gateway = runtime.gateway(host=host, parent_pid=os.getppid())
        server = HandedServer(
            gateway,
            channel,
            worker=number,
            workers=workers,
            drain_timeout_s=runtime.settings.file.gateway.drain_s,
            on_refused=gateway.refused,
            on_cut=gateway.cut,
        )
        settle()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(server.serve(lambda: channel.sendall(READY)))
        metrics.cut(server.cut_off)
    tell(runtime.stored.health)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InterposeError as error:
        sys.exit(f"interpose: {error}")
