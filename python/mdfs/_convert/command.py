"""The command mdfs-convert."""
# SPDX-License-Identifier: Apache-2.0
import argparse
import contextlib
import sys
import warnings
from typing import Any, Callable, Iterator, List, Optional, Tuple, Union

from mdfs import __version__, convert
from mdfs._convert.formats import FORMATS
from mdfs._convert.source import choices
from mdfs._convert.targets import SUFFIXES
from mdfs._library import REDUCTIONS

DESCRIPTION = f"""Converts SOURCE into the image TARGET on a mounted MDFS volume, or an image into another format.
Sources: {FORMATS}. An image becomes what the ending of TARGET names: {", ".join(SUFFIXES)}."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("mdfs-convert", description=DESCRIPTION)
    parser.add_argument("source", metavar="SOURCE", help="a file, or the folder of a Zarr group or DICOM series")
    parser.add_argument("target", metavar="TARGET", help="gets its name when it is complete and verified")
    parser.add_argument("--select", metavar="AXIS=PLACE,..", type=_choices,
                        help="places along axes, such as c=0,t=3 or z=10:20")
    parser.add_argument("--axes", metavar="LETTERS", help="axes of the source, slowest first, such as tzyx")
    parser.add_argument("--dataset", metavar="NAME", help="which array or series of a source with several")
    parser.add_argument("--codec", default="zstd", help="of the image, such as raw, zstd or zstd:7")
    parser.add_argument("--extent", metavar="N,..", type=_lengths, help="shape of an extent of the image")
    parser.add_argument("--levels", metavar="N", type=_count, help="resolution levels of the image: auto, or a number")
    parser.add_argument("--reduce", choices=list(REDUCTIONS),
                        help="how a level is made; nearest for labels (default: mean)")
    parser.add_argument("--no-verify", dest="verify", action="store_false",
                        help="do not read the target and compare checksums")
    parser.add_argument("--resume", action="store_true", help="continue what a killed conversion left")
    parser.add_argument("--overwrite", action="store_true", help="replace TARGET when the new one is complete")
    parser.add_argument("--allow-warnings", action="store_true", help="convert a TIFF of which tifffile warns")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.add_argument("--version", action="version", version=f"mdfs-convert {__version__}")
    return parser


def _choices(text: str) -> Any:
    try:
        return choices(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _count(text: str) -> Union[int, str]:
    if text != "auto" and not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: must be auto or a number")
    return text if text == "auto" else int(text)


def _lengths(text: str) -> Tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r}: must be lengths of 1 or more, such as 8,64,64")
    return tuple(int(part) for part in parts)


@contextlib.contextmanager
def _bar(shown: bool) -> Iterator[Optional[Callable[[int, int], None]]]:
    """A progress bar on a terminal, by tqdm."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    try:
        from tqdm import tqdm  # pylint: disable=import-outside-toplevel
    except ImportError:
        yield None
        return
    with tqdm(unit=" samples", unit_scale=True, leave=False) as bar:
        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)
        yield show


def main(arguments: Optional[List[str]] = None) -> int:
    """Exit status 0: done; 1: an error, with a message; 2: wrong usage; 130: interrupted."""
    options = vars(_parser().parse_args(arguments))
    quiet = options.pop("quiet")
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest: print(f"mdfs-convert: {message}", file=sys.stderr)
        try:
            with _bar(not quiet) as progress:
                convert(options.pop("source"), options.pop("target"), progress=progress, **options)
        except KeyboardInterrupt:
            print("mdfs-convert: interrupted; --resume continues a conversion into an image", file=sys.stderr)
            return 130
        except (OSError, ValueError, IndexError, TypeError, ImportError, MemoryError) as error:
            print(f"mdfs-convert: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
