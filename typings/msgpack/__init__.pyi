# The library carries no annotations: what is used is declared here.
from collections.abc import Callable

from msgpack.exceptions import StackError as StackError

class Packer:
    def __init__(
        self,
        *,
        autoreset: bool = True,
        use_bin_type: bool = True,
        strict_types: bool = False,
        unicode_errors: str | None = None,
        buf_size: int = ...,
    ) -> None: ...
    def pack(self, obj: object) -> bytes: ...

class Unpacker:
    def __init__(
        self,
        *,
        raw: bool = False,
        strict_map_key: bool = True,
        max_buffer_size: int = ...,
        max_ext_len: int = -1,
    ) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview) -> None: ...
    def skip(self) -> None: ...
    def tell(self) -> int: ...

def packb(o: object, *, use_bin_type: bool = True) -> bytes: ...
def unpackb(
    packed: bytes | bytearray | memoryview,
    *,
    raw: bool = False,
    strict_map_key: bool = True,
    object_pairs_hook: Callable[[list[tuple[object, object]]], object] | None = None,
    list_hook: Callable[[list[object]], object] | None = None,
    ext_hook: Callable[[int, bytes], object] = ...,
    max_ext_len: int = -1,
    max_array_len: int = -1,
    max_map_len: int = -1,
) -> object: ...
