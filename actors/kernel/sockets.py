"""Connected sockets in compiled code: what goes at once, and waiting for more."""

from typing import Any

from numba import types

from actors.kernel.system_calls import duration, intrinsic, system_call

_AT_ONCE = 0x4040  # MSG_DONTWAIT, and MSG_NOSIGNAL: a peer that is gone is an error, no signal
READS, WRITES = 1, 4  # POLLIN, POLLOUT: what `ready` waits for


@intrinsic
def send(context: Any, socket: Any, address: Any, size: Any) -> Any:
    """Send what a socket takes at once of `size` bytes; return how many, or -1."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return system_call(builder, "sendto", *arguments, _AT_ONCE, 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def receive(context: Any, socket: Any, address: Any, size: Any) -> Any:
    """Receive what is there, at most `size` bytes; return how many, -1 if nothing is, 0 if the peer has closed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return system_call(builder, "recvfrom", *arguments, _AT_ONCE, 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def ready(context: Any, address: Any, count: Any, most_ns: Any) -> Any:
    """Wait until a socket of some has what is asked for; return how many have, 0 after `most_ns` (< 1 s).

    At the address is a word for each: the descriptor, and READS or WRITES or both, times 2 ** 32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, count, most_ns = arguments
        return system_call(builder, "ppoll", address, count, duration(builder, most_ns), 0, 0)

    return types.int64(types.int64, types.int64, types.int64), generate
