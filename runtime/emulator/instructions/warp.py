"""shfl, vote, match, redux, activemask, elect: exchange between the lanes of a warp (9.7.13)."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Pair
from tilec.runtime.emulator.writing.writer import Writer

U32, PRED = TYPES["u32"], TYPES["pred"]
_LANE = np.arange(32, dtype=np.int64)
_BIT = np.uint32(1) << np.arange(32, dtype=np.uint32)


def emit_shfl(instruction: Instruction, writer: Writer) -> None:
    if len(instruction.modifiers) != 3 or instruction.modifiers[0::2] != ("sync", "b32"):
        raise writer.unsupported("modifiers")
    mode = instruction.modifiers[1]
    if mode not in ("up", "down", "bfly", "idx"):
        raise writer.unsupported(f"modifier .{mode}")
    destination, a, b, c, _ = instruction.operands
    writer.begin_warps()
    value, valid = writer.fresh(), writer.fresh()
    if isinstance(b, Immediate) and isinstance(c, Immediate):
        lanes, good = source_lanes(mode, np.array(b.value), np.array(c.value))
        table = writer.constant(lanes)
        writer.line(f"{value} = {writer.read_warps(a, U32)}[:, {table}]")
        writer.line(f"{valid} = np.broadcast_to({writer.constant(good)}, {value}.shape)")
    else:
        arguments = f"{writer.read_warps(b, U32)}, {writer.read_warps(c, U32)}"
        function = writer.function(shuffle)
        source = writer.read_warps(a, U32)
        writer.line(f"{value}, {valid} = {function}({source}, {mode!r}, {arguments})")
    if isinstance(destination, Pair):
        writer.assign_warps(destination.second, PRED, valid)
        destination = destination.first
    writer.assign_warps(destination, U32, value)


def source_lanes(mode: str, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every lane the lane it reads and whether that lies in its segment (PTX ISA shfl.sync)."""
    b, c = np.asarray(b).astype(np.int64) & 31, np.asarray(c).astype(np.int64)
    clamp, segment = c & 31, (c >> 8) & 31
    highest = (_LANE & segment) | (clamp & ~segment)
    lowest = _LANE & segment
    if mode == "up":
        lane = _LANE - b
        good = lane >= highest
    elif mode == "down":
        lane = _LANE + b
        good = lane <= highest
    elif mode == "bfly":
        lane = _LANE ^ b
        good = lane <= highest
    else:
        lane = lowest | (b & ~segment)
        good = lane <= highest
    return np.where(good, lane, _LANE), good


def shuffle(
    values: np.ndarray, mode: str, b: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    lanes, good = source_lanes(mode, b, c)
    return np.take_along_axis(values, np.broadcast_to(lanes, values.shape), 1), good


def emit_vote(instruction: Instruction, writer: Writer) -> None:
    modifiers = instruction.modifiers
    kind = modifiers[1] if len(modifiers) == 3 and modifiers[0] == "sync" else ""
    if modifiers[-1] != ("b32" if kind == "ballot" else "pred") or kind not in _VOTES:
        raise writer.unsupported("modifiers")
    destination, predicate, mask = instruction.operands
    writer.begin_warps()
    member = f"{writer.function(members)}({writer.active_lanes()}, {writer.read_warps(mask, U32)})"
    value = f"{writer.read_warps(predicate, PRED)}"
    result = f"{writer.function(_VOTES[kind])}({value}, {member})"
    writer.assign_warps(destination, U32 if kind == "ballot" else PRED, result)


def members(active: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(warps, 32): lanes that run and whose bit is set in the member mask."""
    return active & ((mask & _BIT) != 0)


def _spread(value: np.ndarray) -> np.ndarray:
    return np.repeat(value[:, None], 32, 1)


def ballot(value: np.ndarray, member: np.ndarray) -> np.ndarray:
    return _spread(((value & member) * _BIT).sum(1, dtype=np.uint32))


def vote_all(value: np.ndarray, member: np.ndarray) -> np.ndarray:
    return _spread(np.asarray((value | ~member).all(1)))


def vote_any(value: np.ndarray, member: np.ndarray) -> np.ndarray:
    return _spread(np.asarray((value & member).any(1)))


def vote_uniform(value: np.ndarray, member: np.ndarray) -> np.ndarray:
    return vote_all(value, member) | vote_all(~value, member)


_VOTES = {"ballot": ballot, "all": vote_all, "any": vote_any, "uni": vote_uniform}


def emit_match(instruction: Instruction, writer: Writer) -> None:
    kind, sync, name = (*instruction.modifiers, "", "", "")[:3]
    if sync != "sync" or kind not in ("any", "all") or name not in ("b32", "b64"):
        raise writer.unsupported("modifiers")
    destination, a, mask = instruction.operands
    writer.begin_warps()
    value, same = writer.read_warps(a, TYPES[name]), writer.fresh()
    member = f"{writer.function(members)}({writer.active_lanes()}, {writer.read_warps(mask, U32)})"
    if kind == "any":
        return writer.assign_warps(
            destination, U32, f"{writer.function(match_any)}({value}, {member})"
        )
    writer.line(f"{same}, {same}_p = {writer.function(match_all)}({value}, {member})")
    if isinstance(destination, Pair):
        writer.assign_warps(destination.second, PRED, f"{same}_p")
        destination = destination.first
    return writer.assign_warps(destination, U32, same)


def match_any(value: np.ndarray, member: np.ndarray) -> np.ndarray:
    equal = (value[:, :, None] == value[:, None, :]) & member[:, None, :]
    return (equal * _BIT).sum(2, dtype=np.uint32)


def match_all(value: np.ndarray, member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = np.take_along_axis(value, member.argmax(1)[:, None], 1)
    equal = ((value == first) | ~member).all(1)
    mask = np.where(equal, (member * _BIT).sum(1, dtype=np.uint32), np.uint32(0))
    return _spread(mask), _spread(equal)


def emit_redux(instruction: Instruction, writer: Writer) -> None:
    modifiers = instruction.modifiers
    operations = {"add", "min", "max", "and", "or", "xor"}
    if modifiers[0] != "sync" or modifiers[1] not in operations:
        raise writer.unsupported("modifiers")
    if len(modifiers) >= 3 and modifiers[-1] == "f32":
        return _emit_float_redux(instruction, writer)
    if len(modifiers) != 3 or modifiers[2] not in ("u32", "s32", "b32"):
        raise writer.unsupported("type")
    scalar = TYPES[modifiers[2]]
    destination, a, mask = instruction.operands
    writer.begin_warps()
    member = f"{writer.function(members)}({writer.active_lanes()}, {writer.read_warps(mask, U32)})"
    value = f"{writer.function(reduce_warp)}({writer.read_warps(a, scalar)}, {member}, "
    writer.assign_warps(destination, scalar, value + f"{modifiers[1]!r})")
    return None


def _emit_float_redux(instruction: Instruction, writer: Writer) -> None:
    """redux.sync.{min,max}{.abs}{.NaN}.f32 (sm_100a)."""
    _, operation, *flags = instruction.modifiers[:-1]
    if operation not in ("min", "max") or set(flags) - {"abs", "NaN"}:
        raise writer.unsupported("modifiers")
    destination, a, mask = instruction.operands
    writer.begin_warps()
    member = f"{writer.function(members)}({writer.active_lanes()}, {writer.read_warps(mask, U32)})"
    value = writer.read_warps(a, TYPES["f32"])
    if "abs" in flags:
        value = f"np.abs({value})"
    result = f"{writer.function(reduce_floats)}({value}, {member}, {operation!r}, {'NaN' in flags})"
    writer.assign_warps(destination, TYPES["f32"], result)


def reduce_floats(
    value: np.ndarray, member: np.ndarray, operation: str, propagate: bool
) -> np.ndarray:
    ufunc = {("min", False): np.fmin, ("max", False): np.fmax, ("min", True): np.minimum,
             ("max", True): np.maximum}[operation, propagate]  # fmt: skip
    neutral = np.float32(np.inf if operation == "min" else -np.inf)
    kept = np.where(member, value, neutral)
    if not propagate:
        none = (np.isnan(value) | ~member).all(1)
        reduced = ufunc.reduce(np.where(np.isnan(kept), neutral, kept), axis=1)
        return _spread(np.where(none, np.float32(np.nan), reduced))
    return _spread(ufunc.reduce(kept, axis=1))


def reduce_warp(value: np.ndarray, member: np.ndarray, operation: str) -> np.ndarray:
    limits = np.iinfo(value.dtype)
    neutral = {
        "add": 0, "or": 0, "xor": 0, "and": -1, "min": limits.max, "max": limits.min,
    }[operation]  # fmt: skip
    ufunc = {
        "add": np.add, "or": np.bitwise_or, "xor": np.bitwise_xor, "and": np.bitwise_and,
        "min": np.minimum, "max": np.maximum,
    }[operation]  # fmt: skip
    kept = np.where(member, value, np.array(neutral).astype(value.dtype))
    return _spread(ufunc.reduce(kept, axis=1, dtype=value.dtype))


def emit_activemask(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers != ("b32",):
        raise writer.unsupported("modifiers")
    writer.begin_warps()
    active = writer.active_lanes()
    writer.assign_warps(
        instruction.operands[0], U32, f"{writer.function(ballot)}({active}, {active})"
    )


def emit_elect(instruction: Instruction, writer: Writer) -> None:
    """elect.sync d|p, mask: the lowest member lane is the leader."""
    if instruction.modifiers != ("sync",):
        raise writer.unsupported("modifiers")
    destination, mask = instruction.operands
    if not isinstance(destination, Pair):
        raise writer.unsupported("destination")
    writer.begin_warps()
    member = f"{writer.function(members)}({writer.active_lanes()}, {writer.read_warps(mask, U32)})"
    name = writer.fresh()
    writer.line(f"{name}, {name}_p = {writer.function(elect_leader)}({member})")
    writer.assign_warps(destination.first, U32, name)
    writer.assign_warps(destination.second, PRED, f"{name}_p")


def elect_leader(member: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    leader = member.argmax(1)
    return _spread(leader.astype(np.uint32)), leader[:, None] == _LANE


RULES = {
    "shfl": emit_shfl,
    "vote": emit_vote,
    "match": emit_match,
    "redux": emit_redux,
    "activemask": emit_activemask,
    "elect": emit_elect,
}
