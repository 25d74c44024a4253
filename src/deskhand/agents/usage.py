"""What asking a model took: tokens, and money when the person who runs it gave the prices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """Tokens of one request, or of several. ``input`` leaves out what was read from or written to a cache."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
        )

    @property
    def read(self) -> int:
        """Everything the model read."""
        return self.input + self.cache_read + self.cache_write

    def facts(self) -> dict[str, int]:
        """For the trace."""
        return {
            "input": self.input,
            "cache_read": self.cache_read,
            "cache_write": self.cache_write,
            "output": self.output,
        }


@dataclass(frozen=True)
class Prices:
    """Money for a million tokens, in any currency. Where the cache's are not given, they cost what input costs."""

    input: float
    output: float
    cache_read: float
    cache_write: float

    @classmethod
    def parse(cls, text: str) -> Prices:
        """``INPUT,OUTPUT[,CACHE_READ[,CACHE_WRITE]]``.

        Raises:
            ValueError: It is not two to four numbers of 0 or more.
        """
        try:
            numbers = [float(number) for number in text.split(",")]
        except ValueError:
            numbers = []
        if not 2 <= len(numbers) <= 4 or not all(0 <= number < 1e9 for number in numbers):
            raise ValueError("it must be INPUT,OUTPUT or INPUT,OUTPUT,CACHE_READ,CACHE_WRITE: numbers, for 1e6 tokens")
        numbers += [numbers[0]] * (4 - len(numbers))
        return cls(*numbers)

    def cost(self, usage: Usage) -> float:
        """What ``usage`` costs, in the currency of the prices."""
        total = usage.input * self.input + usage.output * self.output
        return (total + usage.cache_read * self.cache_read + usage.cache_write * self.cache_write) / 1e6
