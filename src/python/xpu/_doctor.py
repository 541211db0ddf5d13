"""What is there to work with, and why the rest is not."""

import dataclasses

from . import _core, _paths


@dataclasses.dataclass(frozen=True)
class Doctor:
    """What `doctor` found. As text: one line for each driver and device."""

    version: str
    library: str
    drivers: list[_core.DriverReport]
    error: str
    """Of XPU_DRIVER or XPU_VISIBLE_DEVICES; empty when they are fine. Then no device is usable."""

    @property
    def devices(self) -> list[_core.DeviceReport]:
        """Usable devices, in the order of their indices."""
        devices = [device for driver in self.drivers for device in driver.devices if device.index >= 0]
        return sorted(devices, key=lambda device: device.index)

    @property
    def is_well(self) -> bool:
        """There is a device to use."""
        return not self.error and bool(self.devices)

    def __str__(self) -> str:
        lines = [("libxpu", f"{self.version}  {self.library}")]
        lines += [("driver", f"{driver.name}  {_what_it_offers(driver)}") for driver in self.drivers]
        for driver in self.drivers:
            for device in driver.devices:
                name = f"device {device.index}" if device.index >= 0 else "hidden"
                lines.append((name, _device_line(driver, device)))
        if self.error:
            lines.append(("error", self.error))
        elif not self.devices:
            lines.append(("error", "There is no device."))
        return "\n".join(f"{label:<10} {text}" for label, text in lines)


def doctor() -> Doctor:
    """Which drivers and devices there are, and why the rest is not. Initialises nothing."""
    report = _core.describe_runtime()
    return Doctor(_core.version(), _paths.library_path(), report.drivers, report.error)


def _what_it_offers(driver: _core.DriverReport) -> str:
    if driver.reason:
        return driver.reason
    count = len(driver.devices)
    return f"{count} device{'s' if count != 1 else ''}"


def _device_line(driver: _core.DriverReport, device: _core.DeviceReport) -> str:
    properties = device.properties
    parts = [properties.name, driver.name, properties.type, f"{properties.max_compute_units} compute units"]
    parts += [f"{properties.total_memory / (1 << 30):.1f} GiB", str(properties.uuid)]
    if device.reason:
        parts.append(device.reason)
    return "  ".join(parts)
