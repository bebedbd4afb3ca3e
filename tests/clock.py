"""A clock that tests set, in place of `time.monotonic`."""


class Clock:
    """Returns `now`, in seconds, until a test changes it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
