"""Handlers for XLA are machine code: called here as XLA calls them, on a driver that records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from xla_frames import INTERFACE, STREAM, Config, Driver, Xla

from tilec.jax.handler import ENTRY, Place, handler_code
from tilec.jax.launch_code import DeviceLaunch, MapCode
from tilec.jax.machine_code import function_address
from tilec.jax.xla_ffi import read_interface

GRID = (7, 5, 3)
BLOCK = b"\0" * 16 + (300).to_bytes(4, "little") + (-4 & 0xFFFFFFFF).to_bytes(4, "little")
MAP = MapCode(1, None, 9, (300, 20), (640,), (64, 16), (1, 1), (0, 3, 2, 0))
LAUNCH = DeviceLaunch(
    0,
    context=100,
    function=55,
    config=bytes(Config(GRID, (128, 1, 1), 4096)),
    block=BLOCK,
    addresses=(0, 8),
    places=(0, 16, 8, 20),
    maps=(MAP, replace(MAP, address=0xE0)),
)
WIDTHS = (8, 4, 8, 4, 128, 128)


def handler(
    driver: Driver,
    launches: Sequence[DeviceLaunch] = (LAUNCH,),
    offsets: Sequence[Sequence[int]] = ((0,), (0,)),
    ordinal: int = 0,
) -> Xla:
    places = (Place(True, 1), Place(False, 0))
    text = handler_code("scale", places, offsets, launches, driver.addresses, INTERFACE)
    return Xla(function_address(text, ENTRY), ordinal)


def test_launches_may_be_recorded_in_command_buffers():
    told = handler(Driver(WIDTHS)).metadata()
    assert (told.major, told.minor, told.traits) == (0, 7, 1)


def test_a_launch_has_the_addresses_and_the_stream_of_the_call():
    driver = Driver(WIDTHS)
    xla = handler(driver)
    assert xla.call((0x10, 0x7000), (0x8000,), stage=2) is None
    assert driver.launches == []
    assert xla.call((0x10, 0x7000), (0x8000,)) is None
    ((context, function, grid, block, stream, arguments),) = driver.launches
    assert (context, function, grid, block, stream) == (100, 55, GRID, (128, 1, 1), STREAM)
    numbers = [int.from_bytes(argument, "little", signed=True) for argument in arguments]
    assert numbers == [0x7000, 300, 0x8000, -4, 1, 2]
    lists = ([300, 20], [640], [64, 16], [1, 1], [0, 3, 2, 0], (), ())
    assert driver.maps == [(9, 0x8000, *lists), (9, 0xE0, *lists)]
    assert driver.contexts == []


def test_a_batch_is_a_launch_for_each_element():
    driver = Driver(WIDTHS)
    xla = handler(driver, offsets=((0, 0, 0), (0, 48, 96)))
    assert xla.call((0x10, 0x7000), (0x8000,)) is None
    seen = [[int.from_bytes(a, "little") for a in launch[-1][:3:2]] for launch in driver.launches]
    assert seen == [[0x7000, 0x8000], [0x7000, 0x8030], [0x7000, 0x8060]]


def test_each_gpu_has_its_own_function():
    driver = Driver(WIDTHS)
    launches = (LAUNCH, replace(LAUNCH, ordinal=3, context=103, function=66))
    handler(driver, launches, ordinal=3).call((0x10, 0x7000), (0x8000,))
    assert [launch[:2] for launch in driver.launches] == [(103, 66)]
    elsewhere = handler(driver, launches, ordinal=1)
    assert elsewhere.call((0x10, 0x7000), (0x8000,)) == 0xE0
    assert elsewhere.messages[0][1].startswith("tilec: scale was compiled for the GPUs of")
    assert len(driver.launches) == 1


@pytest.mark.parametrize(
    ("name", "launched", "maps"),
    [("cuCtxPushCurrent_v2", 0, 0), ("cuTensorMapEncodeTiled", 0, 1), ("cuLaunchKernelEx", 1, 2)],
)
def test_what_the_driver_refuses_is_an_error(name: str, launched: int, maps: int):
    driver = Driver(WIDTHS)
    xla = handler(driver, offsets=((0, 0), (0, 16)))
    driver.fail[name] = 700
    assert xla.call((0x10, 0x7000), (0x8000,)) == 0xE0
    message = "tilec: launching scale on cuda:0: CUresult 700 CUDA_ERROR_OF_A_TEST"
    assert xla.messages == [(13, message)]
    assert (len(driver.launches), len(driver.maps), driver.contexts) == (launched, maps, [])
    driver.fail[name] = 999
    xla.call((0x10, 0x7000), (0x8000,))
    assert xla.messages[1][1] == "tilec: launching scale on cuda:0: CUresult 999 "


def test_arrays_begin_at_whole_vectors():
    driver = Driver(WIDTHS)
    xla = handler(driver)
    assert xla.call((0x10, 0x7008), (0x8000,)) == 0xE0
    assert xla.messages == [(3, "tilec: scale: an array does not begin at a multiple of 16 bytes")]
    assert driver.launches == []


HEADER = """
#define XLA_FFI_API_MAJOR {}
#define XLA_FFI_API_MINOR 3
#define _XLA_FFI_API_STRUCT_FIELD(fn_type) fn_type* fn_type
struct XLA_FFI_Api {{
  size_t struct_size;
  _XLA_FFI_API_STRUCT_FIELD(XLA_FFI_Error_Create);
  _XLA_FFI_API_STRUCT_FIELD(XLA_FFI_Stream_Get);
}};
"""


def test_the_table_of_functions_is_that_of_the_header():
    found = read_interface(HEADER.format(0))
    assert found.minor == 3
    assert found.places == {"XLA_FFI_Error_Create": 48, "XLA_FFI_Stream_Get": 56}
    with pytest.raises(RuntimeError, match=r"version 1\.3 of XLA's foreign function interface"):
        read_interface(HEADER.format(1))
