# ruff: noqa: E501  (lines of PTX)
"""Kernels around asynchronous copies: cp.async, bulk copies and tensor maps."""

from __future__ import annotations

import itertools

import numpy as np
from conformance_case import DTYPES, Case, Launch, Rule, draw, raw, seeded
from conformance_text import INIT, empty, fill, listed, names, program, store_words, text, wait

from tilec.runtime.emulator import Im2col, TensorMap


def copy_async_cases() -> list[Case]:
    cases = []
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        body = (
            fill(8192, 128)
            + f"bar.sync 0; mad.lo.u32 %r4, %r1, {size}, %r2; mad.wide.u32 %rd5, %r1, {size}, %rd1; rem.u32 %r5, %r1, {size + 1}; cp.async.{cache}.shared.global [%r4], [%rd5], {size}, %r5; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"
        )
        cases.append(
            program("cp.async", f"zfill.{cache}.{size}", body + empty(8192, 128), "u8", 8192, 8192)
        )
        body = f"mad.lo.u32 %r4, %r1, {size}, %r2; mad.wide.u32 %rd5, %r1, {size}, %rd1; setp.lt.u32 %p2, %r1, 100; @%p2 cp.async.{cache}.shared.global [%r4], [%rd5], {size}; cp.async.commit_group; cp.async.{cache}.shared.global [%r4+2048], [%rd5+2048], {size}; cp.async.commit_group; cp.async.wait_group 1; @!%p2 st.shared.u32 [%r4], %r1; bar.sync 0; mad.lo.u32 %r5, %r1, {size}, %r2; ld.shared.u32 %r10, [%r5]; cp.async.wait_all; bar.sync 0; ld.shared.u32 %r11, [%r5+2048];"
        cases.append(
            program(
                "cp.async",
                f"groups.{cache}.{size}",
                body + store_words(["%r10", "%r11"]),
                "u8",
                8192,
                1024,
            )
        )
        body = f"@%p1 mbarrier.init.shared.b64 [%r3], 128; bar.sync 0; mad.lo.u32 %r4, %r1, {size}, %r2; mad.wide.u32 %rd5, %r1, {size}, %rd1; cp.async.{cache}.shared.global [%r4], [%rd5], {size}; cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];\nW: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra W; xor.b32 %r5, %r1, 1; mad.lo.u32 %r5, %r5, {size}, %r2; ld.shared.u32 %r10, [%r5];"
        cases.append(
            program(
                "cp.async",
                f"mbarrier.{cache}.{size}",
                body + store_words(["%r10"]),
                "u8",
                8192,
                512,
                target="sm_90a",
            )
        )
    return cases


def bulk_cases() -> list[Case]:
    ring = "@%p1 mbarrier.init.shared::cta.b64 [%r3], 32; @%p1 mbarrier.init.shared::cta.b64 [%r3+8], 32; bar.sync 0; and.b32 %r10, %r1, 31; shl.b32 %r11, %r10, 2; add.u32 %r12, %r2, %r11; setp.lt.u32 %p2, %r1, 32; mov.u32 %r20, 0; mov.u32 %r30, 0; @%p2 bra PRODUCE;\nCONSUME: and.b32 %r21, %r20, 1; { .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3], %r21; @!done bra W; } ld.shared.u32 %r22, [%r12]; mad.lo.u32 %r30, %r30, 3, %r22; mbarrier.arrive.shared::cta.b64 _, [%r3+8]; add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 6; @%p3 bra CONSUME; bra END;\nPRODUCE: and.b32 %r21, %r20, 1; xor.b32 %r21, %r21, 1; { .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3+8], %r21; @!done bra W; } mad.lo.u32 %r22, %r20, 100, %r10; st.shared.u32 [%r12], %r22; mbarrier.arrive.shared::cta.b64 _, [%r3]; add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 6; @%p3 bra PRODUCE;\nEND:"
    states = "@%p1 mbarrier.init.shared::cta.b64 [%r3], 3; bar.sync 0; mov.u32 %r10, 9; mov.u32 %r11, 9; mov.u32 %r12, 9; mov.u32 %r13, 9; @!%p1 bra OUT; mbarrier.arrive.shared::cta.b64 %rd10, [%r3]; mbarrier.test_wait.shared::cta.b64 %p2, [%r3], %rd10; selp.u32 %r10, 1, 0, %p2; mbarrier.arrive.shared::cta.b64 %rd11, [%r3], 2; mbarrier.test_wait.shared::cta.b64 %p2, [%r3], %rd10; selp.u32 %r11, 1, 0, %p2; mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3], 1; selp.u32 %r12, 1, 0, %p2; mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r3], 0; selp.u32 %r13, 1, 0, %p2;\nOUT:"
    linear = (
        INIT
        + "@!%p1 bra DONE; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 2048; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [%r3];"
        + wait()
        + "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 2048; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nDONE:"
    )
    sync = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    cluster = f"mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %ctaid.x; mad.lo.u32 %r5, %r1, 4, %r2; mad.lo.u32 %r14, %r11, 1000, %r1; st.shared.u32 [%r5], %r14; {sync} xor.b32 %r15, %r10, 1; mapa.shared::cluster.u32 %r16, %r5, %r15; ld.shared::cluster.u32 %r17, [%r16]; {sync} mad.lo.u32 %r19, %r11, 64, %r1; mad.wide.u32 %rd6, %r19, 8, %rd2; st.global.v2.u32 [%rd6], {{%r17, %r10}};"
    cases = [
        program(
            "mbarrier",
            "ring",
            ring + store_words(["%r30"]),
            "u32",
            4,
            256,
            block=64,
            target="sm_90a",
        ),
        program(
            "mbarrier",
            "states",
            states + store_words(names("%r", 10, 4)),
            "u32",
            4,
            1024,
            block=64,
            target="sm_90a",
        ),
        program("bulk", "linear", linear, "u8", 2048, 2048, block=64, target="sm_90a"),
        program(
            "bulk",
            "cluster",
            cluster,
            "u8",
            16,
            6 * 512,
            block=64,
            grid=6,
            cluster=2,
            target="sm_90a",
        ),
    ]
    for op, kind in itertools.product(
        ("add", "min", "max", "inc", "dec", "and", "or", "xor"), ("u32",)
    ):
        type_ = kind if op not in ("and", "or", "xor") else "b32"
        body = (
            fill(2048, 64)
            + f"fence.proxy.async.shared::cta; bar.sync 0; @!%p1 bra DONE; cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{type_} [%rd1+2048], [%r2], 2048; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nDONE:"
        )
        cases.append(
            program(
                "bulk",
                f"reduce.{op}",
                body,
                "u32",
                1024,
                4,
                block=64,
                target="sm_90a",
                input_rule=Rule("u32"),
            )
        )
    return cases + tensor_cases()


def tensor_cases() -> list[Case]:
    cases = []
    # Bytes and rows: the GPU refuses corners that are not on 16 bytes, and stores to negative
    # ones (CUDA C++ Programming Guide, "Tensor Memory Access", negative indices).
    corners = ((0, 0), (-16, 5), (80, 60), (160, 60), (192, 3), (400, 100), (32, -7))
    for swizzle, (byte, row), kind in itertools.product(
        (0, 32, 64, 128), corners, ("u16", "f32", "u8", "f16")
    ):
        item = DTYPES[kind].itemsize
        corner = (byte // item, row)
        columns = (swizzle or 64) // item
        size = columns * item * 16

        def load(
            seed: int,
            kind=kind,
            columns=columns,
            corner=corner,
            swizzle=swizzle,
            item=item,
            size=size,
        ) -> Launch:
            tensor = (
                raw(draw(kind, 67 * 112 // item * 2, seeded("tma", seed)))
                .view(DTYPES[kind])
                .reshape(67, -1)
            )
            box = TensorMap(tensor, (tensor.shape[1] - 6, 67), (224,), (columns, 16), swizzle)
            body = (
                INIT
                + f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size}; mov.b32 %r10, {corner[0]}; mov.b32 %r11, {corner[1]}; @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd3, {{%r10, %r11}}], [%r3];"
                + wait()
                + empty(size, 64)
            )
            return Launch(text(body, "sm_90a"), [box, tensor, np.zeros(size, np.uint8)], block=64)

        def store(
            seed: int,
            kind=kind,
            columns=columns,
            corner=corner,
            swizzle=swizzle,
            item=item,
            size=size,
        ) -> Launch:
            tensor = np.zeros((67, 224 // item), DTYPES[kind])
            box = TensorMap(tensor, (tensor.shape[1] - 6, 67), (224,), (columns, 16), swizzle)
            source = draw("u8", size, seeded("tma", seed))
            body = (
                fill(size, 64)
                + f"fence.proxy.async.shared::cta; bar.sync 0; mov.b32 %r10, {corner[0]}; mov.b32 %r11, {corner[1]}; @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {{%r10, %r11}}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
            )
            return Launch(text(body, "sm_90a"), [box, source, np.zeros(4, np.uint8)], block=64)

        name = f"{kind}.swizzle{swizzle}.{corner[0]},{corner[1]}"
        cases.append(Case(f"tma.load.{name}", "tma", load))
        if min(corner) >= 0:
            cases.append(Case(f"tma.store.{name}", "tma", store))
    for rank, store_it in itertools.product((1, 2, 3, 4, 5), (False, True)):
        cases.append(
            Case(
                f"tma.{'store' if store_it else 'load'}.{rank}d",
                "tma",
                lambda seed, rank=rank, store_it=store_it: ranked(rank, store_it, seed),
            )
        )
    for kind, op in (
        ("f32", "add"),
        ("u32", "add"),
        ("u32", "min"),
        ("u32", "max"),
        ("u32", "xor"),
        ("f16", "add"),
        ("bf16", "add"),
        ("f16", "max"),
    ):
        cases.append(
            Case(
                f"tma.reduce.{op}.{kind}",
                "tma",
                lambda seed, kind=kind, op=op: reduction(kind, op, seed),
            )
        )
    for rank, swizzle in itertools.product((3, 4, 5), (0, 64)):
        cases.append(
            Case(
                f"tma.im2col.{rank}d.swizzle{swizzle}",
                "tma",
                lambda seed, rank=rank, swizzle=swizzle: walked(rank, swizzle, seed),
            )
        )
    return cases


def walked(rank: int, swizzle: int, seed: int) -> Launch:
    """Channels 16 to 31 of 24, 48 positions from inside the first of three images on, in steps of 1
    to 3, beside the images on all sides and behind the last one."""
    dims, between = (*(24, 7, 5, 4)[: rank - 1], 3), rank - 2
    walk = Im2col((-2, 1, -1)[:between], (1, 0, -1)[:between], (1, 3, 2)[:between])
    at, moved = (*(16, 3, 4, 1)[: rank - 1], 0), (2, 0, 1)[:between]
    tensor = raw(draw("u32", int(np.prod(dims)), seeded("walk", seed))).reshape(dims[::-1])
    strides = tuple(int(np.prod(dims[: i + 1])) * 4 for i in range(rank - 1))
    coordinates, offsets = listed(names("%r", 10, rank)), listed(names("%h", 1, between))
    body = "".join(f"mov.b32 %r{10 + i}, {c};" for i, c in enumerate(at))
    body += "".join(f"mov.b16 %h{1 + i}, {c};" for i, c in enumerate(moved))
    size = 48 * 64
    body += (
        INIT
        + f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size}; @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r2], [%rd3, {coordinates}], [%r3], {offsets};"
        + wait()
        + empty(size, 64)
    )
    made = TensorMap(tensor, dims, strides, (16, 48), swizzle, im2col=walk)
    return Launch(text(body, "sm_90a"), [made, tensor, np.zeros(size, np.uint8)], block=64)


def ranked(rank: int, store_it: bool, seed: int) -> Launch:
    dims, box = (24, 5, 4, 3, 6)[:rank], (16, 3, 2, 2, 4)[:rank]
    corner = (16, 3, 3 if store_it else -1, 1, 4)[:rank]  # a store at a negative corner stops
    tensor = (
        np.zeros(dims[::-1], np.uint32)
        if store_it
        else raw(draw("u32", int(np.prod(dims)), seeded("rank", seed))).reshape(dims[::-1])
    )
    strides = tuple(int(np.prod(dims[: i + 1])) * 4 for i in range(rank - 1))
    size = int(np.prod(box)) * 4
    coordinates = listed(names("%r", 10, rank))
    body = "".join(f"mov.b32 %r{10 + i}, {c};" for i, c in enumerate(corner))
    if store_it:
        body += (
            fill(size, 64)
            + f"fence.proxy.async.shared::cta; bar.sync 0; @%p1 cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%rd3, {coordinates}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
        )
    else:
        body += (
            INIT
            + f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size}; @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd3, {coordinates}], [%r3];"
            + wait()
            + empty(size, 64)
        )
    source = draw("u8", size, seeded("rank", seed))
    return Launch(text(body, "sm_90a"), [TensorMap(tensor, dims, strides, box), source, np.zeros(size, np.uint8)], block=64)  # fmt: skip


def reduction(kind: str, op: str, seed: int) -> Launch:
    rng, dtype = seeded("reduce", seed), DTYPES[kind]
    columns = 64 // dtype.itemsize
    flavour = "n" if kind[0] in "fb" else ""
    tensor = draw(kind + flavour, 8 * columns, rng).reshape(8, columns)
    source = raw(draw(kind + flavour, 4 * columns, rng))
    body = (
        fill(256, 64)
        + f"fence.proxy.async.shared::cta; bar.sync 0; mov.b32 %r10, 0; mov.b32 %r11, 2; @%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group [%rd3, {{%r10, %r11}}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    )
    box = TensorMap(tensor, (columns, 8), (64,), (columns, 4))
    return Launch(text(body, "sm_90a"), [box, source, np.zeros(4, np.uint8)], block=64, rules={0: Rule(kind)})  # fmt: skip
