"""Which PTX ISA version brought which instruction, and which form of it; what takes which hardware.

Source: PTX ISA 9.0, "PTX ISA Notes" of each instruction; ptxas 11.8 to 13.5 agree where they take
one. Versions are times ten (75: PTX ISA 7.5). What is not said to be later is older than sm_80,
which began with 7.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilec.hardware.target import Feature

FIRST = 70
"""The PTX version, times ten, that sm_80 began with (PTX ISA 9.0, "Release notes")."""

_BF16 = {"bf16": 78, "bf16x2": 78}
_MIXED = {"f32.f16": 86, "f32.bf16": 86, "f32x2": 86}
_CACHE = {"L2::cache_hint": 74, "L2::64B": 74, "L2::128B": 74, "L2::256B": 74}
_EVICTION = _CACHE | {
    f"{level}::{what}": 74
    for level in ("L1", "L2")
    for what in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
}
_WIDE = {"b128": 83, "v8": 88, "v4.b64": 88, "v4.f64": 88, "v4.u64": 88, "v4.s64": 88}
_ATOMIC = _CACHE | _BF16 | {"b128": 83, "v2": 81, "v4": 81, "v8": 81}
_ORDERED = {"acquire": 80, "release": 80, "cta": 80, "cluster": 80, "relaxed": 86}
"""The order and the scope of what is done to an mbarrier."""
_COPY = {"": 80, "cp_mask": 86, "shared::cta.global": 86}
_TENSOR_COPY = _COPY | dict.fromkeys(
    ("cta_group::1", "cta_group::2", "tile::gather4", "tile::scatter4", "im2col::w"), 86
)
_EXTREME = {"xorsign.abs": 72, "u16x2": 80, "s16x2": 80, "relu": 80, "three inputs": 88}
_ARRIVAL = {"sink": 71, "expect_tx": 80, "shared::cluster": 80, **_ORDERED}
_MATRIX_OF_BYTES: Mapping[str, int] = dict.fromkeys(("m16n8", "m16n16", "m8n16", "b8"), 86)


def _each(opcodes: str, forms: Mapping[str, int]) -> Mapping[str, Mapping[str, int]]:
    return {opcode: forms for opcode in opcodes.split()}


FORMS: Mapping[str, Mapping[str, int]] = {
    # Arithmetic.
    **_each("add sub", _BF16 | _MIXED | {"u16x2": 80, "s16x2": 80}),
    "mul": _BF16 | {"f32x2": 86},
    "fma": _MIXED | {"oob": 81},
    **_each("min max", _EXTREME),
    **_each("ex2 tanh set setp", _BF16),
    "mov": {"b128": 83},
    **_each("szext bmsk", {"": 76}),
    "cvt": {
        "f32.bf16": 71,
        **dict.fromkeys(("rn.tf32", "rz.tf32", "rn.relu.tf32", "rz.relu.tf32"), 78),
        **{f"bf16.{kind}{bits}": 78 for kind in "us" for bits in (8, 16, 32, 64)},
        **{f"{kind}{bits}.bf16": 78 for kind in "us" for bits in (8, 16, 32, 64)},
        **dict.fromkeys(("bf16.f16", "bf16.f64", "bf16.bf16", "f16.bf16", "f64.bf16"), 78),
        **dict.fromkeys(("e4m3x2", "e5m2x2"), 78),
        **{f"satfinite.{kind}": 81 for kind in ("tf32", "f16", "f16x2", "bf16", "bf16x2")},
        **dict.fromkeys(("rn.satfinite.tf32", "rz.satfinite.tf32"), 86),
        **dict.fromkeys(("e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2"), 86),
        **dict.fromkeys(("rs", "e2m1x4", "e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4"), 87),
    },
    # Between threads.
    "redux": {"f32": 86, "abs": 86, "NaN": 86},
    "elect": {"": 80},
    "setmaxnreg": {"": 80},
    "griddepcontrol": {"": 78},
    "barrier.cluster": {"": 78, "acquire": 80, "release": 80, "relaxed": 80},
    **_each("mapa getctarank", {"": 78}),
    "clusterlaunchcontrol": {"": 86},
    # Memory.
    "ld": _EVICTION | _WIDE | {"unified": 80, "mmio": 82, "param::entry": 83, "param::func": 83},
    "st": _EVICTION | _WIDE | {"mmio": 82, "param::func": 83},
    **_each("st.async red.async", {"": 81}),
    "st.bulk": {"": 86},
    **_each("atom red", _ATOMIC),
    "prefetch": {"tensormap": 80, "L2::evict_last": 74, "L2::evict_normal": 74},
    **_each("applypriority discard createpolicy", {"": 74}),
    "cvta": {"param": 77},
    "fence": {"acquire": 86, "release": 86},
    "fence.proxy": {"": 75, "async": 80, "tensormap::generic": 83, "async::generic": 86},
    "fence.mbarrier_init": {"": 80},
    "multimem": _BF16 | {"": 81, "acc::f16": 86, "e4m3x4": 86, "e5m2x4": 86},
    # Asynchronous copies.
    "cp.async": _CACHE | {"ignore-src": 75},
    **_each("cp.async.bulk cp.reduce.async.bulk", _COPY),
    **_each("cp.async.bulk.tensor cp.reduce.async.bulk.tensor", _TENSOR_COPY),
    **_each("cp.async.bulk.prefetch.tensor", _TENSOR_COPY),
    "tensormap": {"": 83},
    # mbarriers.
    **_each("mbarrier.expect_tx mbarrier.complete_tx", {"": 80}),
    **_each("mbarrier.arrive mbarrier.arrive_drop", _ARRIVAL),
    "mbarrier.test_wait": {"parity": 71, **_ORDERED},
    "mbarrier.try_wait": {"": 78, **_ORDERED},
    # Matrices.
    "ldmatrix": _MATRIX_OF_BYTES,
    "stmatrix": {"": 78, **_MATRIX_OF_BYTES},
    "movmatrix": {"": 78},
    "mma": {
        **{f"m16n8k{k}.row.col.f64": 78 for k in (4, 8, 16)},
        **dict.fromkeys(("e4m3", "e5m2"), 84),
        **dict.fromkeys(("f16.e4m3", "f16.e5m2", "m16n8k16.row.col.f32.e4m3"), 87),
        "m16n8k16.row.col.f32.e5m2": 87,
        **dict.fromkeys(("kind::f8f6f4", "block_scale"), 87),
        **dict.fromkeys(("e2m1", "e2m3", "e3m2", "ue8m0", "ue4m3"), 87),
    },
    "mma.sp": {"": 71, "e4m3": 84, "e5m2": 84},
    "mma.sp::ordered_metadata": {"": 85, "kind::f8f6f4": 87, "block_scale": 87},
    "wgmma": {"": 80, "sp": 82},
    "tcgen05": {
        "": 86,
        **dict.fromkeys(("kind::mxf4nvf4", "scale_vec::4X"), 87),
        **dict.fromkeys(("block16", "block32", "red"), 88),
    },
}
"""Opcode, by as many of its words as tell it from others, to its forms: words that stand together
in an instruction's name, or what it is given. "" is the instruction itself."""

ANYWHERE: Mapping[str, int] = {"shared::cta": 78, "shared::cluster": 78, "cluster": 78}
"""Forms of any instruction for which its own row says nothing."""

LATER: Mapping[tuple[str, str, str], int] = {
    ("sm_89", "cvt", "e4m3x2"): 81,
    ("sm_89", "cvt", "e5m2x2"): 81,
}
"""Where one target got a form later: (target, opcode, form)."""

_OPCODES = """
    abs activemask add addc and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx
    call clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a
    elect ex2 exit fence fma fns getctarank griddepcontrol isspacep ld ldmatrix ldu lg2 lop3 mad
    mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg
    not or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg
    setp shf shfl shl shr sin slct sqrt st stmatrix sub subc szext tanh tcgen05 tensormap testp trap
    vote wgmma xor"""
_WORDS = """
    acq_rel add alias aligned all alloc and any approx arrive arrive_drop async b4e ballot bf16
    bf16x2 bfly bulk bulk_group ca cas cc cg clamp col commit commit_group cp cs cta cta_group::1
    cta_group::2 cv dealloc dec down ecl ecr eq equ exch expect_tx f16 f16x2 f32 f4e f64 fence
    fence::after_thread_sync fence::before_thread_sync finite from ftz full ge generic geu global
    gpu gt gtu hi hs idx im2col inc infinite init inval kind::f16 kind::i8 kind::tf32 kind::f8f6f4
    kind::mxf8f6f4 kind::mxf4 launch_dependents ld le leu lo local ls lt ltu lu match
    mbarrier::arrive::one mbarrier::complete_tx::bytes max min mma mma_async multicast::cluster
    mxf4 nan NaN nc ne neu noComplete noftz noinc normal not notanumber num number or param
    pending_count popc pred rc16 rc8 read reduce relaxed relinquish_alloc_permit relu rm rmi
    rn rna rni row rp rpi rz rzi sat satfinite sc scale_vec::1X scale_vec::2X shared shiftamt
    sreg st subnormal sync sys
    tensor test_wait tf32 tile to trans try_cancel query_cancel is_canceled try_wait uni up volatile
    wait wait::ld wait::st wait_all wait_group warp warpx4 warpx2::02_13 warpx2::01_23 wb weak wide
    wrap wt xor L1 L2"""
KNOWN = frozenset((_OPCODES + _WORDS).split())
"""Words of the instructions that sm_80 began with, and of those that FORMS has as a whole."""

SHAPES = r"[busf](4|8|16|32|64)|x\d+|v[24]|m\d+n\d+(k\d+)?|m8n8|\d+x\d+b|16x32bx2|[1-5]d|a|\d+"
"""Words that are types, vectors and the sizes of matrices."""

FEATURES: Mapping[str, Feature] = {
    **dict.fromkeys(("cp.async.ca", "cp.async.cg"), Feature.CP_ASYNC),
    **dict.fromkeys(("mbarrier", "elect"), Feature.MBARRIER),
    "ldmatrix": Feature.LDMATRIX,
    "stmatrix": Feature.STMATRIX,
    "mma.block.scale": Feature.MMA_SYNC_BLOCK_SCALE,
    **dict.fromkeys(("cp.async.bulk", "cp.reduce.async.bulk", "tensormap"), Feature.TMA),
    **dict.fromkeys(("prefetch.tensormap", "fence.proxy.async"), Feature.TMA),
    **dict.fromkeys(("mapa", "getctarank", "barrier.cluster", "cluster"), Feature.CLUSTERS),
    **dict.fromkeys(("clusterid", "nclusterid", "fence.mbarrier_init"), Feature.CLUSTERS),
    "setmaxnreg": Feature.SETMAXNREG,
    "griddepcontrol": Feature.GRIDDEPCONTROL,
    "wgmma": Feature.WGMMA,
    "tcgen05": Feature.TCGEN05,
    "clusterlaunchcontrol": Feature.CLUSTER_LAUNCH_CONTROL,
}
"""What an instruction, or a register of that name, takes of the hardware ("Target ISA Notes"), by
PTX's name or LLVM's. What mma.sync takes its types say."""

FEATURES_OF_WORDS: Mapping[str, Feature] = {
    **dict.fromkeys(("shared::cluster", "multicast::cluster"), Feature.CLUSTERS),
    **dict.fromkeys(("e4m3x2", "e5m2x2"), Feature.FP8_CONVERT),
    **dict.fromkeys(("e4m3", "e5m2"), Feature.MMA_SYNC_FP8),
    "block_scale": Feature.MMA_SYNC_BLOCK_SCALE,
}
"""The same of the first such word in an instruction's name, where the whole is in no row of
FEATURES."""
