"""Random records that are almost, and sometimes quite, what a schema says.

Every record is made of valid members, of which at most two are then replaced by nasty ones; some
texts are damaged afterwards. So the fast path sees many records just inside its shapes, and many
just outside.
"""

import random
from collections.abc import Callable, Mapping

from headrace.schema import DataType

__all__ = ["make_record"]

NASTY_NUMBERS = [
    *("0", "-0", "-0.0", "0.0", "0e0", "1e0", "12.0", "1.2e1", "1E2", "1e-2", "0.000001", "1e22"),
    *("1e23", "1e99", "1e-99", "1e308", "1e309", "1e-320", "1e-400", "127", "128", "-128", "-129"),
    *("32767", "32768", "2147483647", "2147483648", "-2147483648", "9007199254740993", "99.995"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "8999999999999999999"),
    *(
        "18446744073709551615",
        "18446744073709551616",
        "12345678901234567890123",
        "0.30000000000000004",
    ),
    *("999999999999999", "9999999999999.99", "9999999999.99", "99999999999.9", "0.005", "1.005"),
    *("1.00000005960464477539062500000001", "16777217", "123456.789012345", "0.1234567890123456"),
    *("01", "1.", ".5", "+1", "--1", "1e", "0x10", "1_000", "NaN", "Infinity", "-", "1e+", "00"),
    *("253402300799", "253402300800", "-62135596800", "-62135596801", "99999999999", "1e3"),
    *("4.35", "2.675", "1.115", "8.41", "1234567.89", "33.33", "0.07", "1.1e5", "5e-324", "64.1"),
]
NASTY_TIMES = [
    *("2026-02-28", "2026-02-29", "2024-02-29", "1900-02-29", "2000-02-29", "2026-02-30"),
    *("2026-04-31", "2026-00-10", "2026-12-32", "2026-13-01", "0000-01-01", "0001-01-01"),
    *("9999-12-31", "10000-01-01", "1582-10-10", "0400-02-29", "0100-02-29", "0004-02-29"),
]
NASTY_CLOCKS = [
    *(
        "",
        "T00:00:00",
        " 23:59:59",
        "T24:00:00",
        "T23:60:00",
        "T23:59:60",
        "T12:30",
        "T12",
        "t00:00:00",
    ),
    *("T00:00:00.1", "T00:00:00.123456", "T00:00:00.1234567", "T00:00:00.123456000", "T00:00:00."),
    *("T00:00:00.999999", "T00:00:00,5", "T1:00:00", "  00:00:00", "T00:00:00.0000001"),
]
NASTY_ZONES = ["", "Z", "z", " Z", "+00:00", "-00:00", "+0000", "+00", "+02:00", "-11:30", "+0530"]
NASTY_ZONES += ["+14", "+24:00", "+00:60", " UTC", "+1", "ZZ", "[Europe/Berlin]"]
NASTY_STRINGS = [
    *('""', '"a b"', r'"\""', r'"\\"', r'"\/"', r'"\n\t\b\f\r"', r'"\u0041"', r'"\u0000"', '"é😀"'),
    *(
        r'"\ud83d\ude00"',
        r'"\ud83d"',
        r'"\ude00"',
        r'"\uD83Dx"',
        r'"\u12"',
        r'"\a"',
        '"a\tb"',
        '"\x7f"',
    ),
    *(
        '"null"',
        '"true"',
        '"True"',
        '"1"',
        '" 1"',
        '"1 "',
        '"abc"',
        '"NaN"',
        '"\u2028"',
        '"\ufeff"',
    ),
    *('"', '"a', "'a'", '"a" "b"', '"{}"', '"a,b:c}"', r'"\u00e9\u00E9"', '"\u0000"', '"$.*"'),
]
NASTY_OTHERS = [
    "null",
    "true",
    "false",
    "nul",
    "True",
    "[]",
    "{}",
    "[1]",
    "[1,]",
    '{"x":1}',
    "[null]",
]
NASTY_OTHERS += ['{"x":1,"x":2}', "[[]]", '{"x":{"y":[1,2]}}', "", "/**/1", '["a", "b"]', "[ 1 ]"]
NASTY_OTHERS += ['{"x": 5, "y": "z"}', '[1, 2, "3"]', '{"X":1}', '{"y":"a","x":"7"}', '{"q":0}']


def make_record(generator: random.Random, columns: Mapping[str, DataType], *, epoch: bool) -> bytes:
    """Return one record for these columns; `epoch`: timestamps are numbers."""
    members = {name: _plain(generator, kind, epoch) for name, kind in columns.items()}
    for _ in range(generator.choice([0, 0, 1, 1, 2])):
        name = generator.choice(list(members))
        members[name] = _nasty_for(generator, columns[name])
    pairs = list(members.items())
    change = generator.random()
    if change < 0.05:
        generator.shuffle(pairs)
    elif change < 0.15:
        pairs.pop(generator.randrange(len(pairs)))
    elif change < 0.2:
        pairs.insert(
            generator.randrange(len(pairs)), (generator.choice(pairs)[0], _nasty(generator))
        )
    elif change < 0.3:
        unknown = generator.choice(["unknown", "A0", "a.0", "\\u0061", "é", "", "a 0", "$"])
        pairs.append((unknown, _nasty(generator)))
    comma, colon = generator.choice([(",", ":")] * 5 + [(", ", ": ")] * 4 + [(" ,", ":\n")])
    text = "{" + comma.join(f'"{name}"{colon}{value}' for name, value in pairs) + "}"
    value = (
        generator.choice(["", "", "", " ", "\n"]) + text + generator.choice(["", "", "", "\r\n"])
    )
    encoded = value.encode(errors="surrogatepass")
    return _damaged(generator, encoded) if generator.random() < 0.05 else encoded


def _damaged(generator: random.Random, value: bytes) -> bytes:
    at = generator.randrange(len(value))
    piece = generator.choice(
        [b"", b",", b'"', b"\\", b"}", b"\xff", b"\x00", b" ", b"0", b"//", b"-"]
    )
    return value[:at] + piece + value[at + generator.choice([0, 1]) :]


def _nasty_for(generator: random.Random, type: DataType) -> str:
    """Return a nasty value, mostly one that has to do with the type."""
    if generator.random() < 0.3:
        return _nasty(generator)
    if type.kind == "ARRAY":
        count = generator.randint(1, 2)
        return f"[{', '.join(_nasty_for(generator, type.parts[0]) for _ in range(count))}]"
    if type.kind == "STRUCT":
        at = generator.randrange(len(type.parts))
        return f'{{"{type.names[at]}":{_nasty_for(generator, type.parts[at])}}}'
    if type.kind == "DECIMAL":
        digits = str(generator.randrange(10 ** generator.randint(1, type.precision)))
        point = generator.randint(0, min(type.scale, len(digits) - 1))
        text = f"{digits[:-point]}.{digits[-point:]}" if point else digits
        return generator.choice([text, f"-{text}", f'"{text}"'])
    if type.is_integer:
        return str(generator.randrange(-(10 ** generator.randint(1, 19)), 10**10))
    if type.is_numeric:
        return generator.choice(NASTY_NUMBERS)
    if type.kind in ("DATE", "TIMESTAMP"):
        clock = map(generator.choice, (NASTY_CLOCKS, NASTY_ZONES))
        return f'"{generator.choice(NASTY_TIMES)}{"".join(clock) if type.kind != "DATE" else ""}"'
    return generator.choice(NASTY_STRINGS)


def _nasty(generator: random.Random) -> str:
    number = generator.choice(NASTY_NUMBERS)
    time = "".join(map(generator.choice, (NASTY_TIMES, NASTY_CLOCKS, NASTY_ZONES)))
    digits = "".join(generator.choices("0123456789", k=generator.randint(1, 20)))
    point = generator.randint(0, len(digits))
    made = f"{digits[:point] or '0'}.{digits[point:] or '0'}"
    made = made.lstrip("0") if made[0] == "0" and made[1] != "." else made
    choices = [number, f'"{number}"', f'"{time}"', made, f'"{made}"', f"-{made}"]
    choices += [generator.choice(NASTY_STRINGS), generator.choice(NASTY_OTHERS), digits]
    return generator.choice(choices)


def _plain(generator: random.Random, type: DataType, epoch: bool) -> str:
    if type.kind == "ARRAY":
        parts = [_plain(generator, type.parts[0], epoch) for _ in range(generator.randint(0, 3))]
        return f"[{','.join(parts)}]"
    if type.kind == "MAP":
        return f'{{"{generator.randint(0, 9)}":{_plain(generator, type.parts[1], epoch)}}}'
    if type.kind == "STRUCT":
        fields = zip(type.names, type.parts, strict=True)
        members = (f'"{name}":{_plain(generator, part, epoch)}' for name, part in fields)
        return f"{{{','.join(members)}}}"
    makers: dict[str, Callable[[], str]] = {
        "BOOLEAN": lambda: generator.choice(["true", "false", '"true"']),
        "STRING": lambda: f'"s{generator.randint(0, 999)}"',
        "BINARY": lambda: '"aGk="',
        "DATE": lambda: f'"{generator.randint(1, 9999):04d}-02-{generator.randint(1, 28):02d}"',
        "TIMESTAMP": lambda: _plain_timestamp(generator, epoch),
        "FLOAT": lambda: f"{generator.uniform(-1e6, 1e6):.3f}",
        "DOUBLE": lambda: repr(generator.gauss(0, 1) * 10 ** generator.randint(-3, 6)),
        "DECIMAL": lambda: f"0.{generator.randint(1, 99)}" if type.scale else "7",
    }
    return makers.get(type.kind, lambda: str(generator.randint(-99, 99)))()


def _plain_timestamp(generator: random.Random, epoch: bool) -> str:
    if epoch:
        return str(generator.randint(0, 2_000_000_000))
    second, fraction = generator.randint(0, 59), generator.randint(0, 999)
    return f'"2026-{generator.randint(1, 12):02d}-11T10:00:{second:02d}.{fraction:03d}Z"'
