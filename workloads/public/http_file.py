"""Download of one file over HTTP: it can be continued after a break, and gets its name only when it is checked.

The bytes go to ``NAME.part``. Beside it ``NAME.part.version`` keeps the server's label of this version of the file (its
ETag, else its date). A later request asks for the rest of that version only (RFC 9110, Range and If-Range): a file that
has changed is fetched from the beginning. Requests brings proxies, certificates and connections kept open over many
files; neither it nor pooch continues a broken transfer.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workloads.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from requests import Response, Session

MOST_BYTES = 4 << 30
"""The most of a file of unknown size."""
TIMEOUT_S = 30.0
"""The longest silence of a server."""
_CHUNK_BYTES = 1 << 18
_PAUSES_S = (1.0, 2.0, 4.0, 8.0)
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which a later request may succeed."""


class _Broken(Exception):
    """The transfer broke off; another try may continue it."""


def new_session() -> Session:
    """Return an HTTP session for several downloads: it follows redirects, to http and https only."""
    import requests

    session = requests.Session()
    session.max_redirects = 10
    # No compression by the server: checksums and ranges are of the file's own bytes.
    session.headers.update({"User-Agent": "emu-scheduler", "Accept-Encoding": "identity"})
    return session


def download(
    url: str,
    to: Path,
    *,
    sha256: str | None = None,
    size_bytes: int | None = None,
    most_bytes: int = MOST_BYTES,
    session: Session | None = None,
    progress: Callable[[int, int], None] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> int:
    """Download a file, from where an earlier call broke off; return the number of bytes received.

    A broken transfer is tried again, after a pause that doubles, until five tries in a row bring no bytes.

    Parameters
    ----------
    url : str
        http or https.
    to : Path
        Appears when the file is whole and checked; its folder must exist.
    sha256, size_bytes : optional
        Of the file.
    most_bytes : int
        The limit where the size is not known.
    session : optional
        As of `new_session`, to keep connections open over several files.
    progress : callable, optional
        Called with the bytes received so far and the bytes in all, 0 if not known.
    timeout_s : float
        The longest silence of the server.

    Raises
    ------
    UnavailableError
        No connection, no such file, a redirect elsewhere than to http or https, too many broken transfers.
    InputError
        The file has another checksum or size (its bytes are removed), or the disk is too full.
    OSError
        The file cannot be written; the next call continues.
    """
    own = session or new_session()
    part = part_of(to)
    received, furthest, fruitless = 0, 0, 0

    def count(done: int, total: int, fresh: int) -> None:
        nonlocal received, furthest
        received, furthest = received + fresh, max(furthest, done)
        if progress is not None:
            progress(done, total)

    try:
        while True:
            before = furthest
            try:
                got = _transfer(own, url, part, size_bytes, most_bytes, timeout_s, count)
                break
            except _Broken as error:
                fruitless = 0 if furthest > before else fruitless + 1
                if fruitless > len(_PAUSES_S) or (received == 0 and _is_out_of_reach(error)):
                    raise UnavailableError(str(error), file=url) from error
                time.sleep(_PAUSES_S[max(fruitless - 1, 0)])
    finally:
        if session is None:
            own.close()
    if sha256 is not None and got != sha256:
        _forget(part)
        raise InputError(
            f"wrong checksum: want sha256 {sha256}, got {got}; what was downloaded is removed", file=url
        )
    os.replace(part, to)
    _version_of(part).unlink(missing_ok=True)
    return received


def part_of(to: Path) -> Path:
    """Return the file with the bytes of an unfinished download."""
    return to.with_name(f"{to.name}.part")


def refuse_no_room(folder: Path, needed_bytes: int) -> None:
    """Raise `InputError` when the disk of a folder has fewer free bytes."""
    free = shutil.disk_usage(folder).free
    if needed_bytes > free:
        raise InputError(f"no room: {needed_bytes} bytes are to come, and {free} are free", file=folder)


def _transfer(
    session: Session,
    url: str,
    part: Path,
    size_bytes: int | None,
    most_bytes: int,
    timeout_s: float,
    count: Callable[[int, int, int], None],
) -> str:
    """Complete the part and return its sha256 (hex), or raise `_Broken`.

    `count` is called with the bytes received so far, the bytes in all (0 if not known) and the number of new bytes.
    """
    have, version = _there(part)
    digest = hashlib.sha256()
    if have:
        with part.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    with _ask(session, url, have, version, timeout_s) as response:
        begin, whole = _range(response)
        if response.status_code == 416:
            if whole == have:  # the part was whole, and not yet renamed
                return digest.hexdigest()
            _forget(part)
            raise _Broken("the bytes of an earlier call are not a part of the file")
        if response.status_code == 206 and (begin != have or _version(response) not in ("", version)):
            _forget(part)  # not every server respects If-Range
            raise _Broken("the server sent another range or version than was asked for")
        if response.status_code == 200:  # the first request, another version, or a server without ranges
            _forget(part)
            have, digest = 0, hashlib.sha256()
        total = _length(response, have) or whole
        _refuse_size(url, part, total, size_bytes)
        most = most_bytes if size_bytes is None else size_bytes
        _refuse_more(url, part, total or 0, most)
        total = total or size_bytes or 0
        refuse_no_room(part.parent, total - have)
        if have == 0 and (named := _version(response)):
            _version_of(part).write_text(named, encoding="utf-8")
        with part.open("ab") as file:
            count(have, total, 0)
            for chunk in _chunks(response):
                _refuse_more(url, part, have + len(chunk), most)  # before it is on the disk
                file.write(chunk)
                digest.update(chunk)
                have += len(chunk)
                count(have, total, len(chunk))
            file.flush()
            os.fsync(file.fileno())
    if have < total:
        raise _Broken(f"the transfer broke off after {have} of {total} bytes")
    _refuse_size(url, part, have, size_bytes)  # where the server did not state it before
    return digest.hexdigest()


def _ask(session: Session, url: str, have: int, version: str, timeout_s: float) -> Response:
    """Return the response to a request for the file, or for the rest after `have` bytes."""
    import requests

    headers = {"Range": f"bytes={have}-", "If-Range": version} if have else {}
    try:
        response = session.get(url, headers=headers, stream=True, timeout=timeout_s)
    except requests.exceptions.InvalidSchema as error:
        raise UnavailableError(f"leads to an address that is not http or https: {error}", file=url) from None
    except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
        asked = error.request.url if error.request is not None else url  # after redirects
        raise _Broken(f"{urlsplit(str(asked)).hostname} cannot be reached ({_reason(error)})") from error
    except requests.RequestException as error:  # not an address, too many redirects
        raise UnavailableError(str(error), file=url) from None
    status, kind = response.status_code, response.headers.get("Content-Type", "")
    if status == 416 and have:
        return response
    if status == 200 or (status == 206 and have):
        if "text/html" not in kind:  # no trace is a web page; a login or a dead link is
            return response
        response.close()
        raise UnavailableError("the server sent a web page instead of the file", file=url)
    response.close()
    if status in _PASSING:
        raise _Broken(f"the server answered {status} {response.reason}")
    raise UnavailableError(f"the server answered {status} {response.reason}", file=url)


def _chunks(response: Response) -> Iterator[bytes]:
    """Yield the body as it was sent, as curl and wget store it."""
    import urllib3

    try:
        yield from response.raw.stream(_CHUNK_BYTES, decode_content=False)
    except urllib3.exceptions.HTTPError as error:
        raise _Broken(f"the transfer broke off ({_reason(error)})") from error


def _there(part: Path) -> tuple[int, str]:
    """Return the number of bytes of an earlier call and their version; 0 where the version is not known."""
    try:
        version = _version_of(part).read_text(encoding="utf-8")
        return part.stat().st_size, version
    except FileNotFoundError:
        return 0, ""


def _version(response: Response) -> str:
    """Return the server's label of this version; a weak ETag does not promise the same bytes."""
    etag = response.headers.get("ETag", "")
    if etag and not etag.startswith("W/"):
        return etag
    return response.headers.get("Last-Modified", "")


def _range(response: Response) -> tuple[int | None, int | None]:
    """Return the first byte of the range that was sent, and the size of the whole file."""
    match = re.fullmatch(
        r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", response.headers.get("Content-Range", "").strip(), re.ASCII
    )
    if match is None:
        return None, None
    begin, total = match[1], match[2]
    return (int(begin) if begin else None), (None if total == "*" else int(total))


def _length(response: Response, have: int) -> int | None:
    """Return the size of the file: `have` and the bytes that the server states it sends; None where it does not."""
    length = response.headers.get("Content-Length", "")
    return have + int(length) if re.fullmatch(r"\d+", length, re.ASCII) else None


def _refuse_size(url: str, part: Path, total: int | None, size_bytes: int | None) -> None:
    if None not in (total, size_bytes) and total != size_bytes:
        _forget(part)
        raise InputError(f"wrong size: want {size_bytes} bytes, the server sends {total}", file=url)


def _refuse_more(url: str, part: Path, have: int, most: int) -> None:
    """Refuse more bytes than the file can have: a server may state no size, or a wrong one."""
    if have > most:
        _forget(part)
        raise InputError(
            f"the server sends more than {most:,} bytes, the most this file can have; what was downloaded is removed",
            file=url,
        )


def _is_out_of_reach(error: BaseException) -> bool:
    """Return whether there was no connection at all, as without a network."""
    from urllib3 import exceptions

    kinds = (
        exceptions.NewConnectionError,
        exceptions.ConnectTimeoutError,
        exceptions.ProxyError,
        exceptions.SSLError,
    )
    return any(isinstance(e, kinds) for e in _causes(error))


def _reason(error: BaseException) -> str:
    """Return the cause of an error, in the operating system's words if there are any."""
    causes = list(_causes(error))
    for cause in reversed(causes):
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return str(causes[-1]) or type(causes[-1]).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__ or at.__context__


def _version_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _forget(part: Path) -> None:
    """Remove the part; its version first, because a part without a version is never continued."""
    _version_of(part).unlink(missing_ok=True)
    part.unlink(missing_ok=True)
