"""Whether Clang takes the C++ without a warning: on x86-64 for Linux and Windows, at every level.

    pip install ziglang
    python tools/clang.py

Zig is Clang with the headers of other systems. All but the bindings, which need the headers of
Python there, is compiled without optimization. Nothing is run; for other processors see
`aarch64.py`. Status 1 if something is refused.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from psinoise._progress import track

SOURCES = Path(__file__).parents[1] / "csrc"
TARGETS = ("x86_64-linux-musl", "x86_64-windows-gnu")
LEVELS = {"baseline": "x86_64", "avx2": "x86_64_v3", "avx512": "x86_64_v4"}
FLAGS = ("-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", f"-I{SOURCES}")


def main() -> int:
    """Compile everything, and say what is refused."""
    jobs: list[tuple[Any, ...]] = []
    for target in TARGETS:
        for source in sorted(SOURCES.glob("kernels/*.cpp")):
            for level, processor in LEVELS.items():
                flags = (f"-mcpu={processor}", f"-DPSINOISE_LEVEL={level}")
                jobs.append((source, target, *flags))
        for folder in ("base", "dispatch", "losses"):
            sources = sorted(SOURCES.glob(f"{folder}/*.cpp"))
            jobs += [(source, target, "-DPSINOISE_X86_LEVELS=1") for source in sources]
    refused = 0
    with tempfile.TemporaryDirectory() as made:
        for source, target, *flags in track(jobs, "Clang"):
            command = [sys.executable, "-m", "ziglang", "c++", "-target", target, *flags, *FLAGS]
            done = subprocess.run(
                [*command, "-c", str(source), "-o", str(Path(made, "made.o"))],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                refused += 1
                print(f"{source.name}, {target} {' '.join(flags)}:\n{done.stderr}")
    print(f"{len(jobs) - refused} of {len(jobs)} compiled without a warning")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
