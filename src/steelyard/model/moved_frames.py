"""Frames that a link program moved while a trial's load ran, and their delay."""

from __future__ import annotations

from steelyard.model.value import Value


class MovedFrames(Value):
    """Counters of the link program over the load of a trial, its warm-up included."""

    seconds: float
    """Time that the counters cover."""
    frames: int
    """Frames that nodes sent and the program read."""
    delivered: int
    """Receivers that got their frame; a broadcast has several."""
    dropped: int
    """Receivers whose frame met a full queue of the link, which is part of it."""
    lost: int
    """Receivers whose frame the link lost, as it was asked to or because its medium gave them up."""
    unread: int
    """Frames that the kernel dropped because the program did not read them in time: no part of the link."""
    late_ms_mean: float | None = None
    """By how much later than the link says a frame was delivered, mean; None if none was. The link begins when the
    program has read a frame: what it waited before is in `stalled_s`."""
    late_ms_max: float
    """The same, the latest frame."""
    stalled_s: float
    """Time for which the program stood still: pauses of 1 ms or more, added up, each short by up to 5 ms where nothing
    was in flight; and silence at the end."""
    cpu_s: float
    """Processor time of the program."""

    @property
    def unread_fraction(self) -> float | None:
        """Frames that were not read in time, of all that nodes sent; None if they sent none."""
        everything = self.frames + self.unread
        return self.unread / everything if everything else None

    @property
    def stalled_fraction(self) -> float | None:
        """For this part of the time the program stood still; None of no time."""
        return self.stalled_s / self.seconds if self.seconds > 0 else None
