"""The one error for wrong input: what the user reads when a file, a name or an option is not right."""

from __future__ import annotations


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
        super().__init__(" ".join(": ".join([*parts, self.message]).splitlines()))


class UnavailableError(InputError):
    """What the user named is elsewhere and cannot be had from there now: a host that does not answer, a dead link.

    Nothing need be wrong with the input; the command line ends with exit code 1.
    """
