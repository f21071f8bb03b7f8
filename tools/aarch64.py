"""Samples and values of the kernels for aarch64, run under an emulator, beside those made here.

    pip install ziglang unicorn
    python tools/aarch64.py

Zig is a compiler with the headers and libraries of other targets, Unicorn an emulator of a
processor without an operating system. The kernels are compiled for aarch64, their tables are put
where the emulated program finds them, and its functions are called one by one: the bytes must be
those that the extension of this machine gives. Status 1 if some are not.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import psinoise as pn
from psinoise import _core as core
from psinoise.compile import compile_law
from psinoise.compile.cells import ALIAS_BITS
from psinoise.noise import FAMILIES, _cells

ROOT = Path(__file__).parents[1]
KERNELS = (
    "sample",
    "cells",
    "cells_float32",
    "evaluate",
    "near_tables",
    "lattice",
    "lattice_release",
)
TARGET = ("-target", "aarch64-linux-musl", "-std=c++17", "-O2")
# As in CMakeLists.txt, but that nothing is thrown.
FLAGS = ("-ffp-contract=off", "-fno-math-errno", "-fno-exceptions", "-DPSINOISE_LEVEL=baseline")
# What the kernels call of a C library, for normal numbers: to build a whole one takes two minutes.
LIBRARY = """
extern "C" void* memcpy(void* to, const void* from, unsigned long size) {
  for (unsigned long i = 0; i < size; ++i) ((char*)to)[i] = ((const char*)from)[i];
  return to;
}
extern "C" void* memset(void* to, int value, unsigned long size) {
  for (unsigned long i = 0; i < size; ++i) ((char*)to)[i] = (char)value;
  return to;
}
extern "C" double frexp(double x, int* exponent) {
  unsigned long bits;
  memcpy(&bits, &x, 8);
  *exponent = (int)(bits >> 52 & 0x7ff) - 1022;
  bits = (bits & ~(0x7fful << 52)) | (1022ul << 52);
  memcpy(&x, &bits, 8);
  return x;
}
"""
KEY = bytes(range(32))
COUNT = 20_000
QUANTITIES = ("pdf", "logpdf", "cdf", "ccdf", "logcdf", "logccdf")
NEAR = 11 * 16  # terms and panels of a struct NearDensity
PAGE, STACK, HEAP, ROOM, END = 0x1000, 0x10000000, 0x20000000, 1 << 26, 0x8000000


class Machine:
    """An emulated processor with a program in its memory."""

    def __init__(self, program: Path) -> None:
        from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, Uc

        self.cpu = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        image = program.read_bytes()
        self.symbols = _symbols(image)
        for address, data, size in _segments(image):
            first = address // PAGE * PAGE
            self.cpu.mem_map(first, (address + size - first + PAGE) // PAGE * PAGE)
            self.cpu.mem_write(address, data)
        self.cpu.mem_map(END, PAGE)
        self.cpu.mem_map(STACK, ROOM)
        self.cpu.mem_map(HEAP, ROOM)
        self.free = HEAP

    def put(self, data: bytes) -> int:
        """The address of a copy."""
        address = self.free
        self.cpu.mem_write(address, data)
        self.free += (len(data) + 63) // 64 * 64 + 64
        return address

    def array(self, values: NDArray[Any]) -> int:
        """The address of a copy of an array."""
        return self.put(np.ascontiguousarray(values).tobytes())

    def read(self, address: int, dtype: Any, count: int) -> NDArray[Any]:
        """So many numbers from an address on."""
        data = self.cpu.mem_read(address, count * np.dtype(dtype).itemsize)
        return np.frombuffer(bytes(data), dtype)

    def call(self, name: str, *arguments: int | float) -> None:
        """Call a function by its name; whole numbers and floats have registers of their own."""
        from unicorn import arm64_const as registers

        # Not what is local to a function, whose name begins with that of the function.
        symbols = self.symbols.items()
        (symbol,) = (at for symbol, at in symbols if name in symbol and symbol.startswith("_ZN"))
        whole = [value for value in arguments if isinstance(value, int)]
        real = [value for value in arguments if isinstance(value, float)]
        for place, value in enumerate(whole):
            self.cpu.reg_write(registers.UC_ARM64_REG_X0 + place, value)
        for place, value in enumerate(real):
            bits = struct.unpack("<Q", struct.pack("<d", value))[0]
            self.cpu.reg_write(registers.UC_ARM64_REG_D0 + place, bits)
        self.cpu.reg_write(registers.UC_ARM64_REG_SP, STACK + ROOM - PAGE)
        self.cpu.reg_write(registers.UC_ARM64_REG_X30, END)
        self.cpu.emu_start(symbol, END)


def _segments(image: bytes) -> list[tuple[int, bytes, int]]:
    """Address, bytes and size in memory of what an ELF file loads."""
    start, count = struct.unpack_from("<Q", image, 32)[0], struct.unpack_from("<H", image, 56)[0]
    found = []
    for entry in range(count):
        kind, _, offset, address, _, stored, size = struct.unpack_from(
            "<IIQQQQQ", image, start + 56 * entry
        )
        if kind == 1 and size:
            found.append((address, image[offset : offset + stored], size))
    return found


def _symbols(image: bytes) -> dict[str, int]:
    """Addresses of the functions of an ELF file."""
    start = struct.unpack_from("<Q", image, 40)[0]
    count = struct.unpack_from("<H", image, 60)[0]
    sections = [struct.unpack_from("<IIQQQQII", image, start + 64 * k) for k in range(count)]
    found = {}
    for _, kind, _, _, offset, size, link, _ in sections:
        if kind != 2:
            continue
        names = sections[link][4]
        for entry in range(offset, offset + size, 24):
            name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", image, entry)
            text = image[names + name : image.index(b"\0", names + name)].decode()
            if "psinoise" in text and value:
                found[text] = value
    return found


def build(folder: Path) -> Path:
    """Compile the kernels for aarch64, and link them without a start and without a library."""
    zig = [sys.executable, "-m", "ziglang"]
    library = folder / "library.cpp"
    library.write_text(LIBRARY, encoding="utf-8")
    compiled = [(ROOT / f"csrc/kernels/{name}.cpp", FLAGS) for name in KERNELS]
    objects = []
    for source, flags in [*compiled, (library, ("-fno-builtin",))]:
        objects.append(str(folder / f"{source.stem}.o"))
        command = [*zig, "c++", *TARGET, *flags, f"-I{ROOT / 'csrc'}", "-c", str(source)]
        subprocess.run([*command, "-o", objects[-1]], check=True)
    program = folder / "kernels.elf"
    subprocess.run([*zig, "ld.lld", "-e", "0", "-o", str(program), *objects], check=True)
    return program


# -- the structures of csrc/kernels/tables.hpp -----------------------------------------------------


def _panels(machine: Machine, arguments: Any) -> bytes:
    """A struct Panels of a table without splits."""
    rows, first, bits = arguments
    if np.isnan(rows[:, -1]).any():
        raise Split("laws with splits are not laid out here")
    exponents = (rows.shape[0] - 1) >> bits
    limit = 2.0 ** (first + exponents)
    return struct.pack("<QqqqdqQd", machine.array(rows), len(rows), first, bits, limit, 0, 0, 0.0)


def _ziggurat(machine: Machine, arguments: Any) -> bytes:
    entries, heights, edge, depth = arguments
    return struct.pack("<QQdd", machine.array(entries), machine.array(heights), edge, depth)


class Split(Exception):
    """A law whose panels have parts."""


class _Recorder:
    """The extension, but for one constructor, whose arguments it does not give back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: tuple[Any, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return self._keep if name == self.name else getattr(core, name)

    def _keep(self, *arguments: Any) -> None:
        self.arguments = arguments


def _recorded(owner: Any, name: str, make: Callable[[], Any]) -> tuple[Any, ...]:
    recorder = _Recorder(name)
    with mock.patch.object(owner, "core", recorder):
        make()
    return recorder.arguments


def law_table(machine: Machine, family: Any) -> int:
    """The address of a struct LawTable."""
    arguments = _recorded(pn.compile, "LawTable", lambda: compile_law(family(scale=1.0)))
    panels = [_panels(machine, table) for table in arguments[:4]]
    near = [machine.array(np.zeros(2 + NEAR)) for _ in range(3)]
    strips = [_ziggurat(machine, z) for z in arguments[4:]]
    table = machine.put(b"".join([*panels, *strips, struct.pack("<QQQ", *near)]))
    machine.call("12near_densityERK", table, near[0])
    machine.call("13near_survivalERK", table, near[1])
    machine.call("13near_quantileERK", table, near[2])
    return table


def cell_table(machine: Machine, law: Any) -> int:
    """The address of a struct CellTable."""
    recorded = _recorded(_cells, "CellTable", law.partition.table)
    entries, fractions, starts, widths, step, first, rate, period = recorded
    bits = len(entries).bit_length() - 1
    # Thresholds where words have their test bits, as csrc/bindings/bind_cells.cpp moves them.
    column, threshold = np.arange(len(entries), dtype=np.uint64), entries >> np.uint64(ALIAS_BITS)
    moved = threshold << np.uint64(bits + 1) | entries & np.uint64((1 << ALIAS_BITS) - 1)
    entries = np.where(threshold >> np.uint64(12), np.uint64(1 << 63) | column, moved)
    cells = np.zeros((len(entries), 2))
    cells[: len(starts)] = np.stack([starts, widths], axis=1)
    # For half words the first 9 bits of a threshold.
    aliases = moved & np.uint64(len(entries) - 1)
    heads = np.where(
        threshold >> np.uint64(12),
        column,
        threshold >> np.uint64(3) << np.uint64(bits + 1) | aliases,
    ).astype(np.uint32)
    tables = (entries, fractions, cells, heads, cells.astype(np.float32))
    addresses = [machine.array(table) for table in tables]
    return machine.put(struct.pack("<QQQQQdiiQdd", *addresses, step, bits, 0, first, rate, period))


# -- comparisons -----------------------------------------------------------------------------------


def compare(machine: Machine) -> list[str]:
    """What differs."""
    wrong = []
    key = machine.put(KEY)
    for family in FAMILIES:
        law = family(scale=1.0)
        try:
            table = law_table(machine, family)
        except Split:
            continue
        for dtype in (np.float64, np.float32):
            out = machine.array(np.zeros(COUNT, dtype))
            name = f"sample_{np.dtype(dtype).name}"
            expected = np.empty(COUNT, dtype)
            core.sample(law._table, KEY, 5, 1.5, expected, 1)
            if dtype == np.float32:
                scale = struct.unpack("<d", struct.pack("<fI", 1.5, 0))[0]
                machine.call(name, table, key, 5, COUNT, scale, out)
            else:
                machine.call(name, table, key, 5, COUNT, 1.5, out)
            wrong += _differs(f"{name} of {law.name}", machine.read(out, dtype, COUNT), expected)
        x = law.sample(2000, rng=1)
        points, out = machine.array(x), machine.array(x)
        for number, quantity in enumerate(QUANTITIES):
            expected = np.empty_like(x)
            core.evaluate(law._table, quantity, 1.5, x, expected, 1)
            machine.call("8evaluateERK", table, number, 1.5, points, x.size, out)
            wrong += _differs(
                f"{quantity} of {law.name}", machine.read(out, float, x.size), expected
            )
    for law in (pn.Cactus(cells_per_sensitivity=10, cells=40), pn.Staircase(epsilon=1.0)):
        for dtype in (np.float64, np.float32):
            out, expected = machine.array(np.zeros(COUNT, dtype)), np.empty(COUNT, dtype)
            core.sample_cells(law.partition.table(), KEY, 5, 1.5, expected, 1)
            name = f"sample_cells_{np.dtype(dtype).name}"
            machine.call(name, cell_table(machine, law), key, 5, COUNT, 1.5, out)
            found = machine.read(out, dtype, COUNT)
            wrong += _differs(f"{name} of {type(law).__name__}", found, expected)
    x = np.concatenate(
        [np.random.default_rng(1).normal(size=2000), [np.nan, -np.inf, 1e300, 5e-324]]
    )
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore", under="ignore"):
            values = x.astype(dtype)
        expected, name = np.empty(x.size, np.int64), f"lattice_cells_{np.dtype(dtype).name}"
        core.lattice_cells(values, 0.3, -2.0, 2.0, expected)
        out = machine.array(expected * 0)
        machine.call(name, machine.array(values), x.size, 0.3, -2.0, 2.0, out)
        wrong += _differs(name, machine.read(out, np.int64, x.size), expected)
    return wrong


def _differs(what: str, found: NDArray[Any], expected: NDArray[Any]) -> list[str]:
    same = found.tobytes() == expected.tobytes()
    print(f"{'the same bytes' if same else 'OTHER BYTES':>14}  {what}")
    return [] if same else [what]


def main() -> int:
    """Build, compare, and say what differs."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = compare(Machine(build(Path(folder))))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
