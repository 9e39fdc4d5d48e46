"""What XLA calls for a launch, as LLVM IR: a handler of its foreign function interface.

It is machine code, so that XLA's threads launch without Python, whose lock they would wait for. In
C it would be:

    XLA_FFI_Error *handler(XLA_FFI_CallFrame *frame) {
      if (frame asks what the handler can do)
        answer with the version, and that launches may be recorded in command buffers;
      if (frame->stage != EXECUTE) return NULL;
      stream = XLA's stream; ordinal = XLA's GPU;
      addresses = those of frame->args and frame->rets;
      if (any is no multiple of 16) return an error;
      for (each element of the batch)
        if (result = launch_<ordinal>(stream, addresses + offsets of the element)) return an error;
      return NULL;
    }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.hardware.sizes import VECTOR_BYTES
from tilec.jax import xla_ffi as ffi
from tilec.jax.launch_code import (
    DeviceLaunch,
    constant_array,
    constant_bytes,
    launch_code,
    pointer,
)
from tilec.records import dataclass

ENTRY = "handler"
_ERROR_BYTES = 512
"""Of a message: the kernel's name and the driver's of the error."""


@dataclass(frozen=True)
class Place:
    """Where the call frame has an array: among its operands or its results, and at which number."""

    is_given: bool
    number: int


def handler_code(
    name: str,
    places: Sequence[Place],
    offsets: Sequence[Sequence[int]],
    launches: Sequence[DeviceLaunch],
    driver: Mapping[str, int],
    interface: ffi.Interface,
) -> str:
    """The LLVM IR of `@handler`.

    `name`: the kernel's. `places`: of each array. `offsets`: of each array, the bytes from its
    beginning to what each launch of the batch takes. `launches`: one a GPU.
    """
    parts = [
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare i32 @snprintf(ptr, i64, ptr, ...)",
        *(launch_code(number, launch, driver) for number, launch in enumerate(launches)),
        _driver_error(driver, interface),
        _error(interface),
        *(constant_array(f"offsets{n}", "i64", found) for n, found in enumerate(offsets)),
        _texts(name),
        f"define ptr @{ENTRY}(ptr %frame) {{",
        _answer(interface),
        _question("stream", "XLA_FFI_Stream_Get", interface),
        _question("ordinal", "XLA_FFI_DeviceOrdinal_Get", interface),
        "  %gpu = load i32, ptr %ordinal_answer",
        "  %stream = load ptr, ptr %stream_answer",
        _addresses(places),
        _loop(offsets, launches),
        "}",
    ]
    return "\n".join(parts)


def _answer(interface: ffi.Interface) -> str:
    """Tells XLA what the handler can do, if that is the question; then goes on where there is
    something to execute."""
    return f"""\
  %extension_at = getelementptr i8, ptr %frame, i64 {ffi.FRAME_EXTENSION}
  %extension = load ptr, ptr %extension_at
  %api_at = getelementptr i8, ptr %frame, i64 {ffi.FRAME_API}
  %api = load ptr, ptr %api_at
  %context_at = getelementptr i8, ptr %frame, i64 {ffi.FRAME_CONTEXT}
  %context = load ptr, ptr %context_at
  %is_plain = icmp eq ptr %extension, null
  br i1 %is_plain, label %stages, label %metadata
metadata:
  %told_at = getelementptr i8, ptr %extension, i64 {ffi.EXTENSION_METADATA}
  %told = load ptr, ptr %told_at
  %major = getelementptr i8, ptr %told, i64 {ffi.METADATA_MAJOR}
  store i32 {ffi.MAJOR}, ptr %major
  %minor = getelementptr i8, ptr %told, i64 {ffi.METADATA_MINOR}
  store i32 {interface.minor}, ptr %minor
  %traits = getelementptr i8, ptr %told, i64 {ffi.METADATA_TRAITS}
  store i32 {ffi.COMMAND_BUFFER_COMPATIBLE}, ptr %traits
  ret ptr null
stages:
  %stage_at = getelementptr i8, ptr %frame, i64 {ffi.FRAME_STAGE}
  %stage = load i32, ptr %stage_at
  %executes = icmp eq i32 %stage, {ffi.STAGE_EXECUTE}
  br i1 %executes, label %execute, label %done
done:
  ret ptr null
execute:"""


def _question(name: str, function: str, interface: ffi.Interface) -> str:
    """Asks XLA something about the execution; its answer is at `%<name>_answer`."""
    return f"""\
  %{name}_question = alloca [{ffi.QUESTION_BYTES} x i8], align 8
  {_question_into(f"%{name}_question")}
  %{name}_context = getelementptr i8, ptr %{name}_question, i64 {ffi.QUESTION_CONTEXT}
  store ptr %context, ptr %{name}_context
  %{name}_answer = getelementptr i8, ptr %{name}_question, i64 {ffi.QUESTION_ANSWER}
  %{name}_at = getelementptr i8, ptr %api, i64 {interface.places[function]}
  %{name}_function = load ptr, ptr %{name}_at
  %{name}_error = call ptr %{name}_function(ptr %{name}_question)
  %{name}_works = icmp eq ptr %{name}_error, null
  br i1 %{name}_works, label %after_{name}, label %refused_{name}
refused_{name}:
  ret ptr %{name}_error
after_{name}:"""


def _question_into(memory: str) -> str:
    """Writes a question without its context."""
    copied = f"ptr {memory}, ptr @question, i64 {ffi.QUESTION_BYTES}, i1 false"
    return f"call void @llvm.memcpy.p0.p0.i64({copied})"


def _addresses(places: Sequence[Place]) -> str:
    """Reads where the arrays begin; all must be multiples of the widest access."""
    lines = []
    for side, place in (("given", ffi.FRAME_ARGUMENTS), ("made", ffi.FRAME_RESULTS)):
        lines += [f"  %{side}_at = getelementptr i8, ptr %frame, i64 {place}"]
        lines += [f"  %{side} = load ptr, ptr %{side}_at"]
    any_bit = "0"
    for n, place in enumerate(places):
        side = "given" if place.is_given else "made"
        lines += [
            f"  %buffer{n}_at = getelementptr ptr, ptr %{side}, i64 {place.number}",
            f"  %buffer{n} = load ptr, ptr %buffer{n}_at",
            f"  %start{n}_at = getelementptr i8, ptr %buffer{n}, i64 {ffi.BUFFER_ADDRESS}",
            f"  %start{n} = load i64, ptr %start{n}_at",
            f"  %bits{n} = or i64 {any_bit}, %start{n}",
        ]
        any_bit = f"%bits{n}"
    return "\n".join(
        [
            *lines,
            f"  %odd = and i64 {any_bit}, {VECTOR_BYTES - 1}",
            "  %is_aligned = icmp eq i64 %odd, 0",
            "  br i1 %is_aligned, label %batch, label %misaligned",
            "misaligned:",
            "  %misaligned_error = call ptr @error("
            f"ptr %api, i32 {ffi.ERROR_INVALID_ARGUMENT}, ptr @misaligned_text)",
            "  ret ptr %misaligned_error",
        ]
    )


def _loop(offsets: Sequence[Sequence[int]], launches: Sequence[DeviceLaunch]) -> str:
    """Launches once for each element of the batch, on XLA's GPU."""
    lines = ["batch:", "  br label %element", "element:"]
    lines += ["  %n = phi i64 [ 0, %batch ], [ %next, %launched ]"]
    for n in range(len(offsets)):
        lines += [
            f"  %offset{n}_at = getelementptr i64, ptr @offsets{n}, i64 %n",
            f"  %offset{n} = load i64, ptr %offset{n}_at",
            f"  %address{n} = add i64 %start{n}, %offset{n}",
        ]
    cases = " ".join(f"i32 {found.ordinal}, label %on{n}" for n, found in enumerate(launches))
    lines += [f"  switch i32 %gpu, label %elsewhere [ {cases} ]"]
    addresses = "".join(f", i64 %address{n}" for n in range(len(offsets)))
    for n in range(len(launches)):
        lines += [f"on{n}:", f"  %code{n} = call i32 @launch_{n}(ptr %stream{addresses})"]
        lines += ["  br label %launched"]
    codes = ", ".join(f"[ %code{n}, %on{n} ]" for n in range(len(launches)))
    count = len(offsets[0])
    return "\n".join(
        [
            *lines,
            "launched:",
            f"  %code = phi i32 {codes}",
            "  %next = add i64 %n, 1",
            f"  %has_more = icmp ult i64 %next, {count}",
            "  %works = icmp eq i32 %code, 0",
            "  %goes_on = and i1 %works, %has_more",
            "  br i1 %goes_on, label %element, label %end",
            "end:",
            "  br i1 %works, label %done, label %failed",
            "failed:",
            "  %error = call ptr @driver_error(ptr %api, i32 %code, i32 %gpu)",
            "  ret ptr %error",
            "elsewhere:",
            f"  %elsewhere_error = call ptr @error(ptr %api, i32 {ffi.ERROR_INVALID_ARGUMENT}, "
            "ptr @elsewhere_text)",
            "  ret ptr %elsewhere_error",
        ]
    )


def _error(interface: ffi.Interface) -> str:
    """`@error(api, code, text)`: an error of XLA's."""
    return f"""\
define internal ptr @error(ptr %api, i32 %code, ptr %text) {{
  %question = alloca [{ffi.QUESTION_BYTES} x i8], align 8
  {_question_into("%question")}
  %message = getelementptr i8, ptr %question, i64 {ffi.ERROR_MESSAGE}
  store ptr %text, ptr %message
  %code_at = getelementptr i8, ptr %question, i64 {ffi.ERROR_CODE}
  store i32 %code, ptr %code_at
  %create_at = getelementptr i8, ptr %api, i64 {interface.places["XLA_FFI_Error_Create"]}
  %create = load ptr, ptr %create_at
  %error = call ptr %create(ptr %question)
  ret ptr %error
}}"""


def _driver_error(driver: Mapping[str, int], interface: ffi.Interface) -> str:
    """`@driver_error(api, code, gpu)`: the driver's error as one of XLA's."""
    printed = f"ptr %text, i64 {_ERROR_BYTES}, ptr @failed_text, i32 %gpu, i32 %code, ptr %known"
    return f"""\
define internal ptr @driver_error(ptr %api, i32 %code, i32 %gpu) {{
  %text = alloca [{_ERROR_BYTES} x i8]
  %name = alloca ptr
  store ptr @no_name, ptr %name
  %asked = call i32 {pointer(driver["cuGetErrorName"])}(i32 %code, ptr %name)
  %known = load ptr, ptr %name
  %length = call i32 (ptr, i64, ptr, ...) @snprintf({printed})
  %error = call ptr @error(ptr %api, i32 {ffi.ERROR_INTERNAL}, ptr %text)
  ret ptr %error
}}"""


def _texts(name: str) -> str:
    """The constants that all of it uses: a question without its context, and messages."""
    question = ffi.QUESTION_BYTES.to_bytes(8, "little").ljust(ffi.QUESTION_BYTES, b"\0")
    texts = {
        "failed_text": f"tilec: launching {name} on cuda:%d: CUresult %d %s",
        "misaligned_text": f"tilec: {name}: an array does not begin at a multiple of "
        f"{VECTOR_BYTES} bytes",
        "elsewhere_text": f"tilec: {name} was compiled for the GPUs of jax.local_devices(), and is "
        "called on another one",
        "no_name": "",
    }
    return "\n".join(
        [
            constant_bytes("question", question),
            *(constant_bytes(key, text.encode() + b"\0") for key, text in texts.items()),
        ]
    )
