"""Numbers as people read them: a unit, and no more digits than the measurement carries."""

from __future__ import annotations

import math
from collections.abc import Collection

MINUS, NARROW_SPACE, NOTHING = "−", "\u202f", "–"


def significant(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, thousands set apart, never in exponent form."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    rounded = round(value, decimals)
    if rounded and math.floor(math.log10(abs(rounded))) > math.floor(math.log10(abs(value))):
        decimals = max(0, decimals - 1)  # 99.96 becomes 100, not 100.0
    text = f"{abs(rounded):,.{decimals}f}".replace(",", NARROW_SPACE)
    return f"{MINUS}{text}" if value < 0 else text


def milliseconds(value: float | None) -> str:
    """A duration; seconds from ten of them on."""
    if value is None:
        return NOTHING
    return f"{significant(value / 1000)} s" if abs(value) >= 10_000 else f"{significant(value)} ms"


def duration(seconds: float) -> str:
    """A time to wait, as rough as it is known: "40 s", "7 min", "2 h 10 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def rate(value: float | None, unit: str) -> str:
    """Events per second, such as "312 tok/s"."""
    return NOTHING if value is None else f"{significant(value)} {unit}"


def times(ratio: float | None) -> str:
    """A speed-up, such as "1.32×"."""
    return NOTHING if ratio is None else f"{ratio:.2f}×"


def times_spread(ratios: Collection[float]) -> str:
    """The range of speed-ups, such as "1.21× to 1.52×"; one where they are shown alike."""
    least, most = times(min(ratios)), times(max(ratios))
    return most if least == most else f"{least} to {most}"


def change(ratio: float) -> str:
    """A ratio as a change in per cent, such as "+32 %" or "−4.1 %"."""
    percent = (ratio - 1) * 100
    text = f"{abs(percent):.0f}" if abs(percent) >= 10 else f"{abs(percent):.1f}"
    return f"{MINUS if percent < 0 and float(text) else '+'}{text} %"


def percent(share: float) -> str:
    """A share as per cent, such as "4 %", "0.3 %"."""
    value = share * 100
    return (
        f"{value:.0f} %"
        if value >= 10 or math.isclose(value, round(value), abs_tol=1e-9)
        else f"{significant(value, 2)} %"
    )


def dollars(value: float | None) -> str:
    """An amount, in cents from one dollar on and with three digits below."""
    if value is None:
        return NOTHING
    return f"${value:,.2f}".replace(",", NARROW_SPACE) if value >= 1 else f"${significant(value)}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun, such as "1 request", "12 000 requests"."""
    return f"{whole(number)} {noun if number == 1 else plural or noun + 's'}"


def whole(number: int) -> str:
    """A whole number, thousands set apart: "12 000"."""
    return f"{number:,}".replace(",", NARROW_SPACE)


def levels(values: list[int] | tuple[int, ...]) -> str:
    """Numbers in words: "4", "1 and 2", "1, 2 and 4"."""
    return conjunction([str(value) for value in values])


def conjunction(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
