"""Rows of measurements, and how they are shown: as text, as JSON, as a table for the README."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json

OUTPUT_VERSION = 2


@dataclasses.dataclass
class Row:
    """One measurement beside its floor and its peers. `met` is None where there is no target."""
    group: str
    name: str
    value: float
    unit: str  # ms and s: less is better; MB/s and /s: more is
    floor: float | None = None
    floor_name: str = ""
    target: str = ""
    met: bool | None = None
    note: str = ""
    peers: dict[str, float] = dataclasses.field(default_factory=dict)  # what other programs take, in the same unit

    @property
    def ratio(self):
        """Of the value to its floor; None without a floor."""
        return self.value / self.floor if self.floor else None

    @property
    def best_peer(self):
        """(name, value) of the fastest; None without peers."""
        better = max if self.unit.endswith("/s") else min
        return better(self.peers.items(), key=lambda item: item[1]) if self.peers else None

    @property
    def peer_ratio(self):
        """Of the value to that of the best peer; None without peers."""
        return self.value / self.best_peer[1] if self.peers else None

    @property
    def is_as_good_as_peers(self):
        return self.peer_ratio >= 1 if self.unit.endswith("/s") else self.peer_ratio <= 1

    @property
    def verdict(self):
        return {None: "", True: "met", False: "NOT MET"}[self.met]


def row_of(fields):
    """The row of what as_json() wrote."""
    return Row(**{key: value for key, value in fields.items() if key != "ratio"})


def at_most(group, name, value, unit, floor, floor_name, times, note=""):
    """A row that may cost `times` its floor."""
    return Row(group, name, value, unit, floor, floor_name, f"at most {times:g}x", value <= times * floor, note)


def at_least_of_peers(group, name, value, unit, peers, least, **more):
    """A rate that must reach `least` of the best peer."""
    row = Row(group, name, value, unit, peers=peers, target=f"at least {least:g}x the peer", **more)
    row.met = row.peer_ratio >= least
    return row


def at_most_of_peer(group, name, value, unit, peers, whose, times, **more):
    """A time that may be `times` that of one peer."""
    row = Row(group, name, value, unit, peers=peers, target=f"at most {times:g}x {whose}", **more)
    row.met = value <= times * peers[whose] if whose in peers else None
    return row


def number(value):
    if value is None:
        return ""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


HEADINGS = ["what", "MDFS", "best peer", "over peer", "floor", "over floor", "target", ""]
SEPARATOR = "|---|--:|---|--:|---|--:|---|---|"


def cells(row):
    floor = f"{number(row.floor)} {row.unit} ({row.floor_name})" if row.floor else ""
    peer = f"{number(row.best_peer[1])} {row.unit} ({row.best_peer[0]})" if row.peers else ""
    return [row.name, f"{number(row.value)} {row.unit}", peer, number(row.peer_ratio), floor, number(row.ratio),
            row.target, row.verdict]


def as_text(rows):
    lines = [HEADINGS] + [cells(row) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]

    def laid_out(line):
        return "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()

    out = [laid_out(HEADINGS)]
    group = None
    for row in rows:
        if row.group != group:
            group = row.group
            out.append(f"-- {group}")
        out.append(laid_out(cells(row)))
        if len(row.peers) > 1:
            out.append("     " + ", ".join(f"{who} {number(value)} {row.unit}" for who, value in row.peers.items()))
        if row.note:
            out.append(f"     {row.note}")
    return "\n".join(out) + "\n"


def as_markdown(rows, machine):
    out = [f"Measured on {machine['text']}.", "", "| " + " | ".join(HEADINGS) + " |", SEPARATOR]
    for row in rows:
        out.append("| " + " | ".join(cells(row)) + " |")
    return "\n".join(out) + "\n"


def as_json(rows, machine, skipped):
    listed = [dataclasses.asdict(row) | {"ratio": row.ratio} for row in rows]
    return json.dumps({"output_version": OUTPUT_VERSION, "machine": machine, "rows": listed, "skipped": skipped},
                      indent=2) + "\n"
