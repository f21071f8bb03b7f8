"""What the suite shares: the fingerprint, and sizes that suit the run."""

from __future__ import annotations

import pytest

from psinoise.bench.report import fingerprint
from psinoise.bench.timing import Workload

# With timing disabled only the answers matter, and this many elements show a wrong one.
UNTIMED_SIZE = 1 << 12


def pytest_benchmark_update_machine_info(config, machine_info):
    """Say what the figures were measured on, but not on whose machine."""
    machine_info.pop("node", None)
    machine_info["psinoise"] = fingerprint()


@pytest.fixture(scope="session")
def machine():
    return fingerprint()


@pytest.fixture
def time_row(benchmark, machine):
    """Time a case or a reference row in its group, and assert its answer in any case."""

    def run(group, row, case):
        sized = case if benchmark.enabled else case.shrunk(UNTIMED_SIZE)
        workload: Workload = row(sized)
        benchmark.group = group
        benchmark.extra_info["fingerprint"] = machine
        # Where nothing is timed there is one call, and its answer is the one that is checked.
        workload.check(benchmark(workload.run))
        if benchmark.enabled:
            median = benchmark.stats.stats.median
            benchmark.extra_info["ns_per_element"] = 1e9 * median / workload.elements

    return run
