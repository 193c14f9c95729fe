"""Binary units. Memory is counted in GiB (2**30 bytes) everywhere; GB stands only where a source says GB."""

KIB, MIB, GIB = 2**10, 2**20, 2**30


def ceil_div(value: int, by: int) -> int:
    """The smallest whole number of `by` that holds `value`."""
    return -(-value // by)


def power_of_two(value: int) -> int:
    """The smallest power of two that is at least `value`; 0 for 0."""
    return 1 << (value - 1).bit_length() if value > 0 else 0
