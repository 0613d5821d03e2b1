"""The one error for wrong input: what the user reads when a file, a name or an option is not right."""

from __future__ import annotations

import errno
import re

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""The system's errors when a disk accepts no more: full, a quota used up, a limit on a file's size, a fault."""
_LONGEST = 2000  # characters of an error: names of columns in it may be of any length
# C0 and C1 controls; what is invisible or turns the direction of text; halves of surrogate pairs, as in names of
# files that are not UTF-8.
_NOT_PRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def printable(text: str, keep: str = "") -> str:
    """Return text as a terminal or a page can show it: what acts on them, or hides, is escaped as ``\\u001b``.

    Names and values in files, of columns and jobs, and what servers say are not trusted; they must not move a cursor,
    set a title, or turn a line round. Strings of JSON and TOML mean the same with these escapes.

    Parameters
    ----------
    keep : str
        Characters that may stay: ``"\\n\\t"`` for a text of several lines.
    """
    return _NOT_PRINTABLE.sub(lambda m: m[0] if m[0] in keep else f"\\u{ord(m[0]):04x}", text)


class InputError(Exception):
    """The user's input is wrong.

    ``str(error)`` is the one line a user is shown, ``FILE: line N: field F: message``; parts that are not
    known are left out. The command line ends with exit code 2.

    Attributes
    ----------
    message : str
        What is wrong and what would be right, without the place.
    file, line, field : str | None, int | None, str | None
        The place: a path, a 1-based line (or table row), the name of a field or an option.
    """

    def __init__(
        self, message: str, *, file: object = None, line: int | None = None, field: str | None = None
    ) -> None:
        self.message = " ".join(str(message).split())
        self.file = None if file is None else str(file)
        self.line = line
        self.field = field
        parts = [self.file] if self.file is not None else []
        if line is not None:
            parts.append(f"line {line}")
        if field is not None:
            parts.append(f"field {field}")
        # One line whatever a file's name holds; the single argument is also what makes the error pickle.
        text = printable(" ".join(": ".join([*parts, self.message]).splitlines()))
        super().__init__(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


class UnavailableError(InputError):
    """Something the user named is on another host and not available: the host does not answer, or a link is dead.

    Nothing need be wrong with the input; the command line ends with exit code 1.
    """


class NotWritten(UnavailableError):
    """The disk does not take a file; what was asked for is not wrong, and can be done when it does."""

    wrong: str | None = None

    def with_advice(self, advice: str, stays: bool = False) -> NotWritten:
        """Return the error with what can be done, in place of advice that does not stay."""
        problem = f"{self.wrong or self.message}; {advice}"
        error = NotWritten(problem, file=self.file, line=self.line, field=self.field)
        error.wrong = problem if stays else self.wrong or self.message
        return error


def not_written(error: OSError | ValueError, path: object) -> InputError:
    """Return the error about a file or folder that cannot be written."""
    why = f"cannot be written: {getattr(error, 'strerror', None) or error}"
    return (NotWritten if getattr(error, "errno", None) in FULL else InputError)(why, file=path)
