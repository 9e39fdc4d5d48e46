"""What can go wrong at a launch. Each error says what was expected, what was found, what to do."""

from __future__ import annotations


class ArgumentError(TypeError):
    """An argument of a launch does not fit the kernel; the message begins with its name."""

    is_mistake = True


class TracedTensorError(ArgumentError):
    """An argument is a tensor that torch traces or records, which no launch can take: an operator
    may."""


class DeviceError(RuntimeError):
    """A device is not there, or it refused or failed a kernel."""


class ArtefactError(ValueError):
    """A file is not an artefact this version can read, or holds no kernel for the device."""

    is_mistake = True
