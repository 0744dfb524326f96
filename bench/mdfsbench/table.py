"""Rows of measurements, and how they are shown: as text, as JSON, as a table for the README."""
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json

OUTPUT_VERSION = 1


@dataclasses.dataclass
class Row:
    """One measurement beside its floor. `met` is None where there is no target."""
    group: str
    name: str
    value: float
    unit: str  # ms and s: less is better; MB/s and /s: more is
    floor: float | None = None
    floor_name: str = ""
    target: str = ""
    met: bool | None = None
    note: str = ""

    @property
    def ratio(self):
        """Of the value to its floor; None without a floor."""
        return self.value / self.floor if self.floor else None

    @property
    def verdict(self):
        return {None: "", True: "met", False: "NOT MET"}[self.met]


def at_most(group, name, value, unit, floor, floor_name, times, note=""):
    """A row that may cost `times` its floor."""
    return Row(group, name, value, unit, floor, floor_name, f"at most {times:g}x", value <= times * floor, note)


def number(value):
    if value is None:
        return ""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


HEADINGS = ["what", "measured", "floor", "ratio", "target", ""]


def cells(row):
    floor = f"{number(row.floor)} {row.unit} ({row.floor_name})" if row.floor else ""
    return [row.name, f"{number(row.value)} {row.unit}", floor, number(row.ratio), row.target, row.verdict]


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
        if row.note:
            out.append(f"     {row.note}")
    return "\n".join(out) + "\n"


def as_markdown(rows, machine):
    out = [f"Measured on {machine['text']}.", "", "| " + " | ".join(HEADINGS) + " |", "|---|--:|---|--:|---|---|"]
    for row in rows:
        out.append("| " + " | ".join(cells(row)) + " |")
    return "\n".join(out) + "\n"


def as_json(rows, machine, skipped):
    listed = [dataclasses.asdict(row) | {"ratio": row.ratio} for row in rows]
    return json.dumps({"output_version": OUTPUT_VERSION, "machine": machine, "rows": listed, "skipped": skipped},
                      indent=2) + "\n"
