"""A device that only exists as a clock, for tests of timing."""

from accelopt_profiling.timing.measure import TimingPlan

#: Few runs, and none that are bound to the time of day.
SHORT = TimingPlan(least_warm=4, warm_seconds=0.0, most_warm=60, least_rounds=20, most_rounds=20, seconds=0.0)


class FakeDevice:
    """The host and the device share one clock in seconds; the current stream and a side stream have their ends."""

    name = "NVIDIA H100 80GB HBM3"
    identifier = "GPU-2"

    def __init__(self):
        self.now = self.stream = self.side = 0.0
        self.cold = False
        self.emptied = 0
        self.graph = False

    def event(self):
        device = self

        class Event:
            def record(self):
                self.at = max(device.stream, device.now)

            def synchronize(self):
                device.now = max(device.now, self.at)

            def elapsed_time(self, end):
                return 1e3 * (end.at - self.at)

        return Event()

    def synchronize(self):
        self.now = max(self.now, self.stream, self.side) + 2e-6

    def empty_caches(self):
        self.emptied += 1
        self.cold = True
        self.synchronize()

    def capturing(self):
        return self.graph

    def launch(self, us, side=0.0):
        self.stream = max(self.stream, self.now) + us * 1e-6 * (1.0 if self.cold else 0.3)
        self.cold = False
        if side:
            self.side = self.now + side * 1e-6
