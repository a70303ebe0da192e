"""Draw the extension's icon: bars that get shorter, as a kernel's time does. Standard library only."""

import struct
import sys
import zlib

SIZE, CORNER = 128, 24
BACKGROUND, BARS = (24, 32, 48), [(255, 138, 76), (255, 196, 87), (92, 219, 149)]


def pixel(x: int, y: int) -> tuple[int, int, int, int]:
    dx, dy = max(CORNER - x, x - (SIZE - 1 - CORNER), 0), max(CORNER - y, y - (SIZE - 1 - CORNER), 0)
    if dx * dx + dy * dy > CORNER * CORNER:
        return (0, 0, 0, 0)
    for index, (colour, length) in enumerate(zip(BARS, (84, 56, 30), strict=True)):
        top = 30 + index * 26
        if 22 <= x < 22 + length and top <= y < top + 16:
            return (*colour, 255)
    return (*BACKGROUND, 255)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


rows = b"".join(b"\0" + bytes(v for x in range(SIZE) for v in pixel(x, y)) for y in range(SIZE))
header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 6, 0, 0, 0)
png = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", header)
    + chunk(b"IDAT", zlib.compress(rows, 9))
    + chunk(b"IEND", b"")
)
with open(sys.argv[1], "wb") as file:
    file.write(png)
