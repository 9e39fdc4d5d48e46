# Every op has its file, line and column; an inlined one also those of its call.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


def helper(x):
    return tl.exp(x)


@tilec.kernel
def located(v: tl.array):
    t = tl.load(v, 0, 16)
    u = helper(t) + 1
    w = tl.sigmoid(u)
    tl.store(v, 0, w)


# CHECK: "tile.load"{{.*}} {{.*}}locations.py:14:9
# CHECK: math.exp {{.*}} #[[CALLEE:.*]]
# CHECK: at #[[CALLER:.*]]
# CHECK: arith.addf {{.*}}locations.py:15:9
# CHECK: math.exp {{.*}}locations.py:16:9
# CHECK: "tile.store"{{.*}}locations.py:17:5
# CHECK-DAG: #[[CALLEE]] = {{.*}}locations.py:9:12
# CHECK-DAG: #[[CALLER]] = {{.*}}locations.py:15:9
module = located.source_module(["v:f32[?]"])
print(module.operation.get_asm(enable_debug_info=True, pretty_debug_info=True))
