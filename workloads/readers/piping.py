"""A stream as a path, for a library that opens files by name."""

from __future__ import annotations

import fcntl
import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from workloads.errors import InputError

PIPED_LINE_BYTES = 256 << 10
"""Of lines of tables; a line of JSON with all of a task's constraints has some kilobytes."""

_PIPE_BYTES = 1 << 20


@contextmanager
def piped(stream: IO[bytes], place: object = None, lines_before: int = 0) -> Iterator[str]:
    """Give a stream a path, ``/dev/fd/N``, for a library that opens files by name; it can be read once.

    A line that is longer than `PIPED_LINE_BYTES` is an error about `place`; `lines_before` is the number of lines that
    were read before. A thread feeds the pipe. On an error of the stream the library sees the end of the file, and the
    error is raised at the end of the block. The thread ends when the library stops reading.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # otherwise the thread would wait for ever for a reader that has stopped
    with suppress(AttributeError, OSError):  # fewer changes between the threads than with 64 KiB
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    done = threading.Event()
    failed: list[InputError] = []

    def feed() -> None:
        room = select.poll()
        room.register(writer, select.POLLOUT)
        try:
            with open(writer, "wb", buffering=0) as sink:
                for read in _with_short_lines(stream, place, lines_before):
                    if done.is_set():
                        break
                    block = memoryview(read)
                    while block and not done.is_set():
                        if room.poll(100):
                            block = block[sink.write(block) or 0 :]
        except BrokenPipeError:
            pass  # the reader has closed its end
        except InputError as error:
            failed.append(error)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield f"/dev/fd/{reader}"
    finally:
        done.set()
        os.close(reader)
        thread.join()
        if failed:  # the cause of any error of the library
            raise failed[0]


def _with_short_lines(stream: IO[bytes], place: object, lines: int) -> Iterator[bytes]:
    """Yield the blocks of a stream, and refuse a long line, for which DuckDB would take minutes."""
    open_bytes = 0  # of the line that has not ended
    while block := stream.read(PIPED_LINE_BYTES):
        first = block.find(b"\n")
        if open_bytes + (len(block) if first < 0 else first) > PIPED_LINE_BYTES:
            wrong = f"is longer than {PIPED_LINE_BYTES >> 10} KiB; is this a table?"
            raise InputError(wrong, file=place, line=lines + 1)
        lines += block.count(b"\n")
        open_bytes = open_bytes + len(block) if first < 0 else len(block) - 1 - block.rfind(b"\n")
        yield block
