# ruff: noqa: E501  (lines of PTX)
"""Conformance cases of mbarriers: counts that drop, transactions, other CTAs, rings between roles."""

from __future__ import annotations

from conformance_case import Case
from conformance_text import names, program, store_words

_ADDRESS = "[%r3]"


def _ask(register: int, parity: int) -> str:
    """1 or 0: has the phase of this parity completed?"""
    return (
        f"mbarrier.test_wait.parity.shared::cta.b64 %p2, {_ADDRESS}, {parity};"
        f"selp.u32 %r{register}, 1, 0, %p2;"
    )


def _asked(count: int) -> str:
    return "".join(f"mov.u32 %r{10 + i}, 9;" for i in range(count))


def _loop(label: str, wait: str) -> str:
    return f"{{ .reg .pred done; {label}: {wait} @!done bra {label}; }}"


def _drops() -> Case:
    arrive = f"mbarrier.arrive.shared::cta.b64 _, {_ADDRESS};"
    body = (
        f"@%p1 mbarrier.init.shared::cta.b64 {_ADDRESS}, 3; bar.sync 0; {_asked(6)} @!%p1 bra OUT;"
        f"mbarrier.arrive_drop.shared::cta.b64 _, {_ADDRESS}; {_ask(10, 0)} {arrive} {arrive} {_ask(11, 0)} {_ask(12, 1)}"
        f"{arrive} {_ask(13, 1)} {arrive} {_ask(14, 1)} {_ask(15, 0)}\nOUT:"
    )
    return _case("drops", body + store_words(names("%r", 10, 6)), 64 * 24)


def _transactions() -> Case:
    body = (
        f"@%p1 mbarrier.init.shared::cta.b64 {_ADDRESS}, 1; bar.sync 0; {_asked(5)} @!%p1 bra OUT;"
        f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 {_ADDRESS}, 96; {_ask(10, 0)}"
        f"mbarrier.arrive.expect_tx.shared::cta.b64 _, {_ADDRESS}, 32; {_ask(11, 0)}"
        f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 {_ADDRESS}, 100; {_ask(12, 0)}"
        f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 {_ADDRESS}, 28; {_ask(13, 0)} {_ask(14, 1)}\nOUT:"
    )
    return _case("transactions", body + store_words(names("%r", 10, 5)), 64 * 20)


def _hints() -> Case:
    """try_wait with a time limit, scopes said, phases in turn, an object used again."""
    body = (
        f"@%p1 mbarrier.init.shared::cta.b64 {_ADDRESS}, 64; bar.sync 0; mov.u32 %r10, 0; mov.u32 %r20, 0;\n"
        "TURN: and.b32 %r21, %r20, 1; mbarrier.arrive.release.cta.shared::cta.b64 _, [%r3];"
        + _loop(
            "W", "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%r3], %r21, 2000;"
        )
        + "mad.lo.u32 %r10, %r10, 5, %r20; add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 9; @%p3 bra TURN;"
        "bar.sync 0; @%p1 mbarrier.inval.shared::cta.b64 [%r3]; bar.sync 0;"
        "@%p1 mbarrier.init.shared::cta.b64 [%r3], 2; bar.sync 0; @%p1 mbarrier.arrive.shared::cta.b64 _, [%r3], 2;"
        + _loop("V", "mbarrier.try_wait.parity.shared::cta.b64 done, [%r3], 0;")
    )
    return _case("hints", body + store_words(["%r10"]), 64 * 4)


def _other_cta() -> Case:
    """Each thread writes into the other CTA of the cluster and arrives there."""
    meet = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    body = (
        f"@%p1 mbarrier.init.shared::cta.b64 {_ADDRESS}, 64; fence.mbarrier_init.release.cluster; {meet}"
        "mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %ctaid.x; xor.b32 %r12, %r10, 1; mad.lo.u32 %r5, %r1, 4, %r2;"
        "mapa.shared::cluster.u32 %r13, %r5, %r12; mapa.shared::cluster.u32 %r14, %r3, %r12; mov.u32 %r20, 0; mov.u32 %r30, 0;\n"
        "TURN: and.b32 %r21, %r20, 1; mad.lo.u32 %r15, %r11, 1000, %r1; mad.lo.u32 %r15, %r20, 7, %r15;"
        "st.shared::cluster.u32 [%r13], %r15; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14];"
        + _loop("W", "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%r3], %r21;")
        + "xor.b32 %r16, %r1, 33; mad.lo.u32 %r16, %r16, 4, %r2; ld.shared.u32 %r17, [%r16]; mad.lo.u32 %r30, %r30, 3, %r17;"
        f"{meet} add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 5; @%p3 bra TURN; {meet}"
        "mad.lo.u32 %r40, %r11, 64, %r1; mul.wide.u32 %rd9, %r40, 4; add.s64 %rd9, %rd2, %rd9; st.global.u32 [%rd9], %r30;"
    )
    return _case("other_cta", body, 4 * 64 * 4, grid=4, cluster=2)


def _roles() -> Case:
    """One warp copies 8 rows of 1024 bytes into a ring of 3; two warpgroups add up what arrives."""
    full = "mad.lo.u32 %r40, %r22, 8, %r3;"
    turn = "rem.u32 %r22, %r20, 3; div.u32 %r23, %r20, 3; and.b32 %r23, %r23, 1;"
    body = (
        "".join(
            f"@%p1 mbarrier.init.shared::cta.b64 [%r3+{8 * i}], 1; @%p1 mbarrier.init.shared::cta.b64 [%r3+{24 + 8 * i}], 2;"
            for i in range(3)
        )
        + "fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %r20, 0; mov.u32 %r30, 0; setp.lt.u32 %p2, %r1, 256; @%p2 bra ADD;"
        "setmaxnreg.dec.sync.aligned.u32 40; setp.ne.u32 %p4, %r1, 256; @%p4 bra END;\n"
        f"COPY: {turn} xor.b32 %r24, %r23, 1; {full}"
        + _loop("E", "mbarrier.try_wait.parity.shared::cta.b64 done, [%r40+24], %r24;")
        + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r40], 1024; mad.lo.u32 %r41, %r22, 1024, %r2; mul.wide.u32 %rd9, %r20, 1024; add.s64 %rd9, %rd1, %rd9;"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r41], [%rd9], 1024, [%r40];"
        "add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 8; @%p3 bra COPY; bra END;\n"
        f"ADD: setmaxnreg.inc.sync.aligned.u32 232;\nNEXT: {turn} {full}"
        + _loop("F", "mbarrier.try_wait.parity.shared::cta.b64 done, [%r40], %r23;")
        + "mad.lo.u32 %r41, %r22, 1024, %r2; mad.lo.u32 %r41, %r1, 4, %r41; ld.shared.u32 %r42, [%r41]; mad.lo.u32 %r30, %r30, 3, %r42;"
        "shr.u32 %r43, %r1, 7; add.u32 %r43, %r43, 1; bar.sync %r43, 128; and.b32 %r44, %r1, 127; setp.eq.u32 %p5, %r44, 0;"
        "@%p5 mbarrier.arrive.shared::cta.b64 _, [%r40+24]; add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 8; @%p3 bra NEXT;"
        "mul.wide.u32 %rd9, %r1, 4; add.s64 %rd9, %rd2, %rd9; st.global.u32 [%rd9], %r30;\nEND:"
    )
    return program("mbarrier", "roles", body, "u32", 8 * 256, 1024, block=384, target="sm_90a")


def _case(name: str, body: str, output: int, **options: int) -> Case:
    return program("mbarrier", name, body, "u32", 4, output, block=64, target="sm_90a", **options)


def barrier_programs() -> list[Case]:
    return [_drops(), _transactions(), _hints(), _other_cta(), _roles()]
