"""Work on a device from Python, and exactly how long it took there."""

import sys

import xpu

print(xpu.doctor())
stream = xpu.Stream()
source, target = xpu.Buffer(1 << 20), xpu.Buffer(1 << 20)
with xpu.profiler.profile() as profile:
    with xpu.profiler.range("step"):
        stream.fill(source, 7)
        stream.copy(target, source)
        stream.synchronize()
print(profile.table())
for fill in profile.report()["fills"]:
    print(f"{fill['calls']} fill, {fill['total_ns']} ns on the device")
profile.export_chrome(sys.argv[1] if len(sys.argv) > 1 else "profile.json.gz")
