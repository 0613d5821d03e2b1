"""A web server on this machine for tests of downloads: files, and answers that are not what they should be."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Request", bytes], None]


class Site:
    """What the server has and does; `asked` holds the path and the headers of every request.

    `answers` are given one after the other, before the right ones: each is called with the request and the
    file's content.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.reset()

    def reset(self) -> None:
        """Forget the files, the answers and what was asked."""
        self.files: dict[str, bytes] = {}
        self.etag: str | None = '"one"'
        self.ranges = True
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, dict[str, str]]] = []


class Request(BaseHTTPRequestHandler):
    """One request, answered from the `site` of the server."""

    site: Site

    def do_GET(self) -> None:
        site = self.site
        site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        content = site.files.get(self.path, b"")
        if site.answers:
            site.answers.pop(0)(self, content)
        elif self.path in site.files:
            right(self, content)
        else:
            status(404)(self, content)

    def head(self, status: int, **headers: object) -> None:
        """Send a status and headers; underscores stand for hyphens, None for a header that is left out."""
        self.send_response(status)
        headers.setdefault("Content_Type", "application/octet-stream")
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def right(request: Request, content: bytes) -> None:
    """Answer as RFC 9110 has it: a range only of the version that is asked for."""
    site, length = request.site, len(content)
    wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
    if not (site.ranges and wanted and request.headers.get("If-Range", site.etag) == site.etag):
        request.head(200, Content_Length=length, ETag=site.etag)
        request.wfile.write(content)
    elif int(wanted[1]) >= length:
        request.head(416, Content_Range=f"bytes */{length}", Content_Length=0, Content_Type="text/html")
    else:
        begin = int(wanted[1])
        request.head(
            206,
            Content_Range=f"bytes {begin}-{length - 1}/{length}",
            Content_Length=length - begin,
            ETag=site.etag,
        )
        request.wfile.write(content[begin:])


def cut(after: int) -> Answer:
    """Break off after so many bytes of the body, whatever they begin with."""

    def answer(request: Request, content: bytes) -> None:
        write = request.wfile.write
        left = after

        def some(data: bytes) -> int:
            nonlocal left
            sent, left = data[:left], left - len(data[:left])
            return write(sent)

        headers_end = request.end_headers

        def end_headers() -> None:
            headers_end()
            request.wfile.write = some

        request.end_headers = end_headers
        right(request, content)

    return answer


def status(code: int) -> Answer:
    """Answer with a status and no body."""
    return lambda request, _: request.head(code, Content_Length=0)


def redirect(to: str) -> Answer:
    """Send the client elsewhere."""
    return lambda request, _: request.head(302, Location=to, Content_Length=0)


@contextmanager
def serving() -> Iterator[Site]:
    """Serve a site on a free port for as long as the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Request,), {}))
    server.daemon_threads = True
    site = Site(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass.site = site
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
