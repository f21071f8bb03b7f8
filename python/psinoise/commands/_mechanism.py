"""What "epsilon" and "delta" share: options that describe one mechanism and its composition."""

from __future__ import annotations

import argparse
import decimal
import functools
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from psinoise import _validate
from psinoise._progress import watch
from psinoise.accounting.bracket import Bracket
from psinoise.commands._json import HELP, print_json
from psinoise.errors import DomainError
from psinoise.mechanisms import Mechanism
from psinoise.noise import DESIGNED, LAWS, Cactus, Family, NoiseLaw, Parameter

# Of the attributes that parameters of laws become: "delta" is also one of the target.
_PREFIX = "noise_"
_SIZES = ("scale", "std", "mean_abs")
#: What `add_composition` declares.
COMPOSITION = ("sensitivity", "contribution", "count", "sampling_rate", "adjacency")
_OF_THE_QUESTION = ("epsilon", "delta", "count", "sampling_rate")


def law_names() -> dict[str, type[NoiseLaw]]:
    """The laws by their names in lower case, words joined by hyphens."""
    laws: tuple[type[NoiseLaw], ...] = (*LAWS, *DESIGNED)
    return {re.sub(r"(?<!^)(?=[A-Z])", "-", law.__name__).lower(): law for law in laws}


def add_number(
    parser: argparse._ActionsContainer,
    option: str,
    text: str,
    *,
    kind: type[float] = float,
    **words: Any,
) -> None:
    """Declare an option that takes a number."""
    metavar = "N" if kind is int else "X"
    parser.add_argument(option, type=kind, metavar=metavar, help=text, **words)


def add_noise(parser: argparse.ArgumentParser) -> None:
    """Declare the options that :func:`family` reads."""
    parser.add_argument("--noise", required=True, choices=law_names(), help="noise law")
    # Laws share some parameters: an option says what it is to each of them.
    shared: dict[str, list[tuple[str, Parameter]]] = {}
    for name, law in law_names().items():
        for argument, parameter in law.shape_parameters.items():
            shared.setdefault(argument, []).append((name, parameter))
    for argument, uses in shared.items():
        parameter = uses[0][1]
        parser.add_argument(
            _option(argument),
            dest=_PREFIX + argument,
            type=_reader(parameter),
            metavar=parameter.placeholder,
            help="; ".join(f"of {name} noise: {use.description}" for name, use in uses),
        )


def _option(argument: str) -> str:
    """The option of a parameter; those of the question have no prefix."""
    prefix = "noise-" if argument in _OF_THE_QUESTION else ""
    return "--" + prefix + argument.replace("_", "-")


def _reader(parameter: Parameter) -> Callable[[str], Any]:
    """The parameter's own, with the library's messages in place of argparse's."""

    @functools.wraps(parameter.read)
    def read(text: str) -> Any:
        try:
            return parameter.read(text)
        except DomainError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def family(arguments: argparse.Namespace) -> Callable[..., NoiseLaw]:
    """The law that was asked for, with its parameters other than size and sensitivity."""
    chosen = law_names()[arguments.noise]
    shape = _shape(arguments)
    if chosen.ordered_by_scale:
        _check_required(arguments)
        return Family(chosen, **shape)
    return functools.partial(chosen, **shape)


def made(arguments: argparse.Namespace) -> NoiseLaw:
    """The law that was asked for, of the size, or for the sensitivity, that was given."""
    words = size(arguments)
    chosen = law_names()[arguments.noise]
    law = family(arguments)
    _check_required(arguments)
    taken = inspect.signature(chosen.__init__).parameters
    if "sensitivity" in taken and "scale" not in words:
        sensitivity = arguments.sensitivity
        words["sensitivity"] = int(sensitivity) if sensitivity.is_integer() else sensitivity
    if "progress" not in taken:
        return law(**words)
    with watch(f"making {arguments.noise} noise") as report_progress:
        return law(**words, progress=report_progress)


def names_target(arguments: argparse.Namespace) -> bool:
    """Whether a law that is made for a target was given one of its own."""
    return not {"epsilon", "delta", "mean_cost"}.isdisjoint(_shape(arguments))


def _shape(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters that were given, all of which must be those of the law."""
    shape = {
        name.removeprefix(_PREFIX): value
        for name, value in vars(arguments).items()
        if name.startswith(_PREFIX) and value is not None
    }
    for name in shape:
        if name not in law_names()[arguments.noise].shape_parameters:
            raise TypeError(f"{_option(name)} is no parameter of {arguments.noise} noise")
    return shape


def _check_required(arguments: argparse.Namespace) -> None:
    """Refuse a law without a parameter that it needs."""
    for name in Family(law_names()[arguments.noise], **_shape(arguments)).missing:
        raise TypeError(f"{arguments.noise} noise needs {_option(name)}")


def add_mechanism(parser: argparse.ArgumentParser) -> None:
    """Declare the options that :func:`report` reads."""
    add_noise(parser)
    add_size(parser)
    add_composition(parser)
    parser.add_argument(
        "--method",
        default="certified",
        help="certified (default): proven bounds on both sides, and the estimate between them; "
        "estimate: to working precision, without a proven error bound",
    )
    add_number(
        parser,
        "--tolerance",
        "largest distance of certified bounds, in units of epsilon (default: 1e-4 times epsilon, "
        "and 1e-4 for epsilon below 1)",
    )
    parser.add_argument("--json", action="store_true", help=HELP)


def add_size(parser: argparse.ArgumentParser) -> None:
    """Declare the options that :func:`size` and :func:`made` read."""
    # Not required: the parameters of some laws fix the size, and a law says what it misses.
    size = parser.add_mutually_exclusive_group()
    add_number(size, "--scale", "size of the noise: its scale")
    add_number(size, "--std", "... or its standard deviation")
    add_number(size, "--mean-abs", "... or its mean absolute value")


def size(arguments: argparse.Namespace) -> dict[str, Any]:
    """The size that was given, as a keyword argument of a law; nothing if none was."""
    given = {name: getattr(arguments, name) for name in _SIZES}
    return {name: value for name, value in given.items() if value is not None}


def add_query(parser: argparse.ArgumentParser) -> None:
    """Declare the options that describe the query and how often it is answered."""
    moved = "how far neighboring data sets can move the query (default 1)"
    add_number(parser, "--sensitivity", moved, default=1.0)
    add_number(parser, "--count", "number of compositions (default 1)", kind=int, default=1)


def add_composition(parser: argparse.ArgumentParser) -> None:
    """Declare the options that describe the query and its repetition."""
    add_query(parser)
    add_number(
        parser,
        "--contribution",
        'how far adding one record can move the query; for adjacency "replace" with sampling',
    )
    parser.add_argument(
        "--sampling-rate",
        type=float,
        default=1.0,
        metavar="Q",
        help="rate of Poisson sampling, in [0, 1] (default 1, no sampling)",
    )
    parser.add_argument(
        "--adjacency",
        default="add-remove",
        help="neighboring relation (default add-remove: the larger of its two directions)",
    )


def composition_of(arguments: argparse.Namespace) -> str:
    """What `add_composition` read, in words."""
    return (
        f"sensitivity {arguments.sensitivity:g}, count {arguments.count}, "
        f"sampling rate {arguments.sampling_rate:g}, {arguments.adjacency}"
    )


#: How a number is found: with a certificate, or by one of the numbers of an accountant.
METHODS = ("certified", "upper", "estimate", "renyi", "clt")


def report(arguments: argparse.Namespace, wanted: str, given: str) -> int:
    """Compute and print one of "epsilon" and "delta", ``wanted``, from the other."""
    # The accountant itself refuses laws that it cannot account.
    noise: Any = made(arguments)
    mechanism = Mechanism(noise, arguments.sensitivity, contribution=arguments.contribution)
    composed = mechanism.composed(arguments.count, arguments.sampling_rate, arguments.adjacency)
    at = getattr(arguments, given)
    value: Bracket | float
    if _validate.choice("method", arguments.method, METHODS) in METHODS[:2]:
        value = getattr(composed, wanted)(at, tolerance=arguments.tolerance)
    else:
        value = getattr(getattr(composed, arguments.method), wanted)(at)
    if arguments.method == "upper":
        value = float(value)
    answer = {
        wanted: float(value),
        **bounds_of(value),
        given: at,
        **size_of(noise),
        "sensitivity": mechanism.sensitivity,
        "contribution": mechanism.contribution,
        "count": arguments.count,
        "sampling_rate": arguments.sampling_rate,
        "adjacency": arguments.adjacency,
        "method": arguments.method,
    }
    if arguments.json:
        print_json(answer)
        return 0
    if isinstance(value, Bracket):
        print_bracket(wanted, value)
    else:
        print(f"{wanted} = {answer[wanted]:.10g}")
    print(f"{given} {at:g}, {noise!r}, {composition_of(arguments)}, method {arguments.method}")
    return 0


def size_of(noise: NoiseLaw) -> dict[str, Any]:
    """The law and its size, for JSON; and how good it is, of one that was optimized."""
    found = {
        "noise": repr(noise),
        "scale": float(noise.scale),
        "std": float(noise.std),
        "mean_abs": float(noise.mean_abs),
    }
    certificate = getattr(noise, "certificate", None)
    if certificate is not None:
        found["gap"] = certificate.gap
        if isinstance(noise, Cactus):
            found["largest_kl"] = certificate.largest_kl
    return found


def bounds_of(value: object) -> dict[str, float]:
    """Both bounds and the estimate, for JSON; nothing for a value without bounds."""
    if not isinstance(value, Bracket):
        return {}
    return {"lower": value.lower, "estimate": value.estimate, "upper": value.upper}


def print_bracket(name: str, bracket: Bracket) -> None:
    """Print three numbers; the bounds are rounded away from the estimate."""
    print(f"{name} <= {rounded(bracket.upper, 1):<16} certified")
    print(f"{'estimate':>{len(name)}}    {bracket.estimate:.5g}")
    print(f"{name} >= {rounded(bracket.lower, -1):<16} certified")


def rounded(value: float, sign: int) -> str:
    """Ten digits, not below the value if the sign is 1 and not above it if it is -1.

    Written as floats are: "inf", "50" and not "5E+1".
    """
    if math.isinf(value):
        return f"{value:g}"
    rounding = decimal.ROUND_CEILING if sign > 0 else decimal.ROUND_FLOOR
    found = decimal.Context(prec=10, rounding=rounding).create_decimal(value).normalize()
    return f"{found:{'f' if 0 <= found.adjusted() < 10 else 'g'}}"
