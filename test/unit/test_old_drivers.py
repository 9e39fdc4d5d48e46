"""What `tilec doctor` says of a driver that is older than what is printed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_driver import FakeDriver, install, uninstall

from tilec.cli import doctor


@pytest.fixture
def old_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """A Hopper and a Blackwell GPU under a driver of CUDA 12.4."""
    fake = install(monkeypatch, FakeDriver([(9, 0), (10, 0)]))
    fake.version = 12040
    yield fake
    uninstall()


def test_the_driver_is_compared_with_what_is_printed(old_driver: FakeDriver) -> None:
    found = {finding.subject: finding for finding in doctor.findings()}
    driver, hopper, blackwell = (found[name] for name in ("driver", "cuda:0", "cuda:1"))
    assert (driver.state, hopper.state, blackwell.state) == ("ok", "ok", "wrong")
    assert driver.text.startswith("CUDA 12.4, 2 devices, takes PTX ISA 8.4: enough for sm_80, ")
    assert "sm_90a" in driver.text
    assert "sm_100a" not in driver.text
    assert driver.remedy == "CUDA 13.0 drivers take all that LLVM prints (9.0)"
    assert blackwell.text.startswith("compute capability 10.0, ")
    assert blackwell.text.endswith(": the driver is older than sm_100a")
    assert blackwell.remedy == "update the driver to one of CUDA 12.7 or later"


def test_a_new_driver_needs_no_word(old_driver: FakeDriver) -> None:
    old_driver.version = 13000
    found = {finding.subject: finding for finding in doctor.findings()}
    assert (found["driver"].text, found["driver"].remedy) == (
        "CUDA 13.0, 2 devices, takes PTX ISA 9.0",
        "",
    )
    assert found["cuda:1"].state == "ok"
    assert found["cuda:0"].text == (
        "compute capability 9.0, 227 KiB of shared memory a CTA, runs sm_90a; 4 multiprocessors at "
        "1755 MHz, DRAM of 3352 GB/s, 50 MB of L2, as the device says"
    )
