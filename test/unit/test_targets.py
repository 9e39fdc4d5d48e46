"""Targets: which one a device gets, and which words go with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fake_driver import FakeDriver, install, uninstall

import tilec
import tilec.language as tl
from tilec.call.device_target import target_of
from tilec.cli import doctor
from tilec.hardware.target import find_target, target_for_device
from tilec.runtime.device import device
from tilec.runtime.errors import DeviceError

KIB = 1024


@pytest.mark.parametrize(
    ("capability", "shared_kib", "name"),
    [
        ((8, 0), 163, "sm_80"),
        ((8, 6), 99, "sm_86"),
        ((8, 7), 163, "sm_87"),
        ((8, 8), 99, "sm_86"),  # newer ones there are ask for more than it has
        ((8, 9), 99, "sm_89"),
        ((9, 0), 227, "sm_90a"),
        ((9, 0), 99, "sm_89"),  # less than its own target may use
        ((10, 1), 227, "sm_89"),
        ((10, 3), 227, "sm_103a"),
        ((12, 0), 99, "sm_120a"),
        ((12, 7), 99, "sm_89"),
        ((9, 0), 48, None),
        ((7, 5), 64, None),
    ],
)
def test_a_device_gets_the_nearest_target_that_fits(
    capability: tuple[int, int], shared_kib: int, name: str | None
) -> None:
    found = target_for_device(capability, shared_kib * KIB)
    assert (found and found.name) == name


@pytest.mark.parametrize("name", ["sm_75", "compute_75", "sm_70", "sm_61"])
def test_before_ampere_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} is not supported: tilec needs Ampere or later"):
        find_target(name)
    with pytest.raises(ValueError, match="unknown target 'sm_85'; known: sm_80"):
        find_target("sm_85")


CALLED = {
    "sm_80": ("Ampere", "A100", "8.0", "80", "sm80"),
    "sm_86": ("RTX 3090", "GeForce RTX 3060 Ti", "A40"),
    "sm_89": ("L40S", "rtx4090", "ada"),
    "sm_90a": ("hopper", "NVIDIA H200", "sm_90", "compute_90a", "9.0", "GH200"),
    "sm_100a": ("B200", "sm_100f", "Blackwell"),
    "sm_103a": ("gb300", "sm_103"),
    "sm_121a": ("DGX Spark", "GB10"),
}


@pytest.mark.parametrize(("name", "called"), [(n, c) for n, all_ in CALLED.items() for c in all_])
def test_what_people_call_a_device_says_its_target(name: str, called: str) -> None:
    with pytest.raises(ValueError, match=rf"unknown target .*\nhelp: write {name}$"):
        find_target(called)


def test_other_words_are_guessed_or_not() -> None:
    with pytest.raises(ValueError, match=r"\nhelp: did you mean 'sm_90a'\?$"):
        find_target("sm_90b")
    with pytest.raises(ValueError, match=r"sm_121a$"):
        find_target("gpu")


InstallDevice = Callable[[tuple[int, int], int], None]


@pytest.fixture
def install_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallDevice]:
    """Makes the only GPU one of a compute capability and so many KiB of shared memory."""

    def made(capability: tuple[int, int], shared_kib: int) -> None:
        fake = FakeDriver([capability])
        fake.shared_bytes = shared_kib * KIB
        install(monkeypatch, fake)

    yield made
    uninstall()


def test_a_device_without_a_target_of_its_own_says_which_it_runs(
    install_device: InstallDevice,
) -> None:
    install_device((99, 0), 227)
    (found,) = (f for f in doctor.findings() if f.subject == "cuda:0")
    assert found.state == "ok"
    expected = "compute capability 99.0, 227 KiB of shared memory a CTA, runs sm_89 (there is no"
    assert found.text.startswith(expected)

    @tilec.kernel(grid=1, device="cuda:0")
    def show(n: tl.i32):
        tl.print("n", n)

    text = show.report(3)
    assert text.startswith("cuda:0: target: sm_89 (there is no target for 99.0: the nearest")


def test_turing_is_refused_by_doctor_and_at_run_time(install_device: InstallDevice) -> None:
    install_device((7, 5), 64)
    (found,) = (f for f in doctor.findings() if f.subject == "cuda:0")
    assert found.state == "wrong"
    assert "compute capability 7.5, 64 KiB" in found.text
    assert found.text.endswith(
        "tilec needs Ampere or later (compute capability 8.0), for cp.async and bf16"
    )
    with pytest.raises(DeviceError, match=r"cuda:0 has compute capability 7.5: tilec needs Ampere"):
        target_of(device("cuda:0"))
    install_device((9, 0), 48)
    with pytest.raises(DeviceError, match="no target's code runs there and fits its memory"):
        target_of(device("cuda:0"))
